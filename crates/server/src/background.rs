//! Work that no call waits for: folding counters, numbering and pruning the audit log, seeing key rotations,
//! noting who was last seen, holding public documents ready, deleting what has ended, retention of images, collecting
//! garbage, sending mail, delivering events.

use std::sync::Arc;
use std::time::Duration;

use bowline_authn::crypto::random_bytes;
use bowline_core::{Clock, Error, Micros};
use bowline_delivery::Relay;
use bowline_identity::{Exchange, people};
use bowline_oci::Distribution;
use bowline_package_hosts::PackageHosts;
use bowline_pipeline::audit::{NUMBERED_AT_ONCE, PRUNED_AT_ONCE, number_rows, prune_rows, rows_wait};
use bowline_pipeline::lease;
use bowline_registry::content::Registry;
use bowline_store::{Db, Engine, WriteTx, activity, counters};
use bowline_vulnerabilities::Published;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::job::Job;
use crate::mail;
use crate::matching;
use crate::record_sweep;
use crate::sbom_index;
use crate::server::Parts;
use crate::task_board::{Task, TaskReport};
use crate::{backup, blob_totals, disk, keys, rounds, serving};

const FOLD_EVERY: Duration = Duration::from_millis(250);
const NUMBER_EVERY: Duration = Duration::from_millis(50);
const LOOK_FOR_DOCUMENTS_EVERY: Duration = Duration::from_millis(250);
const PRUNE_EVERY: Duration = Duration::from_secs(5);
const NOTE_PULLS_EVERY: Duration = Duration::from_secs(1);
const NOTE_BLOCKED_EVERY: Duration = Duration::from_secs(2);
const EXPIRE_UPLOADS_EVERY: Duration = Duration::from_secs(60);
const NOTE_LAST_SEEN_EVERY: Duration = Duration::from_secs(5);
const DELETE_ENDED_EVERY: Duration = Duration::from_secs(60);

/// Deltas that one transaction folds.
const FOLDED_AT_ONCE: i64 = 2000;
/// How long a replica may stay silent before another takes its work over, in microseconds.
pub(crate) const LEASE: Micros = 10_000_000;
/// The same where the work is done every minute.
const LONG_LEASE: Micros = 150_000_000;
/// A day, in microseconds.
const DAY: Micros = 24 * 3600 * 1_000_000;

const NUMBERING: &str = "audit numbers";
const PRUNING: &str = "audit pruning";

/// Starts everything; dropping the set stops it.
pub(crate) fn start(parts: &Arc<Parts>, mail_relay: Option<mail::Relay>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let report = |task| TaskReport::new(&parts.tasks, task, &parts.clock);
    tasks.spawn(fold(parts.storage.db.from_reserve(), parts.clock.clone(), report(Task::Counters)));
    tasks.spawn(number(parts.clone(), report(Task::AuditNumbers)));
    if parts.storage.db.engine() == Engine::Postgres {
        tasks.spawn(serving::renew(parts.clone()));
    }
    tasks.spawn(disk::watch(parts.storage.db.clone()));
    tasks.spawn(blob_totals::follow(parts.clone(), report(Task::BlobTotals)));
    if let Some(days) = parts.audit_retention {
        tasks.spawn(prune(parts.clone(), days, report(Task::AuditPruning)));
    }
    tasks.spawn(keys::follow(parts.clone(), report(Task::SigningKeys)));
    tasks.spawn(refresh_documents(parts.published.clone(), report(Task::PublicDocuments)));
    tasks.spawn(expire_uploads(parts.distribution.clone(), report(Task::Uploads)));
    for task in [Task::Retention, Task::GarbageCollection, Task::BlobVerification] {
        parts.tasks.start(task);
    }
    tasks.spawn(rounds::retain(parts.clone()));
    tasks.spawn(rounds::collect_garbage(parts.clone()));
    tasks.spawn(rounds::verify_blobs(parts.clone()));
    if let Some(schedule) = parts.backups.clone() {
        tasks.spawn(backup::run(parts.clone(), schedule, report(Task::Backup)));
    }
    if let Some(mail_relay) = mail_relay {
        tasks.spawn(mail::deliver(parts.storage.db.clone(), parts.clock.clone(), mail_relay, report(Task::Mail)));
    }
    let reserved = parts.storage.db.from_reserve();
    tasks.spawn(delete_ended(reserved.clone(), parts.clock.clone(), report(Task::EndedSessions)));
    tasks.spawn(matching::run(parts.clone(), report(Task::Matching)));
    tasks.spawn(record_sweep::run(reserved, parts.clock.clone(), report(Task::RecordSweep)));
    tasks.spawn(sbom_index::run(parts.clone(), report(Task::SbomIndex)));
    tasks.spawn(relay(parts).run());
    tasks
}

