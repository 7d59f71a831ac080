//! Image references as people paste them, followed to what they name. The caller must check visibility.

use bowline_core::{Result, Uidp};
use bowline_store::ReadTx;

use super::paths::{self, Name};
use super::{images, tags};

/// The repository of this path: organization, groups and repository, by name or UIDP.
///
/// # Errors
/// Those of the statements.
pub async fn repo(tx: &mut ReadTx, path: &str) -> Result<Option<Uidp>> {
    let Some(name) = Name::parse(path) else { return Ok(None) };
    Ok(paths::resolve(tx, &name).await?.and_then(|path| path.repo))
}

/// UIDP of the tag of this name.
///
/// # Errors
/// Those of the statements.
pub async fn tag(tx: &mut ReadTx, repo: &Uidp, name: &str) -> Result<Option<String>> {
    if name.is_empty() {
        return Ok(None);
    }
    Ok(tags::find_by_name(tx, repo, name).await?.map(|tag| tag.uid))
}

/// Whether the repository has a manifest of this digest.
///
/// # Errors
/// Those of the statements.
pub async fn has_manifest(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<bool> {
    Ok(!digest.is_empty() && images::find(tx, repo, digest).await?.is_some())
}
