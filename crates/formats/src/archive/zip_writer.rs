//! Writes ZIP archives, member after member: without times or attributes, so that the same members are the same bytes.

use std::io::{self, Write};

use flate2::Compression;
use flate2::Crc;
use flate2::write::DeflateEncoder;

/// The first of January 1980, the first day that archives know.
const DAY: u16 = 0x21;
/// Deflate, and the version of the format that has it.
const DEFLATED: u16 = 8;
const VERSION: u16 = 20;

/// An archive that is being written.
pub struct Writer<W> {
    inner: W,
    offset: u64,
    list: Vec<u8>,
    members: u64,
}

impl<W: Write> Writer<W> {
    /// Begins an archive without members.
    pub fn new(inner: W) -> Writer<W> {
        Writer { inner, offset: 0, list: Vec::new(), members: 0 }
    }

    /// Adds a file.
    ///
    /// # Errors
    /// It cannot be written, or is too long for the format without extensions: 4 GiB, with a path of 64 KiB.
    pub fn add(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes)?;
        let packed = encoder.finish()?;
        let mut crc = Crc::new();
        crc.update(bytes);
        let mut facts = Vec::new();
        for number in [VERSION, 0, DEFLATED, 0, DAY] {
            facts.extend(number.to_le_bytes());
        }
        for number in [u64::from(crc.sum()), packed.len() as u64, bytes.len() as u64] {
            facts.extend(short(number)?.to_le_bytes());
        }
        facts.extend(u16::try_from(path.len()).map_err(|_| too_long())?.to_le_bytes());
        let head = [b"PK\x03\x04", &facts[..], &[0, 0], path.as_bytes()].concat();
        let at = short(self.offset)?.to_le_bytes();
        self.list.extend([b"PK\x01\x02", &VERSION.to_le_bytes()[..], &facts, &[0; 12], &at, path.as_bytes()].concat());
        self.inner.write_all(&head)?;
        self.inner.write_all(&packed)?;
        self.offset += (head.len() + packed.len()) as u64;
        self.members += 1;
        Ok(())
    }

    /// Writes the list of members, and ends the archive.
    ///
    /// # Errors
    /// It cannot be written, or has more than 65,535 members or 4 GiB.
    pub fn finish(mut self) -> io::Result<W> {
        let count = u16::try_from(self.members).map_err(|_| too_long())?.to_le_bytes();
        let (size, offset) = (short(self.list.len() as u64)?.to_le_bytes(), short(self.offset)?.to_le_bytes());
        self.inner.write_all(&self.list)?;
        self.inner.write_all(&[&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &size, &offset, &[0, 0]].concat())?;
        Ok(self.inner)
    }
}

fn short(number: u64) -> io::Result<u32> {
    u32::try_from(number).map_err(|_| too_long())
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "is too long for an archive")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::archive::{Limits, zip};

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::new(Vec::new());
        let files = [("a/empty", Vec::new()), ("a/text", b"text ".repeat(1000)), ("b", vec![0xff; 10])];
        for (path, bytes) in &files {
            writer.add(path, bytes).expect("a member");
        }
        let archive = writer.finish().expect("an archive");
        let limits = Limits { members: 10, member: 1 << 20, unpacked: 1 << 20, times: 1000, always: 1 << 20 };
        let length = archive.len() as u64;
        let mut read = zip::Archive::read(Cursor::new(archive), length, limits).expect("an archive");
        for (member, (path, bytes)) in read.members().to_vec().iter().zip(&files) {
            assert_eq!((member.path.as_str(), &read.content(member).expect("a member")), (*path, bytes));
        }
        assert!(Writer::new(Vec::new()).add(&"x".repeat(70_000), b"").is_err());
    }
}
