//! The package managers of Linux distributions.

use super::Read;
use crate::key::{Key, digits, is_number};

/// `[epoch:]upstream[-revision]`, as dpkg compares it.
pub(super) fn debian(version: &str) -> Option<Read> {
    let (epoch, rest) = epoch(version)?;
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".+-~:".contains(&byte);
    if upstream.is_empty() || !rest.bytes().all(allowed) {
        return None;
    }
    let mut key = Key::default();
    key.number(epoch);
    for part in [upstream, revision] {
        append_debian(&mut key, part);
    }
    Some(Read::release(key))
}

/// Text and numbers by turns. Of characters, `~` comes before the end, the end before letters, letters before the others.
fn append_debian(key: &mut Key, part: &str) {
    const TILDE: u8 = 1;
    const END: u8 = 2;
    let mut rest = part;
    loop {
        let end = rest.bytes().position(|byte| byte.is_ascii_digit()).unwrap_or(rest.len());
        for byte in rest[..end].bytes() {
            key.byte(match byte {
                b'~' => TILDE,
                letter if letter.is_ascii_alphabetic() => letter,
                other => other | 0x80,
            });
        }
        let (number, after) = digits(&rest[end..]);
        key.byte(END).number(number);
        rest = after;
        if rest.is_empty() {
            // Nothing more is the same as no text and a zero, which is how the other version sees the end.
            key.byte(END).number("0");
            return;
        }
    }
}

/// `[epoch:]version[-release]`, as rpm compares it: only letters and digits count, `~` below the end and `^` right above it.
pub(super) fn rpm(version: &str) -> Option<Read> {
    let (epoch, rest) = epoch(version)?;
    let (version, release) = rest.split_once('-').unwrap_or((rest, ""));
    if version.is_empty() || release.contains('-') || rest.contains(char::is_whitespace) {
        return None;
    }
    let mut key = Key::default();
    key.number(epoch);
    for part in [version, release] {
        append_rpm(&mut key, part);
    }
    Some(Read::release(key))
}

fn append_rpm(key: &mut Key, part: &str) {
    let mut rest = part;
    while let Some(first) = rest.chars().next() {
        let (number, after) = digits(rest);
        if !number.is_empty() {
            key.byte(5).number(number);
            rest = after;
        } else if first.is_ascii_alphabetic() {
            let end = rest.bytes().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(rest.len());
            key.byte(4).text(&rest[..end]);
            rest = &rest[end..];
        } else {
            match first {
                '~' => key.byte(1),
                '^' => key.byte(3),
                _ => key,
            };
            rest = &rest[first.len_utf8()..];
        }
    }
    key.byte(2);
}

/// The epoch, 0 if there is none.
fn epoch(version: &str) -> Option<(&str, &str)> {
    match version.split_once(':') {
        Some((epoch, rest)) => is_number(epoch).then_some((epoch, rest)),
        None => Some(("0", version)),
    }
}

/// `N(.N)*[letter](_suffix[N])*[~hash][-rN]`, as apk-tools 3 compares it.
pub(super) fn alpine(version: &str) -> Option<Read> {
    let (first, mut rest) = digits(version);
    if first.is_empty() {
        return None;
    }
    let mut key = Key::default();
    key.number(first);
    while let Some((number, after)) = rest.strip_prefix('.').map(digits).filter(|(number, _)| !number.is_empty()) {
        key.byte(0x70);
        // Numbers with a leading zero are compared as text, which puts all of them before those without.
        if number.starts_with('0') {
            key.byte(0).text(number);
        } else {
            key.number(number);
        }
        rest = after;
    }
    if let Some(letter) = rest.bytes().next().filter(u8::is_ascii_lowercase) {
        key.byte(0x60).byte(letter);
        rest = &rest[1..];
    }
    let mut prerelease = false;
    while let Some(after) = rest.strip_prefix('_') {
        let end = after.bytes().position(|byte| !byte.is_ascii_lowercase()).unwrap_or(after.len());
        let rank = suffix(&after[..end])?;
        prerelease |= rank < END;
        let (number, after) = digits(&after[end..]);
        key.byte(rank);
        if !number.is_empty() {
            key.byte(0x40).number(number);
        }
        rest = after;
    }
    if let Some(after) = rest.strip_prefix('~') {
        let end = after.bytes().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(after.len());
        key.byte(0x30).text(&after[..end]);
        rest = &after[end..];
    }
    if let Some(number) = rest.strip_prefix("-r") {
        if !is_number(number) {
            return None;
        }
        key.byte(0x20).number(number);
        rest = "";
    }
    key.byte(END);
    rest.is_empty().then_some(Read { key: key.finish(), prerelease })
}

const END: u8 = 0x10;

/// Suffixes that announce a release come before the end, the others after everything but letters and numbers.
fn suffix(name: &str) -> Option<u8> {
    Some(match name {
        "alpha" => 0x01,
        "beta" => 0x02,
        "pre" => 0x03,
        "rc" => 0x04,
        "cvs" => 0x51,
        "svn" => 0x52,
        "git" => 0x53,
        "hg" => 0x54,
        "p" => 0x55,
        _ => return None,
    })
}
