//! The disk of the embedded database: its room and its log.

use std::time::Duration;

use bowline_registry::content::{PullSpill, Registry};
use bowline_rpc::Telemetry;
use bowline_store::Db;

use crate::error::StartError;
use crate::options::Options;
use crate::storage::create_private_directory;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Measures the disk, and checkpoints the log of an idle server, every second.
pub(crate) async fn watch(db: Db) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Some(room) = db.room().cloned() {
            // The first reserve of a file system that cannot allocate is written.
            let _ = tokio::task::spawn_blocking(move || room.look()).await;
        }
        db.checkpoint_if_idle().await;
    }
}

/// What `/readyz` says below its first line.
pub(crate) fn state(db: &Db) -> &'static str {
    if db.is_full() { "storage full: only reads, deletions and the operator's commands are served\n" } else { "" }
}

/// The file for pulls that come faster than they can be written. A server that keeps nothing else in a data directory
/// has none, unless one was named.
pub(crate) fn pull_spill(options: &Options) -> Result<Option<PullSpill>, StartError> {
    let most = u64::from(options.pull_spill.unwrap_or(256)) << 20;
    let has_directory = options.database_url.is_none() || options.blob_url.is_none() || options.data_dir.is_some();
    if most == 0 || !has_directory {
        return Ok(None);
    }
    let directory = options.data_dir();
    create_private_directory(&directory)?;
    let opened = PullSpill::open(&directory, most);
    opened.map(Some).map_err(|source| StartError::File { path: directory, source })
}

/// The figures of the disk and of the pulls, with what each is.
pub(crate) const FIGURES: &[(&str, &str)] = &[
    ("bowline_pull_events_waiting", "Pull events that wait in memory"),
    ("bowline_pull_events_spilled_bytes", "Bytes of pull events that wait in the spill file"),
    ("bowline_disk_free_bytes", "Free bytes of the file system of the embedded database"),
    ("bowline_disk_reserve_bytes", "Bytes that are held back for deletions and the operator"),
    ("bowline_disk_full", "1 while writes that need room are refused"),
];
pub(crate) const DROPPED: (&str, &str) = ("bowline_pull_events_dropped_total", "Pull events that were dropped");

/// Pulls that image policies had something against, by what became of them.
pub(crate) const POLICY_PULLS: (&str, &str) =
    ("bowline_image_policy_pulls_total", "Pulls with violated rules of image policies: logged, refused or spared");

/// Brings the figures of the disk and of the pulls up to date.
pub(crate) fn measure(db: &Db, registry: &Registry, telemetry: &Telemetry) {
    let pulls = registry.pull_backlog();
    telemetry.set_total(DROPPED.0, &[], pulls.dropped);
    let gate = registry.gate_counts();
    for (outcome, count) in [("logged", gate.logged), ("refused", gate.refused), ("spared", gate.spared)] {
        telemetry.set_total(POLICY_PULLS.0, &[("outcome", outcome)], count);
    }
    let mut values = vec![pulls.in_memory as f64, pulls.spilled_bytes as f64];
    if let Some(room) = db.room() {
        values.extend([room.free() as f64, room.held() as f64, f64::from(u8::from(room.is_full()))]);
    }
    for (&(name, _), value) in FIGURES.iter().zip(values) {
        telemetry.set(name, &[], value);
    }
}
