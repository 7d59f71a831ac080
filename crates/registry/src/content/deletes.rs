//! Deletion of tags, manifests and blobs from a repository. Garbage collection removes their bytes later.

use std::sync::Arc;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::Interaction;
use bowline_contract::bowline::registry::v1::rpc::content::{DeleteBlob, DeleteManifest};
use bowline_contract::v1::registry as v1;
use bowline_contract::v2::registry::DeleteTagRequest;
use bowline_contract::v2::registry::rpc::tags_service::DeleteTag;
use bowline_core::{Error, Micros, Uidp};
use bowline_pipeline::{Change, Changed};
use bowline_store::{BoxFuture, ReadTx, Value, WriteTx};

use super::{Name, Reference, RefusalCode, Registry, RegistryClient, RegistryError, blobs, manifests};
use crate::{components, limits, paths, tags};

/// What a deletion removes.
enum DeleteTarget {
    Tag(String),
    Manifest(String),
    Blob(String),
}

impl Registry {
    /// Deletes a tag, or a manifest with all its tags.
    ///
    /// # Errors
    /// The client lacks the permission, or the tag or manifest does not exist.
    pub async fn delete_manifest(
        &self,
        client: &RegistryClient,
        name: &Name,
        reference: &Reference,
    ) -> Result<(), RegistryError> {
        let target = match reference {
            Reference::Tag(tag) => DeleteTarget::Tag(tag.clone()),
            Reference::Digest(digest) => DeleteTarget::Manifest(digest.clone()),
        };
        self.delete(client, name, target).await
    }

    /// Removes a blob from a repository.
    ///
    /// # Errors
    /// The client lacks the permission, the blob does not exist, or a manifest of the repository names it.
    pub async fn delete_blob(&self, client: &RegistryClient, name: &Name, digest: &str) -> Result<(), RegistryError> {
        self.delete(client, name, DeleteTarget::Blob(digest.into())).await
    }

    async fn delete(&self, client: &RegistryClient, name: &Name, target: DeleteTarget) -> Result<(), RegistryError> {
        let job = Arc::new((self.clone(), client.clone(), name.clone(), target));
        self.pipeline
            .write_deferring_on(&self.pipeline.db.from_reserve(), move |tx| {
                let job = job.clone();
                let run: BoxFuture<'_, Result<(), RegistryError>> = Box::pin(async move {
                    let (registry, client, name, target) = &*job;
                    match target {
                        DeleteTarget::Tag(tag) => registry.remove_tag(tx, client, name, tag).await,
                        DeleteTarget::Manifest(digest) => registry.remove_manifest(tx, client, name, digest).await,
                        DeleteTarget::Blob(digest) => registry.remove_blob(tx, client, name, digest).await,
                    }
                });
                run
            })
            .await
    }

    async fn remove_tag(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
        tag: &str,
    ) -> Result<(), RegistryError> {
        // A client that may not delete tags here must not learn which exist.
        let repo = self.existing::<DeleteTag>(tx, client, name).await?;
        let request = DeleteTagRequest { uid: repo.as_str().into() };
        let call = client.visit.authorize_change_at::<DeleteTag>(tx, &repo, request).await;
        let call = call.map_err(|error| self.refusal::<DeleteTag>(client, name.as_str(), error))?;
        let gone = tags::delete_tag(tx, &repo, tag, client.now(), call.draw()).await?;
        let gone = gone.ok_or_else(|| manifests::unknown(&Reference::Tag(tag.into())))?;
        let uid = paths::stored(&gone.uid)?;
        let event = v1::DeleteTagRequest { id: gone.uid.clone() };
        let changed = Changed::many(vec![tags::change(Some(&gone), None)], ()).with_event(&uid, &event);
        Ok(client.visit.record(tx, &call, changed).await?)
    }

    async fn remove_manifest(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
        digest: &str,
    ) -> Result<(), RegistryError> {
        let repo = self.changeable::<DeleteManifest>(tx, client, name).await?;
        let call = client.visit.authorize_at::<DeleteManifest>(tx, &repo, Interaction::default()).await?;
        let before = find_stored(tx, &repo, digest).await?;
        let before = before.ok_or_else(|| manifests::unknown(&Reference::Digest(digest.into())))?;
        let names = tag_names(tx, &repo, digest).await?;
        if !names.is_empty() && !client.visit.allows::<DeleteTag>(call.grants(), repo.as_str())? {
            return Err(self.denied::<DeleteTag>(client, name.as_str()));
        }
        let changes = take_out(tx, &repo, &before, client.now(), call.draw()).await?;
        Ok(client.visit.record(tx, &call, Changed::many(changes, ())).await?)
    }

    async fn remove_blob(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
        digest: &str,
    ) -> Result<(), RegistryError> {
        let repo = self.changeable::<DeleteBlob>(tx, client, name).await?;
        let call = client.visit.authorize_at::<DeleteBlob>(tx, &repo, Interaction::default()).await?;
        if blobs::find_in(tx, &repo, digest).await?.is_none() {
            return Err(blobs::unknown(digest));
        }
        let sql = "SELECT f.manifest FROM manifest_references f
                   JOIN repo_manifests r ON r.digest = f.manifest AND r.repo = $1
                   WHERE f.digest = $2 AND f.kind IN (1, 2) LIMIT 1";
        let params = [Value::from(repo.as_str()), Value::from(digest)];
        if let Some(manifest) = tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await? {
            let message = format!("the manifest {manifest} names this blob: delete that first");
            return Err(RegistryError::refused(RefusalCode::Unsupported, message));
        }
        let change = blobs::unlink(tx, &repo, digest).await?;
        Ok(client.visit.record(tx, &call, Changed::many(vec![change], ())).await?)
    }
}

