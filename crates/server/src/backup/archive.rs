use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path as FilePath;
use std::sync::Arc;

use bowline_content::Digest;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutPayload};
use tokio::io::AsyncWriteExt as _;

use super::sealed::{self, Identity, Recipient, Sealer, sealed_size};
use crate::blobs::bucket;
use crate::error::StartError;
use crate::storage::create_private_directory;

/// The object that marks an archive.
const MARKER: &str = "archive";
/// Bytes up to which an object is written with one request.
const AT_ONCE: usize = 8 << 20;

/// Where backups are: a directory, or a bucket.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    shown: String,
    /// The directory, if this process alone writes to it.
    _lock: Option<Arc<File>>,
}

impl Archive {
    /// The archive of a directory, which is made if it is missing, or of `s3://bucket/prefix`.
    ///
    /// # Errors
    /// The directory cannot be made, or the bucket has no such name.
    pub(crate) fn open(location: &str) -> Result<Archive, StartError> {
        if location.contains("://") {
            let (store, prefix, shown) = bucket("the archive", location)?;
            let prefix = Path::parse(prefix).map_err(|error| StartError::Option(format!("{location}: {error}")))?;
            return Ok(Archive { store, prefix, shown, _lock: None });
        }
        let directory = FilePath::new(location);
        create_private_directory(directory)?;
        let unusable = |error: Error| StartError::Unusable {
            cause: format!("{location} cannot hold backups: {error}"),
            hint: "name a directory that this user may write".into(),
        };
        // A backup that was reported complete must survive the machine.
        let store = LocalFileSystem::new_with_prefix(directory).map_err(unusable)?;
        let store = store.with_fsync(true).with_automatic_cleanup(true);
        Ok(Archive { store: Arc::new(store), prefix: Path::default(), shown: location.to_owned(), _lock: None })
    }

    /// Marks an empty directory or bucket as an archive. Pruning removes everything that no backup names, so
    /// it must not run on anything else.
    ///
    /// # Errors
    /// The directory or bucket has other content, or the storage fails.
    pub(crate) async fn claim(&self) -> Result<(), StartError> {
        match self.store.head(&self.at(MARKER)).await {
            Ok(_) => return Ok(()),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(self.refused(MARKER, &error)),
        }
        if !self.list("").await?.is_empty() {
            return Err(StartError::Unusable {
                cause: format!("{} is not empty, and no archive of backups", self.shown),
                hint: "name an empty place, or one that has backups".into(),
            });
        }
        self.write_text(MARKER, "Backups of Bowline. See docs/OPERATIONS.md, Backup and restore.\n".into()).await
    }

    /// The same to write to. Of a directory, one process at a time is the writer: what it removes, another might rely on.
    ///
    /// # Errors
    /// Another process writes to it, or as [`Archive::open`] and [`Archive::claim`].
    pub(crate) async fn open_to_write(location: &str) -> Result<Archive, StartError> {
        let archive = Archive::open(location)?;
        archive.claim().await?;
        if location.contains("://") {
            return Ok(archive);
        }
        let failed = |source| StartError::File { path: location.into(), source };
        let directory = File::open(location).map_err(failed)?;
        match directory.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StartError::Unusable {
                    cause: format!("another backup is being written to {location}"),
                    hint: "run this again when that one is done".into(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        remove_unfinished(FilePath::new(location)).map_err(failed)?;
        Ok(Archive { _lock: Some(Arc::new(directory)), ..archive })
    }

    /// An archive that is there already.
    ///
    /// # Errors
    /// It is not, or as [`Archive::open`].
    pub(crate) fn open_existing(location: &str) -> Result<Archive, StartError> {
        if !location.contains("://") && !FilePath::new(location).is_dir() {
            return Err(StartError::Option(format!("there is no directory {location}: name the archive with --from")));
        }
        Archive::open(location)
    }

    fn at(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), Path::join)
    }

