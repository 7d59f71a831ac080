//! What a query by package needs of a record, written so that matching reads it in place.
//!
//! Each line begins with its kind. `e` begins an entry and names its ecosystem, releases included; `v` is a single
//! version; `S` and `E` begin a range, ordered as semantic versions or as the ecosystem does; `i`, `f`, `l` and `t`
//! are its events. Texts have no line breaks: `crate::parse` refused them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use bowline_versions::{Scheme, Version};

use crate::package::{PackageKey, base_ecosystem};
use crate::record::{Event, Range, RangeKind, Record};

/// What a record says of one package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affects {
    pub package: PackageKey,
    /// Versions and ranges, encoded.
    pub ranges: String,
}

impl Affects {
    /// What a record says, by package; of one that was withdrawn, nothing.
    pub fn of(record: &Record) -> Vec<Affects> {
        let mut packages: BTreeMap<PackageKey, String> = BTreeMap::new();
        if record.withdrawn.is_some() {
            return Vec::new();
        }
        for affected in &record.affected {
            let Some(package) = &affected.package else { continue };
            let out = packages.entry(PackageKey::new(&package.ecosystem, &package.name)).or_default();
            line(out, 'e', &package.ecosystem);
            affected.versions.iter().for_each(|version| line(out, 'v', version));
            affected.ranges.iter().for_each(|range| range_lines(out, range));
        }
        packages.into_iter().map(|(package, ranges)| Affects { package, ranges }).collect()
    }

    /// A single range of an ecosystem, encoded alike; what was encoded apart may be joined.
    pub fn range(ecosystem: &str, range: &Range) -> String {
        let mut out = String::new();
        line(&mut out, 'e', ecosystem);
        range_lines(&mut out, range);
        out
    }
}

fn range_lines(out: &mut String, range: &Range) {
    match range.kind {
        RangeKind::Semver => line(out, 'S', ""),
        RangeKind::Ecosystem => line(out, 'E', ""),
        // Without the commits of the repository nothing can be said.
        RangeKind::Git => return,
    }
    range.events.iter().for_each(|event| event_line(out, event));
}

fn line(out: &mut String, kind: char, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{kind}{text}");
}

fn event_line(out: &mut String, event: &Event) {
    match event {
        Event::Introduced(version) => line(out, 'i', version),
        Event::Fixed(version) => line(out, 'f', version),
        Event::LastAffected(version) => line(out, 'l', version),
        Event::Limit(version) => line(out, 't', version),
    }
}

/// A query: an ecosystem, and a version or every version.
pub struct VersionQuery<'a> {
    ecosystem: &'a str,
    scheme: Scheme,
    version: Option<ParsedVersion<'a>>,
}

struct ParsedVersion<'a> {
    text: &'a str,
    /// As the ecosystem reads it; nothing if it is no version there.
    read: Option<Version>,
    semantic: Option<Version>,
}

impl<'a> VersionQuery<'a> {
    /// Reads the version once, for all records that it is held against.
    pub fn new(ecosystem: &'a str, version: Option<&'a str>) -> VersionQuery<'a> {
        let scheme = Scheme::of_ecosystem(ecosystem);
        let version = version.map(|text| ParsedVersion {
            text,
            read: Version::parse(scheme, text).ok(),
            semantic: Version::parse(Scheme::SemVer, text).ok(),
        });
        VersionQuery { ecosystem, scheme, version }
    }

    /// Whether encoded ranges hold the version. Without a version every entry does; without a release in the ecosystem,
    /// entries of every release count.
    pub fn is_in(&self, ranges: &str) -> bool {
        let mut entry = Entry { query: self, applies: false, range: None };
        ranges.lines().any(|text| entry.read(text)) || entry.end_of_range()
    }

    /// The lowest version above the query's that encoded ranges name as fixed.
    pub fn fixed_in<'r>(&self, ranges: &'r str) -> Option<&'r str> {
        let version = self.version.as_ref()?;
        let (mut applies, mut range) = (false, None);
        let mut lowest: Option<(Version, &str)> = None;
        for (kind, value) in ranges.lines().filter_map(|text| text.split_at_checked(1)) {
            match kind {
                "e" => (applies, range) = (self.applies_to(value), None),
                "S" => range = version.semantic.as_ref(),
                "E" => range = version.read.as_ref(),
                "f" if applies => {
                    let Some(own) = range else { continue };
                    let Ok(at) = Version::parse(own.scheme(), value) else { continue };
                    if at > *own && lowest.as_ref().is_none_or(|(known, _)| at < *known) {
                        lowest = Some((at, value));
                    }
                }
                _ => {}
            }
        }
        lowest.map(|(_, text)| text)
    }

    /// Releases of a distribution are distinguished only if both name one. A release has variants: `Ubuntu:22.04` has
    /// `Ubuntu:22.04:LTS`, and `Red Hat:enterprise_linux:9` what its repositories have.
    fn applies_to(&self, entry: &str) -> bool {
        let Some((base, release)) = self.ecosystem.split_once(':') else {
            return base_ecosystem(entry).eq_ignore_ascii_case(self.ecosystem);
        };
        let (entry_base, entry_release) = entry.split_once(':').unwrap_or((entry, ""));
        let is_variant = |own: &str| own.eq_ignore_ascii_case(release);
        base.eq_ignore_ascii_case(entry_base)
            && (entry_release.is_empty()
                || is_variant(entry_release)
                || entry_release.get(..release.len()).is_some_and(is_variant)
                    && entry_release[release.len()..].starts_with(':'))
    }
}

