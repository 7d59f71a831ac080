use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::mpsc;

use crate::digest::{Algorithm, Digest};
use crate::error::ContentError;
use crate::hasher::Hasher;
use crate::reader::Reader;

/// Parts of a body that wait for the disk at most: bounds the memory of a transfer.
const WAITING: usize = 4;
/// Uploads whose digest is remembered between requests; of others the file is read again.
const REMEMBERED: usize = 1024;

/// The bytes of all blobs, in a directory.
#[derive(Clone, Debug)]
pub struct Content {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    blobs: PathBuf,
    uploads: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Uploads that a request is writing to.
    busy: HashSet<String>,
    /// Digests under way, with how many bytes they cover.
    hashers: HashMap<String, (u64, Hasher)>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("busy", &self.busy.len()).field("hashers", &self.hashers.len()).finish()
    }
}

/// Holds an upload for one request.
struct Hold {
    shared: Arc<Shared>,
    id: String,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.lock().busy.remove(&self.id);
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn upload(&self, id: &str) -> PathBuf {
        self.uploads.join(id)
    }

    fn blob(&self, digest: &Digest) -> PathBuf {
        self.blobs.join(digest.algorithm().as_str()).join(&digest.hex()[..2]).join(digest.hex())
    }
}

impl Content {
    /// The content of a directory, which is made if it is missing.
    ///
    /// # Errors
    /// The directory cannot be made or written.
    pub fn open(directory: &Path) -> Result<Content, ContentError> {
        let shared =
            Shared { blobs: directory.to_owned(), uploads: directory.join("uploads"), state: Mutex::default() };
        std::fs::create_dir_all(&shared.uploads)?;
        sync_directory(&shared.blobs)?;
        Ok(Content { shared: Arc::new(shared) })
    }

