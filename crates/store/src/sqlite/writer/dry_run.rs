//! Dry runs on the one writer: they run while no write waits.
//!
//! A write that arrives interrupts the dry run under way, which is rolled back and begins again later. So a write waits
//! for a thousand steps of SQLite's machine at most, some ten microseconds. Where writes leave no gap that is wide enough,
//! a dry run gets a slice of the writer after a while, three times at most, so that it ends at all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Queued, Thread};
use crate::dry_run::{Budget, DryRunLimits, Ended, GivesWay};
use crate::error::StoreError;
use crate::job::Flush;
use crate::tx::{Inner, WriteTx};

/// How long a dry run gives way to every write.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long it may hold the writer up after that.
const SLICE: Duration = Duration::from_millis(20);
/// How often that may be, each time after it gave way for as long again: the server itself writes several times a second.
pub(super) const SLICES: u8 = 3;
/// Steps of SQLite's machine between two checks of the queue.
const STEPS: i32 = 1000;

/// A dry run that waits for its turn.
pub(super) struct DryRun {
    pub(super) queued: Queued,
    pub(super) limits: DryRunLimits,
    /// Since when it gives way to every write.
    pub(super) since: Instant,
    /// Slices that are left to it.
    pub(super) slices: u8,
}

impl DryRun {
    /// Whether it has given way for long enough.
    pub(super) fn is_due(&self) -> bool {
        self.since.elapsed() >= PATIENCE
    }
}

impl Thread {
    /// Runs it and sends its result; returns it if it yielded to a write and must run again.
    pub(super) fn dry_run(&mut self, mut run: DryRun) -> Option<DryRun> {
        let is_due = run.is_due();
        let from = Instant::now() + if is_due { SLICE } else { Duration::ZERO };
        let budget = Budget::new(run.limits, Some(GivesWay { waiting: Arc::clone(&self.file.waiting), from }));
        match self.begin(Flush::AtCommit) {
            Ok(tx) => self.run_and_roll_back(tx, &mut run.queued, &budget),
            Err(error) => run.queued.job.fail(error),
        }
        match budget.ended() {
            None => {}
            Some(Ended::GaveWay) if !is_due => return Some(run),
            Some(Ended::GaveWay) if run.slices > 1 => {
                return Some(DryRun { since: Instant::now(), slices: run.slices - 1, ..run });
            }
            Some(_) => run.queued.job.fail(budget.error()),
        }
        run.queued.job.answer();
        None
    }

    fn run_and_roll_back(&mut self, mut tx: WriteTx, queued: &mut Queued, budget: &Arc<Budget>) {
        tx.limit(Some(budget.clone()));
        let watched = watch(&mut tx, Some(budget.clone()));
        match watched {
            Ok(()) => {
                queued.run(&mut tx);
            }
            Err(error) => queued.job.fail(error),
        }
        tx.limit(None);
        let cause = tx.failure().map(StoreError::replicate);
        // A connection that stays watched would lose writes, so the next transaction opens another one.
        if watch(&mut tx, None).is_ok() {
            self.put_back(tx, cause.as_ref());
        }
    }
}

/// Has the connection's statements interrupted when the budget is over.
fn watch(tx: &mut WriteTx, budget: Option<Arc<Budget>>) -> Result<(), StoreError> {
    let Inner::Sqlite(conn) = &mut tx.inner else { return Ok(()) };
    let is_over = budget.map(|budget| move || budget.is_over());
    Ok(conn.conn.progress_handler(STEPS, is_over)?)
}
