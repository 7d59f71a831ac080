//! What paths of the module proxy mean.

use axum::http::Method;
use bowline_libraries::Language;
use bowline_libraries::hosting::GO_LATEST;

/// Bytes of the path of a module, of a query, and of what a database of checksums is asked for.
const MODULE: usize = 255;
const QUERY: usize = 128;
const CHECKSUMS: usize = 512;

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Base,
    /// The versions of a module.
    List {
        module: String,
    },
    /// What a version is, or another query leads to.
    Info {
        module: String,
        query: String,
    },
    /// A file of a version, such as `v1.0.0.zip`.
    File {
        module: String,
        version: String,
        kind: Kind,
    },
    /// What a database of checksums says, by its name and the path below that.
    Checksums {
        database: String,
        path: String,
    },
    /// No path of the protocol.
    Elsewhere,
}

/// The files of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What it requires, `go.mod`.
    Mod,
    /// All of its files, packed.
    Zip,
}

impl Kind {
    /// The name of a file of this kind.
    pub(super) fn name(self, version: &str) -> String {
        match self {
            Kind::Mod => format!("{version}.mod"),
            Kind::Zip => format!("{version}.zip"),
        }
    }
}

impl Target {
    /// The verbs that are possible.
    pub(super) fn verbs(&self) -> &'static str {
        match self {
            Target::File { kind: Kind::Zip, .. } => "GET, HEAD, PUT, DELETE",
            _ => "GET, HEAD",
        }
    }
}

/// Reads the parts of a path.
pub(super) fn of_parts(parts: &[&str]) -> Target {
    match parts {
        [] | [""] => Target::Base,
        ["sumdb", database, rest @ ..] => checksums(database, &rest.join("/")).unwrap_or(Target::Elsewhere),
        [module @ .., "@latest"] => info(module, GO_LATEST).unwrap_or(Target::Elsewhere),
        [module @ .., "@v", file] => of_file(module, file).unwrap_or(Target::Elsewhere),
        _ => Target::Elsewhere,
    }
}

fn of_file(module: &[&str], file: &str) -> Option<Target> {
    if file == "list" {
        return Some(Target::List { module: module_of(module)? });
    }
    let (stem, end) = file.rsplit_once('.')?;
    let kind = match end {
        "info" => return info(module, &plain(stem)?),
        "mod" => Kind::Mod,
        "zip" => Kind::Zip,
        _ => return None,
    };
    let version = plain(stem).filter(|version| version.len() <= QUERY && Language::Go.is_version(version))?;
    Some(Target::File { module: module_of(module)?, version, kind })
}

fn info(module: &[&str], query: &str) -> Option<Target> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+~".contains(&byte);
    let is_query = !query.is_empty() && query.len() <= QUERY && query.bytes().all(is_plain) && !query.starts_with('.');
    Some(Target::Info { module: module_of(module)?, query: query.to_owned() }).filter(|_| is_query)
}

fn module_of(parts: &[&str]) -> Option<String> {
    let module = plain(&parts.join("/"))?;
    (module.len() <= MODULE && Language::Go.validate_name(&module).is_ok()).then_some(module)
}

/// A text as it was before upper case was escaped; absent if it was not.
fn plain(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut is_upper = false;
    for c in text.chars() {
        match c {
            '!' if !is_upper => is_upper = true,
            'a'..='z' if is_upper => {
                plain.push(c.to_ascii_uppercase());
                is_upper = false;
            }
            'A'..='Z' => return None,
            _ if is_upper => return None,
            c => plain.push(c),
        }
    }
    (!is_upper).then_some(plain)
}

fn checksums(database: &str, path: &str) -> Option<Target> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+~!@/".contains(&byte);
    let is_host = Language::Go.validate_name(database).is_ok();
    let is_path =
        path.len() <= CHECKSUMS && path.bytes().all(is_plain) && path.split('/').all(|part| !part.starts_with('.'));
    let is_known = ["supported", "latest"].contains(&path) || path.starts_with("lookup/") || path.starts_with("tile/");
    let target = Target::Checksums { database: database.to_owned(), path: path.to_owned() };
    (is_host && is_path && is_known).then_some(target)
}

/// The module whose checksum is looked up; absent for other paths. An error if it is not the path of a module.
pub(super) fn looked_up(path: &str) -> Option<Result<String, ()>> {
    let (module, _) = path.strip_prefix("lookup/")?.split_once('@').unwrap_or((path, ""));
    Some(module_of(&[module]).ok_or(()))
}

