//! Digests of files while they arrive, which clients of Maven verify them by.

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512};
use bowline_core::hex;
use bowline_libraries::hosting::Checksums;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use md5::{Digest as _, Md5};
use tokio::sync::Mutex;

/// Computes all digests of a file in one pass.
pub(crate) struct Hasher {
    md5: Md5,
    sha1: Context,
    sha256: Context,
    sha512: Context,
}

impl Hasher {
    pub(crate) fn new() -> Hasher {
        Hasher {
            md5: Md5::new(),
            sha1: Context::new(&SHA1_FOR_LEGACY_USE_ONLY),
            sha256: Context::new(&SHA256),
            sha512: Context::new(&SHA512),
        }
    }

    pub(crate) fn update(&mut self, part: &[u8]) {
        self.md5.update(part);
        for context in [&mut self.sha1, &mut self.sha256, &mut self.sha512] {
            context.update(part);
        }
    }

    /// SHA-256 in lower-case hex, and the others.
    pub(crate) fn finish(self) -> (String, Checksums) {
        let checksums = Checksums {
            md5: hex(&self.md5.finalize()),
            sha1: hex(self.sha1.finish().as_ref()),
            sha512: hex(self.sha512.finish().as_ref()),
        };
        (hex(self.sha256.finish().as_ref()), checksums)
    }
}

/// The same parts, which are hashed when they pass.
pub(crate) fn hashed<'a, E: Send + 'a>(
    parts: impl Stream<Item = Result<Bytes, E>> + Send + 'a,
    hasher: &'a Mutex<Hasher>,
) -> impl Stream<Item = Result<Bytes, E>> + Send + 'a {
    parts.then(async move |part| {
        let part = part?;
        hasher.lock().await.update(&part);
        Ok(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_parts_together() {
        let mut hasher = Hasher::new();
        for part in [&b"a"[..], b"", b"bc"] {
            hasher.update(part);
        }
        let (sha256, checksums) = hasher.finish();
        assert_eq!(checksums.md5, "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(checksums.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert!(sha256.starts_with("ba7816bf8f01cfea") && checksums.sha512.starts_with("ddaf35a193617aba"));
    }
}
