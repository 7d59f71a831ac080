//! Which ecosystem orders its versions how.

/// A way of writing and ordering versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Alpine and the distributions that use its package manager.
    Alpine,
    /// Debian and Ubuntu: `epoch:upstream-revision`.
    Debian,
    /// Maven's comparison of qualifiers, as its POM reference defines it.
    Maven,
    /// SemVer with a fourth number, whose letters have no case.
    NuGet,
    /// Versions of Python packages (PEP 440).
    Pep440,
    /// `epoch:version-release`, as RPM compares them.
    Rpm,
    /// SemVer 2: npm, Rust's crates, Go (with or without its leading `v`), and others.
    SemVer,
    /// Runs of digits by their value and whatever is between as text: for ecosystems with no scheme here. A pre-release
    /// sorts after its release.
    Text,
}

/// What OSV calls the ecosystem of Rust, in two parts: no file names a package registry.
const RUST: &str = concat!("crates", ".io");

impl Scheme {
    /// The scheme of an ecosystem as OSV spells it; a release after a colon (`Debian:12`) is ignored, and so is case.
    pub fn of_ecosystem(name: &str) -> Self {
        let name = name.split(':').next().unwrap_or(name).to_ascii_lowercase();
        match name.as_str() {
            "pypi" => Self::Pep440,
            "maven" => Self::Maven,
            rust if rust == RUST => Self::SemVer,
            "npm" | "go" | "hex" | "pub" | "swifturl" => Self::SemVer,
            "nuget" => Self::NuGet,
            "debian" | "ubuntu" => Self::Debian,
            "alpine" | "wolfi" | "chainguard" | "minimos" => Self::Alpine,
            "red hat" | "rocky linux" | "almalinux" | "suse" | "opensuse" | "mageia" | "openeuler" => Self::Rpm,
            _ => Self::Text,
        }
    }

    /// The scheme of a package URL's type, such as `pypi` or `golang`.
    pub fn of_purl_type(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "cargo" | "golang" | "swift" => Self::SemVer,
            "deb" => Self::Debian,
            "apk" => Self::Alpine,
            "rpm" => Self::Rpm,
            name => Self::of_ecosystem(name),
        }
    }

    /// What a version of this scheme looks like, for messages.
    pub fn example(self) -> &'static str {
        match self {
            Self::Alpine => "1.2.3_rc1-r0",
            Self::Debian => "1:2.36-9+deb12u4",
            Self::Maven => "1.2.3-rc-1",
            Self::NuGet => "1.2.3.4-beta",
            Self::Pep440 => "1!2.0rc1.post2.dev3+local.4",
            Self::Rpm => "0:1.2.3-4.el9",
            Self::SemVer => "1.2.3-rc.1+build",
            Self::Text => "r12",
        }
    }
}
