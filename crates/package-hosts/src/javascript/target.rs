//! Paths of the registry, below its word.

use axum::http::Method;
use bowline_libraries::Language;

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Base,
    Ping,
    Whoami,
    /// The document of a package; with the revision that a client has read it at.
    Package {
        name: String,
        revision: Option<String>,
    },
    /// One version, by itself or by a tag.
    Version {
        name: String,
        version: String,
    },
    /// A file of a package; with the revision that a client has read the package at.
    File {
        name: String,
        file: String,
        revision: Option<String>,
    },
    Tags {
        name: String,
    },
    Tag {
        name: String,
        tag: String,
    },
    /// What is known of versions, by package or as a report of a tree.
    Audit {
        is_report: bool,
    },
    /// The keys that signatures of versions are verified with.
    Keys,
    /// What is attested of a version.
    Attestations {
        name: String,
        version: String,
    },
    /// What other registries have and this one does not, with what to do instead.
    Missing(&'static str),
}

const NO_SEARCH: &str = "packages cannot be searched here: name the package that you want";
const NO_LOGIN: &str =
    "there is no sign-in by user name here: `bowline libraries configure npm` says how clients get a token";

impl Target {
    /// The verbs that are possible.
    pub(super) fn verbs(&self) -> &'static str {
        match self {
            Target::Package { revision: None, .. } => "GET, HEAD, PUT",
            Target::Package { revision: Some(_), .. } => "PUT, DELETE",
            Target::File { revision: Some(_), .. } => "DELETE",
            Target::Tag { .. } => "PUT, POST, DELETE",
            Target::Audit { .. } => "POST",
            Target::Base
            | Target::Ping
            | Target::Whoami
            | Target::Missing(_)
            | Target::Keys
            | Target::Attestations { .. }
            | Target::Version { .. }
            | Target::Tags { .. }
            | Target::File { revision: None, .. } => "GET, HEAD",
        }
    }
}

/// Reads the parts of a path. The slash of a scope is one of them, or escaped.
pub(super) fn of_parts(parts: &[&str]) -> Option<Target> {
    let parts = parts.strip_suffix(&[""]).unwrap_or(parts);
    match *parts {
        [] => return Some(Target::Base),
        ["-", "ping"] => return Some(Target::Ping),
        ["-", "whoami"] => return Some(Target::Whoami),
        ["-", "npm", "v1", "security", "advisories", "bulk"] => return Some(Target::Audit { is_report: false }),
        ["-", "npm", "v1", "security", "audits"] | ["-", "npm", "v1", "security", "audits", "quick"] => {
            return Some(Target::Audit { is_report: true });
        }
        ["-", "npm", "v1", "keys"] => return Some(Target::Keys),
        ["-", "v1", "search"] => return Some(Target::Missing(NO_SEARCH)),
        ["-", "v1", "login"] | ["-", "user", ..] => return Some(Target::Missing(NO_LOGIN)),
        _ => {}
    }
    if let Some(parts) = parts.strip_prefix(&["-", "npm", "v1", "attestations"]) {
        return attested(parts);
    }
    if let Some(parts) = parts.strip_prefix(&["-", "package"]) {
        let (name, rest) = package(parts)?;
        return match *rest {
            ["dist-tags"] => Some(Target::Tags { name }),
            ["dist-tags", tag] => Some(Target::Tag { name, tag: tag.into() }),
            _ => None,
        };
    }
    let (name, rest) = package(parts)?;
    Some(match *rest {
        [] => Target::Package { name, revision: None },
        ["-rev", revision] => Target::Package { name, revision: Some(revision.into()) },
        ["-", file] => Target::File { name, file: file.into(), revision: None },
        ["-", file, "-rev", revision] => Target::File { name, file: file.into(), revision: Some(revision.into()) },
        [version] => Target::Version { name, version: version.into() },
        _ => return None,
    })
}

/// The version whose statements some parts name, such as `@acme/app@1.0.0`.
fn attested(parts: &[&str]) -> Option<Target> {
    let (last, before) = parts.split_last()?;
    let (last, version) = last.rsplit_once('@').filter(|(last, version)| !last.is_empty() && !version.is_empty())?;
    let parts: Vec<&str> = before.iter().copied().chain([last]).collect();
    let (name, rest) = package(&parts)?;
    rest.is_empty().then(|| Target::Attestations { name, version: version.into() })
}

/// The name of a package that some parts begin with, and the parts after it.
fn package<'a>(parts: &'a [&str]) -> Option<(String, &'a [&'a str])> {
    let (name, rest) = match parts {
        [scope, name, rest @ ..] if scope.starts_with('@') => (format!("{scope}/{name}"), rest),
        [name, rest @ ..] => ((*name).to_owned(), rest),
        [] => return None,
    };
    let is_name = name != "-" && Language::JavaScript.validate_name(&name).is_ok();
    is_name.then_some((name, rest))
}

