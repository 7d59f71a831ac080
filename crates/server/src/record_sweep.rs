//! Clears records away that no one sees any more: what an import replaced, and what one that was given up has staged.

use std::sync::Arc;
use std::time::Duration;

use bowline_authn::wrap::random_bytes;
use bowline_core::{Clock, Error, Micros};
use bowline_store::{Db, WriteTx};

use crate::background::{LEASE, cause, lease};

/// An import of malware is on the block list this soon after it was committed.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// Between two steps: the writer is everyone's.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn run(db: Db, clock: Arc<dyn Clock>) {
    let holder: String = bowline_core::hex(&random_bytes::<8>());
    loop {
        let (holder, now) = (holder.clone(), clock.now());
        let step = db
            .write(move |tx| {
                let holder = holder.clone();
                Box::pin(async move { step(tx, &holder, now).await })
            })
            .await;
        match step {
            Ok(true) => tokio::time::sleep(PAUSE).await,
            Ok(false) => tokio::time::sleep(SWEEP_EVERY).await,
            Err(error) => {
                tracing::warn!(cause = %cause(&error), "replaced records were not cleared away; trying again later");
                tokio::time::sleep(SWEEP_EVERY).await;
            }
        }
    }
}

async fn step(tx: &mut WriteTx, holder: &str, now: Micros) -> Result<bool, Error> {
    if !lease(tx, "records", holder, LEASE, now).await? {
        return Ok(false);
    }
    bowline_services::follow_imports(tx, now).await
}
