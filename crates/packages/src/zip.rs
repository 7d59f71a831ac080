//! One member of a ZIP archive, found by the central directory, which is read and judged as a whole before.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use crate::Refusal;
use crate::limits::{MOST_DIRECTORY, MOST_MEMBERS, MOST_METADATA, judge_growth, judge_path};

const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const MEMBER: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;

/// A member as the central directory has it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    method: u16,
    crc: u32,
    packed: u64,
    unpacked: u64,
    offset: u64,
}

/// An archive whose members have been judged.
pub(crate) struct Archive {
    file: File,
    pub(crate) members: Vec<Member>,
}

impl Archive {
    /// Reads the central directory.
    pub(crate) fn open(mut file: File) -> Result<Archive, Refusal> {
        let length = file.metadata()?.len();
        let Directory { count, size, offset, end } = Directory::find(&mut file, length)?;
        if count > MOST_MEMBERS || size > MOST_DIRECTORY {
            return Err(Refusal::hostile(format!("says that {count} members are listed in {size} bytes")));
        }
        // Some unpackers go to the offset, others back from the end: only without a gap do they read the same list.
        if offset.checked_add(size) != Some(end) {
            return Err(Refusal::hostile("has something between the list of its members and its end"));
        }
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![0; size as usize];
        file.read_exact(&mut bytes)?;
        let members = members(&bytes, count)?;
        let mut names = BTreeSet::new();
        let mut unpacked = 0_u64;
        for member in &members {
            judge_path(&member.name)?;
            // Which of two is meant, unpackers do not agree on.
            if !names.insert(member.name.as_str()) {
                return Err(Refusal::hostile(format!("has the member {:?} twice", member.name)));
            }
            unpacked = unpacked.saturating_add(member.unpacked);
        }
        judge_growth(length, unpacked)?;
        Ok(Archive { file, members })
    }

    /// The bytes of a member that is metadata.
    pub(crate) fn read(&mut self, member: &Member) -> Result<Vec<u8>, Refusal> {
        if member.unpacked > MOST_METADATA {
            return Err(Refusal::hostile(format!("has metadata of {} bytes", member.unpacked)));
        }
        self.file.seek(SeekFrom::Start(member.offset))?;
        let mut header = [0; 30];
        self.file.read_exact(&mut header)?;
        if u32_at(&header, 0) != Some(LOCAL) {
            return Err(Refusal::damaged("is a damaged ZIP archive: a member is not where it should be"));
        }
        let names = u64::from(u16_at(&header, 26).unwrap_or(0)) + u64::from(u16_at(&header, 28).unwrap_or(0));
        self.file.seek(SeekFrom::Current(names as i64))?;
        let packed = (&self.file).take(member.packed);
        let mut bytes = Vec::new();
        let most = member.unpacked + 1;
        match member.method {
            0 => packed.take(most).read_to_end(&mut bytes)?,
            8 => DeflateDecoder::new(packed).take(most).read_to_end(&mut bytes)?,
            method => return Err(Refusal::damaged(format!("packs its metadata with the method {method}"))),
        };
        let mut crc = Crc::new();
        crc.update(&bytes);
        if bytes.len() as u64 != member.unpacked || crc.sum() != member.crc {
            return Err(Refusal::damaged("is a damaged ZIP archive: metadata are not what their checksum says"));
        }
        Ok(bytes)
    }
}

/// Where the central directory is.
struct Directory {
    /// Members in it.
    count: u64,
    size: u64,
    offset: u64,
    /// Where the record begins that says so.
    end: u64,
}

