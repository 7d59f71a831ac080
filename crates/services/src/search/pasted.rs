//! What was pasted and names one thing: digests, UIDPs and image references.

use bowline_core::{Error, ROOT_LENGTH, Result, UidRange};
use bowline_pipeline::Authorized;
use bowline_registry::references;
use bowline_store::{ReadTx, Value};

use super::form::ImageReference;
use super::kinds::{KINDS, Kind};

/// Repositories with the manifest, in the order of their UIDPs.
pub(super) async fn repos_with(
    tx: &mut ReadTx,
    digest: &str,
    ranges: &[UidRange],
    after: &str,
    most: usize,
) -> Result<Vec<String>> {
    let sql = "SELECT repo FROM repo_manifests WHERE digest = $1 AND repo >= $2 AND repo < $3 AND repo > $4
               ORDER BY repo LIMIT $5";
    let mut repos: Vec<String> = Vec::new();
    for range in ranges.iter().filter(|range| range.upper.as_str() > after) {
        let limit = most.saturating_sub(repos.len()) as i64;
        if limit == 0 {
            break;
        }
        let params = [
            Value::from(digest),
            Value::from(&range.lower),
            Value::from(&range.upper),
            Value::from(after),
            Value::Int(limit),
        ];
        repos.extend(tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?);
    }
    Ok(repos)
}

/// The kind of the resource with this UIDP, if it has a name and the caller may see it.
pub(super) async fn kind_of<T>(tx: &mut ReadTx, call: &Authorized<T>, uid: &str) -> Result<Option<Kind>> {
    let sql = "SELECT kind FROM search_names WHERE uid = $1";
    let number = tx.query_opt(sql, &[Value::from(uid)], |row| row.int(0).map_err(Error::from)).await?;
    let kind = KINDS.into_iter().find(|kind| Some(kind.number()) == number);
    Ok(kind.filter(|kind| kind.is_visible(call, uid)))
}

/// The repository, tag and digest that an image reference names.
pub(super) struct ImageReferenceMatch {
    pub(super) repo: String,
    /// UIDP of the tag, if the reference has one and it is there.
    pub(super) tag: Option<String>,
    /// The digest of the reference, if the repository has it.
    pub(super) digest: Option<String>,
}

/// Resolves a reference, without the host if it begins with one. The caller must check visibility.
pub(super) async fn resolve_image_reference(
    tx: &mut ReadTx,
    reference: &ImageReference,
) -> Result<Option<ImageReferenceMatch>> {
    let mut paths = vec![reference.path.as_str()];
    if let Some((host, rest)) = reference.path.split_once('/') {
        // A host, or an organization's UIDP before a path that is complete without it.
        let is_prefix = host.contains(['.', ':']) || host == "localhost" || host.len() == ROOT_LENGTH;
        paths.extend(is_prefix.then_some(rest));
    }
    for path in paths {
        let Some(repo) = references::repo(tx, path).await? else { continue };
        let tag = references::tag(tx, &repo, &reference.tag).await?;
        let is_there = references::has_manifest(tx, &repo, &reference.digest).await?;
        let digest = is_there.then(|| reference.digest.clone());
        return Ok(Some(ImageReferenceMatch { repo: repo.into(), tag, digest }));
    }
    Ok(None)
}
