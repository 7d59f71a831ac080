//! How components of distributions are compared: in a release, and by the package that they were built from.
//!
//! Records of Debian and Ubuntu are about source packages of a release; those of the other distributions are about source
//! packages or about what is installed. Package URLs name the release (`distro`), the source (`upstream`, or `origin` in
//! SBOMs of apko) and, for rpm, the epoch in qualifiers. Other ecosystems have none of this.

use bowline_formats::purl::PackageUrl;

use crate::package::PackageKey;
use crate::purl::{Purl, named};

/// What the qualifiers of a package URL add to name and version. All are empty where they add nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackageOrigin {
    /// The release, as records write it after the ecosystem: `12`, `v3.18`, `enterprise_linux:9`.
    pub release: String,
    /// Name of the source package, if it is another one.
    pub source: String,
    /// Version of the source package, if it is another one.
    pub source_version: String,
    /// Epoch of the version, if the version is without.
    pub epoch: String,
}

/// Whether and how a component is compared with records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComponentComparison {
    /// Records know no such ecosystem.
    OtherEcosystem,
    /// It has no version, or the package URL names no release of its distribution that is known here.
    Unknown,
    By(PackageOrigin),
}

/// A package and version that records are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedPackage {
    pub package: PackageKey,
    /// The ecosystem, with the release.
    pub ecosystem: String,
    pub version: String,
}

/// Separates the parts of an origin in its text; a package URL has no control characters.
const SEPARATOR: char = '\t';

impl PackageOrigin {
    /// Reads the qualifiers. Absent if the distribution has releases and the URL names none that is known here.
    pub fn of(purl: &PackageUrl) -> Option<PackageOrigin> {
        let Some((ecosystem, _)) = named(&purl.kind, &segments(purl), &purl.name) else {
            return Some(PackageOrigin::default());
        };
        if !matches!(purl.kind.as_str(), "apk" | "deb" | "rpm") {
            return Some(PackageOrigin::default());
        }
        let qualifier = |name: &str| purl.qualifiers.get(name).map(String::as_str).unwrap_or_default();
        let release = release(ecosystem, qualifier("distro"))?;
        let upstream = Some(qualifier("upstream")).filter(|text| !text.is_empty()).unwrap_or(qualifier("origin"));
        let (source, source_version) = source(&purl.kind, upstream);
        let epoch = qualifier("epoch");
        let has_epoch = purl.kind == "rpm" && is_number(epoch) && epoch != "0" && !purl.version.contains(':');
        let is_other = source != purl.name;
        // File names of source packages have no epoch.
        let own_version = if purl.kind == "rpm" { split_epoch(&purl.version).1 } else { &purl.version };
        let is_other_version = !source_version.is_empty() && source_version != own_version;
        Some(PackageOrigin {
            release,
            source: if is_other { source.to_owned() } else { String::new() },
            source_version: if is_other_version { source_version.to_owned() } else { String::new() },
            epoch: if has_epoch { epoch.to_owned() } else { String::new() },
        })
    }

    /// The origin as one text; empty if it adds nothing.
    pub fn to_text(&self) -> String {
        let parts = [&self.release, &self.source, &self.source_version, &self.epoch];
        if parts.iter().all(|part| part.is_empty()) {
            return String::new();
        }
        parts.map(String::as_str).join(&SEPARATOR.to_string())
    }

    /// Reads what [`PackageOrigin::to_text`] wrote.
    pub fn from_text(text: &str) -> PackageOrigin {
        let mut parts = text.split(SEPARATOR).map(String::from);
        let mut next = || parts.next().unwrap_or_default();
        PackageOrigin { release: next(), source: next(), source_version: next(), epoch: next() }
    }

    /// What the component at this path, as in `deb/debian/libssl3`, is compared as: the source package, and before it what is
    /// installed if records may be about that. None if records know no such ecosystem.
    pub fn compared(&self, path: &str, version: &str) -> Vec<ComparedPackage> {
        let mut segments: Vec<&str> = path.split('/').collect();
        let (Some(name), false) = (segments.pop(), segments.is_empty()) else { return Vec::new() };
        let kind = segments.remove(0);
        // A source package of rpm has the epoch of what is built from it.
        let of_version = if kind == "rpm" { split_epoch(version).0 } else { "" };
        let epoch = if self.epoch.is_empty() { of_version } else { &self.epoch };
        let compared = |name: &str, version: &str| {
            let (ecosystem, name) = named(kind, &segments, name)?;
            let release = if self.release.is_empty() { String::new() } else { format!(":{}", self.release) };
            let is_whole = epoch.is_empty() || version.contains(':');
            let version = if is_whole { version.to_owned() } else { format!("{epoch}:{version}") };
            let package = PackageKey::new(ecosystem, &name);
            Some(ComparedPackage { package, ecosystem: format!("{ecosystem}{release}"), version })
        };
        let own = compared(name, version);
        if self.source.is_empty() && self.source_version.is_empty() {
            return own.into_iter().collect();
        }
        let source = if self.source.is_empty() { name } else { &self.source };
        let source_version = if self.source_version.is_empty() { version } else { &self.source_version };
        let source = compared(source, source_version);
        let is_by_name = kind != "deb" && !self.source.is_empty();
        own.filter(|_| is_by_name).into_iter().chain(source).collect()
    }
}

