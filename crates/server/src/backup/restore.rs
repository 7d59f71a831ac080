use std::io;
use std::path::Path;

use bowline_authn::crypto::KeyEncryptionKey;
use bowline_content::Digest;
use bowline_registry::content::garbage::BlobRow;
use bowline_store::{BoxFuture, Db, MIGRATIONS, SqliteOptions};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use tokio::io::AsyncWriteExt as _;

use super::archive::{Archive, blob_name};
use super::create::hash;
use super::sealed::Identity;
use super::{FORMAT, MANIFEST_CONTEXT, Manifest, Scratch};
use crate::error::StartError;
use crate::transfer::{BlobBytes, BlobSource};

/// Maximum bytes of a manifest.
const MANIFEST: usize = 1 << 20;

/// A backup whose database lies on the disk, opened.
pub(crate) struct Fetched {
    pub(crate) manifest: Manifest,
    pub(crate) db: Db,
    pub(crate) blobs: ArchivedBlobs,
    /// Removed with what is in it.
    _scratch: Scratch,
}

/// Blobs of an archive.
pub(crate) struct ArchivedBlobs {
    archive: Archive,
    identity: Identity,
}

impl BlobSource for ArchivedBlobs {
    fn open<'a>(
        &'a self,
        row: &'a BlobRow,
        _digest: &'a Digest,
    ) -> BoxFuture<'a, Result<Option<BlobBytes>, StartError>> {
        Box::pin(async move { self.archive.read(&self.identity, &blob_name(&row.digest)).await })
    }

    fn shown(&self, row: &BlobRow, _digest: &Digest) -> String {
        format!("the backup's {}", blob_name(&row.digest))
    }

    fn remedy(&self) -> &'static str {
        "restore an older backup with --backup, or this one without such blobs with --skip-bad-blobs"
    }
}

/// Fetches the manifest and the database of a backup, the newest if none is named, into a directory below `work`.
///
/// # Errors
/// There is no backup, a key does not open it, something is damaged or missing, or a newer program made it.
pub(crate) async fn fetch(
    archive: &Archive,
    identity: &Identity,
    key: &KeyEncryptionKey,
    name: Option<&str>,
    work: &Path,
) -> Result<Fetched, StartError> {
    let names = archive.backups().await?;
    let name = match name {
        Some(name) => names.iter().find(|known| *known == name),
        None => names.last(),
    };
    let name = name.ok_or_else(|| StartError::Unusable {
        cause: if names.is_empty() { "there is no backup" } else { "there is no backup of that name" }.into(),
        hint: "see what there is with: bowline backup list".into(),
    })?;
    let manifest = manifest(archive, identity, key, name).await?;
    let scratch = Scratch::below(work)?;
    let file = scratch.join("database");
    let part = format!("backups/{name}/database");
    let plain = archive.read(identity, &part).await?.ok_or_else(|| unusable(&part, &"it is missing"))?;
    write_file(&file, plain).await.map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull => StartError::Unusable {
            cause: format!("{} has no room for the database of the backup", work.display()),
            hint: "free some, or name another directory with --work-dir".into(),
        },
        _ => unusable(&part, &error),
    })?;
    let found = hash(&file).await.map_err(|error| StartError::File { path: file.clone(), source: error })?;
    if found != (manifest.database_sha256.clone(), manifest.database_bytes) {
        return Err(unusable(&part, &"it is not the file that the manifest names"));
    }
    let db = Db::open_sqlite(&file, SqliteOptions::default()).await?;
    db.migrate(MIGRATIONS).await?;
    let blobs = ArchivedBlobs { archive: archive.clone(), identity: identity.clone() };
    Ok(Fetched { manifest, db, blobs, _scratch: scratch })
}

async fn manifest(
    archive: &Archive,
    identity: &Identity,
    key: &KeyEncryptionKey,
    name: &str,
) -> Result<Manifest, StartError> {
    let part = format!("backups/{name}/manifest");
    let mut plain = archive.read(identity, &part).await?.ok_or_else(|| unusable(&part, &"it is missing"))?;
    let mut sealed = Vec::new();
    while let Some(bytes) = plain.try_next().await.map_err(|error| unusable(&part, &error))? {
        sealed.extend_from_slice(&bytes);
        if sealed.len() > MANIFEST {
            return Err(unusable(&part, &"it is too large"));
        }
    }
    let json = key.open(MANIFEST_CONTEXT, &sealed).map_err(|_| StartError::Unusable {
        cause: format!("the backup {name} was not made with this key file"),
        hint: "name the key file of the server that made it with --key-file".into(),
    })?;
    let manifest: Manifest = serde_json::from_slice(&json).map_err(|error| unusable(&part, &error))?;
    if manifest.format != FORMAT || manifest.name != name {
        return Err(unusable(&part, &format!("it is of the backup {}, in format {}", manifest.name, manifest.format)));
    }
    Ok(manifest)
}

async fn write_file(file: &Path, mut plain: BoxStream<'static, io::Result<Bytes>>) -> io::Result<()> {
    let mut out = tokio::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).await?;
    while let Some(bytes) = plain.try_next().await? {
        out.write_all(&bytes).await?;
    }
    out.flush().await
}

fn unusable(part: &str, cause: &dyn std::fmt::Display) -> StartError {
    StartError::Unusable {
        cause: format!("{part} cannot be used: {cause}"),
        hint: "name the private key that fits with --identity, or an older backup with --backup".into(),
    }
}
