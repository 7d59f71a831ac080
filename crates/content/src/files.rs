//! Files and directories: what is done to them, and made durable.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::digest::{Algorithm, Digest};
use crate::error::ContentError;
use crate::hasher::Hasher;

/// The directory of digests with this first byte.
pub(crate) fn directory(blobs: &Path, algorithm: Algorithm, first: u8) -> PathBuf {
    blobs.join(algorithm.as_str()).join(format!("{first:02x}"))
}

/// The directory that copies of a blob lie in.
pub(crate) fn directory_of(blobs: &Path, digest: &Digest) -> PathBuf {
    blobs.join(digest.algorithm().as_str()).join(&digest.hex()[..2])
}

/// Makes a directory below `blobs` unless it is there; its name and those above are durable, whoever made them.
pub(crate) fn make_directory(blobs: &Path, directory: &Path) -> Result<(), ContentError> {
    std::fs::create_dir_all(directory)?;
    for above in directory.ancestors().skip(1).take_while(|above| above.starts_with(blobs)) {
        sync_directory(above)?;
    }
    Ok(())
}

/// Names of the files in a directory; none where there is no directory.
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

/// Bytes of a file; absent if it is not there.
pub(crate) fn size(path: &Path) -> Result<Option<u64>, ContentError> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The digest of a file from its start.
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

/// Writes a small file anew, durably but for its name.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), ContentError> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file.sync_all()?)
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), ContentError> {
    Ok(File::open(path)?.sync_all()?)
}

/// Removes a file; whether it was there.
pub(crate) fn remove(path: &Path) -> Result<bool, ContentError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}
