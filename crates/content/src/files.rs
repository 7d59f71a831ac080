//! File operations: private modes and durability.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::digest::{Algorithm, Digest};
use crate::error::ContentError;
use crate::hasher::Hasher;

/// The directory of digests with this first byte.
pub(crate) fn directory(blobs: &Path, algorithm: Algorithm, first: u8) -> PathBuf {
    blobs.join(algorithm.as_str()).join(format!("{first:02x}"))
}

/// The directory of a blob's replicas.
pub(crate) fn directory_of(blobs: &Path, digest: &Digest) -> PathBuf {
    blobs.join(digest.algorithm().as_str()).join(&digest.hex()[..2])
}

/// Mode bits of everyone but the owner.
const OTHERS: u32 = 0o077;

/// Creates a directory and its missing parents, for their owner alone.
pub(crate) fn create_private_directory(directory: &Path) -> Result<(), ContentError> {
    Ok(DirBuilder::new().recursive(true).mode(0o700).create(directory)?)
}

/// Creates a file for its owner alone.
pub(crate) fn create_private(path: &Path) -> Result<File, ContentError> {
    Ok(OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?)
}

/// Removes the access of others from a directory and everything below it. Costs one `stat` if the directory
/// is private already. Its own mode changes last, so that an interrupted run is repeated at the next start.
pub(crate) fn make_private(directory: &Path) -> Result<(), ContentError> {
    if std::fs::metadata(directory)?.permissions().mode() & OTHERS == 0 {
        return Ok(());
    }
    for entry in std::fs::read_dir(directory)? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        let made = match kind {
            _ if kind.is_dir() => make_private(&path),
            _ if kind.is_file() => take_from_others(&path),
            _ => Ok(()),
        };
        match made {
            // Another server's collection removed it.
            Err(ContentError::Storage(error)) if error.kind() == ErrorKind::NotFound => {}
            made => made?,
        }
    }
    take_from_others(directory)
}

/// Removes the access of others. A file of another user, such as the root of a mounted volume, keeps its
/// mode.
fn take_from_others(path: &Path) -> Result<(), ContentError> {
    let mode = std::fs::metadata(path)?.permissions().mode();
    match std::fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 & !OTHERS)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let path = path.display();
            tracing::warn!(%path, "other users may reach blobs here: its owner has to run chmod go=");
            Ok(())
        }
        changed => Ok(changed?),
    }
}

/// Creates a directory below `blobs` unless it exists; its name and those of its parents are durable,
/// whichever process created them.
pub(crate) fn make_directory(blobs: &Path, directory: &Path) -> Result<(), ContentError> {
    create_private_directory(directory)?;
    for above in directory.ancestors().skip(1).take_while(|above| above.starts_with(blobs)) {
        sync_directory(above)?;
    }
    Ok(())
}

/// Names of the files in a directory; empty if the directory is missing.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>, ContentError> {
    let mut names = Vec::new();
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(names),
        entries => entries?,
    };
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

/// Size of a file in bytes; absent if it does not exist.
pub(crate) fn size(path: &Path) -> Result<Option<u64>, ContentError> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Hashes a file from its start.
pub(crate) fn hash_of(mut file: File, algorithm: Algorithm) -> Result<Hasher, ContentError> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = Hasher::new(algorithm);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hasher);
        }
        hasher.update(&buffer[..read]);
    }
}

/// Writes a new small file for its owner alone. Its content is durable, its name is not.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<(), ContentError> {
    let mut file = create_private(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file.sync_all()?)
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), ContentError> {
    Ok(File::open(path)?.sync_all()?)
}

/// Removes a file; returns whether it existed.
pub(crate) fn remove(path: &Path) -> Result<bool, ContentError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}
