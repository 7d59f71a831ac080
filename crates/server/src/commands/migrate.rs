//! `bowline migrate`: updates the schema, or moves everything to another storage.

use std::path::Path;

use bowline_core::{Clock as _, SystemClock};
use bowline_terminal::Work;
use clap::Args;

use crate::blobs::content;
use crate::commands::print;
use crate::commands::progress::Progress;
use crate::error::StartError;
use crate::keys;
use crate::options::Options;
use crate::serving::require_stopped;
use crate::storage::Storage;
use crate::storage_options::StorageOptions;
use crate::transfer::{BadBlobs, Filled, fill, location, open_target, owner, start_line};

/// `bowline migrate`.
#[derive(Args)]
#[command(after_help = "Without --from and --to, only the schema is brought up to date, which a start does too.

With them, the whole database and all blobs are copied while no server runs, and compared: from a data directory to
PostgreSQL and a bucket, or back. A run that was interrupted goes on where it ended. The source stays as it is.")]
pub struct MigrateCommand {
    /// Move from here: a data directory, or postgres://user@host/database
    #[arg(long, value_name = "DIR|URL", requires = "to", help_heading = "Move to another place")]
    from: Option<String>,
    /// Move to here: an empty directory, or the URL of an empty database
    #[arg(long, value_name = "DIR|URL", requires = "from", help_heading = "Move to another place")]
    to: Option<String>,
    /// Blobs of the source: s3://bucket/prefix or a data directory [default: the directory of --from]
    #[arg(long, value_name = "URL|DIR", requires = "from", help_heading = "Move to another place")]
    from_blobs: Option<String>,
    /// Blobs of the target: s3://bucket/prefix or a data directory [default: the directory of --to]
    #[arg(long, value_name = "URL|DIR", requires = "to", help_heading = "Move to another place")]
    to_blobs: Option<String>,
    /// Move the rest when blobs are missing or damaged; they are named
    #[arg(long, requires = "from", help_heading = "Move to another place")]
    skip_bad_blobs: bool,
    #[command(flatten)]
    options: StorageOptions,
}

/// Runs `bowline migrate`.
pub fn run(command: MigrateCommand) -> Work<StartError> {
    Box::pin(execute(command))
}

async fn execute(command: MigrateCommand) -> Result<(), StartError> {
    let MigrateCommand { from, to, from_blobs, to_blobs, skip_bad_blobs, options } = command;
    let bad_blobs = if skip_bad_blobs { BadBlobs::Skip } else { BadBlobs::Stop };
    let key_file = options.key_file();
    match (from, to) {
        (Some(from), Some(to)) => {
            let source = location("from", &from, from_blobs.as_deref(), key_file)?;
            let target = location("to", &to, to_blobs.as_deref(), None)?;
            move_all(&source, &target, bad_blobs).await
        }
        _ => bring_up_to_date(&options.with_file()?).await,
    }
}

async fn bring_up_to_date(options: &Options) -> Result<(), StartError> {
    let storage = Storage::open(options).await?;
    storage.close().await;
    print(&format!("{} migrations applied\n", storage.migrated))
}

async fn move_all(from: &Options, to: &Options, bad_blobs: BadBlobs) -> Result<(), StartError> {
    refuse_same_location(from, to)?;
    let storage = Storage::open_stopped(from, SystemClock.now()).await?;
    // A key that does not fit would move what opens nowhere.
    keys::load(&storage.db, &storage.wrapping_key).await?;
    let content = content(from, &storage.db).await?;
    let target = open_target(to, &from.key_file()?, &owner(&storage.db).await?).await?;
    let progress = Progress::new();
    let filled = fill(&storage.db, &content, &target, bad_blobs, |text| progress.show(text)).await;
    progress.end();
    let filled = filled?;
    if from.database_url.is_some() {
        // A server that was started meanwhile may have written what was read before.
        let now = SystemClock.now();
        let read = storage.db.read(move |tx| Box::pin(async move { require_stopped(tx, now).await }));
        read.await?;
    }
    target.db.end_filling().await?;
    target.db.close().await;
    storage.close().await;
    report(&filled, &start_line(to, &from.key_file()?))
}

fn report(filled: &Filled, start: &str) -> Result<(), StartError> {
    let Filled { rows, blobs, audit } = filled;
    let left_out = filled.left_out();
    print(&format!(
        "{rows} rows and {} blobs ({} bytes) moved: every row compared, every digest computed\n\
         audit log: {} rows verified, head {}\n{left_out}\n\
         Start the server there, and not on the source again:\n  {start}\n",
        blobs.blobs, blobs.bytes, audit.rows, audit.head,
    ))
}

fn refuse_same_location(from: &Options, to: &Options) -> Result<(), StartError> {
    let is_same_directory = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    };
    let is_same = match (&from.database_url, &to.database_url) {
        (Some(from), Some(to)) => from == to,
        (None, None) => is_same_directory(&from.data_dir(), &to.data_dir()),
        _ => false,
    };
    if is_same {
        return Err(StartError::Option("--from and --to are the same place: name another one with --to".into()));
    }
    Ok(())
}
