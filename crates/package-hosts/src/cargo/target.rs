//! What paths of the registry mean.

use axum::http::Method;
use bowline_libraries::Language;

/// Bytes of a version.
const VERSION: usize = 128;

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Where files and changes are.
    Config,
    /// The versions of a crate, by its name in lower case.
    Index { name: String },
    /// Where new versions are sent.
    New,
    /// The archive of a version.
    File { name: String, version: String },
    /// A version that is deleted.
    Version { name: String, version: String },
    /// The mark of a version as one that new lock files pass over.
    Yank { name: String, version: String, is_set: bool },
    /// What other registries have and this one does not, with what to do instead.
    Missing(&'static str),
    /// No path of the protocol.
    Elsewhere,
}

const NO_SEARCH: &str = "crates cannot be searched here: name the crate that you want";
const NO_OWNERS: &str = "crates have no owners here: identities with the role libraries.cargo.push at the group publish and yank its crates";

impl Target {
    /// The verbs that are possible.
    pub(super) fn verbs(&self) -> &'static str {
        match self {
            Target::New | Target::Yank { is_set: false, .. } => "PUT",
            Target::Version { .. } | Target::Yank { is_set: true, .. } => "DELETE",
            _ => "GET, HEAD",
        }
    }
}

/// Reads the parts of a path.
pub(super) fn of_parts(parts: &[&str]) -> Target {
    match *parts {
        ["config.json"] => Target::Config,
        ["api", "v1", "crates", "new"] => Target::New,
        ["api", "v1", "crates"] => Target::Missing(NO_SEARCH),
        ["api", "v1", "crates", _, "owners"] => Target::Missing(NO_OWNERS),
        ["api", "v1", "crates", name, version, ref rest @ ..] => {
            of_version(name, version, rest).unwrap_or(Target::Elsewhere)
        }
        [ref directory @ .., name] => index(directory, name).unwrap_or(Target::Elsewhere),
        [] => Target::Elsewhere,
    }
}

fn of_version(name: &str, version: &str, rest: &[&str]) -> Option<Target> {
    if Language::Cargo.validate_name(name).is_err() || !is_version(version) {
        return None;
    }
    let (name, version) = (name.to_owned(), version.to_owned());
    Some(match rest {
        [] => Target::Version { name, version },
        ["download"] => Target::File { name, version },
        ["yank"] => Target::Yank { name, version, is_set: true },
        ["unyank"] => Target::Yank { name, version, is_set: false },
        _ => return None,
    })
}

/// Whether a text is a whole version, with three numbers.
pub(super) fn is_version(text: &str) -> bool {
    text.len() <= VERSION && semver::Version::parse(text).is_ok()
}

/// The index of a crate, which lies in directories of the beginning of its name.
fn index(directory: &[&str], name: &str) -> Option<Target> {
    let is_name = Language::Cargo.validate_name(name).is_ok() && Language::Cargo.normalized(name) == name;
    (is_name && index_path(name) == [directory, &[name]].concat().join("/"))
        .then(|| Target::Index { name: name.to_owned() })
}

/// Where the index of a crate lies, by its name in lower case.
pub(super) fn index_path(name: &str) -> String {
    match name.len() {
        0..=2 => format!("{}/{name}", name.len()),
        3 => format!("3/{}/{name}", &name[..1]),
        _ => format!("{}/{}/{name}", &name[..2], &name[2..4]),
    }
}

/// Whether clients show a refusal as a list of errors: those of changes, and not those of indexes and files.
pub(super) fn has_errors(path: &str) -> bool {
    path.contains("/api/v1/") && !path.ends_with("/download")
}

