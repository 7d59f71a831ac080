//! Verification of the registry: reads every blob and compares its digest.

use bowline_content::{Content, Digest};
use bowline_core::Result;
use bowline_registry::content::garbage::{self, BlobRow};
use bowline_store::Db;

use crate::garbage::{digest, refused};

/// How many there were, and which are bad.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Blobs that were read.
    pub blobs: u64,
    /// Their bytes, as the database has them.
    pub bytes: u64,
    /// Those that are not what they should be.
    pub bad: Vec<Bad>,
}

/// A blob that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    pub digest: String,
    /// The digest of the bytes that are there; absent if there are none.
    pub found: Option<String>,
    /// Where they are, or should be: a file, or an object.
    pub place: String,
    /// UIDPs and names of repositories that show it, a hundred at most.
    pub repositories: Vec<String>,
}

/// Reads every blob. After each, `progress` is called with the numbers of blobs and bytes that were read.
///
/// # Errors
/// The database or the disk refuses.
pub async fn verify(db: &Db, content: &Content, mut progress: impl FnMut(u64, u64)) -> Result<Verified> {
    let mut verified = Verified::default();
    let mut after = String::new();
    loop {
        let page = garbage::blobs(db, &after).await?;
        let Some(last) = page.last() else { return Ok(verified) };
        after.clone_from(&last.digest);
        for row in page {
            verified.blobs += 1;
            verified.bytes += row.size;
            verified.bad.extend(bad(db, content, row).await?);
            progress(verified.blobs, verified.bytes);
        }
    }
}

/// What is wrong with a blob. Another push may bring its bytes again meanwhile, and a collection may take it away.
async fn bad(db: &Db, content: &Content, mut row: BlobRow) -> Result<Option<Bad>> {
    let wanted = digest(&row.digest)?;
    loop {
        let found = content.rehash(&wanted, &row.upload).await.map_err(refused)?;
        if found.as_ref() == Some(&wanted) {
            return Ok(None);
        }
        match garbage::blob(db, &row.digest).await? {
            None => return Ok(None),
            Some(now) if now.upload != row.upload => row = now,
            Some(_) => {
                let found = found.as_ref().map(Digest::to_string);
                let repositories = garbage::holders(db, &row.digest).await?;
                let place = content.shown(&wanted, &row.upload);
                return Ok(Some(Bad { digest: row.digest, found, place, repositories }));
            }
        }
    }
}
