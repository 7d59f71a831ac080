//! Reads SBOMs that pushes did not: those from before there was an index, and those of replicated images.

use std::sync::Arc;
use std::time::Duration;

use bowline_authn::crypto::random_bytes;
use bowline_core::{Error, Micros};
use bowline_pipeline::lease;
use bowline_registry::components::SbomPosition;

use crate::job::Job;
use crate::server::Parts;
use crate::task_board::TaskReport;

const INDEX_EVERY: Duration = Duration::from_secs(60);
/// Between two steps: the writer is everyone's.
const PAUSE: Duration = Duration::from_millis(20);
/// Another replica continues after this time without a step, in microseconds.
const LEASE: Micros = 150_000_000;
const INDEXING: &str = "sbom index";

pub(crate) async fn run(parts: Arc<Parts>, report: TaskReport) {
    let holder: String = bowline_core::hex(&random_bytes::<8>());
    let failure = "pending SBOMs were not indexed; searches do not find their components until they are";
    Job::every(INDEX_EVERY, failure)
        .run(report, move || {
            let (parts, holder) = (parts.clone(), holder.clone());
            Box::pin(async move { index_all(&parts, &holder).await.map(|()| false) })
        })
        .await;
}

/// Reads all that are pending, unless another replica does.
async fn index_all(parts: &Parts, holder: &str) -> Result<(), Error> {
    let db = parts.storage.db.from_reserve();
    let mut next = Some(SbomPosition::default());
    while let Some(from) = next {
        let (holder, now) = (holder.to_owned(), parts.clock.now());
        let leased = db.write_leased(move |tx| {
            let holder = holder.clone();
            Box::pin(async move { lease::keep(tx, INDEXING, &holder, LEASE, now).await })
        });
        if !leased.await? {
            return Ok(());
        }
        next = parts.registry.index_pending(from).await?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
