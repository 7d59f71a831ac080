//! Lock files of package managers: which versions they pin, and what they take from elsewhere than an index.

use std::collections::BTreeSet;

use bowline_formats::purl::PackageUrl;
use serde_json::Value;
use toml::Table;

use super::{Ecosystem, javascript_lock_files};

/// What a lock file pins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LockFile {
    pub(super) ecosystem: Ecosystem,
    /// Versions of packages of an index, as package URLs.
    pub(super) versions: BTreeSet<String>,
    /// What no index supplies, or is not pinned: names, with how they are there.
    pub(super) others: BTreeSet<String>,
}

/// Keys under which lock files of Python say that a package does not come from an index.
const ELSEWHERE: [&str; 9] = ["git", "vcs", "url", "archive", "path", "file", "directory", "editable", "virtual"];

/// Reads a lock file, whose form follows from its name.
///
/// # Errors
/// No lock file has such a name, or it cannot be read; one sentence that begins after the name of the file.
pub(super) fn read(name: &str, text: &str) -> Result<LockFile, String> {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match name {
        "uv.lock" | "poetry.lock" | "pdm.lock" => python(text, "package"),
        "package-lock.json" | "npm-shrinkwrap.json" => npm(text),
        "pnpm-lock.yaml" => javascript_lock_files::pnpm(text),
        "yarn.lock" => javascript_lock_files::yarn(text),
        "bun.lock" => javascript_lock_files::bun(text),
        "gradle.lockfile" | "buildscript-gradle.lockfile" => Ok(gradle(text)),
        "go.sum" | "go.work.sum" => Ok(go(text)),
        "Cargo.lock" => cargo(text),
        _ if name.starts_with("pylock.") && extension == "toml" => python(text, "packages"),
        _ if extension == "txt" => Ok(requirements(text)),
        _ => Err("is no lock file by its name: uv.lock, poetry.lock, pdm.lock, pylock.toml, requirements.txt, \
                  package-lock.json, npm-shrinkwrap.json, pnpm-lock.yaml, yarn.lock, bun.lock, gradle.lockfile, go.sum or \
                  Cargo.lock"
            .into()),
    }
}

impl LockFile {
    pub(super) fn new(ecosystem: Ecosystem) -> LockFile {
        LockFile { ecosystem, versions: BTreeSet::new(), others: BTreeSet::new() }
    }

    /// Adds a version of a package of an index.
    pub(super) fn pin(&mut self, kind: &str, name: &str, version: &str) {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-+!_".contains(&byte);
        if name.trim_matches('/').is_empty() || version.is_empty() || !version.bytes().all(is_plain) {
            return self.leave_out(name, version);
        }
        let (scope, name) = name.rsplit_once('/').map_or((None, name), |(scope, name)| (Some(scope), name));
        let purl = PackageUrl {
            kind: kind.into(),
            namespace: scope.iter().flat_map(|scope| scope.split('/')).map(String::from).collect(),
            name: name.into(),
            version: version.into(),
            ..PackageUrl::default()
        };
        self.versions.insert(purl.normalized().to_string());
    }

    /// Adds what no index supplies, and how it is there.
    pub(super) fn leave_out(&mut self, name: &str, how: &str) {
        // Such files come from anyone who proposes a change, and this is shown in a terminal.
        self.others.insert(format!("{name} ({how})").replace(char::is_control, " "));
    }
}

/// Lines of group, artifact and version, with the configurations that have them.
fn gradle(text: &str) -> LockFile {
    let mut file = LockFile::new(Ecosystem::Java);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines.filter(|line| !line.starts_with("empty=")) {
        let coordinates = line.split('=').next().unwrap_or_default();
        match coordinates.split(':').collect::<Vec<_>>()[..] {
            [group, artifact, version] => file.pin("maven", &format!("{group}/{artifact}"), version),
            _ => file.leave_out(line, "not group:artifact:version"),
        }
    }
    file
}

/// Lines of module, version and digest; a version of which the `go.mod` alone is read is not installed.
fn go(text: &str) -> LockFile {
    let mut file = LockFile::new(Ecosystem::Go);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            [_, version, _] if version.ends_with("/go.mod") => {}
            [module, version, _] => file.pin("golang", module, version),
            _ => file.leave_out(line, "not module, version and digest"),
        }
    }
    file
}

