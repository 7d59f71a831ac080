//! Wheels and source distributions.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use bowline_versions::{Scheme, Version};

use crate::headers::{self, Metadata};
use crate::{Package, Refusal, archives, digest, line};

/// A wheel or a source distribution, as the metadata in it say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Its name as it spells it.
    pub name: String,
    /// Version as it is written.
    pub version: String,
    /// First line of what it says of itself.
    pub summary: String,
    /// Licence that it declares.
    pub license: String,
    /// Versions of Python that it is for, such as `>=3.9`; empty if it does not say.
    pub requires_python: String,
    /// The core metadata of a wheel, as they lie in it; absent for a source distribution.
    pub core_metadata: Option<Vec<u8>>,
    /// What a wheel requires, each as it is written; absent if it requires more than 500 packages, and for a source distribution,
    /// whose build decides.
    pub requirements: Option<Vec<String>>,
}

/// Reads a distribution of `packed` bytes; `Foreign` if the file name is not one of a distribution.
///
/// # Errors
/// It cannot be read, is damaged or hostile, or its metadata have another name or version than its file name.
pub fn distribution(source: impl Read + Seek, packed: u64, file_name: &str) -> Result<Distribution, Refusal> {
    let kind = Kind::of(file_name)?;
    let bytes = match kind {
        Kind::Wheel { .. } => archives::of_zip(source, packed, is_wheel_metadata)?,
        Kind::Source { is_zip: true, .. } => archives::of_zip(source, packed, is_source_metadata)?,
        Kind::Source { is_zip: false, .. } => {
            let found = archives::of_tarball(source, packed, is_source_metadata)?;
            found.bytes.ok_or_else(|| Refusal::damaged("has no PKG-INFO in its directory"))?
        }
    };
    let metadata = headers::read(&bytes)?;
    let (name, version) = kind.parts();
    agrees(&metadata, name, version)?;
    Ok(Distribution {
        name: metadata.name,
        version: metadata.version,
        summary: line(&metadata.summary, 512),
        license: line(&metadata.license, 256),
        requires_python: line(&metadata.requires_python, 256),
        requirements: metadata.requires_dist.filter(|_| matches!(kind, Kind::Wheel { .. })),
        core_metadata: matches!(kind, Kind::Wheel { .. }).then_some(bytes),
    })
}

/// What a wheel requires, by its core metadata; absent if that is more than 500 packages.
///
/// # Errors
/// They are damaged.
pub fn requirements_of_metadata(metadata: &[u8]) -> Result<Option<Vec<String>>, Refusal> {
    Ok(headers::read(metadata)?.requires_dist)
}

/// The name of the package that a file belongs to by its own name, normalized; absent if it is not the name of a distribution.
pub fn package_of_file(file_name: &str) -> Option<String> {
    Kind::of(file_name).ok().map(|kind| normalized(kind.parts().0))
}

/// The version in the name of a file, as it is written there; absent if it is not the name of a distribution.
pub fn version_of_file(file_name: &str) -> Option<String> {
    Kind::of(file_name).ok().map(|kind| kind.parts().1.to_owned())
}

/// Reads a distribution; `Foreign` if the file name is not one of a distribution.
pub(crate) fn read(path: &Path, file_name: &str) -> Result<Package, Refusal> {
    Kind::of(file_name)?;
    let file = File::open(path)?;
    let packed = file.metadata()?.len();
    let read = distribution(file, packed, file_name)?;
    Ok(Package {
        name: read.name,
        version: read.version,
        description: read.summary,
        license: read.license,
        files: vec![digest::of(path)?],
        manifest: String::new(),
        file_count: 0,
    })
}

/// What the name of a file says.
enum Kind<'a> {
    Wheel { name: &'a str, version: &'a str },
    Source { name: &'a str, version: &'a str, is_zip: bool },
}

impl<'a> Kind<'a> {
    fn of(file_name: &'a str) -> Result<Kind<'a>, Refusal> {
        if let Some(stem) = file_name.strip_suffix(".whl") {
            let (name, rest) = stem.split_once('-').ok_or_else(|| Refusal::damaged("has a name that no wheel has"))?;
            return Ok(Kind::Wheel { name, version: rest.split('-').next().unwrap_or(rest) });
        }
        let (stem, is_zip) = match (file_name.strip_suffix(".tar.gz"), file_name.strip_suffix(".zip")) {
            (Some(stem), _) => (stem, false),
            (None, Some(stem)) => (stem, true),
            (None, None) => return Err(Refusal::Foreign),
        };
        let (name, version) = stem.rsplit_once('-').ok_or(Refusal::Foreign)?;
        Ok(Kind::Source { name, version, is_zip })
    }

    fn parts(&self) -> (&'a str, &'a str) {
        match self {
            Kind::Wheel { name, version } | Kind::Source { name, version, .. } => (name, version),
        }
    }
}

fn is_wheel_metadata(path: &str) -> bool {
    path.split_once('/').is_some_and(|(directory, file)| directory.ends_with(".dist-info") && file == "METADATA")
}

fn is_source_metadata(path: &str) -> bool {
    path.split_once('/').is_some_and(|(_, file)| file == "PKG-INFO")
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
