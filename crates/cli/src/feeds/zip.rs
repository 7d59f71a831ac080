//! Reads zip archives of records: the directory of the archive, and one entry after the other. Nothing is written
//! anywhere, and what an entry says of its size is not believed.

use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read, Result, Seek, SeekFrom};

use flate2::Crc;
use flate2::read::DeflateDecoder;

/// Entries of an archive.
const MOST_ENTRIES: u64 = 5_000_000;
/// Bytes that an archive may unpack to, by the bytes that it has: texts hardly ever come to 50.
const HIGHEST_RATIO: u64 = 200;
/// Bytes that any archive may unpack to, however few it has.
const ALWAYS_ALLOWED: u64 = 64 << 20;

/// An archive that is being read.
pub(super) struct Archive {
    file: File,
    entries: std::vec::IntoIter<Entry>,
    /// Bytes that may still be unpacked.
    budget: u64,
}

/// What the directory says of a file.
struct Entry {
    name: String,
    method: u16,
    is_encrypted: bool,
    packed: u64,
    size: u64,
    crc: u32,
    offset: u64,
}

/// An entry, with its bytes or why it is left out.
pub(super) struct Unpacked {
    pub(super) name: String,
    pub(super) content: std::result::Result<Vec<u8>, String>,
}

impl Archive {
    /// Reads the directory.
    pub(super) fn open(mut file: File) -> Result<Archive> {
        let length = file.metadata()?.len();
        let directory = Directory::find(&mut file, length)?;
        let mut entries = Vec::new();
        file.seek(SeekFrom::Start(directory.offset))?;
        let mut reader = BufReader::with_capacity(1 << 16, &file);
        for _ in 0..directory.entries {
            entries.push(Entry::read(&mut reader)?);
        }
        let declared = entries.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
        let budget = length.saturating_mul(HIGHEST_RATIO).max(ALWAYS_ALLOWED);
        if declared > budget {
            return Err(bomb());
        }
        entries.sort_by_key(|entry| entry.offset);
        Ok(Archive { file, entries: entries.into_iter(), budget })
    }

    /// The next entry that is a file with the wanted kind of name; others are passed over.
    pub(super) fn next(&mut self, wanted: impl Fn(&str) -> bool, most: u64) -> Result<Option<Unpacked>> {
        for entry in self.entries.by_ref() {
            if entry.name.ends_with('/') || !wanted(&entry.name) {
                continue;
            }
            let content = match entry.refusal(most) {
                Some(reason) => Err(reason),
                None => entry.unpack(&mut self.file, most, &mut self.budget)?,
            };
            return Ok(Some(Unpacked { name: entry.name, content }));
        }
        Ok(None)
    }
}

fn bomb() -> Error {
    Error::new(
        ErrorKind::InvalidData,
        "the archive unpacks to far more than an archive of records does; it is not read",
    )
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the archive is damaged: {what}"))
}

/// Where the directory is.
struct Directory {
    entries: u64,
    offset: u64,
}

impl Directory {
    /// The record at the end of the archive, behind which a comment may stand; large archives have another before it.
    fn find(file: &mut File, length: u64) -> Result<Directory> {
        let tail = length.min(22 + 0xffff);
        file.seek(SeekFrom::Start(length - tail))?;
        let mut bytes = vec![0; tail as usize];
        file.read_exact(&mut bytes)?;
        let at = (0..=bytes.len().saturating_sub(22)).rev().find(|at| {
            bytes.get(*at..*at + 22).is_some_and(|record| {
                record.starts_with(b"PK\x05\x06") && *at + 22 + usize::from(u16_at(record, 20)) == bytes.len()
            })
        });
        let at = at.ok_or_else(|| Error::new(ErrorKind::InvalidData, "this is no zip archive"))?;
        let record = &bytes[at..];
        let mut found = Directory { entries: u16_at(record, 10).into(), offset: u32_at(record, 16).into() };
        if found.entries == 0xffff || found.offset == 0xffff_ffff {
            found = Directory::find_large(file, length - tail + at as u64)?;
        }
        if found.entries > MOST_ENTRIES || found.offset >= length.max(1) {
            return Err(damaged("its directory is out of bounds"));
        }
        Ok(found)
    }

