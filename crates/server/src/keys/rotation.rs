//! Adding, revoking and scheduling signing keys. Each change reads the stored keys in its own transaction, so that two
//! commands at once do not undo each other.

use std::sync::Arc;

use bowline_authn::crypto::KeyEncryptionKey;
use bowline_authn::keys::{Algorithm, KeyRing, SigningKey};
use bowline_core::{Error, Micros};
use bowline_store::{Db, ReadTx, Value, WriteTx};
use serde::{Deserialize, Serialize};

use super::{audit, read_ring, save, shared};
use crate::error::StartError;

const ROTATE: &str = "bowline keys rotate";
const REVOKE: &str = "bowline keys revoke";
/// Name of the fact that holds the schedule.
const SCHEDULE: &str = "signing key rotation";

/// A key that was added.
pub(crate) struct Added {
    pub(crate) kid: String,
    /// The second from which it signs.
    pub(crate) signs_from: i64,
}

/// The keys to revoke.
pub(crate) enum Which {
    /// One, by its id.
    One(String),
    All,
}

/// What a revocation did.
pub(crate) struct Revoked {
    /// Ids of the keys that are gone.
    pub(crate) gone: Vec<String>,
    /// The key that signs now.
    pub(crate) signs: String,
}

/// When keys rotate by themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Schedule {
    /// Seconds after the newest key was published.
    pub(crate) every: i64,
    /// Algorithm of the new key; absent for that of the key that signs.
    pub(crate) algorithm: Option<String>,
}

/// Adds a key: published now, signing after the overlap, at once if none signs. Its algorithm is the
/// requested one, else that of the key that signs, else the default of a first key.
pub(crate) async fn rotate(
    db: &Db,
    wrapping: &KeyEncryptionKey,
    algorithm: Option<Algorithm>,
    first: Algorithm,
    now: Micros,
) -> Result<Added, StartError> {
    let seconds = now.div_euclid(1_000_000);
    let ring = super::load(db, wrapping).await?;
    let present = ring.signing_key(seconds).map(|key| key.algorithm());
    let key = generate(algorithm.or(present).unwrap_or(first)).await?;
    let wrapping = shared(wrapping)?;
    db.write(move |tx| {
        let (wrapping, key) = (wrapping.clone(), key.clone());
        Box::pin(async move {
            let mut ring = read_ring(tx, &wrapping).await?;
            let kid = key.kid().to_owned();
            let signs_from = ring.rotate(key, seconds);
            ring.prune(seconds);
            save(tx, &wrapping, &ring).await?;
            audit(tx, ROTATE, &kid, now).await?;
            Ok(Added { kid, signs_from })
        })
    })
    .await
}

/// The key that the API's rotation leads to.
pub(crate) struct Rotated {
    pub(crate) kid: String,
    pub(crate) algorithm: Algorithm,
    pub(crate) published_at: i64,
    pub(crate) signs_from: i64,
    /// Whether it was added, and not there before, waiting to sign.
    pub(crate) is_new: bool,
}

/// Adds a generated key, as [`rotate`] does, unless one waits to sign: so that calls without end do not publish keys
/// without end.
pub(crate) async fn rotate_in(
    tx: &mut WriteTx,
    wrapping: &KeyEncryptionKey,
    key: Arc<SigningKey>,
    now: Micros,
) -> Result<Rotated, StartError> {
    let seconds = now.div_euclid(1_000_000);
    let mut ring = read_ring(tx, wrapping).await?;
    let waiting = ring.keys().iter().find(|known| known.signs_from > seconds && known.retired_at.is_none());
    if let Some(waiting) = waiting {
        let (kid, algorithm) = (waiting.key.kid().to_owned(), waiting.key.algorithm());
        let (published_at, signs_from) = (waiting.published_at, waiting.signs_from);
        return Ok(Rotated { kid, algorithm, published_at, signs_from, is_new: false });
    }
    let (kid, algorithm) = (key.kid().to_owned(), key.algorithm());
    let signs_from = ring.rotate(key, seconds);
    ring.prune(seconds);
    save(tx, wrapping, &ring).await?;
    Ok(Rotated { kid, algorithm, published_at: seconds, signs_from, is_new: true })
}

/// The first key, unless another server made it meanwhile.
pub(super) async fn create_first(
    db: &Db,
    wrapping: &KeyEncryptionKey,
    algorithm: Algorithm,
    now: Micros,
) -> Result<KeyRing, StartError> {
    let key = generate(algorithm).await?;
    let wrapping = shared(wrapping)?;
    db.write(move |tx| {
        let (wrapping, key) = (wrapping.clone(), key.clone());
        Box::pin(async move {
            let mut ring = read_ring(tx, &wrapping).await?;
            if ring.keys().is_empty() {
                audit(tx, ROTATE, key.kid(), now).await?;
                ring.rotate(key, now.div_euclid(1_000_000));
                save(tx, &wrapping, &ring).await?;
            }
            Ok(ring)
        })
    })
    .await
}

