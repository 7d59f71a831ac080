//! Requirements of versions as npm, cargo and Python's installers read them, and what satisfies them.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use pep440_rs::{Operator, Version, VersionSpecifier, VersionSpecifiers};

use crate::hosting::StoredVersion;

/// Characters of a requirement; longer ones are not read.
const TEXT: usize = 256;
/// Versions that one requirement of Python's compares with.
const SPECIFIERS: usize = 16;
/// The tag that npm installs where any version will do.
const LATEST: &str = "latest";
pub(super) const NOT_UNDERSTOOD: &str = "the requirement is not understood";
const OF_NO_REGISTRY: &str = "the requirement is of no registry";

/// A requirement as a manifest declares it.
#[derive(Clone, Debug)]
pub(super) struct VersionRequirement {
    /// Normalized name of the package, which is not that of an alias.
    pub(super) name: String,
    /// The requirement as it is written, shortened if it is long.
    pub(super) text: String,
    pub(super) is_optional: bool,
    pub(super) versions: RequiredVersions,
}

/// Which versions satisfy a requirement.
#[derive(Clone, Debug)]
pub(super) enum RequiredVersions {
    Npm(nodejs_semver::Range),
    Cargo(semver::VersionReq),
    Python(VersionSpecifiers),
    /// That of a tag.
    Tag(String),
    /// No one knows, and why.
    Unclear(&'static str),
}

/// What there is for a requirement: versions as they are spelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DependencyChoice {
    /// The highest is served.
    Allowed(String),
    /// The highest is withheld, and a lower one is served.
    Older { chosen: String, withheld: String },
    /// Each is withheld: the highest.
    Held(String),
    /// Why no one knows.
    Unknown(&'static str),
}

impl DependencyChoice {
    /// The version that is followed; absent if it is not known.
    pub(super) fn chosen(&self) -> Option<&str> {
        match self {
            DependencyChoice::Allowed(chosen)
            | DependencyChoice::Older { chosen, .. }
            | DependencyChoice::Held(chosen) => Some(chosen),
            DependencyChoice::Unknown(_) => None,
        }
    }

    /// The highest version, if that is withheld.
    pub(super) fn withheld(&self) -> Option<&str> {
        match self {
            DependencyChoice::Older { withheld, .. } | DependencyChoice::Held(withheld) => Some(withheld),
            DependencyChoice::Allowed(_) | DependencyChoice::Unknown(_) => None,
        }
    }
}

/// The text of a requirement as responses show it.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(TEXT).collect()
}

/// The package and the versions that a requirement of npm's means, which is declared for a name.
pub(super) fn npm<'a>(name: &'a str, text: &'a str) -> (&'a str, RequiredVersions) {
    let text = text.trim();
    let Some(alias) = text.strip_prefix("npm:") else { return (name, npm_versions(text)) };
    // The first sign may be the @ of a scope.
    let at = alias.char_indices().skip(1).find(|(_, sign)| *sign == '@').map(|(at, _)| at);
    match at {
        Some(at) => (&alias[..at], npm_versions(alias[at + 1..].trim())),
        None => (alias, npm_versions("")),
    }
}

fn npm_versions(text: &str) -> RequiredVersions {
    if text.len() > TEXT {
        return RequiredVersions::Unclear(NOT_UNDERSTOOD);
    }
    // npm installs its latest version where any will do.
    if matches!(text, "" | "*") {
        return RequiredVersions::Tag(LATEST.into());
    }
    if text.contains([':', '/', '\\']) || text.starts_with('.') {
        return RequiredVersions::Unclear(OF_NO_REGISTRY);
    }
    if let Ok(range) = nodejs_semver::Range::parse(text) {
        return RequiredVersions::Npm(range);
    }
    let is_tag = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte));
    if is_tag { RequiredVersions::Tag(text.into()) } else { RequiredVersions::Unclear(NOT_UNDERSTOOD) }
}

