//! Blobs: which repository may show which.

use bowline_contract::bowline::registry::v1::rpc::content::{PullBlob, PushBlob};
use bowline_contract::bowline::registry::v1::{self as own, Interaction};
use bowline_core::{Error, Micros, Uidp};
use bowline_pipeline::{Change, Changed, ResourceSnapshot};
use bowline_resources::kinds::BLOB;
use bowline_store::{ReadTx, Value, WriteTx};
use serde_json::json;

use super::{Name, RefusalCode, Registry, RegistryClient, RegistryError};
use crate::{limits, paths, stored_bytes};

/// Microseconds for which a link need not be renewed: bounds the writes of clients that only look up.
const QUITE_NEW: Micros = 60_000_000;

/// A blob whose bytes are durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    pub size: u64,
    /// The upload that brought them: with the digest, where they lie.
    pub upload: String,
}

impl Registry {
    /// A blob of the repository, if the client may read it.
    ///
    /// # Errors
    /// The client may not, or it is not there.
    pub async fn pull_blob(
        &self,
        client: &RegistryClient,
        name: &Name,
        digest: &str,
    ) -> Result<StoredBlob, RegistryError> {
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let digest = digest.to_owned();
        self.pipeline
            .db
            .read(move |tx| {
                Box::pin(async move {
                    let repo = registry.readable::<PullBlob>(tx, &client, &name).await?;
                    find_in(tx, &repo, &digest).await?.ok_or_else(|| unknown(&digest))
                })
            })
            .await
    }

    /// Protects a blob that the client looked up, and may be about to name in a manifest, from garbage
    /// collection.
    ///
    /// # Errors
    /// It has just been collected: BLOB_UNKNOWN, as if it had never been there.
    pub async fn keep_blob(&self, client: &RegistryClient, name: &Name, digest: &str) -> Result<(), RegistryError> {
        let Some(repo) = self.repo_of_old_link(client, name, digest).await? else { return Ok(()) };
        let (digest, now) = (digest.to_owned(), client.now());
        self.pipeline
            .db
            .write(move |tx| {
                let (repo, digest) = (repo.clone(), digest.clone());
                Box::pin(async move {
                    let sql = "UPDATE repo_blobs SET created_at = $3 WHERE repo = $1 AND digest = $2";
                    let params = [Value::from(repo.as_str()), Value::from(&digest), Value::Int(now)];
                    if tx.execute(sql, &params).await? > 0 { Ok(()) } else { Err(unknown(&digest)) }
                })
            })
            .await
    }

