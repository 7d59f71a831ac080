//! Backups: a consistent database, and every blob that it names, in an archive that only the holder of a private key reads.
//!
//! An archive is a directory or a bucket:
//!
//! | object | content |
//! |---|---|
//! | `blobs/<xx>/<digest>` | the bytes of a blob; shared by all backups, written once |
//! | `backups/<name>/database` | the database as an SQLite file, whichever engine it came from |
//! | `backups/<name>/blobs` | digests of the blobs, a line each, not encrypted: what pruning keeps |
//! | `backups/<name>/manifest` | [`Manifest`]; written last, so that what has none is no backup |
//!
//! All but the list of digests is encrypted to a public key ([`sealed`]). The manifest is also sealed with
//! the server's key file, which is not in the archive: write access to the archive is not enough to forge a
//! backup that a restore accepts.

mod archive;
mod create;
mod removed;
mod restore;
mod schedule;
mod scratch;
mod sealed;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::StartError;
use crate::options::Options;

pub(crate) use archive::Archive;
pub(crate) use create::{Created, Source, create};
pub(crate) use removed::{Removal, end_without, removed_since};
pub(crate) use restore::{Fetched, fetch};
pub use schedule::BackupSchedule;
pub(crate) use schedule::run;
pub(crate) use scratch::Scratch;
pub(crate) use sealed::{Identity, Recipient};

/// What a backup says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Of this description: 1.
    pub(crate) format: u32,
    pub(crate) name: String,
    /// Version of the program that made it.
    pub(crate) version: String,
    /// When the database was as it is in the backup.
    pub(crate) at: String,
    pub(crate) rows: u64,
    pub(crate) blobs: u64,
    pub(crate) blob_bytes: u64,
    /// Hexadecimal SHA-256 of the database file.
    pub(crate) database_sha256: String,
    pub(crate) database_bytes: u64,
}

/// The description that this program writes.
const FORMAT: u32 = 1;
/// What the manifest is sealed for with the key file.
const MANIFEST_CONTEXT: &str = "backup manifest";

/// Reads a public key.
///
/// # Errors
/// The text is not a public key.
pub(crate) fn recipient(text: &str) -> Result<Recipient, StartError> {
    Recipient::parse(text).ok_or_else(|| {
        StartError::Option(
            "the recipient is no public key: it begins with bowline-recipient-1: and is what bowline backup keygen printed"
                .into(),
        )
    })
}

/// The default directory for a copy of the database.
pub(crate) fn work_directory(options: &Options) -> PathBuf {
    if options.database_url.is_none() { options.data_dir() } else { std::env::temp_dir() }
}
