//! What files of a project say about where packages come from.

use std::collections::HashSet;
use std::fmt;

use super::{cargo, go, java, javascript, python};

/// A program that installs packages, with the settings that are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Installer {
    Pip,
    Uv,
    Poetry,
    Pdm,
    /// npm, pnpm, yarn 1 and bun, which read the same file.
    Npm,
    /// yarn from version 2 on.
    Yarn,
    Maven,
    Gradle,
    /// The command of Go itself.
    Go,
    Cargo,
}

impl fmt::Display for Installer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Installer::Pip => "pip",
            Installer::Uv => "uv",
            Installer::Poetry => "Poetry",
            Installer::Pdm => "PDM",
            Installer::Npm => "npm",
            Installer::Yarn => "yarn",
            Installer::Maven => "Maven",
            Installer::Gradle => "Gradle",
            Installer::Go => "go",
            Installer::Cargo => "cargo",
        })
    }
}

/// Where packages come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// An index, by its address: the one that has everything, or a further one.
    Index { address: String, is_default: bool },
    /// Something that no index supplies, as the file has it: an address of a file or a repository of sources.
    Direct(String),
    /// A file of an index, by its address in a lock file.
    Locked(String),
}

impl Origin {
    /// The text of the file that says so.
    pub(super) fn text(&self) -> &str {
        match self {
            Origin::Index { address: text, .. } | Origin::Direct(text) | Origin::Locked(text) => text,
        }
    }
}

/// What a file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sources {
    /// The installers that the file is for.
    pub(super) installers: Vec<Installer>,
    /// Each once, in the order of the file.
    pub(super) origins: Vec<(Installer, Origin)>,
    /// Addresses that cargo does not use, whatever names them, since others replace them.
    pub(super) replaced: HashSet<String>,
    known: HashSet<(Installer, Origin)>,
}

impl Sources {
    pub(super) fn of(installer: Installer) -> Sources {
        Sources { installers: vec![installer], ..Sources::default() }
    }

    /// Adds the index that the installer takes everything from.
    pub(super) fn index(&mut self, installer: Installer, address: &str) {
        self.add(installer, Origin::Index { address: address.trim().to_owned(), is_default: true });
    }

    /// Adds an index that the installer uses beside it.
    pub(super) fn further_index(&mut self, installer: Installer, address: &str) {
        self.add(installer, Origin::Index { address: address.trim().to_owned(), is_default: false });
    }

    /// Adds a source that is not an index, if it lies elsewhere than in the project.
    pub(super) fn direct(&mut self, installer: Installer, source: &str) {
        if is_remote(source) {
            self.add(installer, Origin::Direct(source.trim().to_owned()));
        }
    }

    /// Adds a repository of sources that the file names in short.
    pub(super) fn repository(&mut self, installer: Installer, name: &str) {
        self.add(installer, Origin::Direct(name.to_owned()));
    }

    /// Adds an address in whose place cargo uses another.
    pub(super) fn replace(&mut self, address: &str) {
        self.replaced.insert(address.trim().to_owned());
    }

    fn add(&mut self, installer: Installer, origin: Origin) {
        if !origin.text().is_empty() && self.known.insert((installer, origin.clone())) {
            self.origins.push((installer, origin));
        }
    }

    /// Adds the address of a file that a lock file names.
    pub(super) fn locked(&mut self, installer: Installer, address: &str) {
        match address.split_once("://") {
            Some(("http" | "https", _)) => self.add(installer, Origin::Locked(address.trim().to_owned())),
            _ => self.direct(installer, address),
        }
    }
}

/// Whether a source is fetched over a network.
fn is_remote(source: &str) -> bool {
    let source = source.trim();
    let has_scheme = source.split_once("://").is_some_and(|(scheme, _)| {
        let scheme = scheme.rsplit('+').next().unwrap_or_default();
        !scheme.is_empty() && scheme != "file" && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    has_scheme || source.starts_with("git@") || source.starts_with("git+")
}

/// What a file says, by its path with slashes; absent for files that say nothing of packages.
///
/// # Errors
/// The file cannot be read; one sentence that begins after its name.
pub(super) fn read(path: &str, text: &str) -> Option<Result<Sources, String>> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let of_others = || java::read(name, text).or_else(|| go::read(name)).or_else(|| cargo::read(path, text));
    python::read(name, text).or_else(|| javascript::read(name, text)).or_else(of_others)
}
