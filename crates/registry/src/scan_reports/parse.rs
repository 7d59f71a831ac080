//! The common result of parsing reports of scanners. Everything in it is bounded; the rest of a report stays
//! in the report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

use bowline_contract::v1::registry::vulnerability::{Severity, fix};
use bowline_core::Micros;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::bounds::{Few, Text};
use crate::content::is_digest;

/// Maximum number of findings of one report.
pub(super) const MAX_FINDINGS: usize = 50_000;
/// Maximum bytes of the texts of all findings: what a report says once of many packages, each of them has.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of elements of a list of a finding.
pub(super) const MAX_ELEMENTS: usize = 50;

/// A name, a version or an address.
pub(super) type Short = Text<2048>;
pub(super) type Long = Text<8192>;
/// A list of a finding.
pub(super) type Shorts = Few<Short, MAX_ELEMENTS>;

/// One vulnerability of one package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub id: String,
    pub aliases: Vec<String>,
    /// Number of the wire contract's severity.
    pub severity: i32,
    pub package: String,
    pub version: String,
    pub package_type: String,
    pub purl: String,
    pub location: String,
    pub fixed_versions: Vec<String>,
    /// Number of the wire contract's state of a fix.
    pub fix_state: i32,
    pub description: String,
    pub references: Vec<String>,
    /// One for each version of the scale. Reports that were stored before they were read have none.
    #[serde(default)]
    pub ratings: Vec<Rating>,
    /// Since when there is a fix, or else since when the vulnerability is public, in microseconds since the epoch, as far as
    /// the report says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix_since: Option<Micros>,
}

/// A rating on the scale of CVSS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rating {
    /// From 0.0 to 10.0.
    pub score: String,
    /// Version of the scale.
    pub version: String,
}

/// The first rating on each version of the scale; what is no score, or of no version, is left out.
pub(super) fn ratings<'a>(given: impl IntoIterator<Item = (Option<f64>, &'a str)>) -> Vec<Rating> {
    let mut ratings: Vec<Rating> = Vec::new();
    for (score, version) in given {
        let is_version = version.len() < 8 && version.starts_with(|c: char| c.is_ascii_digit());
        let is_known = ratings.iter().any(|known| known.version == version);
        if let Some(score) = score.filter(|score| (0.0..=10.0).contains(score) && is_version && !is_known) {
            ratings.push(Rating { score: format!("{score:.1}"), version: version.to_owned() });
        }
    }
    ratings
}

#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) scanner_version: String,
    /// As RFC 3339, empty where the report does not say.
    pub(super) database_built: String,
    /// Digests of the image that was scanned, as manifest, index or config; none where the report names none.
    pub(super) scanned: Vec<String>,
    pub(super) findings: Vec<Finding>,
}

/// The digests among what reports call an image: `sha256:...`, or a name with `@sha256:...`.
pub(super) fn digests(named: impl IntoIterator<Item = Short>) -> Vec<String> {
    let digest = |named: Short| named.0.rsplit('@').next().map(str::to_owned);
    named.into_iter().filter_map(digest).filter(|digest| is_digest(digest)).collect()
}

impl Report {
    /// The ids by severity, each once, under its highest.
    pub(super) fn summary(&self) -> BTreeMap<i32, BTreeSet<&str>> {
        let mut highest: BTreeMap<&str, i32> = BTreeMap::new();
        for finding in &self.findings {
            let known = highest.entry(&finding.id).or_insert(finding.severity);
            if rank(finding.severity) > rank(*known) {
                *known = finding.severity;
            }
        }
        let mut summary: BTreeMap<i32, BTreeSet<&str>> = BTreeMap::new();
        for (id, severity) in highest {
            summary.entry(severity).or_default().insert(id);
        }
        summary
    }
}

/// A date, or a time in RFC 3339; absent for other texts.
pub(super) fn time(text: &str) -> Option<Micros> {
    let midnight = if text.len() == "2006-01-02".len() { "T00:00:00Z" } else { "" };
    format!("{text}{midnight}").parse().ok().map(bowline_resources::list::micros)
}

