//! Paths of the repository, below its word.

use axum::http::Method;
use bowline_libraries::Language;
use bowline_libraries::hosting::SNAPSHOT;

/// Name of the lists of versions, builds and plugins.
pub(super) const LIST: &str = "maven-metadata.xml";
/// Bytes of a part of a path.
const PART: usize = 200;

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Base,
    /// The list of a directory, by its parts, or its digest.
    List {
        directory: Vec<String>,
        checksum: Option<Checksum>,
    },
    /// A file by its package and its name below that, such as `1.0/library-1.0.jar`, or its digest.
    File {
        package: String,
        name: String,
        checksum: Option<Checksum>,
    },
    /// The directory of a version.
    Version {
        package: String,
        version: String,
    },
    /// No path of the layout.
    Elsewhere,
}

/// A digest that has an address of its own beside the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

const CHECKSUMS: [(&str, Checksum); 4] =
    [(".md5", Checksum::Md5), (".sha1", Checksum::Sha1), (".sha256", Checksum::Sha256), (".sha512", Checksum::Sha512)];

impl Checksum {
    /// Its name, as refusals have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Checksum::Md5 => "MD5",
            Checksum::Sha1 => "SHA-1",
            Checksum::Sha256 => "SHA-256",
            Checksum::Sha512 => "SHA-512",
        }
    }
}

impl Target {
    /// The verbs that are possible.
    pub(super) fn verbs(&self) -> &'static str {
        match self {
            Target::Version { .. } => "DELETE",
            Target::Base => "GET, HEAD",
            Target::List { .. } | Target::File { .. } | Target::Elsewhere => "GET, HEAD, PUT",
        }
    }
}

/// Reads the parts of a path.
pub(super) fn of_parts(parts: &[&str]) -> Target {
    let is_directory = parts.len() > 1 && parts.last() == Some(&"");
    let parts = if is_directory { &parts[..parts.len() - 1] } else { parts };
    match *parts {
        [] | [""] => Target::Base,
        _ if !parts.iter().all(|part| is_part(part)) => Target::Elsewhere,
        [ref group @ .., artifact, version] if is_directory && !group.is_empty() => {
            let package = format!("{}:{artifact}", group.join("."));
            if is_package(&package) { Target::Version { package, version: version.into() } } else { Target::Elsewhere }
        }
        [ref directory @ .., file] if !directory.is_empty() && !is_directory => {
            let (file, checksum) = split_checksum(file);
            if file == LIST {
                let directory = directory.iter().map(|part| (*part).to_owned()).collect();
                return Target::List { directory, checksum };
            }
            named(directory, file, checksum).unwrap_or(Target::Elsewhere)
        }
        _ => Target::Elsewhere,
    }
}

/// A file in the directory of a version. Its name begins with the artifact and the version, or a build of that.
fn named(directory: &[&str], file: &str, checksum: Option<Checksum>) -> Option<Target> {
    let [group @ .., artifact, version] = directory else { return None };
    let package = format!("{}:{artifact}", group.join("."));
    let base = version.strip_suffix(SNAPSHOT).unwrap_or(version);
    let rest = file.strip_prefix(artifact)?.strip_prefix('-')?.strip_prefix(base)?;
    let is_named = !group.is_empty() && rest.starts_with(['-', '.']) && is_package(&package);
    is_named.then(|| Target::File { package, name: format!("{version}/{file}"), checksum })
}

fn is_package(name: &str) -> bool {
    Language::Java.validate_name(name).is_ok()
}

/// Whether a part of a path is as those of repositories are; it stands in addresses of upstreams, too.
pub(super) fn is_part(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+~".contains(&byte);
    part.len() <= PART
        && !part.is_empty()
        && part.bytes().all(is_plain)
        && !part.starts_with('.')
        && !part.ends_with('.')
}

fn split_checksum(file: &str) -> (&str, Option<Checksum>) {
    for (end, checksum) in CHECKSUMS {
        if let Some(file) = file.strip_suffix(end) {
            return (file, Some(checksum));
        }
    }
    (file, None)
}

