use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bowline_authn::crypto::random_bytes;
use bowline_core::{Error, Micros, hex};
use bowline_pipeline::lease;
use bowline_terminal::seconds;
use tokio::sync::oneshot;

use super::{Archive, Created, Recipient, Source, create};
use crate::background::cause;
use crate::error::StartError;
use crate::options::Options;
use crate::server::Parts;
use crate::task_board::TaskReport;

const TURN: &str = "backup";
/// How often is looked whether it is time, at most.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How long after a failure another attempt is made, in microseconds.
const AFTER_FAILURE: Micros = 900_000_000;
/// Longest time between two backups, in seconds.
const LONGEST: i64 = 30 * 86400;

/// Backups that the server makes by itself.
#[derive(Clone, Debug)]
pub struct BackupSchedule {
    to: String,
    recipient: Recipient,
    every: Duration,
    keep: Option<u32>,
    work: PathBuf,
}

impl BackupSchedule {
    /// The schedule that the options say, if any.
    ///
    /// # Errors
    /// One of them is missing or no value of its kind, or the archive cannot be written.
    pub(crate) async fn of(options: &Options) -> Result<Option<BackupSchedule>, StartError> {
        let Some(to) = options.backup_to.clone() else {
            let others =
                [options.backup_recipient.is_some(), options.backup_every.is_some(), options.backup_keep.is_some()];
            if others.contains(&true) {
                let what = "--backup-recipient, --backup-every and --backup-keep need --backup-to";
                return Err(StartError::Option(what.into()));
            }
            return Ok(None);
        };
        let recipient = options.backup_recipient.as_deref().ok_or_else(|| {
            StartError::Option("--backup-to needs --backup-recipient: the key that bowline backup keygen prints".into())
        })?;
        let every = seconds("backup-every", options.backup_every.as_deref().unwrap_or("24h"), LONGEST)?;
        // Found at the start, not in the first night.
        Archive::open(&to)?.claim().await?;
        Ok(Some(BackupSchedule {
            to,
            recipient: super::recipient(recipient)?,
            every: Duration::from_secs(every.unsigned_abs()),
            keep: options.backup_keep,
            work: super::work_directory(options),
        }))
    }
}

/// Makes backups for as long as the server runs: of several replicas, one at a time.
pub(crate) async fn run(parts: Arc<Parts>, schedule: BackupSchedule, report: TaskReport) {
    let lasts = Micros::try_from(schedule.every.as_micros()).unwrap_or(Micros::MAX);
    let look = schedule.every.min(LOOK_EVERY);
    loop {
        report.wait(look).await;
        // A name of its own each time: the row keeps everyone from the next turn, this replica too, over a restart.
        let holder: String = hex(&random_bytes::<8>());
        match take_turn(&parts, &holder, lasts).await {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                tracing::warn!(cause = %cause(&error), "no backup was made; trying again later");
                continue;
            }
        }
        report.begin();
        let outcome = aside(parts.clone(), schedule.clone()).await;
        report.end_with(outcome.as_ref().err().map(ToString::to_string));
        parts.work_counts.lock().backups.end(outcome.is_ok(), parts.clock.now());
        match outcome {
            Ok(Created { manifest, new_blobs, new_bytes }) => {
                tracing::info!(
                    name = manifest.name,
                    rows = manifest.rows,
                    blobs = manifest.blobs,
                    new_blobs,
                    new_bytes,
                    "backup made"
                );
            }
            Err(error) => {
                let hint = error.hint().unwrap_or_default();
                tracing::error!(cause = %error, hint, "no backup was made; another attempt follows in 15 minutes");
                if let Err(error) = take_turn(&parts, &holder, AFTER_FAILURE.min(lasts)).await {
                    tracing::warn!(cause = %cause(&error), "the next attempt follows at the usual time");
                }
            }
        }
    }
}

async fn take_turn(parts: &Parts, holder: &str, lasts: Micros) -> Result<bool, Error> {
    let (db, holder, now) = (parts.storage.db.from_reserve(), holder.to_owned(), parts.clock.now());
    let turn = db.write(move |tx| {
        let holder = holder.clone();
        Box::pin(async move { lease::take(tx, TURN, &holder, lasts, now).await })
    });
    turn.await
}

/// Reading the embedded engine and encryption keep a thread busy: one that no call waits for. Dropping the future ends the
/// work at its next wait.
async fn aside(parts: Arc<Parts>, schedule: BackupSchedule) -> Result<Created, StartError> {
    let (keep_on, mut dropped) = oneshot::channel::<()>();
    let runtime = tokio::runtime::Handle::current();
    let work = tokio::task::spawn_blocking(move || {
        runtime.block_on(async {
            tokio::select! {
                made = once(&parts, &schedule) => made,
                _ = &mut dropped => Err(StartError::Option("the server stops".into())),
            }
        })
    });
    let outcome = work.await.map_err(|error| StartError::Defect(error.to_string()))?;
    drop(keep_on);
    outcome
}

async fn once(parts: &Parts, schedule: &BackupSchedule) -> Result<Created, StartError> {
    let archive = Archive::open_to_write(&schedule.to).await?;
    let source = Source {
        db: &parts.storage.db,
        content: &parts.content,
        key: &parts.storage.wrapping_key,
        archive: &archive,
        recipient: &schedule.recipient,
        work: &schedule.work,
        now: parts.clock.now(),
    };
    let created = create(&source, |_| {}).await?;
    if let Some(keep) = schedule.keep {
        archive.prune(keep as usize).await?;
    }
    Ok(created)
}
