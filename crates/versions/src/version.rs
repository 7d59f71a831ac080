//! A version that was read, and the key of one that need not be readable.

use std::cmp::Ordering;
use std::fmt;

use crate::scheme::Scheme;
use crate::schemes;

/// The longest version, in bytes. Longer ones appear in no ecosystem; the bound keeps keys small enough for every index.
pub const MAX_LENGTH: usize = 255;

/// Why a text is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// Nothing, or white space.
    #[error("a version is empty")]
    Empty,
    /// It is longer than [`MAX_LENGTH`].
    #[error("a version has {0} bytes; {MAX_LENGTH} is the most")]
    TooLong(usize),
    /// Written as the scheme does not write versions.
    #[error("{text:?} is not written like {}", scheme.example())]
    Malformed {
        /// The text that was given.
        text: String,
        /// How it should have been written.
        scheme: Scheme,
    },
}

/// A version of one scheme. Equal versions may be spelt differently; versions of different schemes are merely kept apart.
#[derive(Clone, Debug)]
pub struct Version {
    scheme: Scheme,
    text: String,
    key: Vec<u8>,
    prerelease: bool,
}

impl Version {
    /// Reads a version, white space around it aside.
    pub fn parse(scheme: Scheme, text: &str) -> Result<Self, VersionError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(VersionError::Empty);
        }
        if text.len() > MAX_LENGTH {
            return Err(VersionError::TooLong(text.len()));
        }
        let read = schemes::read(scheme, text);
        let read = read.ok_or_else(|| VersionError::Malformed { text: text.into(), scheme })?;
        Ok(Self { scheme, text: text.into(), key: read.key, prerelease: read.prerelease })
    }

    /// How it was read.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bytes that order it among versions of its scheme.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Whether its scheme says that it comes before a release: a release candidate, a snapshot, a development build.
    pub fn is_prerelease(&self) -> bool {
        self.prerelease
    }
}

/// The key of any text at all, for columns that must sort whatever is stored: what the scheme can read sorts by the scheme,
/// and everything else below it, as [`Scheme::Text`]. A byte in front keeps the two apart, so these keys are not those of
/// [`Version::key`].
pub fn order_key(scheme: Scheme, text: &str) -> Vec<u8> {
    let (class, key) = match Version::parse(scheme, text) {
        Ok(version) => (1, version.key),
        Err(_) => (0, schemes::text(text.trim())),
    };
    let mut bytes = Vec::with_capacity(key.len() + 1);
    bytes.push(class);
    bytes.extend_from_slice(&key);
    bytes
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.scheme.cmp(&other.scheme).then_with(|| self.key.cmp(&other.key))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
#[path = "version_tests.rs"]
mod tests;