    /// The repository, if the client may push to it and the blob's link is not quite new. The link may have gone since
    /// the client was shown the blob.
    async fn repo_of_old_link(
        &self,
        client: &RegistryClient,
        name: &Name,
        digest: &str,
    ) -> Result<Option<Uidp>, RegistryError> {
        let (client, name, digest) = (client.clone(), name.clone(), digest.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                let Some(repo) = paths::resolve(tx, &name).await?.and_then(|place| place.repo) else { return Ok(None) };
                let grants = client.visit.grants(tx).await?;
                if !client.visit.allows::<PushBlob>(&grants, repo.as_str())? {
                    return Ok(None);
                }
                let sql = "SELECT created_at FROM repo_blobs WHERE repo = $1 AND digest = $2";
                let params = [Value::from(repo.as_str()), Value::from(&digest)];
                let found = tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?;
                let created_at = found.ok_or_else(|| unknown(&digest))?;
                Ok((created_at < client.now() - QUITE_NEW).then_some(repo))
            })
        });
        read.await
    }

    /// Links a blob of another repository that the client may pull from: of `from`, or of any. Absent if
    /// there is none.
    ///
    /// # Errors
    /// The client may not push here, or a quota has no room for it.
    pub async fn mount(
        &self,
        client: &RegistryClient,
        name: &Name,
        digest: &str,
        from: Option<&Name>,
    ) -> Result<Option<StoredBlob>, RegistryError> {
        let (registry, client, name, digest) = (self.clone(), client.clone(), name.clone(), digest.to_owned());
        let from = from.cloned();
        self.pipeline
            .db
            .write(move |tx| {
                let (registry, client, name) = (registry.clone(), client.clone(), name.clone());
                let (digest, from) = (digest.clone(), from.clone());
                Box::pin(async move {
                    let repo = registry.pushable(tx, &client, &name).await?;
                    let is_found = match &from {
                        _ if find_in(tx, &repo, &digest).await?.is_some() => true,
                        Some(from) => registry.is_pullable_at(tx, &client, from, &digest).await?,
                        None => registry.is_pullable_somewhere(tx, &client, &digest).await?,
                    };
                    if !is_found {
                        return Ok(None);
                    }
                    registry.show_blob(tx, &client, &repo, &digest).await?;
                    Ok(find_in(tx, &repo, &digest).await?)
                })
            })
            .await
    }

    /// Shows a blob in a repository that the client may push to, and records it if it is new there.
    pub(super) async fn show_blob(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        repo: &Uidp,
        digest: &str,
    ) -> Result<(), RegistryError> {
        let Some(change) = link(tx, repo, digest, client.now()).await? else { return Ok(()) };
        let call = client.visit.authorize_at::<PushBlob>(tx, repo, Interaction::default()).await?;
        Ok(client.visit.record(tx, &call, Changed::many(vec![change], ())).await?)
    }

    /// Whether the repository has the blob and the client may pull it there. The caller does not learn which
    /// of both fails.
    async fn is_pullable_at(
        &self,
        tx: &mut ReadTx,
        client: &RegistryClient,
        from: &Name,
        digest: &str,
    ) -> Result<bool, RegistryError> {
        match self.readable::<PullBlob>(tx, client, from).await {
            Ok(repo) => Ok(find_in(tx, &repo, digest).await?.is_some()),
            Err(RegistryError::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether any repository that the client may pull from holds the blob.
    async fn is_pullable_somewhere(
        &self,
        tx: &mut ReadTx,
        client: &RegistryClient,
        digest: &str,
    ) -> Result<bool, RegistryError> {
        let grants = client.visit.grants(tx).await?;
        let needed = client.visit.needed::<PullBlob>()?;
        for range in grants.visible(&needed) {
            // Files of packages are blobs too, and the right to pull images opens none of them.
            let sql =
                "SELECT r.repo FROM repo_blobs r JOIN blobs b ON b.digest = r.digest JOIN repos i ON i.uid = r.repo
                       WHERE r.digest = $1 AND r.repo >= $2 AND r.repo < $3 LIMIT 1";
            let params = [Value::from(digest), Value::from(&range.lower), Value::from(&range.upper)];
            if tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A blob of the repository, absent if it has none such.
pub(super) async fn find_in(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Option<StoredBlob>, Error> {
    let sql = "SELECT b.size, b.upload FROM repo_blobs r JOIN blobs b ON b.digest = r.digest
               WHERE r.repo = $1 AND r.digest = $2";
    let params = [Value::from(repo.as_str()), Value::from(digest)];
    let stored = |row: &bowline_store::Row<'_>| Ok(StoredBlob { size: row.int(0)? as u64, upload: row.text(1)? });
    tx.query_opt(sql, &params, stored).await
}

/// Points a blob to the bytes that an upload brought; returns the upload that had brought the former bytes.
pub(super) async fn put(
    tx: &mut WriteTx,
    digest: &str,
    blob: &StoredBlob,
    now: Micros,
) -> Result<Option<String>, Error> {
    let params = [Value::from(digest)];
    let sql = "SELECT upload FROM blobs WHERE digest = $1";
    let before = tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    let sql = "INSERT INTO blobs (digest, size, created_at, upload) VALUES ($1, $2, $3, $4)
               ON CONFLICT (digest) DO UPDATE SET size = excluded.size, upload = excluded.upload";
    let params = [Value::from(digest), Value::Int(blob.size as i64), Value::Int(now), Value::from(&blob.upload)];
    tx.execute(sql, &params).await?;
    Ok(before)
}

/// Links a blob to a repository and counts its bytes, for which the quotas must have room; no change if the
/// repository had it.
pub(super) async fn link(tx: &mut WriteTx, repo: &Uidp, digest: &str, now: Micros) -> Result<Option<Change>, Error> {
    let is_known = find_in(tx, repo, digest).await?.is_some();
    let sql = "INSERT INTO repo_blobs (repo, digest, org, created_at) VALUES ($1, $2, $3, $4)
               ON CONFLICT (repo, digest) DO UPDATE SET created_at = excluded.created_at";
    let params = [Value::from(repo.as_str()), Value::from(digest), Value::from(repo.root_str()), Value::Int(now)];
    tx.execute(sql, &params).await?;
    if is_known {
        return Ok(None);
    }
    stored_bytes::count_blob(tx, repo, digest).await?;
    limits::require_bytes(tx, repo).await?;
    Ok(Some(change(repo, digest, false)))
}

/// Takes a blob, which the repository has, out of it. Every link ends here, or with its repository: the bytes that
/// are counted against quotas go with it.
pub(super) async fn unlink(tx: &mut WriteTx, repo: &Uidp, digest: &str) -> Result<Change, Error> {
    stored_bytes::discount_blob(tx, repo, digest).await?;
    let sql = "DELETE FROM repo_blobs WHERE repo = $1 AND digest = $2";
    tx.execute(sql, &[Value::from(repo.as_str()), Value::from(digest)]).await?;
    Ok(change(repo, digest, true))
}

/// A blob that came to a repository or went, for the audit log.
fn change(repo: &Uidp, digest: &str, is_gone: bool) -> Change {
    let snapshot = Some(ResourceSnapshot::of(&own::StoredBlob { digest: digest.into() }));
    let (before, after) = if is_gone { (snapshot, None) } else { (None, snapshot) };
    Change { kind: BLOB, uid: repo.as_str().into(), before, after }
}

pub(super) fn unknown(digest: &str) -> RegistryError {
    RegistryError::about(RefusalCode::BlobUnknown, "blob unknown to this repository", json!({ "digest": digest }))
}