/// Starts what writes down notes of calls. It ends by itself once the server stops: half way through, it would lose
/// what it has taken and not written yet.
pub(crate) fn start_notes(parts: &Parts, stopped: &watch::Receiver<bool>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(note_last_seen(parts.exchange.clone(), stopped.clone()));
    tasks.spawn(note_pulls(parts.registry.clone(), stopped.clone()));
    tasks.spawn(note_blocked(parts.package_hosts.clone(), stopped.clone()));
    tasks
}

fn relay(parts: &Parts) -> Relay {
    Relay::new(bowline_delivery::Parts {
        db: parts.storage.db.from_reserve(),
        contract: parts.contract.clone(),
        tables: parts.tables.clone(),
        settings: parts.settings.clone(),
        authenticator: parts.authenticator.clone(),
        client: parts.client.clone(),
        clock: parts.clock.clone(),
        random: || u64::from_be_bytes(random_bytes()),
        holder: parts.replica.clone(),
    })
}

/// Once everything has stopped: lets another replica continue at once.
pub(crate) async fn give_back(parts: &Parts) {
    if let Err(error) = Relay::give_back(&parts.storage.db.from_reserve(), &parts.replica).await {
        tracing::warn!(cause = %cause(&error), "another replica goes on delivering events only when the lease has ended");
    }
}

async fn fold(db: Db, clock: Arc<dyn Clock>, report: TaskReport) {
    let holder: String = bowline_core::hex(&random_bytes::<8>());
    let failure = "counters were not folded; they stay exact and grow slower to read";
    let job = Job { after_failure: FOLD_EVERY * 20, ..Job::every(FOLD_EVERY, failure) };
    job.run(report, move || {
        let (db, holder, now) = (db.clone(), holder.clone(), clock.now());
        Box::pin(async move {
            // Deltas that a failing machine has not folded after all still count.
            let folded = db.write_scratch(move |tx| {
                let holder = holder.clone();
                Box::pin(async move { fold_once(tx, &holder, now).await })
            });
            Ok(folded.await? >= FOLDED_AT_ONCE as u64)
        })
    })
    .await;
}

/// Every replica has its own.
async fn refresh_documents(published: Arc<Published>, report: TaskReport) {
    let failure = "public documents were not looked for; those from before are served";
    let job = Job::every(LOOK_FOR_DOCUMENTS_EVERY, failure);
    job.run(report, move || {
        let published = published.clone();
        Box::pin(async move { published.refresh().await.map(|()| false) })
    })
    .await;
}

async fn fold_once(tx: &mut WriteTx, holder: &str, now: Micros) -> Result<u64, Error> {
    let sql = "SELECT (SELECT min(id) FROM count_deltas), (SELECT min(id) FROM activity_deltas)";
    let read = |row: &bowline_store::Row<'_>| Ok::<_, Error>(row.opt_int(0)?.is_some() || row.opt_int(1)?.is_some());
    if !tx.query_opt(sql, &[], read).await?.unwrap_or_default() {
        return Ok(0);
    }
    if !lease::keep(tx, "fold", holder, LEASE, now).await? {
        return Ok(0);
    }
    let counts = counters::fold(tx, FOLDED_AT_ONCE).await?;
    Ok(counts.max(activity::fold(tx, FOLDED_AT_ONCE).await?))
}

/// Numbers and chains the rows of the audit log soon after their commits, and wakes those who wait for them.
async fn number(parts: Arc<Parts>, report: TaskReport) {
    let holder: String = bowline_core::hex(&random_bytes::<8>());
    let failure = "the audit log was not numbered; new rows cannot be read until it is";
    let job = Job { after_failure: NUMBER_EVERY * 20, ..Job::every(NUMBER_EVERY, failure) };
    job.run(report, move || {
        let (parts, holder) = (parts.clone(), holder.clone());
        Box::pin(async move {
            let numbered = number_once(&parts.storage.db.from_reserve(), &holder, parts.clock.now()).await?;
            if numbered > 0 {
                parts.pipeline.streams.tell();
            }
            Ok(numbered >= NUMBERED_AT_ONCE)
        })
    })
    .await;
}

