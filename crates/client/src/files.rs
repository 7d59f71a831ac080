//! Files that hold secrets: readable by their owner alone, and never half-written.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::error::ClientError;

/// The text of a file, absent if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, ClientError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ClientError::File { path: path.into(), source }),
    }
}

/// Writes a file of mode 0600 in directories of mode 0700: to a temporary file beside it, then renamed.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), ClientError> {
    let failed = |source| ClientError::File { path: path.into(), source };
    if let Some(directory) = path.parent() {
        create_directory(directory).map_err(failed)?;
    }
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let written = (|| {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, path)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written.map_err(failed)
}

fn create_directory(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Removes a file; whether there was one.
pub(crate) fn remove(path: &Path) -> Result<bool, ClientError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(ClientError::File { path: path.into(), source }),
    }
}
