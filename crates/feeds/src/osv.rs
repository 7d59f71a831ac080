//! Records in the shape of OSV: one for each advisory that says which versions are affected.

use bowline_core::rfc3339::{self, Digits};

use crate::model::{Advisory, Assessment};
use crate::problem::Problems;
use crate::subject::Subject;
use crate::tree::{Node, non_empty_text};
use crate::vex::describe;

/// What a database of records says of itself.
#[derive(Clone, Debug, Default)]
pub struct Osv {
    /// Ecosystem of the packages of the kind `apk`; empty if such are to be left out.
    pub ecosystem: String,
    /// Distribution in their package URLs; empty for none.
    pub distribution: String,
}

/// An ecosystem's name that is a host's too.
const RUST: &str = concat!("crates", ".io");

/// Types of package URLs, and the ecosystems that they belong to.
const ECOSYSTEMS: [(&str, &str); 9] = [
    ("pypi", "PyPI"),
    ("npm", "npm"),
    ("maven", "Maven"),
    ("golang", "Go"),
    ("cargo", RUST),
    ("gem", "RubyGems"),
    ("composer", "Packagist"),
    ("nuget", "NuGet"),
    ("hex", "Hex"),
];

/// What a record is called and which ecosystem it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordName {
    /// The advisory's own id.
    pub id: String,
    /// Its ecosystem, such as `PyPI`.
    pub ecosystem: String,
    /// When it last changed, as RFC 3339.
    pub modified: String,
    /// The record: one line of JSON, members in the order of their names.
    pub bytes: Vec<u8>,
}

impl Osv {
    /// The record of an advisory; none where nothing is known to be affected.
    pub fn record(&self, advisory: &Advisory, problems: &mut Problems) -> Option<RecordName> {
        let position = describe(advisory);
        match self.written(advisory) {
            Ok(record) => {
                if advisory.latest().is_some_and(|event| matches!(&event.assessment, Assessment::Patched { .. })) {
                    problems.reduce(position, "that upstream's version is affected is not said");
                }
                Some(record)
            }
            Err(reason) => {
                problems.skip(position, reason);
                None
            }
        }
    }

    fn written(&self, advisory: &Advisory) -> Result<RecordName, String> {
        if advisory.id.is_empty() {
            return Err("the advisory has no id of its own".into());
        }
        let event = advisory.latest().ok_or("there is no statement")?;
        let (fixed, note) = match &event.assessment {
            Assessment::Fixed { version, note } => (Some(version.clone()), note),
            Assessment::Patched { versions, note } if versions.len() == 1 => (versions.first().cloned(), note),
            Assessment::TruePositive { note }
            | Assessment::FixNotPlanned { note }
            | Assessment::PendingUpstreamFix { note } => (None, note),
            Assessment::FalsePositive { .. } => return Err("nothing is affected, and records say only what is".into()),
            Assessment::Patched { .. } => return Err("several versions are patched, and a range has one end".into()),
            _ => return Err("it is not known yet whether anything is affected".into()),
        };
        if fixed.as_deref() == Some("") {
            return Err("it is fixed, and no version is said".into());
        }
        let published = advisory.events.iter().filter_map(|event| event.at).min();
        let published = [published, advisory.created].into_iter().flatten().min();
        let modified = event.at.max(advisory.updated).ok_or("there is no time")?;
        let (ecosystem, affected) = self.affected(advisory, fixed)?;
        let record = Node::map([
            ("schema_version", Some(Node::text("1.7.0"))),
            ("id", Some(Node::text(&advisory.id))),
            ("modified", Some(Node::time(modified))),
            ("published", published.map(Node::time)),
            ("aliases", (!advisory.aliases.is_empty()).then(|| Node::texts(&advisory.aliases))),
            ("details", non_empty_text(note)),
            ("affected", Some(Node::List(vec![affected]))),
        ]);
        // What readers of records refuse is nothing to publish.
        let parsed = bowline_osv::parse(&record.to_json())?;
        let modified = rfc3339::text(modified, Digits::Fewest);
        Ok(RecordName { id: advisory.id.clone(), ecosystem, modified, bytes: parsed.canonical })
    }

