use std::fs::File;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::StartError;

/// What the names of all of them begin with.
const PREFIX: &str = "bowline-scratch.";

/// A directory for this process alone, removed at its end. It holds a copy of the database, so what a killed process
/// left is removed by the next one.
pub(crate) struct Scratch {
    directory: TempDir,
    /// Locked as long as the process lives.
    _lock: File,
}

impl Scratch {
    /// Makes one below `work`.
    ///
    /// # Errors
    /// The directory cannot be read or written.
    pub(crate) fn below(work: &Path) -> Result<Scratch, StartError> {
        let failed = |source| StartError::File { path: work.into(), source };
        remove_abandoned(work).map_err(failed)?;
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(work).map_err(failed)?;
        let lock = File::open(directory.path()).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(Scratch { directory, _lock: lock })
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn remove_abandoned(work: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(work)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // A directory of another user, or one that is being made or removed at this moment, must stay.
        let Ok(file) = File::open(entry.path()) else { continue };
        let is_new = entry.metadata()?.modified()?.elapsed().is_ok_and(|age| age.as_secs() < 10);
        if !is_new && file.try_lock().is_ok() {
            tracing::info!(path = %entry.path().display(), "removing what a killed command left");
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_used_stays() {
        let work = tempfile::tempdir().unwrap();
        let used = Scratch::below(work.path()).unwrap();
        let left = work.path().join(format!("{PREFIX}left"));
        let other = work.path().join("other");
        for directory in [&left, &other] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("database"), "x").unwrap();
        }
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        for directory in [&left, &other, &used.join("")] {
            File::open(directory).unwrap().set_modified(long_ago).unwrap();
        }
        let second = Scratch::below(work.path()).unwrap();
        assert!(!left.exists() && other.exists() && used.join("").exists() && second.join("").exists());
        let path = used.join("");
        drop(used);
        assert!(!path.exists());
    }
}
