//! Deletions of images and tags: members and referrers that are deleted too, the checks of policies, and the deletion
//! itself. The preview and the deletion compute the same plan.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Changed};
use bowline_resources::kinds::{MANIFEST, TAG};
use bowline_store::{ReadTx, Row, WriteTx};

use super::summaries::about;
use crate::content::{find_stored, take_out, take_out_unnamed_blobs};
use crate::{limits, repos, tags};

/// Maximum number of manifests that one deletion removes, including members and referrers.
const MAX_REMOVED: usize = 500;
/// Maximum number of memberships of the images of deleted indexes in indexes, which are all looked at.
const MAX_MEMBERSHIPS: usize = 20_000;
const DAY: Micros = 24 * 3600 * 1_000_000;

pub(super) async fn preview(
    tx: &mut ReadTx,
    call: &Authorized<own::PreviewDeleteRequest>,
) -> Result<own::ImageRemoval> {
    let request = call.request();
    Plan::of(tx, call.require_scope()?, &request.digests, &request.tags).await?.shown(tx, call.require_scope()?).await
}

pub(super) async fn delete(
    tx: &mut WriteTx,
    call: &Authorized<own::DeleteImagesRequest>,
) -> Result<Changed<own::ImageRemoval>> {
    let (request, repo) = (call.request(), call.require_scope()?);
    let plan = Plan::of(tx, repo, &request.digests, &request.tags).await?;
    let removal = plan.shown(tx, repo).await?;
    let (now, draw) = (call.now(), call.draw());
    let mut changes = Vec::new();
    for tag in &request.tags {
        let row = tags::delete_tag(tx, repo, tag, now, draw).await?;
        changes.extend(row.map(|row| tags::change(Some(&row), None)));
    }
    // The named ones come first: an index is deleted before its members, which it would hold otherwise.
    for digest in &plan.order {
        if let Some(manifest) = find_stored(tx, repo, digest).await? {
            changes.extend(take_out(tx, repo, &manifest, now, draw).await?);
        }
    }
    for digest in &plan.order {
        changes.extend(take_out_unnamed_blobs(tx, repo, digest, now - DAY).await?);
    }
    if changes.is_empty() {
        return Ok(Changed::nothing(removal));
    }
    let event = removal.clone();
    Ok(Changed::many(changes, removal).with_event(repo, &event))
}

/// The manifests to delete, each with its cause.
struct Plan {
    causes: BTreeMap<String, own::RemovalCause>,
    /// Each before its members and referrers.
    order: Vec<String>,
    tags: BTreeSet<String>,
}

impl Plan {
    /// Rejects unknown manifests and tags, too many of them, and those that a policy protects.
    async fn of(tx: &mut ReadTx, repo: &Uidp, digests: &[String], tags: &[String]) -> Result<Plan> {
        repos::require(tx, repo).await?;
        if digests.is_empty() && tags.is_empty() {
            return Err(Error::invalid_field("digests", "name digests or tags to delete"));
        }
        let mut plan = Plan { causes: BTreeMap::new(), order: Vec::new(), tags: tags.iter().cloned().collect() };
        for digest in digests {
            plan.add(digest, own::RemovalCause::Requested);
        }
        plan.require_there(tx, repo).await?;
        plan.extend(tx, repo).await?;
        plan.require_deletable(tx, repo).await?;
        Ok(plan)
    }

    fn add(&mut self, digest: &str, cause: own::RemovalCause) {
        if !self.causes.contains_key(digest) {
            self.causes.insert(digest.to_owned(), cause);
            self.order.push(digest.to_owned());
        }
    }

    async fn require_there(&self, tx: &mut ReadTx, repo: &Uidp) -> Result<()> {
        for digest in &self.order {
            if find_stored(tx, repo, digest).await?.is_none() {
                return Err(Error::not_found(MANIFEST, digest));
            }
        }
        for tag in &self.tags {
            if tags::find_by_name(tx, repo, tag).await?.is_none() {
                return Err(Error::not_found(TAG, tag));
            }
        }
        Ok(())
    }

    /// Adds members and referrers, until there are no more.
    async fn extend(&mut self, tx: &mut ReadTx, repo: &Uidp) -> Result<()> {
        let mut at = 0;
        while at < self.order.len() {
            let part: Vec<String> = self.order[at..].iter().take(MAX_REMOVED).cloned().collect();
            at += part.len();
            for member in self.freed_members(tx, repo, &part).await? {
                self.add(&member, own::RemovalCause::Member);
            }
            for referrer in referrers(tx, repo, &part).await? {
                self.add(&referrer, own::RemovalCause::Referrer);
            }
            if self.order.len() > MAX_REMOVED {
                let text =
                    format!("the deletion removes more than {MAX_REMOVED} manifests with what goes along; name fewer");
                return Err(Error::precondition("TOO_MANY_IMAGES", repo.as_str(), text));
            }
        }
        Ok(())
    }

