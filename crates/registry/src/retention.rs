//! Retention: what the rules of a repository do not keep goes, with the tags that name it and the blobs that nothing
//! else there names.

mod decide;
mod group_preview;
mod runs;

use std::collections::{HashMap, HashSet};

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::registry_policies::{
    ApplyRetention, ListRetentionRuns, PreviewGroupRetention, PreviewRetention,
};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, handler};
use bowline_resources::list::timestamp;
use bowline_resources::patterns;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use self::decide::{Rules, Stored, batch, doomed};
use super::content::{find_stored, take_out, take_out_unnamed_blobs};
use super::{limits, policies, repos};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .heavy_read::<PreviewRetention>(handler!(preview))
        .validate_costly::<PreviewRetention>(|request| policies::validate_retention(request.retention.as_ref()))
        .heavy_read::<PreviewGroupRetention>(handler!(group_preview::preview))
        .validate_costly::<PreviewGroupRetention>(|request| policies::validate_retention(request.retention.as_ref()))
        .write::<ApplyRetention>(handler!(apply))
        .read::<ListRetentionRuns>(handler!(runs::list))
}

/// Manifests that a preview lists.
const SHOWN: usize = 1000;
/// Manifests, and tags, of the largest repository for which there are previews.
const MAX_PREVIEWED: i64 = 100_000;
/// Manifests that one transaction removes, about.
const AT_ONCE: usize = 100;
const DAY: Micros = 24 * 3600 * 1_000_000;

/// Whether any rule keeps something. Without one nothing is removed at all.
pub(super) fn has_rules(retention: &own::Retention) -> bool {
    retention.keep_last > 0 || retention.keep_days > 0 || !retention.keep_patterns.is_empty()
}

async fn preview(tx: &mut ReadTx, call: &Authorized<own::PreviewRetentionRequest>) -> Result<own::RetentionOutcome> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    require_previewable(tx, repo).await?;
    let plan = Plan::of(tx, repo, call.request().retention.clone(), call.now()).await?;
    Ok(plan.outcome(repo, plan.oldest(SHOWN)))
}

/// What the rules of this policy would remove from its repository; absent where there is no such repository, or the policy
/// has no rule.
///
/// # Errors
/// FAILED_PRECONDITION where the repository is too large for a preview.
pub async fn retention_by(
    tx: &mut ReadTx,
    repo: &Uidp,
    policy: own::RegistryPolicy,
    now: Micros,
) -> Result<Option<own::RetentionOutcome>> {
    let has_repo = repos::exists(tx, repo).await?;
    if !has_repo || !policy.retention.as_ref().is_some_and(has_rules) {
        return Ok(None);
    }
    require_previewable(tx, repo).await?;
    let mut holding = limits::policies(tx, repo).await?;
    holding.retain(|other| other.uid != repo.as_str());
    holding.push(policy);
    let plan = Plan::by(tx, repo, &holding, None, now).await?;
    Ok(Some(plan.outcome(repo, plan.oldest(SHOWN))))
}

/// Refuses a preview that would read too much: the background work that removes manifests has no caller who waits.
async fn require_previewable(tx: &mut ReadTx, repo: &Uidp) -> Result<()> {
    if stored_size(tx, repo).await? > MAX_PREVIEWED {
        let text =
            format!("the repository has more than {MAX_PREVIEWED} manifests or tags; a preview reads at most as many");
        return Err(Error::precondition("REPOSITORY_TOO_LARGE", repo.as_str(), text));
    }
    Ok(())
}

/// The manifests of a repository, or its tags if they are more: up to one more than a preview reads.
async fn stored_size(tx: &mut ReadTx, repo: &Uidp) -> Result<i64> {
    let mut most = 0;
    for sql in [
        "SELECT count(*) FROM (SELECT 1 FROM repo_manifests WHERE repo = $1 LIMIT $2) AS bounded",
        "SELECT count(*) FROM (SELECT 1 FROM tags WHERE parent = $1 LIMIT $2) AS bounded",
    ] {
        let params = [Value::from(repo.as_str()), Value::Int(MAX_PREVIEWED + 1)];
        let count = tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?;
        most = most.max(count.unwrap_or(0));
    }
    Ok(most)
}

