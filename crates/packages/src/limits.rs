//! What is too much, in one place.

use crate::Refusal;

/// Most bytes of a file.
pub(crate) const MOST_FILE: u64 = 16 << 30;
/// Most bytes of metadata.
pub(crate) const MOST_METADATA: u64 = 1 << 20;
/// Most members of an archive.
pub(crate) const MOST_MEMBERS: u64 = 200_000;
/// Most bytes that an archive may say it unpacks to.
pub(crate) const MOST_UNPACKED: u64 = 64 << 30;
/// How many times its own size an archive may unpack to, from this size on.
const MOST_TIMES: u64 = 250;
const SMALL: u64 = 16 << 20;
/// Most bytes of the list of an archive's members.
pub(crate) const MOST_DIRECTORY: u64 = 128 << 20;
/// Deepest directory below the one that is walked.
pub(crate) const MOST_DEPTH: usize = 64;

/// Refuses an archive that grows beyond reason.
pub(crate) fn judge_growth(packed: u64, unpacked: u64) -> Result<(), Refusal> {
    if unpacked > MOST_UNPACKED || (unpacked > SMALL && unpacked / MOST_TIMES > packed) {
        return Err(Refusal::hostile(format!("unpacks to {unpacked} bytes or more, from {packed}")));
    }
    Ok(())
}

/// Refuses the name of a member that would leave the directory it is unpacked into.
pub(crate) fn judge_path(name: &str) -> Result<(), Refusal> {
    let leaves =
        name.starts_with('/') || name.contains('\\') || name.contains('\0') || name.split('/').any(|part| part == "..");
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    if leaves || has_drive {
        return Err(Refusal::hostile(format!("has the member {name:?}, which leaves its directory")));
    }
    Ok(())
}