/// One batch, if rows wait and no other replica numbers them; gives how many rows got numbers.
pub(crate) async fn number_once(db: &Db, holder: &str, now: Micros) -> Result<u64, Error> {
    let own = holder.to_owned();
    let idle = db.read(move |tx| {
        Box::pin(
            async move { Ok::<_, Error>(!rows_wait(tx).await? || lease::is_taken(tx, NUMBERING, &own, now).await?) },
        )
    });
    if idle.await? {
        return Ok(0);
    }
    let holder = holder.to_owned();
    // On the embedded engine numbers follow the ids of rows that are durable: the same rows always get the same ones.
    db.write_derived(move |tx| {
        let holder = holder.clone();
        Box::pin(async move {
            if lease::keep(tx, NUMBERING, &holder, LEASE, now).await? { number_rows(tx).await } else { Ok(0) }
        })
    })
    .await
}

/// Takes rows away that are older than the operator wants to keep.
async fn prune(parts: Arc<Parts>, days: u32, report: TaskReport) {
    let holder: String = bowline_core::hex(&random_bytes::<8>());
    let job = Job::every(PRUNE_EVERY, "old rows of the audit log were not pruned; they are tried again");
    job.run(report, move || {
        let (db, holder, now) = (parts.storage.db.from_reserve(), holder.clone(), parts.clock.now());
        Box::pin(async move { Ok(prune_once(&db, &holder, days, now).await? == PRUNED_AT_ONCE) })
    })
    .await;
}

async fn prune_once(db: &Db, holder: &str, days: u32, now: Micros) -> Result<u64, Error> {
    let holder = holder.to_owned();
    let until = now - Micros::from(days) * DAY;
    db.write_leased(move |tx| {
        let holder = holder.clone();
        Box::pin(async move {
            if !lease::keep(tx, PRUNING, &holder, LEASE, now).await? {
                return Ok(0);
            }
            prune_rows(tx, until, now).await
        })
    })
    .await
}

/// Deletes sessions, refresh tokens and other rows that have ended.
async fn delete_ended(db: Db, clock: Arc<dyn Clock>, report: TaskReport) {
    let holder: String = bowline_core::hex(&random_bytes::<8>());
    let job = Job::every(DELETE_ENDED_EVERY, "ended sessions were not deleted; trying again later");
    job.run(report, move || {
        let (db, holder, now) = (db.clone(), holder.clone(), clock.now());
        Box::pin(async move {
            let deleted = db.write(move |tx| {
                let holder = holder.clone();
                Box::pin(async move { delete_ended_once(tx, &holder, now).await })
            });
            Ok(people::is_full(deleted.await?))
        })
    })
    .await;
}

async fn delete_ended_once(tx: &mut WriteTx, holder: &str, now: Micros) -> Result<u64, Error> {
    if !lease::keep(tx, "ended", holder, LONG_LEASE, now).await? {
        return Ok(0);
    }
    activity::prune(tx, now).await?;
    bowline_libraries::prune_block_statistics(tx, now).await?;
    people::prune(tx, now).await
}

async fn note_last_seen(exchange: Arc<Exchange>, mut stopped: watch::Receiver<bool>) {
    while !stops_within(NOTE_LAST_SEEN_EVERY, &mut stopped).await {
        exchange.flush_last_seen().await;
    }
}

async fn note_pulls(registry: Registry, mut stopped: watch::Receiver<bool>) {
    while !stops_within(NOTE_PULLS_EVERY, &mut stopped).await {
        while registry.flush_pulls().await && !*stopped.borrow() {}
    }
}

async fn note_blocked(hosts: Arc<PackageHosts>, mut stopped: watch::Receiver<bool>) {
    loop {
        let stops = stops_within(NOTE_BLOCKED_EVERY, &mut stopped).await;
        hosts.flush_notes(random_bytes::<8>).await;
        if let Err(error) = hosts.remove_deleted_upstreams().await {
            tracing::warn!(%error, "files of a deleted package upstream stay until the next step");
        }
        if let Err(error) = hosts.sign_unsigned().await {
            tracing::warn!(%error, "versions of packages are not signed until the next step");
        }
        if stops {
            return;
        }
    }
}

async fn stops_within(time: Duration, stopped: &mut watch::Receiver<bool>) -> bool {
    // A server that is gone has stopped.
    tokio::time::timeout(time, stopped.wait_for(|stopped| *stopped)).await.is_ok()
}

/// Every replica may do it: the row goes first, and the replica that took it takes the bytes.
async fn expire_uploads(distribution: Arc<Distribution>, report: TaskReport) {
    loop {
        report.wait(EXPIRE_UPLOADS_EVERY).await;
        report.begin();
        report.end(distribution.expire_uploads().await.as_ref().err());
    }
}

pub(crate) fn cause(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
