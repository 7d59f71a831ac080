//! Paths of the index, below its word.

use axum::http::Method;
use bowline_libraries::Language;
use bowline_libraries::hosting::FileName;

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Base,
    /// The names of all projects.
    Projects,
    /// A project by its normalized name; canonical if the path has it in that spelling, and ends with a slash.
    Project {
        name: String,
        is_canonical: bool,
    },
    File {
        file: FileName,
        is_metadata: bool,
    },
    /// What is attested of a file; as one bundle of Sigstore, or whole.
    Provenance {
        project: String,
        version: String,
        file: String,
        is_bundle: bool,
    },
    Upload,
}

/// Reads the parts of a path.
pub(super) fn of_parts(parts: &[&str]) -> Option<Target> {
    Some(match *parts {
        [""] => Target::Base,
        ["simple"] | ["simple", ""] => Target::Projects,
        ["simple", name] | ["simple", name, ""] if is_name(name) => {
            let normalized = Language::Python.normalized(name);
            let is_canonical = normalized == name && parts.len() == 3;
            Target::Project { name: normalized, is_canonical }
        }
        ["files", sha256, name] => {
            let (name, is_metadata) = match name.strip_suffix(".metadata") {
                Some(name) => (name, true),
                None => (name, false),
            };
            Target::File { file: FileName { name: name.into(), digest: Some(format!("sha256:{sha256}")) }, is_metadata }
        }
        ["integrity", project, version, file, what @ ("provenance" | "bundle.json")] if is_name(project) => {
            let is_bundle = what == "bundle.json";
            Target::Provenance { project: project.into(), version: version.into(), file: file.into(), is_bundle }
        }
        ["legacy"] | ["legacy", ""] => Target::Upload,
        _ => return None,
    })
}

fn is_name(text: &str) -> bool {
    Language::Python.validate_name(text).is_ok()
}

/// What a request is called in the access log and in the counters: few names, whatever clients send.
pub(super) fn name(verb: &Method, path: &str) -> &'static str {
    let mut from_end = path.trim_end_matches('/').rsplit('/');
    let [last, before, third] = std::array::from_fn(|_| from_end.next().unwrap_or_default());
    match (third, before, last, verb.as_str()) {
        (_, _, "legacy", "POST") => "packages.python.upload",
        (_, _, "provenance" | "bundle.json", "GET" | "HEAD") => "packages.python.provenance",
        (_, _, "simple", "GET" | "HEAD") => "packages.python.projects",
        (_, "simple", _, "GET" | "HEAD") => "packages.python.project",
        ("files", _, _, "GET" | "HEAD") if path.ends_with(".metadata") => "packages.python.metadata",
        ("files", _, _, "GET") => "packages.python.file.get",
        ("files", _, _, "HEAD") => "packages.python.file.head",
        _ => "packages.python.other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::parse;

    fn project(name: &str, is_canonical: bool) -> Target {
        Target::Project { name: name.into(), is_canonical }
    }

    #[test]
    fn paths_lead_to_targets_at_groups() {
        let named = FileName { name: "a-1.whl".into(), digest: Some("sha256:ab".into()) };
        let file = |is_metadata| Target::File { file: named.clone(), is_metadata };
        let provenance = |is_bundle| {
            let (project, version, file) = ("foo".into(), "1.0".into(), "a-1.whl".into());
            Target::Provenance { project, version, file, is_bundle }
        };
        for (path, scope, target) in [
            ("", None, Target::Base),
            ("/", None, Target::Base),
            ("/~acme:web", Some("acme:web"), Target::Base),
            ("/simple/", None, Target::Projects),
            ("/~acme/simple/", Some("acme"), Target::Projects),
            ("/%7Eacme/simple/foo/", Some("acme"), project("foo", true)),
            ("/simple/foo", None, project("foo", false)),
            ("/simple/Foo._bar/", None, project("foo-bar", false)),
            ("/files/ab/a-1.whl", None, file(false)),
            ("/~acme/files/ab/a-1.whl.metadata", Some("acme"), file(true)),
            ("/integrity/foo/1.0/a-1.whl/provenance", None, provenance(false)),
            ("/~acme/integrity/foo/1.0/a-1.whl/bundle.json", Some("acme"), provenance(true)),
            ("/legacy/", None, Target::Upload),
        ] {
            assert_eq!(parse::<Target>(path).expect(path), (scope.map(str::to_owned), target), "{path}");
        }
    }

    #[test]
    fn other_paths_lead_nowhere() {
        for path in ["/simple/../legacy", "/simple/a/b/", "/simple/.a/", "/files/ab/", "/files/ab/c/d", "/%ff", "/pypi"]
        {
            let found = parse::<Target>(path);
            assert!(matches!(found, Err(_) | Ok((_, Target::File { .. }))), "{path}: {found:?}");
        }
        assert!(parse::<Target>("/simple/%2e%2e/").is_err());
    }

    #[test]
    fn requests_have_few_names() {
        for (verb, path, wanted) in [
            ("GET", "/libraries/python/simple/", "packages.python.projects"),
            ("GET", "/libraries/python/~a:b/simple/foo/", "packages.python.project"),
            ("GET", "/python/files/ab/a-1.whl", "packages.python.file.get"),
            ("HEAD", "/python/files/ab/a-1.whl", "packages.python.file.head"),
            ("GET", "/python/files/ab/a-1.whl.metadata", "packages.python.metadata"),
            ("GET", "/python/integrity/a/1/a-1.whl/provenance", "packages.python.provenance"),
            ("POST", "/python/legacy/", "packages.python.upload"),
            ("PUT", "/python/legacy/", "packages.python.other"),
            ("GET", "/python/x/y/z", "packages.python.other"),
        ] {
            assert_eq!(name(&verb.parse().expect("a method"), path), wanted, "{verb} {path}");
        }
    }
}
