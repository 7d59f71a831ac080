//! SemVer 2. Missing numbers count as zero and a leading `v` is skipped, because registries and advisories write both.

use super::Read;
use crate::key::{Key, is_number};

/// `[v]N[.N[.N]][-pre.release][+build]`, with `most` numbers; the build decides nothing.
pub(super) fn read(version: &str, most: usize) -> Option<Read> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let (version, build) = version.split_once('+').map_or((version, None), |(version, build)| (version, Some(build)));
    let (core, pre) = version.split_once('-').map_or((version, None), |(core, pre)| (core, Some(pre)));
    let numbers: Vec<&str> = core.split('.').collect();
    if numbers.len() > most || !numbers.iter().all(|number| is_number(number)) {
        return None;
    }
    if !build.into_iter().chain(pre).flat_map(|part| part.split('.')).all(is_identifier) {
        return None;
    }
    let mut key = Key::default();
    for index in 0..most {
        key.number(numbers.get(index).unwrap_or(&"0"));
    }
    let Some(pre) = pre else {
        key.byte(3);
        return Some(Read::release(key));
    };
    for identifier in pre.split('.') {
        if is_number(identifier) {
            key.byte(1).number(identifier);
        } else {
            key.byte(2).text(identifier);
        }
    }
    key.byte(0);
    Some(Read { key: key.finish(), prerelease: true })
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
