use bowline_core::{Error, Result};
use bowline_rpc::Telemetry;
use bowline_store::{Db, Engine, ReadTx};

use super::Described;
use crate::blob_totals::BlobTotals;

/// Maximum number of rows that one figure counts.
const MAX_COUNTED: i64 = 10_000;

/// In the order of [`read`].
pub(super) const FIGURES: &[Described] = &[
    ("bowline_database_bytes", "Size of the database"),
    ("bowline_delivery_waiting_events", "Events by which the slowest subscription is behind"),
    ("bowline_delivery_failing_subscriptions", "Subscriptions whose last attempt failed, counted up to 10000"),
    ("bowline_delivery_dead_letters", "Events that a subscription did not take for a day, counted up to 10000"),
    ("bowline_audit_unnumbered_rows", "Rows of the audit log that wait for their number, counted up to 10000"),
];

/// In the order of [`set_blobs`].
pub(super) const BLOBS: &[Described] = &[
    ("bowline_blobs", "Blobs of the container registry, when they were last counted"),
    ("bowline_blob_bytes", "Bytes of these blobs"),
    ("bowline_blobs_counted_timestamp_seconds", "When the blobs were last counted, in seconds since the Unix epoch"),
];

pub(super) fn set_blobs(telemetry: &Telemetry, totals: BlobTotals) {
    let values = [totals.count, totals.bytes, totals.counted_at.div_euclid(1_000_000)];
    for (&(name, _), value) in BLOBS.iter().zip(values) {
        telemetry.set(name, &[], value as f64);
    }
}

pub(super) async fn measure(db: &Db, telemetry: &Telemetry) -> Result<()> {
    let values = db.read(|tx| Box::pin(read(tx))).await?;
    for (&(name, _), value) in FIGURES.iter().zip(values) {
        telemetry.set(name, &[], value as f64);
    }
    Ok(())
}

/// Nothing here reads a table of the registry or of the audit log to its end.
async fn read(tx: &mut ReadTx) -> Result<[i64; 5]> {
    let size = match tx.engine() {
        Engine::Sqlite => "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
        Engine::Postgres => "SELECT pg_database_size(current_database())",
    };
    let waiting = "SELECT coalesce(max(seq), 0)
        - coalesce((SELECT min(cursor) FROM subscription_cursors), coalesce(max(seq), 0)) FROM outbox";
    let up_to = |rows: &str| format!("SELECT count(*) FROM (SELECT 1 FROM {rows} LIMIT {MAX_COUNTED}) AS counted");
    let failing = up_to("subscription_cursors WHERE attempts > 0");
    let dead = up_to("dead_letters");
    // The newest rows alone: older ones have their numbers.
    let unnumbered = up_to(&format!(
        "audit WHERE seq IS NULL AND id > coalesce(
           (SELECT id FROM audit WHERE seq IS NOT NULL ORDER BY seq DESC LIMIT 1), 0) - {MAX_COUNTED}"
    ));
    Ok([
        number(tx, size).await?,
        number(tx, waiting).await?,
        number(tx, &failing).await?,
        number(tx, &dead).await?,
        number(tx, &unnumbered).await?,
    ])
}

async fn number(tx: &mut ReadTx, sql: &str) -> Result<i64> {
    let found = tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await?;
    Ok(found.unwrap_or_default())
}