/// What a request is called in the access log and in the counters.
pub(super) fn name(verb: &Method, path: &str) -> &'static str {
    let last = path.rsplit('/').next().unwrap_or_default();
    let (file, checksum) = split_checksum(last);
    match (file == LIST, checksum.is_some(), verb.as_str()) {
        (_, _, "DELETE") => "packages.java.delete",
        (true, _, "GET" | "HEAD") => "packages.java.list",
        (false, true, "GET" | "HEAD") => "packages.java.checksum",
        (false, false, "GET") => "packages.java.file.get",
        (false, false, "HEAD") => "packages.java.file.head",
        (false, false, "PUT") => "packages.java.put",
        (_, _, "PUT") => "packages.java.put.beside",
        _ => "packages.java.other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::parse;

    #[test]
    fn paths_lead_to_targets_at_groups() {
        let file = |name: &str, checksum| Target::File { package: "org.a:b-c".into(), name: name.into(), checksum };
        let list = |directory: &[&str], checksum| Target::List {
            directory: directory.iter().map(|part| (*part).to_owned()).collect(),
            checksum,
        };
        let version = Target::Version { package: "org.a:b-c".into(), version: "1.0".into() };
        let snapshot = "2-SNAPSHOT/b-c-2-20260102.030405-1.jar";
        for (path, scope, target) in [
            ("", None, Target::Base),
            ("/~acme:web/", Some("acme:web"), Target::Base),
            ("/org/a/b-c/1.0/b-c-1.0.jar", None, file("1.0/b-c-1.0.jar", None)),
            ("/org/a/b-c/1.0/b-c-1.0-sources.jar.sha1", None, file("1.0/b-c-1.0-sources.jar", Some(Checksum::Sha1))),
            ("/~acme/org/a/b-c/1.0/b-c-1.0.pom.md5", Some("acme"), file("1.0/b-c-1.0.pom", Some(Checksum::Md5))),
            ("/org/a/b-c/1.0/b-c-1.0.jar.asc", None, file("1.0/b-c-1.0.jar.asc", None)),
            ("/org/a/b-c/2-SNAPSHOT/b-c-2-20260102.030405-1.jar", None, file(snapshot, None)),
            ("/org/a/b-c/2-SNAPSHOT/b-c-2-SNAPSHOT.jar", None, file("2-SNAPSHOT/b-c-2-SNAPSHOT.jar", None)),
            ("/org/a/b-c/maven-metadata.xml", None, list(&["org", "a", "b-c"], None)),
            ("/org/a/maven-metadata.xml.sha512", None, list(&["org", "a"], Some(Checksum::Sha512))),
            ("/org/a/b-c/1.0/", None, version),
        ] {
            assert_eq!(parse::<Target>(path).expect(path), (scope.map(str::to_owned), target), "{path}");
        }
    }

    #[test]
    fn other_paths_lead_nowhere() {
        for path in [
            "/.meta/prefixes.txt",
            "/archetype-catalog.xml",
            "/org/a/b/1.0/other-1.0.jar",
            "/org/a/b/1.0/b-1.1.jar",
            "/org/a/b/1.0/b-1.0",
            "/org/../b/1.0/b-1.0.jar",
            "/org//b/1.0/b-1.0.jar",
            "/b/1.0/b-1.0.jar",
            "/org/a b/1.0/a b-1.0.jar",
            "/org/a/b/%2e%2e/b-...jar",
            "/org/a/b:c/1.0/b:c-1.0.jar",
            "/org/a/",
        ] {
            let found = parse::<Target>(path).expect("a path").1;
            assert!(matches!(found, Target::Elsewhere | Target::Version { .. }), "{path}: {found:?}");
        }
        assert!(parse::<Target>("/%ff").is_err());
    }

    #[test]
    fn requests_have_few_names() {
        for (verb, path, wanted) in [
            ("GET", "/java/org/a/b/1/b-1.jar", "packages.java.file.get"),
            ("HEAD", "/java/org/a/b/1/b-1.jar", "packages.java.file.head"),
            ("GET", "/java/org/a/b/1/b-1.jar.sha1", "packages.java.checksum"),
            ("GET", "/java/org/a/b/maven-metadata.xml.sha1", "packages.java.list"),
            ("PUT", "/java/org/a/b/1/b-1.jar", "packages.java.put"),
            ("PUT", "/java/org/a/b/1/b-1.jar.md5", "packages.java.put.beside"),
            ("DELETE", "/java/org/a/b/1/", "packages.java.delete"),
            ("POST", "/java/org/a/b/1/", "packages.java.other"),
        ] {
            assert_eq!(name(&verb.parse().expect("a method"), path), wanted, "{verb} {path}");
        }
    }
}
