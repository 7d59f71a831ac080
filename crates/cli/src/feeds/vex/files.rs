//! The files that an import reads, one after the other.

use std::path::{Path, PathBuf};

use crate::error::CliError;

/// Most files of a directory.
const MAX_FILES: usize = 200_000;
/// How deep a directory is searched.
const DEPTH: usize = 16;

/// The document at a path, or those in a directory: files that end in `.json`, `.yaml` or `.yml`, in the order of their
/// names. What begins with a dot is left out, and links are not followed.
pub(in crate::feeds) fn documents(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if path == Path::new("-") || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    collect(path, DEPTH, &mut found)?;
    found.sort();
    if found.is_empty() {
        let message = format!("{}: there is no file that ends in .json, .yaml or .yml", path.display());
        return Err(CliError::Option(message));
    }
    Ok(found)
}

fn collect(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let failed = |source| CliError::File { path: directory.to_owned(), source };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            if depth == 0 {
                return Err(CliError::Option(format!("{}: more than {DEPTH} directories deep", path.display())));
            }
            collect(&path, depth - 1, found)?;
        } else if kind.is_file() && is_document(&path) {
            found.push(path);
        }
        if found.len() > MAX_FILES {
            return Err(CliError::Option(format!("{}: more than {MAX_FILES} files", directory.display())));
        }
    }
    Ok(())
}

/// Whether a file's name is that of a document. The indexes of exports are none.
fn is_document(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let is_index = ["all.json", "index.json", "provider-metadata.json"].iter().any(|index| name == *index);
    let extension = path.extension().unwrap_or_default();
    !is_index && ["json", "yaml", "yml"].iter().any(|known| extension == *known)
}
