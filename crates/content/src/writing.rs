//! Writing to an upload's file, one request at a time.
//!
//! A request may go away at any moment, and what it began here continues without it. So the hold on the upload is with
//! the work, not with the request.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::content::{Addition, Part, WAITING, blocking, joined};
use crate::digest::Digest;
use crate::error::ContentError;
use crate::files::{hash_of, remove, sync_directory};
use crate::hasher::Hasher;
use crate::local::Local;
use crate::tail::Tail;
use crate::under_way::Busy;

/// Bytes after which the disk is set to work while a body still arrives.
const FLUSHED_AT_ONCE: u64 = 16 << 20;

/// Holds an upload for one request of this process.
pub(crate) struct Hold {
    local: Arc<Local>,
    busy: Busy,
}

impl Hold {
    /// Takes hold of an upload.
    ///
    /// # Errors
    /// Another request has it.
    pub(crate) fn take(local: &Arc<Local>, id: &str) -> Result<Hold, ContentError> {
        Ok(Hold { local: local.clone(), busy: local.under_way.take(id)? })
    }

    /// Opens the upload's file, at whose end is written, and locks it against other processes until it is closed.
    ///
    /// # Errors
    /// There is no such upload, another process has it, or the disk refuses.
    pub(crate) fn open(&self) -> Result<File, ContentError> {
        let path = self.local.upload(self.busy.id());
        let absent = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => ContentError::UnknownUpload,
            _ => error.into(),
        };
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(absent)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => ContentError::Busy,
            TryLockError::Error(error) => error.into(),
        })?;
        // Before the lock was taken, the upload may have become a blob, which no one writes to.
        let (named, opened) = (std::fs::metadata(&path).map_err(absent)?, file.metadata()?);
        let is_same = (named.dev(), named.ino()) == (opened.dev(), opened.ino());
        if is_same { Ok(file) } else { Err(ContentError::UnknownUpload) }
    }

    pub(crate) fn remove(&self) -> Result<(), ContentError> {
        self.busy.forget();
        remove(&self.local.upload(self.busy.id())).map(|_| ())
    }
}

/// Writes what arrives to the upload's end; its size afterwards. After a failure it is as it was before.
///
/// A thread is taken for what has arrived, not for the time until more does: a sender that is slow holds none, and a
/// small body costs one change of threads.
pub(crate) async fn append(
    hold: Hold,
    addition: Addition,
    mut parts: mpsc::Receiver<Part>,
) -> Result<u64, ContentError> {
    let arrived = next(&mut parts).await;
    let (mut growing, mut is_whole) = blocking(move || Growing::begin(hold, addition)?.write(&arrived)).await?;
    let mut flushed = growing.before;
    let mut flushing: Option<JoinHandle<Result<(), ContentError>>> = None;
    while !is_whole {
        // Data is flushed while more arrives, so that little is left for the end.
        let is_idle = flushing.as_ref().is_none_or(JoinHandle::is_finished);
        if is_idle && growing.size - flushed >= FLUSHED_AT_ONCE {
            flushed = growing.size;
            // Opened again: what shares the lock would keep it until the disk is done.
            let path = growing.hold.local.upload(growing.hold.busy.id());
            let next = tokio::task::spawn_blocking(move || Ok(File::open(path)?.sync_data()?));
            if let Some(before) = flushing.replace(next) {
                joined(before).await?;
            }
        }
        let arrived = next(&mut parts).await;
        (growing, is_whole) = match arrived.as_slice() {
            // Nothing is left for the disk to do.
            [Part::End] => growing.write(&arrived)?,
            _ => blocking(move || growing.write(&arrived)).await?,
        };
    }
    if let Some(last) = flushing {
        joined(last).await?;
    }
    Ok(growing.size)
}

/// What has arrived, at least something of it; nothing if the body broke off.
async fn next(parts: &mut mpsc::Receiver<Part>) -> Vec<Part> {
    let mut arrived = Vec::with_capacity(WAITING);
    parts.recv_many(&mut arrived, WAITING).await;
    arrived
}

