//! Number and bytes of the registry's blobs, for the metrics.
//!
//! A sum over a large table takes seconds, so it is taken page by page in the background, in a fiftieth of one
//! connection's time at most: a store of a thousand blobs is counted every 15 seconds, one of a million every few
//! minutes. Every process counts for itself, because each of several replicas adds and removes blobs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_core::{Error, Micros, Result};
use bowline_store::{Db, Value};

use crate::background::cause;
use crate::server::Parts;
use crate::task_board::TaskReport;

/// Rows of one page.
const PAGE: i64 = 1000;
/// Shortest time between two counts.
const REST: Duration = Duration::from_secs(15);
/// Pause after a count, as a multiple of the count's duration.
const REST_FACTOR: u32 = 50;

/// Sums over all blobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlobTotals {
    pub(crate) count: i64,
    pub(crate) bytes: i64,
    /// When the count ended.
    pub(crate) counted_at: Micros,
}

/// Counts periodically, without an end.
pub(crate) async fn follow(parts: Arc<Parts>, report: TaskReport) {
    loop {
        let begun = Instant::now();
        report.begin();
        let counted = count(&parts.storage.db, PAGE).await;
        report.end(counted.as_ref().err());
        match counted {
            Ok(totals) => {
                parts.work_counts.lock().blobs = Some(BlobTotals { counted_at: parts.clock.now(), ..totals });
            }
            Err(error) => {
                tracing::warn!(cause = %cause(&error), "blobs not counted for the metrics; trying again later");
            }
        }
        report.wait(REST.max(begun.elapsed().saturating_mul(REST_FACTOR))).await;
    }
}

/// Pages are transactions of their own: what changes meanwhile is in the sums or not.
async fn count(db: &Db, page: i64) -> Result<BlobTotals> {
    let mut totals = BlobTotals::default();
    let mut after = String::new();
    loop {
        let begin = after.clone();
        let counted = db.read(move |tx| {
            Box::pin(async move {
                let sql = "SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT), coalesce(max(digest), '')
                           FROM (SELECT digest, size FROM blobs WHERE digest > $1 ORDER BY digest LIMIT $2) AS page";
                let params = [Value::from(&begin), Value::Int(page)];
                tx.query_opt(sql, &params, |row| Ok::<_, Error>((row.int(0)?, row.int(1)?, row.text(2)?))).await
            })
        });
        let (count, bytes, last) = counted.await?.unwrap_or_default();
        totals.count += count;
        totals.bytes += bytes;
        if count < page {
            return Ok(totals);
        }
        after = last;
        // Reads of the embedded engine run on this thread.
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use bowline_store::{MIGRATIONS, SqliteOptions};

    use super::*;

    #[tokio::test]
    async fn blobs_are_counted_page_by_page_to_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open_sqlite(&directory.path().join("db"), SqliteOptions::default()).await.unwrap();
        db.migrate(MIGRATIONS).await.unwrap();
        for (before, blobs) in [(0, 0), (0, 5), (5, 6), (6, 9)] {
            let added = db.write(move |tx| {
                Box::pin(async move {
                    for number in before..blobs {
                        let sql = "INSERT INTO blobs (digest, size, created_at, upload) VALUES ($1, $2, 0, $1)";
                        tx.execute(sql, &[Value::from(&format!("sha256:{number}")), Value::Int(1 << number)]).await?;
                    }
                    Ok::<_, Error>(())
                })
            });
            added.await.unwrap();
            let wanted = BlobTotals { count: blobs, bytes: (1 << blobs) - 1, counted_at: 0 };
            assert_eq!(count(&db, 3).await.unwrap(), wanted);
        }
    }
}
