use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};

use crate::error::ContentError;

/// Bytes read from a file at a time.
pub(crate) const CHUNK: u64 = 256 * 1024;
/// Parts up to this many bytes are read in one call: a blocking thread would cost more.
pub(crate) const SMALL: u64 = 64 * 1024;

#[derive(Debug)]
pub struct Reader {
    source: Source,
    size: u64,
}

#[derive(Debug)]
enum Source {
    File(Arc<File>),
    Object(Arc<dyn ObjectStore>, Path),
}

impl Reader {
    pub(crate) fn of_file(file: File, size: u64) -> Reader {
        Reader { source: Source::File(Arc::new(file)), size }
    }

    pub(crate) fn of_object(store: Arc<dyn ObjectStore>, path: Path, size: u64) -> Reader {
        Reader { source: Source::Object(store, path), size }
    }

    /// Bytes of the whole blob.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the wanted part is small enough to be read at once, without a stream.
    pub fn is_small(length: u64) -> bool {
        length <= SMALL
    }

    /// Reads a small part at once.
    ///
    /// # Errors
    /// The storage fails, or the part is missing.
    pub async fn read_small(&self, start: u64, length: u64) -> Result<Bytes, ContentError> {
        match &self.source {
            _ if length == 0 => Ok(Bytes::new()),
            Source::File(file) => Ok(chunk(file, start, length)?),
            Source::Object(store, path) => Ok(store.get_range(path, start..start + length).await?),
        }
    }

    /// Streams a part. Chunks are read on demand: a client that reads slowly holds no thread.
    pub fn stream(self, start: u64, length: u64) -> BoxStream<'static, Result<Bytes, std::io::Error>> {
        match self.source {
            _ if length == 0 => futures_util::stream::empty().boxed(),
            Source::File(file) => chunks(file, start, length).boxed(),
            Source::Object(store, path) => object(store, path, start, length).boxed(),
        }
    }
}

fn chunks(
    file: Arc<File>,
    start: u64,
    length: u64,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    futures_util::stream::unfold((file, start, length), |(file, at, left)| async move {
        if left == 0 {
            return None;
        }
        let wanted = left.min(CHUNK);
        let reading = file.clone();
        let read = tokio::task::spawn_blocking(move || chunk(&reading, at, wanted)).await;
        let read = read.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        // Nothing comes after a failure.
        let left = if read.is_ok() { left - wanted } else { 0 };
        Some((read, (file, at + wanted, left)))
    })
}

fn object(
    store: Arc<dyn ObjectStore>,
    path: Path,
    start: u64,
    length: u64,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    let opened = async move {
        let range = Some(GetRange::Bounded(start..start + length));
        let found = store.get_opts(&path, GetOptions { range, ..GetOptions::default() }).await;
        found.map(object_store::GetResult::into_stream)
    };
    futures_util::stream::once(opened).try_flatten().map_err(std::io::Error::other)
}

pub(crate) fn chunk(file: &File, at: u64, length: u64) -> Result<Bytes, std::io::Error> {
    let mut chunk = BytesMut::zeroed(length as usize);
    file.read_exact_at(&mut chunk, at)?;
    Ok(chunk.freeze())
}
