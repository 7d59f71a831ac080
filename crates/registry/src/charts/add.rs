//! Adding a chart: a synchronized repository for it in a group of its own, and one beside that group for each
//! repository of the images that it uses. What is there already stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::charts::AddChart;
use bowline_contract::v2::registry as v2;
use bowline_core::{Error, Result, Uidp};
use bowline_identity::groups::{self, GroupInput};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, handler};
use bowline_resources::kinds::CHART;
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, Value, WriteTx};
use prost::{Message, Name};

use super::METADATA;
use super::images::{self, ChartImages};
use crate::content::is_public;
use crate::content::replication::sources::{self, Settled, Source};
use crate::paths;
use crate::policies::require_push;
use crate::{repo_fields, repos};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.write::<AddChart>(handler!(add))
}

type Call = Authorized<v1::AddChartRequest>;

/// The group for charts that lie in no group but an organization.
const FOLDER: &str = "charts";

/// A repository that the chart needs.
struct Needed {
    name: String,
    source: Source,
}

async fn add(tx: &mut WriteTx, call: &Call) -> Result<Changed<v1::AddChartResponse>> {
    let parent = call.require_scope()?;
    require_group(tx, parent).await?;
    require_push(call, parent)?;
    let chart = source(tx, call).await?;
    let manifest = manifest(tx, &chart, &call.request().tag).await?;
    let needed = needed(tx, call, &manifest).await?;
    let mut added = Added { call, repos: Vec::new(), changes: Vec::new() };
    let folder = folder_of(tx, &chart).await?;
    let group = added.folder(tx, parent, &folder).await?;
    let chart = Needed { name: repos::require(tx, &chart).await?.name, source: Source::Here(chart) };
    added.repo(tx, group.as_ref(), Some(&folder), chart).await?;
    for image in needed {
        added.repo(tx, Some(parent), None, image).await?;
    }
    added.rendered()
}

/// The repository that holds the chart, if the caller may pull from it.
async fn source(tx: &mut ReadTx, call: &Call) -> Result<Uidp> {
    match sources::named(tx, call, &call.request().source_repo_id).await? {
        Some(Source::Here(uid)) => Ok(uid),
        Some(Source::There(_)) | None => {
            let description =
                "names no repository here that you may pull from: give the UIDP of the one with the chart";
            Err(Error::invalid_field("sourceRepoId", description))
        }
    }
}

/// Digest of the chart at a tag of its repository; without a tag, at the one that moved last, of the newest thousand.
async fn manifest(tx: &mut ReadTx, repo: &Uidp, tag: &str) -> Result<String> {
    let (tags, name) = match tag {
        // What moved before these does not count.
        "" => ("ORDER BY updated_at DESC, name LIMIT 1000", None),
        tag => ("AND name = $3", Some(Value::from(tag))),
    };
    let sql = format!(
        "SELECT f.manifest FROM (SELECT parent, name, digest, updated_at FROM tags WHERE parent = $1 {tags}) t
         JOIN repo_manifests r ON r.repo = t.parent AND r.digest = t.digest
         JOIN manifest_references f ON f.manifest = r.digest AND f.kind = 1 AND f.media_type = $2
         ORDER BY t.updated_at DESC, t.name LIMIT 1"
    );
    let params: Vec<Value<'_>> = [Value::from(repo.as_str()), Value::from(METADATA)].into_iter().chain(name).collect();
    let found = tx.query_opt(&sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    found.ok_or_else(|| match tag {
        "" => Error::not_found(CHART, repo.as_str()),
        tag => Error::not_found(CHART, format!("{repo}:{tag}")),
    })
}

/// The repositories of the chart's images, by the names that they get.
async fn needed(tx: &mut ReadTx, call: &Call, manifest: &str) -> Result<Vec<Needed>> {
    let unusable = |description: String| Err(Error::precondition("CHART_UNUSABLE", manifest, description));
    let repositories: BTreeSet<String> = match images::of(tx, manifest).await? {
        Some(ChartImages(Ok(repositories))) => repositories,
        Some(ChartImages(Err(problem))) => {
            return unusable(format!("the images of the chart are not known: {problem}"));
        }
        None => {
            return unusable(
                "the images of the chart are not known yet: push it once more, to any repository here".into(),
            );
        }
    };
    let mut needed: BTreeMap<String, (String, Source)> = BTreeMap::new();
    for repository in repositories {
        let Some(source) = sources::named(tx, call, &repository).await? else {
            return unusable(format!(
                "the chart uses images of {repository}, which is no repository here that you may pull from, and names \
                 no other registry as registry.example.com/team/app does"
            ));
        };
        let name = name_of(tx, &source).await?;
        match needed.get(&name) {
            Some((_, known)) if *known == source => {}
            Some((other, _)) => {
                return unusable(format!(
                    "the chart uses images of {other} and {repository}, which would both be {name}"
                ));
            }
            None => drop(needed.insert(name, (repository, source))),
        }
    }
    Ok(needed.into_iter().map(|(name, (_, source))| Needed { name, source }).collect())
}

/// The name of a repository, wherever it is.
async fn name_of(tx: &mut ReadTx, source: &Source) -> Result<String> {
    match source {
        Source::Here(uid) => Ok(repos::require(tx, uid).await?.name),
        Source::There(address) => Ok(images::last_part(address).to_owned()),
    }
}

/// Name of the group that the chart lies in where it comes from.
async fn folder_of(tx: &mut ReadTx, chart: &Uidp) -> Result<String> {
    let sql = "SELECT name FROM groups WHERE uid = $1 AND parent <> ''";
    let found = tx.query_opt(sql, &[Value::from(chart.parent_str())], |row| row.text(0).map_err(Error::from)).await?;
    Ok(found.unwrap_or_else(|| FOLDER.to_owned()))
}

/// What was added, or would be in a dry run.
struct Added<'a> {
    call: &'a Call,
    repos: Vec<v1::AddChartResult>,
    changes: Vec<Change>,
}

