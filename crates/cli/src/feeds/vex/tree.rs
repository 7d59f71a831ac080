//! A directory that an export fills: new, so that nothing of an earlier one stays in it.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// The directory of an export. Files appear under it as they are written, and it gets its name when all are there.
pub(super) struct Tree {
    target: PathBuf,
    partial: PathBuf,
}

impl Tree {
    /// A directory that is not there yet, or empty.
    pub(super) fn new(target: &Path) -> Result<Tree, CliError> {
        let refuse = |what: &str| CliError::Option(format!("{}: {what}", target.display()));
        let name = target.file_name().ok_or_else(|| refuse("this names no directory to make"))?;
        if target.exists() {
            std::fs::remove_dir(target).map_err(|_| refuse("exists already; name a new directory"))?;
        }
        let partial = target.with_file_name(format!("{}.partial", name.to_string_lossy()));
        let tree = Tree { target: target.to_owned(), partial };
        std::fs::create_dir_all(&tree.partial).map_err(|source| failed(&tree.partial, source))?;
        let is_empty = std::fs::read_dir(&tree.partial).is_ok_and(|mut entries| entries.next().is_none());
        if !is_empty {
            let message = format!("{}: left behind by an export that broke off; remove it", tree.partial.display());
            return Err(CliError::Option(message));
        }
        Ok(tree)
    }

    /// A file to write on.
    pub(super) fn create(&self, path: &str) -> Result<BufWriter<File>, CliError> {
        let path = self.partial.join(path);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|source| failed(directory, source))?;
        }
        File::create_new(&path).map(BufWriter::new).map_err(|source| failed(&path, source))
    }

    pub(super) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), CliError> {
        let mut file = self.create(path)?;
        file.write_all(bytes).and_then(|()| file.flush()).map_err(|source| self.failed(path, source))
    }

    /// What went wrong with a file.
    pub(super) fn failed(&self, path: &str, source: std::io::Error) -> CliError {
        failed(&self.partial.join(path), source)
    }

    /// Gives the directory its name.
    pub(super) fn finish(self) -> Result<(), CliError> {
        std::fs::rename(&self.partial, &self.target).map_err(|source| failed(&self.target, source))
    }
}

fn failed(path: &Path, source: std::io::Error) -> CliError {
    CliError::File { path: path.to_owned(), source }
}