/// What a request is called in the access log and in the counters.
pub(super) fn name(verb: &Method, path: &str) -> &'static str {
    let mut from_end = path.trim_end_matches('/').rsplit('/');
    let [last, before, third] = std::array::from_fn(|_| from_end.next().unwrap_or_default());
    match (third, before, last, verb.as_str()) {
        (_, "attestations", _, "GET" | "HEAD") | ("attestations", _, _, "GET" | "HEAD") => {
            "packages.javascript.attestations"
        }
        ("npm", "v1", "keys", "GET" | "HEAD") => "packages.javascript.keys",
        (_, _, "bulk" | "audits" | "quick", "POST") => "packages.javascript.audit",
        (_, "-", "ping" | "whoami", "GET" | "HEAD") => "packages.javascript.account",
        (_, "-", _, "GET") => "packages.javascript.file.get",
        (_, "-", _, "HEAD") => "packages.javascript.file.head",
        (_, _, "dist-tags", "GET" | "HEAD") => "packages.javascript.tags",
        (_, "dist-tags", _, _) => "packages.javascript.tag",
        (_, "-rev", _, _) => "packages.javascript.unpublish",
        (_, _, _, "GET" | "HEAD") => "packages.javascript.document",
        (_, _, _, "PUT") => "packages.javascript.put",
        _ => "packages.javascript.other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::parse;

    fn package(name: &str, revision: Option<&str>) -> Target {
        Target::Package { name: name.into(), revision: revision.map(str::to_owned) }
    }

    #[test]
    fn paths_lead_to_targets_at_groups() {
        let file = |name: &str, revision: Option<&str>| Target::File {
            name: name.into(),
            file: "b-1.0.0.tgz".into(),
            revision: revision.map(str::to_owned),
        };
        let attestations = |name: &str| Target::Attestations { name: name.into(), version: "1.0.0".into() };
        for (path, scope, target) in [
            ("", None, Target::Base),
            ("/~acme:web/", Some("acme:web"), Target::Base),
            ("/-/ping", None, Target::Ping),
            ("/-/whoami", None, Target::Whoami),
            ("/-/npm/v1/security/advisories/bulk", None, Target::Audit { is_report: false }),
            ("/~acme/-/npm/v1/security/audits/quick", Some("acme"), Target::Audit { is_report: true }),
            ("/-/npm/v1/keys", None, Target::Keys),
            ("/~acme/-/npm/v1/keys", Some("acme"), Target::Keys),
            ("/-/npm/v1/attestations/b@1.0.0", None, attestations("b")),
            ("/~acme/-/npm/v1/attestations/@a%2fb@1.0.0", Some("acme"), attestations("@a/b")),
            ("/-/npm/v1/attestations/@a/b@1.0.0", None, attestations("@a/b")),
            ("/-/v1/search", None, Target::Missing(NO_SEARCH)),
            ("/-/user/org.couchdb.user:a", None, Target::Missing(NO_LOGIN)),
            ("/b", None, package("b", None)),
            ("/@a/b", None, package("@a/b", None)),
            ("/@a%2fb", None, package("@a/b", None)),
            ("/%40a%2Fb", None, package("@a/b", None)),
            ("/~acme/@a%2Fb", Some("acme"), package("@a/b", None)),
            ("/@a%2fb/-rev/1-x", None, package("@a/b", Some("1-x"))),
            ("/@a/b/1.0.0", None, Target::Version { name: "@a/b".into(), version: "1.0.0".into() }),
            ("/b/latest", None, Target::Version { name: "b".into(), version: "latest".into() }),
            ("/b/-/b-1.0.0.tgz", None, file("b", None)),
            ("/@a/b/-/b-1.0.0.tgz/-rev/2", None, file("@a/b", Some("2"))),
            ("/-/package/@a%2fb/dist-tags", None, Target::Tags { name: "@a/b".into() }),
            ("/-/package/b/dist-tags/next", None, Target::Tag { name: "b".into(), tag: "next".into() }),
        ] {
            assert_eq!(parse::<Target>(path).expect(path), (scope.map(str::to_owned), target), "{path}");
        }
    }

    #[test]
    fn other_paths_lead_nowhere() {
        for path in [
            "/-",
            "/-/v1/other",
            "/-/npm/v1/attestations/b",
            "/-/npm/v1/attestations/@a/b",
            "/@a",
            "/b/-/c/d",
            "/../b",
            "/b//c",
            "/-/package/b",
            "/%ff",
            "/a b",
        ] {
            let found = parse::<Target>(path);
            assert!(found.is_err(), "{path}: {found:?}");
        }
    }

    #[test]
    fn requests_have_few_names() {
        for (verb, path, wanted) in [
            ("GET", "/libraries/javascript/-/ping", "packages.javascript.account"),
            ("GET", "/javascript/@a%2fb", "packages.javascript.document"),
            ("GET", "/javascript/~a/@a/b/1.0.0", "packages.javascript.document"),
            ("GET", "/javascript/b/-/b-1.0.0.tgz", "packages.javascript.file.get"),
            ("HEAD", "/javascript/b/-/b-1.0.0.tgz", "packages.javascript.file.head"),
            ("PUT", "/javascript/b", "packages.javascript.put"),
            ("PUT", "/javascript/b/-rev/1", "packages.javascript.unpublish"),
            ("PUT", "/javascript/-/package/b/dist-tags/next", "packages.javascript.tag"),
            ("GET", "/javascript/-/package/b/dist-tags", "packages.javascript.tags"),
            ("POST", "/javascript/-/npm/v1/security/advisories/bulk", "packages.javascript.audit"),
            ("GET", "/javascript/-/npm/v1/attestations/b@1.0.0", "packages.javascript.attestations"),
            ("GET", "/javascript/-/npm/v1/attestations/@a/b@1.0.0", "packages.javascript.attestations"),
            ("GET", "/libraries/javascript/~a/-/npm/v1/keys", "packages.javascript.keys"),
            ("PATCH", "/javascript/b", "packages.javascript.other"),
        ] {
            assert_eq!(name(&verb.parse().expect("a method"), path), wanted, "{verb} {path}");
        }
    }
}
