//! Bytes of small blobs that the disk may not have yet.
//!
//! A push of a small blob waits for the disk once: its bytes are committed with its row. They also have their place
//! already, where pulls read them, and rows go from here once the disk has flushed what had its place when they were
//! read. A machine that fails before gets the bytes back from here.

use bowline_core::{Error, Result};
use bowline_store::{Db, Row, Value, WriteTx};

use super::BroughtBlob;

/// Blobs that are settled together at most.
pub const MOST_AT_ONCE: usize = 4096;
/// Rows that one transaction deletes.
const AT_ONCE: usize = 256;
/// Rows whose bytes are held at once.
const HELD_AT_ONCE: i64 = 64;

/// A small blob that a failing machine may have lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// What brought its bytes.
    pub upload: String,
    /// Its digest.
    pub digest: String,
    /// The bytes; absent if the blob is gone, or has other ones by now.
    pub bytes: Option<Vec<u8>>,
}

/// Commits bytes with the row of their blob.
pub(super) async fn keep(tx: &mut WriteTx, digest: &str, blob: &BroughtBlob) -> Result<()> {
    let Some(bytes) = &blob.unsettled else { return Ok(()) };
    let sql = "INSERT INTO unsettled_blobs (upload, digest, bytes) VALUES ($1, $2, $3)";
    tx.execute(sql, &[Value::from(&blob.upload), Value::from(digest), Value::Bytes(bytes)]).await?;
    Ok(())
}

/// What brought the blobs that are unsettled now, [`MOST_AT_ONCE`] at most. They may be forgotten once everything was
/// flushed that has its place when this returns.
///
/// # Errors
/// The storage refuses.
pub async fn waiting(db: &Db) -> Result<Vec<String>> {
    let read = db.read(|tx| {
        Box::pin(async move {
            let sql = "SELECT upload FROM unsettled_blobs LIMIT $1";
            tx.query(sql, &[Value::Int(MOST_AT_ONCE as i64)], |row| row.text(0).map_err(Error::from)).await
        })
    });
    read.await
}

/// Forgets blobs that are settled. A failing machine may bring them back: then they are settled anew.
///
/// # Errors
/// The storage refuses.
pub async fn forget(db: &Db, uploads: &[String]) -> Result<()> {
    for part in uploads.chunks(AT_ONCE) {
        let part = part.to_vec();
        let written = db.write_scratch(move |tx| {
            let part = part.clone();
            Box::pin(async move {
                for upload in &part {
                    tx.execute("DELETE FROM unsettled_blobs WHERE upload = $1", &[Value::from(upload)]).await?;
                }
                Ok::<_, Error>(())
            })
        });
        written.await?;
    }
    Ok(())
}

/// Unsettled blobs with their bytes after that upload, in order, a few at a time; none at the end.
///
/// # Errors
/// The storage refuses.
pub async fn page(db: &Db, after: &str) -> Result<Vec<Unsettled>> {
    let after = after.to_owned();
    let read = db.read(move |tx| {
        let after = after.clone();
        Box::pin(async move {
            let sql = "SELECT u.upload, u.digest, CASE WHEN b.digest IS NULL THEN NULL ELSE u.bytes END
                       FROM unsettled_blobs u LEFT JOIN blobs b ON b.digest = u.digest AND b.upload = u.upload
                       WHERE u.upload > $1 ORDER BY u.upload LIMIT $2";
            let params = [Value::from(&after), Value::Int(HELD_AT_ONCE)];
            let read = |row: &Row<'_>| {
                Ok::<_, Error>(Unsettled { upload: row.text(0)?, digest: row.text(1)?, bytes: row.opt_bytes(2)? })
            };
            tx.query(sql, &params, read).await
        })
    });
    read.await
}
