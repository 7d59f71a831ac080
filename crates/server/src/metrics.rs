//! Metrics of the process, its storage and its background work, gathered when `/metrics` is read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_core::{Error, Result};
use bowline_rpc::Telemetry;
use bowline_store::{Db, Engine, ReadTx};
use tokio::sync::Mutex;

use crate::disk;
use crate::server::Parts;

/// Figures of the storage are at most this old: some are sums over whole tables.
const STORAGE_EVERY: Duration = Duration::from_secs(15);
/// Unnumbered rows of the audit log that are counted.
const MOST_UNNUMBERED: i64 = 10_000;

/// What `/metrics` is answered from.
pub(crate) struct Metrics {
    parts: Arc<Parts>,
    telemetry: Arc<Telemetry>,
    storage_read_at: Mutex<Option<Instant>>,
}

impl Metrics {
    pub(crate) fn new(parts: Arc<Parts>, telemetry: Arc<Telemetry>) -> Metrics {
        telemetry.describe("bowline_build_info", "1, with the version as a label");
        for &(name, help) in PROCESS.iter().chain(STORAGE).chain(disk::FIGURES).chain([&KEY_AGE]) {
            telemetry.describe(name, help);
        }
        telemetry.set("bowline_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        Metrics { parts, telemetry, storage_read_at: Mutex::new(None) }
    }

    /// The text of all metrics. If the storage fails, its last figures stay.
    pub(crate) async fn render(&self) -> String {
        let process = [resident_bytes(), open_descriptors(), most_descriptors()];
        for (&(name, _), value) in PROCESS.iter().zip(process) {
            if let Some(value) = value {
                self.telemetry.set(name, &[], value);
            }
        }
        let now = self.parts.clock.now().div_euclid(1_000_000);
        let keys = self.parts.authenticator.keys();
        let signing =
            keys.ring.keys().iter().filter(|key| key.signs_from <= now && key.retired_at.is_none_or(|at| now < at));
        if let Some(since) = signing.map(|key| key.signs_from).max() {
            self.telemetry.set(KEY_AGE.0, &[], (now - since) as f64);
        }
        drop(keys);
        disk::measure(&self.parts.storage.db, &self.parts.registry, &self.telemetry);
        self.read_storage().await;
        self.telemetry.handle().render()
    }

    async fn read_storage(&self) {
        let mut read_at = self.storage_read_at.lock().await;
        if read_at.is_some_and(|at| at.elapsed() < STORAGE_EVERY) {
            return;
        }
        match storage(&self.parts.storage.db).await {
            Ok(values) => {
                for (&(name, _), value) in STORAGE.iter().zip(values) {
                    self.telemetry.set(name, &[], value as f64);
                }
                *read_at = Some(Instant::now());
            }
            Err(error) => tracing::warn!(%error, "metrics of the storage could not be read"),
        }
    }
}

type Described = (&'static str, &'static str);

const KEY_AGE: Described = ("bowline_signing_key_age_seconds", "Seconds since the key that signs tokens began to sign");

const PROCESS: &[Described] = &[
    ("process_resident_memory_bytes", "Resident memory of the process"),
    ("process_open_fds", "Open file descriptors"),
    ("process_max_fds", "Limit of open file descriptors"),
];

/// In the order of [`storage`].
const STORAGE: &[Described] = &[
    ("bowline_database_bytes", "Size of the database"),
    ("bowline_blobs", "Blobs of the container registry"),
    ("bowline_blob_bytes", "Bytes of these blobs"),
    ("bowline_delivery_waiting_events", "Events by which the slowest subscription is behind"),
    ("bowline_delivery_failing_subscriptions", "Subscriptions whose last attempt failed"),
    ("bowline_delivery_dead_letters", "Events that a subscription did not take for a day"),
    ("bowline_audit_unnumbered_rows", "Rows of the audit log that wait for their number, counted up to 10000"),
];

async fn storage(db: &Db) -> Result<[i64; 7]> {
    db.read(|tx| {
        Box::pin(async move {
            let size = match tx.engine() {
                Engine::Sqlite => "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
                Engine::Postgres => "SELECT pg_database_size(current_database())",
            };
            let waiting = "SELECT coalesce(max(seq), 0)
                - coalesce((SELECT min(cursor) FROM subscription_cursors), coalesce(max(seq), 0)) FROM outbox";
            // The newest rows alone: older ones have their numbers.
            let unnumbered = format!(
                "SELECT count(*) FROM (SELECT 1 FROM audit WHERE seq IS NULL AND id > coalesce(
                   (SELECT id FROM audit WHERE seq IS NOT NULL ORDER BY seq DESC LIMIT 1), 0) - {MOST_UNNUMBERED}
                 LIMIT {MOST_UNNUMBERED}) AS unnumbered"
            );
            Ok([
                number(tx, size).await?,
                number(tx, "SELECT count(*) FROM blobs").await?,
                number(tx, "SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM blobs").await?,
                number(tx, waiting).await?,
                number(tx, "SELECT count(*) FROM subscription_cursors WHERE attempts > 0").await?,
                number(tx, "SELECT count(*) FROM dead_letters").await?,
                number(tx, &unnumbered).await?,
            ])
        })
    })
    .await
}

async fn number(tx: &mut ReadTx, sql: &str) -> Result<i64> {
    let found = tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await?;
    Ok(found.unwrap_or_default())
}

/// Absent where the system has no `/proc`.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kibibytes| kibibytes * 1024.0)
}

fn open_descriptors() -> Option<f64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

fn most_descriptors() -> Option<f64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