    fn find_large(file: &mut File, end: u64) -> Result<Directory> {
        let locator_at = end.checked_sub(20).ok_or_else(|| damaged("its directory is missing"))?;
        let mut locator = [0; 20];
        file.seek(SeekFrom::Start(locator_at))?;
        file.read_exact(&mut locator)?;
        let mut record = [0; 56];
        file.seek(SeekFrom::Start(u64_at(&locator, 8)))?;
        file.read_exact(&mut record)?;
        if !locator.starts_with(b"PK\x06\x07") || !record.starts_with(b"PK\x06\x06") {
            return Err(damaged("its directory is missing"));
        }
        Ok(Directory { entries: u64_at(&record, 32), offset: u64_at(&record, 48) })
    }
}

impl Entry {
    fn read(reader: &mut impl Read) -> Result<Entry> {
        let mut head = [0; 46];
        reader.read_exact(&mut head)?;
        if !head.starts_with(b"PK\x01\x02") {
            return Err(damaged("its directory breaks off"));
        }
        let mut rest = vec![0; usize::from(u16_at(&head, 28)) + usize::from(u16_at(&head, 30))];
        reader.read_exact(&mut rest)?;
        std::io::copy(&mut reader.take(u16_at(&head, 32).into()), &mut std::io::sink())?;
        let (name, extra) = rest.split_at(u16_at(&head, 28).into());
        let mut entry = Entry {
            name: String::from_utf8_lossy(name).into_owned(),
            method: u16_at(&head, 10),
            is_encrypted: u16_at(&head, 8) & 1 != 0,
            crc: u32_at(&head, 16),
            packed: u32_at(&head, 20).into(),
            size: u32_at(&head, 24).into(),
            offset: u32_at(&head, 42).into(),
        };
        entry.read_large(extra);
        Ok(entry)
    }

    /// Numbers that do not fit stand in a field of their own, in this order.
    fn read_large(&mut self, mut extra: &[u8]) {
        while extra.len() >= 4 {
            let (kind, length) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
            let Some(field) = extra.get(4..4 + length) else { return };
            if kind == 1 {
                let mut numbers = field.chunks_exact(8).map(|number| u64_at(number, 0));
                for value in [&mut self.size, &mut self.packed, &mut self.offset] {
                    if *value == 0xffff_ffff {
                        *value = numbers.next().unwrap_or(*value);
                    }
                }
            }
            extra = &extra[4 + length..];
        }
    }

    fn refusal(&self, most: u64) -> Option<String> {
        let climbs =
            self.name.starts_with('/') || self.name.contains('\\') || self.name.split('/').any(|part| part == "..");
        if climbs {
            return Some("its path leads out of the archive".into());
        }
        if self.is_encrypted {
            return Some("it is encrypted".into());
        }
        if !matches!(self.method, 0 | 8) {
            return Some(format!("it is packed by method {}; only deflate is understood", self.method));
        }
        (self.size > most).then(|| format!("it has {} bytes; at most {most} are read", self.size))
    }

    fn unpack(&self, file: &mut File, most: u64, budget: &mut u64) -> Result<std::result::Result<Vec<u8>, String>> {
        let mut head = [0; 30];
        file.seek(SeekFrom::Start(self.offset))?;
        file.read_exact(&mut head)?;
        if !head.starts_with(b"PK\x03\x04") {
            return Err(damaged(&format!("{} is not where its directory says", self.name)));
        }
        let names = i64::from(u16_at(&head, 26)) + i64::from(u16_at(&head, 28));
        file.seek(SeekFrom::Current(names))?;
        let packed = BufReader::with_capacity(1 << 14, file.take(self.packed));
        let mut content = Vec::with_capacity(self.size.min(most) as usize);
        let unpacked = match self.method {
            0 => packed.take(most + 1).read_to_end(&mut content),
            _ => DeflateDecoder::new(packed).take(most + 1).read_to_end(&mut content),
        };
        *budget = budget.checked_sub(content.len() as u64).ok_or_else(bomb)?;
        if let Err(error) = unpacked {
            return Ok(Err(format!("it cannot be unpacked: {error}")));
        }
        let mut crc = Crc::new();
        crc.update(&content);
        Ok(if content.len() as u64 > most {
            Err(format!("it has more than the {most} bytes that are read"))
        } else if content.len() as u64 != self.size || crc.sum() != self.crc {
            Err("its checksum is wrong".into())
        } else {
            Ok(content)
        })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
#[path = "zip_tests.rs"]
mod tests;
