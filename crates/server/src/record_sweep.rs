//! Clears records away that no one sees any more: what an import replaced, and what one that was given up has staged.

use std::sync::Arc;
use std::time::Duration;

use bowline_authn::crypto::random_bytes;
use bowline_core::{Clock, Error, Micros};
use bowline_pipeline::lease;
use bowline_store::{Db, WriteTx};

use crate::background::LEASE;
use crate::job::Job;
use crate::task_board::TaskReport;

/// An import of malware is on the block list this soon after it was committed.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// Between two steps: the writer is everyone's.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn run(db: Db, clock: Arc<dyn Clock>, report: TaskReport) {
    let holder: String = bowline_core::hex(&random_bytes::<8>());
    let failure = "replaced records were not cleared away; trying again later";
    let job = Job { pause: PAUSE, ..Job::every(SWEEP_EVERY, failure) };
    job.run(report, move || {
        let (db, holder, now) = (db.clone(), holder.clone(), clock.now());
        Box::pin(async move {
            let step = db.write(move |tx| {
                let holder = holder.clone();
                Box::pin(async move { step(tx, &holder, now).await })
            });
            step.await
        })
    })
    .await;
}

async fn step(tx: &mut WriteTx, holder: &str, now: Micros) -> Result<bool, Error> {
    if !lease::keep(tx, "records", holder, LEASE, now).await? {
        return Ok(false);
    }
    bowline_services::follow_imports(tx, now).await
}
