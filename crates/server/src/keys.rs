//! Signing keys and secrets in the database, sealed with the key file.

mod follow;
pub(crate) mod packages;
mod rewrap;
mod rotation;

use std::sync::Arc;

use bowline_authn::crypto::{KeyEncryptionKey, random_bytes};
use bowline_authn::keys::{Algorithm, KeyRing, RingKey, SigningKey};
use bowline_core::{Error, Micros};
use bowline_pipeline::{Actor, Change, OPERATOR, record_audit};
use bowline_store::{Db, ReadTx, Row, Value, WriteTx};

use crate::error::StartError;

pub(crate) use follow::follow;
pub(crate) use rewrap::rewrap;
use rotation::rotate_if_due;
pub(crate) use rotation::{
    Rotated, Schedule, Which, clear_schedule, read_schedule, revoke, rotate, rotate_in, write_schedule,
};

const KIND: &str = "bowline.dev/SigningKey";

/// The keys of the database; the first start makes one, which signs at once. Servers that start together agree on one.
pub(crate) async fn load_or_create(
    db: &Db,
    wrapping: &KeyEncryptionKey,
    algorithm: Algorithm,
    now: Micros,
) -> Result<KeyRing, StartError> {
    let ring = load(db, wrapping).await?;
    if !ring.keys().is_empty() {
        return Ok(ring);
    }
    rotation::create_first(db, wrapping, algorithm, now).await
}

/// The keys of the database.
pub(crate) async fn load(db: &Db, wrapping: &KeyEncryptionKey) -> Result<KeyRing, StartError> {
    let stored = db.read(|tx| Box::pin(async move { read_rows(tx).await })).await?;
    ring(wrapping, stored)
}

/// The keys of the database as a transaction sees them.
async fn read_ring(tx: &mut ReadTx, wrapping: &KeyEncryptionKey) -> Result<KeyRing, StartError> {
    ring(wrapping, read_rows(tx).await?)
}

async fn read_rows(tx: &mut ReadTx) -> Result<Vec<StoredKey>, Error> {
    let sql = "SELECT kid, algorithm, sealed, published_at, signs_from, retired_at FROM signing_keys ORDER BY published_at, kid";
    tx.query(sql, &[], StoredKey::read).await
}

fn ring(wrapping: &KeyEncryptionKey, stored: Vec<StoredKey>) -> Result<KeyRing, StartError> {
    let keys: Result<Vec<RingKey>, StartError> = stored.into_iter().map(|key| open(wrapping, key)).collect();
    Ok(KeyRing::new(keys?))
}

struct StoredKey {
    kid: String,
    algorithm: String,
    sealed: Vec<u8>,
    published_at: i64,
    signs_from: i64,
    retired_at: Option<i64>,
}

impl StoredKey {
    fn read(row: &Row<'_>) -> Result<StoredKey, Error> {
        Ok(StoredKey {
            kid: row.text(0)?,
            algorithm: row.text(1)?,
            sealed: row.bytes(2)?,
            published_at: row.int(3)?,
            signs_from: row.int(4)?,
            retired_at: row.opt_int(5)?,
        })
    }
}

fn open(wrapping: &KeyEncryptionKey, stored: StoredKey) -> Result<RingKey, StartError> {
    let sealed = |error: &dyn std::fmt::Display| StartError::Sealed(format!("signing key {}: {error}", stored.kid));
    let bytes = wrapping.open(&key_context(&stored.kid), &stored.sealed).map_err(|error| sealed(&error))?;
    let algorithm = Algorithm::parse(&stored.algorithm).ok_or_else(|| sealed(&"unknown algorithm"))?;
    let key = SigningKey::from_pkcs8(algorithm, &bytes).map_err(|error| sealed(&error))?;
    Ok(RingKey {
        key: Arc::new(key),
        published_at: stored.published_at,
        signs_from: stored.signs_from,
        retired_at: stored.retired_at,
    })
}

/// What a signing key is sealed for.
fn key_context(kid: &str) -> String {
    format!("signing key {kid}")
}

/// What a secret of the server is sealed for.
fn secret_context(name: &str) -> String {
    format!("secret {name}")
}

