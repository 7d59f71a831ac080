//! Keys of this server that leaked: removed at once, and what they signed is forgotten in steps.

use bowline_core::{Error, Micros, Result};
use bowline_store::{Row, Value, WriteTx};

use super::{Hosting, manifests};
use crate::ecosystems::Language;

/// Versions whose signatures one step forgets; documents that one step has requested whole again.
const AT_ONCE: i64 = 200;

/// Removes a key that leaked, so that nothing it signed verifies any more. It is one row alone, so that it commits while others
/// publish: what it signed is forgotten in steps afterwards, and until then signed again when it is sent. False if there is no such
/// key. Another one must sign if it was the one that did.
///
/// # Errors
/// Those of the database.
pub async fn remove_key(tx: &mut WriteTx, keyid: &str, now: Micros) -> Result<bool> {
    let nothing: &[u8] = &[];
    let sql = "UPDATE package_signing_keys SET public_key = $2, sealed = $2, removed_at = $3
               WHERE keyid = $1 AND removed_at IS NULL";
    Ok(tx.execute(sql, &[Value::from(keyid), Value::from(nothing), Value::Int(now)]).await? > 0)
}

impl Hosting {
    /// Forgets what removed keys signed, in short steps: versions of groups are signed again by `sign_some`, and documents of
    /// upstreams when they are requested next, whole.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn forget_removed_keys(&self) -> Result<()> {
        let sql = "SELECT keyid FROM package_signing_keys WHERE removed_at IS NOT NULL ORDER BY generation";
        let read = |row: &Row<'_>| row.text(0).map_err(Error::from);
        let removed = self.pipeline.db.read(move |tx| Box::pin(async move { tx.query(sql, &[], read).await })).await?;
        for keyid in &removed {
            while self.forget_some(keyid).await? > 0 {}
        }
        if removed.is_empty() {
            return Ok(());
        }
        // Begun again after a failure: the keys stay until all is done.
        let mut after = Some((String::new(), String::new()));
        while let Some(last) = after {
            let written = self.pipeline.db.write(move |tx| {
                let last = last.clone();
                Box::pin(async move { request_whole(tx, Language::JavaScript, last, AT_ONCE).await })
            });
            after = written.await?;
        }
        let written = self.pipeline.db.write(move |tx| {
            let removed = removed.clone();
            Box::pin(async move {
                for keyid in &removed {
                    let sql = "DELETE FROM package_signing_keys WHERE keyid = $1 AND removed_at IS NOT NULL";
                    tx.execute(sql, &[Value::from(keyid)]).await?;
                }
                Ok::<_, Error>(())
            })
        });
        written.await
    }

    async fn forget_some(&self, keyid: &str) -> Result<u64> {
        let keyid = keyid.to_owned();
        let written = self.pipeline.db.write(move |tx| {
            let keyid = keyid.clone();
            Box::pin(async move { manifests::forget_signatures(tx, &keyid, AT_ONCE).await })
        });
        written.await
    }
}

/// Has the next request for some documents of an ecosystem be for the whole, whether they changed or not: those that follow one, by
/// upstream and package. The last of them is returned; absent at the end.
async fn request_whole(
    tx: &mut WriteTx,
    language: Language,
    (upstream, package): (String, String),
    limit: i64,
) -> Result<Option<(String, String)>> {
    let sql = "SELECT d.upstream, d.package FROM upstream_documents d JOIN package_upstreams u ON u.uid = d.upstream
               WHERE u.ecosystem = $1 AND (d.upstream > $2 OR d.upstream = $2 AND d.package > $3)
               ORDER BY d.upstream, d.package LIMIT $4";
    let params = [Value::Int(language.number()), Value::from(&upstream), Value::from(&package), Value::Int(limit)];
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let some = tx.query(sql, &params, read).await?;
    for (upstream, package) in &some {
        let sql = "UPDATE upstream_documents SET etag = '', last_modified = '' WHERE upstream = $1 AND package = $2";
        tx.execute(sql, &[Value::from(upstream), Value::from(package)]).await?;
    }
    Ok(some.into_iter().next_back())
}