/// The versions that a requirement of cargo's means.
pub(super) fn cargo(text: &str) -> RequiredVersions {
    let parsed = Some(text).filter(|text| text.len() <= TEXT).and_then(|text| semver::VersionReq::parse(text).ok());
    parsed.map_or(RequiredVersions::Unclear(NOT_UNDERSTOOD), RequiredVersions::Cargo)
}

/// A requirement of Python's, taken apart.
pub(super) struct PythonRequirement<'a> {
    pub(super) name: &'a str,
    /// What it asks of the package beside its own requirements, with the brackets; empty without.
    pub(super) extras: &'a str,
    /// The versions that satisfy it; absent for a file at an address.
    specifiers: Option<&'a str>,
    /// Where it counts, such as on some systems or for an extra of the package that has it; empty for everywhere.
    pub(super) marker: &'a str,
}

/// Takes a requirement of Python's apart: `name[extras]specifiers; marker` or `name[extras] @ URL ; marker`.
pub(super) fn python(text: &str) -> PythonRequirement<'_> {
    let text = text.trim();
    let end = text.find(|sign: char| !sign.is_ascii_alphanumeric() && !"-_.".contains(sign)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let rest = rest.trim_start();
    let (extras, rest) = match rest.find(']').filter(|_| rest.starts_with('[')) {
        Some(end) => rest.split_at(end + 1),
        None => ("", rest),
    };
    let rest = rest.trim_start();
    if rest.starts_with('@') {
        // A semicolon is a sign of addresses, too, unless a space comes before it.
        let marker = rest.split_once(" ;").map_or("", |(_, marker)| marker.trim());
        return PythonRequirement { name, extras, specifiers: None, marker };
    }
    let (specifiers, marker) = rest.split_once(';').unwrap_or((rest, ""));
    PythonRequirement { name, extras, specifiers: Some(specifiers.trim()), marker: marker.trim() }
}

impl PythonRequirement<'_> {
    /// The versions that satisfy it.
    pub(super) fn versions(&self) -> RequiredVersions {
        let Some(text) = self.specifiers else { return RequiredVersions::Unclear(OF_NO_REGISTRY) };
        let bare = text.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(text).trim();
        let read = Some(bare).filter(|bare| bare.len() <= TEXT).and_then(|bare| match bare {
            "" => Some(VersionSpecifiers::empty()),
            bare => VersionSpecifiers::from_str(bare).ok(),
        });
        let read = read.filter(|specifiers| specifiers.len() <= SPECIFIERS);
        read.map_or(RequiredVersions::Unclear(NOT_UNDERSTOOD), RequiredVersions::Python)
    }
}

impl RequiredVersions {
    /// How many comparisons one version takes.
    pub(super) fn comparisons(&self) -> usize {
        match self {
            // A version is parsed, too.
            RequiredVersions::Python(specifiers) => specifiers.len() + 1,
            RequiredVersions::Npm(_) | RequiredVersions::Cargo(_) | RequiredVersions::Tag(_) => 1,
            RequiredVersions::Unclear(_) => 0,
        }
    }

    /// Whether it names a version of Python itself, which is installed also if it is yanked.
    fn is_pinned(&self) -> bool {
        let is_pin = |one: &VersionSpecifier| matches!(one.operator(), Operator::Equal | Operator::ExactEqual);
        matches!(self, RequiredVersions::Python(specifiers) if specifiers.iter().any(is_pin))
    }
}

/// Versions of Python that satisfy a requirement: pre-releases where it names one, or no release does.
fn satisfying_python<'a>(specifiers: &VersionSpecifiers, stored: &'a [StoredVersion]) -> Vec<&'a StoredVersion> {
    let parsed = stored.iter().filter_map(|stored| Some((stored, Version::from_str(&stored.version).ok()?)));
    let list: Vec<_> = parsed.filter(|(_, version)| specifiers.iter().all(|one| is_satisfied(one, version))).collect();
    let names_one = |one: &VersionSpecifier| {
        one.any_prerelease() && !matches!(one.operator(), Operator::NotEqual | Operator::NotEqualStar)
    };
    let takes_all = specifiers.iter().any(names_one) || list.iter().all(|(_, version)| version.any_prerelease());
    list.into_iter().filter(|(_, version)| takes_all || !version.any_prerelease()).map(|(stored, _)| stored).collect()
}

