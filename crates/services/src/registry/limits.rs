//! What policies forbid: moving and deleting tags that stay where they are, and storing more than was allotted.

use bowline_contract::bowline::registry::v1::RegistryPolicy;
use bowline_core::{Error, Result, Uidp};
use bowline_store::{ReadTx, Row, Value};
use prost::Message;

use super::stored_bytes;

/// The policies that hold for a repository: its own and those of the groups above it.
pub(super) async fn policies(tx: &mut ReadTx, repo: &Uidp) -> Result<Vec<RegistryPolicy>> {
    let params: Vec<Value<'_>> = repo.self_and_ancestors().map(Value::from).collect();
    let places: Vec<String> = (1..=params.len()).map(|n| format!("${n}")).collect();
    let sql =
        format!("SELECT place, policy FROM registry_policies WHERE place IN ({}) ORDER BY place", places.join(", "));
    let read = |row: &Row<'_>| {
        let policy = RegistryPolicy::decode(row.bytes(1)?.as_slice()).map_err(Error::internal)?;
        Ok(RegistryPolicy { uid: row.text(0)?, ..policy })
    };
    tx.query(&sql, &params, read).await
}

/// Refuses to move or delete a tag of the repository that has this name and an immutable place.
///
/// # Errors
/// FAILED_PRECONDITION.
pub(super) async fn require_movable(tx: &mut ReadTx, repo: &Uidp, tag: &str) -> Result<()> {
    for policy in policies(tx, repo).await? {
        if let Some(pattern) = first_match(&policy.immutable_tag_patterns, tag)? {
            let description = format!(
                "the tag \"{tag}\" is immutable: the policy of {} has the pattern \"{pattern}\"; use another tag, or \
                 have the policy changed",
                policy.uid
            );
            return Err(Error::precondition("TAG_IMMUTABLE", tag, description));
        }
    }
    Ok(())
}

/// Tells whether one of these patterns matches a whole name: compiled once for many names.
pub(super) fn matcher(patterns: &[String]) -> Result<impl Fn(&String) -> bool + use<>> {
    let compiled: std::result::Result<Vec<_>, String> =
        patterns.iter().map(|pattern| bowline_authn::matching::whole(pattern)).collect();
    let compiled = compiled.map_err(Error::internal)?;
    Ok(move |name: &String| compiled.iter().any(|pattern| pattern.is_match(name)))
}

/// The first of these patterns that matches the whole name.
pub(super) fn first_match<'a>(patterns: &'a [String], name: &str) -> Result<Option<&'a str>> {
    for pattern in patterns {
        if bowline_authn::matching::whole(pattern).map_err(Error::internal)?.is_match(name) {
            return Ok(Some(pattern));
        }
    }
    Ok(None)
}

/// Refuses if more is stored at the repository, or below a group above it, than its policy allots.
///
/// # Errors
/// QUOTA_EXCEEDED.
pub(super) async fn require_bytes(tx: &mut ReadTx, repo: &Uidp) -> Result<()> {
    for policy in policies(tx, repo).await? {
        let (place, quota) = (&policy.uid, policy.byte_quota);
        if quota > 0 && stored_bytes::total(tx, place).await? > quota {
            let description = format!(
                "the blobs of {place} may have {quota} bytes, and would have more with this one; delete some or ask \
                 for a higher quota"
            );
            return Err(Error::quota(place, description));
        }
    }
    Ok(())
}