    /// Whether there is an object of the size that so many bytes take when they are encrypted. One of another size was
    /// damaged, or broke off.
    pub(crate) async fn has(&self, name: &str, plain: u64) -> Result<bool, StartError> {
        match self.store.head(&self.at(name)).await {
            Ok(found) => Ok(found.size == sealed_size(plain)),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.refused(name, &error)),
        }
    }

    /// Encrypts a stream into an object, which is there as a whole or not at all.
    ///
    /// # Errors
    /// The stream breaks off, or the storage refuses.
    pub(crate) async fn write(
        &self,
        recipient: &Recipient,
        name: &str,
        mut plain: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), StartError> {
        let defect = |error: rustls::Error| StartError::Defect(format!("encryption: {error}"));
        let (head, mut sealer) = Sealer::begin(recipient, name).map_err(defect)?;
        let mut writer = BufWriter::with_capacity(self.store.clone(), self.at(name), AT_ONCE);
        let written = async {
            writer.write_all(&head).await.map_err(|error| self.refused(name, &error))?;
            while let Some(bytes) = plain.next().await {
                let bytes = bytes.map_err(|error| StartError::Unusable {
                    cause: format!("{name} cannot be read: {error}"),
                    hint: "see what is wrong with: bowline registry verify".into(),
                })?;
                let sealed = sealer.push(&bytes).map_err(defect)?;
                writer.write_all(&sealed).await.map_err(|error| self.refused(name, &error))?;
            }
            writer.write_all(&sealer.end().map_err(defect)?).await.map_err(|error| self.refused(name, &error))
        };
        if let Err(error) = written.await {
            // What was sent so far is removed where that is possible; the first error is returned.
            let _ = writer.abort().await;
            return Err(error);
        }
        writer.shutdown().await.map_err(|error| self.refused(name, &error))
    }

    /// Decrypts an object; absent if it is not there.
    pub(crate) async fn read(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<Option<BoxStream<'static, io::Result<Bytes>>>, StartError> {
        match self.store.get(&self.at(name)).await {
            Ok(found) => Ok(Some(sealed::open(identity, name, found.into_stream().map_err(io::Error::other).boxed()))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.refused(name, &error)),
        }
    }

    /// Writes a text that is not secret.
    pub(crate) async fn write_text(&self, name: &str, text: String) -> Result<(), StartError> {
        let put = self.store.put(&self.at(name), PutPayload::from(text)).await;
        put.map(drop).map_err(|error| self.refused(name, &error))
    }

    /// Reads such a text.
    ///
    /// # Errors
    /// It is not there, or the storage refuses.
    pub(crate) async fn read_text(&self, name: &str) -> Result<String, StartError> {
        let refused = |error: Error| self.refused(name, &error);
        let bytes = self.store.get(&self.at(name)).await.map_err(refused)?.bytes().await.map_err(refused)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Names of the backups that are whole, the oldest first.
    pub(crate) async fn backups(&self) -> Result<Vec<String>, StartError> {
        let mut names: Vec<String> = self
            .list("backups")
            .await?
            .iter()
            .filter_map(|path| path.strip_suffix("/manifest").map(str::to_owned))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Removes all but the newest backups, and the blobs that none of those names; how many backups and blobs went.
    pub(crate) async fn prune(&self, keep: usize) -> Result<(usize, usize), StartError> {
        let names = self.backups().await?;
        let old = &names[..names.len().saturating_sub(keep)];
        if old.is_empty() {
            return Ok((0, 0));
        }
        // What has no manifest any more is no backup, whatever else of it is still there.
        for name in old {
            for part in ["manifest", "database", "blobs"] {
                self.delete(&format!("backups/{name}/{part}")).await?;
            }
        }
        let mut named = BTreeSet::new();
        for name in &names[old.len()..] {
            let digests = self.read_text(&format!("backups/{name}/blobs")).await?;
            named.extend(digests.lines().map(blob_name));
        }
        let mut removed = 0;
        for path in self.list("blobs").await? {
            let path = format!("blobs/{path}");
            if is_blob_name(&path) && !named.contains(&path) {
                self.delete(&path).await?;
                removed += 1;
            }
        }
        Ok((old.len(), removed))
    }

    /// Names below a directory, without it.
    async fn list(&self, directory: &str) -> Result<Vec<String>, StartError> {
        let below = if directory.is_empty() { self.prefix.clone() } else { self.at(directory) };
        let mut listed = self.store.list(Some(&below));
        let mut names = Vec::new();
        while let Some(object) = listed.try_next().await.map_err(|error| self.refused(directory, &error))? {
            let parts = object.location.prefix_match(&below).into_iter().flatten();
            names.push(parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"));
        }
        Ok(names)
    }

    async fn delete(&self, name: &str) -> Result<(), StartError> {
        match self.store.delete(&self.at(name)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.refused(name, &error)),
        }
    }

    fn refused(&self, name: &str, error: &dyn std::fmt::Display) -> StartError {
        StartError::Unusable {
            cause: format!("{name} of the backups in {}: {error}", self.shown),
            hint:
                "see to the disk or the bucket, and run the command again: what is there already is not written again"
                    .into(),
        }
    }
}

/// Removes the files that a killed process was writing: their names end with a number sign and a number.
fn remove_unfinished(directory: &FilePath) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_unfinished(&entry.path())?;
        } else if let Some((_, number)) = entry.file_name().to_string_lossy().rsplit_once('#')
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Where the bytes of a blob are.
pub(crate) fn blob_name(digest: &str) -> String {
    let hex = digest.split_once(':').map_or(digest, |(_, hex)| hex);
    format!("blobs/{}/{}", hex.get(..2).unwrap_or(hex), digest.replace(':', "-"))
}

/// Whether [`blob_name`] could have given this name.
fn is_blob_name(name: &str) -> bool {
    let digest = name.rsplit('/').next().unwrap_or_default().replacen('-', ":", 1);
    Digest::parse(&digest).is_ok() && blob_name(&digest) == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_blobs_and_other_names_are_distinguished() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let name = blob_name(&digest);
        assert_eq!(name, format!("blobs/0a/sha256-{}", "0a".repeat(32)));
        assert!(is_blob_name(&name) && is_blob_name(&blob_name(&format!("sha512:{}", "0a".repeat(64)))));
        let of_a_server = format!("blobs/sha256/0a/{}-0b", "0a".repeat(32));
        for other in [of_a_server.as_str(), "blobs/0a/sha256-0a", "blobs/owner", &name.replace("/0a/", "/0b/")] {
            assert!(!is_blob_name(other), "{other}");
        }
    }

    #[tokio::test]
    async fn a_place_with_something_else_in_it_is_no_archive() {
        let directory = tempfile::tempdir().unwrap();
        let location = directory.path().to_str().unwrap();
        std::fs::write(directory.path().join("owner"), "x").unwrap();
        let refused = Archive::open_to_write(location).await.unwrap_err().to_string();
        assert!(refused.contains("is not empty, and no archive of backups"), "{refused}");
        std::fs::remove_file(directory.path().join("owner")).unwrap();
        let archive = Archive::open_to_write(location).await.unwrap();
        let refused = Archive::open_to_write(location).await.unwrap_err().to_string();
        assert!(refused.contains("another backup is being written"), "{refused}");
        drop(archive);
        std::fs::write(directory.path().join("more"), "x").unwrap();
        Archive::open_to_write(location).await.unwrap();
    }
}
