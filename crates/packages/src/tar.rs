//! One member of a gzipped tar archive. All others are read over, because they are counted and their names judged.

use std::fs::File;
use std::io::Read;

use flate2::read::MultiGzDecoder;

use crate::Refusal;
use crate::limits::{MOST_MEMBERS, MOST_METADATA, judge_growth, judge_path};

const BLOCK: u64 = 512;

/// What was wanted of an archive.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The bytes of the member that was asked for.
    pub(crate) bytes: Option<Vec<u8>>,
    /// Files in the archive.
    pub(crate) files: u64,
}

/// Reads an archive to its end. `wants` says of a path whether it is the member to keep.
pub(crate) fn read(file: File, wants: impl Fn(&str) -> bool) -> Result<Wanted, Refusal> {
    let packed = file.metadata()?.len();
    let mut source = Counting { inner: MultiGzDecoder::new(std::io::BufReader::new(file)), read: 0, packed };
    let mut wanted = Wanted { bytes: None, files: 0 };
    let mut members = 0;
    // What the next header says, if what came before it says better.
    let (mut long_name, mut long_size) = (None::<String>, None::<u64>);
    while let Some(header) = Header::read(&mut source)? {
        members += 1;
        if members > MOST_MEMBERS {
            return Err(Refusal::hostile(format!("has more than {MOST_MEMBERS} members")));
        }
        match header.kind {
            b'x' => {
                let records = source.member(header.size)?;
                (long_name, long_size) = extended(&records)?;
                continue;
            }
            b'L' => {
                let name = source.member(header.size)?;
                long_name = Some(text(&name)?.to_owned());
                continue;
            }
            b'g' | b'K' => {
                source.skip_member(header.size)?;
                continue;
            }
            _ => {}
        }
        let name = long_name.take().unwrap_or(header.name);
        let size = long_size.take().unwrap_or(header.size);
        judge_path(&name)?;
        // Older writers mark a directory by nothing but its slash.
        let is_file = matches!(header.kind, b'0' | 0 | b'7') && !name.ends_with('/');
        if is_file {
            wanted.files += 1;
        }
        // Installers drop the first component, some before and some after the path is made plain.
        if is_file && (wants(&plain(&name)) || wants(&name)) {
            let bytes = source.member(size)?;
            // Which of two is meant, unpackers do not agree on.
            if wanted.bytes.replace(bytes).is_some() {
                return Err(Refusal::hostile("has metadata twice"));
            }
        } else {
            source.skip_member(size)?;
        }
    }
    Ok(wanted)
}

/// A path without the components that lead nowhere.
fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join("/")
}

/// Counts what comes out, and stops when it is too much.
struct Counting<R> {
    inner: R,
    read: u64,
    packed: u64,
}

impl<R: Read> Counting<R> {
    /// Fills the buffer; false at the end.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, Refusal> {
        let mut filled = 0;
        while filled < buffer.len() {
            let read = self.inner.read(&mut buffer[filled..]);
            let read =
                read.map_err(|error| Refusal::damaged(format!("is no gzipped tar archive, or was cut off: {error}")))?;
            if read == 0 {
                break;
            }
            filled += read;
            self.read += read as u64;
            judge_growth(self.packed, self.read)?;
        }
        match filled {
            0 => Ok(false),
            full if full == buffer.len() => Ok(true),
            _ => Err(Refusal::damaged("is a tar archive that was cut off")),
        }
    }

    /// The bytes of a member that is metadata.
    fn member(&mut self, size: u64) -> Result<Vec<u8>, Refusal> {
        if size > MOST_METADATA {
            return Err(Refusal::hostile(format!("has metadata of {size} bytes")));
        }
        let mut bytes = vec![0; size.next_multiple_of(BLOCK) as usize];
        if !bytes.is_empty() && !self.fill(&mut bytes)? {
            return Err(Refusal::damaged("is a tar archive that was cut off"));
        }
        bytes.truncate(size as usize);
        Ok(bytes)
    }

    fn skip_member(&mut self, size: u64) -> Result<(), Refusal> {
        let mut left =
            size.checked_next_multiple_of(BLOCK).ok_or_else(|| Refusal::hostile("has a member without end"))?;
        let mut buffer = [0; 8 << 10];
        while left > 0 {
            let part = left.min(buffer.len() as u64) as usize;
            if !self.fill(&mut buffer[..part])? {
                return Err(Refusal::damaged("is a tar archive that was cut off"));
            }
            left -= part as u64;
        }
        Ok(())
    }
}

struct Header {
    name: String,
    size: u64,
    kind: u8,
}

impl Header {
    /// The next header; nothing at the end.
    fn read<R: Read>(source: &mut Counting<R>) -> Result<Option<Header>, Refusal> {
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
            return Err(Refusal::damaged("is a damaged tar archive: a header is not what its checksum says"));
        }
        let name = text(&block[..100])?;
        let prefix = if block[257..262] == *b"ustar" && block[262] == 0 { text(&block[345..500])? } else { "" };
        let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        let size = size(&block[124..136])
            .ok_or_else(|| Refusal::damaged("is a damaged tar archive: a length is no number"))?;
        Ok(Some(Header { name, size, kind: block[156] }))
    }
}

fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).map_err(|_| Refusal::damaged("has a member whose name is not UTF-8"))
}

fn octal(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(text, 8).ok()
}

/// A length: octal, or in bytes after a set bit where it is large.
fn size(bytes: &[u8]) -> Option<u64> {
    if bytes[0] != 0x80 {
        return octal(bytes);
    }
    bytes[1..].iter().try_fold(0_u64, |size, byte| size.checked_mul(256)?.checked_add(u64::from(*byte)))
}

/// Name and length from the records of an extended header: `length key=value\n`.
fn extended(records: &[u8]) -> Result<(Option<String>, Option<u64>), Refusal> {
    let damaged = || Refusal::damaged("is a damaged tar archive: an extended header does not parse");
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
