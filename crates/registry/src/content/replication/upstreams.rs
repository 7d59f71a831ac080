//! Repositories whose images come from another registry when they are not there.
//!
//! The repository's own source says where from, else the policy nearest to it. Only someone who may pull by right has
//! anything fetched: what is fetched already, everyone gets who may pull. A tag that was written here is never taken
//! from the upstream, or anyone who may write there could replace what was pushed here.

use bowline_contract::Method;
use bowline_contract::bowline::registry::v1::Interaction;
use bowline_contract::bowline::registry::v1::rpc::content::PullManifest;
use bowline_contract::v1::registry::sync_status::Status;
use bowline_contract::v2::registry::rpc::repos_service::CreateRepo;
use bowline_core::{Error, Micros, Reason, Uidp};
use bowline_pipeline::{Changed, Vault};
use bowline_resources::patterns;
use bowline_store::{ReadTx, Value, WriteTx};

use super::credentials::{self, Credentials};
use super::sources::{self, Source};
use super::upstream_tags;
use crate::content::{Name, PushedManifest, Reference, Registry, RegistryClient, RegistryError, manifests};
use crate::{limits, paths, tags};

/// Where the images of a repository come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamConfig {
    /// Address of the repository at the upstream, without a slash at its end.
    pub url: String,
    /// Whom the upstream knows the server as; absent to ask as everyone may.
    pub credentials: Option<Credentials>,
    tag_patterns: Vec<String>,
}

impl UpstreamConfig {
    /// Where a repository takes what it lacks from: its own source, if it has one, and nothing else then.
    async fn of(
        tx: &mut ReadTx,
        vault: &Vault,
        at: &Uidp,
        below: &[String],
        now: Micros,
    ) -> Result<Option<UpstreamConfig>, RegistryError> {
        match sources::of(tx, at, now).await? {
            None => UpstreamConfig::nearest(tx, vault, at, below).await,
            Some(Source::There(url)) => Ok(Some(UpstreamConfig { url, credentials: None, tag_patterns: Vec::new() })),
            Some(Source::Here(_)) => Ok(None),
        }
    }

    /// The upstream of the policy nearest to `at`; `below` is the path that names add to that policy's scope.
    async fn nearest(
        tx: &mut ReadTx,
        vault: &Vault,
        at: &Uidp,
        below: &[String],
    ) -> Result<Option<UpstreamConfig>, RegistryError> {
        let policies = limits::policies(tx, at).await?;
        let Some((place, upstream)) = policies.into_iter().rev().find_map(|p| Some((p.uid, p.upstream?))) else {
            return Ok(None);
        };
        let mut parts = vec![upstream.url.trim_end_matches('/').to_owned()];
        parts.extend(names_below(tx, at, &place).await?);
        parts.extend_from_slice(below);
        let credentials = credentials::of(tx, vault, &place, &upstream).await?;
        Ok(Some(UpstreamConfig { url: parts.join("/"), credentials, tag_patterns: upstream.tag_patterns }))
    }

    /// Whether the upstream may be asked for this: the policy's tag patterns can leave tags out.
    async fn has(&self, reference: &Reference) -> Result<bool, RegistryError> {
        match reference {
            Reference::Tag(tag) if !self.tag_patterns.is_empty() => {
                Ok(patterns::any_matches(&self.tag_patterns, tag).await?)
            }
            Reference::Tag(_) | Reference::Digest(_) => Ok(true),
        }
    }
}

/// The other registry that a repository takes what it lacks from, if there is one.
pub(super) async fn configured(
    tx: &mut ReadTx,
    vault: &Vault,
    repo: &Uidp,
    now: Micros,
) -> Result<Option<UpstreamConfig>, RegistryError> {
    UpstreamConfig::of(tx, vault, repo, &[], now).await
}

/// Names of the groups, and of the repository at the end, that lead from `place` to `at` below it.
async fn names_below(tx: &mut ReadTx, at: &Uidp, place: &str) -> Result<Vec<String>, RegistryError> {
    let mut names = Vec::new();
    for uid in at.self_and_ancestors().take_while(|uid| *uid != place) {
        let sql = "SELECT name FROM repos WHERE uid = $1 UNION ALL SELECT name FROM groups WHERE uid = $1";
        let name = tx.query_opt(sql, &[Value::from(uid)], |row| row.text(0).map_err(Error::from)).await?;
        names.push(name.ok_or_else(|| Error::internal(format!("{uid} has no name")))?);
    }
    names.reverse();
    Ok(names)
}

impl Registry {
    /// Where a manifest comes from that the client has not found; absent if it may only lie here.
    pub async fn upstream_of(
        &self,
        client: &RegistryClient,
        name: &Name,
        reference: &Reference,
    ) -> Result<Option<UpstreamConfig>, RegistryError> {
        match self.upstream_for::<PullManifest>(client, name).await? {
            Some(config) if config.has(reference).await? && !self.is_local_tag(name, reference).await? => {
                Ok(Some(config))
            }
            _ => Ok(None),
        }
    }

