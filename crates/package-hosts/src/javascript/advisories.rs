//! Records of vulnerabilities as npm's clients read them.

use std::collections::BTreeSet;

use bowline_authn::crypto::sha256;
use bowline_libraries::Language;
use bowline_osv::{Affected, Event, Package, Range, RangeKind, Rating, Record, Severity, SeverityKind, score};
use serde::{Deserialize, Serialize};

/// How reports of malware begin.
const MALWARE: &str = "MAL-";
const LANGUAGE: Language = Language::JavaScript;
/// The ecosystem, as records spell it.
pub(super) const ECOSYSTEM: &str = "npm";

/// What clients are told of a vulnerability of a package.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Advisory {
    /// Stands for the record: pnpm 12 passes over what has no number.
    pub(super) id: u64,
    /// Id of the record.
    #[serde(skip)]
    pub(super) record: String,
    pub(super) url: String,
    pub(super) title: String,
    /// `low`, `moderate`, `high` or `critical`.
    pub(super) severity: &'static str,
    /// The versions that it affects, as a range of npm.
    pub(super) vulnerable_versions: String,
    pub(super) cwe: Vec<String>,
    pub(super) cvss: Cvss,
    /// The versions that were asked for, and are affected.
    #[serde(skip)]
    pub(super) versions: BTreeSet<String>,
    /// The versions that are not affected any more, as a range of npm; `<0.0.0` if there are none.
    #[serde(skip)]
    pub(super) patched: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Cvss {
    pub(super) score: f64,
    #[serde(rename = "vectorString")]
    pub(super) vector: Option<String>,
}

/// What a database says in members of its own.
#[derive(Default, Deserialize)]
struct Extension {
    #[serde(default)]
    database_specific: Specific,
}

#[derive(Default, Deserialize)]
struct Specific {
    #[serde(default)]
    severity: Option<String>,
    #[serde(default)]
    cwe_ids: Vec<String>,
}

impl Advisory {
    /// Of a package, some versions of which a record affects; `body` is the record itself.
    pub(super) fn of(record: &Record, body: &[u8], name: &str, versions: &BTreeSet<String>) -> Advisory {
        // Members that are not as this database writes them say nothing.
        let specific = serde_json::from_slice::<Extension>(body).unwrap_or_default().database_specific;
        let affected = record.affected.iter().flat_map(|affected| &affected.severity);
        let vectors = record.severity.iter().chain(affected);
        let scored: Vec<(f64, &Severity)> =
            vectors.filter_map(|severity| Some((score(&severity.score)?, severity))).collect();
        let highest = |kind: Option<SeverityKind>| {
            let scored = scored.iter().filter(|(_, severity)| kind.is_none_or(|kind| severity.kind == kind));
            scored.max_by(|one, other| one.0.total_cmp(&other.0))
        };
        // Clients read vectors of version 3.
        let cvss = highest(Some(SeverityKind::CvssV3)).or_else(|| highest(Some(SeverityKind::CvssV4)));
        let severity = match (specific.severity.as_deref(), highest(None)) {
            _ if record.id.starts_with(MALWARE) => "critical",
            (Some("CRITICAL"), _) => "critical",
            (Some("HIGH"), _) => "high",
            (Some("MODERATE" | "MEDIUM"), _) => "moderate",
            (Some("LOW"), _) => "low",
            (_, Some((score, _))) => rated(Rating::of(*score)),
            // As clients take an advisory that says nothing.
            (_, None) => "high",
        };
        let link = |kind: &str| record.references.iter().find(|link| link.kind == kind || kind.is_empty());
        let title = if record.summary.is_empty() { &record.id } else { &record.summary };
        Advisory {
            id: number(&record.id),
            record: record.id.clone(),
            url: link("ADVISORY").or_else(|| link("")).map_or_else(|| record.id.clone(), |link| link.url.clone()),
            title: crate::fetching::line(title),
            severity,
            vulnerable_versions: range(record, name, versions),
            cwe: specific.cwe_ids,
            versions: versions.clone(),
            patched: patched(record, name),
            cvss: cvss
                .map(|(score, severity)| Cvss { score: *score, vector: Some(severity.score.clone()) })
                .unwrap_or_default(),
        }
    }
}

/// A number for an id, small enough for all readers of JSON.
fn number(id: &str) -> u64 {
    sha256(id.as_bytes())[..6].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn rated(rating: Rating) -> &'static str {
    match rating {
        Rating::Critical => "critical",
        Rating::High => "high",
        Rating::Medium => "moderate",
        Rating::Low | Rating::None => "low",
    }
}

/// The versions from the last fix on.
fn patched(record: &Record, name: &str) -> String {
    let fixed = |event: &Event| match event {
        Event::Fixed(version) => Some(version.clone()),
        Event::Introduced(_) | Event::LastAffected(_) | Event::Limit(_) => None,
    };
    let fixes = of_package(record, name).flat_map(|affected| &affected.ranges).flat_map(|range| &range.events);
    let last = fixes.filter_map(fixed).max_by_key(|version| LANGUAGE.order_key(version));
    last.map_or_else(|| "<0.0.0".into(), |version| format!(">={version}"))
}

/// What a record says of a package.
fn of_package<'a>(record: &'a Record, name: &str) -> impl Iterator<Item = &'a Affected> {
    let is_it = move |package: &Package| package.ecosystem == ECOSYSTEM && package.name == name;
    record.affected.iter().filter(move |affected| affected.package.as_ref().is_some_and(is_it))
}

