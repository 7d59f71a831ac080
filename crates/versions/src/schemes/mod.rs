//! One file per scheme: from the text of a version to its key.

mod distributions;
mod maven;
mod pep440;
mod semver;

use crate::key::{Key, digits};
use crate::scheme::Scheme;

/// What reading a version yields.
pub(crate) struct Read {
    pub(crate) key: Vec<u8>,
    pub(crate) prerelease: bool,
}

impl Read {
    fn release(key: Key) -> Self {
        Self { key: key.finish(), prerelease: false }
    }
}

/// Parses a trimmed text that is not empty; absent if the scheme does not allow it.
pub(crate) fn read(scheme: Scheme, version: &str) -> Option<Read> {
    if version.chars().any(char::is_control) {
        return None;
    }
    match scheme {
        Scheme::Alpine => distributions::alpine(version),
        Scheme::Debian => distributions::debian(version),
        Scheme::Maven => Some(maven::read(version)),
        Scheme::NuGet => semver::read(&version.to_ascii_lowercase(), 4),
        Scheme::Pep440 => pep440::read(version),
        Scheme::Rpm => distributions::rpm(version),
        Scheme::SemVer => semver::read(version, 3),
        Scheme::Text => Some(Read { key: text(version), prerelease: false }),
    }
}

/// Runs of digits and of other characters by turns; the end sorts first, then text, then numbers.
pub(crate) fn text(version: &str) -> Vec<u8> {
    let mut key = Key::default();
    let mut rest = version;
    while !rest.is_empty() {
        let (number, after) = digits(rest);
        if number.is_empty() {
            let end = rest.bytes().position(|byte| byte.is_ascii_digit()).unwrap_or(rest.len());
            key.byte(1).text(&rest[..end]);
            rest = &rest[end..];
        } else {
            key.byte(2).number(number);
            rest = after;
        }
    }
    key.byte(0);
    key.finish()
}