    fn affected(&self, advisory: &Advisory, fixed: Option<String>) -> Result<(String, Node), String> {
        let subject = advisory.subject();
        let purl = subject.artifact_purl("", &self.distribution)?;
        let known = ECOSYSTEMS.iter().find(|(kind, _)| *kind == purl.kind).map(|(_, ecosystem)| *ecosystem);
        let ecosystem = match (known, advisory.artifact.kind.as_str()) {
            (Some(ecosystem), _) => ecosystem.to_owned(),
            (None, "apk") if !self.ecosystem.is_empty() => self.ecosystem.clone(),
            (None, kind) => return Err(format!("what is of the kind {kind} belongs to no ecosystem")),
        };
        let event = |name: &str, version: &str| Node::map([(name, Some(Node::text(version)))]);
        let mut events = vec![event("introduced", "0")];
        events.extend(fixed.map(|version| event("fixed", &version)));
        let range = Node::map([("type", Some(Node::text("ECOSYSTEM"))), ("events", Some(Node::List(events)))]);
        let package = Node::map([
            ("ecosystem", Some(Node::text(&ecosystem))),
            ("name", Some(Node::text(&advisory.artifact.name))),
            ("purl", Some(Node::text(purl.to_string()))),
        ]);
        let affected = Node::map([
            ("package", Some(package)),
            ("ranges", Some(Node::List(vec![range]))),
            ("ecosystem_specific", part(&subject)),
        ]);
        Ok((ecosystem, affected))
    }
}

/// Which part of the package is concerned.
fn part(subject: &Subject) -> Option<Node> {
    let component = &subject.component;
    if component.is_empty() {
        return None;
    }
    let part = Node::map([
        ("type", non_empty_text(&component.kind)),
        ("name", non_empty_text(&component.name)),
        ("location", non_empty_text(&component.location)),
    ]);
    Some(Node::map([("components", Some(Node::List(vec![part])))]))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::model::{Artifact, Component, Event, FalsePositive, Provenance};

    fn advisory(assessment: Assessment) -> Advisory {
        let event = Event { at: Some(0), author: String::new(), assessment, provenance: Provenance::default() };
        Advisory {
            artifact: Artifact { kind: "library".into(), name: "urllib3".into(), architecture: String::new() },
            component: Component { kind: "python".into(), name: "urllib3".into(), location: String::new() },
            id: "BWL-2222-2222-2222".into(),
            aliases: vec!["CVE-2026-1".into()],
            events: vec![event],
            ..Advisory::default()
        }
    }

    #[test]
    fn a_record_says_which_versions_are_affected_and_nothing_else_is_one() {
        let (osv, mut problems) = (Osv::default(), Problems::default());
        let note = String::new;
        let fixed = advisory(Assessment::Fixed { version: "2.0".into(), note: note() });
        let record = osv.record(&fixed, &mut problems).expect("a record");
        assert_eq!((record.ecosystem.as_str(), record.modified.as_str()), ("PyPI", "1970-01-01T00:00:00Z"));
        let read = bowline_osv::parse(&record.bytes).expect("a record").record;
        let events = [bowline_osv::Event::Introduced("0".into()), bowline_osv::Event::Fixed("2.0".into())];
        assert_eq!((read.affected[0].ranges[0].events.as_slice(), read.aliases.len()), (&events[..], 1));
        let open = osv.record(&advisory(Assessment::TruePositive { note: note() }), &mut problems).expect("a record");
        assert!(!String::from_utf8_lossy(&open.bytes).contains("fixed"));
        assert!(problems.is_empty());
        let why = FalsePositive::Mitigated;
        for assessment in [
            Assessment::FalsePositive { why, note: note() },
            Assessment::AnalysisNotPlanned { note: note() },
            Assessment::Patched { versions: vec!["1".into(), "2".into()], note: note() },
        ] {
            assert_eq!(osv.record(&advisory(assessment), &mut problems), None);
        }
        assert_eq!(problems.skipped(), 3);
    }
}
