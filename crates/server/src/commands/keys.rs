use bowline_authn::keys::Algorithm;
use bowline_core::{Clock as _, SystemClock};
use clap::{Args, Subcommand, ValueEnum};

use crate::cli::print;
use crate::commands::shown::{Output, Table};
use crate::error::StartError;
use crate::keys;
use crate::storage::Storage;
use crate::storage_options::StorageOptions;

/// `bowline keys`.
#[derive(Subcommand)]
pub(crate) enum KeysCommand {
    /// Add a signing key: published at once, signing 10 minutes later; the old one is accepted an hour longer
    Rotate(Box<RotateCommand>),
    /// List the signing keys
    List(Box<ListCommand>),
}

/// `bowline keys list`.
#[derive(Args)]
pub(crate) struct ListCommand {
    #[command(flatten)]
    options: StorageOptions,
    #[command(flatten)]
    output: Output,
}

/// `bowline keys rotate`.
#[derive(Args)]
pub(crate) struct RotateCommand {
    #[command(flatten)]
    options: StorageOptions,
    /// Signature algorithm of the new key
    #[arg(long, value_enum, default_value = "es256")]
    algorithm: KeyAlgorithm,
}

#[derive(Clone, Copy, ValueEnum)]
enum KeyAlgorithm {
    Es256,
    Rs256,
}

pub(crate) async fn run(command: KeysCommand) -> Result<(), StartError> {
    match command {
        KeysCommand::Rotate(command) => rotate(*command).await,
        KeysCommand::List(command) => list(*command).await,
    }
}

async fn rotate(command: RotateCommand) -> Result<(), StartError> {
    let algorithm = match command.algorithm {
        KeyAlgorithm::Es256 => Algorithm::Es256,
        KeyAlgorithm::Rs256 => Algorithm::Rs256,
    };
    let storage = Storage::open_existing(&command.options.with_file()?).await?;
    let now = SystemClock.now();
    keys::load_or_create(&storage.db, &storage.wrapping_key, now).await?;
    let (kid, signs_from) = keys::add(&storage.db, &storage.wrapping_key, algorithm, now).await?;
    storage.db.close().await;
    let wait = signs_from - now.div_euclid(1_000_000);
    print(&format!("{kid} is published and signs in {wait} s\n"))
}

async fn list(command: ListCommand) -> Result<(), StartError> {
    let storage = Storage::open_existing(&command.options.with_file()?).await?;
    let ring = keys::load(&storage.db, &storage.wrapping_key).await?;
    storage.db.close().await;
    let now = SystemClock.now().div_euclid(1_000_000);
    let signing = ring.signing_key(now).map(|key| key.kid().to_owned());
    let mut table = Table::new(&["kid", "algorithm", "state"]);
    for key in ring.keys() {
        let state = match key.retired_at {
            _ if signing.as_deref() == Some(key.key.kid()) => "signs".to_owned(),
            Some(end) if end <= now => "retired".to_owned(),
            _ => format!("signs in {} s", key.signs_from - now),
        };
        table.push([key.key.kid().to_owned(), key.key.algorithm().as_str().to_owned(), state]);
    }
    print(&command.output.list(&table))
}
