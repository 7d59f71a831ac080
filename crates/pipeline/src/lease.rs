//! Leases: of several replicas, one does a piece of work at a time. A lease is a row with a holder and an end; who is
//! silent until then loses it.
//!
//! The embedded database has one server, by the lock of its directory: there [`keep`] writes nothing, a restart waits for
//! no end, and an idle server stays idle.

use bowline_core::{Error, Micros, Result};
use bowline_store::{Engine, ReadTx, Value, WriteTx};

/// Takes the lease of that name, or keeps it for as long again. False while another holder has it.
pub async fn keep(tx: &mut WriteTx, name: &str, holder: &str, lasts: Micros, now: Micros) -> Result<bool> {
    if tx.engine() == Engine::Sqlite { Ok(true) } else { take(tx, name, holder, lasts, now).await }
}

/// The same on both engines, for turns that also a restart keeps to.
pub async fn take(tx: &mut WriteTx, name: &str, holder: &str, lasts: Micros, now: Micros) -> Result<bool> {
    let sql = "INSERT INTO leases (name, holder, until) VALUES ($1, $2, $3)
               ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
               WHERE leases.holder = excluded.holder OR leases.until < $4";
    let params = [Value::from(name), Value::from(holder), Value::Int(now + lasts), Value::Int(now)];
    Ok(tx.execute(sql, &params).await? > 0)
}

/// Whether another holder has the lease, before anything is written.
pub async fn is_taken(tx: &mut ReadTx, name: &str, holder: &str, now: Micros) -> Result<bool> {
    if tx.engine() == Engine::Sqlite {
        return Ok(false);
    }
    let sql = "SELECT holder FROM leases WHERE name = $1 AND holder <> $2 AND until >= $3";
    let params = [Value::from(name), Value::from(holder), Value::Int(now)];
    Ok(tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?.is_some())
}

/// Whether the lease still is the holder's, in a serializable transaction that writes for it.
pub async fn is_held(tx: &mut ReadTx, name: &str, holder: &str) -> Result<bool> {
    if tx.engine() == Engine::Sqlite {
        return Ok(true);
    }
    let sql = "SELECT holder FROM leases WHERE name = $1 AND holder = $2";
    let params = [Value::from(name), Value::from(holder)];
    Ok(tx.query_opt(sql, &params, |_| Ok::<_, Error>(())).await?.is_some())
}

/// The same on a snapshot alone ([`bowline_store::Db::write_leased`]): it writes the row, so that of two that believe to
/// hold the lease one fails.
pub async fn confirm(tx: &mut WriteTx, name: &str, holder: &str) -> Result<bool> {
    if tx.engine() == Engine::Sqlite {
        return Ok(true);
    }
    let sql = "UPDATE leases SET holder = holder WHERE name = $1 AND holder = $2";
    Ok(tx.execute(sql, &[Value::from(name), Value::from(holder)]).await? > 0)
}

/// Gives the lease back, so that the next holder need not wait for its end.
pub async fn give_back(tx: &mut WriteTx, name: &str, holder: &str) -> Result<()> {
    if tx.engine() == Engine::Postgres {
        let sql = "DELETE FROM leases WHERE name = $1 AND holder = $2";
        tx.execute(sql, &[Value::from(name), Value::from(holder)]).await?;
    }
    Ok(())
}

/// Who has the lease, unless its end has come.
pub async fn holder(tx: &mut ReadTx, name: &str, now: Micros) -> Result<Option<String>> {
    let sql = "SELECT holder FROM leases WHERE name = $1 AND until >= $2";
    tx.query_opt(sql, &[Value::from(name), Value::Int(now)], |row| row.text(0).map_err(Error::from)).await
}

/// Leaves a note in the holder's place until some time, in which no one takes the lease.
pub async fn leave(tx: &mut WriteTx, name: &str, holder: &str, note: &str, until: Micros) -> Result<()> {
    let sql = "UPDATE leases SET holder = $3, until = $4 WHERE name = $1 AND holder = $2";
    let params = [Value::from(name), Value::from(holder), Value::from(note), Value::Int(until)];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Removes the leases with names from `first` to before `end` that ended before a time. Returns how many.
pub async fn sweep(tx: &mut WriteTx, first: &str, end: &str, before: Micros) -> Result<u64> {
    let sql = "DELETE FROM leases WHERE name >= $1 AND name < $2 AND until < $3";
    Ok(tx.execute(sql, &[Value::from(first), Value::from(end), Value::Int(before)]).await?)
}
