use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::mpsc;

use crate::digest::{Algorithm, Digest};
use crate::error::ContentError;
use crate::files::{hash_of, remove, sync_directory};
use crate::hasher::Hasher;
use crate::reader::Reader;
use crate::writing::{Hold, Part};
use crate::{files, writing};

/// Parts of a body that wait for the disk at most: bounds the memory of a transfer.
const WAITING: usize = 4;

/// The bytes of all blobs, in a directory.
///
/// A blob lies under its digest and the id of the upload that brought it, so that two uploads of one digest never
/// share a file: whoever removes one copy removes no other. The id is empty where the digest alone is the name.
#[derive(Clone, Debug)]
pub struct Content {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    blobs: PathBuf,
    uploads: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    /// Uploads that a request is writing to.
    pub(crate) busy: HashSet<String>,
    /// Digests under way, with how many bytes they cover.
    pub(crate) hashers: HashMap<String, (u64, Hasher)>,
    /// Directories for blobs that are durable.
    made: HashSet<PathBuf>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("busy", &self.busy.len())
            .field("hashers", &self.hashers.len())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn upload(&self, id: &str) -> PathBuf {
        self.uploads.join(id)
    }

    /// Where the copy of a blob lies that an upload brought.
    pub(crate) fn blob(&self, digest: &Digest, upload: &str) -> PathBuf {
        let directory = files::directory_of(&self.blobs, digest);
        if upload.is_empty() {
            directory.join(digest.hex())
        } else {
            directory.join(format!("{}-{upload}", digest.hex()))
        }
    }

    /// The directory of that place, which is there for good when this returns.
    pub(crate) fn make_directory(&self, place: &Path) -> Result<(), ContentError> {
        let directory = place.parent().unwrap_or(place);
        if !self.lock().made.contains(directory) {
            files::make_directory(&self.blobs, directory)?;
            self.lock().made.insert(directory.to_owned());
        }
        Ok(())
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
        if !is_id(id) {
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
        files::size(&self.shared.upload(id))?.ok_or(ContentError::UnknownUpload)
    }

    /// Appends a body to an upload; its size afterwards. What arrived before a failure is taken back, also where nobody
    /// waits for the end any more.
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
        let hold = Hold::take(&self.shared, id)?;
        let (sender, parts) = mpsc::channel::<Part>(WAITING);
        let writer = tokio::task::spawn_blocking(move || writing::append(&hold, start, parts, algorithm, limit));
        let mut body = std::pin::pin!(body);
        loop {
            let part = tokio::select! {
                part = body.next() => part,
                // The writer went away: it says why.
                () = sender.closed() => break,
            };
            let (part, is_last) = match part {
                Some(Ok(bytes)) => (Part::Bytes(bytes), false),
                Some(Err(_)) => break,
                None => (Part::End, true),
            };
            if sender.send(part).await.is_err() || is_last {
                break;
            }
        }
        drop(sender);
        joined(writer).await
    }

    /// Compares an upload with its digest, makes it durable and gives it its place beside other copies of the blob; its
    /// size. A failed comparison ends the upload.
    ///
    /// # Errors
    /// Another digest, no such upload, or the disk refuses.
    pub async fn finish(&self, id: &str, digest: &Digest) -> Result<u64, ContentError> {
        let (hold, digest) = (Hold::take(&self.shared, id)?, digest.clone());
        joined(tokio::task::spawn_blocking(move || writing::finish(&hold, &digest))).await
    }

    /// Ends an upload without a blob; one that does not exist is none the less ended.
    ///
    /// # Errors
    /// Another request writes to it, or the disk refuses.
    pub fn cancel(&self, id: &str) -> Result<(), ContentError> {
        let hold = Hold::take(&self.shared, id)?;
        match hold.open() {
            Err(ContentError::UnknownUpload) => Ok(()),
            Err(error) => Err(error),
            Ok(_locked) => hold.remove(),
        }
    }

    /// Ids of the uploads that have a file.
    ///
    /// # Errors
    /// The disk refuses.
    pub async fn uploads(&self) -> Result<Vec<String>, ContentError> {
        let directory = self.shared.uploads.clone();
        let names = joined(tokio::task::spawn_blocking(move || files::names(&directory))).await?;
        Ok(names.into_iter().filter(|name| is_id(name)).collect())
    }

    /// Opens the copy of a blob that an upload brought; absent if it is not there.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn read(&self, digest: &Digest, upload: &str) -> Result<Option<Reader>, ContentError> {
        match File::open(self.shared.blob(digest, upload)) {
            Ok(file) => {
                let size = file.metadata()?.len();
                Ok(Some(Reader::new(file, size)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Bytes of a copy; absent if it is not there.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn size(&self, digest: &Digest, upload: &str) -> Result<Option<u64>, ContentError> {
        files::size(&self.shared.blob(digest, upload))
    }

    /// Removes a copy; whether it was there.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn delete(&self, digest: &Digest, upload: &str) -> Result<bool, ContentError> {
        remove(&self.shared.blob(digest, upload))
    }

    /// The digest that the bytes of a copy really have; absent if there are none. Reads all of them.
    ///
    /// # Errors
    /// The disk refuses.
    pub async fn rehash(&self, digest: &Digest, upload: &str) -> Result<Option<Digest>, ContentError> {
        let (path, algorithm) = (self.shared.blob(digest, upload), digest.algorithm());
        let work = tokio::task::spawn_blocking(move || match File::open(&path) {
            Ok(file) => Ok(Some(hash_of(file, algorithm)?.finish())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ContentError::from(error)),
        });
        joined(work).await
    }

    /// The copies in one of the directories that blobs lie in, each with its upload: see [`Content::directories`].
    ///
    /// # Errors
    /// The disk refuses.
    pub async fn copies(&self, algorithm: Algorithm, first: u8) -> Result<Vec<(Digest, String)>, ContentError> {
        let directory = files::directory(&self.shared.blobs, algorithm, first);
        let names = joined(tokio::task::spawn_blocking(move || files::names(&directory))).await?;
        let copy = |name: String| {
            let (hex, upload) = name.split_once('-').unwrap_or((&name, ""));
            let digest = Digest::parse(&format!("{}:{hex}", algorithm.as_str())).ok()?;
            (upload.is_empty() || is_id(upload)).then(|| (digest, upload.to_owned()))
        };
        Ok(names.into_iter().filter_map(copy).collect())
    }

    /// The directories that blobs lie in: by algorithm and first byte of the digest.
    pub fn directories() -> impl Iterator<Item = (Algorithm, u8)> {
        [Algorithm::Sha256, Algorithm::Sha512]
            .into_iter()
            .flat_map(|algorithm| (0..=255).map(move |first| (algorithm, first)))
    }
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

async fn joined<T>(work: tokio::task::JoinHandle<Result<T, ContentError>>) -> Result<T, ContentError> {
    work.await.map_err(|error| std::io::Error::other(error.to_string()))?
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
