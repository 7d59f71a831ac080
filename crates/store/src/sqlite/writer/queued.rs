//! A write that waits for its turn.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::StoreError;
use crate::job::{Job, JobKind};
use crate::sqlite::{OpenTransaction, poll_once};
use crate::tx::WriteTx;

/// A job with what is known of it, and the span to run it in.
pub(super) struct Queued {
    pub(super) job: Box<dyn Job>,
    pub(super) kind: JobKind,
    pub(super) span: tracing::Span,
    /// Whether it is among the writes that wait.
    pub(super) is_waiting: bool,
}

impl Queued {
    /// Takes it from the writes that wait; a job may run twice.
    pub(super) fn begin(&mut self, waiting: &AtomicUsize) {
        if std::mem::take(&mut self.is_waiting) {
            waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Runs the closure. `true`: keep what it did.
    pub(super) fn run(&mut self, tx: &mut WriteTx) -> bool {
        let _span = self.span.enter();
        tx.reset();
        // The closure may be left in any state by a panic; then it does not run again
        // but in a group that was lost for another reason, where it fails again.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _inside = OpenTransaction::begin()?;
            poll_once(self.job.run(tx))
        }));
        let error = match outcome {
            Ok(Ok(false)) => return false,
            Ok(Ok(true)) => match tx.swallowed() {
                None => return true,
                Some(error) => error,
            },
            Ok(Err(error)) => error,
            Err(_panic) => StoreError::bug("a transaction closure panicked"),
        };
        self.job.fail(error);
        false
    }
}