    /// Begins an upload. Ids are the caller's, drawn at random, of hexadecimal characters.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn begin(&self, id: &str) -> Result<(), ContentError> {
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ContentError::UnknownUpload);
        }
        OpenOptions::new().write(true).create_new(true).open(self.shared.upload(id))?;
        Ok(())
    }

    /// How many bytes an upload has.
    ///
    /// # Errors
    /// There is no such upload.
    pub fn uploaded(&self, id: &str) -> Result<u64, ContentError> {
        match std::fs::metadata(self.shared.upload(id)) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(ContentError::UnknownUpload),
            Err(error) => Err(error.into()),
        }
    }

    /// Appends a body to an upload; its size afterwards. What arrived before a failure is taken back.
    ///
    /// `algorithm` is that of the digest that the upload will be compared with, as far as it is known. A body that says
    /// where it starts must start where the upload ends.
    ///
    /// # Errors
    /// The body starts elsewhere, breaks off or is larger than `limit`, or the disk refuses.
    pub async fn append<S, E>(
        &self,
        id: &str,
        start: Option<u64>,
        body: S,
        algorithm: Algorithm,
        limit: u64,
    ) -> Result<u64, ContentError>
    where
        S: Stream<Item = Result<Bytes, E>> + Send,
    {
        let hold = self.hold(id)?;
        let uploaded = self.uploaded(id)?;
        if start.is_some_and(|start| start != uploaded) {
            return Err(ContentError::OutOfOrder { uploaded });
        }
        let (sender, receiver) = mpsc::channel::<Bytes>(WAITING);
        let shared = self.shared.clone();
        let name = id.to_owned();
        let writer = tokio::task::spawn_blocking(move || write(&shared, &name, receiver, algorithm, limit));
        let mut body = std::pin::pin!(body);
        let mut broken = false;
        while let Some(part) = body.next().await {
            let Ok(part) = part else {
                broken = true;
                break;
            };
            // The writer went away: it says why.
            if sender.send(part).await.is_err() {
                break;
            }
        }
        drop(sender);
        let written = writer.await.map_err(|error| std::io::Error::other(error.to_string()))?;
        let before = written.before;
        let result = match written.result {
            _ if broken => Err(ContentError::Broken),
            result => result,
        };
        if result.is_err() {
            self.take_back(id, before)?;
        }
        drop(hold);
        result
    }

    fn hold(&self, id: &str) -> Result<Hold, ContentError> {
        if !self.shared.lock().busy.insert(id.to_owned()) {
            return Err(ContentError::Busy);
        }
        Ok(Hold { shared: self.shared.clone(), id: id.to_owned() })
    }

    fn take_back(&self, id: &str, size: u64) -> Result<(), ContentError> {
        self.shared.lock().hashers.remove(id);
        match OpenOptions::new().write(true).open(self.shared.upload(id)) {
            Ok(file) => Ok(file.set_len(size)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Compares an upload with its digest, makes it durable and gives it its place; its size. A blob that is there
    /// already stays as it is. A failed comparison ends the upload.
    ///
    /// # Errors
    /// Another digest, no such upload, or the disk refuses.
    pub async fn finish(&self, id: &str, digest: &Digest) -> Result<u64, ContentError> {
        let hold = self.hold(id)?;
        let (shared, id, digest) = (self.shared.clone(), id.to_owned(), digest.clone());
        let finished = tokio::task::spawn_blocking(move || finish(&shared, &id, &digest)).await;
        drop(hold);
        finished.map_err(|error| std::io::Error::other(error.to_string()))?
    }

    /// Ends an upload without a blob; one that does not exist is none the less ended.
    ///
    /// # Errors
    /// Another request writes to it, or the disk refuses.
    pub fn cancel(&self, id: &str) -> Result<(), ContentError> {
        let _hold = self.hold(id)?;
        self.shared.lock().hashers.remove(id);
        remove(&self.shared.upload(id)).map(|_| ())
    }

    /// Opens a blob; absent if it is not there.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn read(&self, digest: &Digest) -> Result<Option<Reader>, ContentError> {
        match File::open(self.shared.blob(digest)) {
            Ok(file) => {
                let size = file.metadata()?.len();
                Ok(Some(Reader::new(file, size)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a blob; whether it was there.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn delete(&self, digest: &Digest) -> Result<bool, ContentError> {
        remove(&self.shared.blob(digest))
    }

    /// The digest that the stored bytes really have; absent if there are none. Reads all of them.
    ///
    /// # Errors
    /// The disk refuses.
    pub async fn rehash(&self, digest: &Digest) -> Result<Option<Digest>, ContentError> {
        let (path, algorithm) = (self.shared.blob(digest), digest.algorithm());
        let work = tokio::task::spawn_blocking(move || match File::open(&path) {
            Ok(file) => Ok(Some(hash_of(file, algorithm)?.1.finish())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ContentError::from(error)),
        });
        work.await.map_err(|error| std::io::Error::other(error.to_string()))?
    }

    /// Calls `each` with every stored digest, one directory at a time.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn for_each(&self, mut each: impl FnMut(Digest)) -> Result<(), ContentError> {
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            for first in 0..=255u8 {
                let directory = self.shared.blobs.join(algorithm.as_str()).join(format!("{first:02x}"));
                let entries = match std::fs::read_dir(directory) {
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    entries => entries?,
                };
                for entry in entries {
                    let name = entry?.file_name();
                    let text = format!("{}:{}", algorithm.as_str(), name.to_string_lossy());
                    if let Ok(digest) = Digest::parse(&text) {
                        each(digest);
                    }
                }
            }
        }
        Ok(())
    }
}

struct Written {
    before: u64,
    result: Result<u64, ContentError>,
}

/// Writes what arrives to the upload's file, and hashes it on the way.
fn write(shared: &Shared, id: &str, parts: mpsc::Receiver<Bytes>, algorithm: Algorithm, limit: u64) -> Written {
    let opened = OpenOptions::new().append(true).open(shared.upload(id)).and_then(|file| {
        let before = file.metadata()?.len();
        Ok((file, before))
    });
    match opened {
        Ok((file, before)) => {
            Written { before, result: append_parts(shared, id, file, before, parts, algorithm, limit) }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Written { before: 0, result: Err(ContentError::UnknownUpload) }
        }
        Err(error) => Written { before: 0, result: Err(error.into()) },
    }
}

fn append_parts(
    shared: &Shared,
    id: &str,
    mut file: File,
    before: u64,
    mut parts: mpsc::Receiver<Bytes>,
    algorithm: Algorithm,
    limit: u64,
) -> Result<u64, ContentError> {
    // A digest of a part cannot be continued by another algorithm, nor from another place.
    let known = shared.lock().hashers.remove(id).filter(|(covered, _)| *covered == before);
    let mut hasher = match known {
        Some((_, hasher)) if hasher.algorithm() == algorithm => Some(hasher),
        _ if before == 0 => Some(Hasher::new(algorithm)),
        _ => None,
    };
    let mut size = before;
    while let Some(part) = parts.blocking_recv() {
        size += part.len() as u64;
        if size > limit {
            return Err(ContentError::TooLarge(limit));
        }
        file.write_all(&part)?;
        if let Some(hasher) = &mut hasher {
            hasher.update(&part);
        }
    }
    if let Some(hasher) = hasher {
        let mut state = shared.lock();
        if state.hashers.len() >= REMEMBERED {
            state.hashers.clear();
        }
        state.hashers.insert(id.to_owned(), (size, hasher));
    }
    Ok(size)
}

fn finish(shared: &Shared, id: &str, digest: &Digest) -> Result<u64, ContentError> {
    let path = shared.upload(id);
    let file = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(ContentError::UnknownUpload),
        Err(error) => return Err(error.into()),
    };
    let size = file.metadata()?.len();
    let known = shared.lock().hashers.remove(id);
    let known = known.filter(|(covered, hasher)| *covered == size && hasher.algorithm() == digest.algorithm());
    let hasher = match known {
        Some((_, hasher)) => hasher,
        None => hash_of(file.try_clone()?, digest.algorithm())?.1,
    };
    let found = hasher.finish();
    if found != *digest {
        remove(&path)?;
        return Err(ContentError::Mismatch { found });
    }
    let place = shared.blob(digest);
    if place.exists() {
        remove(&path)?;
        return Ok(size);
    }
    file.sync_data()?;
    move_into_place(&path, &place)?;
    Ok(size)
}

/// Renames, and makes the new name durable. Directories are made as they are needed.
fn move_into_place(path: &Path, place: &Path) -> Result<(), ContentError> {
    let Some(directory) = place.parent() else { return Ok(()) };
    match std::fs::rename(path, place) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir_all(directory)?;
            for above in directory.ancestors().skip(1).take(2) {
                sync_directory(above)?;
            }
            std::fs::rename(path, place)?;
        }
        renamed => renamed?,
    }
    sync_directory(directory)
}

fn hash_of(mut file: File, algorithm: Algorithm) -> Result<(u64, Hasher), ContentError> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = Hasher::new(algorithm);
    let mut buffer = vec![0; 256 * 1024];
    let mut size = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((size, hasher));
        }
        hasher.update(&buffer[..read]);
        size += read as u64;
    }
}

fn sync_directory(path: &Path) -> Result<(), ContentError> {
    Ok(File::open(path)?.sync_all()?)
}

fn remove(path: &Path) -> Result<bool, ContentError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