/// The versions that a record affects. Versions that it names one by one, and that were asked for, are named so.
fn range(record: &Record, name: &str, versions: &BTreeSet<String>) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut add = |part: String| {
        if !parts.contains(&part) {
            parts.push(part);
        }
    };
    for affected in of_package(record, name) {
        affected.ranges.iter().filter(|range| range.kind != RangeKind::Git).flat_map(spans).for_each(&mut add);
        affected.versions.iter().filter(|version| versions.contains(*version)).cloned().for_each(&mut add);
    }
    if parts.is_empty() {
        parts.extend(versions.iter().cloned());
    }
    parts.join(" || ")
}

/// The spans of a range, from each version that introduces the vulnerability to the one that ends it.
fn spans(range: &Range) -> Vec<String> {
    let version = |event: &Event| match event {
        Event::Introduced(version) | Event::Fixed(version) | Event::LastAffected(version) | Event::Limit(version) => {
            if version == "0" {
                Vec::new()
            } else {
                LANGUAGE.order_key(version)
            }
        }
    };
    let mut events: Vec<&Event> = range.events.iter().collect();
    events.sort_by_cached_key(|event| version(event));
    let (mut spans, mut from): (Vec<String>, Option<String>) = (Vec::new(), None);
    for event in events {
        match event {
            Event::Introduced(version) if from.is_none() => from = Some(version.clone()),
            Event::Fixed(version) | Event::Limit(version) => {
                spans.extend(from.take().map(|from| span(&from, "<", version)));
            }
            Event::LastAffected(version) => spans.extend(from.take().map(|from| span(&from, "<=", version))),
            Event::Introduced(_) => {}
        }
    }
    spans.extend(from.map(|from| if from == "0" { ">=0.0.0-0".into() } else { format!(">={from}") }));
    spans
}

fn span(from: &str, sign: &str, to: &str) -> String {
    if from == "0" { format!("{sign}{to}") } else { format!(">={from} {sign}{to}") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn advisory(more: Value, asked: &[&str]) -> Advisory {
        let mut record = json!({
            "id": "GHSA-aaaa-bbbb-cccc", "modified": "2026-01-01T00:00:00Z", "summary": "It\nbreaks",
            "references": [{ "type": "WEB", "url": "https://w.example/" }, { "type": "ADVISORY", "url": "https://a.example/" }],
        });
        record.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let body = record.to_string().into_bytes();
        let record = bowline_osv::parse(&body).expect("a record").record;
        Advisory::of(&record, &body, "foo", &asked.iter().map(ToString::to_string).collect())
    }

    fn affected(events: Value) -> Value {
        json!({ "affected": [
            { "package": { "ecosystem": "npm", "name": "foo" }, "ranges": [{ "type": "SEMVER", "events": events }] },
            { "package": { "ecosystem": "npm", "name": "bar" }, "ranges": [{ "type": "SEMVER", "events": [{ "introduced": "7.0.0" }] }] },
        ] })
    }

    #[test]
    fn affected_versions_are_a_range() {
        for (events, wanted) in [
            (json!([{ "introduced": "0" }, { "fixed": "1.2.0" }]), "<1.2.0"),
            (json!([{ "introduced": "1.0.0" }, { "last_affected": "1.2.0" }]), ">=1.0.0 <=1.2.0"),
            (json!([{ "introduced": "1.0.0" }]), ">=1.0.0"),
            (json!([{ "introduced": "0" }]), ">=0.0.0-0"),
            (
                json!([{ "introduced": "2.0.0" }, { "fixed": "2.1.0" }, { "introduced": "0" }, { "fixed": "1.10.0" }]),
                "<1.10.0 || >=2.0.0 <2.1.0",
            ),
        ] {
            assert_eq!(advisory(affected(events.clone()), &["1.0.0"]).vulnerable_versions, wanted, "{events}");
        }
        let listed = json!({ "affected": [{ "package": { "ecosystem": "npm", "name": "foo" }, "versions": ["1.0.0", "1.0.1"] }] });
        assert_eq!(advisory(listed, &["1.0.1", "3.0.0"]).vulnerable_versions, "1.0.1");
    }

    const VERSION_4: &str = "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:H/VA:N/SC:N/SI:N/SA:N";

    #[test]
    fn severities_are_words_of_npm() {
        let vector = json!([{ "type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H" }]);
        for (more, wanted) in [
            (
                json!({ "database_specific": { "severity": "MODERATE", "cwe_ids": ["CWE-79"] }, "severity": vector }),
                "moderate",
            ),
            (json!({ "severity": vector }), "critical"),
            (json!({ "severity": [{ "type": "CVSS_V4", "score": VERSION_4 }] }), "high"),
            (json!({ "id": "MAL-2026-1" }), "critical"),
            (json!({ "database_specific": { "severity": 7 } }), "high"),
            (json!({}), "high"),
        ] {
            assert_eq!(advisory(more.clone(), &[]).severity, wanted, "{more}");
        }
        let first = advisory(json!({ "database_specific": { "cwe_ids": ["CWE-79"] }, "severity": vector }), &[]);
        assert_eq!((first.title.as_str(), first.url.as_str()), ("It breaks", "https://a.example/"));
        assert_eq!((first.cwe, first.cvss.score), (vec!["CWE-79".to_owned()], 9.8));
        let both = json!([{ "type": "CVSS_V4", "score": VERSION_4 }, vector[0]]);
        let oldest = advisory(json!({ "severity": both }), &[]).cvss;
        assert_eq!(oldest.vector.as_deref(), vector[0]["score"].as_str(), "clients read version 3");
        let newest = advisory(json!({ "severity": [both[0]] }), &[]).cvss;
        assert_eq!((newest.score, newest.vector.as_deref()), (8.7, Some(VERSION_4)));
    }
}