/// Takes keys away at once, and every token that they signed with them. Where no other is left to sign, a new key does.
pub(crate) async fn revoke(
    db: &Db,
    wrapping: &KeyEncryptionKey,
    which: Which,
    algorithm: Option<Algorithm>,
    first: Algorithm,
    now: Micros,
) -> Result<Revoked, StartError> {
    let seconds = now.div_euclid(1_000_000);
    let ring = super::load(db, wrapping).await?;
    let present = ring.signing_key(seconds).map(|key| key.algorithm());
    let spare = generate(algorithm.or(present).unwrap_or(first)).await?;
    let (wrapping, which) = (shared(wrapping)?, Arc::new(which));
    db.write(move |tx| {
        let (wrapping, which, spare) = (wrapping.clone(), which.clone(), spare.clone());
        Box::pin(async move {
            let mut ring = read_ring(tx, &wrapping).await?;
            let known: Vec<String> = ring.keys().iter().map(|key| key.key.kid().to_owned()).collect();
            let gone = match &*which {
                Which::All => known,
                Which::One(kid) if known.contains(kid) => vec![kid.clone()],
                Which::One(kid) => return Err(unknown_key(kid)),
            };
            if !ring.revoke(&gone, seconds) {
                audit(tx, ROTATE, spare.kid(), now).await?;
                ring.rotate(spare, seconds);
            }
            save(tx, &wrapping, &ring).await?;
            for kid in &gone {
                audit(tx, REVOKE, kid, now).await?;
            }
            let signs = ring.signing_key(seconds).map(|key| key.kid().to_owned());
            let signs = signs.ok_or_else(|| StartError::Defect("no key signs after a revocation".into()))?;
            Ok(Revoked { gone, signs })
        })
    })
    .await
}

fn unknown_key(kid: &str) -> StartError {
    StartError::Option(format!("there is no signing key {kid}; list them with: bowline keys list"))
}

/// Adds a key if the schedule says that it is time; its id, if so.
pub(crate) async fn rotate_if_due(
    db: &Db,
    wrapping: &KeyEncryptionKey,
    ring: &KeyRing,
    now: Micros,
) -> Result<Option<String>, StartError> {
    let Some(schedule) = read_schedule(db).await?.filter(|schedule| schedule.is_due(ring, now)) else {
        return Ok(None);
    };
    let present = ring.signing_key(now.div_euclid(1_000_000)).map(|key| key.algorithm());
    let key = generate(schedule.algorithm()?.or(present).unwrap_or_default()).await?;
    let wrapping = shared(wrapping)?;
    db.write(move |tx| {
        let (wrapping, key, schedule) = (wrapping.clone(), key.clone(), schedule.clone());
        Box::pin(async move {
            let mut ring = read_ring(tx, &wrapping).await?;
            // Another replica may have been first.
            if !schedule.is_due(&ring, now) {
                return Ok(None);
            }
            let (kid, seconds) = (key.kid().to_owned(), now.div_euclid(1_000_000));
            ring.rotate(key, seconds);
            ring.prune(seconds);
            save(tx, &wrapping, &ring).await?;
            audit(tx, ROTATE, &kid, now).await?;
            Ok(Some(kid))
        })
    })
    .await
}

impl Schedule {
    fn is_due(&self, ring: &KeyRing, now: Micros) -> bool {
        let newest = ring.keys().iter().map(|key| key.published_at).max();
        newest.is_none_or(|at| at.saturating_add(self.every) <= now.div_euclid(1_000_000))
    }

    fn algorithm(&self) -> Result<Option<Algorithm>, StartError> {
        let damaged =
            |name: &str| StartError::Defect(format!("the rotation of keys names an unknown algorithm {name}"));
        self.algorithm.as_deref().map(|name| Algorithm::parse(name).ok_or_else(|| damaged(name))).transpose()
    }
}

/// The schedule, if there is one.
pub(crate) async fn read_schedule(db: &Db) -> Result<Option<Schedule>, StartError> {
    let stored = db.read(|tx: &mut ReadTx| {
        Box::pin(async move {
            let sql = "SELECT value FROM facts WHERE name = $1";
            tx.query_opt(sql, &[Value::from(SCHEDULE)], |row| row.text(0).map_err(Error::from)).await
        })
    });
    let parse = |text: String| {
        serde_json::from_str(&text).map_err(|error| StartError::Defect(format!("the rotation of keys: {error}")))
    };
    stored.await?.map(parse).transpose()
}

pub(crate) async fn write_schedule(db: &Db, schedule: &Schedule, now: Micros) -> Result<(), StartError> {
    let text = serde_json::to_string(schedule).map_err(|error| StartError::Defect(error.to_string()))?;
    db.write(move |tx| {
        let text = text.clone();
        Box::pin(async move {
            let sql = "INSERT INTO facts (name, value) VALUES ($1, $2)
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            tx.execute(sql, &[Value::from(SCHEDULE), Value::from(&text)]).await?;
            audit(tx, "bowline keys rotate --every", "schedule", now).await?;
            Ok(())
        })
    })
    .await
}

pub(crate) async fn clear_schedule(db: &Db, now: Micros) -> Result<(), StartError> {
    db.write(move |tx| {
        Box::pin(async move {
            tx.execute("DELETE FROM facts WHERE name = $1", &[Value::from(SCHEDULE)]).await?;
            audit(tx, "bowline keys rotate --every", "schedule", now).await?;
            Ok(())
        })
    })
    .await
}

/// A new key; RSA takes a noticeable part of a second, which no runtime thread has.
async fn generate(algorithm: Algorithm) -> Result<Arc<SigningKey>, StartError> {
    let made = tokio::task::spawn_blocking(move || SigningKey::generate(algorithm)).await;
    let key = made.map_err(|error| StartError::Defect(error.to_string()))?;
    key.map(Arc::new).map_err(|error| StartError::Defect(error.to_string()))
}
