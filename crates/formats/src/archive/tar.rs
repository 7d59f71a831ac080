//! Gzipped tar archives, one member after the other.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::{ArchiveError, Limits, validate_path};

const BLOCK: u64 = 512;
/// Maximum bytes of an extended header.
const MAX_EXTENDED: u64 = 1 << 20;

/// A member, before its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its path, as it is written.
    pub path: String,
    /// Bytes of its content.
    pub size: u64,
    /// Whether it is a file, and neither a directory nor a link.
    pub is_file: bool,
}

/// An archive that is being read.
pub struct Reader<R> {
    source: Counting<R>,
    members: u64,
    /// Unread bytes of the current member.
    content: u64,
}

impl<R: Read> Reader<MultiGzDecoder<R>> {
    /// Reads a gzipped archive of `packed` bytes.
    pub fn gzipped(archive: R, packed: u64, limits: Limits) -> Self {
        Reader {
            source: Counting { inner: MultiGzDecoder::new(archive), read: 0, packed, limits },
            members: 0,
            content: 0,
        }
    }
}

impl<R: Read> Reader<R> {
    /// Advances to the next member, skipping unread content; absent at the end.
    ///
    /// # Errors
    /// The archive is damaged or hostile from here on.
    pub fn next_member(&mut self) -> Result<Option<Member>, ArchiveError> {
        let unread = std::mem::take(&mut self.content);
        self.source.skip(unread)?;
        // Name and size from extended headers, which override those of the next header.
        let (mut long_name, mut long_size) = (None::<String>, None::<u64>);
        while let Some(header) = Header::read(&mut self.source)? {
            self.members += 1;
            self.source.limits.validate_members(self.members)?;
            match header.kind {
                b'x' => (long_name, long_size) = extended(&self.source.content(header.size, MAX_EXTENDED)?)?,
                b'L' => long_name = Some(text(&self.source.content(header.size, MAX_EXTENDED)?)?.to_owned()),
                b'g' | b'K' => self.source.skip(header.size)?,
                kind => {
                    let path = long_name.unwrap_or(header.name);
                    validate_path(&path)?;
                    let size = long_size.unwrap_or(header.size);
                    self.content = size;
                    // Older writers mark a directory by nothing but its slash.
                    let is_file = matches!(kind, b'0' | 0 | b'7') && !path.ends_with('/');
                    return Ok(Some(Member { path, size, is_file }));
                }
            }
        }
        Ok(None)
    }

    /// Reads what is after the last member, so that an archive without its end is found out.
    ///
    /// # Errors
    /// It is cut off, or damaged.
    pub fn finish(mut self) -> Result<(), ArchiveError> {
        self.source.drain()
    }

    /// Reads the content of the current member; empty if it was read before.
    ///
    /// # Errors
    /// It is larger than the limit, or the archive is cut off.
    pub fn content(&mut self) -> Result<Vec<u8>, ArchiveError> {
        let most = self.source.limits.member;
        self.source.content(std::mem::take(&mut self.content), most)
    }
}

/// Counts decompressed bytes, and fails above the limits.
struct Counting<R> {
    inner: R,
    read: u64,
    packed: u64,
    limits: Limits,
}

