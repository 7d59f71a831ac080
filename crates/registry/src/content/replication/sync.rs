//! Repositories that follow a source: another repository of this server, from which they copy what they lack.
//!
//! The caller that named the source could pull from it then. From another organization, which may have
//! withdrawn that since, only content is copied that is public or that the client may pull there too. Content
//! is copied only for clients with the pull permission at the repository itself, as with an upstream, and a
//! tag that was written here stays. Bytes are shared: a copy is links in the database.

use bowline_contract::bowline::registry::v1::Interaction;
use bowline_contract::bowline::registry::v1::rpc::content::{PullBlob, PullManifest};
use bowline_core::{Error, Reason, Uidp};
use bowline_pipeline::{Authorized, Change, Changed};
use bowline_store::{ReadTx, Value, WriteTx};

use super::sources::{self, Source};
use super::upstream_tags;
use super::upstreams::{note_status, repo_of};
use crate::content::manifest::Kind;
use crate::content::{
    Manifest, Name, PushedManifest, Reference, Registry, RegistryClient, RegistryError, StoredManifest, blobs,
    is_public, manifests,
};
use crate::tags;

/// A repository, where it takes what it lacks from, and the permission of the client to pull from it.
struct Synced {
    repo: Uidp,
    source: Uidp,
    call: Authorized<Interaction>,
}

impl Registry {
    /// Copies a manifest from the source if it is missing here or the tag names another. Returns whether a caller who did
    /// not find it should look again.
    ///
    /// # Errors
    /// A quota has no room for it, or the tag is immutable.
    pub async fn sync_manifest(
        &self,
        client: &RegistryClient,
        name: &Name,
        reference: &Reference,
    ) -> Result<bool, RegistryError> {
        let (by, at, requested) = (client.clone(), name.clone(), reference.clone());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move { Ok::<_, RegistryError>(lacking(tx, &by, &at, &requested).await?.is_some()) })
        });
        if !read.await? {
            return Ok(false);
        }
        let (client, name, reference) = (client.clone(), name.clone(), reference.clone());
        let written = self.pipeline.write_deferring(move |tx| {
            let (client, name, reference) = (client.clone(), name.clone(), reference.clone());
            Box::pin(async move {
                match lacking(tx, &client, &name, &reference).await? {
                    Some((synced, manifest)) => sync(tx, &client, &synced, &reference, manifest).await,
                    // Another request has synced it meanwhile.
                    None => Ok(()),
                }
            })
        });
        written.await?;
        Ok(true)
    }

    /// Copies a blob that a manifest of the repository names, if the source has it: a source with an upstream may have
    /// fetched it after its manifest. Returns whether a caller who did not find it should look again.
    ///
    /// # Errors
    /// A quota has no room for it.
    pub async fn sync_blob(&self, client: &RegistryClient, name: &Name, digest: &str) -> Result<bool, RegistryError> {
        let (by, at, requested) = (client.clone(), name.clone(), digest.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move { Ok::<_, RegistryError>(lacking_blob(tx, &by, &at, &requested).await?.is_some()) })
        });
        if !read.await? {
            return Ok(false);
        }
        let (client, name, digest) = (client.clone(), name.clone(), digest.to_owned());
        let written = self.pipeline.db.write(move |tx| {
            let (client, name, digest) = (client.clone(), name.clone(), digest.clone());
            Box::pin(async move {
                let Some(synced) = lacking_blob(tx, &client, &name, &digest).await? else { return Ok(()) };
                let change = blobs::link(tx, &synced.repo, &digest, client.now()).await?;
                let changed = Changed::many(change.into_iter().collect(), ());
                Ok::<_, RegistryError>(client.visit.record(tx, &synced.call, changed).await?)
            })
        });
        written.await?;
        Ok(true)
    }
}

/// The repository of this name, if it has a source here and the client may pull from it by right.
async fn synced<M>(tx: &mut ReadTx, client: &RegistryClient, name: &Name) -> Result<Option<Synced>, RegistryError>
where
    M: bowline_contract::Method<Request = Interaction>,
{
    if client.is_anonymous() {
        return Ok(None);
    }
    let Some(repo) = repo_of(tx, name).await? else { return Ok(None) };
    let Some(Source::Here(source)) = sources::of(tx, &repo, client.now()).await? else { return Ok(None) };
    let Some(call) = allowed::<M>(tx, client, &repo).await? else { return Ok(None) };
    let is_shared = source.root_str() == repo.root_str()
        || is_public(tx, &source).await?
        || allowed::<M>(tx, client, &source).await?.is_some();
    Ok(is_shared.then_some(Synced { repo, source, call }))
}

