//! Manifests: stored whole, seen through the repositories that hold them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::Interaction;
use bowline_contract::bowline::registry::v1::rpc::content::{PullManifest, PushManifest};
use bowline_contract::v1::registry::rpc::registry::UpdateTag;
use bowline_contract::v2::registry::rpc::tags_service::CreateTag;
use bowline_core::{Error, Micros, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, ResourceSnapshot};
use bowline_resources::kinds::MANIFEST;
use bowline_resources::list::timestamp;
use bowline_store::activity::{self, Activity, ActivityKind};
use bowline_store::{ReadTx, Value, WriteTx};
use serde_json::json;

use super::config::Config;
use super::gate::{self, PulledManifest};
use super::manifest::{Kind, Manifest, ManifestLink};
use super::pulls::{self, Pull};
use super::{Name, Reference, RefusalCode, Registry, RegistryClient, RegistryError};
use crate::components::{self, ReadSbom};
use crate::content::replication::sources;
use crate::tags::PutTag;
use crate::{limits, tags};

/// Digests that one statement looks for.
const AT_ONCE: usize = 200;

/// A manifest as a client gets it.
#[derive(Clone, Debug)]
pub struct StoredManifest {
    pub digest: String,
    pub media_type: String,
    pub content: Vec<u8>,
}

/// A manifest that a client sends.
#[derive(Clone, Debug)]
pub struct PushedManifest {
    /// Where to: the tag that shall name it, or its digest.
    pub reference: Reference,
    /// Further tags that shall name it.
    pub tags: Vec<String>,
    /// The digest of the bytes, which was compared with the reference.
    pub digest: String,
    /// What the bytes say.
    pub manifest: Manifest,
    pub content: Vec<u8>,
    /// The config that it names, where its bytes are there and not too large.
    pub config: Option<Config>,
    /// The SBOMs among its layers that were read.
    pub(crate) sboms: Vec<ReadSbom>,
}

impl PushedManifest {
    /// A manifest with a digest that was compared.
    pub fn new(reference: Reference, digest: String, manifest: Manifest, content: Vec<u8>) -> PushedManifest {
        let (tags, config, sboms) = (Vec::new(), None, Vec::new());
        PushedManifest { reference, tags, digest, manifest, content, config, sboms }
    }
}

