//! Archives of many small files, written as they come: the same files in the same order make the same bytes.

use std::io::{self, Write};

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// 1980-01-01, the earliest date of the format: archives must not depend on the time.
const NO_DATE: u16 = 1 << 5 | 1;
/// Flag: names of members are UTF-8.
const UTF_8: u16 = 1 << 11;
const DEFLATED: u16 = 8;
/// Version 4.5 of the format, which has ZIP64.
const VERSION: u16 = 45;
/// Signatures of the records.
const LOCAL_HEADER: u32 = 0x0403_4b50;
const CENTRAL_HEADER: u32 = 0x0201_4b50;
const ZIP64_END: u32 = 0x0606_4b50;
const ZIP64_LOCATOR: u32 = 0x0706_4b50;
const END: u32 = 0x0605_4b50;

struct Entry {
    name: String,
    crc: u32,
    compressed_size: u32,
    size: u32,
    offset: u64,
}

/// Writes an archive. Only the list of names stays in memory.
pub struct ZipWriter<W: Write> {
    out: W,
    written: u64,
    entries: Vec<Entry>,
}

impl<W: Write> ZipWriter<W> {
    /// An archive without files.
    pub fn new(out: W) -> ZipWriter<W> {
        ZipWriter { out, written: 0, entries: Vec::new() }
    }

    /// Adds a file.
    ///
    /// # Errors
    /// What writing meets; a file of 4 GiB or a name of 64 KiB.
    pub fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
        packer.write_all(content)?;
        let compressed = packer.finish()?;
        let mut crc = Crc::new();
        crc.update(content);
        let size = |length: usize| u32::try_from(length).map_err(|_| io::Error::other("a file of 4 GiB or more"));
        let entry = Entry {
            name: name.into(),
            crc: crc.sum(),
            compressed_size: size(compressed.len())?,
            size: size(content.len())?,
            offset: self.written,
        };
        let mut head = Vec::new();
        head.extend(LOCAL_HEADER.to_le_bytes());
        entry.common(&mut head)?;
        head.extend(0_u16.to_le_bytes());
        head.extend(name.as_bytes());
        self.put(&head)?;
        self.put(&compressed)?;
        self.entries.push(entry);
        Ok(())
    }

    /// Writes the directory, and gives back what was written to.
    ///
    /// # Errors
    /// What writing meets.
    pub fn finish(mut self) -> io::Result<W> {
        let start = self.written;
        for entry in std::mem::take(&mut self.entries) {
            let directory = entry.directory()?;
            self.put(&directory)?;
            self.entries.push(Entry { name: String::new(), ..entry });
        }
        let (count, size, end) = (self.entries.len() as u64, self.written - start, self.written);
        let mut tail = Vec::new();
        // The ZIP64 end record is always written: the classic one limits counts and sizes.
        tail.extend(ZIP64_END.to_le_bytes());
        tail.extend(44_u64.to_le_bytes());
        tail.extend([VERSION.to_le_bytes(), VERSION.to_le_bytes()].concat());
        tail.extend([0; 8]);
        for value in [count, count, size, start] {
            tail.extend(value.to_le_bytes());
        }
        tail.extend(ZIP64_LOCATOR.to_le_bytes());
        tail.extend(0_u32.to_le_bytes());
        tail.extend(end.to_le_bytes());
        tail.extend(1_u32.to_le_bytes());
        tail.extend(END.to_le_bytes());
        tail.extend([0; 4]);
        let short = u16::try_from(count).unwrap_or(u16::MAX);
        tail.extend([short.to_le_bytes(), short.to_le_bytes()].concat());
        tail.extend(u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
        tail.extend(u32::try_from(start).unwrap_or(u32::MAX).to_le_bytes());
        tail.extend(0_u16.to_le_bytes());
        self.put(&tail)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

impl Entry {
    /// What stands both before a file and in the directory.
    fn common(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let length = u16::try_from(self.name.len()).map_err(|_| io::Error::other("a name of 64 KiB or more"))?;
        for value in [VERSION, UTF_8, DEFLATED, 0, NO_DATE] {
            out.extend(value.to_le_bytes());
        }
        for value in [self.crc, self.compressed_size, self.size] {
            out.extend(value.to_le_bytes());
        }
        out.extend(length.to_le_bytes());
        Ok(())
    }

    fn directory(&self) -> io::Result<Vec<u8>> {
        let far = u32::try_from(self.offset).is_err();
        let mut out = Vec::new();
        out.extend(CENTRAL_HEADER.to_le_bytes());
        out.extend(VERSION.to_le_bytes());
        self.common(&mut out)?;
        out.extend(if far { 12_u16 } else { 0 }.to_le_bytes());
        out.extend([0; 10]);
        out.extend(u32::try_from(self.offset).unwrap_or(u32::MAX).to_le_bytes());
        out.extend(self.name.as_bytes());
        if far {
            out.extend([1_u16.to_le_bytes(), 8_u16.to_le_bytes()].concat());
            out.extend(self.offset.to_le_bytes());
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_the_same_each_time() {
        let archive = || {
            let mut archive = ZipWriter::new(Vec::new());
            archive.add("a.json", b"{}").expect("written");
            archive.add("b.json", &b"x".repeat(10_000)).expect("written");
            archive.finish().expect("written")
        };
        let bytes = archive();
        assert_eq!(bytes, archive());
        assert!(bytes.len() < 600, "{}", bytes.len());
        // The classic end record comes last, and counts two files.
        assert_eq!(bytes[bytes.len() - 22..bytes.len() - 18], [0x50, 0x4b, 5, 6]);
        assert_eq!(bytes[bytes.len() - 12..bytes.len() - 10], [2, 0]);
    }
}