/// The entry that is being read.
struct Entry<'a> {
    query: &'a VersionQuery<'a>,
    applies: bool,
    range: Option<Reading<'a>>,
}

impl<'a> Entry<'a> {
    /// Returns true as soon as the version is affected.
    fn read(&mut self, text: &'a str) -> bool {
        let Some((kind, value)) = text.split_at_checked(1) else { return false };
        match (kind, &self.query.version) {
            ("e", version) => {
                let before = self.end_of_range();
                self.applies = self.query.applies_to(value);
                return before || (self.applies && version.is_none());
            }
            (_, None) => return false,
            _ if !self.applies => return false,
            ("v", Some(version)) => return version.is(value, self.query.scheme),
            ("S" | "E", Some(version)) => {
                let before = self.end_of_range();
                self.range = Some(match kind {
                    "S" => Reading::new(Scheme::SemVer, version.semantic.as_ref()),
                    _ => Reading::new(self.query.scheme, version.read.as_ref()),
                });
                return before;
            }
            (kind, Some(_)) => {
                if let Some(range) = &mut self.range {
                    range.event(kind, value);
                }
            }
        }
        false
    }

    fn end_of_range(&mut self) -> bool {
        self.range.take().is_some_and(|range| range.affected())
    }
}

impl ParsedVersion<'_> {
    /// The same version, spelled alike or not.
    fn is(&self, listed: &str, scheme: Scheme) -> bool {
        // Spellings of one version differ in zeros and signs: reading every listed version would take far longer.
        fn digits(text: &str) -> impl Iterator<Item = u8> {
            text.bytes().filter(|byte| matches!(byte, b'1'..=b'9'))
        }
        listed == self.text
            || self.read.is_some()
                && digits(listed).eq(digits(self.text))
                && Version::parse(scheme, listed).ok().as_ref() == self.read.as_ref()
    }
}

/// A range that is being read: the last event, in the order of versions, that the version has behind it.
struct Reading<'a> {
    scheme: Scheme,
    version: Option<&'a Version>,
    last: Option<Last>,
    limited: bool,
    within: bool,
    unordered: bool,
}

/// An event; the beginning of all versions has no version.
struct Last {
    at: Option<Version>,
    begins: bool,
}

impl<'a> Reading<'a> {
    fn new(scheme: Scheme, version: Option<&'a Version>) -> Reading<'a> {
        Reading { scheme, version, last: None, limited: false, within: false, unordered: false }
    }

    fn event(&mut self, kind: &str, at: &str) {
        if kind == "i" && at == "0" {
            self.last.get_or_insert(Last { at: None, begins: true });
            return;
        }
        if kind == "t" && at == "*" {
            (self.limited, self.within) = (true, true);
            return;
        }
        let (Some(version), Ok(at)) = (self.version, Version::parse(self.scheme, at)) else {
            self.unordered = true;
            return;
        };
        let relation = version.cmp(&at);
        match kind {
            "t" => {
                self.limited = true;
                self.within |= relation == Ordering::Less;
            }
            "l" if relation == Ordering::Greater => self.take(at, false),
            "i" | "f" if relation != Ordering::Less => self.take(at, kind == "i"),
            _ => {}
        }
    }

    /// Of two events at one version the one that ends the range counts.
    fn take(&mut self, at: Version, begins: bool) {
        let later = match &self.last {
            None | Some(Last { at: None, .. }) => true,
            Some(Last { at: Some(last), .. }) => at > *last || at == *last && !begins,
        };
        if later {
            self.last = Some(Last { at: Some(at), begins });
        }
    }

    /// A range with an event that cannot be compared says nothing.
    fn affected(&self) -> bool {
        !self.unordered && (self.within || !self.limited) && self.last.as_ref().is_some_and(|last| last.begins)
    }
}

#[cfg(test)]
#[path = "affects_tests.rs"]
mod tests;
