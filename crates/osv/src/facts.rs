//! What people read of a record, taken from its stored bytes without checking the rest again.

use std::borrow::Cow;

use serde::Deserialize;

/// The parts of a record that describe it.
#[derive(Debug, Default, Deserialize)]
pub struct Facts<'a> {
    #[serde(borrow, default)]
    pub summary: Cow<'a, str>,
    #[serde(borrow, default)]
    pub details: Cow<'a, str>,
    /// Severities of the vulnerability.
    #[serde(borrow, default)]
    pub severity: Vec<Rated<'a>>,
    #[serde(borrow, default)]
    pub references: Vec<Link<'a>>,
    /// What is affected; its severities count where the vulnerability has none of its own.
    #[serde(borrow, default)]
    affected: Vec<AffectedSeverity<'a>>,
}

/// A severity: scale and vector.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Rated<'a> {
    /// The schema's name of the scale.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub score: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
pub struct Link<'a> {
    /// The schema's word for what it is.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub url: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct AffectedSeverity<'a> {
    #[serde(borrow, default)]
    severity: Option<Vec<Rated<'a>>>,
}

impl<'a> Facts<'a> {
    /// Reads them from the canonical form.
    pub fn read(canonical: &'a [u8]) -> Result<Facts<'a>, serde_json::Error> {
        serde_json::from_slice(canonical)
    }

    /// The severities of the vulnerability; of one that has them by package only, each of those once.
    pub fn severities(&self) -> Vec<&Rated<'a>> {
        if !self.severity.is_empty() {
            return self.severity.iter().collect();
        }
        let mut all: Vec<&Rated<'a>> = Vec::new();
        for rated in self.affected.iter().filter_map(|affected| affected.severity.as_ref()).flatten() {
            if !all.contains(&rated) {
                all.push(rated);
            }
        }
        all
    }
}

/// The ids in a record besides its own.
#[derive(Debug, Default, Deserialize)]
pub struct OtherIds {
    /// Ids of the same vulnerability in other databases.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Ids of the vulnerabilities upstream that the record comes from.
    #[serde(default)]
    pub upstream: Vec<String>,
}

impl OtherIds {
    /// Reads them from the canonical form.
    pub fn read(canonical: &[u8]) -> Result<OtherIds, serde_json::Error> {
        serde_json::from_slice(canonical)
    }

    /// The CVE id of the vulnerability that the record `id` is about: its own, the first one among the aliases, or the one
    /// upstream. A record about several CVEs upstream, or about none, is known by its own id.
    pub fn vulnerability<'a>(&'a self, id: &'a str) -> &'a str {
        let is_cve = |id: &&str| id.starts_with("CVE-");
        if let Some(cve) = [id].into_iter().chain(self.aliases.iter().map(String::as_str)).filter(is_cve).min() {
            return if is_cve(&id) { id } else { cve };
        }
        let mut upstream = self.upstream.iter().map(String::as_str).filter(is_cve);
        match (upstream.next(), upstream.next()) {
            (Some(cve), None) => cve,
            _ => id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vulnerability_has_its_cve_id_where_the_record_names_one() {
        let ids = |aliases: &[&str], upstream: &[&str]| OtherIds {
            aliases: aliases.iter().map(ToString::to_string).collect(),
            upstream: upstream.iter().map(ToString::to_string).collect(),
        };
        for (id, others, expected) in [
            ("CVE-2026-3", ids(&["CVE-2026-1", "GHSA-1"], &[]), "CVE-2026-3"),
            ("GHSA-1", ids(&["PYSEC-1", "CVE-2026-2", "CVE-2026-1"], &["CVE-2026-0"]), "CVE-2026-1"),
            ("DEBIAN-CVE-2026-1", ids(&[], &["CVE-2026-1"]), "CVE-2026-1"),
            ("DSA-1", ids(&[], &["CVE-2026-1", "CVE-2026-2"]), "DSA-1"),
            ("PYSEC-1", ids(&["GHSA-1"], &[]), "PYSEC-1"),
        ] {
            assert_eq!(others.vulnerability(id), expected, "{id}");
        }
        let read = OtherIds::read(br#"{"id":"A","aliases":["B"],"details":"x"}"#).unwrap();
        assert_eq!((read.aliases, read.upstream.len()), (vec!["B".to_owned()], 0));
    }
}
