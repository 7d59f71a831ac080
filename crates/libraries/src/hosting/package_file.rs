//! A file of a package, wherever it comes from.

use bowline_core::Micros;
use bowline_versions::order_key;

use super::files::Checksums;
use crate::ecosystems::Language;
use crate::policy::age::{Age, FirstSeen};

/// A file of a package.
#[derive(Clone, Debug)]
pub(super) struct PackageFile {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) sort_key: Vec<u8>,
    /// License that it declares; empty without one, and until it is known.
    pub(super) license: String,
    /// Length in bytes, where that is known.
    pub(super) size: Option<u64>,
    /// Digest of its bytes, such as `sha256:` and hex.
    pub(super) digest: String,
    /// SHA-256 of its core metadata; empty without.
    pub(super) metadata_sha256: String,
    pub(super) requires_python: String,
    /// When it became public, where that is known.
    pub(super) uploaded_at: Option<Micros>,
    /// When this server saw it at its upstream first, where that is known; absent for packages of groups.
    pub(super) first_seen: Option<FirstSeen>,
    /// Why installers should pass over it; absent if they need not.
    pub(super) yanked: Option<String>,
    pub(super) is_malware: bool,
    /// Whether its bytes were stored as this file's, so that its license is known as far as it can be.
    pub(super) is_stored: bool,
    /// Address of its bytes at the upstream.
    pub(super) url: String,
    pub(super) checksums: Checksums,
    /// Of an upstream, where that names provenance of this very file: its address for Python, its predicate type for npm; else empty.
    pub(super) provenance_url: String,
    pub(super) provenance_type: String,
}

impl PackageFile {
    /// A file of which nothing is known but its name.
    pub(super) fn unfetched(language: Language, version: &str, name: &str) -> PackageFile {
        PackageFile {
            name: name.into(),
            version: version.into(),
            sort_key: order_key(language.scheme(), version),
            license: String::new(),
            size: None,
            digest: String::new(),
            metadata_sha256: String::new(),
            requires_python: String::new(),
            uploaded_at: None,
            first_seen: None,
            yanked: None,
            is_malware: false,
            is_stored: false,
            url: String::new(),
            checksums: Checksums::default(),
            provenance_url: String::new(),
            provenance_type: String::new(),
        }
    }

    /// Since when it is public.
    pub(super) fn age(&self) -> Age {
        Age::of(self.uploaded_at, self.first_seen)
    }

    /// Whether it had been published at a time; without one, whether it is there now.
    pub(super) fn is_of(&self, moment: Option<Micros>) -> bool {
        moment.is_none_or(|moment| self.uploaded_at.is_some_and(|at| at <= moment))
    }
}
