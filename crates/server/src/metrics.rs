//! Metrics of the process, its listeners, its storage and its background work, gathered when `/metrics` is read.

mod process;
mod storage;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_pipeline::Surface;
use bowline_rpc::{ConnectionCounts, Refusal, Telemetry};
use bowline_store::Load;
use tokio::sync::Mutex;

use crate::disk;
use crate::server::Parts;
use crate::tls::CertificateFiles;
use crate::work_counts::Rounds;

/// Figures of the storage are at most this old.
const STORAGE_EVERY: Duration = Duration::from_secs(15);

/// A name and what it means.
type Described = (&'static str, &'static str);

const BUILD: Described = ("bowline_build_info", "1, with the version as a label");
const KEY_AGE: Described = ("bowline_signing_key_age_seconds", "Seconds since the key that signs tokens began to sign");
const NOT_AFTER: Described =
    ("bowline_tls_certificate_not_after_seconds", "End of the served TLS certificate, in seconds since the Unix epoch");
const RELOAD_FAILURES: Described = (
    "bowline_tls_reload_failures_total",
    "Comparisons, each ten seconds, that found a TLS certificate and key that cannot be used",
);
const OPEN: Described = ("bowline_connections_open", "Open connections by listener");
const REFUSED: Described = ("bowline_connections_refused_total", "Connections refused, by listener and reason");
const RATE_LIMITED: Described =
    ("bowline_rate_limited_total", "Calls that a rate limit refused, by the part of the server");
const WRITES_WAITING: Described =
    ("bowline_write_queue_length", "Writes that wait for the writer of the embedded database");
const WRITE_GROUPS: Described = ("bowline_write_groups_total", "Groups of writes that were committed together");
const WRITES: Described = ("bowline_writes_total", "Writes in these groups");
const POOL: Described = ("bowline_database_connections", "Connections to PostgreSQL by state");
const POOL_WAITING: Described =
    ("bowline_database_connection_waiters", "Transactions that wait for a connection to PostgreSQL");
const FETCHES: Described = ("bowline_upstream_fetches", "Blobs that are on their way from upstreams");
const PACKAGE_FETCHES: Described =
    ("bowline_package_fetches", "Files of packages that are on their way from upstreams, or wait for their turn");
const COLLECTIONS: Described = ("bowline_garbage_collections_total", "Garbage collections by outcome");
const COLLECTED: Described = ("bowline_garbage_removed_total", "What garbage collections removed, by kind");
const COLLECTED_BYTES: Described =
    ("bowline_garbage_removed_bytes_total", "Bytes of blobs and files that garbage collections removed");
const COLLECTED_AT: Described = (
    "bowline_garbage_last_success_timestamp_seconds",
    "End of the last whole garbage collection of this process, in seconds since the Unix epoch",
);
const BACKUPS: Described = ("bowline_backups_total", "Backups that the server made by itself, by outcome");
const BACKED_UP_AT: Described = (
    "bowline_backup_last_success_timestamp_seconds",
    "End of the last backup that this process made by itself, in seconds since the Unix epoch",
);
const RETENTIONS: Described = ("bowline_retention_runs_total", "Rounds of retention by outcome");
const RETIRED: Described = ("bowline_retention_removed_manifests_total", "Manifests that retention removed");
const RETIRED_AT: Described = (
    "bowline_retention_last_success_timestamp_seconds",
    "End of the last whole round of retention of this process, in seconds since the Unix epoch",
);

const GAUGES: &[Described] = &[
    BUILD,
    KEY_AGE,
    NOT_AFTER,
    OPEN,
    WRITES_WAITING,
    POOL,
    POOL_WAITING,
    FETCHES,
    PACKAGE_FETCHES,
    COLLECTED_AT,
    BACKED_UP_AT,
    RETIRED_AT,
];
const COUNTERS: &[Described] = &[
    RELOAD_FAILURES,
    REFUSED,
    RATE_LIMITED,
    WRITE_GROUPS,
    WRITES,
    COLLECTIONS,
    COLLECTED,
    COLLECTED_BYTES,
    BACKUPS,
    RETENTIONS,
    RETIRED,
    disk::DROPPED,
    disk::POLICY_PULLS,
];