/// The permission of the client by right, if they have it.
async fn allowed<M>(
    tx: &mut ReadTx,
    client: &RegistryClient,
    at: &Uidp,
) -> Result<Option<Authorized<Interaction>>, RegistryError>
where
    M: bowline_contract::Method<Request = Interaction>,
{
    match client.visit.authorize_at::<M>(tx, at, Interaction::default()).await {
        Ok(call) => Ok(Some(call)),
        Err(error) if error.reason() == Reason::PermissionDenied => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What the source has under this reference, if the repository has it not, or something else.
async fn lacking(
    tx: &mut ReadTx,
    client: &RegistryClient,
    name: &Name,
    reference: &Reference,
) -> Result<Option<(Synced, StoredManifest)>, RegistryError> {
    let Some(synced) = synced::<PullManifest>(tx, client, name).await? else { return Ok(None) };
    if let Reference::Tag(tag) = reference
        && upstream_tags::is_local_tag(tx, &synced.repo, tag).await?
    {
        return Ok(None);
    }
    let Some(there) = digest_of(tx, &synced.source, reference).await? else { return Ok(None) };
    let is_lacking = match (digest_of(tx, &synced.repo, reference).await?, reference) {
        (None, _) => true,
        // A failed copy is not tried again at every pull.
        (Some(here), Reference::Tag(tag)) if here != there => {
            upstream_tags::is_due(tx, &synced.repo, tag, client.now()).await?
        }
        (Some(_), _) => false,
    };
    if !is_lacking {
        return Ok(None);
    }
    let manifest = manifests::find(tx, &synced.source, &Reference::Digest(there)).await?;
    Ok(manifest.map(|manifest| (synced, manifest)))
}

/// The digest that a reference has in a repository which holds the manifest: most pulls need no more.
async fn digest_of(tx: &mut ReadTx, repo: &Uidp, reference: &Reference) -> Result<Option<String>, RegistryError> {
    let (sql, key) = match reference {
        Reference::Digest(digest) => ("SELECT digest FROM repo_manifests WHERE repo = $1 AND digest = $2", digest),
        Reference::Tag(tag) => (
            "SELECT r.digest FROM tags t JOIN repo_manifests r ON r.repo = t.parent AND r.digest = t.digest
             WHERE t.parent = $1 AND t.name = $2",
            tag,
        ),
    };
    let params = [Value::from(repo.as_str()), Value::from(key)];
    Ok(tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?)
}

/// The repository, if it lacks a blob that a manifest of it names and that the source has.
async fn lacking_blob(
    tx: &mut ReadTx,
    client: &RegistryClient,
    name: &Name,
    digest: &str,
) -> Result<Option<Synced>, RegistryError> {
    let Some(synced) = synced::<PullBlob>(tx, client, name).await? else { return Ok(None) };
    let sql = "SELECT b.digest FROM repo_blobs b WHERE b.repo = $1 AND b.digest = $2
                 AND NOT EXISTS (SELECT 1 FROM repo_blobs o WHERE o.repo = $3 AND o.digest = b.digest)
                 AND EXISTS (SELECT 1 FROM manifest_references f JOIN repo_manifests r ON r.digest = f.manifest
                             WHERE f.digest = b.digest AND r.repo = $3)";
    let params = [Value::from(synced.source.as_str()), Value::from(digest), Value::from(synced.repo.as_str())];
    let found = tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    Ok(found.map(|_| synced))
}

/// Copies a manifest with the blobs that it names; the members of an index come when clients request them.
async fn sync(
    tx: &mut WriteTx,
    client: &RegistryClient,
    synced: &Synced,
    reference: &Reference,
    stored: StoredManifest,
) -> Result<(), RegistryError> {
    let (repo, now) = (&synced.repo, client.now());
    let manifest = Manifest::read(&stored.content, Some(&stored.media_type))?;
    let mut changes: Vec<Change> = Vec::new();
    for named in manifest.named.iter().filter(|named| named.kind != Kind::Child) {
        if blobs::find_in(tx, &synced.source, &named.digest).await?.is_some() {
            changes.extend(blobs::link(tx, repo, &named.digest, now).await?);
        }
    }
    let synced_manifest = PushedManifest::new(reference.clone(), stored.digest, manifest, stored.content);
    changes.extend(manifests::store_one(tx, repo, &synced_manifest, now).await?);
    if let Reference::Tag(tag) = &synced_manifest.reference {
        let put = tags::put_tag(tx, repo, tag, &synced_manifest.digest, now, synced.call.draw()).await?;
        changes.extend(put.change());
        upstream_tags::note_tag(tx, repo, tag, now).await?;
    }
    note_status(tx, repo, None, now).await?;
    Ok(client.visit.record(tx, &synced.call, Changed::many(changes, ())).await?)
}
