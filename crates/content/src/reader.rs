use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;

use crate::error::ContentError;

/// What is read at a time.
const CHUNK: u64 = 256 * 1024;
/// Up to here a blob is read where it is asked for: a thread of its own would take longer.
const INLINE: u64 = 64 * 1024;

/// An open blob.
#[derive(Debug)]
pub struct Reader {
    file: Arc<File>,
    size: u64,
}

impl Reader {
    pub(crate) fn new(file: File, size: u64) -> Reader {
        Reader { file: Arc::new(file), size }
    }

    /// Bytes of the whole blob.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the wanted part is small enough to be read at once, without a stream.
    pub fn is_small(length: u64) -> bool {
        length <= INLINE
    }

    /// Reads a small part at once.
    ///
    /// # Errors
    /// The disk refuses, or the part is not there.
    pub fn read_small(&self, start: u64, length: u64) -> Result<Bytes, ContentError> {
        Ok(chunk(&self.file, start, length)?)
    }

    /// Streams a part. Each chunk is read when it is asked for: a client that reads slowly holds no thread.
    pub fn stream(self, start: u64, length: u64) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
        futures_util::stream::unfold((self.file, start, length), |(file, at, left)| async move {
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
}

fn chunk(file: &File, at: u64, length: u64) -> Result<Bytes, std::io::Error> {
    let mut chunk = BytesMut::zeroed(length as usize);
    file.read_exact_at(&mut chunk, at)?;
    Ok(chunk.freeze())
}
