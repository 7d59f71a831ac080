//! A directory that an export fills: new, so that nothing of an earlier one stays in it.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// The directory of an export. Files appear under it as they are written, and it gets its name when all are there.
pub(in crate::feeds) struct Tree {
    target: PathBuf,
    partial: PathBuf,
    /// Name that the directory of an earlier export has until it is removed.
    replaced: Option<PathBuf>,
}

impl Tree {
    /// A directory that is not there yet, or empty.
    pub(in crate::feeds) fn new(target: &Path) -> Result<Tree, CliError> {
        if target.exists() {
            let refuse = |_| refused(target, "exists already; name a new directory");
            std::fs::remove_dir(target).map_err(refuse)?;
        }
        Tree::beside(target, None)
    }

    /// A directory that is not there yet, or empty, or has the entries of an earlier export and no others.
    pub(in crate::feeds) fn replacing(target: &Path, entries: &[&str]) -> Result<Tree, CliError> {
        let Ok(existing) = std::fs::symlink_metadata(target) else { return Tree::beside(target, None) };
        let mut names = Vec::new();
        if existing.is_dir() {
            for entry in std::fs::read_dir(target).map_err(|source| failed(target, source))? {
                names.push(entry.map_err(|source| failed(target, source))?.file_name());
            }
        }
        if existing.is_dir() && names.is_empty() {
            return Tree::new(target);
        }
        let is_known = |name: &std::ffi::OsString| entries.iter().any(|known| name == known);
        if !existing.is_dir() || names.len() != entries.len() || !names.iter().all(is_known) {
            return Err(refused(target, "is no earlier export; name another directory"));
        }
        let replaced = named_beside(target, "replaced")?;
        if replaced.exists() {
            return Err(refused(&replaced, "left behind by an export that broke off; remove it"));
        }
        Tree::beside(target, Some(replaced))
    }

    fn beside(target: &Path, replaced: Option<PathBuf>) -> Result<Tree, CliError> {
        let partial = named_beside(target, "partial")?;
        let tree = Tree { target: target.to_owned(), partial, replaced };
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

    pub(in crate::feeds) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), CliError> {
        let mut file = self.create(path)?;
        file.write_all(bytes).and_then(|()| file.flush()).map_err(|source| self.failed(path, source))
    }

    /// What went wrong with a file.
    pub(super) fn failed(&self, path: &str, source: std::io::Error) -> CliError {
        failed(&self.partial.join(path), source)
    }

    /// Gives the directory its name.
    pub(in crate::feeds) fn finish(self) -> Result<(), CliError> {
        let rename = |from: &Path, to: &Path| std::fs::rename(from, to).map_err(|source| failed(to, source));
        if let Some(replaced) = &self.replaced {
            rename(&self.target, replaced)?;
        }
        if let (Err(error), replaced) = (rename(&self.partial, &self.target), &self.replaced) {
            // The earlier export keeps its place.
            return replaced.as_ref().map_or(Ok(()), |replaced| rename(replaced, &self.target)).and(Err(error));
        }
        self.replaced
            .map_or(Ok(()), |replaced| std::fs::remove_dir_all(&replaced).map_err(|source| failed(&replaced, source)))
    }

    /// Removes what was written.
    pub(in crate::feeds) fn abandon(self) -> Result<(), CliError> {
        std::fs::remove_dir_all(&self.partial).map_err(|source| failed(&self.partial, source))
    }
}

/// A name in the same directory, so that renaming is one step.
fn named_beside(target: &Path, suffix: &str) -> Result<PathBuf, CliError> {
    let name = target.file_name().ok_or_else(|| refused(target, "this names no directory to make"))?;
    Ok(target.with_file_name(format!("{}.{suffix}", name.to_string_lossy())))
}

fn refused(path: &Path, what: &str) -> CliError {
    CliError::Option(format!("{}: {what}", path.display()))
}

fn failed(path: &Path, source: std::io::Error) -> CliError {
    CliError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_earlier_export_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("out");
        let entries = ["list", "files"];
        let fill = |text: &str| {
            let tree = Tree::replacing(&target, &entries).map_err(|error| error.to_string())?;
            tree.write("list", text.as_bytes()).unwrap();
            tree.write("files/a", text.as_bytes()).unwrap();
            tree.finish().map_err(|error| error.to_string())
        };
        for text in ["one", "two"] {
            fill(text).unwrap();
            assert_eq!(std::fs::read_to_string(target.join("files/a")).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left beside it");
        std::fs::write(target.join("more"), "").unwrap();
        assert!(fill("three").unwrap_err().contains("is no earlier export"));
        assert_eq!(std::fs::read_to_string(target.join("list")).unwrap(), "two");
        let file = home.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(Tree::replacing(&file, &entries).is_err());
        let tree = Tree::replacing(&home.path().join("other"), &entries).unwrap();
        tree.write("list", b"").unwrap();
        tree.abandon().unwrap();
        assert!(!home.path().join("other").exists() && !home.path().join("other.partial").exists());
    }
}
