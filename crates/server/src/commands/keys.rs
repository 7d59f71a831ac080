use std::path::{Path, PathBuf};

use bowline_authn::keys::{Algorithm, KeyState};
use bowline_core::{Clock as _, SystemClock};
use bowline_terminal::{Output, Table, Work, seconds};
use clap::{Args, Subcommand};

use crate::commands::print;
use crate::error::StartError;
use crate::keys::packages::RevokedPackageKeys;
use crate::keys::{self, Schedule, Which};
use crate::options::TokenAlgorithm;
use crate::storage::{Storage, read_key, sync_directory, write_key};
use crate::storage_options::StorageOptions;

/// The shortest time between two rotations by schedule: a new key is published ten minutes before it signs, and the old
/// one an hour longer.
const SHORTEST_SCHEDULE: i64 = 3600;
/// The longest: ten years.
const LONGEST_SCHEDULE: i64 = 3650 * 86400;

/// `bowline keys`.
#[derive(Subcommand)]
pub enum KeysCommand {
    /// Add a signing key: it is published at once and signs after 10 minutes; the old key is accepted for another hour
    Rotate(Box<RotateCommand>),
    /// Revoke a leaked signing key: every token that it signed is refused within seconds
    Revoke(Box<RevokeCommand>),
    /// Re-encrypt all stored secrets with another key file; the server must be stopped
    Rewrap(Box<RewrapCommand>),
    /// List the signing keys
    List(Box<ListCommand>),
}

/// `bowline keys list`.
#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    options: StorageOptions,
}

/// `bowline keys rotate`.
#[derive(Args)]
pub struct RotateCommand {
    /// Signature algorithm of the new key [default: that of the key that signs; rs256 without one]
    #[arg(long, value_enum)]
    algorithm: Option<TokenAlgorithm>,
    /// Let running servers rotate whenever the newest key is that old, such as 90d, from now on; never to end it
    #[arg(long, value_name = "TIME")]
    every: Option<String>,
    /// Rotate the key that signs versions of npm's packages instead: the new one signs at once, the old one stays listed
    #[arg(long, conflicts_with_all = ["algorithm", "every"])]
    packages: bool,
    #[command(flatten)]
    options: StorageOptions,
}

/// `bowline keys revoke`.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("which").required(true)))]
pub struct RevokeCommand {
    /// Id of the key, as bowline keys list shows it: SHA256:... for one of packages
    // Some ids begin with a hyphen.
    #[arg(group = "which", allow_hyphen_values = true)]
    kid: Option<String>,
    /// Every key, also those of packages: all tokens issued so far are refused, and all packages are signed again
    #[arg(long, group = "which")]
    all: bool,
    /// Signature algorithm of the new key, if one is needed [default: that of the key that signs; rs256 without one]
    #[arg(long, value_enum)]
    algorithm: Option<TokenAlgorithm>,
    #[command(flatten)]
    options: StorageOptions,
}

/// `bowline keys rewrap`.
#[derive(Args)]
pub struct RewrapCommand {
    /// The new key file; made if it is not there
    #[arg(long, value_name = "FILE")]
    new_key_file: PathBuf,
    #[command(flatten)]
    options: StorageOptions,
}

/// Runs `bowline keys`.
pub fn run(command: KeysCommand) -> Work<StartError> {
    Box::pin(execute(command))
}

async fn execute(command: KeysCommand) -> Result<(), StartError> {
    match command {
        KeysCommand::Rotate(command) => rotate(*command).await,
        KeysCommand::Revoke(command) => revoke(*command).await,
        KeysCommand::Rewrap(command) => rewrap(*command).await,
        KeysCommand::List(command) => list(*command).await,
    }
}

async fn rotate(command: RotateCommand) -> Result<(), StartError> {
    let storage = Storage::open_existing(&command.options.with_file()?).await?;
    let algorithm = command.algorithm.map(Algorithm::from);
    let now = SystemClock.now();
    let message = match command.every.as_deref() {
        None if command.packages => {
            let id = keys::packages::rotate(&storage.db, &storage.wrapping_key, now).await?;
            format!("{id} signs packages; those signed before verify with the keys that signed them\n")
        }
        Some("never") => {
            keys::clear_schedule(&storage.db, now).await?;
            "signing keys no longer rotate by themselves\n".to_owned()
        }
        Some(every) => {
            let every_seconds = seconds("every", every, LONGEST_SCHEDULE)?;
            if every_seconds < SHORTEST_SCHEDULE {
                return Err(StartError::Option(format!("--every {every}: must be 1h at least, or never")));
            }
            let algorithm = algorithm.map(|algorithm| algorithm.as_str().to_owned());
            keys::write_schedule(&storage.db, &Schedule { every: every_seconds, algorithm }, now).await?;
            format!("running servers add a signing key whenever the newest one is {every} old\n")
        }
        None => {
            let first = storage.token_algorithm;
            let added = keys::rotate(&storage.db, &storage.wrapping_key, algorithm, first, now).await?;
            match added.signs_from - now.div_euclid(1_000_000) {
                0 => format!("{} is published and signs\n", added.kid),
                wait => format!("{} is published and signs in {wait} s\n", added.kid),
            }
        }
    };
    storage.db.close().await;
    print(&message)
}

