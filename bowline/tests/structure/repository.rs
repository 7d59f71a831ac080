//! The repository as the tests of its structure read it: packages, their dependencies, and files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A dependency that a package declares.
pub(crate) struct Dependency {
    pub(crate) krate: String,
    pub(crate) name: String,
    pub(crate) in_tests: bool,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in the repository").to_path_buf()
}

pub(crate) fn output(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

pub(crate) fn packages() -> Vec<Value> {
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let text = output(Command::new(env!("CARGO")).args(arguments));
    let metadata: Value = serde_json::from_str(&text).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// The name without the family's.
pub(crate) fn short(package: &Value) -> String {
    let name = package["name"].as_str().expect("a name");
    name.strip_prefix("bowline-").unwrap_or(name).to_owned()
}

pub(crate) fn crates() -> Vec<String> {
    packages().iter().map(short).collect()
}

/// All declared dependencies of all crates: for the build, its scripts and tests, on every platform.
pub(crate) fn dependencies() -> Vec<Dependency> {
    let mut all = Vec::new();
    for package in packages() {
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            all.push(Dependency {
                krate: short(&package),
                name: dependency["name"].as_str().expect("a name").to_owned(),
                in_tests: dependency["kind"] == "dev",
            });
        }
    }
    all
}

/// What is in the repository, or would be with the next commit.
pub(crate) fn files() -> Vec<String> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let text = output(Command::new("git").args(arguments));
    let paths: BTreeSet<&str> = text.split('\0').filter(|path| root().join(path).is_file()).collect();
    assert!(paths.len() > 100, "hardly any file was found: {paths:?}");
    paths.into_iter().map(String::from).collect()
}

pub(crate) fn sources() -> Vec<String> {
    files().into_iter().filter(|path| Path::new(path).extension().is_some_and(|extension| extension == "rs")).collect()
}

pub(crate) fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("_tests.rs") || path.ends_with("/tests.rs")
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
