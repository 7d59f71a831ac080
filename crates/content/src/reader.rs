use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;

use crate::error::ContentError;

/// What is read at a time.
const CHUNK: usize = 256 * 1024;
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
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = vec![0; length as usize];
        file.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }

    /// Streams a part; one chunk is read ahead.
    pub fn stream(self, start: u64, length: u64) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = pump(&self.file, start, length, &sender) {
                // Whoever no longer listens does not want to know.
                let _ = sender.blocking_send(Err(error));
            }
        });
        futures_util::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        })
    }
}

fn pump(
    mut file: &File,
    start: u64,
    length: u64,
    sender: &tokio::sync::mpsc::Sender<Result<Bytes, std::io::Error>>,
) -> Result<(), std::io::Error> {
    file.seek(SeekFrom::Start(start))?;
    let mut left = length;
    while left > 0 {
        let wanted = left.min(CHUNK as u64) as usize;
        let mut chunk = BytesMut::zeroed(wanted);
        file.read_exact(&mut chunk)?;
        left -= wanted as u64;
        if sender.blocking_send(Ok(chunk.freeze())).is_err() {
            return Ok(());
        }
    }
    Ok(())
}