/// An upload while a body is written to its end.
struct Growing {
    hold: Hold,
    /// Open, and locked against other processes.
    file: File,
    before: u64,
    size: u64,
    /// The digest of the bytes before, and with those of the body, as far as it is known.
    known: Option<Hasher>,
    hasher: Option<Hasher>,
    limit: u64,
    tail: Option<Tail>,
}

impl Growing {
    fn begin(hold: Hold, addition: Addition) -> Result<Growing, ContentError> {
        let file = hold.open()?;
        let before = file.metadata()?.len();
        addition.require_start(before)?;
        let known = hold.busy.recall(before, addition.algorithm);
        let Addition { limit, tail, .. } = addition;
        Ok(Growing { hold, file, before, size: before, hasher: known.clone(), known, limit, tail })
    }

    /// Writes what has arrived; whether that was the end. Nothing at all means that the body broke off.
    fn write(mut self, arrived: &[Part]) -> Result<(Growing, bool), ContentError> {
        let written = self.write_all(arrived);
        if written.is_ok() {
            self.hash(arrived);
        }
        if let (Ok(true), Some(tail)) = (&written, &self.tail) {
            tail.compare(self.size, self.hasher.as_ref());
        }
        match written {
            Ok(true) => {
                self.hold.busy.insert(self.size, self.hasher.take());
                Ok((self, true))
            }
            Ok(false) => Ok((self, false)),
            Err(error) => {
                if let Some(tail) = &self.tail {
                    tail.fail();
                }
                self.file.set_len(self.before)?;
                self.hold.busy.insert(self.before, self.known.take());
                Err(error)
            }
        }
    }

    fn write_all(&mut self, arrived: &[Part]) -> Result<bool, ContentError> {
        if arrived.is_empty() {
            return Err(ContentError::Interrupted);
        }
        for part in arrived {
            let Part::Bytes(part) = part else { return Ok(true) };
            self.size += part.len() as u64;
            if self.size > self.limit {
                return Err(ContentError::TooLarge(self.limit));
            }
            self.hold.local.is_full.require_room()?;
            self.file.write_all(part)?;
            // Readers have each part before those after it, and before it is hashed: their last bytes wait for the digest
            // anyway.
            if let Some(tail) = &self.tail {
                tail.has_grown(self.size);
            }
        }
        Ok(false)
    }

    fn hash(&mut self, arrived: &[Part]) {
        let Some(hasher) = &mut self.hasher else { return };
        for part in arrived {
            if let Part::Bytes(part) = part {
                hasher.update(part);
            }
        }
    }
}

/// Makes an upload the replica of the blob that it was compared with, durably; returns its size.
///
/// The upload is renamed, then its bytes are flushed, then the directory. A crash in between leaves a file without a row,
/// which garbage collection deletes.
pub(crate) async fn finish(hold: Hold, digest: Digest) -> Result<u64, ContentError> {
    blocking(move || location(&hold, &digest)).await
}

/// Compares the digest, renames the upload to the location of the blob and flushes both; deletes an upload with another
/// digest. It waits for the disk.
fn location(hold: &Hold, digest: &Digest) -> Result<u64, ContentError> {
    let local = &hold.local;
    let file = hold.open()?;
    let size = file.metadata()?.len();
    let hasher = match hold.busy.recall(size, digest.algorithm()) {
        Some(hasher) => hasher,
        None => hash_of(file.try_clone()?, digest.algorithm())?,
    };
    let actual = hasher.finish();
    if actual != *digest {
        hold.remove()?;
        return Err(ContentError::Mismatch { actual });
    }
    let location = local.blob(digest, hold.busy.id());
    local.make_directory(&location)?;
    std::fs::rename(local.upload(hold.busy.id()), &location)?;
    file.sync_data()?;
    sync_directory(location.parent().unwrap_or(&location))?;
    Ok(size)
}
