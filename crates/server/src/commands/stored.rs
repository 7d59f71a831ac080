//! `bowline registry gc` and `bowline registry verify`: work on what a server has stored, beside it.

use std::io::{IsTerminal as _, Write as _};

use bowline_core::{Clock as _, SystemClock};
use bowline_terminal::{Work, seconds};
use clap::{Args, Subcommand};

use crate::blobs::content;
use crate::commands::print;
use crate::error::StartError;
use crate::garbage::{Collected, LONGEST_GRACE, Plan, Schedule, collect};
use crate::storage::Storage;
use crate::storage_options::StorageOptions;
use crate::verify::{DamagedBlob, verify};

/// The commands of `bowline registry` that work beside a server.
#[derive(Subcommand)]
pub enum StoredCommand {
    /// Delete unreferenced blobs, as the server does by itself (on the server's machine)
    Gc(Box<GcCommand>),
    /// Read every blob, and list missing and damaged ones (on the server's machine)
    Verify(Box<VerifyCommand>),
}

/// Runs `bowline registry gc` or `bowline registry verify`.
pub fn run(command: StoredCommand) -> Work<StartError> {
    Box::pin(execute(command))
}

async fn execute(command: StoredCommand) -> Result<(), StartError> {
    match command {
        StoredCommand::Gc(command) => gc(*command).await,
        StoredCommand::Verify(command) => check(*command).await,
    }
}

/// `bowline registry gc`.
#[derive(Args)]
pub struct GcCommand {
    /// Only print what would go
    #[arg(long)]
    dry_run: bool,
    /// How long a pushed blob may wait for its manifest, such as 24h [default: the server's --gc-grace]
    #[arg(long, value_name = "TIME")]
    grace: Option<String>,
    #[command(flatten)]
    options: StorageOptions,
}

/// `bowline registry verify`.
#[derive(Args)]
pub struct VerifyCommand {
    #[command(flatten)]
    options: StorageOptions,
}

async fn gc(command: GcCommand) -> Result<(), StartError> {
    let options = command.options.with_file()?;
    let grace = match &command.grace {
        Some(text) => seconds("grace", text, LONGEST_GRACE)? * 1_000_000,
        None => Schedule::of(&options)?.grace,
    };
    let plan = Plan { until: SystemClock.now() - grace, is_dry_run: command.dry_run };
    let storage = Storage::open_existing(&options).await?;
    let content = content(&options, &storage.db).await?;
    let collected = collect(&storage.db, &content, plan).await;
    storage.db.close().await;
    print(&describe(&collected?, command.dry_run))
}

fn describe(collected: &Collected, is_dry_run: bool) -> String {
    let Collected { links, manifests, blobs, files, uploads, bytes } = collected;
    let verb = if is_dry_run { "would go" } else { "gone" };
    format!(
        "{links} blobs of repositories that no manifest there names\n{manifests} manifests, {blobs} blobs\n\
         {files} files of no blob, {uploads} files of ended uploads\n{bytes} bytes {verb}\n"
    )
}

async fn check(command: VerifyCommand) -> Result<(), StartError> {
    let options = command.options.with_file()?;
    let storage = Storage::open_existing(&options).await?;
    let content = content(&options, &storage.db).await?;
    let is_watched = std::io::stderr().is_terminal();
    let progress = |blobs: u64, bytes: u64| {
        if is_watched {
            let _ = write!(std::io::stderr(), "\r{blobs} blobs, {bytes} bytes");
        }
    };
    let verified = verify(&storage.db, &content, progress).await;
    storage.db.close().await;
    if is_watched {
        let _ = writeln!(std::io::stderr());
    }
    let verified = verified?;
    print(&verified.damaged.iter().map(describe_one).collect::<Vec<_>>().concat())?;
    print(&format!("{} blobs verified, {} bytes, {} bad\n", verified.blobs, verified.bytes, verified.damaged.len()))?;
    match verified.damaged.len() {
        0 => Ok(()),
        bad => Err(StartError::Blobs(bad)),
    }
}

fn describe_one(blob: &DamagedBlob) -> String {
    let what = match &blob.actual {
        None => "is missing".to_owned(),
        Some(actual) => format!("is damaged: its bytes are {actual}"),
    };
    let mut lines = format!("{} {what}\n  {}\n", blob.digest, blob.location);
    for repository in &blob.repositories {
        lines.push_str("  in ");
        lines.push_str(repository);
        lines.push('\n');
    }
    lines
}