impl Registry {
    /// A manifest of a repository.
    ///
    /// # Errors
    /// The client may not, or it is not there.
    pub async fn pull_manifest(
        &self,
        client: &RegistryClient,
        name: &Name,
        reference: &Reference,
    ) -> Result<PulledManifest, RegistryError> {
        let (registry, by, at, links) = (self.clone(), client.clone(), name.clone(), reference.clone());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                let repo = registry.readable::<PullManifest>(tx, &by, &at).await?;
                let (manifest, evidence) = gate::find(tx, &repo, &links).await?.ok_or_else(|| unknown(&links))?;
                let moves = matches!(links, Reference::Tag(_));
                let is_replicated = moves && has_upstream(tx, &repo, by.now()).await?;
                Ok::<_, RegistryError>(PulledManifest { repo, manifest, evidence, is_recorded: false, is_replicated })
            })
        });
        read.await
    }

    /// Tells of a pull.
    pub fn note_pull(&self, client: &RegistryClient, name: &Name, reference: &Reference, pulled: &PulledManifest) {
        let repo = pulled.repo.clone();
        let interaction = interaction(client, name, &repo, reference, &pulled.manifest.digest);
        let pull = Pull { is_recorded: pulled.is_recorded, ..Pull::new(&client.visit, &repo, interaction) };
        self.pulls.note(pull, self.pipeline.db.is_full());
    }

    /// Stores a manifest and tags it, in a repository that is created if it is missing.
    ///
    /// # Errors
    /// The client may not, or the manifest names what is not there.
    pub async fn push_manifest(
        &self,
        client: &RegistryClient,
        name: &Name,
        pushed: PushedManifest,
    ) -> Result<(), RegistryError> {
        let sboms = self.sboms_of_push(client, name, &pushed.manifest).await?;
        let pushed = Arc::new(PushedManifest { sboms, ..pushed });
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        self.pipeline
            .write_deferring(move |tx| {
                let (registry, client, name, pushed) = (registry.clone(), client.clone(), name.clone(), pushed.clone());
                Box::pin(async move { registry.push(tx, &client, &name, &pushed).await })
            })
            .await
    }

    async fn push(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
        pushed: &PushedManifest,
    ) -> Result<(), RegistryError> {
        let repo = self.pushable(tx, client, name).await?;
        let call = client.visit.authorize_change_at::<PushManifest>(tx, &repo, Interaction::default()).await;
        let call = call.map_err(|error| self.refusal::<PushManifest>(client, name.as_str(), error))?;
        require_blobs(tx, &repo, &pushed.manifest).await?;
        let mut changes = store_one(tx, &repo, pushed, client.now()).await?;
        count_push(tx, client, &repo, (!changes.is_empty()).then_some(pushed.manifest.total_size)).await?;
        let mut interaction = interaction(client, name, &repo, &pushed.reference, &pushed.digest);
        if let Reference::Tag(tag) = &pushed.reference {
            let put = self.put_tag(tx, client, name, &call, &repo, tag, &pushed.digest).await?;
            changes.extend(put.change());
            interaction.tag_previous_digest = put.before.map(|tag| tag.digest).unwrap_or_default();
        }
        limits::match_ahead(tx, &repo, &pushed.tags).await?;
        for tag in &pushed.tags {
            changes.extend(self.put_tag(tx, client, name, &call, &repo, tag, &pushed.digest).await?.change());
        }
        let mut changed = Changed::many(changes, ());
        changed.event = Some(pulls::event(&repo, &interaction));
        Ok(client.visit.record(tx, &call, changed).await?)
    }

    /// Puts the tag: a new one and the move of one are different permissions.
    #[expect(clippy::too_many_arguments, reason = "what a tag is, and who asks")]
    async fn put_tag(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
        call: &Authorized<Interaction>,
        repo: &Uidp,
        tag: &str,
        digest: &str,
    ) -> Result<PutTag, RegistryError> {
        let (visit, grants) = (&client.visit, call.grants());
        match tags::find_by_name(tx, repo, tag).await? {
            None if !visit.allows::<CreateTag>(grants, repo.as_str())? => {
                return Err(self.denied::<CreateTag>(client, name.as_str()));
            }
            Some(before) if before.digest != digest && !visit.allows::<UpdateTag>(grants, repo.as_str())? => {
                return Err(self.denied::<UpdateTag>(client, name.as_str()));
            }
            _ => {}
        }
        Ok(tags::put_tag(tx, repo, tag, digest, client.now(), call.draw()).await?)
    }
}

/// Counts a push by day, and the bytes of an image that is new.
async fn count_push(tx: &mut WriteTx, client: &RegistryClient, repo: &Uidp, bytes: Option<i64>) -> Result<(), Error> {
    let day = activity::day_of(client.now());
    let pushes = Activity { scope: repo.as_str(), identity: client.subject(), day, kind: ActivityKind::Pushes };
    activity::record(tx, &pushes, 1).await?;
    if let Some(bytes) = bytes {
        activity::record(tx, &Activity { kind: ActivityKind::Bytes, ..pushes }, bytes).await?;
    }
    Ok(())
}

/// Whether what the repository lacks comes from elsewhere.
async fn has_upstream(tx: &mut ReadTx, repo: &Uidp, now: Micros) -> Result<bool, Error> {
    let policies = limits::policies(tx, repo).await?;
    Ok(policies.iter().any(|policy| policy.upstream.is_some()) || sources::of(tx, repo, now).await?.is_some())
}

/// The manifest of this reference in a repository.
pub(super) async fn find(
    tx: &mut ReadTx,
    repo: &Uidp,
    reference: &Reference,
) -> Result<Option<StoredManifest>, RegistryError> {
    let (sql, key) = match reference {
        Reference::Digest(digest) => (
            "SELECT m.digest, m.media_type, m.content FROM repo_manifests r JOIN manifests m ON m.digest = r.digest
             WHERE r.repo = $1 AND r.digest = $2",
            digest,
        ),
        Reference::Tag(tag) => (
            "SELECT m.digest, m.media_type, m.content FROM tags t
             JOIN repo_manifests r ON r.repo = t.parent AND r.digest = t.digest
             JOIN manifests m ON m.digest = r.digest
             WHERE t.parent = $1 AND t.name = $2",
            tag,
        ),
    };
    let params = [Value::from(repo.as_str()), Value::from(key)];
    let found = tx.query_opt(sql, &params, |row| {
        Ok::<_, Error>(StoredManifest { digest: row.text(0)?, media_type: row.text(1)?, content: row.bytes(2)? })
    });
    Ok(found.await?)
}