impl Added<'_> {
    /// The group of this name, created where it is missing; absent in a dry run that would create it.
    async fn folder(&mut self, tx: &mut WriteTx, parent: &Uidp, name: &str) -> Result<Option<Uidp>> {
        if let Some(uid) = groups::find_child(tx, parent.as_str(), name).await? {
            return paths::stored(&uid).map(Some);
        }
        groups::require_depth(parent)?;
        if self.call.request().dry_run {
            return Ok(None);
        }
        let input = GroupInput { name: name.into(), ..GroupInput::default() };
        let created = groups::create(tx, self.call, parent.as_str(), input).await?;
        self.changes.extend(created.changes);
        Ok(Some(created.response.uid))
    }

    /// A repository of a group, created where it is missing and this is no dry run.
    async fn repo(
        &mut self,
        tx: &mut WriteTx,
        group: Option<&Uidp>,
        folder: Option<&str>,
        needed: Needed,
    ) -> Result<()> {
        let path = folder.map_or_else(|| needed.name.clone(), |folder| format!("{folder}/{}", needed.name));
        let mut result = v1::AddChartResult { name: path, created: true, id: String::new() };
        let there = match group {
            Some(group) => repos::find_by_name(tx, group, &needed.name).await?,
            None => None,
        };
        if let Some(there) = there {
            (result.created, result.id) = (false, there.uid);
        } else {
            if folder.is_none() {
                require_shareable(tx, self.call, &needed).await?;
            }
            let repo = synchronized(self.call, group, &needed)?;
            if let Some(group) = group.filter(|_| !self.call.request().dry_run) {
                let source = Some(Settled::of(needed.source));
                let (uid, created) = repos::create_settled(tx, self.call, group, repo, source, None).await?;
                self.changes.extend(created.changes);
                result.id = uid.as_str().into();
            }
        }
        self.repos.push(result);
        Ok(())
    }

    /// The response; the event is about the chart's own repository.
    fn rendered(self) -> Result<Changed<v1::AddChartResponse>> {
        let chart = self.repos.first().map(|chart| chart.id.clone()).unwrap_or_default();
        let response = v1::AddChartResponse { repos: self.repos };
        if self.changes.is_empty() {
            return Ok(Changed::nothing(response));
        }
        Ok(Changed::many(self.changes, response).with_event(&paths::stored(&chart)?, self.call.request()))
    }
}

/// Within one organization a copy is pulled without asking for its source, so that the maker of the chart would choose
/// what those who may pull the copies get to see: the caller has named the chart, and nothing else.
async fn require_shareable(tx: &mut ReadTx, call: &Call, needed: &Needed) -> Result<()> {
    let Source::Here(uid) = &needed.source else { return Ok(()) };
    if uid.root_str() != call.require_scope()?.root_str() || is_public(tx, uid).await? {
        return Ok(());
    }
    let description = format!(
        "the chart uses images of {uid}, which not everybody may pull from: if those who may pull here shall have them, \
         make the repository {} with that source yourself, and add the chart again",
        needed.name
    );
    Err(Error::precondition("CHART_UNUSABLE", uid.as_str(), description))
}

/// A new repository with this source, checked as one that the caller would create.
fn synchronized(call: &Call, group: Option<&Uidp>, needed: &Needed) -> Result<v2::Repo> {
    let source = needed.source.text();
    // As people write an image reference.
    let source = source.strip_prefix("https://").unwrap_or(source);
    let sync = v2::SyncConfig { source: source.into(), ..v2::SyncConfig::default() };
    let repo = v2::Repo { name: needed.name.clone(), sync_config: Some(sync), ..v2::Repo::default() };
    let parent = group.unwrap_or(call.require_scope()?).as_str().into();
    let request = v2::CreateRepoRequest { parent, repo: Some(repo.clone()) };
    let type_name = v2::CreateRepoRequest::full_name();
    let rules = call.contract().field_rules();
    match rules.validate(&type_name, &request.encode_to_vec(), Some("repo"), None).list.into_iter().next() {
        None => repo_fields::of_new(repo, false),
        Some(violation) => {
            let problem = format!("{} cannot be a repository here: {}", needed.name, violation.description);
            Err(Error::precondition("CHART_UNUSABLE", source, problem))
        }
    }
}
