//! Sees to it that the disk has the bytes of small blobs: see [`bowline_services::content::unsettled`].

use std::sync::Arc;
use std::time::Duration;

use bowline_content::{Content, ContentError};
use bowline_core::Result;
use bowline_services::content::unsettled::{self, Unsettled};
use bowline_store::Db;

use crate::background::cause;
use crate::garbage::{digest, refused};
use crate::server::Parts;

/// Short enough for few bytes to be in two places, and long enough for many blobs to share a flush.
const SETTLE_EVERY: Duration = Duration::from_secs(2);

/// Settles what was pushed, all the time. After a failure of the disk nothing that it seems to have is believed.
pub(crate) async fn run(parts: Arc<Parts>) {
    let (db, content) = (&parts.storage.db, &parts.content);
    let mut trust = true;
    loop {
        tokio::time::sleep(SETTLE_EVERY).await;
        let settled = if trust { settle(db, content).await } else { restore(db, content, false).await.map(|_| ()) };
        trust = settled.is_ok();
        if let Err(error) = settled {
            let cause = cause(&error);
            tracing::warn!(cause, "small blobs were not flushed; the database keeps their bytes, trying again later");
        }
    }
}

async fn settle(db: &Db, content: &Content) -> Result<()> {
    loop {
        let uploads = unsettled::waiting(db).await?;
        if uploads.is_empty() {
            content.none_wait();
            return Ok(());
        }
        content.settle().await.map_err(refused)?;
        unsettled::forget(db, &uploads).await?;
        if uploads.len() < unsettled::MOST_AT_ONCE {
            return Ok(());
        }
    }
}

/// Gives small blobs their bytes again that a failing machine has lost; how many that were. `trust`: what can be read is
/// on the disk.
///
/// # Errors
/// The database or the disk refuses.
pub(crate) async fn restore(db: &Db, content: &Content, trust: bool) -> Result<u64> {
    let (mut after, mut there, mut restored) = (String::new(), Vec::new(), 0);
    loop {
        let page = unsettled::page(db, &after).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.upload);
        for Unsettled { upload, digest: of, bytes } in page {
            let outcome = match bytes {
                None => Ok(false),
                Some(bytes) => content.restore(&digest(&of)?, &upload, bytes.into(), trust).await,
            };
            match outcome {
                Ok(is_new) => restored += u64::from(is_new),
                // Whether the file is whole all the same, a verification tells.
                Err(ContentError::Mismatch { found }) => {
                    tracing::error!(blob = of, %found, "the database holds other bytes than this blob's: they stay there");
                    continue;
                }
                Err(error) => return Err(refused(error)),
            }
            there.push(upload);
        }
    }
    if !there.is_empty() {
        content.settle().await.map_err(refused)?;
        unsettled::forget(db, &there).await?;
    }
    Ok(restored)
}
