//! The lease of the relay: one replica delivers at a time, so that a subscription's events keep their order. An embedded
//! database has one server, which needs none.

use bowline_core::{Micros, Result};
use bowline_store::{Db, Engine, Value, WriteTx};

/// How long a holder may stay silent before another takes over, in microseconds.
pub(crate) const LEASE: Micros = 6_000_000;

/// Takes the lease, or keeps it. False while someone else has it.
pub(crate) async fn take(db: &Db, holder: &str, now: Micros) -> Result<bool> {
    if db.engine() == Engine::Sqlite {
        return Ok(true);
    }
    let holder = holder.to_owned();
    db.write(move |tx| {
        let holder = holder.clone();
        Box::pin(async move {
            let sql = "INSERT INTO leases (name, holder, until) VALUES ('events', $1, $2)
                       ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
                       WHERE leases.holder = excluded.holder OR leases.until < $3";
            let params = [Value::from(&holder), Value::Int(now + LEASE), Value::Int(now)];
            Ok(tx.execute(sql, &params).await? > 0)
        })
    })
    .await
}

/// Gives the lease back, so that the next holder need not wait for its end.
pub(crate) async fn give_back(db: &Db, holder: &str) -> Result<()> {
    if db.engine() == Engine::Sqlite {
        return Ok(());
    }
    let holder = holder.to_owned();
    db.write(move |tx| {
        let holder = holder.clone();
        Box::pin(async move {
            tx.execute("DELETE FROM leases WHERE name = 'events' AND holder = $1", &[Value::from(&holder)]).await?;
            Ok(())
        })
    })
    .await
}

/// Whether the lease still is the holder's, inside a transaction that writes for it.
pub(crate) async fn is_held(tx: &mut WriteTx, holder: &str) -> Result<bool> {
    if tx.engine() == Engine::Sqlite {
        return Ok(true);
    }
    let sql = "SELECT holder FROM leases WHERE name = 'events' AND holder = $1";
    Ok(tx.query_opt(sql, &[Value::from(holder)], |_| Ok::<_, bowline_core::Error>(())).await?.is_some())
}

/// The same on a snapshot alone ([`Db::write_leased`]): it writes the row, so that of two who believe to have the
/// lease one fails.
pub(crate) async fn confirm(tx: &mut WriteTx, holder: &str) -> Result<bool> {
    if tx.engine() == Engine::Sqlite {
        return Ok(true);
    }
    let sql = "UPDATE leases SET holder = holder WHERE name = 'events' AND holder = $1";
    Ok(tx.execute(sql, &[Value::from(holder)]).await? > 0)
}