/// How severe: the numbers of the wire are in no order.
pub fn rank(severity: i32) -> i32 {
    match Severity::try_from(severity) {
        Ok(Severity::Critical) => 5,
        Ok(Severity::High) => 4,
        Ok(Severity::Medium) => 3,
        Ok(Severity::Low) => 2,
        Ok(Severity::Negligible) => 1,
        Ok(Severity::Unknown) | Err(_) => 0,
    }
}

/// The severity, in the words of either scanner.
pub(super) fn severity(text: &str) -> i32 {
    let severity = match text.to_ascii_lowercase().as_str() {
        "critical" => Severity::Critical,
        "high" => Severity::High,
        "medium" => Severity::Medium,
        "low" => Severity::Low,
        "negligible" => Severity::Negligible,
        _ => Severity::Unknown,
    };
    severity as i32
}

/// The first of some texts, without those that say nothing.
pub(super) fn few(texts: impl IntoIterator<Item = Short>) -> Vec<String> {
    texts.into_iter().map(|text| text.0).filter(|text| !text.is_empty()).take(MAX_ELEMENTS).collect()
}

/// The state of a fix, in the words of either scanner.
pub(super) fn state(text: &str) -> i32 {
    let state = match text.replace('_', "-").as_str() {
        "fixed" => fix::State::Fixed,
        "not-fixed" | "affected" | "fix-deferred" => fix::State::NotFixed,
        "wont-fix" | "will-not-fix" | "end-of-life" => fix::State::WontFix,
        _ => fix::State::Unknown,
    };
    state as i32
}

/// A part of a report that has findings.
pub(super) trait Part {
    fn add_to(self, findings: &mut Findings) -> Result<(), String>;
}

/// Findings while they are collected.
#[derive(Default)]
pub(super) struct Findings {
    all: Vec<Finding>,
    bytes: usize,
}

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) -> Result<(), String> {
        if finding.id.is_empty() {
            return Err("a finding has no id".into());
        }
        self.bytes += finding.bytes();
        if self.all.len() == MAX_FINDINGS || self.bytes > MAX_BYTES {
            return Err(format!("at most {MAX_FINDINGS} findings, with {MAX_BYTES} bytes, are stored"));
        }
        self.all.push(finding);
        Ok(())
    }
}

impl Finding {
    /// Whether a version or the state says that it is fixed somewhere.
    pub(crate) fn has_fix(&self) -> bool {
        !self.fixed_versions.is_empty() || self.fix_state == fix::State::Fixed as i32
    }

    fn bytes(&self) -> usize {
        let texts = [&self.id, &self.package, &self.version, &self.package_type, &self.purl, &self.location];
        let lists = [&self.aliases, &self.fixed_versions, &self.references];
        let texts = texts.into_iter().chain([&self.description]).chain(lists.into_iter().flatten());
        texts.map(String::len).sum()
    }
}

/// A list of parts, of which only the findings stay in memory.
pub(super) struct Parts<T> {
    pub(super) findings: Vec<Finding>,
    parts: PhantomData<T>,
}

impl<T> Default for Parts<T> {
    fn default() -> Parts<T> {
        Parts { findings: Vec::new(), parts: PhantomData }
    }
}

impl<'de, T: Part + Deserialize<'de>> Deserialize<'de> for Parts<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parts<T>, D::Error> {
        deserializer.deserialize_any(PartsVisitor(PhantomData))
    }
}

struct PartsVisitor<T>(PhantomData<T>);

impl<'de, T: Part + Deserialize<'de>> Visitor<'de> for PartsVisitor<T> {
    type Value = Parts<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Parts<T>, E> {
        Ok(Parts::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Parts<T>, A::Error> {
        let mut findings = Findings::default();
        while let Some(part) = list.next_element::<T>()? {
            part.add_to(&mut findings).map_err(A::Error::custom)?;
        }
        Ok(Parts { findings: findings.all, parts: PhantomData })
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
