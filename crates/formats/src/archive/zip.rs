//! ZIP archives: the list of members is read and checked as a whole before any of them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::{ArchiveError, Limits, validate_path};

const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const LOCATOR_64: &[u8] = b"PK\x06\x07";
const MEMBER: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";
/// The record at the end without the comment behind it.
const END_BYTES: usize = 22;
const MAX_COMMENT: u64 = 65_535;
const LOCATOR_BYTES: usize = 20;

/// A member as the list of members has it.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its path; one that ends with a slash is a directory.
    pub path: String,
    method: u16,
    is_encrypted: bool,
    crc: u32,
    packed: u64,
    unpacked: u64,
    offset: u64,
}

/// An archive whose members have been checked.
pub struct Archive<S = File> {
    source: S,
    packed: u64,
    /// Bytes that were unpacked until now.
    unpacked: u64,
    limits: Limits,
    members: Vec<Member>,
}

impl Archive {
    /// Reads the list of members of a file.
    ///
    /// # Errors
    /// It is no ZIP archive, or one that no one should unpack.
    pub fn open(file: File, limits: Limits) -> Result<Archive, ArchiveError> {
        let packed = file.metadata()?.len();
        Archive::read(file, packed, limits)
    }
}

impl<S: Read + Seek> Archive<S> {
    /// Reads the list of members of anything with `packed` bytes.
    ///
    /// # Errors
    /// It is no ZIP archive, or one that no one should unpack.
    pub fn read(mut source: S, packed: u64, limits: Limits) -> Result<Archive<S>, ArchiveError> {
        let directory = Directory::find(&mut source, packed)?;
        limits.validate_members(directory.count)?;
        // Some unpackers go to the offset, others back from the end: only without a gap do they read the same list.
        if directory.offset.checked_add(directory.size) != Some(directory.end) {
            return Err(ArchiveError::hostile("has something between the list of its members and its end"));
        }
        source.seek(SeekFrom::Start(directory.offset))?;
        let list = BufReader::with_capacity(1 << 16, (&mut source).take(directory.size));
        let members = members(list, directory.count)?;
        let mut paths = BTreeSet::new();
        let mut unpacked = 0_u64;
        for member in &members {
            validate_path(&member.path)?;
            // Which of two is meant, unpackers do not agree on.
            if !paths.insert(member.path.as_str()) {
                return Err(ArchiveError::hostile(format!("has the member {:?} twice", member.path)));
            }
            unpacked = unpacked.saturating_add(member.unpacked);
        }
        limits.validate_growth(packed, unpacked)?;
        Ok(Archive { source, packed, unpacked: 0, limits, members })
    }

    /// Its members, in the order of the list.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The content of a member.
    ///
    /// # Errors
    /// That the member is damaged or too large says nothing of the others; that the file cannot be read does.
    pub fn content(&mut self, member: &Member) -> Result<Vec<u8>, ArchiveError> {
        self.limits.validate_member(member.unpacked)?;
        if member.is_encrypted {
            return Err(ArchiveError::damaged("is encrypted"));
        }
        if !matches!(member.method, 0 | 8) {
            return Err(ArchiveError::damaged(format!(
                "is packed by method {}; only deflate is understood",
                member.method
            )));
        }
        self.source.seek(SeekFrom::Start(member.offset))?;
        let head: [u8; 30] = array(&mut self.source)?;
        if !head.starts_with(LOCAL) {
            return Err(ArchiveError::damaged("is not where the list of members says"));
        }
        self.source.seek(SeekFrom::Current(i64::from(u16_at(&head, 26)) + i64::from(u16_at(&head, 28))))?;
        let packed = BufReader::with_capacity(1 << 14, (&mut self.source).take(member.packed));
        let mut bytes = Vec::new();
        let most = member.unpacked + 1;
        let read = match member.method {
            0 => packed.take(most).read_to_end(&mut bytes),
            _ => DeflateDecoder::new(packed).take(most).read_to_end(&mut bytes),
        };
        self.unpacked = self.unpacked.saturating_add(bytes.len() as u64);
        self.limits.validate_growth(self.packed, self.unpacked)?;
        read.map_err(|error| ArchiveError::damaged(format!("cannot be unpacked: {error}")))?;
        let mut crc = Crc::new();
        crc.update(&bytes);
        if bytes.len() as u64 != member.unpacked || crc.sum() != member.crc {
            return Err(ArchiveError::damaged("is not what its checksum and length say"));
        }
        Ok(bytes)
    }
}

