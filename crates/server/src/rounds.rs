//! Long rounds of work that the operator sees and may begin: retention, garbage collection, verification.

use std::sync::Arc;
use std::time::Duration;

use bowline_authn::crypto::random_bytes;
use bowline_core::{Error, Micros};
use bowline_pipeline::lease;

use crate::background::cause;
use crate::garbage::{Collected, Plan, collect_parts};
use crate::server::Parts;
use crate::task_board::Task;
use crate::verify::verify;

const LOOK_FOR_GARBAGE_EVERY: Duration = Duration::from_secs(60);
/// A server that often starts again clears up all the same.
const FIRST_RETENTION_AFTER: Duration = Duration::from_secs(300);
const COLLECTING: &str = "garbage";

/// Removes images that the rules of retention do not keep: in one replica, and in any that is called for it.
pub(crate) async fn retain(parts: Arc<Parts>) {
    let every = parts.retention_every;
    let mut pause = every.map(|every| every.min(FIRST_RETENTION_AFTER));
    loop {
        let is_requested = parts.tasks.wait(Task::Retention, pause, parts.clock.now()).await;
        pause = every;
        let turn = match every {
            Some(every) if !is_requested => is_due_here(&parts, every).await,
            _ => Ok(true),
        };
        match turn {
            Ok(true) => retain_once(&parts).await,
            Ok(false) => {}
            Err(error) => tracing::warn!(cause = %cause(&error), "retention did not run; trying again later"),
        }
    }
}

/// Whether no other replica does the next round.
async fn is_due_here(parts: &Parts, every: Duration) -> Result<bool, Error> {
    let db = parts.storage.db.from_reserve();
    // The next round comes before the lease ends.
    let (holder, lasts) = (parts.replica.clone(), 2 * every.as_micros() as Micros);
    let now = parts.clock.now();
    db.write_leased(move |tx| {
        let holder = holder.clone();
        Box::pin(async move { lease::keep(tx, "retention", &holder, lasts, now).await })
    })
    .await
}

async fn retain_once(parts: &Parts) {
    parts.tasks.begin(Task::Retention, parts.clock.now());
    let result = parts.registry.retain().await;
    let now = parts.clock.now();
    parts.tasks.end(Task::Retention, now, result.as_ref().err());
    let mut counts = parts.work_counts.lock();
    counts.retentions.end(result.is_ok(), now);
    match result {
        Ok(removed) => {
            counts.retired += removed;
            if removed > 0 {
                tracing::info!(removed, "retention removed manifests");
            }
        }
        Err(error) => tracing::warn!(cause = %cause(&error), "retention did not run; trying again later"),
    }
}

/// Collects the registry's garbage: one replica each time, although several would do no harm.
pub(crate) async fn collect_garbage(parts: Arc<Parts>) {
    let every = parts.collection.every;
    loop {
        let look = every.map(|every| every.min(LOOK_FOR_GARBAGE_EVERY));
        let is_requested = parts.tasks.wait(Task::GarbageCollection, look, parts.clock.now()).await;
        let now = parts.clock.now();
        let turn = match every {
            Some(every) if !is_requested => takes_turn(&parts, every, now).await,
            _ => Ok(true),
        };
        match turn {
            Ok(true) => collect_once(&parts, now).await,
            Ok(false) => {}
            Err(error) => tracing::warn!(cause = %cause(&error), "garbage was not collected; trying again later"),
        }
    }
}

async fn takes_turn(parts: &Parts, every: Duration, now: Micros) -> Result<bool, Error> {
    let lasts = Micros::try_from(every.as_micros()).unwrap_or(Micros::MAX);
    // A new name each time: the row blocks every replica until the next turn, including this one after a restart.
    let holder: String = bowline_core::hex(&random_bytes::<8>());
    let db = parts.storage.db.from_reserve();
    db.write(move |tx| {
        let holder = holder.clone();
        Box::pin(async move { lease::take(tx, COLLECTING, &holder, lasts, now).await })
    })
    .await
}

async fn collect_once(parts: &Parts, now: Micros) {
    parts.tasks.begin(Task::GarbageCollection, now);
    let plan = Plan { until: now - parts.collection.grace, is_dry_run: false };
    let (collected, result) = collect_parts(&parts.storage.db.from_reserve(), &parts.content, plan).await;
    let ended = parts.clock.now();
    parts.tasks.end(Task::GarbageCollection, ended, result.as_ref().err());
    let mut counts = parts.work_counts.lock();
    counts.collections.end(result.is_ok(), ended);
    counts.collected.add(collected);
    drop(counts);
    if !collected.is_nothing() {
        let Collected { links, manifests, blobs, files, uploads, bytes } = collected;
        tracing::info!(links, manifests, blobs, files, uploads, bytes, "garbage collected");
    }
    if let Err(error) = result {
        tracing::warn!(cause = %cause(&error), "garbage was collected in part; trying again later");
    }
}

/// Reads every blob and compares its digest, each time that the operator wants it.
pub(crate) async fn verify_blobs(parts: Arc<Parts>) {
    loop {
        parts.tasks.wait(Task::BlobVerification, None, parts.clock.now()).await;
        parts.tasks.begin(Task::BlobVerification, parts.clock.now());
        let verified = verify(&parts.storage.db, &parts.content, |_, _| {}).await;
        let result = verified.and_then(|verified| match verified.damaged.len() {
            0 => Ok(()),
            count => Err(Error::internal(format!("{count} blobs are missing or damaged"))),
        });
        parts.tasks.end(Task::BlobVerification, parts.clock.now(), result.as_ref().err());
        if let Err(error) = result {
            tracing::error!(cause = %cause(&error), "the verification of blobs failed");
        }
    }
}
