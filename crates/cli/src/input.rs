//! What a command is given to send on.

use std::io::Read as _;
use std::path::Path;

use bowline_client::ClientError;

/// The bytes of a file, or of standard input for `-`.
///
/// # Errors
/// It cannot be read, or has more bytes than `limit`.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ClientError> {
    let is_stdin = path == Path::new("-");
    let failed =
        |source| ClientError::File { path: if is_stdin { "standard input".into() } else { path.into() }, source };
    let mut bytes = Vec::new();
    let size = if is_stdin {
        std::io::stdin().lock().take(limit + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
    };
    if size.map_err(failed)? as u64 > limit {
        return Err(ClientError::Usage(format!("{}: larger than {} MiB", path.display(), limit >> 20)));
    }
    Ok(bytes)
}
