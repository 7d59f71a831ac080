//! The one member of an archive that says what the package is.

use std::io::{BufReader, Read, Seek};

use bowline_formats::archive::{Limits, tar, zip};

use crate::Refusal;
use crate::limits::MAX_METADATA;

/// What is too much of a package.
const LIMITS: Limits =
    Limits { members: 200_000, member: MAX_METADATA, unpacked: 64 << 30, times: 250, always: 16 << 20 };

/// What was wanted of an archive.
#[derive(Debug)]
pub(crate) struct TarballMetadata {
    /// The bytes of the requested member.
    pub(crate) bytes: Option<Vec<u8>>,
    /// Files in the archive.
    pub(crate) files: u64,
    /// Bytes of these files.
    pub(crate) unpacked: u64,
}

/// Reads a gzipped tarball to its last member, because all of them are checked. `wants` says of a path whether it is the member to
/// keep, and `packed` is the length of the tarball.
pub(crate) fn of_tarball(
    source: impl Read,
    packed: u64,
    wants: impl Fn(&str) -> bool,
) -> Result<TarballMetadata, Refusal> {
    read_tarball(source, packed, wants, false)
}

/// The same, and refuses one whose end is missing, or whose member to keep is no file. Not all installers do.
pub(crate) fn of_whole_tarball(
    source: impl Read,
    packed: u64,
    wants: impl Fn(&str) -> bool,
) -> Result<TarballMetadata, Refusal> {
    read_tarball(source, packed, wants, true)
}

fn read_tarball(
    source: impl Read,
    packed: u64,
    wants: impl Fn(&str) -> bool,
    is_whole: bool,
) -> Result<TarballMetadata, Refusal> {
    let mut archive = tar::Reader::gzipped(BufReader::new(source), packed, LIMITS);
    let mut wanted = TarballMetadata { bytes: None, files: 0, unpacked: 0 };
    while let Some(member) = archive.next_member()? {
        if member.is_file {
            wanted.files += 1;
            wanted.unpacked = wanted.unpacked.saturating_add(member.size);
        }
        // Installers drop the first component, some before and some after the path is made plain.
        let is_wanted = (member.is_file || is_whole) && (wants(&plain(&member.path)) || wants(&member.path));
        if is_wanted && !member.is_file {
            return Err(Refusal::hostile("has metadata that is no file"));
        }
        if is_wanted && wanted.bytes.replace(archive.content()?).is_some() {
            // Which of two is meant, unpackers do not agree on.
            return Err(Refusal::hostile("has metadata twice"));
        }
    }
    if is_whole {
        archive.finish()?;
    }
    Ok(wanted)
}

/// A path without the components that lead nowhere.
fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join("/")
}

/// The one member of a ZIP archive whose path is that of metadata.
pub(crate) fn of_zip(
    source: impl Read + Seek,
    packed: u64,
    is_metadata: impl Fn(&str) -> bool,
) -> Result<Vec<u8>, Refusal> {
    let mut archive = zip::Archive::read(source, packed, LIMITS)?;
    let mut found = archive.members().iter().filter(|member| is_metadata(&member.path)).cloned();
    match (found.next(), found.next()) {
        (Some(member), None) => Ok(archive.content(&member)?),
        (None, _) => Err(Refusal::damaged("has no metadata where distributions have them")),
        (Some(_), Some(_)) => Err(Refusal::hostile("has metadata twice")),
    }
}
