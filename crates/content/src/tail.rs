//! Uploads that readers follow while they grow.
//!
//! A reader takes what is stored at its own pace: from the upload's file, or from a bounded window of the newest bytes
//! where an object store shows nothing before the end. The last bytes of every reader wait until the whole blob was
//! verified, so that no reader completes with bytes that turn out to be wrong; those of most tails wait until it is
//! committed, too.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::watch;

use crate::content::{Addition, BlobBackend, Content, is_id};
use crate::digest::Digest;
use crate::error::ContentError;
use crate::hasher::Hasher;
use crate::reader::{CHUNK, SMALL, chunk};

/// Bytes at the end of each reader's part that wait for the whole blob to be verified.
pub const HELD_BACK: u64 = 64 * 1024;
/// Bytes at the end of what is written of a file that still grows that count as just written.
const RECENT: u64 = 1 << 20;
/// Bytes of an upload to an object store that stay in memory for its readers.
const WINDOW: usize = 8 << 20;

/// How far an upload has come.
#[derive(Clone, Debug)]
enum Progress {
    Growing(u64),
    /// All bytes are there and have the digest.
    Verified,
    /// Verified and committed, under this upload's name.
    Whole(Arc<str>),
    Failed,
}

/// An upload that readers follow. Once all clones are dropped before the end, the readers' streams fail.
#[derive(Clone, Debug)]
pub struct Tail {
    progress: Arc<watch::Sender<Progress>>,
    bytes: Arc<TailBytes>,
    content: Content,
    digest: Digest,
    early: Option<Early>,
}

/// What an upload must have besides its digest for its readers to have all of it before it is committed.
#[derive(Clone, Copy, Debug)]
struct Early {
    /// Bytes, where something says how many.
    size: Option<u64>,
}

/// Where the bytes are before the end.
#[derive(Debug)]
enum TailBytes {
    File {
        file: Arc<File>,
        /// The first bytes, which readers have before they are written.
        head: OnceLock<Bytes>,
    },
    Window(Mutex<Window>),
}

/// The newest bytes of an upload.
#[derive(Debug, Default)]
struct Window {
    /// Position of the first byte.
    start: u64,
    size: usize,
    parts: VecDeque<Bytes>,
}

impl Content {
    /// Appends a body to a new upload like [`Content::append`], and shows the readers of `tail` its first bytes, and each part
    /// once it is written.
    ///
    /// # Errors
    /// As [`Content::append`].
    pub async fn append_followed<S, E>(&self, id: &str, body: S, limit: u64, tail: &Tail) -> Result<u64, ContentError>
    where
        S: Stream<Item = Result<Bytes, E>> + Send,
    {
        let body = body.inspect(|part| {
            if let Ok(part) = part {
                tail.begins(part);
            }
        });
        let (algorithm, tail) = (tail.digest().algorithm(), Some(tail.clone()));
        self.add(id, Addition { start: Some(0), algorithm, limit, tail }, body).await
    }

    /// Lets readers follow an upload that has begun, and is to become a blob with this digest.
    ///
    /// # Errors
    /// The upload does not exist.
    pub fn tail(&self, id: &str, digest: &Digest) -> Result<Tail, ContentError> {
        match &self.backend {
            BlobBackend::Local(local) => {
                let file = local.open_upload(id)?.ok_or(ContentError::UnknownUpload)?;
                Ok(Tail::of_file(self.clone(), digest.clone(), file))
            }
            BlobBackend::Objects(_) => Ok(Tail::of_window(self.clone(), digest.clone())),
        }
    }

    /// Lets readers follow an upload that another process writes to; absent if its bytes cannot be seen here, as in an
    /// object store. [`Tail::measure`] moves it forward.
    pub fn tail_elsewhere(&self, id: &str, digest: &Digest) -> Result<Option<Tail>, ContentError> {
        match &self.backend {
            BlobBackend::Local(local) if is_id(id) => {
                Ok(local.open_upload(id)?.map(|file| Tail::of_file(self.clone(), digest.clone(), file)))
            }
            BlobBackend::Local(_) | BlobBackend::Objects(_) => Ok(None),
        }
    }
}

impl Tail {
    pub(crate) fn of_file(content: Content, digest: Digest, file: File) -> Tail {
        Tail::new(content, digest, TailBytes::File { file: Arc::new(file), head: OnceLock::new() })
    }

