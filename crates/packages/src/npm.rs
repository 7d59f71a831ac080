//! Tarballs that npm makes and installs.

use std::fs::File;
use std::path::Path;

use serde_json::{Map, Value};

use crate::{Package, Refusal, archives, digest, line};

/// Fields of `package.json` in registry metadata, which clients resolve dependencies with.
const REGISTRY_FIELDS: &[&str] = &[
    "name",
    "version",
    "description",
    "license",
    "type",
    "main",
    "exports",
    "bin",
    "directories",
    "engines",
    "os",
    "cpu",
    "libc",
    "dependencies",
    "peerDependencies",
    "peerDependenciesMeta",
    "optionalDependencies",
    "bundleDependencies",
    "bundledDependencies",
    "deprecated",
    "homepage",
    "repository",
    "bugs",
    "types",
];
/// Maximum bytes of the fields of one version.
const MAX_REGISTRY_MANIFEST: usize = 64 << 10;
/// Scripts that run when the package is installed.
const INSTALL_SCRIPTS: [&str; 3] = ["preinstall", "install", "postinstall"];

/// Reads a tarball; `Foreign` if the file name is not one of a tarball.
pub(crate) fn read(path: &Path, file_name: &str) -> Result<Package, Refusal> {
    file_name.strip_suffix(".tgz").ok_or(Refusal::Foreign)?;
    // The first directory is called `package` nearly always, and npm takes any.
    let is_manifest = |name: &str| name.split_once('/').is_some_and(|(_, file)| file == "package.json");
    let file = File::open(path)?;
    let packed = file.metadata()?.len();
    let found = archives::of_tarball(file, packed, is_manifest)?;
    let bytes = found.bytes.ok_or_else(|| Refusal::damaged("has no package.json in its directory"))?;
    let manifest: Map<String, Value> = serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::damaged(format!("has a package.json that does not parse: {error}")))?;
    let text = |member: &str| manifest.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    if name.is_empty() || version.is_empty() {
        return Err(Refusal::damaged("has a package.json without a name or a version"));
    }
    Ok(Package {
        name,
        version,
        description: line(&text("description"), 512),
        license: line(&license(&manifest), 256),
        files: vec![digest::of(path)?],
        manifest: registry_manifest(&manifest)?,
        file_count: found.files,
    })
}

/// The license, which older packages write as objects.
fn license(manifest: &Map<String, Value>) -> String {
    let one = |value: &Value| value.as_str().or_else(|| value.get("type").and_then(Value::as_str)).map(String::from);
    let several = || {
        let list = manifest.get("licenses").and_then(Value::as_array)?;
        Some(list.iter().filter_map(one).collect::<Vec<_>>().join(" OR "))
    };
    manifest.get("license").and_then(one).or_else(several).unwrap_or_default()
}

fn registry_manifest(manifest: &Map<String, Value>) -> Result<String, Refusal> {
    let mut fields: Map<String, Value> = manifest
        .iter()
        .filter(|(member, _)| REGISTRY_FIELDS.contains(&member.as_str()))
        .map(|(m, v)| (m.clone(), v.clone()))
        .collect();
    let scripts = manifest.get("scripts");
    if INSTALL_SCRIPTS.iter().any(|script| scripts.is_some_and(|scripts| scripts.get(script).is_some())) {
        fields.insert("hasInstallScript".into(), Value::Bool(true));
    }
    let text = Value::Object(fields).to_string();
    if text.len() > MAX_REGISTRY_MANIFEST {
        return Err(Refusal::hostile(format!("has a package.json of which {} bytes would be shown", text.len())));
    }
    Ok(text)
}
