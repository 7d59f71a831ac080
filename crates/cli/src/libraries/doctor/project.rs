//! The files of a project that say where packages come from.

use std::path::Path;

use super::sources::{self, Sources};
use crate::error::CliError;

/// Directories of what was installed or built, and of other people's sources.
const SKIPPED: [&str; 6] = ["node_modules", "target", "venv", "vendor", "site-packages", "__pycache__"];
/// The directory of cargo's settings. What lies in directories below it was installed.
const CARGO: &str = ".cargo";
/// Levels of directories below the project.
const LEVELS: usize = 8;
/// Files and directories of a project that are looked at.
const ENTRIES: usize = 200_000;
/// Bytes of a file, and of all files.
const BYTES: u64 = 64 << 20;
const ALL_BYTES: usize = 256 << 20;

/// A file that was read.
#[derive(Debug)]
pub(super) struct File {
    /// Its path below the project, or as people name it.
    pub(super) name: String,
    pub(super) text: String,
    /// What it says, or why it cannot be read.
    pub(super) sources: Result<Sources, String>,
}

impl File {
    pub(super) fn new(name: &str, text: String, sources: Result<Sources, String>) -> File {
        File { name: name.to_owned(), text, sources }
    }
}

/// The files of a project, by path. Links are not followed, and directories whose names begin with a dot are not entered,
/// except for that of cargo's settings.
///
/// # Errors
/// A directory or file cannot be read, or there are too many.
pub(super) fn files(directory: &Path) -> Result<Vec<File>, CliError> {
    let mut files = Vec::new();
    let mut left = ENTRIES;
    collect(directory, "", LEVELS, &mut left, &mut files)?;
    files.sort_by(|one: &File, other| one.name.cmp(&other.name));
    Ok(files)
}

fn collect(
    directory: &Path,
    above: &str,
    levels: usize,
    left: &mut usize,
    files: &mut Vec<File>,
) -> Result<(), CliError> {
    let failed = |source| CliError::File { path: directory.to_owned(), source };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        *left = left.checked_sub(1).ok_or_else(|| {
            CliError::Option(format!(
                "{} has more than {ENTRIES} files: name a directory below it",
                directory.display()
            ))
        })?;
        let (name, kind) = (entry.file_name(), entry.file_type().map_err(failed)?);
        let name = name.to_string_lossy();
        let path = format!("{above}{name}");
        let deeper = if name == CARGO { 0 } else { levels.saturating_sub(1) };
        let is_entered = name == CARGO || (!name.starts_with('.') && !SKIPPED.contains(&&*name));
        if kind.is_dir() && is_entered && levels > 0 {
            collect(&entry.path(), &format!("{path}/"), deeper, left, files)?;
        } else if kind.is_file() && sources::read(&path, "").is_some() {
            files.extend(file(&entry.path(), &path)?);
            if files.iter().map(|file| file.text.len()).sum::<usize>() > ALL_BYTES {
                let text = "has more than 256 MiB of lock files and the like: name a directory below it";
                return Err(CliError::Option(format!("{} {text}", directory.display())));
            }
        }
    }
    Ok(())
}

/// A file by its path, under another name that ends as its path does.
///
/// # Errors
/// It cannot be read.
pub(super) fn file(path: &Path, shown: &str) -> Result<Option<File>, CliError> {
    let Ok(text) = String::from_utf8(crate::input::read(path, BYTES)?) else {
        return Ok(Some(File::new(shown, String::new(), Err("is no UTF-8".into()))));
    };
    Ok(sources::read(shown, &text).map(|found| File::new(shown, text, found)))
}
