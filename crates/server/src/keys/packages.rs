//! The keys that versions of npm's packages are signed with: made at the first start, and rotated by the operator.

use std::sync::Arc;

use bowline_authn::crypto::KeyEncryptionKey;
use bowline_authn::package_key::PackageSigner;
use bowline_core::Micros;
use bowline_libraries::hosting::{removed_keys, signing};
use bowline_store::Db;

use super::{audit, shared};
use crate::error::StartError;

const ROTATE: &str = "bowline keys rotate --packages";
const REVOKE: &str = "bowline keys revoke";

/// Makes the first key, unless there is one. Servers that start together agree on one.
pub(crate) async fn create_first(db: &Db, wrapping: &KeyEncryptionKey, now: Micros) -> Result<(), StartError> {
    if db.read(|tx| Box::pin(async move { signing::signs(tx).await })).await? {
        return Ok(());
    }
    let (wrapping, key) = (shared(wrapping)?, generate()?);
    db.write(move |tx| {
        let (wrapping, key) = (wrapping.clone(), key.clone());
        Box::pin(async move {
            if !signing::signs(tx).await? {
                signing::replace_key(tx, &key, &wrapping, now).await?;
            }
            Ok(())
        })
    })
    .await
}

/// Makes a new key the one that signs; its id. Running servers sign with it from now on.
pub(crate) async fn rotate(db: &Db, wrapping: &KeyEncryptionKey, now: Micros) -> Result<String, StartError> {
    let (wrapping, key) = (shared(wrapping)?, generate()?);
    db.write(move |tx| {
        let (wrapping, key) = (wrapping.clone(), key.clone());
        Box::pin(async move {
            signing::replace_key(tx, &key, &wrapping, now).await?;
            audit(tx, ROTATE, key.id(), now).await?;
            Ok(key.id().to_owned())
        })
    })
    .await
}

/// Whether a key id is that of a key for packages: ids of keys for tokens have no colon.
pub(crate) fn is_id(kid: &str) -> bool {
    kid.contains(':')
}

/// Keys of packages that were removed, and the one that signs in their place, if they were all that did.
pub(crate) struct RevokedPackageKeys {
    pub(crate) gone: Vec<String>,
    pub(crate) spare: Option<String>,
}

/// Removes a key that leaked, or without an id all that there are, also those that only verify.
pub(crate) async fn revoke(
    db: &Db,
    wrapping: &KeyEncryptionKey,
    kid: Option<&str>,
    now: Micros,
) -> Result<RevokedPackageKeys, StartError> {
    let (wrapping, spare, kid) = (shared(wrapping)?, generate()?, kid.map(str::to_owned));
    db.write(move |tx| {
        let (wrapping, spare, kid) = (wrapping.clone(), spare.clone(), kid.clone());
        Box::pin(async move {
            let all = signing::listed(tx).await?.into_iter().map(|key| key.keyid);
            let gone: Vec<String> = all.filter(|keyid| kid.as_ref().is_none_or(|kid| kid == keyid)).collect();
            if let (Some(kid), true) = (kid, gone.is_empty()) {
                let text = format!("there is no key {kid} for packages; list them with: bowline keys list");
                return Err(StartError::Option(text));
            }
            for keyid in &gone {
                removed_keys::remove_key(tx, keyid, now).await?;
                audit(tx, REVOKE, keyid, now).await?;
            }
            // Without any, the next start makes the first one.
            if gone.is_empty() || signing::signs(tx).await? {
                return Ok(RevokedPackageKeys { gone, spare: None });
            }
            signing::replace_key(tx, &spare, &wrapping, now).await?;
            audit(tx, ROTATE, spare.id(), now).await?;
            Ok(RevokedPackageKeys { gone, spare: Some(spare.id().to_owned()) })
        })
    })
    .await
}

/// Ids of the keys, the newest first, each with whether it signs.
pub(crate) async fn list(db: &Db) -> Result<Vec<(String, bool)>, StartError> {
    let keys = db.read(|tx| Box::pin(async move { signing::listed(tx).await })).await?;
    Ok(keys.into_iter().map(|key| (key.keyid, key.expires_at.is_none())).collect())
}

fn generate() -> Result<Arc<PackageSigner>, StartError> {
    PackageSigner::generate().map(Arc::new).map_err(|error| StartError::Defect(error.to_string()))
}

#[cfg(test)]
mod tests {
    use bowline_core::Error;
    use bowline_store::{MIGRATIONS, Row, SqliteOptions};

    use super::*;

    async fn keys(db: &Db) -> Vec<(String, i64, bool, Option<i64>)> {
        let sql =
            "SELECT keyid, generation, length(sealed) > 0, expires_at FROM package_signing_keys WHERE removed_at IS NULL
             ORDER BY generation";
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.int(1)?, row.bool(2)?, row.opt_int(3)?));
        db.read(move |tx| Box::pin(async move { tx.query(sql, &[], read).await })).await.expect("keys")
    }

    #[tokio::test]
    async fn one_key_signs_and_those_before_it_stay_without_their_private_half() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let path = directory.path().join("bowline.db");
        let db = Db::open_sqlite(&path, SqliteOptions::default()).await.expect("a database");
        db.migrate(MIGRATIONS).await.expect("the schema");
        let wrapping = KeyEncryptionKey::from_bytes(&[7; 32]).expect("a key");
        let first = || create_first(&db, &wrapping, 1);
        let (one, two, three) = tokio::join!(first(), first(), first());
        one.and(two).and(three).expect("a key");
        let before = keys(&db).await;
        assert_eq!(before.len(), 1, "{before:?}");
        let rotated = rotate(&db, &wrapping, 5).await.expect("a key");
        create_first(&db, &wrapping, 6).await.expect("nothing to do");
        let after = keys(&db).await;
        assert_eq!(after, [(before[0].0.clone(), 1, false, Some(5)), (rotated, 2, true, None)]);
        assert!(after.iter().all(|(keyid, ..)| is_id(keyid)));
        // The one that leaked, then the one that signs, then all.
        let unknown = revoke(&db, &wrapping, Some("SHA256:x"), 7).await.err().expect("no such key");
        assert!(unknown.to_string().contains("there is no key SHA256:x for packages"), "{unknown}");
        assert_eq!(revoke(&db, &wrapping, Some(&before[0].0), 7).await.expect("revoked").spare, None);
        let spare = revoke(&db, &wrapping, Some(&after[1].0), 8).await.expect("revoked").spare.expect("a new key");
        assert_eq!(keys(&db).await, [(spare.clone(), 3, true, None)]);
        assert!(revoke(&db, &wrapping, Some(&before[0].0), 8).await.is_err(), "removed before");
        let second = rotate(&db, &wrapping, 9).await.expect("a key");
        let all = revoke(&db, &wrapping, None, 10).await.expect("revoked");
        let third = all.spare.expect("a new key");
        assert_eq!((all.gone, list(&db).await.expect("keys")), (vec![second, spare], vec![(third, true)]));
        db.close().await;
    }
}
