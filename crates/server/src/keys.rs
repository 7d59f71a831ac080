//! Signing keys and secrets in the database, sealed with the key file.

use std::sync::Arc;

use bowline_authn::keys::{Algorithm, KeyRing, RingKey, SigningKey};
use bowline_authn::wrap::{KeyEncryptionKey, random_bytes};
use bowline_core::{Error, Micros};
use bowline_pipeline::{Actor, Change, OPERATOR, record_audit};
use bowline_store::{Db, Value, WriteTx};

use crate::error::StartError;

struct StoredKey {
    kid: String,
    algorithm: String,
    sealed: Vec<u8>,
    published_at: i64,
    signs_from: i64,
    retired_at: Option<i64>,
}

/// The keys of the database; the first start makes one, which signs at once.
pub(crate) async fn load_or_create(db: &Db, wrapping: &KeyEncryptionKey, now: Micros) -> Result<KeyRing, StartError> {
    let ring = load(db, wrapping).await?;
    if !ring.keys().is_empty() {
        return Ok(ring);
    }
    add(db, wrapping, Algorithm::default(), now).await?;
    load(db, wrapping).await
}

/// The keys of the database.
pub(crate) async fn load(db: &Db, wrapping: &KeyEncryptionKey) -> Result<KeyRing, StartError> {
    let stored = db
        .read(|tx| {
            Box::pin(async move {
                let sql = "SELECT kid, algorithm, sealed, published_at, signs_from, retired_at FROM signing_keys ORDER BY published_at, kid";
                tx.query(sql, &[], |row| {
                    Ok::<_, Error>(StoredKey {
                        kid: row.text(0)?,
                        algorithm: row.text(1)?,
                        sealed: row.bytes(2)?,
                        published_at: row.int(3)?,
                        signs_from: row.int(4)?,
                        retired_at: row.opt_int(5)?,
                    })
                })
                .await
            })
        })
        .await?;
    let keys: Result<Vec<RingKey>, StartError> = stored.into_iter().map(|key| open(wrapping, key)).collect();
    Ok(KeyRing::new(keys?))
}

fn open(wrapping: &KeyEncryptionKey, stored: StoredKey) -> Result<RingKey, StartError> {
    let sealed = |error: &dyn std::fmt::Display| StartError::Sealed(format!("signing key {}: {error}", stored.kid));
    let bytes = wrapping.open(&context(&stored.kid), &stored.sealed).map_err(|error| sealed(&error))?;
    let algorithm = Algorithm::parse(&stored.algorithm).ok_or_else(|| sealed(&"unknown algorithm"))?;
    let key = SigningKey::from_pkcs8(algorithm, &bytes).map_err(|error| sealed(&error))?;
    Ok(RingKey {
        key: Arc::new(key),
        published_at: stored.published_at,
        signs_from: stored.signs_from,
        retired_at: stored.retired_at,
    })
}

fn context(kid: &str) -> String {
    format!("signing key {kid}")
}

/// Adds a key: published now, signing after the overlap; the key that signs until then retires. Gives its id and
/// the second it signs from.
pub(crate) async fn add(
    db: &Db,
    wrapping: &KeyEncryptionKey,
    algorithm: Algorithm,
    now: Micros,
) -> Result<(String, i64), StartError> {
    let mut ring = load(db, wrapping).await?;
    let key = SigningKey::generate(algorithm).map_err(|error| StartError::Defect(error.to_string()))?;
    let kid = key.kid().to_owned();
    let signs_from = ring.rotate(key, now.div_euclid(1_000_000));
    let gone = ring.prune(now.div_euclid(1_000_000));
    let mut rows = Vec::new();
    for key in ring.keys() {
        let bytes = key.key.to_pkcs8().map_err(|error| StartError::Defect(error.to_string()))?;
        rows.push(StoredKey {
            kid: key.key.kid().into(),
            algorithm: key.key.algorithm().as_str().into(),
            sealed: wrapping.seal(&context(key.key.kid()), &bytes),
            published_at: key.published_at,
            signs_from: key.signs_from,
            retired_at: key.retired_at,
        });
    }
    let rows = Arc::new(rows);
    let added = kid.clone();
    db.write(move |tx| {
        let (rows, gone, added) = (rows.clone(), gone.clone(), added.clone());
        Box::pin(async move {
            save(tx, &rows, &gone).await?;
            let actor = Actor { subject: OPERATOR, request_id: &added, method: "bowline keys rotate" };
            let change = Change { kind: "bowline.dev/SigningKey", uid: added.clone(), before: None, after: None };
            record_audit(tx, now, &actor, &change).await
        })
    })
    .await?;
    Ok((kid, signs_from))
}

async fn save(tx: &mut WriteTx, rows: &[StoredKey], gone: &[String]) -> Result<(), Error> {
    for kid in gone {
        tx.execute("DELETE FROM signing_keys WHERE kid = $1", &[Value::from(kid)]).await?;
    }
    for row in rows {
        let sql = "INSERT INTO signing_keys (kid, algorithm, sealed, published_at, signs_from, retired_at)
                   VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (kid) DO UPDATE SET retired_at = excluded.retired_at";
        let params = [
            Value::from(&row.kid),
            Value::from(&row.algorithm),
            Value::Bytes(&row.sealed),
            Value::Int(row.published_at),
            Value::Int(row.signs_from),
            Value::OptInt(row.retired_at),
        ];
        tx.execute(sql, &params).await?;
    }
    Ok(())
}

/// The 32 secret bytes of this name; the first asker makes them.
pub(crate) async fn secret(db: &Db, wrapping: &KeyEncryptionKey, name: &'static str) -> Result<[u8; 32], StartError> {
    let context = format!("secret {name}");
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