async fn apply(
    tx: &mut WriteTx,
    call: &Authorized<own::ApplyRetentionRequest>,
) -> Result<Changed<own::RetentionOutcome>> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    let (outcome, changes) = remove(tx, repo, call.now(), call.draw()).await?;
    if changes.is_empty() {
        return Ok(Changed::nothing(outcome));
    }
    let event = outcome.clone();
    Ok(Changed::many(changes, outcome).with_event(repo, &event))
}

/// How many manifests of the repository are to be removed now.
pub(super) async fn waiting(tx: &mut ReadTx, repo: &Uidp, now: Micros) -> Result<usize> {
    Ok(Plan::of(tx, repo, None, now).await?.doomed())
}

/// Removes some of what the rules of the repository do not keep; what went and what remains, and the changes.
pub(super) async fn remove(
    tx: &mut WriteTx,
    repo: &Uidp,
    now: Micros,
    draw: [u8; 32],
) -> Result<(own::RetentionOutcome, Vec<Change>)> {
    let plan = Plan::of(tx, repo, None, now).await?;
    let tags: Vec<String> = plan.shown.iter().flat_map(|manifest| &manifest.tags).cloned().collect();
    limits::match_ahead(tx, repo, &tags).await?;
    let part = batch(&plan.stored, &plan.marks, AT_ONCE);
    let mut changes = Vec::new();
    for at in &part {
        let digest = &plan.stored[*at].digest;
        if let Some(manifest) = find_stored(tx, repo, digest).await? {
            changes.extend(take_out(tx, repo, &manifest, now, draw).await?);
        }
    }
    for at in &part {
        changes.extend(take_out_unnamed_blobs(tx, repo, &plan.stored[*at].digest, now - DAY).await?);
    }
    let outcome = plan.outcome(repo, part);
    runs::store(tx, repo, &outcome, now, draw).await?;
    Ok((outcome, changes))
}

/// What is in a repository, and what of it goes.
struct Plan {
    stored: Vec<Stored>,
    marks: Vec<bool>,
    shown: Vec<own::RemovedManifest>,
}

impl Plan {
    /// By the given rules, or by those of the nearest policy that has some.
    async fn of(tx: &mut ReadTx, repo: &Uidp, given: Option<own::Retention>, now: Micros) -> Result<Plan> {
        let holding = limits::policies(tx, repo).await?;
        Plan::by(tx, repo, &holding, given, now).await
    }

    /// By the given rules, or by those of the last of these policies that has some.
    async fn by(
        tx: &mut ReadTx,
        repo: &Uidp,
        holding: &[own::RegistryPolicy],
        given: Option<own::Retention>,
        now: Micros,
    ) -> Result<Plan> {
        let set = holding.iter().rev().find_map(|policy| policy.retention.clone().filter(has_rules));
        let Some(retention) = given.or(set).filter(has_rules) else { return Plan::nothing(tx, repo).await };
        let immutable = holding.iter().flat_map(|policy| &policy.immutable_tag_patterns);
        let kept: Vec<String> = immutable.chain(&retention.keep_patterns).cloned().collect();
        let (stored, shown) = load(tx, repo, &kept).await?;
        let rules = Rules {
            keep_last: usize::try_from(retention.keep_last).unwrap_or(0),
            keep_for: Some(Micros::from(retention.keep_days) * DAY).filter(|lasts| *lasts > 0),
        };
        let marks = doomed(&stored, rules, now);
        Ok(Plan { stored, marks, shown })
    }

    async fn nothing(tx: &mut ReadTx, repo: &Uidp) -> Result<Plan> {
        let (stored, shown) = load(tx, repo, &[]).await?;
        let marks = vec![false; stored.len()];
        Ok(Plan { stored, marks, shown })
    }

    fn doomed(&self) -> usize {
        self.marks.iter().filter(|mark| **mark).count()
    }