pub(super) fn unknown(reference: &Reference) -> RegistryError {
    let (Reference::Tag(text) | Reference::Digest(text)) = reference;
    RegistryError::about(RefusalCode::ManifestUnknown, "Unknown manifest", json!({ "reference": text }))
}

/// Blobs that a manifest names must be in its own repository, with the size that it says.
async fn require_blobs(tx: &mut ReadTx, repo: &Uidp, manifest: &Manifest) -> Result<(), RegistryError> {
    let links: Vec<&ManifestLink> =
        manifest.named.iter().filter(|named| named.kind != Kind::Child && !named.lies_elsewhere).collect();
    let digests: BTreeSet<&str> = links.iter().map(|named| named.digest.as_str()).collect();
    let digests: Vec<&str> = digests.into_iter().collect();
    let mut sizes: HashMap<String, i64> = HashMap::new();
    for part in digests.chunks(AT_ONCE) {
        let places: Vec<String> = (2..part.len() + 2).map(|n| format!("${n}")).collect();
        let sql = format!(
            "SELECT b.digest, b.size FROM repo_blobs r JOIN blobs b ON b.digest = r.digest
             WHERE r.repo = $1 AND r.digest IN ({})",
            places.join(", ")
        );
        let mut params = vec![Value::from(repo.as_str())];
        params.extend(part.iter().map(|digest| Value::from(*digest)));
        sizes.extend(tx.query(&sql, &params, |row| Ok::<_, Error>((row.text(0)?, row.int(1)?))).await?);
    }
    let absent: Vec<&str> = digests.into_iter().filter(|digest| !sizes.contains_key(*digest)).collect();
    if !absent.is_empty() {
        let message = "the manifest names blobs that are not in this repository: push or mount them first";
        return Err(RegistryError::about(RefusalCode::ManifestBlobUnknown, message, json!({ "digests": absent })));
    }
    match links.iter().find(|named| sizes.get(&named.digest) != Some(&named.size)) {
        None => Ok(()),
        Some(named) => Err(RegistryError::refused(
            RefusalCode::SizeInvalid,
            format!("the manifest says that {} has {} bytes, which it has not", named.digest, named.size),
        )),
    }
}

/// Stores a manifest in a repository; no change if it was there.
pub(super) async fn store_one(
    tx: &mut WriteTx,
    repo: &Uidp,
    pushed: &PushedManifest,
    now: Micros,
) -> Result<Vec<Change>, RegistryError> {
    let is_new = store(tx, repo, pushed, now).await?;
    Ok(if is_new { vec![change(repo, None, Some(&image(pushed)))] } else { Vec::new() })
}

/// Stores what is not there yet; whether the repository did not hold it.
async fn store(tx: &mut WriteTx, repo: &Uidp, pushed: &PushedManifest, now: i64) -> Result<bool, RegistryError> {
    // Read by a statement of its own: what `ON CONFLICT` meets, PostgreSQL does not count as read, so that a collection
    // could take the manifest away beside this push.
    let known = "SELECT digest FROM manifests WHERE digest = $1";
    if !is_there(tx, known, &[Value::from(&pushed.digest)]).await? {
        store_manifest(tx, pushed, now).await?;
        store_references(tx, pushed).await?;
    }
    if let Some(config) = &pushed.config {
        config.keep(tx, &pushed.digest).await?;
    }
    components::store(tx, repo.as_str(), &pushed.manifest, &pushed.sboms).await?;
    let known = "SELECT digest FROM repo_manifests WHERE repo = $1 AND digest = $2";
    let is_new = !is_there(tx, known, &[Value::from(repo.as_str()), Value::from(&pushed.digest)]).await?;
    let sql = "INSERT INTO repo_manifests (repo, digest, org, subject, artifact_type, pushed_at)
               VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (repo, digest) DO UPDATE SET pushed_at = excluded.pushed_at";
    let params = [
        Value::from(repo.as_str()),
        Value::from(&pushed.digest),
        Value::from(repo.root_str()),
        Value::from(&pushed.manifest.subject),
        Value::from(&pushed.manifest.artifact_type),
        Value::Int(now),
    ];
    tx.execute(sql, &params).await?;
    components::note_pushed(tx, repo, &pushed.digest, (&pushed.manifest, &pushed.content)).await?;
    Ok(is_new)
}

