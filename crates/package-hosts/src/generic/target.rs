//! What paths mean: a name, a version, and the path of a file. Names are strict: they become parts of package URLs and of addresses.

use axum::http::Method;
use bowline_libraries::Language;

/// Segments and bytes of the path of a file.
const SEGMENTS: usize = 16;
const PATH: usize = 512;

/// What an address means below its group.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The versions under a name.
    Name {
        name: String,
    },
    /// The files of a version.
    Version {
        name: String,
        version: String,
    },
    File {
        name: String,
        version: String,
        path: String,
    },
    /// A name, version or path that no file can have, and why.
    Wrong(String),
    Elsewhere,
}

impl Target {
    pub(super) fn verbs(&self) -> &'static str {
        match self {
            Target::File { .. } => "GET, HEAD, PUT",
            Target::Version { .. } => "GET, HEAD, DELETE",
            Target::Name { .. } | Target::Wrong(_) | Target::Elsewhere => "GET, HEAD",
        }
    }
}

/// Reads the parts of a path. A slash at the end of a directory is optional.
pub(super) fn of_parts(parts: &[&str]) -> Target {
    let target = match *parts {
        [] | [""] => return Target::Elsewhere,
        [name] | [name, ""] => named(name).map(|()| Target::Name { name: name.into() }),
        [name, version] | [name, version, ""] => {
            let checked = named(name).and_then(|()| versioned(version));
            checked.map(|()| Target::Version { name: name.into(), version: version.into() })
        }
        [name, version, ref path @ ..] => {
            let checked = named(name).and_then(|()| versioned(version)).and_then(|()| placed(path));
            checked.map(|()| Target::File { name: name.into(), version: version.into(), path: path.join("/") })
        }
    };
    target.unwrap_or_else(Target::Wrong)
}

fn named(name: &str) -> Result<(), String> {
    Language::Generic.validate_name(name).map_err(|wrong| format!("the name {name:?} {wrong}"))
}

/// What is wrong with a version, if anything.
pub(super) fn versioned(version: &str) -> Result<(), String> {
    // Versions have the signs of names.
    Language::Generic.validate_name(version).map_err(|wrong| format!("the version {version:?} {wrong}"))
}

