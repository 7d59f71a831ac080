//! Modules of Go: their archives and their `go.mod`, and which versions a module can have.

use std::collections::BTreeSet;
use std::io::{Read, Seek};

use bowline_formats::archive::{Limits, zip};

use crate::Refusal;

/// Maximum bytes of a `go.mod`, and of an archive, packed and unpacked: what the go command reads.
pub const GO_MOD: u64 = 16 << 20;
pub const GO_ARCHIVE: u64 = 500 << 20;

const LIMITS: Limits = Limits { members: 200_000, member: GO_MOD, unpacked: GO_ARCHIVE, times: 1000, always: 64 << 20 };

/// Reads the archive of a version, with `packed` bytes: its `go.mod`, or the one that the go command takes without one.
/// That of a copy that replaces a module names the other one.
///
/// # Errors
/// It cannot be read, is damaged or hostile, or has files of something else.
pub fn go_archive(source: impl Read + Seek, packed: u64, module: &str, version: &str) -> Result<Vec<u8>, Refusal> {
    let mut archive = zip::Archive::read(source, packed, LIMITS)?;
    let prefix = format!("{module}@{version}/");
    let mut folded = BTreeSet::new();
    for member in archive.members() {
        let Some(path) = member.path.strip_prefix(&prefix) else {
            return Err(Refusal::damaged(format!("has the member {:?}, which is not in {prefix:?}", member.path)));
        };
        if !path.trim_end_matches('/').split('/').all(is_file_name) {
            return Err(Refusal::damaged(format!("has the file {path:?}, whose name the go command does not take")));
        }
        // The go command refuses such archives, since some file systems have one file for both.
        if !path.ends_with('/') && !folded.insert(path.to_lowercase()) {
            return Err(Refusal::damaged(format!("has the file {path:?} in upper and in lower case")));
        }
    }
    if folded.is_empty() {
        return Err(Refusal::damaged("has no files"));
    }
    let found = archive.members().iter().find(|member| member.path.strip_prefix(&prefix) == Some("go.mod")).cloned();
    let Some(member) = found else { return Ok(format!("module {module}\n").into_bytes()) };
    Ok(archive.content(&member)?)
}

/// Whether a part of a path is one that the go command unpacks: letters, digits, and signs that all file systems have.
fn is_file_name(part: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || " !#$%&()+,-.=@[]^_{}~".contains(c);
    !part.is_empty() && part.chars().all(is_plain) && !part.ends_with('.')
}

/// Reads a `go.mod`: the module that it names, which may be another one for copies of modules.
///
/// # Errors
/// It cannot be read, or names no module.
pub fn go_mod(source: impl Read) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    source.take(GO_MOD + 1).read_to_end(&mut bytes)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Refusal::damaged("has a go.mod that is not UTF-8"))?;
    named(text).ok_or_else(|| Refusal::damaged("has a go.mod without a module"))
}

/// The module that a `go.mod` names.
fn named(text: &str) -> Option<String> {
    let mut words = text.lines().flat_map(|line| line.split("//").next().unwrap_or_default().split_whitespace());
    let mut is_block = false;
    while let Some(word) = words.next() {
        match word {
            "module" => match words.next()? {
                "(" => is_block = true,
                path => return Some(path.trim_matches(['"', '`']).to_owned()),
            },
            path if is_block => return Some(path.trim_matches(['"', '`']).to_owned()),
            _ => {}
        }
    }
    None
}

