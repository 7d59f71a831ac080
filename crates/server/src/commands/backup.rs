//! `bowline backup`: makes, lists and tries backups.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use bowline_core::{Clock as _, SystemClock};
use bowline_terminal::{Work, say};
use clap::{Args, Subcommand};
use rustix::process::nice;

use crate::backup::{Archive, Created, Fetched, Identity, Scratch, Source, create, fetch, recipient, work_directory};
use crate::blobs::content;
use crate::commands::print;
use crate::commands::progress::Progress;
use crate::error::StartError;
use crate::options::{Options, require_file};
use crate::storage::{Storage, read_key, require_private};
use crate::storage_options::StorageOptions;
use crate::transfer::{BadBlobs, fill, open_target, owner};
use crate::verify::verify;

/// `bowline backup`.
#[derive(Subcommand)]
pub enum BackupCommand {
    /// Generate a key pair: the private key in a new file, the public key on stdout
    Keygen(KeygenCommand),
    /// Create a backup: the database, and the blobs that the archive lacks; the server may run
    Create(Box<CreateCommand>),
    /// List the backups of an archive
    List(ListCommand),
    /// Restore a backup into a scratch directory, and check all rows, the audit log and all blobs
    Verify(Box<VerifyCommand>),
}

/// `bowline backup keygen`.
#[derive(Args)]
pub struct KeygenCommand {
    /// File for the private key, which must not exist yet; keep it where the server is not
    file: PathBuf,
}

/// `bowline backup create`.
#[derive(Args)]
pub struct CreateCommand {
    /// Archive: a directory, or s3://bucket/prefix
    #[arg(long, value_name = "DIR|URL")]
    to: String,
    /// Public key that `bowline backup keygen` printed
    #[arg(long, value_name = "KEY")]
    recipient: String,
    /// Remove all but so many of the newest backups
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Directory with room for a copy of the database [default: the data directory, or the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    #[command(flatten)]
    options: StorageOptions,
}

/// `bowline backup list`.
#[derive(Args)]
pub struct ListCommand {
    /// Archive: a directory, or s3://bucket/prefix
    #[arg(long, value_name = "DIR|URL")]
    from: String,
}

/// Which backup is meant, and what opens it.
#[derive(Args)]
pub(crate) struct FromArchive {
    /// Archive: a directory, or s3://bucket/prefix
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// Name of the backup, as `bowline backup list` shows it [default: the newest]
    #[arg(long, value_name = "NAME")]
    backup: Option<String>,
    /// File of `bowline backup keygen` with the private key
    #[arg(long, value_name = "FILE")]
    identity: PathBuf,
    /// Key file of the server that made the backup
    #[arg(long, env = "BOWLINE_KEY_FILE", value_name = "FILE")]
    key_file: PathBuf,
    /// Directory with room for the database, or for all of the backup if it is verified [default: the system's for
    /// temporary files]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
}

/// `bowline backup verify`.
#[derive(Args)]
pub struct VerifyCommand {
    #[command(flatten)]
    from: FromArchive,
}

/// How far the command gives way to a server on the same machine, whose clients wait: the most there is. With 10, the
/// p99 of a client grew by more than half in two runs of five (bench/RESULTS.md).
const NICENESS: i32 = 19;

/// Runs `bowline backup`.
pub fn run(command: BackupCommand) -> Work<StartError> {
    // Here, while the process has one thread: those of the runtime, which `block_on` makes, inherit it.
    if let Err(error) = nice(NICENESS) {
        // A sandbox may forbid it, and a backup that competes with the server is better than none.
        say(&format!("warning: the backup runs with the usual CPU priority, which cannot be lowered: {error}\n"));
    }
    Box::pin(execute(command))
}

async fn execute(command: BackupCommand) -> Result<(), StartError> {
    match command {
        BackupCommand::Keygen(command) => keygen(&command.file),
        BackupCommand::Create(command) => back_up(*command).await,
        BackupCommand::List(command) => list(&command.from).await,
        BackupCommand::Verify(command) => check(&command.from).await,
    }
}

fn keygen(file: &Path) -> Result<(), StartError> {
    let (recipient, text) = Identity::generate().map_err(|error| StartError::Defect(error.to_string()))?;
    let failed = |source| StartError::File { path: file.into(), source };
    let mut opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(failed)?;
    opened.write_all(text.as_bytes()).and_then(|()| opened.sync_all()).map_err(failed)?;
    print(&format!("{recipient}\n"))
}

async fn back_up(command: CreateCommand) -> Result<(), StartError> {
    let recipient = recipient(&command.recipient)?;
    let options = command.options.with_file()?;
    let storage = Storage::open_existing(&options).await?;
    let content = content(&options, &storage.db).await?;
    let archive = Archive::open_to_write(&command.to).await?;
    let work = command.work_dir.unwrap_or_else(|| work_directory(&options));
    let source = Source {
        db: &storage.db,
        content: &content,
        key: &storage.wrapping_key,
        archive: &archive,
        recipient: &recipient,
        work: &work,
        now: SystemClock.now(),
    };
    let progress = Progress::new();
    let created = create(&source, |text| progress.show(text)).await;
    progress.end();
    storage.db.close().await;
    print(&describe(&created?))?;
    if let Some(keep) = command.keep {
        let (backups, blobs) = archive.prune(keep as usize).await?;
        print(&format!("{backups} older backups removed, and {blobs} blobs that only they had\n"))?;
    }
    Ok(())
}

fn describe(created: &Created) -> String {
    let Created { manifest, new_blobs, new_bytes } = created;
    format!(
        "backup {}: {} rows, {} blobs ({} bytes), {new_blobs} of them new ({new_bytes} bytes)\n",
        manifest.name, manifest.rows, manifest.blobs, manifest.blob_bytes
    )
}

async fn list(from: &str) -> Result<(), StartError> {
    let names = Archive::open_existing(from)?.backups().await?;
    if names.is_empty() {
        say("no backups\n");
    }
    print(&names.into_iter().map(|name| name + "\n").collect::<String>())
}

impl FromArchive {
    /// Fetches the database of the backup; how far it is, `progress` shows.
    ///
    /// # Errors
    /// See [`fetch`].
    pub(crate) async fn fetch(&self) -> Result<Fetched, StartError> {
        require_private(&self.identity)?;
        let text = String::from_utf8_lossy(&require_file(&self.identity)?).into_owned();
        let identity = Identity::parse(&text).ok_or_else(|| StartError::Unusable {
            cause: format!("{} has no private key", self.identity.display()),
            hint: "name the file that bowline backup keygen wrote".into(),
        })?;
        let key = read_key(&self.key_file)?;
        let archive = Archive::open_existing(&self.from)?;
        fetch(&archive, &identity, &key, self.backup.as_deref(), &self.work_directory()).await
    }