    /// Members of deleted indexes that neither a tag nor a remaining index names.
    async fn freed_members(&self, tx: &mut ReadTx, repo: &Uidp, indexes: &[String]) -> Result<Vec<String>> {
        let (params, positions) = about(repo, indexes.iter());
        let tags = tx.index_hint("tags_by_digest");
        let sql = format!(
            "SELECT f.digest, o.manifest FROM manifest_references f
             JOIN repo_manifests r ON r.repo = $1 AND r.digest = f.digest
             JOIN manifest_references o ON o.digest = f.digest AND o.kind = 3
             JOIN repo_manifests i ON i.repo = $1 AND i.digest = o.manifest
             WHERE f.manifest IN ({positions}) AND f.kind = 3
               AND NOT EXISTS (SELECT 1 FROM tags t {tags} WHERE t.parent = $1 AND t.digest = f.digest)
             ORDER BY f.digest LIMIT {}",
            MAX_MEMBERSHIPS + 1
        );
        let mut free: BTreeMap<String, bool> = BTreeMap::new();
        let memberships = tx.query(&sql, &params, pair).await?;
        if memberships.len() > MAX_MEMBERSHIPS {
            let text =
                format!("the images of the indexes are in more than {MAX_MEMBERSHIPS} places; name fewer indexes");
            return Err(Error::precondition("TOO_MANY_IMAGES", repo.as_str(), text));
        }
        for (member, index) in memberships {
            *free.entry(member).or_insert(true) &= self.causes.contains_key(&index);
        }
        Ok(free.into_iter().filter_map(|(member, is_free)| is_free.then_some(member)).collect())
    }

    /// Rejects what the deletion would reject.
    async fn require_deletable(&self, tx: &mut ReadTx, repo: &Uidp) -> Result<()> {
        let mut names: Vec<String> = self.tags.iter().cloned().collect();
        names.extend(tags_at(tx, repo, &self.order).await?);
        limits::match_ahead(tx, repo, &names).await?;
        for name in &names {
            limits::require_movable(tx, repo, name).await?;
        }
        for digest in self.order.iter().filter(|digest| self.causes[*digest] == own::RemovalCause::Requested) {
            limits::require_no_immutable_index(tx, repo, digest).await?;
        }
        Ok(())
    }

    async fn shown(&self, tx: &mut ReadTx, repo: &Uidp) -> Result<own::ImageRemoval> {
        let mut sizes: BTreeMap<String, i64> = BTreeMap::new();
        let mut tags = self.tags.clone();
        if !self.order.is_empty() {
            let (params, positions) = about(repo, self.order.iter());
            let sql = format!("SELECT digest, total_size FROM manifests WHERE $1 <> '' AND digest IN ({positions})");
            let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.int(1)?));
            sizes.extend(tx.query(&sql, &params, read).await?);
            tags.extend(tags_at(tx, repo, &self.order).await?);
        }
        let image = |digest: &String| own::RemovedImage {
            digest: digest.clone(),
            cause: self.causes[digest] as i32,
            size: sizes.get(digest).copied().unwrap_or(0),
        };
        let images = self.order.iter().map(image).collect();
        Ok(own::ImageRemoval { repo_uid: repo.as_str().into(), images, tags: tags.into_iter().collect() })
    }
}

fn pair(row: &Row<'_>) -> Result<(String, String)> {
    Ok((row.text(0)?, row.text(1)?))
}

/// What refers to these, by subject or by the name of a tag.
async fn referrers(tx: &mut ReadTx, repo: &Uidp, digests: &[String]) -> Result<Vec<String>> {
    let (params, positions) = about(repo, digests.iter());
    let sql = format!(
        "SELECT digest FROM repo_manifests {} WHERE repo = $1 AND subject IN ({positions}) AND subject <> ''
         ORDER BY digest LIMIT {}",
        tx.index_hint("repo_manifests_by_subject"),
        MAX_REMOVED + 1
    );
    let mut referrers: Vec<String> = tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    let names: Vec<String> = digests
        .iter()
        .flat_map(|digest| ["", ".sig", ".sbom", ".att"].map(|end| format!("{}{end}", digest.replace(':', "-"))))
        .collect();
    let (params, positions) = about(repo, names.iter());
    // A tag of such a name can be put on any manifest: one that another tag or an index names is no referrer.
    let by_digest = tx.index_hint("tags_by_digest");
    let sql = format!(
        "SELECT t.digest FROM tags t WHERE t.parent = $1 AND t.name IN ({positions}) AND t.digest <> ''
           AND NOT EXISTS (SELECT 1 FROM tags o {by_digest} WHERE o.parent = $1 AND o.digest = t.digest AND o.name <> t.name)
           AND NOT EXISTS (SELECT 1 FROM manifest_references f JOIN repo_manifests i ON i.repo = $1 AND i.digest = f.manifest
                           WHERE f.digest = t.digest AND f.kind = 3)
         ORDER BY t.name"
    );
    referrers.extend(tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?);
    Ok(referrers)
}

/// The tags at these manifests.
async fn tags_at(tx: &mut ReadTx, repo: &Uidp, digests: &[String]) -> Result<Vec<String>> {
    if digests.is_empty() {
        return Ok(Vec::new());
    }
    let (params, positions) = about(repo, digests.iter());
    let by_digest = tx.index_hint("tags_by_digest");
    let sql = format!(
        "SELECT name FROM tags {by_digest} WHERE parent = $1 AND digest IN ({positions}) ORDER BY name LIMIT 20000"
    );
    tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await
}
