//! What policies forbid: moving and deleting tags that stay where they are, and storing more than was allotted.

use bowline_contract::bowline::registry::v1::RegistryPolicy;
use bowline_core::{Error, Result, Uidp};
use bowline_resources::patterns;
use bowline_store::{ReadTx, Row, Value, placeholders};
use prost::Message;

use super::stored_bytes;

/// The policies that hold for a repository: its own and those of the groups above it.
pub(super) async fn policies(tx: &mut ReadTx, repo: &Uidp) -> Result<Vec<RegistryPolicy>> {
    let params: Vec<Value<'_>> = repo.self_and_ancestors().map(Value::from).collect();
    let scopes = placeholders(1, params.len());
    let sql = format!("SELECT place, policy FROM registry_policies WHERE place IN ({scopes}) ORDER BY place");
    let read = |row: &Row<'_>| {
        let policy = RegistryPolicy::decode(row.bytes(1)?.as_slice()).map_err(Error::internal)?;
        Ok(RegistryPolicy { uid: row.text(0)?, ..policy })
    };
    tx.query(&sql, &params, read).await
}

/// Rejects a change of a tag that a policy at or above the repository makes immutable.
///
/// # Errors
/// FAILED_PRECONDITION.
pub(super) async fn require_movable(tx: &mut ReadTx, repo: &Uidp, tag: &str) -> Result<()> {
    let policies = policies(tx, repo).await?;
    let (places, patterns) = immutable(&policies);
    if let Some(at) = patterns::first_matches(&patterns, &[tag.to_owned()])?[0] {
        let description = format!(
            "the tag \"{tag}\" is immutable: the policy of {} has the pattern \"{}\"; use another tag, or have the \
             policy changed",
            places[at], patterns[at]
        );
        return Err(Error::precondition("TAG_IMMUTABLE", tag, description));
    }
    Ok(())
}

/// Has all these names matched at once that [`require_movable`] asks about one by one.
pub(super) async fn match_ahead(tx: &mut ReadTx, repo: &Uidp, tags: &[String]) -> Result<()> {
    if !tags.is_empty() {
        let policies = policies(tx, repo).await?;
        patterns::first_matches(&immutable(&policies).1, tags)?;
    }
    Ok(())
}

/// The patterns of immutable tags, each with the group or repository whose policy has it.
fn immutable(policies: &[RegistryPolicy]) -> (Vec<&str>, Vec<String>) {
    let all = policies.iter().flat_map(|policy| {
        policy.immutable_tag_patterns.iter().map(move |pattern| (policy.uid.as_str(), pattern.clone()))
    });
    all.unzip()
}

/// Tags that are checked at a time.
const PAGE: i64 = 5000;

/// Refuses to take a manifest out of the repository that an index there names, or an index that it names in turn, if an
/// immutable tag is at that index: it would continue to name an image that cannot be pulled.
///
/// # Errors
/// FAILED_PRECONDITION.
pub(super) async fn require_no_immutable_index(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<()> {
    let policies = policies(tx, repo).await?;
    let (_, patterns) = immutable(&policies);
    if patterns.is_empty() {
        return Ok(());
    }
    // Digests allow no circle, and `UNION` walks through each index once.
    let sql = "WITH RECURSIVE indexes (digest) AS (
                 SELECT f.manifest FROM manifest_references f
                   JOIN repo_manifests r ON r.repo = $1 AND r.digest = f.manifest WHERE f.digest = $2 AND f.kind = 3
                 UNION
                 SELECT f.manifest FROM indexes i JOIN manifest_references f ON f.digest = i.digest AND f.kind = 3
                   JOIN repo_manifests r ON r.repo = $1 AND r.digest = f.manifest)
               SELECT t.name FROM indexes i JOIN tags t ON t.parent = $1 AND t.digest = i.digest
               WHERE t.name > $3 ORDER BY t.name LIMIT $4";
    let mut after = String::new();
    loop {
        let params = [Value::from(repo.as_str()), Value::from(digest), Value::from(&after), Value::Int(PAGE)];
        let names = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
        let matches = patterns::first_matches(&patterns, &names)?;
        if let Some((tag, _)) = names.iter().zip(matches).find(|(_, at)| at.is_some()) {
            let description = format!(
                "the immutable tag \"{tag}\" is at an index that needs {digest}; have the policy changed before the \
                 manifest is deleted"
            );
            return Err(Error::precondition("TAG_IMMUTABLE", tag, description));
        }
        let Some(last) = names.into_iter().next_back() else { return Ok(()) };
        after = last;
    }
}

/// What the tightest quota leaves an upload.
#[derive(Clone, Debug)]
pub(super) struct Room {
    scope: String,
    quota: i64,
    /// Bytes that the upload may have in all.
    pub(super) bytes: u64,
}

impl Room {
    /// The refusal of an upload with more bytes.
    pub(super) fn exceeded(&self) -> Error {
        let Room { scope, quota, bytes } = self;
        let description = format!(
            "the blobs of {scope} may have {quota} bytes; beside what is stored and other open uploads, {bytes} are left \
             for this upload; delete some, cancel uploads or ask for a higher quota"
        );
        Error::quota(scope, description)
    }
}

/// Bytes that the quotas of a repository leave for an open upload, beside what is stored and what other open
/// uploads have brought; absent without a quota. A scope that has the blob with this digest already does not
/// count it again.
pub(super) async fn room(tx: &mut ReadTx, repo: &Uidp, upload: &str, digest: Option<&str>) -> Result<Option<Room>> {
    let mut tightest: Option<Room> = None;
    for policy in policies(tx, repo).await? {
        let (scope, quota) = (policy.uid, policy.byte_quota);
        let is_there = match digest {
            Some(digest) if quota > 0 => stored_bytes::contains(tx, &scope, digest).await?,
            _ => false,
        };
        if quota <= 0 || is_there {
            continue;
        }
        let taken = stored_bytes::total(tx, &scope).await?;
        let open = stored_bytes::of_open_uploads(tx, &scope, upload).await?;
        let taken = taken.saturating_add(open);
        let bytes = u64::try_from(quota.saturating_sub(taken)).unwrap_or_default();
        if tightest.as_ref().is_none_or(|room| bytes < room.bytes) {
            tightest = Some(Room { scope, quota, bytes });
        }
    }
    Ok(tightest)
}

/// Refuses if more is stored at the repository, or below a group above it, than its policy allots.
///
/// # Errors
/// QUOTA_EXCEEDED.
pub(super) async fn require_bytes(tx: &mut ReadTx, repo: &Uidp) -> Result<()> {
    for policy in policies(tx, repo).await? {
        let (scope, quota) = (&policy.uid, policy.byte_quota);
        if quota > 0 && stored_bytes::total(tx, scope).await? > quota {
            let description = format!(
                "the blobs of {scope} may have {quota} bytes, and would have more with this one; delete some or ask \
                 for a higher quota"
            );
            return Err(Error::quota(scope, description));
        }
    }
    Ok(())
}
