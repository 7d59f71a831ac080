//! `bowline restore`: fills an empty storage with a backup.

use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Clock as _, SystemClock};
use bowline_store::{Db, Room};
use bowline_terminal::Work;
use clap::Args;

use crate::backup::{Removal, end_without, removed_since};
use crate::commands::backup::FromArchive;
use crate::commands::print;
use crate::commands::progress::Progress;
use crate::error::StartError;
use crate::options::Options;
use crate::storage::connect;
use crate::transfer::{BadBlobs, fill, location, open_target, owner, start_line};

/// `bowline restore`.
#[derive(Args)]
#[command(
    after_help = "The place must be empty: what is there now stays there, and is neither changed nor removed. A run that \
was interrupted goes on where it ended. Blobs that are there already, such as a bucket that survived, are not written again.

A restored server has the identities, grants and keys of the time of the backup."
)]
pub struct RestoreCommand {
    #[command(flatten)]
    from: FromArchive,
    /// Restore to here: an empty directory, or the URL of an empty database
    #[arg(long, value_name = "DIR|URL")]
    to: String,
    /// Place for the blobs: s3://bucket/prefix or a data directory [default: the directory of --to]
    #[arg(long, value_name = "URL|DIR")]
    to_blobs: Option<String>,
    /// Restore the rest when blobs are missing or damaged; they are named
    #[arg(long)]
    skip_bad_blobs: bool,
    /// Database whose audit log continues after the backup: a data directory, or postgres://user@host/database
    #[arg(long, value_name = "DIR|URL")]
    audit_from: Option<String>,
    /// Restore also the grants that were removed after the backup
    #[arg(long, requires = "audit_from")]
    with_removed_grants: bool,
}

/// Runs `bowline restore`.
pub fn run(command: RestoreCommand) -> Work<StartError> {
    Box::pin(execute(command))
}

async fn execute(command: RestoreCommand) -> Result<(), StartError> {
    let to = location("to", &command.to, command.to_blobs.as_deref(), None)?;
    let key = command.from.key_file();
    let fetched = command.from.fetch().await?;
    let target = open_target(&to, key, &owner(&fetched.db).await?).await?;
    let progress = Progress::new();
    let bad_blobs = if command.skip_bad_blobs { BadBlobs::Skip } else { BadBlobs::Stop };
    let filled = fill(&fetched.db, &fetched.blobs, &target, bad_blobs, |text| progress.show(text)).await;
    progress.end();
    let filled = filled?;
    let removals = match &command.audit_from {
        Some(from) => removals(&target.db, from).await?,
        None => Vec::new(),
    };
    let left_out = if command.with_removed_grants { &[] } else { removals.as_slice() };
    end_without(&target.db, left_out, SystemClock.now()).await?;
    target.db.close().await;
    print(&format!(
        "backup {} of {} restored: {} rows and {} blobs ({} bytes), every row compared, every digest computed\n\
         audit log: {} rows verified, head {}\n{}{}\n\
         Start the server:\n  {}\n",
        fetched.manifest.name,
        fetched.manifest.at,
        filled.rows,
        filled.blobs.blobs,
        filled.blobs.bytes,
        filled.audit.rows,
        filled.audit.head,
        filled.left_out(),
        describe(&command, &removals),
        start_line(&to, key)
    ))
}

/// Resources that were removed after the backup, as far as another audit log shows.
async fn removals(restored: &Db, from: &str) -> Result<Vec<Removal>, StartError> {
    let mut options = Options::default();
    if from.contains("://") {
        options.database_url = Some(from.into());
    } else {
        options.data_dir = Some(from.into());
    }
    if options.database_url.is_none() && !options.database_file().exists() {
        return Err(StartError::Option(format!("--audit-from: there is no database in {from}")));
    }
    let survivor = connect(&options, Room::make_way).await?;
    let removals = removed_since(restored, &survivor).await;
    survivor.close().await;
    removals
}

fn describe(command: &RestoreCommand, removals: &[Removal]) -> String {
    if command.audit_from.is_none() {
        return "grants that were removed after the backup are back: to leave them out, restore with --audit-from\n"
            .into();
    }
    let (grants, others): (Vec<&Removal>, Vec<&Removal>) = removals.iter().partition(|removal| removal.is_grant());
    let fate = if command.with_removed_grants { "back" } else { "left out" };
    let mut text = format!("{} grants were removed after the backup, and are {fate}\n", grants.len());
    text.extend(grants.into_iter().map(line));
    if !others.is_empty() {
        text.push_str("also removed after the backup, and back: remove again what must not be there\n");
        text.extend(others.into_iter().map(line));
    }
    text
}

fn line(removal: &Removal) -> String {
    let Removal { kind, uid, actor, at } = removal;
    format!("  {kind} {uid}, by {actor} at {}\n", rfc3339::text(*at, Digits::SixOrNone))
}