impl<R: Read> Counting<R> {
    /// Fills the buffer; false at the end.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, ArchiveError> {
        let mut filled = 0;
        while filled < buffer.len() {
            let read = self.read(&mut buffer[filled..])?;
            if read == 0 {
                break;
            }
            filled += read;
            self.grow(read)?;
        }
        match filled {
            0 => Ok(false),
            full if full == buffer.len() => Ok(true),
            _ => Err(cut_off()),
        }
    }

    fn drain(&mut self) -> Result<(), ArchiveError> {
        let mut buffer = [0; 8 << 10];
        loop {
            match self.read(&mut buffer)? {
                0 => return Ok(()),
                read => self.grow(read)?,
            }
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ArchiveError> {
        let read = self.inner.read(buffer);
        read.map_err(|error| ArchiveError::damaged(format!("is no gzipped tar archive, or was cut off: {error}")))
    }

    fn grow(&mut self, read: usize) -> Result<(), ArchiveError> {
        self.read += read as u64;
        self.limits.validate_growth(self.packed, self.read)
    }

    fn content(&mut self, size: u64, most: u64) -> Result<Vec<u8>, ArchiveError> {
        if size > most {
            return Err(ArchiveError::hostile(format!(
                "has a member of {size} bytes, of which at most {most} are read"
            )));
        }
        let mut bytes = vec![0; size.next_multiple_of(BLOCK) as usize];
        if !bytes.is_empty() && !self.fill(&mut bytes)? {
            return Err(cut_off());
        }
        bytes.truncate(size as usize);
        Ok(bytes)
    }

    /// Skips a member's content.
    fn skip(&mut self, size: u64) -> Result<(), ArchiveError> {
        let mut left =
            size.checked_next_multiple_of(BLOCK).ok_or_else(|| ArchiveError::hostile("has a member without end"))?;
        let mut buffer = [0; 8 << 10];
        while left > 0 {
            let part = left.min(buffer.len() as u64) as usize;
            if !self.fill(&mut buffer[..part])? {
                return Err(cut_off());
            }
            left -= part as u64;
        }
        Ok(())
    }
}

fn cut_off() -> ArchiveError {
    ArchiveError::damaged("is a tar archive that was cut off")
}

struct Header {
    name: String,
    size: u64,
    kind: u8,
}

impl Header {
    /// Reads the next header; absent at the end.
    fn read<R: Read>(source: &mut Counting<R>) -> Result<Option<Header>, ArchiveError> {
        let mut block = [0; BLOCK as usize];
        if !source.fill(&mut block)? || block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum: u32 = block
            .iter()
            .enumerate()
            .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) })
            .sum();
        if octal(&block[148..156]) != Some(u64::from(sum)) {
            return Err(ArchiveError::damaged("is a damaged tar archive: a header is not what its checksum says"));
        }
        let name = text(&block[..100])?;
        let prefix = if block[257..262] == *b"ustar" && block[262] == 0 { text(&block[345..500])? } else { "" };
        let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        let size = size(&block[124..136])
            .ok_or_else(|| ArchiveError::damaged("is a damaged tar archive: a length is no number"))?;
        Ok(Some(Header { name, size, kind: block[156] }))
    }
}

fn text(bytes: &[u8]) -> Result<&str, ArchiveError> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).map_err(|_| ArchiveError::damaged("has a member whose name is not UTF-8"))
}

fn octal(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(text, 8).ok()
}

/// A length: octal, or big-endian bytes after the byte 0x80 for large members.
fn size(bytes: &[u8]) -> Option<u64> {
    if bytes[0] != 0x80 {
        return octal(bytes);
    }
    bytes[1..].iter().try_fold(0_u64, |size, byte| size.checked_mul(256)?.checked_add(u64::from(*byte)))
}

/// Name and length from the records of an extended header: `length key=value\n`.
fn extended(records: &[u8]) -> Result<(Option<String>, Option<u64>), ArchiveError> {
    let damaged = || ArchiveError::damaged("is a damaged tar archive: an extended header does not parse");
    let (mut name, mut size) = (None, None);
    let mut rest = records;
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ').ok_or_else(damaged)?;
        let length: usize =
            std::str::from_utf8(&rest[..space]).ok().and_then(|text| text.parse().ok()).ok_or_else(damaged)?;
        let record = rest.get(space + 1..length).ok_or_else(damaged)?;
        let record = std::str::from_utf8(record).map_err(|_| damaged())?.trim_end_matches('\n');
        match record.split_once('=') {
            Some(("path", value)) => name = Some(value.to_owned()),
            Some(("size", value)) => size = Some(value.parse().map_err(|_| damaged())?),
            _ => {}
        }
        rest = &rest[length..];
    }
    Ok((name, size))
}

#[cfg(test)]
#[path = "tar_tests.rs"]
mod tests;
