use std::sync::{Mutex, MutexGuard, PoisonError};

use bowline_core::Micros;

use crate::blob_totals::BlobTotals;
use crate::garbage::Collected;

/// Counts of this process's background work since its start, for the metrics.
#[derive(Debug, Default)]
pub struct WorkCounts(Mutex<Counts>);

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) collections: Rounds,
    pub(crate) collected: Collected,
    pub(crate) backups: Rounds,
    pub(crate) retentions: Rounds,
    /// Manifests that retention removed.
    pub(crate) retired: u64,
    /// Absent until they were counted once.
    pub(crate) blobs: Option<BlobTotals>,
}

/// Rounds of one kind of work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) last_success: Option<Micros>,
}

impl WorkCounts {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rounds {
    pub(crate) fn end(&mut self, is_success: bool, now: Micros) {
        if is_success {
            self.succeeded += 1;
            self.last_success = Some(now);
        } else {
            self.failed += 1;
        }
    }
}
