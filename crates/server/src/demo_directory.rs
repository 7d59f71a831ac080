//! The directory of `bowline serve --demo`: what may be in it, and the file that says what it is.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::error::StartError;
use crate::options::Options;
use crate::storage::create_private_directory;

const FILLED: &str = "DEMONSTRATION";
const FILLING: &str = "DEMONSTRATION.incomplete";

const TEXT: &str = "\
The data in this directory is generated: bowline serve --demo made it. It belongs to no one, and can be removed.
Do not store anything here that matters.
";

/// Contents of a directory, as far as a demonstration is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoDirectory {
    /// Absent, or without any file.
    Empty,
    /// Filled with demonstration data.
    Filled,
    /// Filled in part: the command was interrupted.
    Interrupted,
    /// Anything else, such as real data.
    Foreign,
}

/// The directory of a demonstration, which the options then name.
///
/// # Errors
/// The options name a database or a bucket, which may have other data.
pub fn require_own(options: &mut Options) -> Result<PathBuf, StartError> {
    for (flag, value) in [("--database-url", &options.database_url), ("--blob-url", &options.blob_url)] {
        if value.is_some() {
            return Err(StartError::Usage {
                cause: format!("--demo and {flag} exclude each other: demonstration data has a directory of its own"),
                hint: format!("run it without {flag}: bowline serve --demo"),
            });
        }
    }
    Ok(options.data_dir.get_or_insert_with(|| PathBuf::from("./bowline-demo")).clone())
}

/// What is in the directory.
///
/// # Errors
/// It cannot be read.
pub fn state(directory: &Path) -> Result<DemoDirectory, StartError> {
    if directory.join(FILLING).exists() {
        return Ok(DemoDirectory::Interrupted);
    }
    if directory.join(FILLED).exists() {
        return Ok(DemoDirectory::Filled);
    }
    match std::fs::read_dir(directory).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(DemoDirectory::Empty),
        Ok(false) => Ok(DemoDirectory::Foreign),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(DemoDirectory::Empty),
        Err(source) => Err(StartError::File { path: directory.into(), source }),
    }
}

/// The error of a directory whose filling was interrupted.
pub fn interrupted(directory: &Path) -> StartError {
    StartError::Unusable {
        cause: format!("{}: filling it with demonstration data was interrupted", directory.display()),
        hint: format!("run: rm -r {}, and the command again", directory.display()),
    }
}

/// The error of a directory with something else in it.
pub fn foreign(directory: &Path) -> StartError {
    StartError::Unusable {
        cause: format!("{}: has other data, which demonstration data is never put beside", directory.display()),
        hint: "name an empty directory, or one that does not exist, with --data-dir".into(),
    }
}

/// Makes the directory and marks it as incomplete.
///
/// # Errors
/// It cannot be written, or another process fills it.
pub fn begin(directory: &Path) -> Result<(), StartError> {
    create_private_directory(directory)?;
    let path = directory.join(FILLING);
    let written = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    let written = written.and_then(|mut file| file.write_all(TEXT.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|source| StartError::File { path, source })
}

/// Marks the directory as filled.
///
/// # Errors
/// It cannot be written.
pub fn complete(directory: &Path) -> Result<(), StartError> {
    let renamed = std::fs::rename(directory.join(FILLING), directory.join(FILLED));
    let synced = renamed.and_then(|()| crate::storage::sync_directory(directory));
    synced.map_err(|source| StartError::File { path: directory.join(FILLED), source })
}

/// Whether the server of these options serves demonstration data.
pub(crate) fn is_demo(options: &Options) -> bool {
    let directory = options.data_dir();
    options.database_url.is_none() && [FILLED, FILLING].iter().any(|name| directory.join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_empty_then_incomplete_then_filled_and_foreign_files_are_seen() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("demo");
        assert_eq!(state(&directory).unwrap(), DemoDirectory::Empty);
        begin(&directory).unwrap();
        assert_eq!(state(&directory).unwrap(), DemoDirectory::Interrupted);
        assert!(begin(&directory).is_err(), "another process fills it");
        complete(&directory).unwrap();
        assert_eq!(state(&directory).unwrap(), DemoDirectory::Filled);
        let options = Options { data_dir: Some(directory), ..Options::default() };
        assert!(is_demo(&options));
        std::fs::write(scratch.path().join("note"), "mine").unwrap();
        assert_eq!(state(scratch.path()).unwrap(), DemoDirectory::Foreign);
        assert!(!is_demo(&Options { data_dir: Some(scratch.path().into()), ..Options::default() }));
    }
}