    pub(crate) fn of_window(content: Content, digest: Digest) -> Tail {
        Tail::new(content, digest, TailBytes::Window(Mutex::default()))
    }

    fn new(content: Content, digest: Digest, bytes: TailBytes) -> Tail {
        let (progress, _) = watch::channel(Progress::Growing(0));
        Tail { progress: Arc::new(progress), bytes: Arc::new(bytes), content, digest, early: None }
    }

    /// The same where readers have the rest once it is verified, with so many bytes if that is known, and do not wait until the
    /// blob is committed: for what anyone may have whose request was allowed, even if it cannot be kept.
    #[must_use]
    pub fn early(self, size: Option<u64>) -> Tail {
        Tail { early: Some(Early { size }), ..self }
    }

    /// A reader from any position.
    pub fn follower(&self) -> Follower {
        Follower {
            progress: self.progress.subscribe(),
            bytes: self.bytes.clone(),
            content: self.content.clone(),
            digest: self.digest.clone(),
        }
    }

    pub(crate) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Shows readers the first bytes of what has arrived, if this is the first part: a client waits for no thread and no disk.
    fn begins(&self, part: &Bytes) {
        let TailBytes::File { head, .. } = &*self.bytes else { return };
        let first = part.len().min(SMALL as usize);
        if head.get().is_none() && head.set(Bytes::copy_from_slice(&part[..first])).is_ok() {
            self.has_grown(first as u64);
        }
    }

    /// Shows readers that the upload's file has so many bytes.
    pub(crate) fn has_grown(&self, size: u64) {
        self.progress.send_replace(Progress::Growing(size));
    }

    /// Shows readers a part that an object store has taken, after which the upload has so many bytes.
    pub(crate) fn push(&self, part: &Bytes, size: u64) {
        if let TailBytes::Window(window) = &*self.bytes {
            window.lock().unwrap_or_else(PoisonError::into_inner).push(part.clone());
        }
        self.has_grown(size);
    }

    /// Lets readers of an early tail have the rest of an upload that is written to its end, and has so many bytes, if it has the
    /// digest.
    pub(crate) fn compare(&self, written: u64, hasher: Option<&Hasher>) {
        let is_whole = self.early.is_some_and(|early| early.size.is_none_or(|size| size == written));
        if is_whole && hasher.is_some_and(|hasher| hasher.clone().finish() == self.digest) {
            self.progress.send_replace(Progress::Verified);
        }
    }

    /// Looks how far another process has come with the file; absent if it was removed.
    ///
    /// # Errors
    /// The file cannot be examined.
    pub fn measure(&self) -> Result<Option<u64>, Error> {
        let TailBytes::File { file, .. } = &*self.bytes else { return Ok(None) };
        let found = file.metadata()?;
        if found.nlink() == 0 {
            return Ok(None);
        }
        let size = found.len();
        if !matches!(*self.progress.borrow(), Progress::Growing(before) if before == size) {
            self.has_grown(size);
        }
        Ok(Some(size))
    }

    /// Lets readers have the rest: the blob is verified and committed, with the bytes of `upload`.
    pub fn finish(&self, upload: &str) {
        self.progress.send_replace(Progress::Whole(upload.into()));
    }

    /// Ends all readers with an error, unless they may have all bytes.
    pub fn fail(&self) {
        self.progress.send_if_modified(|progress| {
            let is_open = matches!(progress, Progress::Growing(_));
            if is_open {
                *progress = Progress::Failed;
            }
            is_open
        });
    }
}

impl Window {
    fn push(&mut self, part: Bytes) {
        self.size += part.len();
        self.parts.push_back(part);
        while self.size > WINDOW && self.parts.len() > 1 {
            let first = self.parts.pop_front().map_or(0, |first| first.len());
            self.size -= first;
            self.start += first as u64;
        }
    }

    /// Bytes from `at` on and before `end`; absent if they have left the window.
    fn read(&self, at: u64, end: u64) -> Option<Bytes> {
        let mut start = self.start;
        for part in &self.parts {
            let next = start + part.len() as u64;
            if (start..next).contains(&at) {
                return Some(part.slice((at - start) as usize..(end.min(next) - start) as usize));
            }
            start = next;
        }
        None
    }
}

