//! Writing to an upload, one request at a time: what runs where the disk may be waited for.
//!
//! A request may go away at any moment, and what it began here goes on without it. So the hold on the upload is with
//! the work, not with the request.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::digest::{Algorithm, Digest};
use crate::error::ContentError;
use crate::files::{hash_of, remove, sync_directory};
use crate::hasher::Hasher;
use crate::local::Shared;

/// Uploads whose digest is remembered between requests; of others the file is read again.
const REMEMBERED: usize = 1024;

/// What the writer is sent. Without an end the body broke off.
pub(crate) enum Part {
    Bytes(Bytes),
    End,
}

/// Holds an upload for one request of this process.
pub(crate) struct Hold {
    shared: Arc<Shared>,
    id: String,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.lock().busy.remove(&self.id);
    }
}

impl Hold {
    /// Takes hold of an upload.
    ///
    /// # Errors
    /// Another request has it.
    pub(crate) fn take(shared: &Arc<Shared>, id: &str) -> Result<Hold, ContentError> {
        if !shared.lock().busy.insert(id.to_owned()) {
            return Err(ContentError::Busy);
        }
        Ok(Hold { shared: shared.clone(), id: id.to_owned() })
    }

    /// Opens the upload's file, at whose end is written, and locks it against other processes until it is closed.
    ///
    /// # Errors
    /// There is no such upload, another process has it, or the disk refuses.
    pub(crate) fn open(&self) -> Result<File, ContentError> {
        let path = self.shared.upload(&self.id);
        let absent = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => ContentError::UnknownUpload,
            _ => error.into(),
        };
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(absent)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => ContentError::Busy,
            TryLockError::Error(error) => error.into(),
        })?;
        // Before the lock was taken, the upload may have become a blob, which nobody writes to.
        let (named, opened) = (std::fs::metadata(&path).map_err(absent)?, file.metadata()?);
        let is_same = (named.dev(), named.ino()) == (opened.dev(), opened.ino());
        if is_same { Ok(file) } else { Err(ContentError::UnknownUpload) }
    }

    /// Ends the upload.
    pub(crate) fn remove(&self) -> Result<(), ContentError> {
        self.shared.lock().hashers.remove(&self.id);
        remove(&self.shared.upload(&self.id)).map(|_| ())
    }
}

/// Writes what arrives to the upload's end; its size afterwards. After a failure it is as it was before.
pub(crate) fn append(
    hold: &Hold,
    start: Option<u64>,
    parts: mpsc::Receiver<Part>,
    algorithm: Algorithm,
    limit: u64,
) -> Result<u64, ContentError> {
    let file = hold.open()?;
    let before = file.metadata()?.len();
    if start.is_some_and(|start| start != before) {
        return Err(ContentError::OutOfOrder { uploaded: before });
    }
    // A digest of a part cannot be continued by another algorithm, nor from another place.
    let known = hold.shared.lock().hashers.remove(&hold.id).filter(|(covered, _)| *covered == before);
    let hasher = match known {
        Some((_, hasher)) if hasher.algorithm() == algorithm => Some(hasher),
        _ if before == 0 => Some(Hasher::new(algorithm)),
        _ => None,
    };
    match append_parts(&file, before, parts, hasher, limit) {
        Ok((size, hasher)) => {
            if let Some(hasher) = hasher {
                remember(hold, size, hasher);
            }
            Ok(size)
        }
        Err(error) => {
            file.set_len(before)?;
            Err(error)
        }
    }
}

fn append_parts(
    mut file: &File,
    before: u64,
    mut parts: mpsc::Receiver<Part>,
    mut hasher: Option<Hasher>,
    limit: u64,
) -> Result<(u64, Option<Hasher>), ContentError> {
    let mut size = before;
    loop {
        let part = match parts.blocking_recv() {
            Some(Part::Bytes(part)) => part,
            Some(Part::End) => return Ok((size, hasher)),
            None => return Err(ContentError::Broken),
        };
        size += part.len() as u64;
        if size > limit {
            return Err(ContentError::TooLarge(limit));
        }
        file.write_all(&part)?;
        if let Some(hasher) = &mut hasher {
            hasher.update(&part);
        }
    }
}

fn remember(hold: &Hold, size: u64, hasher: Hasher) {
    let mut state = hold.shared.lock();
    if state.hashers.len() >= REMEMBERED {
        state.hashers.clear();
    }
    state.hashers.insert(hold.id.clone(), (size, hasher));
}

/// Makes an upload a copy of the blob that it was compared with; its size.
pub(crate) fn finish(hold: &Hold, digest: &Digest) -> Result<u64, ContentError> {
    let (shared, id) = (&hold.shared, &hold.id);
    let file = hold.open()?;
    let size = file.metadata()?.len();
    let known = shared.lock().hashers.remove(id);
    let known = known.filter(|(covered, hasher)| *covered == size && hasher.algorithm() == digest.algorithm());
    let hasher = match known {
        Some((_, hasher)) => hasher,
        None => hash_of(file.try_clone()?, digest.algorithm())?,
    };
    let found = hasher.finish();
    if found != *digest {
        hold.remove()?;
        return Err(ContentError::Mismatch { found });
    }
    file.sync_data()?;
    let place = shared.blob(digest, id);
    shared.make_directory(&place)?;
    std::fs::rename(shared.upload(id), &place)?;
    sync_directory(place.parent().unwrap_or(&place))?;
    Ok(size)
}
