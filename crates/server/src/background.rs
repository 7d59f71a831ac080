//! Work that no call waits for: folding counters, seeing key rotations, noting who was last seen, sending mail.

use std::sync::Arc;
use std::time::Duration;

use bowline_authn::keys::KeyRing;
use bowline_authn::wrap::random_bytes;
use bowline_core::{Clock, Error, Micros};
use bowline_oci::Door;
use bowline_pipeline::{Authenticator, OwnKeys};
use bowline_services::Exchange;
use bowline_services::content::Registry;
use bowline_store::{Db, Value, WriteTx, counters};
use tokio::task::JoinSet;

use crate::keys;
use crate::mail::{self, Relay};
use crate::server::Parts;

const FOLD_EVERY: Duration = Duration::from_millis(250);
const LOOK_FOR_KEYS_EVERY: Duration = Duration::from_secs(2);
const NOTE_PULLS_EVERY: Duration = Duration::from_secs(1);
const EXPIRE_UPLOADS_EVERY: Duration = Duration::from_secs(60);
const NOTE_LAST_SEEN_EVERY: Duration = Duration::from_secs(5);

/// Deltas that one transaction folds.
const FOLDED_AT_ONCE: i64 = 2000;
/// How long a replica may stay silent before another takes its work over, in microseconds.
const LEASE: Micros = 10_000_000;

/// Starts everything; dropping the set stops it.
pub(crate) fn start(parts: &Arc<Parts>, relay: Option<Relay>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(fold(parts.storage.db.clone(), parts.clock.clone()));
    tasks.spawn(look_for_keys(parts.clone()));
    tasks.spawn(note_last_seen(parts.exchange.clone()));
    tasks.spawn(note_pulls(parts.registry.clone()));
    tasks.spawn(expire_uploads(parts.door.clone()));
    if let Some(relay) = relay {
        tasks.spawn(mail::deliver(parts.storage.db.clone(), parts.clock.clone(), relay));
    }
    tasks
}

async fn fold(db: Db, clock: Arc<dyn Clock>) {
    let holder: String = bowline_core::hex(&random_bytes::<8>());
    loop {
        let (holder, now) = (holder.clone(), clock.now());
        let folded = db
            .write(move |tx| {
                let holder = holder.clone();
                Box::pin(async move { fold_once(tx, &holder, now).await })
            })
            .await;
        match folded {
            Ok(n) if n >= FOLDED_AT_ONCE as u64 => {}
            Ok(_) => tokio::time::sleep(FOLD_EVERY).await,
            Err(error) => {
                tracing::warn!(cause = %cause(&error), "counters were not folded; they stay exact and grow slower to read");
                tokio::time::sleep(FOLD_EVERY * 20).await;
            }
        }
    }
}

async fn fold_once(tx: &mut WriteTx, holder: &str, now: Micros) -> Result<u64, Error> {
    let sql = "SELECT id FROM count_deltas LIMIT 1";
    if tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await?.is_none() {
        return Ok(0);
    }
    let sql = "INSERT INTO leases (name, holder, until) VALUES ('fold', $1, $2)
               ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
               WHERE leases.holder = excluded.holder OR leases.until < $3";
    let params = [Value::from(holder), Value::Int(now + LEASE), Value::Int(now)];
    if tx.execute(sql, &params).await? == 0 {
        return Ok(0);
    }
    Ok(counters::fold(tx, FOLDED_AT_ONCE).await?)
}

async fn look_for_keys(parts: Arc<Parts>) {
    loop {
        tokio::time::sleep(LOOK_FOR_KEYS_EVERY).await;
        match keys::load(&parts.storage.db, &parts.storage.wrapping_key).await {
            Ok(ring) => take_keys(&parts.authenticator, ring, parts.clock.now()),
            Err(error) => tracing::warn!(%error, "the signing keys could not be read; the known ones stay in use"),
        }
    }
}

/// Takes the keys of the database if they are others than the known ones, or if one of those ended.
fn take_keys(authenticator: &Authenticator, ring: KeyRing, now: Micros) {
    let seconds = now.div_euclid(1_000_000);
    let verification = ring.verification_keys(seconds);
    let known = authenticator.keys();
    let facts = |ring: &KeyRing| -> Vec<(String, i64, Option<i64>)> {
        ring.keys().iter().map(|key| (key.key.kid().to_owned(), key.signs_from, key.retired_at)).collect()
    };
    if facts(&known.ring) != facts(&ring) || known.verification != verification {
        tracing::info!(keys = ring.keys().len(), "signing keys changed");
        authenticator.replace_keys(OwnKeys { ring, verification });
    }
}

async fn note_last_seen(exchange: Arc<Exchange>) {
    loop {
        tokio::time::sleep(NOTE_LAST_SEEN_EVERY).await;
        exchange.flush_last_seen().await;
    }
}

async fn note_pulls(registry: Registry) {
    loop {
        tokio::time::sleep(NOTE_PULLS_EVERY).await;
        registry.flush_pulls().await;
    }
}

/// Every replica may do it: the row goes first, and whoever took it takes the bytes.
async fn expire_uploads(door: Arc<Door>) {
    loop {
        tokio::time::sleep(EXPIRE_UPLOADS_EVERY).await;
        door.expire_uploads().await;
    }
}

fn cause(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