/// Packages with their sources. Those of the workspace have none, nor do those of other directories.
fn cargo(text: &str) -> Result<LockFile, String> {
    let mut file = LockFile::new(Ecosystem::Cargo);
    for package in packages(text, "package")? {
        let member = |name: &str| package.get(name).and_then(toml::Value::as_str);
        let name = member("name").ok_or("has a package without a name")?;
        let Some(source) = member("source") else { continue };
        if source.starts_with("registry+") || source.starts_with("sparse+") {
            file.pin("cargo", name, member("version").unwrap_or_default());
        } else {
            file.leave_out(name, source);
        }
    }
    Ok(file)
}

/// The packages of a lock file in TOML, which are a list of this name.
fn packages(text: &str, list: &str) -> Result<Vec<Table>, String> {
    let mut document: Table = text.parse().map_err(|error| format!("is no TOML: {error}"))?;
    let Some(toml::Value::Array(packages)) = document.remove(list) else {
        return Err(format!("has no list {list}, so it is no lock file"));
    };
    let table = |package: toml::Value| match package {
        toml::Value::Table(package) => Some(package),
        _ => None,
    };
    Ok(packages.into_iter().filter_map(table).collect())
}

fn python(text: &str, list: &str) -> Result<LockFile, String> {
    let mut file = LockFile::new(Ecosystem::Python);
    for package in packages(text, list)? {
        let member = |name: &str| package.get(name).and_then(toml::Value::as_str);
        let name = member("name").ok_or("has a package without a name")?;
        if is_project(&package) {
            continue;
        }
        match (elsewhere(&package), member("version")) {
            (Some(how), _) => file.leave_out(name, how),
            (None, Some(version)) => file.pin("pypi", name, version),
            (None, None) => file.leave_out(name, "no version"),
        }
    }
    Ok(file)
}

/// How a package is there that does not come from an index.
fn elsewhere(package: &Table) -> Option<&str> {
    let source = package.get("source").and_then(toml::Value::as_table);
    // Poetry names the kind of source, and calls another index legacy.
    if let Some(kind) = source.and_then(|source| source.get("type")).and_then(toml::Value::as_str) {
        return ELSEWHERE.into_iter().find(|how| *how == kind);
    }
    ELSEWHERE
        .into_iter()
        .find(|how| package.contains_key(*how) || source.is_some_and(|source| source.contains_key(*how)))
}

/// Whether it is the project itself whose packages are locked.
fn is_project(package: &Table) -> bool {
    let source = package.get("source").and_then(toml::Value::as_table).unwrap_or(package);
    ["editable", "virtual"].iter().any(|how| source.get(*how).and_then(toml::Value::as_str) == Some("."))
}

fn requirements(text: &str) -> LockFile {
    let mut file = LockFile::new(Ecosystem::Python);
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").lines() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        let is_editable = line.starts_with("-e") || line.starts_with("--editable");
        if line.is_empty() || line.starts_with('#') || (line.starts_with('-') && !is_editable) {
            continue;
        }
        let requirement = line.split(';').next().unwrap_or_default();
        let words = requirement.split_whitespace().take_while(|word| !word.starts_with("--hash")).collect::<String>();
        match words.split_once("==") {
            Some((name, version)) if !is_editable && !name.contains('@') => {
                let name = name.split('[').next().unwrap_or_default();
                file.pin("pypi", name, version.trim_start_matches('='));
            }
            _ => file.leave_out(requirement.trim(), "not pinned"),
        }
    }
    file
}

fn npm(text: &str) -> Result<LockFile, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    let mut file = LockFile::new(Ecosystem::JavaScript);
    if let Some(packages) = document["packages"].as_object() {
        for (path, package) in packages {
            // Others are the project itself and its workspaces.
            let Some((_, name)) = path.rsplit_once("node_modules/") else { continue };
            add_npm(&mut file, package["name"].as_str().unwrap_or(name), package);
        }
    } else if let Some(dependencies) = document.get("dependencies") {
        add_old_npm(&mut file, dependencies);
    } else {
        return Err("has neither packages nor dependencies, so it is no lock file".into());
    }
    Ok(file)
}