impl Directory {
    fn find(file: &mut File, length: u64) -> Result<Directory, Refusal> {
        let no_zip = || Refusal::damaged("is no ZIP archive, or was cut off");
        // The record at the end has 22 bytes and a comment of 65,535 at most; the locator of ZIP64 lies right before.
        let from = length.saturating_sub(22 + 65_535 + 20);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        file.take(22 + 65_535 + 20).read_to_end(&mut tail)?;
        let found = (0..tail.len().saturating_sub(21)).rev().find(|at| u32_at(&tail, *at) == Some(END));
        let at = found.ok_or_else(no_zip)?;
        // Many readers heed the locator whatever the record at the end says.
        if let Some(locator) = at.checked_sub(20).filter(|at| u32_at(&tail, *at) == Some(LOCATOR_64)) {
            let place = u64_at(&tail, locator + 8).ok_or_else(no_zip)?;
            return Directory::find_64(file, place, from + locator as u64);
        }
        let count = u16_at(&tail, at + 10).ok_or_else(no_zip)?;
        let (size, offset) = (u32_at(&tail, at + 12).ok_or_else(no_zip)?, u32_at(&tail, at + 16).ok_or_else(no_zip)?);
        Ok(Directory { count: count.into(), size: size.into(), offset: offset.into(), end: from + at as u64 })
    }

    /// What the record of ZIP64 says, which has to lie where the locator says and right before it.
    fn find_64(file: &mut File, place: u64, locator: u64) -> Result<Directory, Refusal> {
        let damaged = || Refusal::damaged("is a damaged ZIP archive: the record of ZIP64 is not where it should be");
        let mut record = [0; 56];
        if place.checked_add(record.len() as u64) != Some(locator) {
            return Err(damaged());
        }
        file.seek(SeekFrom::Start(place))?;
        file.read_exact(&mut record)?;
        if u32_at(&record, 0) != Some(END_64) {
            return Err(damaged());
        }
        let number = |at| u64_at(&record, at).ok_or_else(damaged);
        Ok(Directory { count: number(32)?, size: number(40)?, offset: number(48)?, end: place })
    }
}

fn members(bytes: &[u8], count: u64) -> Result<Vec<Member>, Refusal> {
    let damaged = || Refusal::damaged("is a damaged ZIP archive: the list of its members does not parse");
    let mut members = Vec::new();
    let mut at = 0;
    for _ in 0..count {
        if u32_at(bytes, at) != Some(MEMBER) {
            return Err(damaged());
        }
        let short = |offset| u16_at(bytes, at + offset).ok_or_else(damaged);
        let long = |offset| u32_at(bytes, at + offset).ok_or_else(damaged).map(u64::from);
        let (name, extra, comment) = (short(28)? as usize, short(30)? as usize, short(32)? as usize);
        let text = bytes.get(at + 46..at + 46 + name).ok_or_else(damaged)?;
        let text = std::str::from_utf8(text).map_err(|_| Refusal::damaged("has a member whose name is not UTF-8"))?;
        let mut member = Member {
            name: text.to_owned(),
            method: short(10)?,
            crc: u32_at(bytes, at + 16).ok_or_else(damaged)?,
            packed: long(20)?,
            unpacked: long(24)?,
            offset: long(42)?,
        };
        let extras = bytes.get(at + 46 + name..at + 46 + name + extra).ok_or_else(damaged)?;
        widen(&mut member, extras);
        members.push(member);
        at += 46 + name + extra + comment;
    }
    // Readers that go by the length would find more than those that go by the number.
    if at != bytes.len() {
        return Err(damaged());
    }
    Ok(members)
}

/// Takes the numbers that do not fit from the ZIP64 field, in which those alone stand that do not.
fn widen(member: &mut Member, mut extras: &[u8]) {
    while let (Some(id), Some(length)) = (u16_at(extras, 0), u16_at(extras, 2)) {
        let end = (4 + length as usize).min(extras.len());
        if id == 1 {
            let mut at = 4;
            for number in [&mut member.unpacked, &mut member.packed, &mut member.offset] {
                if *number == 0xffff_ffff
                    && let Some(wide) = u64_at(&extras[..end], at)
                {
                    *number = wide;
                    at += 8;
                }
            }
            return;
        }
        extras = &extras[end..];
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