fn placed(path: &[&str]) -> Result<(), String> {
    let length = path.iter().map(|segment| segment.len() + 1).sum::<usize>() - 1;
    if path.len() > SEGMENTS {
        return Err(format!("the path has {} segments, and {SEGMENTS} are possible", path.len()));
    }
    if length > PATH {
        return Err(format!("the path has {length} bytes, and {PATH} are possible"));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    match path.iter().find(|segment| matches!(**segment, "" | "." | "..") || !segment.bytes().all(is_plain)) {
        None => Ok(()),
        Some(&"") => Err("the path has an empty segment: leave out double slashes, and the slash at its end".into()),
        Some(segment @ (&"." | &"..")) => Err(format!("the path has the segment {segment:?}: write it without")),
        Some(segment) => {
            Err(format!("the path has the segment {segment:?}: only letters, digits, ., _, + and - are possible"))
        }
    }
}

/// What a request is called in the access log and in the counters.
pub(super) fn name(verb: &Method, path: &str) -> &'static str {
    let below = path.split_once("/files/").map_or("", |(_, below)| below);
    // Of a group, a name, a version and the path of a file.
    let is_file = below.trim_end_matches('/').split('/').count() > 3;
    match (verb.as_str(), is_file) {
        ("GET", true) => "packages.files.file.get",
        ("HEAD", true) => "packages.files.file.head",
        ("GET" | "HEAD", false) => "packages.files.list",
        ("PUT", true) => "packages.files.put",
        ("DELETE", false) => "packages.files.delete",
        _ => "packages.files.other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::parse;

    fn file(path: &str) -> Target {
        Target::File { name: "tool".into(), version: "1.0".into(), path: path.into() }
    }

    #[test]
    fn paths_lead_to_targets_at_groups() {
        let name = || Target::Name { name: "tool".into() };
        let version = || Target::Version { name: "tool".into(), version: "1.0".into() };
        for (path, scope, target) in [
            ("", None, Target::Elsewhere),
            ("/", None, Target::Elsewhere),
            ("/acme", Some("acme"), Target::Elsewhere),
            ("/~acme:web/", Some("acme:web"), Target::Elsewhere),
            ("/acme/tool", Some("acme"), name()),
            ("/~acme/tool/", Some("acme"), name()),
            ("/acme:web/tool/1.0", Some("acme:web"), version()),
            ("/~/tool/1.0/", None, version()),
            ("/acme@2026-11-01/tool/1.0/a", Some("acme@2026-11-01"), file("a")),
            ("/acme/tool/1.0/linux/amd64/_tool-1.0+x.tar.gz", Some("acme"), file("linux/amd64/_tool-1.0+x.tar.gz")),
            ("/acme/tool/1.0/a%2Fb%2b", Some("acme"), file("a/b+")),
        ] {
            assert_eq!(parse::<Target>(path).expect(path), (scope.map(str::to_owned), target), "{path}");
        }
        let longest = "a/".repeat(15) + &"b".repeat(482);
        assert_eq!(parse::<Target>(&format!("/acme/tool/1.0/{longest}")).expect("a path").1, file(&longest));
    }

    #[test]
    fn wrong_names_versions_and_paths_are_refused_with_what_is_wrong() {
        let (long, deep, wide) = ("a".repeat(129), "a/".repeat(17), "a".repeat(513));
        for (path, wanted) in [
            ("/acme/-tool/1.0/a".to_owned(), "the name \"-tool\" must be a letter or digit"),
            ("/acme//1.0/a".into(), "the name \"\" must be"),
            ("/acme/to%20ol".into(), "the name \"to ol\" must be"),
            (format!("/acme/{long}/"), "128 at most"),
            ("/acme/tool/1:0/".into(), "the version \"1:0\" must be"),
            ("/acme/tool/../a".into(), "the version \"..\" must be"),
            (format!("/acme/tool/{long}/a"), "128 at most"),
            ("/acme/tool/1.0/../a".into(), "the segment \"..\""),
            ("/acme/tool/1.0/a/./b".into(), "the segment \".\""),
            ("/acme/tool/1.0/a/%2e%2e/b".into(), "the segment \"..\""),
            ("/acme/tool/1.0/a//b".into(), "an empty segment"),
            ("/acme/tool/1.0/a/".into(), "an empty segment"),
            ("/acme/tool/1.0/a%20b".into(), "only letters, digits"),
            ("/acme/tool/1.0/a%5cb".into(), "only letters, digits"),
            ("/acme/tool/1.0/%C3%A9".into(), "only letters, digits"),
            (format!("/acme/tool/1.0/{deep}b"), "the path has 18 segments, and 16 are possible"),
            (format!("/acme/tool/1.0/{wide}"), "the path has 513 bytes, and 512 are possible"),
        ] {
            let Ok((_, Target::Wrong(sentence))) = parse::<Target>(&path) else { panic!("{path} is accepted") };
            assert!(sentence.contains(wanted), "{path}: {sentence}");
        }
    }

    #[test]
    fn requests_have_few_names() {
        for (verb, path, wanted) in [
            ("GET", "/libraries/files/acme/tool/", "packages.files.list"),
            ("HEAD", "/files/~acme/tool/1.0/", "packages.files.list"),
            ("GET", "/files/acme/tool/1.0/a/b", "packages.files.file.get"),
            ("HEAD", "/files/acme/tool/1.0/a", "packages.files.file.head"),
            ("PUT", "/files/acme/tool/1.0/a", "packages.files.put"),
            ("DELETE", "/files/acme/tool/1.0", "packages.files.delete"),
            ("PUT", "/files/acme/tool/1.0/", "packages.files.other"),
            ("POST", "/files/acme/tool/1.0/a", "packages.files.other"),
        ] {
            assert_eq!(name(&verb.parse().expect("a method"), path), wanted, "{verb} {path}");
        }
    }
}