impl ComponentComparison {
    /// How the component with this package URL is compared; the version is that of the component, which may be beside the URL.
    pub fn of(purl: &str, version: &str) -> ComponentComparison {
        let Ok(purl) = PackageUrl::parse(purl) else { return ComponentComparison::OtherEcosystem };
        if named(&purl.kind, &segments(&purl), &purl.name).is_none() {
            return ComponentComparison::OtherEcosystem;
        }
        match PackageOrigin::of(&purl) {
            Some(origin) if !version.is_empty() => ComponentComparison::By(origin),
            _ => ComponentComparison::Unknown,
        }
    }
}

impl Purl {
    /// What a query for this package URL looks for: the first that a component of an image is compared as, and without a known
    /// release every release.
    pub(crate) fn of(purl: &PackageUrl) -> Option<Purl> {
        let (ecosystem, name) = named(&purl.kind, &segments(purl), &purl.name)?;
        let version = Some(purl.version.clone()).filter(|version| !version.is_empty());
        let by_name = Purl { ecosystem: ecosystem.into(), name, version };
        let Some(mut origin) = PackageOrigin::of(purl) else { return Some(by_name) };
        if purl.kind != "deb" {
            (origin.source, origin.source_version) = (String::new(), String::new());
        }
        let release = if origin.release.is_empty() { String::new() } else { format!(":{}", origin.release) };
        let version = by_name.version.map(|own| match (&origin.source_version, &origin.epoch) {
            (version, _) if !version.is_empty() => version.clone(),
            (_, epoch) if !epoch.is_empty() => format!("{epoch}:{own}"),
            _ => own,
        });
        let name = if origin.source.is_empty() { by_name.name } else { origin.source };
        Some(Purl { ecosystem: format!("{ecosystem}{release}"), name, version })
    }
}

fn segments(purl: &PackageUrl) -> Vec<&str> {
    purl.namespace.iter().map(String::as_str).collect()
}

/// Name and version of a source package: `openssl`, `openssl@3.0.11-1`, or `openssl-3.0.7-24.el9.src.rpm`. The first one of
/// several counts; a version that is not stated is empty.
fn source<'a>(kind: &str, upstream: &'a str) -> (&'a str, &'a str) {
    let first = upstream.split(',').next().unwrap_or_default().trim();
    if let Some(file) = first.strip_suffix(".src.rpm").filter(|_| kind == "rpm") {
        let mut parts = file.rsplitn(3, '-');
        return match (parts.next(), parts.next(), parts.next()) {
            (Some(release), Some(version), Some(name)) if !name.is_empty() => {
                (name, &file[file.len() - release.len() - 1 - version.len()..])
            }
            _ => ("", ""),
        };
    }
    first.split_once('@').unwrap_or((first, ""))
}

/// The release that a qualifier `distro` names, as records of the ecosystem write it; empty where the distribution has no
/// releases. Absent if it is not known.
fn release(ecosystem: &str, distro: &str) -> Option<String> {
    let distro = distro.to_ascii_lowercase();
    // After the name, which some tools leave out: `debian-12`, `3.18.4`.
    let number = distro.rsplit('-').next().unwrap_or_default().trim_start_matches('v');
    let parts: Vec<&str> = number.split('.').collect();
    let major = Some(parts[0]).filter(|major| is_number(major));
    let minor = parts.get(1).copied().filter(|minor| is_number(minor));
    let both = major.zip(minor);
    match ecosystem {
        "Wolfi" | "Chainguard" | "MinimOS" | "Echo" => Some(String::new()),
        "Alpine" => both.map(|(major, minor)| format!("v{major}.{minor}")),
        "Debian" => major.or_else(|| codename(&DEBIAN, &distro)).map(String::from),
        "Ubuntu" => match both {
            Some((major, minor)) => Some(format!("{major}.{minor}")),
            None => codename(&UBUNTU, &distro).map(String::from),
        },
        "AlmaLinux" | "Rocky Linux" | "Mageia" => major.map(String::from),
        "Red Hat" => major.map(|major| format!("enterprise_linux:{major}")),
        "openSUSE" if distro.contains("tumbleweed") => Some("Tumbleweed".into()),
        "openSUSE" => both.map(|(major, minor)| format!("Leap {major}.{minor}")),
        // Their records distinguish products and service packs that package URLs do not name.
        _ => None,
    }
}

const DEBIAN: [(&str, &str); 7] = [
    ("jessie", "8"),
    ("stretch", "9"),
    ("buster", "10"),
    ("bullseye", "11"),
    ("bookworm", "12"),
    ("trixie", "13"),
    ("forky", "14"),
];

const UBUNTU: [(&str, &str); 6] = [
    ("trusty", "14.04"),
    ("xenial", "16.04"),
    ("bionic", "18.04"),
    ("focal", "20.04"),
    ("jammy", "22.04"),
    ("noble", "24.04"),
];

fn codename(names: &[(&str, &'static str)], distro: &str) -> Option<&'static str> {
    let name = distro.rsplit('-').next().unwrap_or_default();
    names.iter().find(|(known, _)| *known == name).map(|(_, release)| *release)
}

/// The epoch of a version, empty without one, and the rest.
fn split_epoch(version: &str) -> (&str, &str) {
    version.split_once(':').unwrap_or(("", version))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
#[path = "distribution_tests.rs"]
mod tests;
