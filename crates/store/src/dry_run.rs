//! Transactions that are always rolled back: the effects of a write that is not committed.
//!
//! The embedded engine has one writer. A dry run uses it while no write waits, and yields to the first that does:
//! see `sqlite/writer/dry_run.rs`. On PostgreSQL it is a transaction like others, with short limits for what it locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::db::{Backend, Db};
use crate::error::{ErrorKind, StoreError};
use crate::job::TypedJob;
use crate::tx::WriteTx;

/// What one dry run may use.
#[derive(Clone, Copy, Debug)]
pub struct DryRunLimits {
    /// Rows that its statements return and change, together.
    pub rows: u64,
    /// Time that its transaction may be open.
    pub time: Duration,
}

impl Db {
    /// Runs `f` in a transaction that sees its own writes and is rolled back, whatever `f` returns. `f` may run more than
    /// once.
    ///
    /// # Errors
    /// [`ErrorKind::OverBudget`] past the limits, [`ErrorKind::GaveWay`] where writes leave it no turn that is long enough.
    pub async fn dry_run<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        limits: DryRunLimits,
        f: impl for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, E>> + Send + 'static,
    ) -> Result<T, E> {
        let (reply, outcome) = oneshot::channel();
        let job = Box::new(TypedJob::new(f, reply));
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.dry_run(limits, job).await?,
            Backend::Postgres(postgres) => postgres.dry_run(limits, job).await?,
        }
        outcome.await.map_err(|_| StoreError::unavailable("the database is closed"))?
    }
}

/// Why a dry run was ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ended {
    GaveWay = 1,
    Time = 2,
    Rows = 3,
}

/// Writes that wait, and since when a dry run ends for them.
pub(crate) struct GivesWay {
    pub(crate) waiting: Arc<AtomicUsize>,
    pub(crate) from: Instant,
}

/// What is left to a dry run that is under way.
pub(crate) struct Budget {
    limits: DryRunLimits,
    until: Instant,
    rows: AtomicU64,
    gives_way: Option<GivesWay>,
    ended: AtomicU8,
}

impl Budget {
    pub(crate) fn new(limits: DryRunLimits, gives_way: Option<GivesWay>) -> Arc<Budget> {
        let until = Instant::now() + limits.time;
        Arc::new(Budget { limits, until, rows: AtomicU64::new(0), gives_way, ended: AtomicU8::new(0) })
    }

    /// Whether the statement under way is to be interrupted.
    pub(crate) fn is_over(&self) -> bool {
        let now = Instant::now();
        let is_due = |way: &GivesWay| way.waiting.load(Ordering::Relaxed) > 0 && now >= way.from;
        if self.gives_way.as_ref().is_some_and(is_due) {
            self.end(Ended::GaveWay);
        } else if now >= self.until {
            self.end(Ended::Time);
        }
        self.ended().is_some()
    }

    pub(crate) fn require_time(&self) -> Result<(), StoreError> {
        if self.is_over() { Err(self.error()) } else { Ok(()) }
    }

    pub(crate) fn spend(&self, rows: u64) -> Result<(), StoreError> {
        if self.rows.fetch_add(rows, Ordering::Relaxed).saturating_add(rows) <= self.limits.rows {
            return Ok(());
        }
        self.end(Ended::Rows);
        Err(self.error())
    }

    /// Ends it for this reason, unless it has ended.
    pub(crate) fn end(&self, reason: Ended) {
        let _ = self.ended.compare_exchange(0, reason as u8, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        let reasons = [Ended::GaveWay, Ended::Time, Ended::Rows];
        let ended = self.ended.load(Ordering::Relaxed);
        reasons.into_iter().find(|reason| *reason as u8 == ended)
    }

    /// The error of a dry run that was ended.
    pub(crate) fn error(&self) -> StoreError {
        let rows = self.rows.load(Ordering::Relaxed);
        let (time, most) = (self.limits.time.as_millis(), self.limits.rows);
        let text = match self.ended() {
            Some(Ended::GaveWay) | None => {
                let text = format!(
                    "other writes left the preview too little time, after {rows} rows; try again, or split the call"
                );
                return StoreError::new(ErrorKind::GaveWay, text);
            }
            Some(Ended::Time) => format!(
                "a preview may take {time} ms of the database, which were over after {rows} rows; split the call"
            ),
            Some(Ended::Rows) => {
                format!(
                    "a preview may read and change {most} rows together, and this one came to {rows}; split the call"
                )
            }
        };
        StoreError::new(ErrorKind::OverBudget, text)
    }
}
