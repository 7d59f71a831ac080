//! BlobVerification of the registry: reads every blob and compares its digest.

use bowline_content::{Content, Digest};
use bowline_core::Result;
use bowline_registry::content::garbage::{self, BlobRow};
use bowline_store::Db;

use crate::garbage::{digest, refused};

/// Result of a verification.
#[derive(Clone, Debug, Default)]
pub struct BlobVerification {
    /// Blobs that were read.
    pub blobs: u64,
    /// Their bytes, as the database has them.
    pub bytes: u64,
    /// The blobs whose bytes are missing or do not match.
    pub damaged: Vec<DamagedBlob>,
}

/// A blob whose bytes are missing or do not match its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedBlob {
    pub digest: String,
    /// The digest of the stored bytes; absent if there are none.
    pub actual: Option<String>,
    /// The file or object that has the bytes, or should have them.
    pub location: String,
    /// UIDPs and names of repositories that show it, a hundred at most.
    pub repositories: Vec<String>,
}

/// Reads every blob. After each, `progress` is called with the numbers of blobs and bytes that were read.
///
/// # Errors
/// The database or the storage is unavailable.
pub async fn verify(db: &Db, content: &Content, mut progress: impl FnMut(u64, u64)) -> Result<BlobVerification> {
    let mut verified = BlobVerification::default();
    let mut after = String::new();
    loop {
        let page = garbage::blobs(db, &after).await?;
        let Some(last) = page.last() else { return Ok(verified) };
        after.clone_from(&last.digest);
        for row in page {
            verified.blobs += 1;
            verified.bytes += row.size;
            verified.damaged.extend(damage(db, content, row).await?);
            progress(verified.blobs, verified.bytes);
        }
    }
}

/// The damage of a blob, if any. Another push may bring its bytes again meanwhile, and a collection may take it away.
async fn damage(db: &Db, content: &Content, mut row: BlobRow) -> Result<Option<DamagedBlob>> {
    let expected = digest(&row.digest)?;
    loop {
        let actual = content.rehash(&expected, &row.upload).await.map_err(refused)?;
        if actual.as_ref() == Some(&expected) {
            return Ok(None);
        }
        match garbage::blob(db, &row.digest).await? {
            None => return Ok(None),
            Some(now) if now.upload != row.upload => row = now,
            Some(_) => {
                let actual = actual.as_ref().map(Digest::to_string);
                let repositories = garbage::holders(db, &row.digest).await?;
                let location = content.shown(&expected, &row.upload);
                return Ok(Some(DamagedBlob { digest: row.digest, actual, location, repositories }));
            }
        }
    }
}
