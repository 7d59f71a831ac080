//! Lengths and digests of files, read once from beginning to end.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512};

use crate::Refusal;
use crate::limits::MAX_FILE;

/// What identifies a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Name without its directory.
    pub name: String,
    /// Its length, counted in bytes.
    pub size_bytes: u64,
    /// SHA-256 in lower-case hex.
    pub sha256: String,
    /// SHA-512 in lower-case hex.
    pub sha512: String,
}

/// The facts of a file.
pub(crate) fn of(path: &Path) -> Result<FileFacts, Refusal> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Refusal::damaged("has a name that is not UTF-8"))?.to_owned();
    let mut file = File::open(path)?;
    if file.metadata()?.len() > MAX_FILE {
        return Err(Refusal::hostile(format!("has more than {MAX_FILE} bytes")));
    }
    let (mut sha256, mut sha512) = (Context::new(&SHA256), Context::new(&SHA512));
    let mut buffer = vec![0; 128 << 10];
    let mut size_bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        size_bytes += read as u64;
        // It may grow while it is read.
        if size_bytes > MAX_FILE {
            return Err(Refusal::hostile(format!("has more than {MAX_FILE} bytes")));
        }
        sha256.update(&buffer[..read]);
        sha512.update(&buffer[..read]);
    }
    Ok(FileFacts { name, size_bytes, sha256: hex(sha256.finish().as_ref()), sha512: hex(sha512.finish().as_ref()) })
}

/// SHA-1 and SHA-512 in lower-case hex, by which npm's clients verify a file.
pub(crate) fn of_npm(mut source: impl Read) -> Result<(String, String), Refusal> {
    let (mut sha1, mut sha512) = (Context::new(&SHA1_FOR_LEGACY_USE_ONLY), Context::new(&SHA512));
    let mut buffer = vec![0; 128 << 10];
    loop {
        let read = source.read(&mut buffer)?;
        if read == 0 {
            return Ok((hex(sha1.finish().as_ref()), hex(sha512.finish().as_ref())));
        }
        sha1.update(&buffer[..read]);
        sha512.update(&buffer[..read]);
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