async fn revoke(command: RevokeCommand) -> Result<(), StartError> {
    let storage = Storage::open_existing(&command.options.with_file()?).await?;
    let algorithm = command.algorithm.map(Algorithm::from);
    let (first, now) = (storage.token_algorithm, SystemClock.now());
    if let Some(kid) = command.kid.as_deref().filter(|kid| keys::packages::is_id(kid)) {
        let revoked = keys::packages::revoke(&storage.db, &storage.wrapping_key, Some(kid), now).await?;
        storage.db.close().await;
        return print(&summary(&revoked));
    }
    let is_all = command.kid.is_none();
    let which = command.kid.map_or(Which::All, Which::One);
    let revoked = keys::revoke(&storage.db, &storage.wrapping_key, which, algorithm, first, now).await?;
    let packages =
        if is_all { Some(keys::packages::revoke(&storage.db, &storage.wrapping_key, None, now).await?) } else { None };
    storage.db.close().await;
    let mut message = String::new();
    for kid in &revoked.gone {
        message.push_str(&format!("{kid} is revoked\n"));
    }
    message.push_str(&format!("{} signs\n", revoked.signs));
    message.push_str("Running servers refuse tokens of revoked keys within two seconds.\n");
    message.extend(packages.as_ref().map(summary));
    print(&message)
}

/// What became of keys of packages.
fn summary(revoked: &RevokedPackageKeys) -> String {
    let mut message = String::new();
    message.extend(revoked.gone.iter().map(|keyid| format!("{keyid} is revoked\n")));
    message.extend(revoked.spare.iter().map(|spare| format!("{spare} signs packages\n")));
    if !revoked.gone.is_empty() {
        message.push_str("Running servers sign again what revoked keys of packages had signed.\n");
    }
    message
}

async fn rewrap(command: RewrapCommand) -> Result<(), StartError> {
    let options = command.options.with_file()?;
    let (old, new) = (options.key_file()?, command.new_key_file);
    let now = SystemClock.now();
    let storage = Storage::open_stopped(&options, now).await?;
    if !new.exists() {
        write_key(&new, sync_directory)?;
    }
    let key = read_key(&new)?;
    if key.as_bytes() == storage.wrapping_key.as_bytes() {
        return Err(StartError::Option(format!("--new-key-file {}: holds the present key", new.display())));
    }
    let values = keys::rewrap(&storage.db, &storage.wrapping_key, &key, now).await?;
    storage.close().await;
    print(&format!(
        "{values} values are sealed with {}\n{}",
        new.display(),
        next_step(options.key_file.is_some(), &old, &new)
    ))
}

/// What is left to do after everything was sealed again.
fn next_step(is_named: bool, old: &Path, new: &Path) -> String {
    let (old, new) = (old.display(), new.display());
    if is_named {
        return format!("Start every server with --key-file {new}; {old} opens nothing here any more.\n");
    }
    format!("Put it where the server looks for it before it starts: mv {new} {old}\n")
}

async fn list(command: ListCommand) -> Result<(), StartError> {
    let storage = Storage::open_existing(&command.options.with_file()?).await?;
    let ring = keys::load(&storage.db, &storage.wrapping_key).await?;
    let schedule = keys::read_schedule(&storage.db).await?;
    let packages = keys::packages::list(&storage.db).await?;
    storage.db.close().await;
    let now = SystemClock.now().div_euclid(1_000_000);
    let mut table = Table::new(&["kid", "algorithm", "state"]);
    for key in ring.keys() {
        let state = match ring.state(key, now) {
            KeyState::Signs => next_rotation(schedule.as_ref(), key.published_at, now),
            KeyState::SignsIn(seconds) => format!("signs in {seconds} s"),
            KeyState::Accepted(Some(seconds)) => format!("accepted for {seconds} s"),
            KeyState::Accepted(None) => "accepted".to_owned(),
            KeyState::Retired => "retired".to_owned(),
        };
        table.push([key.key.kid().to_owned(), key.key.algorithm().as_str().to_owned(), state]);
    }
    for (keyid, signs) in packages {
        let state = if signs { "signs packages" } else { "verifies packages" };
        table.push([keyid, Algorithm::Es256.as_str().to_owned(), state.to_owned()]);
    }
    print(&command.output.list(&table)?)
}

/// State of the key that signs, with the time until the schedule replaces it.
fn next_rotation(schedule: Option<&Schedule>, published_at: i64, now: i64) -> String {
    match schedule {
        None => "signs".to_owned(),
        Some(schedule) => format!("signs; rotates in {} s", (published_at + schedule.every - now).max(0)),
    }
}
