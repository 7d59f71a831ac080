//! Which servers work with a shared database, for commands that need all of them stopped.
//!
//! A server has a row of its own from before it reads the first key until it has stopped; the row of a killed one ends
//! with its lease. On the embedded engine the lock of the data directory says the same.

use std::sync::Arc;
use std::time::Duration;

use bowline_core::{Error, Micros};
use bowline_store::{Engine, ReadTx, Value, WriteTx};

use crate::background::{LEASE, cause};
use crate::error::StartError;
use crate::server::Parts;
use crate::storage::Storage;

const RENEW_EVERY: Duration = Duration::from_secs(3);
/// When the row of a server that was killed is removed, in microseconds after its end.
const RETENTION: Micros = 24 * 3600 * 1_000_000;

/// Registers a server, before it reads anything sealed: what is sealed with another key by then does not open, and what
/// is not stays as it is until the server has stopped.
pub(crate) async fn register(storage: &Storage, replica: &str, now: Micros) -> Result<(), Error> {
    let (db, name) = (storage.db.from_reserve(), name(replica));
    let written = db.write(move |tx| {
        let name = name.clone();
        Box::pin(async move {
            if tx.engine() == Engine::Sqlite {
                return Ok(());
            }
            take_turns(tx).await?;
            tx.execute("DELETE FROM leases WHERE name LIKE 'server %' AND until < $1", &[Value::Int(now - RETENTION)])
                .await?;
            let sql = "INSERT INTO leases (name, holder, until) VALUES ($1, '', $2)
                       ON CONFLICT (name) DO UPDATE SET until = excluded.until";
            tx.execute(sql, &[Value::from(&name), Value::Int(now + LEASE)]).await?;
            Ok(())
        })
    });
    written.await
}

/// Keeps a server's row for as long as it runs. Ends when the row is gone: the server was silent for too long, and a
/// command that needs every server stopped ran meanwhile. What it seals from then on may not open any more.
pub(crate) async fn renew(parts: Arc<Parts>) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        match renew_once(&parts).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                tracing::warn!(cause = %cause(&error), "commands do not see that this server runs; trying again");
            }
        }
    }
    parts.is_unregistered.send_replace(true);
}

/// Whether the row was still there.
async fn renew_once(parts: &Parts) -> Result<bool, Error> {
    let (db, name, now) = (parts.storage.db.from_reserve(), name(&parts.replica), parts.clock.now());
    let renewed = db.write_leased(move |tx| {
        let name = name.clone();
        Box::pin(async move {
            if tx.engine() == Engine::Sqlite {
                return Ok(true);
            }
            let sql = "UPDATE leases SET until = $2 WHERE name = $1";
            Ok::<_, Error>(tx.execute(sql, &[Value::from(&name), Value::Int(now + LEASE)]).await? > 0)
        })
    });
    renewed.await
}

/// Removes the row of a server that has stopped.
pub(crate) async fn leave(parts: &Parts) {
    let (db, name) = (parts.storage.db.from_reserve(), name(&parts.replica));
    let left = db.write_leased(move |tx| {
        let name = name.clone();
        Box::pin(async move {
            if tx.engine() == Engine::Postgres {
                tx.execute("DELETE FROM leases WHERE name = $1", &[Value::from(&name)]).await?;
            }
            Ok::<_, Error>(())
        })
    });
    if let Err(error) = left.await {
        tracing::warn!(cause = %cause(&error), "commands see only in some seconds that this server has stopped");
    }
}

/// Refuses while a server works with the database.
///
/// # Errors
/// What to do, or the storage refuses.
pub(crate) async fn require_stopped(tx: &mut ReadTx, now: Micros) -> Result<(), StartError> {
    let sql = "SELECT name FROM leases WHERE name LIKE 'server %' AND until > $1 LIMIT 1";
    match tx.query_opt(sql, &[Value::Int(now)], |row| row.text(0).map_err(Error::from)).await? {
        None => Ok(()),
        Some(_) => Err(StartError::Option(
            "a server works with this database: stop every replica, wait ten seconds, and run the command again".into(),
        )),
    }
}

/// The same in the transaction that no server may work beside: one that starts meanwhile waits for its end.
///
/// # Errors
/// What to do, or the storage refuses.
pub(crate) async fn require_stopped_until_commit(tx: &mut WriteTx, now: Micros) -> Result<(), StartError> {
    take_turns(tx).await?;
    require_stopped(tx, now).await?;
    // A server that was only silent learns that it was taken for stopped.
    tx.execute("DELETE FROM leases WHERE name LIKE 'server %'", &[]).await?;
    Ok(())
}

/// Of transactions that call this, only one at a time commits: they write the same row.
async fn take_turns(tx: &mut WriteTx) -> Result<(), Error> {
    let sql = "INSERT INTO leases (name, holder, until) VALUES ('servers', '', 1)
               ON CONFLICT (name) DO UPDATE SET until = leases.until + 1";
    tx.execute(sql, &[]).await?;
    Ok(())
}

fn name(replica: &str) -> String {
    format!("server {replica}")
}
