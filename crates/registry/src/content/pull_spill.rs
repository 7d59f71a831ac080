//! Pulls that wait in a file until the database takes them, in the order in which they came.
//!
//! The file begins with the position of the first record that is not in the database yet, so that a restart continues
//! there. A kill between the commit of a batch and the note of its end repeats that batch. Nothing is flushed: a machine
//! that fails loses what the system had not written.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use bowline_contract::bowline::registry::v1::Interaction;
use prost::Message as _;

/// Bytes in front of the first record.
const HEADER: u64 = 8;
/// Servers that may share a directory.
const FILES: usize = 64;
/// Bytes that are read at once; a record has less.
const BUFFER: usize = 1 << 20;

/// One pull, as it waits.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Pull {
    /// When, in microseconds since the epoch.
    #[prost(int64, tag = "1")]
    pub(super) at: i64,
    /// UIDP of the caller.
    #[prost(string, tag = "2")]
    pub(super) actor: String,
    /// Claims of the token that was exchanged for the caller's, as JSON; empty for none.
    #[prost(string, tag = "3")]
    pub(super) act: String,
    /// UIDP of the repository.
    #[prost(string, tag = "4")]
    pub(super) repo: String,
    /// Body of the event.
    #[prost(message, required, tag = "5")]
    pub(super) interaction: Interaction,
    /// Image policies let it pass, and have a grace.
    #[prost(bool, tag = "6")]
    pub(super) is_recorded: bool,
}

/// A bounded file of pulls, which one process has at a time.
#[derive(Debug)]
pub struct PullSpill {
    file: File,
    /// Where the first record begins that is not in the database.
    start: u64,
    end: u64,
    most: u64,
}

impl PullSpill {
    /// Opens the first file in a directory that no other process has. What an earlier process left in it waits to be
    /// written. It never grows beyond `most` bytes.
    ///
    /// # Errors
    /// The directory cannot be written, or has as many servers as may share one.
    pub fn open(directory: &Path, most: u64) -> io::Result<PullSpill> {
        for n in 0..FILES {
            let path = directory.join(format!("pulls-{n}.spill"));
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
            match file.try_lock() {
                Ok(()) => return PullSpill::of(file, most),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other(format!("{FILES} servers spill pulls here already")))
    }

    fn of(file: File, most: u64) -> io::Result<PullSpill> {
        let end = file.metadata()?.len();
        let mut header = [0; HEADER as usize];
        let mut spill = PullSpill { file, start: HEADER, end, most };
        if end >= HEADER {
            spill.file.read_exact_at(&mut header, 0)?;
            spill.start = u64::from_be_bytes(header);
        }
        if !(HEADER..=end).contains(&spill.start) {
            spill.clear()?;
        }
        // A kill may have left a part of a record.
        spill.end = spill.end_of_whole_records()?;
        spill.file.set_len(spill.end)?;
        Ok(spill)
    }

    fn end_of_whole_records(&self) -> io::Result<u64> {
        let mut at = self.start;
        while at < self.end {
            let mut head = [0; 10];
            let read = self.file.read_at(&mut head, at)?;
            let Ok(length) = prost::decode_length_delimiter(&head[..read]) else { break };
            let next = at + (prost::length_delimiter_len(length) + length) as u64;
            if next > self.end {
                break;
            }
            at = next;
        }
        Ok(at)
    }

    /// Bytes of events that wait to be written.
    pub(super) fn waiting(&self) -> u64 {
        self.end - self.start
    }

    /// Adds a pull at the end; false if the file may not grow so far.
    pub(super) fn push(&mut self, pull: &Pull) -> io::Result<bool> {
        let record = pull.encode_length_delimited_to_vec();
        let end = self.end + record.len() as u64;
        if end > self.most {
            return Ok(false);
        }
        self.file.write_all_at(&record, self.end)?;
        self.end = end;
        Ok(true)
    }

    /// The first pulls that wait, at most so many, and where the next one begins.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub(super) fn first(&self, most: usize) -> io::Result<(Vec<Pull>, u64)> {
        let mut bytes = vec![0; BUFFER.min(self.waiting() as usize)];
        self.file.read_exact_at(&mut bytes, self.start)?;
        let mut left = bytes.as_slice();
        let mut pulls = Vec::new();
        while pulls.len() < most && !left.is_empty() {
            let mut record = left;
            let is_whole = prost::decode_length_delimiter(&mut record).is_ok_and(|length| length <= record.len());
            if !is_whole {
                break;
            }
            pulls.push(Pull::decode_length_delimited(&mut left).map_err(io::Error::other)?);
        }
        if pulls.is_empty() && !bytes.is_empty() {
            return Err(io::Error::other("the last record is not whole"));
        }
        Ok((pulls, self.start + (bytes.len() - left.len()) as u64))
    }

    /// Notes that everything before a position is in the database.
    pub(super) fn advance(&mut self, start: u64) -> io::Result<()> {
        self.start = start;
        if self.start >= self.end {
            return self.clear();
        }
        self.file.write_all_at(&start.to_be_bytes(), 0)
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        (self.start, self.end) = (HEADER, HEADER);
        self.file.set_len(0)?;
        self.file.write_all_at(&HEADER.to_be_bytes(), 0)
    }
}