/// What a request is called in the access log and in the counters.
pub(super) fn name(verb: &Method, path: &str) -> &'static str {
    let last = path.rsplit('/').next().unwrap_or_default();
    let end = last.rsplit('.').next().unwrap_or_default();
    match (verb.as_str(), last, end) {
        ("GET" | "HEAD", _, _) if path.contains("/sumdb/") => "packages.go.checksums",
        ("GET" | "HEAD", "list", _) => "packages.go.list",
        ("GET" | "HEAD", "@latest", _) | ("GET" | "HEAD", _, "info") => "packages.go.info",
        ("GET" | "HEAD", _, "mod") => "packages.go.mod",
        ("GET", _, "zip") => "packages.go.zip.get",
        ("HEAD", _, "zip") => "packages.go.zip.head",
        ("PUT", _, _) => "packages.go.put",
        ("DELETE", _, _) => "packages.go.delete",
        _ => "packages.go.other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::parse;

    #[test]
    fn paths_lead_to_targets_at_groups() {
        let module = || "github.com/Azure/sdk".to_owned();
        let file = |version: &str, kind| Target::File { module: module(), version: version.into(), kind };
        let info = |query: &str| Target::Info { module: module(), query: query.into() };
        let checksums = |path: &str| Target::Checksums { database: "sum.golang.org".into(), path: path.into() };
        for (path, scope, target) in [
            ("", None, Target::Base),
            ("/~acme:web/", Some("acme:web"), Target::Base),
            ("/github.com/!azure/sdk/@v/list", None, Target::List { module: module() }),
            ("/~acme/github.com/!azure/sdk/@latest", Some("acme"), info("latest")),
            ("/github.com/!azure/sdk/@v/v1.0.0.info", None, info("v1.0.0")),
            ("/github.com/!azure/sdk/@v/master.info", None, info("master")),
            ("/github.com/!azure/sdk/@v/v1.0.0-!r!c1.mod", None, file("v1.0.0-RC1", Kind::Mod)),
            ("/github.com/!azure/sdk/@v/v2.0.0+incompatible.zip", None, file("v2.0.0+incompatible", Kind::Zip)),
            ("/sumdb/sum.golang.org/supported", None, checksums("supported")),
            ("/sumdb/sum.golang.org/tile/8/0/x001/234", None, checksums("tile/8/0/x001/234")),
            (
                "/sumdb/sum.golang.org/lookup/github.com/!azure/sdk@v1.0.0",
                None,
                checksums("lookup/github.com/!azure/sdk@v1.0.0"),
            ),
        ] {
            assert_eq!(parse::<Target>(path).expect(path), (scope.map(str::to_owned), target), "{path}");
        }
    }

    #[test]
    fn other_paths_lead_nowhere() {
        for path in [
            "/github.com/Azure/sdk/@v/list",
            "/module/@v/list",
            "/@v/list",
            "/example.com/a/@v/v1.0.zip",
            "/example.com/a/@v/master.zip",
            "/example.com/a/@v/v1.0.0.ziphash",
            "/example.com/../a/@v/v1.0.0.zip",
            "/example.com/a!/@v/list",
            "/example.com/a/@v/.info",
            "/example.com/a/@v/a b.info",
            "/sumdb/sum.golang.org/other",
            "/sumdb/sum.golang.org/tile/../x",
            "/sumdb/../tile/1",
        ] {
            assert_eq!(parse::<Target>(path).expect("a path").1, Target::Elsewhere, "{path}");
        }
    }

    #[test]
    fn modules_are_read_out_of_lookups() {
        let of = |path| looked_up(path);
        assert_eq!(of("lookup/github.com/!azure/sdk@v1.0.0"), Some(Ok("github.com/Azure/sdk".into())));
        assert_eq!((of("latest"), of("tile/8/0/000")), (None, None));
        assert_eq!(of("lookup/NoModule@v1.0.0"), Some(Err(())));
    }

    #[test]
    fn requests_have_few_names() {
        for (verb, path, wanted) in [
            ("GET", "/go/a.b/c/@v/list", "packages.go.list"),
            ("GET", "/go/a.b/c/@latest", "packages.go.info"),
            ("GET", "/go/a.b/c/@v/v1.0.0.info", "packages.go.info"),
            ("GET", "/go/a.b/c/@v/v1.0.0.mod", "packages.go.mod"),
            ("GET", "/go/a.b/c/@v/v1.0.0.zip", "packages.go.zip.get"),
            ("HEAD", "/go/a.b/c/@v/v1.0.0.zip", "packages.go.zip.head"),
            ("PUT", "/go/a.b/c/@v/v1.0.0.zip", "packages.go.put"),
            ("DELETE", "/go/a.b/c/@v/v1.0.0.zip", "packages.go.delete"),
            ("GET", "/go/sumdb/a.b/latest", "packages.go.checksums"),
            ("POST", "/go/a.b/c/@v/list", "packages.go.other"),
        ] {
            assert_eq!(name(&verb.parse().expect("a method"), path), wanted, "{verb} {path}");
        }
    }
}