/// Where the list of members is.
struct Directory {
    count: u64,
    size: u64,
    offset: u64,
    /// Where the record begins that says so.
    end: u64,
}

impl Directory {
    fn find(source: &mut (impl Read + Seek), length: u64) -> Result<Directory, ArchiveError> {
        // The locator of ZIP64 lies right before the record at the end, and a comment may follow it.
        let from = length.saturating_sub(END_BYTES as u64 + MAX_COMMENT + LOCATOR_BYTES as u64);
        source.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        source.by_ref().take(length - from).read_to_end(&mut tail)?;
        let found = (0..tail.len().saturating_sub(END_BYTES - 1)).rev().find(|at| {
            let record = &tail[*at..];
            record.starts_with(END) && END_BYTES + usize::from(u16_at(record, 20)) == record.len()
        });
        let at = found.ok_or_else(|| ArchiveError::damaged("is no ZIP archive, or was cut off"))?;
        // Many readers heed the locator whatever the record at the end says.
        if let Some(locator) = at.checked_sub(LOCATOR_BYTES).filter(|locator| tail[*locator..].starts_with(LOCATOR_64))
        {
            return Directory::find_64(source, u64_at(&tail, locator + 8), from + locator as u64);
        }
        let record = &tail[at..];
        Ok(Directory {
            count: u16_at(record, 10).into(),
            size: u32_at(record, 12).into(),
            offset: u32_at(record, 16).into(),
            end: from + at as u64,
        })
    }

    /// What the record of ZIP64 says, which has to lie where the locator says and right before it.
    fn find_64(source: &mut (impl Read + Seek), position: u64, locator: u64) -> Result<Directory, ArchiveError> {
        let damaged =
            || ArchiveError::damaged("is a damaged ZIP archive: the record of ZIP64 is not where it should be");
        if position.checked_add(56) != Some(locator) {
            return Err(damaged());
        }
        source.seek(SeekFrom::Start(position))?;
        let record: [u8; 56] = array(source)?;
        if !record.starts_with(END_64) {
            return Err(damaged());
        }
        Ok(Directory {
            count: u64_at(&record, 32),
            size: u64_at(&record, 40),
            offset: u64_at(&record, 48),
            end: position,
        })
    }
}

fn members(mut list: impl Read, count: u64) -> Result<Vec<Member>, ArchiveError> {
    let damaged = || ArchiveError::damaged("is a damaged ZIP archive: the list of its members does not parse");
    let mut members = Vec::new();
    for _ in 0..count {
        let head: [u8; 46] = array(&mut list).map_err(|_| damaged())?;
        if !head.starts_with(MEMBER) {
            return Err(damaged());
        }
        let mut part = |at| {
            let mut bytes = vec![0; usize::from(u16_at(&head, at))];
            list.read_exact(&mut bytes).map_err(|_| damaged()).map(|()| bytes)
        };
        let (path, extras, _comment) = (part(28)?, part(30)?, part(32)?);
        let path =
            String::from_utf8(path).map_err(|_| ArchiveError::damaged("has a member whose name is not UTF-8"))?;
        let mut member = Member {
            path,
            method: u16_at(&head, 10),
            is_encrypted: u16_at(&head, 8) & 1 != 0,
            crc: u32_at(&head, 16),
            packed: u32_at(&head, 20).into(),
            unpacked: u32_at(&head, 24).into(),
            offset: u32_at(&head, 42).into(),
        };
        widen(&mut member, &extras);
        members.push(member);
    }
    // Readers that go by the length would find more than those that go by the number.
    if list.read(&mut [0])? != 0 {
        return Err(damaged());
    }
    Ok(members)
}

/// Takes the numbers that do not fit from the ZIP64 field, in which those alone stand that do not.
fn widen(member: &mut Member, mut extras: &[u8]) {
    while extras.len() >= 4 {
        let end = (4 + usize::from(u16_at(extras, 2))).min(extras.len());
        if u16_at(extras, 0) == 1 {
            let mut wide = extras[4..end].chunks_exact(8).map(|bytes| u64_at(bytes, 0));
            for number in [&mut member.unpacked, &mut member.packed, &mut member.offset] {
                if *number == 0xffff_ffff {
                    *number = wide.next().unwrap_or(*number);
                }
            }
            return;
        }
        extras = &extras[end..];
    }
}

fn array<const N: usize>(source: &mut impl Read) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    source.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
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