/// Checks that a module can have a version: the path says from the second major version on which it is.
///
/// # Errors
/// It cannot; one sentence for people.
pub fn go_major(module: &str, version: &str) -> Result<(), String> {
    let (major, _) = version.trim_start_matches('v').split_once('.').unwrap_or((version, ""));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let last = module.rsplit('/').next().unwrap_or_default();
    let of_gopkg = module.starts_with("gopkg.in/");
    let end = if of_gopkg { last.rsplit_once(".v").map(|(_, end)| end) } else { last.strip_prefix('v') };
    let of_path = end.filter(|end| is_number(end) && (of_gopkg || !matches!(*end, "0" | "1")) && module.contains('/'));
    let fits = match of_path {
        Some(of_path) => of_path == major && !version.ends_with("+incompatible"),
        None if version.ends_with("+incompatible") => !matches!(major, "0" | "1"),
        None => matches!(major, "0" | "1"),
    };
    if fits {
        return Ok(());
    }
    Err(format!(
        "{module} cannot have the version {version}: from v2 on, the path of a module ends with its major version, such as /v2"
    ))
}

/// A path or a version as addresses have it: an exclamation mark stands for upper case.
pub fn go_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_uppercase() {
            escaped.push('!');
        }
        escaped.push(c.to_ascii_lowercase());
    }
    escaped
}

/// Whether a text is a version of Go as files are named by it: all three numbers after a `v`, and no build but one.
pub fn is_go_version(text: &str) -> bool {
    let Some(version) = text.strip_prefix('v') else { return false };
    let (version, build) = version.split_once('+').map_or((version, None), |(version, build)| (version, Some(build)));
    let (core, pre) = version.split_once('-').map_or((version, None), |(core, pre)| (core, Some(pre)));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = |number: &str| number == "0" || !number.starts_with('0');
    let is_identifier =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_plain = |part: &str| is_identifier(part) && (is_short(part) || !is_number(part));
    core.split('.').count() == 3
        && core.split('.').all(|number| is_number(number) && is_short(number))
        && pre.is_none_or(|pre| pre.split('.').all(is_plain))
        && build.is_none_or(|build| build == "incompatible")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_of_a_go_mod() {
        for (text, wanted) in [
            ("module example.com/a\n\ngo 1.21\n", Some("example.com/a")),
            ("// comment\nmodule \"example.com/a\" // why\n", Some("example.com/a")),
            ("module (\n\texample.com/a\n)\n", Some("example.com/a")),
            ("go 1.21\nrequire example.com/b v1.0.0\n", None),
            ("module", None),
        ] {
            assert_eq!(named(text).as_deref(), wanted, "{text}");
        }
        assert!(go_mod(&b"<html>"[..]).is_err() && go_mod(&b"\xff"[..]).is_err());
    }

    #[test]
    fn paths_say_major_versions() {
        for (module, version) in [
            ("example.com/a", "v0.1.0"),
            ("example.com/a", "v1.2.3"),
            ("example.com/a", "v2.0.0+incompatible"),
            ("example.com/a/v2", "v2.0.0"),
            ("gopkg.in/yaml.v1", "v1.0.0"),
            ("example.com/v1", "v1.0.0"),
        ] {
            assert_eq!(go_major(module, version), Ok(()), "{module} {version}");
        }
        for (module, version) in [
            ("example.com/a", "v2.0.0"),
            ("example.com/a", "v1.0.0+incompatible"),
            ("example.com/a/v2", "v1.0.0"),
            ("example.com/a/v2", "v2.0.0+incompatible"),
            ("gopkg.in/yaml.v2", "v3.0.0"),
        ] {
            assert!(go_major(module, version).is_err(), "{module} {version}");
        }
    }

    #[test]
    fn versions_of_go_are_whole() {
        for version in ["v1.2.3", "v2.0.0+incompatible", "v1.0.0-rc.1", "v0.0.0-20230714214113-ca9018fc6e4b"] {
            assert!(is_go_version(version), "{version}");
        }
        for other in
            ["1.2.3", "v1.2", "v1", "v01.2.3", "v1.2.3+build", "v1.2.3-01", "master", "v1.2.3-", "v1.2.x", "v1.2.3-a/b"]
        {
            assert!(!is_go_version(other), "{other}");
        }
    }

    #[test]
    fn upper_case_is_escaped() {
        assert_eq!(go_escaped("github.com/Azure/SDK"), "github.com/!azure/!s!d!k");
    }
}