/// As the crate reads it, but for numbers that a version does not write, which are zero, and for pre-releases before another one.
fn is_satisfied(specifier: &VersionSpecifier, version: &Version) -> bool {
    let named = specifier.version();
    let number = |at: usize| version.release().get(at).copied().unwrap_or_default();
    let has_prefix = || {
        let mut numbers = named.release().iter().enumerate();
        version.epoch() == named.epoch() && numbers.all(|(at, wanted)| number(at) == *wanted)
    };
    match specifier.operator() {
        Operator::EqualStar => has_prefix(),
        Operator::NotEqualStar => !has_prefix(),
        Operator::LessThan if named.any_prerelease() => version < named,
        _ => specifier.contains(version),
    }
}

/// Chooses among versions, the highest first: those that satisfy a requirement, until one is served. npm takes its latest version
/// first, and those that are deprecated last.
pub(super) fn choose(
    versions: &RequiredVersions,
    (stored, tags): (&[StoredVersion], &BTreeMap<String, String>),
    mut is_withheld: impl FnMut(&StoredVersion) -> bool,
) -> DependencyChoice {
    let satisfying = match versions {
        RequiredVersions::Unclear(why) => return DependencyChoice::Unknown(why),
        RequiredVersions::Tag(tag) => tagged(tag, stored, tags),
        RequiredVersions::Npm(range) => {
            let is_satisfying =
                |text: &str| nodejs_semver::Version::parse(text).is_ok_and(|version| version.satisfies(range));
            let mut list = satisfying(stored, is_satisfying);
            let latest = tags.get(LATEST);
            list.sort_by_key(|version| (version.is_deprecated, Some(&version.version) != latest));
            list
        }
        RequiredVersions::Cargo(range) => {
            satisfying(stored, |text| semver::Version::parse(text).is_ok_and(|version| range.matches(&version)))
        }
        RequiredVersions::Python(specifiers) => satisfying_python(specifiers, stored),
    };
    let takes_yanked = versions.is_pinned() && satisfying.iter().all(|version| version.is_yanked);
    let mut there = satisfying.iter().filter(|version| takes_yanked || !version.is_yanked);
    let Some(highest) = there.next() else {
        let is_yanked = !satisfying.is_empty();
        let why = if is_yanked { "each version that satisfies it is yanked" } else { "no stored version satisfies it" };
        return DependencyChoice::Unknown(why);
    };
    if !is_withheld(highest) {
        return DependencyChoice::Allowed(highest.version.clone());
    }
    let withheld = highest.version.clone();
    match there.find(|version| !is_withheld(version)) {
        Some(chosen) => DependencyChoice::Older { chosen: chosen.version.clone(), withheld },
        None => DependencyChoice::Held(withheld),
    }
}

fn satisfying(stored: &[StoredVersion], is_satisfying: impl Fn(&str) -> bool) -> Vec<&StoredVersion> {
    stored.iter().filter(|version| is_satisfying(&version.version)).collect()
}

/// The version of a tag. In place of a `latest` that is withheld, package hosts show the highest release, or without one the highest
/// version: the others in that order.
fn tagged<'a>(tag: &str, stored: &'a [StoredVersion], tags: &BTreeMap<String, String>) -> Vec<&'a StoredVersion> {
    let named = tags.get(tag);
    let mut list: Vec<&StoredVersion> = stored.iter().filter(|version| Some(&version.version) == named).collect();
    if tag == LATEST {
        let is_prerelease = |text: &str| text.split('+').next().unwrap_or_default().contains('-');
        let others = stored.iter().filter(|version| Some(&version.version) != named);
        let (pre, releases): (Vec<_>, Vec<_>) = others.partition(|version| is_prerelease(&version.version));
        list.extend(releases.into_iter().chain(pre));
    }
    list
}

#[cfg(test)]
#[path = "requirement_tests.rs"]
mod tests;