/// What a request is called in the access log and in the counters.
pub(super) fn name(verb: &Method, path: &str) -> &'static str {
    let last = path.rsplit('/').next().unwrap_or_default();
    match (verb.as_str(), last, path.contains("/api/v1/")) {
        ("GET" | "HEAD", "config.json", false) => "packages.cargo.config",
        ("GET" | "HEAD", _, false) => "packages.cargo.index",
        ("GET", "download", true) => "packages.cargo.file.get",
        ("HEAD", "download", true) => "packages.cargo.file.head",
        ("PUT", "new", true) => "packages.cargo.publish",
        ("DELETE", "yank", true) | ("PUT", "unyank", true) => "packages.cargo.yank",
        ("DELETE", _, true) => "packages.cargo.delete",
        _ => "packages.cargo.other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::parse;

    #[test]
    fn paths_lead_to_targets_at_groups() {
        let index = |name: &str| Target::Index { name: name.into() };
        let (name, version) = ("Foo_bar".to_owned(), "1.0.0+b".to_owned());
        for (path, scope, target) in [
            ("/config.json", None, Target::Config),
            ("/~acme:web/config.json", Some("acme:web"), Target::Config),
            ("/1/a", None, index("a")),
            ("/2/ab", None, index("ab")),
            ("/3/a/abc", None, index("abc")),
            ("/~acme/se/rd/serde_json", Some("acme"), index("serde_json")),
            ("/api/v1/crates/new", None, Target::New),
            ("/api/v1/crates", None, Target::Missing(NO_SEARCH)),
            ("/api/v1/crates/a/owners", None, Target::Missing(NO_OWNERS)),
            (
                "/api/v1/crates/Foo_bar/1.0.0+b/download",
                None,
                Target::File { name: name.clone(), version: version.clone() },
            ),
            (
                "/api/v1/crates/Foo_bar/1.0.0%2Bb/yank",
                None,
                Target::Yank { name: name.clone(), version: version.clone(), is_set: true },
            ),
            (
                "/api/v1/crates/Foo_bar/1.0.0+b/unyank",
                None,
                Target::Yank { name: name.clone(), version: version.clone(), is_set: false },
            ),
            ("/api/v1/crates/Foo_bar/1.0.0+b", None, Target::Version { name, version }),
        ] {
            assert_eq!(parse::<Target>(path).expect(path), (scope.map(str::to_owned), target), "{path}");
        }
    }

    #[test]
    fn other_paths_lead_nowhere() {
        for path in [
            "",
            "/",
            "/a",
            "/2/a",
            "/se/rd/Serde",
            "/se/re/serde",
            "/3/b/abc",
            "/se/rd/serde/",
            "/..%2F/se/serde",
            "/api/v1/crates/a",
            "/api/v1/crates/a/1.0/download",
            "/api/v1/crates/a/1.0.0/other",
            "/api/v1/crates/a.b/1.0.0/download",
            "/api/v1/me",
        ] {
            assert_eq!(parse::<Target>(path).expect("a path").1, Target::Elsewhere, "{path}");
        }
    }

    #[test]
    fn requests_have_few_names() {
        for (verb, path, wanted) in [
            ("GET", "/cargo/config.json", "packages.cargo.config"),
            ("GET", "/cargo/se/rd/serde", "packages.cargo.index"),
            ("GET", "/cargo/api/v1/crates/a/1.0.0/download", "packages.cargo.file.get"),
            ("HEAD", "/cargo/api/v1/crates/a/1.0.0/download", "packages.cargo.file.head"),
            ("PUT", "/cargo/api/v1/crates/new", "packages.cargo.publish"),
            ("DELETE", "/cargo/api/v1/crates/a/1.0.0/yank", "packages.cargo.yank"),
            ("PUT", "/cargo/api/v1/crates/a/1.0.0/unyank", "packages.cargo.yank"),
            ("DELETE", "/cargo/api/v1/crates/a/1.0.0", "packages.cargo.delete"),
            ("GET", "/cargo/api/v1/crates", "packages.cargo.other"),
        ] {
            assert_eq!(name(&verb.parse().expect("a method"), path), wanted, "{verb} {path}");
        }
    }
}