async fn is_there(tx: &mut ReadTx, sql: &str, params: &[Value<'_>]) -> Result<bool, Error> {
    Ok(tx.query_opt(sql, params, |row| row.text(0).map_err(Error::from)).await?.is_some())
}

async fn store_manifest(tx: &mut WriteTx, pushed: &PushedManifest, now: i64) -> Result<(), Error> {
    let manifest = &pushed.manifest;
    let annotations = serde_json::to_string(&manifest.annotations).map_err(Error::internal)?;
    let sql = "INSERT INTO manifests (digest, media_type, artifact_type, config_digest, subject, shape, total_size,
                                      annotations, content, created_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING";
    let params = [
        Value::from(&pushed.digest),
        Value::from(manifest.media_type),
        Value::from(&manifest.artifact_type),
        Value::from(manifest.config().unwrap_or_default()),
        Value::from(&manifest.subject),
        Value::Int(manifest.shape as i64),
        Value::Int(manifest.total_size),
        Value::from(&annotations),
        Value::from(&pushed.content),
        Value::Int(now),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

async fn store_references(tx: &mut WriteTx, pushed: &PushedManifest) -> Result<(), RegistryError> {
    let sql =
        "INSERT INTO manifest_references (manifest, place, kind, digest, media_type, size, os, architecture, variant)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING";
    for (place, named) in (0_i64..).zip(&pushed.manifest.named) {
        let params = [
            Value::from(&pushed.digest),
            Value::Int(place),
            Value::Int(named.kind as i64),
            Value::from(&named.digest),
            Value::from(&named.media_type),
            Value::Int(named.size),
            Value::from(&named.os),
            Value::from(&named.architecture),
            Value::from(&named.variant),
        ];
        tx.execute(sql, &params).await?;
    }
    Ok(())
}

/// What happened to a manifest of a repository, for the audit log.
pub(super) fn change(repo: &Uidp, before: Option<&own::StoredManifest>, after: Option<&own::StoredManifest>) -> Change {
    let uid = repo.as_str().into();
    Change { kind: MANIFEST, uid, before: before.map(ResourceSnapshot::of), after: after.map(ResourceSnapshot::of) }
}

fn image(pushed: &PushedManifest) -> own::StoredManifest {
    own::StoredManifest {
        digest: pushed.digest.clone(),
        media_type: pushed.manifest.media_type.into(),
        size: pushed.content.len() as i64,
        subject: pushed.manifest.subject.clone(),
    }
}

fn interaction(client: &RegistryClient, name: &Name, repo: &Uidp, reference: &Reference, digest: &str) -> Interaction {
    Interaction {
        repository: name.as_str().into(),
        repo_id: repo.as_str().into(),
        tag: match reference {
            Reference::Tag(tag) => tag.clone(),
            Reference::Digest(_) => String::new(),
        },
        digest: digest.into(),
        method: client.method.clone(),
        r#type: "manifest".into(),
        when: civil_time(client.now()),
        location: String::new(),
        remote_address: client.visit.peer().map(|peer| peer.to_string()).unwrap_or_default(),
        user_agent: client.user_agent.clone(),
        error: None,
        display_name: name.repo().into(),
        tag_previous_digest: String::new(),
    }
}

/// A time in UTC without its zone, as receivers of pulls and pushes parse it.
fn civil_time(at: Micros) -> String {
    timestamp(at).map(|at| at.to_string().trim_end_matches('Z').to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn civil_times_have_no_zone() {
        assert_eq!(super::civil_time(1_700_000_000_000_000), "2023-11-14T22:13:20");
        assert_eq!(super::civil_time(1_700_000_000_250_000), "2023-11-14T22:13:20.250");
    }
}