fn add_npm(file: &mut LockFile, name: &str, package: &Value) {
    let resolved = package["resolved"].as_str().unwrap_or_default();
    match package["version"].as_str() {
        _ if package["link"] == true => {}
        Some(version) if resolved.is_empty() || resolved.starts_with("http") => file.pin("npm", name, version),
        _ => file.leave_out(name, resolved),
    }
}

/// Of a lock file by npm 6 and older, where dependencies have dependencies.
fn add_old_npm(file: &mut LockFile, dependencies: &Value) {
    let mut waiting = vec![dependencies];
    while let Some(dependencies) = waiting.pop() {
        for (name, package) in dependencies.as_object().into_iter().flatten() {
            let version = package["version"].as_str().unwrap_or_default();
            if version.starts_with(|first: char| first.is_ascii_digit()) {
                file.pin("npm", name, version);
            } else {
                file.leave_out(name, version);
            }
            waiting.extend(package.get("dependencies"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(name: &str, text: &str) -> (Vec<String>, Vec<String>) {
        let file = read(name, text).expect(name);
        (file.versions.into_iter().collect(), file.others.into_iter().collect())
    }

    #[test]
    fn lock_files_of_python() {
        let uv = "version = 1\n[[package]]\nname = \"app\"\nversion = \"1\"\nsource = { editable = \".\" }\n[[package]]\nname = \
                  \"Foo_Bar\"\nversion = \"1.0+local\"\nsource = { registry = \"https://h/simple\" }\n[[package]]\nname = \
                  \"forked\"\nversion = \"2\"\nsource = { git = \"https://h/x\" }\n";
        let (versions, others) = read_all("uv.lock", uv);
        assert_eq!((versions, others), (vec!["pkg:pypi/foo-bar@1.0%2Blocal".into()], vec!["forked (git)".into()]));
        let poetry = "[[package]]\nname = \"a\"\nversion = \"1\"\n[package.source]\ntype = \"legacy\"\nurl = \
                      \"https://h/simple\"\n[[package]]\nname = \"b\"\nversion = \"2\"\n[package.source]\ntype = \"url\"\nurl \
                      = \"https://h/b.whl\"\n";
        assert_eq!(read_all("poetry.lock", poetry), (vec!["pkg:pypi/a@1".into()], vec!["b (url)".into()]));
        let pylock = "lock-version = \"1.0\"\n[[packages]]\nname = \"a\"\nversion = \"1\"\n[[packages]]\nname = \"b\"\n\
                      directory = { path = \"../b\" }\n[[packages]]\nname = \"c\"\n";
        let others = vec!["b (directory)".into(), "c (no version)".into()];
        assert_eq!(read_all("pylock.toml", pylock), (vec!["pkg:pypi/a@1".into()], others));
    }

    #[test]
    fn requirements_of_pip() {
        let text = "# made by a tool\n--index-url https://h/simple\nFoo[extra]==1.0 ; python_version > \"3\" \\\n    \
                    --hash=sha256:ab \\\n    --hash=sha256:cd\nbar === 2.0  # why\nbaz>=1\nqux @ https://h/q.whl\n-e ./here\n";
        let versions = vec!["pkg:pypi/bar@2.0".into(), "pkg:pypi/foo@1.0".into()];
        let others = ["-e ./here (not pinned)", "baz>=1 (not pinned)", "qux @ https://h/q.whl (not pinned)"];
        assert_eq!(read_all("requirements.txt", text), (versions, others.map(String::from).to_vec()));
    }

    #[test]
    fn lock_files_of_gradle() {
        let text = "# This is a Gradle generated file for dependency locking.\ncom.acme:tool:1.0=compileClasspath,runtimeClasspath\n\
                    org.a:b:2.0-rc-1=x\nodd line\nempty=annotationProcessor\n";
        let versions = vec!["pkg:maven/com.acme/tool@1.0".into(), "pkg:maven/org.a/b@2.0-rc-1".into()];
        let others = vec!["odd line (not group:artifact:version)".into()];
        assert_eq!(read_all("gradle.lockfile", text), (versions, others));
    }

    #[test]
    fn sums_of_go() {
        let text = "github.com/Azure/sdk v1.0.0 h1:abc=\ngithub.com/Azure/sdk v1.0.0/go.mod h1:def=\nexample.com/old v0.9.0/go.mod \
                    h1:x=\ngopkg.in/yaml.v2 v2.0.0+incompatible h1:y=\nodd\n";
        let versions = ["pkg:golang/github.com/Azure/sdk@v1.0.0", "pkg:golang/gopkg.in/yaml.v2@v2.0.0%2Bincompatible"];
        let others = vec!["odd (not module, version and digest)".into()];
        assert_eq!(read_all("go.sum", text), (versions.map(String::from).to_vec(), others));
    }

    #[test]
    fn lock_files_of_cargo() {
        let text = "version = 4\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\ndependencies = [\"Foo_bar\"]\n[[package]]\nname = \
                    \"Foo_bar\"\nversion = \"1.0.0+b\"\nsource = \"registry+https://h/index\"\nchecksum = \"ab\"\n[[package]]\nname = \
                    \"own\"\nversion = \"2.0.0-rc.1\"\nsource = \"sparse+https://h/cargo/\"\n[[package]]\nname = \"fork\"\nversion = \
                    \"3.0.0\"\nsource = \"git+https://h/fork?branch=x#ab\"\n";
        let versions = ["pkg:cargo/Foo_bar@1.0.0%2Bb", "pkg:cargo/own@2.0.0-rc.1"].map(String::from).to_vec();
        assert_eq!(read_all("Cargo.lock", text), (versions, vec!["fork (git+https://h/fork?branch=x#ab)".into()]));
    }

    #[test]
    fn lock_files_of_npm() {
        let newer = r#"{"lockfileVersion":3,"packages":{"":{"name":"app"},"web":{"version":"1"},
            "node_modules/@s/a":{"version":"1.0.0","resolved":"https://h/a.tgz"},
            "node_modules/x/node_modules/b":{"version":"2.0.0"},"node_modules/alias":{"name":"real","version":"3.0.0"},
            "node_modules/web":{"resolved":"web","link":true},
            "node_modules/g":{"version":"4.0.0","resolved":"git+ssh://h/g"}}}"#;
        let versions = ["pkg:npm/%40s/a@1.0.0", "pkg:npm/b@2.0.0", "pkg:npm/real@3.0.0"].map(String::from).to_vec();
        assert_eq!(read_all("package-lock.json", newer), (versions, vec!["g (git+ssh://h/g)".into()]));
        let older = r#"{"dependencies":{"a":{"version":"1.0.0","dependencies":{"b":{"version":"2.0.0"}}},
            "c":{"version":"file:../c"}}}"#;
        let versions = vec!["pkg:npm/a@1.0.0".into(), "pkg:npm/b@2.0.0".into()];
        assert_eq!(read_all("npm-shrinkwrap.json", older), (versions, vec!["c (file:../c)".into()]));
    }

    #[test]
    fn what_is_not_one_version_is_left_out() {
        let others = ["a (1.*)", "b (1,<2)"].map(String::from).to_vec();
        assert_eq!(read_all("requirements.txt", "a==1.*\nb==1,<2\n"), (Vec::new(), others));
        let hostile = "[[package]]\nname = \"\\u001b[2Jx\"\nversion = \"\\u0007\"\n";
        assert_eq!(read_all("uv.lock", hostile), (Vec::new(), vec![" [2Jx ( )".into()]));
    }

    #[test]
    fn what_is_no_lock_file() {
        for (name, text) in [
            ("composer.lock", ""),
            ("Cargo.lock", ""),
            ("Cargo.lock", "[[package]]"),
            ("uv.lock", "="),
            ("uv.lock", "a = 1"),
            ("package-lock.json", "{}"),
            ("pylock.toml", "[[packages]]"),
        ] {
            assert!(read(name, text).is_err(), "{name} {text}");
        }
    }
}
