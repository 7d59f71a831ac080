use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};

use bytes::{Buf as _, Bytes};
use tokio::runtime::Handle;

use crate::reader::{CHUNK, Reader};

/// A blob as a file that can be read and sought in, for code that knows no asynchronous IO.
///
/// Reads wait for the storage, so it is for blocking threads alone. One chunk is in memory at a time.
#[derive(Debug)]
pub struct BlobSource {
    reader: Reader,
    runtime: Handle,
    position: u64,
    /// What is left of the chunk that was read last, from `position` on.
    chunk: Bytes,
}

impl BlobSource {
    /// The blob from its beginning; `runtime` is what waits for an object store.
    pub fn new(reader: Reader, runtime: Handle) -> BlobSource {
        BlobSource { reader, runtime, position: 0, chunk: Bytes::new() }
    }
}

impl Read for BlobSource {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.chunk.is_empty() {
            let length = CHUNK.min(self.reader.size().saturating_sub(self.position));
            let read = self.runtime.block_on(self.reader.read_small(self.position, length));
            self.chunk = read.map_err(Error::other)?;
        }
        let length = buffer.len().min(self.chunk.len());
        self.chunk.copy_to_slice(&mut buffer[..length]);
        self.position += length as u64;
        Ok(length)
    }
}

impl Seek for BlobSource {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.reader.size().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        let target = target.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "before the beginning of the blob"))?;
        match target.checked_sub(self.position) {
            Some(ahead) if ahead <= self.chunk.len() as u64 => self.chunk.advance(ahead as usize),
            _ => self.chunk.clear(),
        }
        self.position = target;
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::tests::{Kept, body};
    use crate::{Algorithm, Digest};

    #[test]
    fn a_blob_is_read_and_sought_in_like_a_file() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for place in Kept::places() {
            reads_and_seeks(&runtime, &place);
        }
    }

    fn reads_and_seeks(runtime: &tokio::runtime::Runtime, place: &Kept) {
        let bytes: Vec<u8> = (0..CHUNK + 1000).map(|at| (at % 251) as u8).collect();
        let reader = runtime.block_on(async {
            let content = place.open();
            content.begin("ab").unwrap();
            content.append("ab", None, body(&[&bytes]), Algorithm::Sha256, 1 << 30).await.unwrap();
            let digest = Digest::of(Algorithm::Sha256, &bytes);
            let stored = content.finish("ab", &digest).await.unwrap();
            content.read(&digest, &stored.upload).await.unwrap().unwrap()
        });
        let mut source = BlobSource::new(reader, runtime.handle().clone());
        let mut whole = Vec::new();
        source.read_to_end(&mut whole).unwrap();
        assert!(whole == bytes);
        let mut four = [0; 4];
        for (to, at) in [
            (SeekFrom::End(-1000), CHUNK as usize),
            (SeekFrom::Start(7), 7),
            (SeekFrom::Current(5), 16),
            (SeekFrom::Start(CHUNK - 2), CHUNK as usize - 2),
            (SeekFrom::Start(3), 3),
        ] {
            assert_eq!(source.seek(to).unwrap() as usize, at, "{to:?}");
            source.read_exact(&mut four).unwrap();
            assert_eq!(four, bytes[at..at + 4], "{to:?}");
        }
        source.seek(SeekFrom::End(10)).unwrap();
        assert_eq!(source.read(&mut four).unwrap(), 0, "behind the end there is nothing");
        assert!(source.seek(SeekFrom::Start(0)).is_ok() && source.seek(SeekFrom::Current(-1)).is_err());
    }
}
