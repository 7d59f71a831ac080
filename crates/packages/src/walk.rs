//! Through a directory in the order of names, one package after the other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::limits::MAX_DEPTH;
use crate::{Layout, Package, Refusal, WalkItem, maven, npm, python};

/// What is found in a directory. Links are not followed.
pub struct Walk {
    layout: Layout,
    root: PathBuf,
    /// What is still to be looked at, of each directory that the walk is in; the next one last.
    open: Vec<Vec<PathBuf>>,
}

impl Walk {
    pub(crate) fn new(layout: Layout, directory: &Path) -> io::Result<Walk> {
        let first = entries(directory)?;
        Ok(Walk { layout, root: directory.to_owned(), open: vec![first] })
    }

    fn read(&self, path: &Path) -> Result<Package, Refusal> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Refusal::damaged("has a name that is not UTF-8"))?;
        match self.layout {
            Layout::Python => python::read(path, name),
            Layout::Npm => npm::read(path, name),
            Layout::Maven => maven::read(path, path.strip_prefix(&self.root).unwrap_or(path)),
        }
    }

    /// What is at a path; nothing for a directory, which is gone into.
    fn look(&mut self, path: &Path) -> Option<Result<Package, Refusal>> {
        let kind = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata.file_type(),
            Err(error) => return Some(Err(error.into())),
        };
        if kind.is_file() {
            return Some(self.read(path));
        }
        if !kind.is_dir() {
            return Some(Err(Refusal::damaged("is neither a file nor a directory; links are not followed")));
        }
        if self.open.len() > MAX_DEPTH {
            return Some(Err(Refusal::hostile(format!("lies deeper than {MAX_DEPTH} directories"))));
        }
        match entries(path) {
            Ok(entries) => {
                self.open.push(entries);
                None
            }
            Err(error) => Some(Err(error.into())),
        }
    }
}

impl Iterator for Walk {
    type Item = WalkItem;

    fn next(&mut self) -> Option<WalkItem> {
        loop {
            let directory = self.open.last_mut()?;
            let Some(path) = directory.pop() else {
                self.open.pop();
                continue;
            };
            if let Some(found) = self.look(&path) {
                return Some((path, found));
            }
        }
    }
}

/// The entries of a directory, the first one last.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort_unstable_by(|left, right| right.cmp(left));
    Ok(entries)
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
