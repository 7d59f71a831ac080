use std::fmt::Write as _;

use bowline_authn::keys::Algorithm;
use bowline_core::{Clock as _, SystemClock};
use clap::{Args, Subcommand, ValueEnum};

use crate::cli::print;
use crate::error::StartError;
use crate::keys;
use crate::options::Options;
use crate::storage::Storage;
use crate::storage_options::StorageOptions;

/// `bowline keys`.
#[derive(Subcommand)]
pub(crate) enum KeysCommand {
    /// Add a signing key: published at once, signing 10 minutes later; the old one is accepted an hour longer
    Rotate(Box<RotateCommand>),
    /// List the signing keys
    List(Box<StorageOptions>),
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
        KeysCommand::List(options) => list(options.with_file()?).await,
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

async fn list(options: Options) -> Result<(), StartError> {
    let storage = Storage::open_existing(&options).await?;
    let ring = keys::load(&storage.db, &storage.wrapping_key).await?;
    storage.db.close().await;
    let now = SystemClock.now().div_euclid(1_000_000);
    let signing = ring.signing_key(now).map(|key| key.kid().to_owned());
    let mut text = String::from("KID\tALGORITHM\tSTATE\n");
    for key in ring.keys() {
        let state = match key.retired_at {
            _ if signing.as_deref() == Some(key.key.kid()) => "signs".to_owned(),
            Some(end) if end <= now => "retired".to_owned(),
            _ => format!("signs in {} s", key.signs_from - now),
        };
        let _ = writeln!(text, "{}\t{}\t{state}", key.key.kid(), key.key.algorithm().as_str());
    }
    print(&text)
}
