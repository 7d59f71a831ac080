//! ZIP and tar archives, read strictly and within bounds.
//!
//! No one vouches for an archive. What two unpackers would read differently is refused: a member that is there twice, a
//! gap before the list of members, a header that is not what its checksum says. So is a name that leaves the directory
//! it is unpacked into, and whatever grows beyond reason. Nothing is written to disk.

pub mod tar;
pub mod zip;
pub mod zip_writer;

/// What is too much, for a kind of archive.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many members it may have.
    pub members: u64,
    /// Maximum bytes of a member that is read.
    pub member: u64,
    /// Maximum bytes that it may unpack to.
    pub unpacked: u64,
    /// How many times its own size it may unpack to, from `always` bytes on.
    pub times: u64,
    /// Bytes that any archive may unpack to, however few it has.
    pub always: u64,
}

impl Limits {
    /// Refuses an archive of `packed` bytes that grows beyond reason.
    fn validate_growth(&self, packed: u64, unpacked: u64) -> Result<(), ArchiveError> {
        if unpacked > self.unpacked || (unpacked > self.always && unpacked / self.times > packed) {
            return Err(ArchiveError::hostile(format!("unpacks to {unpacked} bytes or more, from {packed}")));
        }
        Ok(())
    }

    fn validate_members(&self, count: u64) -> Result<(), ArchiveError> {
        if count > self.members {
            return Err(ArchiveError::hostile(format!("has more than {} members", self.members)));
        }
        Ok(())
    }

    fn validate_member(&self, size: u64) -> Result<(), ArchiveError> {
        if size > self.member {
            return Err(ArchiveError::hostile(format!("has {size} bytes; at most {} are read", self.member)));
        }
        Ok(())
    }
}

/// Why an archive or a member of it is not read. The text says what it does or is: "has a member twice".
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Its bytes could not be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// It is damaged, or is no archive.
    #[error("{0}")]
    Damaged(String),
    /// It looks as if someone wanted to do harm.
    #[error("{0}")]
    Hostile(String),
}

impl ArchiveError {
    fn damaged(text: impl Into<String>) -> ArchiveError {
        ArchiveError::Damaged(text.into())
    }

    fn hostile(text: impl Into<String>) -> ArchiveError {
        ArchiveError::Hostile(text.into())
    }
}

/// Refuses the name of a member that would leave the directory it is unpacked into.
fn validate_path(name: &str) -> Result<(), ArchiveError> {
    let leaves =
        name.starts_with('/') || name.contains('\\') || name.contains('\0') || name.split('/').any(|part| part == "..");
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    if leaves || has_drive {
        return Err(ArchiveError::hostile(format!("has the member {name:?}, which leaves its directory")));
    }
    Ok(())
}
