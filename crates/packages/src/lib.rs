//! Packages as they lie in directories: wheels and sdists, a Maven repository, npm tarballs; and signed statements about them.
//!
//! Name and metadata of a package are read from the file itself; the file's name must agree. Files are
//! untrusted, so every length is bounded before anything is read, nothing is unpacked to disk, and every
//! rejection has its reason. Memory does not grow with the files, nor with their number.

mod archives;
mod attestations;
mod cargo;
mod digest;
mod file_signatures;
mod go;
mod headers;
mod limits;
mod maven;
mod maven_metadata;
mod npm;
mod python;
mod walk;

use std::path::{Path, PathBuf};

use bowline_formats::archive::ArchiveError;

pub use attestations::{
    Attestation, Provenance, npm_attestation, npm_attestations, python_attestations, python_bundle, python_provenance,
};
pub use cargo::{CARGO_ARCHIVE, CrateArchive, crate_archive};
pub use digest::FileFacts;
pub use file_signatures::{FileSignature, file_signature};
pub use go::{GO_ARCHIVE, GO_MOD, go_archive, go_escaped, go_major, go_mod, is_go_version};
pub use headers::CUT;
pub use limits::MAX_METADATA;
pub use maven::Pom;
pub use maven_metadata::{MavenMetadata, MavenPlugin};
pub use npm::{Tarball, described, tarball, tarball_license};
pub use python::{Distribution, distribution, package_of_file, requirements_of_metadata, version_of_file};
pub use walk::Walk;

/// The kinds of directories that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Wheels and source distributions, at any depth.
    Python,
    /// A repository tree: `group/artifact/version/artifact-version.pom` and what lies beside it.
    Maven,
    /// Tarballs of packages, at any depth.
    Npm,
}

/// A version of a package, with those of its files that were read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Name as its ecosystem spells it: `group:artifact` for Maven, with its scope for npm.
    pub name: String,
    /// Version as it is written.
    pub version: String,
    /// First line of what it says of itself.
    pub description: String,
    /// Licence that it declares.
    pub license: String,
    pub files: Vec<FileFacts>,
    /// Of npm: the members of `package.json` that registries show, as JSON.
    pub manifest: String,
    /// Of npm: files in the tarball.
    pub file_count: u64,
}

/// Why something is left out.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It could not be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// It is damaged, or is no package.
    #[error("{0}")]
    Damaged(String),
    /// It looks as if someone wanted to do harm.
    #[error("{0}")]
    Hostile(String),
    /// It is nothing that this layout knows.
    #[error("is no package")]
    Foreign,
}

impl From<ArchiveError> for Refusal {
    fn from(broken: ArchiveError) -> Self {
        match broken {
            ArchiveError::Unreadable(error) => Refusal::Unreadable(error),
            ArchiveError::Damaged(text) => Refusal::Damaged(text),
            ArchiveError::Hostile(text) => Refusal::Hostile(text),
        }
    }
}

impl Refusal {
    fn damaged(text: impl Into<String>) -> Refusal {
        Refusal::Damaged(text.into())
    }

    fn hostile(text: impl Into<String>) -> Refusal {
        Refusal::Hostile(text.into())
    }
}

/// Something that the walk came to: a package, or why there is none.
pub type WalkItem = (PathBuf, Result<Package, Refusal>);

/// Walks through a directory in the order of names.
///
/// # Errors
/// The directory cannot be opened.
pub fn walk(layout: Layout, directory: &Path) -> std::io::Result<Walk> {
    Walk::new(layout, directory)
}

/// A text as one line without control characters, cut after so many characters.
fn line(text: &str, most: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let joined = words.collect::<Vec<_>>().join(" ");
    joined.chars().take(most).collect::<String>().trim_end().to_owned()
}