    /// The key file of the server that made the backup.
    pub(crate) fn key_file(&self) -> &Path {
        &self.key_file
    }

    fn work_directory(&self) -> PathBuf {
        self.work_dir.clone().unwrap_or_else(std::env::temp_dir)
    }
}

async fn check(from: &FromArchive) -> Result<(), StartError> {
    let fetched = from.fetch().await?;
    let scratch = Scratch::below(&from.work_directory())?;
    let to = Options { data_dir: Some(scratch.join("data")), ..Options::default() };
    let target = open_target(&to, from.key_file(), &owner(&fetched.db).await?).await?;
    let progress = Progress::new();
    let filled = fill(&fetched.db, &fetched.blobs, &target, BadBlobs::Skip, |text| progress.show(text)).await;
    progress.end();
    let filled = filled?;
    if !filled.blobs.bad.is_empty() {
        print(&filled.left_out())?;
        return Err(StartError::Unusable {
            cause: format!("{} blobs of the backup are missing or damaged", filled.blobs.bad.len()),
            hint: "the next backup writes a missing one again; remove damaged objects of the archive first".into(),
        });
    }
    let verified =
        verify(&target.db, &target.content, |blobs, _| progress.show(&format!("{blobs} blobs read"))).await?;
    progress.end();
    target.db.close().await;
    if !verified.damaged.is_empty() {
        return Err(StartError::Blobs(verified.damaged.len()));
    }
    print(&format!(
        "backup {} is whole: {} rows, {} blobs ({} bytes)\naudit log: {} rows verified, head {}\n",
        fetched.manifest.name, filled.rows, verified.blobs, verified.bytes, filled.audit.rows, filled.audit.head
    ))
}