/// A reader of an upload that still grows.
#[derive(Clone, Debug)]
pub struct Follower {
    progress: watch::Receiver<Progress>,
    bytes: Arc<TailBytes>,
    content: Content,
    digest: Digest,
}

impl Follower {
    /// Whether readers end with an error.
    pub fn has_failed(&self) -> bool {
        matches!(*self.progress.borrow(), Progress::Failed)
    }

    /// Waits until readers may have all bytes; false if that does not happen.
    pub async fn verified(mut self) -> bool {
        let ended = self.progress.wait_for(|progress| !matches!(progress, Progress::Growing(_))).await;
        ended.is_ok_and(|progress| !matches!(*progress, Progress::Failed))
    }

    /// Streams a part as its bytes arrive. Its last [`HELD_BACK`] bytes come once the whole blob was verified; the stream
    /// fails if it is not.
    pub fn stream(self, start: u64, length: u64) -> BoxStream<'static, Result<Bytes, Error>> {
        let span = Span { at: start, held: start + length.saturating_sub(HELD_BACK), end: start + length };
        let state = (Following::Growing(self), span);
        futures_util::stream::try_unfold(state, |(following, span)| following.next(span)).boxed()
    }
}

/// What is left of the part that a reader wants.
#[derive(Clone, Copy)]
struct Span {
    at: u64,
    /// Where the bytes begin that wait for the end.
    held: u64,
    end: u64,
}

/// A reader's source: the upload, then the blob that it became.
enum Following {
    Growing(Follower),
    Stored(BoxStream<'static, Result<Bytes, Error>>),
}

impl Following {
    async fn next(self, span: Span) -> Result<Option<(Bytes, (Following, Span))>, Error> {
        if span.at >= span.end {
            return Ok(None);
        }
        let (part, following) = match self {
            Following::Growing(follower) => follower.next(span).await?,
            Following::Stored(mut stream) => {
                let part = stream.next().await.ok_or_else(cut)??;
                (part, Following::Stored(stream))
            }
        };
        let at = span.at + part.len() as u64;
        Ok(Some((part, (following, Span { at, ..span }))))
    }
}

impl Follower {
    async fn next(mut self, span: Span) -> Result<(Bytes, Following), Error> {
        loop {
            let progress = self.progress.borrow_and_update().clone();
            let (readable, recent) = match &progress {
                Progress::Failed => return Err(cut()),
                Progress::Whole(_) | Progress::Verified => (span.end, span.end.saturating_sub(SMALL)),
                Progress::Growing(size) => (span.held.min(*size), size.saturating_sub(RECENT)),
            };
            if span.at < readable
                && let Some(part) = self.bytes.read(span.at..readable, recent).await?
            {
                return Ok((part, Following::Growing(self)));
            }
            if let Progress::Whole(upload) = progress {
                let reader = self.content.read(&self.digest, &upload).await.map_err(Error::other)?.ok_or_else(cut)?;
                let mut stream = reader.stream(span.at, span.end - span.at);
                let part = stream.next().await.ok_or_else(cut)??;
                return Ok((part, Following::Stored(stream)));
            }
            self.progress.changed().await.map_err(|_| cut())?;
        }
    }
}

impl TailBytes {
    /// Some bytes at the beginning of a part, of which those from `recent` on were just written; absent if only the stored blob
    /// has them.
    async fn read(&self, part: Range<u64>, recent: u64) -> Result<Option<Bytes>, Error> {
        let Range { start: at, end } = part;
        let (file, head) = match self {
            TailBytes::File { file, head } => (file, head.get()),
            TailBytes::Window(window) => {
                return Ok(window.lock().unwrap_or_else(PoisonError::into_inner).read(at, end));
            }
        };
        if let Some(head) = head.filter(|head| at < head.len() as u64) {
            return Ok(Some(head.slice(at as usize..head.len().min(end as usize))));
        }
        if at >= recent {
            // No disk is waited for, and a blocking thread would cost more.
            return chunk(file, at, (end - at).min(SMALL)).map(Some);
        }
        let (file, length) = (file.clone(), (end - at).min(CHUNK));
        let read = tokio::task::spawn_blocking(move || chunk(&file, at, length)).await;
        read.map_err(Error::other)?.map(Some)
    }
}

fn cut() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "the upload ended before it was whole")
}

#[cfg(test)]
#[path = "tail_tests.rs"]
mod tests;