    /// Positions of what goes, the oldest first.
    fn oldest(&self, most: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.stored.len()).filter(|at| self.marks[*at]).collect();
        all.sort_by_key(|at| (self.stored[*at].pushed_at, &self.stored[*at].digest));
        all.truncate(most);
        all
    }

    fn outcome(&self, repo: &Uidp, listed: Vec<usize>) -> own::RetentionOutcome {
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        own::RetentionOutcome {
            repo_uid: repo.as_str().into(),
            kept: number(self.stored.len() - self.doomed()),
            remaining: number(self.doomed() - listed.len()),
            removed: listed.into_iter().map(|at| self.shown[at].clone()).collect(),
        }
    }
}

/// The manifests of a repository, and how each is shown.
async fn load(tx: &mut ReadTx, repo: &Uidp, kept: &[String]) -> Result<(Vec<Stored>, Vec<own::RemovedManifest>)> {
    let mut tags = tags(tx, repo).await?;
    let names: Vec<String> = tags.values().flatten().cloned().collect();
    let matches = patterns::first_matches(kept, &names)?;
    let kept: HashSet<String> = names.into_iter().zip(matches).filter_map(|(name, at)| at.map(|_| name)).collect();
    let mut members = members(tx, repo).await?;
    let sql = "SELECT r.digest, r.pushed_at, r.last_pulled_at, r.subject, m.media_type, m.total_size
               FROM repo_manifests r JOIN manifests m ON m.digest = r.digest WHERE r.repo = $1 ORDER BY r.digest";
    let read = |row: &Row<'_>| {
        let manifest = own::RemovedManifest {
            digest: row.text(0)?,
            media_type: row.text(4)?,
            tags: Vec::new(),
            push_time: timestamp(row.int(1)?),
            pull_time: row.opt_int(2)?.and_then(timestamp),
            size: row.int(5)?,
        };
        Ok::<_, Error>((manifest, row.int(1)?, row.opt_int(2)?, row.text(3)?))
    };
    let rows = tx.query(sql, &[Value::from(repo.as_str())], read).await?;
    let (mut stored, mut shown) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for (mut manifest, pushed_at, pulled_at, subject) in rows {
        manifest.tags = tags.remove(&manifest.digest).unwrap_or_default();
        let subjects = Some(subject).filter(|subject| !subject.is_empty()).into_iter();
        stored.push(Stored {
            digest: manifest.digest.clone(),
            pushed_at,
            pulled_at,
            has_tags: !manifest.tags.is_empty(),
            is_retained_by_name: manifest.tags.iter().any(|tag| kept.contains(tag)),
            subjects: subjects.chain(manifest.tags.iter().filter_map(|tag| named_subject(tag))).collect(),
            members: members.remove(&manifest.digest).unwrap_or_default(),
        });
        shown.push(manifest);
    }
    Ok((stored, shown))
}

/// What a tag refers to by its name: `sha256-<digest>`, with or without more.
fn named_subject(tag: &str) -> Option<String> {
    let hex = tag.strip_prefix("sha256-")?.get(..64)?;
    let is_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| format!("sha256:{hex}"))
}

async fn tags(tx: &mut ReadTx, repo: &Uidp) -> Result<HashMap<String, Vec<String>>> {
    let sql = "SELECT digest, name FROM tags WHERE parent = $1 AND digest <> '' ORDER BY name";
    pairs(tx, sql, repo).await
}

/// What indexes name of what is there.
async fn members(tx: &mut ReadTx, repo: &Uidp) -> Result<HashMap<String, Vec<String>>> {
    let sql = "SELECT f.manifest, f.digest FROM repo_manifests r
               JOIN manifest_references f ON f.manifest = r.digest
               JOIN repo_manifests m ON m.repo = $1 AND m.digest = f.digest
               WHERE r.repo = $1 AND f.kind = 3";
    pairs(tx, sql, repo).await
}

async fn pairs(tx: &mut ReadTx, sql: &str, repo: &Uidp) -> Result<HashMap<String, Vec<String>>> {
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let mut by_first: HashMap<String, Vec<String>> = HashMap::new();
    for (first, second) in tx.query(sql, &[Value::from(repo.as_str())], read).await? {
        by_first.entry(first).or_default().push(second);
    }
    Ok(by_first)
}
