//! Wheels and source distributions.

use std::fs::File;
use std::path::Path;

use bowline_versions::{Scheme, Version};

use crate::headers::{self, Metadata};
use crate::{Package, Refusal, archives, digest, line};

/// Reads a distribution; `Foreign` if the file name is not one of a distribution.
pub(crate) fn read(path: &Path, file_name: &str) -> Result<Package, Refusal> {
    let metadata = if let Some(stem) = file_name.strip_suffix(".whl") {
        let (name, rest) = stem.split_once('-').ok_or_else(|| Refusal::damaged("has a name that no wheel has"))?;
        let version = rest.split('-').next().unwrap_or(rest);
        let metadata = wheel(path)?;
        agrees(&metadata, name, version)?;
        metadata
    } else if let Some(stem) = file_name.strip_suffix(".tar.gz").or_else(|| file_name.strip_suffix(".zip")) {
        let (name, version) = stem.rsplit_once('-').ok_or(Refusal::Foreign)?;
        let metadata = source(path, file_name)?;
        agrees(&metadata, name, version)?;
        metadata
    } else {
        return Err(Refusal::Foreign);
    };
    Ok(Package {
        name: metadata.name,
        version: metadata.version,
        description: line(&metadata.summary, 512),
        license: line(&metadata.license, 256),
        files: vec![digest::of(path)?],
        manifest: String::new(),
        file_count: 0,
    })
}

fn wheel(path: &Path) -> Result<Metadata, Refusal> {
    let is_metadata = |name: &str| {
        name.split_once('/').is_some_and(|(directory, file)| directory.ends_with(".dist-info") && file == "METADATA")
    };
    from_zip(path, is_metadata)
}

fn source(path: &Path, file_name: &str) -> Result<Metadata, Refusal> {
    let is_metadata = |name: &str| name.split_once('/').is_some_and(|(_, file)| file == "PKG-INFO");
    if file_name.strip_suffix(".gz").is_none() {
        return from_zip(path, is_metadata);
    }
    let found = archives::of_tarball(File::open(path)?, is_metadata)?;
    headers::read(&found.bytes.ok_or_else(|| Refusal::damaged("has no PKG-INFO in its directory"))?)
}

fn from_zip(path: &Path, is_metadata: impl Fn(&str) -> bool) -> Result<Metadata, Refusal> {
    headers::read(&archives::of_zip(File::open(path)?, is_metadata)?)
}

/// Installers go by the file name, so name and version in it must match the metadata.
fn agrees(metadata: &Metadata, name: &str, version: &str) -> Result<(), Refusal> {
    let same_name = normalized(&metadata.name) == normalized(name);
    let parsed = |text: &str| Version::parse(Scheme::Pep440, &text.replace('_', "-"));
    let same_version = match (parsed(&metadata.version), parsed(version)) {
        (Ok(declared), Ok(named)) => declared == named,
        _ => metadata.version == version,
    };
    if same_name && same_version {
        return Ok(());
    }
    Err(Refusal::hostile(format!(
        "is called {name} {version}, and its metadata say {} {}",
        metadata.name, metadata.version
    )))
}

fn normalized(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}
