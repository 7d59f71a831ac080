//! Rows of hosted files.

use bowline_contract::bowline::libraries::v1::HostedFile;
use bowline_core::{Micros, Result, Uidp};
use bowline_pipeline::{Change, ResourceSnapshot};
use bowline_resources::kinds::PACKAGE_FILE;
use bowline_store::{ReadTx, Row, Value};

use crate::ecosystems::Language;
use crate::policy::purl;

/// Digests that clients of Maven verify a file by, in lower-case hex; empty for files of other ecosystems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checksums {
    pub md5: String,
    pub sha1: String,
    pub sha512: String,
}

/// A file as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileRow {
    pub(super) name: String,
    pub(super) sort_key: Vec<u8>,
    pub(super) size: u64,
    pub(super) sha256: String,
    /// Digest of its core metadata; empty without.
    pub(super) metadata_sha256: String,
    pub(super) requires_python: String,
    pub(super) created_at: Micros,
    pub(super) is_deleted: bool,
    pub(super) checksums: Checksums,
}

impl FileRow {
    /// Digests of its bytes and of its core metadata, in hex.
    pub(super) fn digests(&self) -> impl Iterator<Item = &str> {
        [self.sha256.as_str(), self.metadata_sha256.as_str()].into_iter().filter(|digest| !digest.is_empty())
    }
}

const COLUMNS: &str = "name, sort_key, size_bytes, sha256, metadata_sha256, requires_python, created_at, \
                       deleted_at IS NOT NULL, md5, sha1, sha512";

fn read(row: &Row<'_>) -> Result<FileRow> {
    Ok(FileRow {
        name: row.text(0)?,
        sort_key: row.bytes(1)?,
        size: row.int(2)?.unsigned_abs(),
        sha256: row.text(3)?,
        metadata_sha256: row.text(4)?,
        requires_python: row.text(5)?,
        created_at: row.int(6)?,
        is_deleted: row.bool(7)?,
        checksums: Checksums { md5: row.text(8)?, sha1: row.text(9)?, sha512: row.text(10)? },
    })
}

/// The file of this name, deleted ones too.
pub(super) async fn find(tx: &mut ReadTx, repository: &Uidp, package: &str, name: &str) -> Result<Option<FileRow>> {
    let sql = format!("SELECT {COLUMNS} FROM hosted_files WHERE repository = $1 AND package = $2 AND name = $3");
    let params = [Value::from(repository.as_str()), Value::from(package), Value::from(name)];
    tx.query_opt(&sql, &params, read).await
}

/// The files of a version that are there, by name.
pub(super) async fn of_version(
    tx: &mut ReadTx,
    repository: &Uidp,
    package: &str,
    sort_key: &[u8],
) -> Result<Vec<FileRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM hosted_files
         WHERE repository = $1 AND package = $2 AND sort_key = $3 AND deleted_at IS NULL ORDER BY name"
    );
    tx.query(&sql, &[Value::from(repository.as_str()), Value::from(package), Value::from(sort_key)], read).await
}

/// A file that came or went, for the audit log and the event.
pub(super) fn snapshot(group: &Uidp, language: Language, package: &str, version: &str, file: &FileRow) -> HostedFile {
    HostedFile {
        parent: group.as_str().into(),
        purl: purl::of_version(language, package, version),
        name: file.name.clone(),
        sha256: file.sha256.clone(),
        size_bytes: i64::try_from(file.size).unwrap_or(i64::MAX),
        attestations: Vec::new(),
    }
}

/// The change that a new file is.
pub(super) fn published(repository: &Uidp, file: &HostedFile) -> Change {
    Change {
        kind: PACKAGE_FILE,
        uid: repository.as_str().into(),
        before: None,
        after: Some(ResourceSnapshot::of(file)),
    }
}