/// What `/metrics` is rendered from.
pub(crate) struct Metrics {
    parts: Arc<Parts>,
    telemetry: Arc<Telemetry>,
    certificate: Option<Arc<CertificateFiles>>,
    listeners: [(&'static str, Arc<ConnectionCounts>); 2],
    storage_read_at: Mutex<Option<Instant>>,
}

impl Metrics {
    pub(crate) fn new(
        parts: Arc<Parts>,
        telemetry: Arc<Telemetry>,
        certificate: Option<Arc<CertificateFiles>>,
        listeners: [(&'static str, Arc<ConnectionCounts>); 2],
    ) -> Metrics {
        for &(name, help) in &[GAUGES, process::FIGURES, storage::FIGURES, storage::BLOBS, disk::FIGURES].concat() {
            telemetry.describe(name, help);
        }
        for &(name, help) in COUNTERS {
            telemetry.describe_total(name, help);
        }
        telemetry.set(BUILD.0, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        Metrics { parts, telemetry, certificate, listeners, storage_read_at: Mutex::new(None) }
    }

    /// The text of all metrics. If the storage fails, its last figures stay.
    pub(crate) async fn render(&self) -> String {
        process::measure(&self.telemetry);
        self.measure_keys();
        self.measure_connections();
        self.measure_load();
        self.measure_background_work();
        self.telemetry.set(FETCHES.0, &[], self.parts.distribution.fetches_under_way() as f64);
        self.telemetry.set(PACKAGE_FETCHES.0, &[], self.parts.package_hosts.fetches_under_way() as f64);
        disk::measure(&self.parts.storage.db, &self.parts.registry, &self.telemetry);
        self.measure_storage().await;
        self.telemetry.handle().render()
    }

    fn measure_keys(&self) {
        let now = self.parts.clock.now().div_euclid(1_000_000);
        let keys = self.parts.authenticator.keys();
        let signing =
            keys.ring.keys().iter().filter(|key| key.signs_from <= now && key.retired_at.is_none_or(|at| now < at));
        if let Some(since) = signing.map(|key| key.signs_from).max() {
            self.telemetry.set(KEY_AGE.0, &[], (now - since) as f64);
        }
        let Some(certificate) = &self.certificate else { return };
        self.telemetry.set_total(RELOAD_FAILURES.0, &[], certificate.failures());
        if let Some(end) = certificate.not_after() {
            self.telemetry.set(NOT_AFTER.0, &[], end as f64);
        }
    }

    fn measure_connections(&self) {
        for (listener, counts) in &self.listeners {
            self.telemetry.set(OPEN.0, &[("listener", listener)], counts.open() as f64);
            for why in Refusal::ALL {
                let labels = [("listener", *listener), ("reason", why.label())];
                self.telemetry.set_total(REFUSED.0, &labels, counts.refused(why));
            }
        }
        let refusals = self.parts.pipeline.limits.refusals();
        for surface in Surface::ALL {
            self.telemetry.set_total(RATE_LIMITED.0, &[("surface", surface.label())], refusals.of(surface));
        }
    }

    fn measure_load(&self) {
        match self.parts.storage.db.load() {
            Load::Sqlite(writer) => {
                self.telemetry.set(WRITES_WAITING.0, &[], writer.waiting as f64);
                self.telemetry.set_total(WRITE_GROUPS.0, &[], writer.groups);
                self.telemetry.set_total(WRITES.0, &[], writer.writes);
            }
            Load::Postgres(pool) => {
                self.telemetry.set(POOL.0, &[("state", "used")], pool.used as f64);
                self.telemetry.set(POOL.0, &[("state", "idle")], pool.idle as f64);
                self.telemetry.set(POOL_WAITING.0, &[], pool.waiting as f64);
            }
        }
    }

    fn measure_background_work(&self) {
        let counts = self.parts.work_counts.lock();
        self.measure_rounds(COLLECTIONS, COLLECTED_AT, counts.collections);
        let collected = counts.collected;
        let kinds = [
            ("links", collected.links),
            ("manifests", collected.manifests),
            ("blobs", collected.blobs),
            ("files", collected.files),
            ("uploads", collected.uploads),
        ];
        for (kind, removed) in kinds {
            self.telemetry.set_total(COLLECTED.0, &[("kind", kind)], removed);
        }
        self.telemetry.set_total(COLLECTED_BYTES.0, &[], collected.bytes);
        if self.parts.backups.is_some() {
            self.measure_rounds(BACKUPS, BACKED_UP_AT, counts.backups);
        }
        self.measure_rounds(RETENTIONS, RETIRED_AT, counts.retentions);
        self.telemetry.set_total(RETIRED.0, &[], counts.retired);
        if let Some(blobs) = counts.blobs {
            storage::set_blobs(&self.telemetry, blobs);
        }
    }

    fn measure_rounds(&self, runs: Described, last_success: Described, rounds: Rounds) {
        self.telemetry.set_total(runs.0, &[("outcome", "success")], rounds.succeeded);
        self.telemetry.set_total(runs.0, &[("outcome", "failure")], rounds.failed);
        if let Some(at) = rounds.last_success {
            self.telemetry.set(last_success.0, &[], at.div_euclid(1_000_000) as f64);
        }
    }

    async fn measure_storage(&self) {
        let mut read_at = self.storage_read_at.lock().await;
        if read_at.is_some_and(|at| at.elapsed() < STORAGE_EVERY) {
            return;
        }
        match storage::measure(&self.parts.storage.db, &self.telemetry).await {
            Ok(()) => *read_at = Some(Instant::now()),
            Err(error) => tracing::warn!(%error, "metrics of the storage could not be read"),
        }
    }
}
