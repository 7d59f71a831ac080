//! Tarballs that npm makes and installs.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use serde_json::{Map, Value};

use crate::archives::TarballMetadata;
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
    "keywords",
    "author",
    "funding",
    "homepage",
    "repository",
    "bugs",
    "types",
];
/// Maximum bytes of the fields of one version.
const MAX_REGISTRY_MANIFEST: usize = 64 << 10;
/// Scripts that run when the package is installed.
const INSTALL_SCRIPTS: [&str; 3] = ["preinstall", "install", "postinstall"];

/// A tarball, as the `package.json` in it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tarball {
    /// Its name, with its scope.
    pub name: String,
    /// Version as it is written.
    pub version: String,
    /// First line of what it says of itself.
    pub description: String,
    /// Licence that it declares.
    pub license: String,
    /// The members of `package.json` that registries show, as JSON.
    pub manifest: String,
    /// Number of files in it.
    pub file_count: u64,
    /// Bytes of these files.
    pub unpacked_bytes: u64,
    /// SHA-1 and SHA-512 of the tarball in lower-case hex.
    pub sha1: String,
    pub sha512: String,
}

/// Reads a tarball of `packed` bytes.
///
/// # Errors
/// It cannot be read, is damaged or hostile.
pub fn tarball(mut source: impl Read + Seek, packed: u64) -> Result<Tarball, Refusal> {
    let (sha1, sha512) = digest::of_npm(&mut source)?;
    source.rewind()?;
    let (found, manifest, has_shrinkwrap) = manifest(source, packed)?;
    let (name, version) = identity(&manifest)?;
    Ok(Tarball {
        name,
        version,
        description: line(&text(&manifest, "description"), 512),
        license: line(&license(&manifest), 256),
        manifest: registry_manifest(&manifest, has_shrinkwrap)?,
        file_count: found.files,
        unpacked_bytes: found.unpacked,
        sha1,
        sha512,
    })
}

/// The license that the `package.json` of a tarball of `packed` bytes declares; no digests are made of it.
///
/// # Errors
/// It cannot be read, is damaged or hostile.
pub fn tarball_license(source: impl Read, packed: u64) -> Result<String, Refusal> {
    let (_, manifest, _) = manifest(source, packed)?;
    identity(&manifest)?;
    Ok(line(&license(&manifest), 256))
}

/// What registries show of a `package.json`, as JSON, and the license that it declares.
///
/// # Errors
/// It is too long.
pub fn described(manifest: &Map<String, Value>) -> Result<(String, String), Refusal> {
    let has_shrinkwrap = manifest.get("_hasShrinkwrap") == Some(&Value::Bool(true));
    Ok((registry_manifest(manifest, has_shrinkwrap)?, line(&license(manifest), 256)))
}

/// Reads a tarball; `Foreign` if the file name is not one of a tarball.
pub(crate) fn read(path: &Path, file_name: &str) -> Result<Package, Refusal> {
    file_name.strip_suffix(".tgz").ok_or(Refusal::Foreign)?;
    let file = File::open(path)?;
    let packed = file.metadata()?.len();
    let (found, manifest, has_shrinkwrap) = manifest(file, packed)?;
    let (name, version) = identity(&manifest)?;
    Ok(Package {
        name,
        version,
        description: line(&text(&manifest, "description"), 512),
        license: line(&license(&manifest), 256),
        files: vec![digest::of(path)?],
        manifest: registry_manifest(&manifest, has_shrinkwrap)?,
        file_count: found.files,
    })
}

/// The archive, its `package.json`, and whether versions of dependencies are fixed in it.
fn manifest(source: impl Read, packed: u64) -> Result<(TarballMetadata, Map<String, Value>, bool), Refusal> {
    let has_shrinkwrap = Cell::new(false);
    // The first directory is called `package` nearly always, and npm takes any.
    let is_manifest = |name: &str| {
        let file = name.split_once('/').map(|(_, file)| file);
        has_shrinkwrap.set(has_shrinkwrap.get() || file == Some("npm-shrinkwrap.json"));
        file == Some("package.json")
    };
    let mut found = archives::of_tarball(source, packed, is_manifest)?;
    let bytes = found.bytes.take().ok_or_else(|| Refusal::damaged("has no package.json in its directory"))?;
    let manifest = serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::damaged(format!("has a package.json that does not parse: {error}")))?;
    Ok((found, manifest, has_shrinkwrap.get()))
}

/// Name and version of the package.
fn identity(manifest: &Map<String, Value>) -> Result<(String, String), Refusal> {
    let (name, version) = (text(manifest, "name"), text(manifest, "version"));
    if name.is_empty() || version.is_empty() {
        return Err(Refusal::damaged("has a package.json without a name or a version"));
    }
    Ok((name, version))
}

fn text(manifest: &Map<String, Value>, member: &str) -> String {
    manifest.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
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

fn registry_manifest(manifest: &Map<String, Value>, has_shrinkwrap: bool) -> Result<String, Refusal> {
    let mut fields: Map<String, Value> = manifest
        .iter()
        .filter(|(member, _)| REGISTRY_FIELDS.contains(&member.as_str()))
        .map(|(m, v)| (m.clone(), v.clone()))
        .collect();
    let scripts = manifest.get("scripts");
    if INSTALL_SCRIPTS.iter().any(|script| scripts.is_some_and(|scripts| scripts.get(script).is_some())) {
        fields.insert("hasInstallScript".into(), Value::Bool(true));
    }
    if manifest.get("hasInstallScript") == Some(&Value::Bool(true)) {
        fields.insert("hasInstallScript".into(), Value::Bool(true));
    }
    if has_shrinkwrap {
        fields.insert("_hasShrinkwrap".into(), Value::Bool(true));
    }
    // One program is often written as its path alone; it is called what the package is.
    if let Some(Value::String(path)) = fields.get("bin") {
        let name = text(manifest, "name");
        let program = name.rsplit('/').next().unwrap_or(&name).to_owned();
        fields.insert("bin".into(), Map::from_iter([(program, Value::from(path.as_str()))]).into());
    }
    let text = Value::Object(fields).to_string();
    if text.len() > MAX_REGISTRY_MANIFEST {
        return Err(Refusal::hostile(format!("has a package.json of which {} bytes would be shown", text.len())));
    }
    Ok(text)
}