/// Stores a ring: its keys with their times, and none besides.
async fn save(tx: &mut WriteTx, wrapping: &KeyEncryptionKey, ring: &KeyRing) -> Result<(), StartError> {
    let stored = tx.query("SELECT kid FROM signing_keys", &[], |row| row.text(0).map_err(Error::from)).await?;
    for kid in stored.iter().filter(|kid| !ring.keys().iter().any(|key| key.key.kid() == *kid)) {
        tx.execute("DELETE FROM signing_keys WHERE kid = $1", &[Value::from(kid)]).await?;
    }
    for key in ring.keys() {
        let bytes = key.key.to_pkcs8().map_err(|error| StartError::Defect(error.to_string()))?;
        let sealed = wrapping.seal(&key_context(key.key.kid()), &bytes);
        let sql = "INSERT INTO signing_keys (kid, algorithm, sealed, published_at, signs_from, retired_at)
                   VALUES ($1, $2, $3, $4, $5, $6)
                   ON CONFLICT (kid) DO UPDATE SET signs_from = excluded.signs_from, retired_at = excluded.retired_at";
        let params = [
            Value::from(key.key.kid()),
            Value::from(key.key.algorithm().as_str()),
            Value::Bytes(&sealed),
            Value::Int(key.published_at),
            Value::Int(key.signs_from),
            Value::OptInt(key.retired_at),
        ];
        tx.execute(sql, &params).await?;
    }
    Ok(())
}

async fn audit(tx: &mut WriteTx, method: &str, kid: &str, now: Micros) -> Result<(), Error> {
    let actor = Actor { subject: OPERATOR, request_id: kid, method };
    record_audit(tx, now, &actor, &Change { kind: KIND, uid: kid.to_owned(), before: None, after: None }).await
}

/// The same key for a transaction, which may run more than once and outlive its caller.
pub(crate) fn shared(wrapping: &KeyEncryptionKey) -> Result<Arc<KeyEncryptionKey>, StartError> {
    let key = KeyEncryptionKey::from_bytes(wrapping.as_bytes());
    key.map(Arc::new).map_err(|error| StartError::Defect(error.to_string()))
}

/// The 32 secret bytes of this name; the first asker makes them.
pub(crate) async fn secret(db: &Db, wrapping: &KeyEncryptionKey, name: &'static str) -> Result<[u8; 32], StartError> {
    let context = secret_context(name);
    let fresh = wrapping.seal(&context, &random_bytes::<32>());
    let sealed = db
        .write(move |tx| {
            let fresh = fresh.clone();
            Box::pin(async move {
                let sql = "INSERT INTO secrets (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
                tx.execute(sql, &[Value::from(name), Value::Bytes(&fresh)]).await?;
                let sql = "SELECT sealed FROM secrets WHERE name = $1";
                tx.query_opt(sql, &[Value::from(name)], |row| row.bytes(0).map_err(Error::from)).await
            })
        })
        .await?;
    let sealed = sealed.ok_or_else(|| StartError::Defect(format!("the secret {name} was not stored")))?;
    let bytes =
        wrapping.open(&context, &sealed).map_err(|error| StartError::Sealed(format!("secret {name}: {error}")))?;
    bytes.try_into().map_err(|_| StartError::Sealed(format!("secret {name} has the wrong length")))
}

#[cfg(test)]
mod tests {
    use bowline_store::{MIGRATIONS, SqliteOptions};

    use super::*;

    #[tokio::test]
    async fn starts_at_once_make_one_first_key() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let path = directory.path().join("bowline.db");
        let db = Db::open_sqlite(&path, SqliteOptions::default()).await.expect("a database");
        db.migrate(MIGRATIONS).await.expect("the schema");
        let wrapping = KeyEncryptionKey::from_bytes(&[7; 32]).expect("a key");
        // Each reads that there is no key before any of them writes.
        let first = || load_or_create(&db, &wrapping, Algorithm::Es256, 1_000_000);
        let (one, two, three) = tokio::join!(first(), first(), first());
        let kids = |ring: Result<KeyRing, StartError>| -> Vec<String> {
            ring.expect("a ring").keys().iter().map(|key| key.key.kid().to_owned()).collect()
        };
        let kids = [kids(one), kids(two), kids(three)];
        assert_eq!(kids[0].len(), 1, "{kids:?}");
        assert!(kids.iter().all(|each| *each == kids[0]), "{kids:?}");
        db.close().await;
    }
}