/// The manifest of this digest, if the repository has it, as the audit log shows it.
pub(crate) async fn find_stored(
    tx: &mut ReadTx,
    repo: &Uidp,
    digest: &str,
) -> Result<Option<own::StoredManifest>, Error> {
    let sql = "SELECT m.media_type, length(m.content), m.subject FROM repo_manifests r
               JOIN manifests m ON m.digest = r.digest WHERE r.repo = $1 AND r.digest = $2";
    let params = [Value::from(repo.as_str()), Value::from(digest)];
    let found = tx.query_opt(sql, &params, |row| {
        Ok::<_, Error>(own::StoredManifest {
            digest: digest.into(),
            media_type: row.text(0)?,
            size: row.int(1)?,
            subject: row.text(2)?,
        })
    });
    found.await
}

/// Removes a manifest from its repository, with all its tags and scan reports; returns the changes.
///
/// # Errors
/// FAILED_PRECONDITION if a tag is immutable, or an immutable tag is at an index that needs the manifest.
pub(crate) async fn take_out(
    tx: &mut WriteTx,
    repo: &Uidp,
    manifest: &own::StoredManifest,
    at: Micros,
    draw: [u8; 32],
) -> Result<Vec<Change>, Error> {
    limits::require_no_immutable_index(tx, repo, &manifest.digest).await?;
    let mut changes = vec![manifests::change(repo, Some(manifest), None)];
    let tags = tag_names(tx, repo, &manifest.digest).await?;
    limits::match_ahead(tx, repo, &tags).await?;
    for tag in tags {
        let gone = tags::delete_tag(tx, repo, &tag, at, draw).await?;
        changes.extend(gone.map(|gone| tags::change(Some(&gone), None)));
    }
    components::note_removed(tx, repo, &manifest.digest).await?;
    let params = [Value::from(repo.as_str()), Value::from(&manifest.digest)];
    tx.execute("DELETE FROM repo_manifests WHERE repo = $1 AND digest = $2", &params).await?;
    tx.execute("DELETE FROM scan_reports WHERE repo = $1 AND digest = $2", &params).await?;
    Ok(changes)
}

/// Removes the blobs that `manifest` named and that no manifest of the repository names any more. Blobs that
/// were pushed since `until` stay: their manifest may be about to be pushed.
pub(crate) async fn take_out_unnamed_blobs(
    tx: &mut WriteTx,
    repo: &Uidp,
    manifest: &str,
    until: Micros,
) -> Result<Vec<Change>, Error> {
    let sql = "SELECT DISTINCT f.digest FROM manifest_references f
               JOIN repo_blobs b ON b.repo = $1 AND b.digest = f.digest AND b.created_at < $3
               WHERE f.manifest = $2 AND f.kind IN (1, 2) AND NOT EXISTS (
                 SELECT 1 FROM manifest_references o JOIN repo_manifests r ON r.repo = $1 AND r.digest = o.manifest
                 WHERE o.digest = f.digest AND o.kind IN (1, 2))
               ORDER BY f.digest";
    let params = [Value::from(repo.as_str()), Value::from(manifest), Value::Int(until)];
    let mut changes = Vec::new();
    for blob in tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await? {
        changes.push(blobs::unlink(tx, repo, &blob).await?);
    }
    Ok(changes)
}

async fn tag_names(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Vec<String>, Error> {
    let by_digest = tx.index_hint("tags_by_digest");
    let sql = format!("SELECT name FROM tags {by_digest} WHERE parent = $1 AND digest = $2 ORDER BY name");
    let params = [Value::from(repo.as_str()), Value::from(digest)];
    tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await
}