    /// Whether this is a tag that was written here.
    async fn is_local_tag(&self, name: &Name, reference: &Reference) -> Result<bool, RegistryError> {
        let Reference::Tag(tag) = reference else { return Ok(false) };
        let (name, tag) = (name.clone(), tag.clone());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                let Some(repo) = repo_of(tx, &name).await? else { return Ok::<_, RegistryError>(false) };
                Ok(upstream_tags::is_local_tag(tx, &repo, &tag).await?)
            })
        });
        read.await
    }

    pub(super) async fn upstream_for<M: Method<Request = Interaction>>(
        &self,
        client: &RegistryClient,
        name: &Name,
    ) -> Result<Option<UpstreamConfig>, RegistryError> {
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                let Some(place) = paths::resolve(tx, &name).await? else { return Ok(None) };
                let (at, below) = match place.repo {
                    Some(repo) => (repo, Vec::new()),
                    None => (place.group, [place.missing, vec![place.last]].concat()),
                };
                if client.is_anonymous() {
                    return Ok(None);
                }
                let call = match client.visit.authorize_at::<M>(tx, &at, Interaction::default()).await {
                    Ok(call) => call,
                    // Everyone may pull what is here already; that is no right to have more fetched.
                    Err(error) if error.reason() == Reason::PermissionDenied => return Ok(None),
                    Err(error) => return Err(error.into()),
                };
                let config = UpstreamConfig::of(tx, &registry.pipeline.vault, &at, &below, client.now()).await?;
                let is_new = config.is_some() && !below.is_empty();
                // Checked before anything is fetched that could not be stored.
                if is_new && !client.visit.allows::<CreateRepo>(call.grants(), at.as_str())? {
                    return Err(registry.denied::<CreateRepo>(&client, name.as_str()));
                }
                Ok(config)
            })
        });
        read.await
    }

    /// Where a tag comes from that the client has found, if it is time to ask whether it still names the same.
    pub async fn stale(
        &self,
        client: &RegistryClient,
        name: &Name,
        tag: &str,
    ) -> Result<Option<UpstreamConfig>, RegistryError> {
        let Some(config) = self.upstream_of(client, name, &Reference::Tag(tag.into())).await? else { return Ok(None) };
        let (now, name, tag) = (client.now(), name.clone(), tag.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                let Some(repo) = repo_of(tx, &name).await? else { return Ok::<_, RegistryError>(None) };
                Ok(upstream_tags::is_due(tx, &repo, &tag, now).await?.then_some(config))
            })
        });
        read.await
    }

    /// Records that the upstream was asked for a tag, and whether it responded.
    pub async fn note_upstream(
        &self,
        client: &RegistryClient,
        name: &Name,
        tag: Option<&str>,
        problem: Option<&str>,
    ) -> Result<(), RegistryError> {
        let (now, name) = (client.now(), name.clone());
        let (tag, problem) = (tag.map(String::from), problem.map(String::from));
        let written = self.pipeline.db.write(move |tx| {
            let (name, tag, problem) = (name.clone(), tag.clone(), problem.clone());
            Box::pin(async move {
                let Some(repo) = repo_of(tx, &name).await? else { return Ok(()) };
                if let Some(tag) = &tag {
                    upstream_tags::note_check(tx, &repo, tag, now).await?;
                }
                note_status(tx, &repo, problem.as_deref(), now).await
            })
        });
        written.await
    }

    /// Stores a manifest from the upstream, whose digest was compared, unless its tag was pushed meanwhile.
    /// Its blobs come when clients request them.
    ///
    /// # Errors
    /// The client may not pull, or not create the repository that is missing.
    pub async fn keep_manifest(
        &self,
        client: &RegistryClient,
        name: &Name,
        fetched: PushedManifest,
    ) -> Result<(), RegistryError> {
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let fetched = std::sync::Arc::new(fetched);
        let written = self.pipeline.write_deferring(move |tx| {
            let (registry, client, name, fetched) = (registry.clone(), client.clone(), name.clone(), fetched.clone());
            Box::pin(async move { registry.keep(tx, &client, &name, &fetched).await })
        });
        written.await
    }

    async fn keep(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
        fetched: &PushedManifest,
    ) -> Result<(), RegistryError> {
        let repo = match repo_of(tx, name).await? {
            Some(repo) => repo,
            None => self.created(tx, client, name).await?,
        };
        let call = client.visit.authorize_at::<PullManifest>(tx, &repo, Interaction::default()).await;
        let call = call.map_err(|error| self.refusal::<PullManifest>(client, name.as_str(), error))?;
        if let Reference::Tag(tag) = &fetched.reference
            && upstream_tags::is_local_tag(tx, &repo, tag).await?
        {
            // It was pushed while the upstream answered.
            return Ok(());
        }
        let mut changes = manifests::store_one(tx, &repo, fetched, client.now()).await?;
        if let Reference::Tag(tag) = &fetched.reference {
            let put = tags::put_tag(tx, &repo, tag, &fetched.digest, client.now(), call.draw()).await?;
            changes.extend(put.change());
            upstream_tags::note_tag(tx, &repo, tag, client.now()).await?;
        }
        note_status(tx, &repo, None, client.now()).await?;
        Ok(client.visit.record(tx, &call, Changed::many(changes, ())).await?)
    }
}

pub(super) async fn repo_of(tx: &mut ReadTx, name: &Name) -> Result<Option<Uidp>, RegistryError> {
    Ok(paths::resolve(tx, name).await?.and_then(|place| place.repo))
}

pub(super) async fn note_status(
    tx: &mut WriteTx,
    repo: &Uidp,
    problem: Option<&str>,
    now: Micros,
) -> Result<(), RegistryError> {
    let status = if problem.is_some() { Status::Failed } else { Status::Unknown };
    let sql = "INSERT INTO upstream_syncs (repo, org, status, checked_at, message) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (repo) DO UPDATE SET status = excluded.status, checked_at = excluded.checked_at,
                                                message = excluded.message";
    let params = [
        Value::from(repo.as_str()),
        Value::from(repo.root_str()),
        Value::Int(status as i64),
        Value::Int(now),
        Value::from(problem.unwrap_or_default()),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
