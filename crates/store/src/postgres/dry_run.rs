//! Dry runs on PostgreSQL: a transaction that is rolled back, whose locks others wait for only briefly.

use super::{Attempt, BEGIN_LEASED, Postgres, backoff};
use crate::dry_run::{Budget, DryRunLimits, Ended};
use crate::error::{ErrorKind, StoreError};
use crate::job::Job;
use crate::tx::{Inner, WriteTx};

/// How often it runs where other transactions change the same rows.
const MAX_DRY_RUNS: u32 = 8;
/// How long it waits for the locks of others, in milliseconds.
const LOCK_WAIT: u32 = 200;

impl Postgres {
    /// Runs a job in a transaction that is rolled back, and has it deliver its outcome. Not serializable: what is rolled
    /// back must not make others try again.
    pub(crate) async fn dry_run(&self, limits: DryRunLimits, mut job: Box<dyn Job>) -> Result<(), StoreError> {
        for attempt in 1..=MAX_DRY_RUNS {
            if let Attempt::Done = self.dry_run_once(limits, job.as_mut()).await? {
                job.answer();
                return Ok(());
            }
            tokio::time::sleep(backoff(attempt)).await;
        }
        let text = format!("other writes changed the rows of the preview {MAX_DRY_RUNS} times; try again");
        Err(StoreError::new(ErrorKind::GaveWay, text))
    }

    async fn dry_run_once(&self, limits: DryRunLimits, job: &mut dyn Job) -> Result<Attempt, StoreError> {
        let mut tx = WriteTx::new(Inner::Postgres(self.begin(BEGIN_LEASED).await?));
        let time = limits.time.as_millis();
        tx.execute_batch(&format!("SET LOCAL lock_timeout = {LOCK_WAIT}; SET LOCAL statement_timeout = {time}"))
            .await?;
        let budget = Budget::new(limits, None);
        tx.limit(Some(budget.clone()));
        let ran = tokio::time::timeout(limits.time, job.run(&mut tx)).await;
        let conflicted = tx.failure().is_some_and(|error| error.kind() == ErrorKind::Serialization);
        if ran.is_err() || tx.failure().is_some_and(is_timeout) {
            budget.end(Ended::Time);
        }
        // A connection with a statement under way is closed, and the server stops the statement by its own limit.
        if let (Ok(_), Some(tx)) = (ran, tx.into_postgres()) {
            let _ = tx.finish("ROLLBACK").await;
        }
        if budget.ended().is_some() {
            job.fail(budget.error());
        } else if conflicted {
            return Ok(Attempt::Conflict);
        }
        Ok(Attempt::Done)
    }
}

/// Whether the server stopped the statement by its limit (`query_canceled`). The stored error has only its text.
fn is_timeout(error: &StoreError) -> bool {
    error.message().contains("SQLSTATE 57014")
}
