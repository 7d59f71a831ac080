//! The messages of the API as the neutral form of statements.

use bowline_contract::bowline::advisories::v1::ExportedAdvisory;
use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::advisory_event::Type;
use bowline_contract::v1::vulnerabilities::advisory_event::detection;
use bowline_feeds::{
    Advisory, Artifact, Assessment, Component, Detection, Event, FalsePositive, Micros, Provenance, Scan,
};
use prost_types::Timestamp;

fn micros(time: Timestamp) -> Micros {
    time.seconds.saturating_mul(1_000_000).saturating_add(i64::from(time.nanos / 1000))
}

/// Converts an advisory of a response.
///
/// # Errors
/// The server is newer than this program, and knows events that it does not.
pub(super) fn advisory(from: ExportedAdvisory) -> Result<Advisory, String> {
    let ExportedAdvisory { advisory, origins } = from;
    let advisory = advisory.unwrap_or_default();
    let mut origins = origins.into_iter();
    let mut events = Vec::with_capacity(advisory.events.len());
    for event in advisory.events {
        let origin = origins.next().unwrap_or_default();
        events.push(Event {
            at: event.timestamp.map(micros),
            assessment: assessment(&event).ok_or_else(|| {
                format!(
                    "the advisory {} has an event of an unknown kind; is this program older than the server?",
                    advisory.id
                )
            })?,
            author: event.author,
            provenance: Provenance { source: origin.source, licence: origin.licence },
        });
    }
    let mut advisory = Advisory {
        artifact: Artifact {
            kind: advisory.artifact_type,
            name: advisory.artifact_name,
            architecture: advisory.artifact_architecture,
        },
        component: Component {
            kind: advisory.component_type.unwrap_or_default(),
            name: advisory.component_name.unwrap_or_default(),
            location: advisory.component_location.unwrap_or_default(),
        },
        id: advisory.advisory_id,
        aliases: advisory.aliases,
        author: advisory.author,
        created: advisory.created_at.map(micros),
        updated: advisory.updated_at.map(micros),
        events,
    };
    advisory.sort();
    Ok(advisory)
}

fn assessment(event: &v1::AdvisoryEvent) -> Option<Assessment> {
    let assessment = match event.r#type.clone()? {
        Type::Detection(how) => Assessment::Detection(detection(how.r#type?)),
        Type::TruePositiveDetermination(said) => Assessment::TruePositive { note: said.note },
        Type::FalsePositiveDetermination(said) => {
            Assessment::FalsePositive { why: FalsePositive::from_number(said.r#type)?, note: said.note }
        }
        Type::Fixed(said) => Assessment::Fixed { version: said.fixed_version, note: said.note },
        Type::AnalysisNotPlanned(said) => Assessment::AnalysisNotPlanned { note: said.note },
        Type::FixNotPlanned(said) => Assessment::FixNotPlanned { note: said.note },
        Type::PendingUpstreamFix(said) => Assessment::PendingUpstreamFix { note: said.note },
        Type::Patched(said) => Assessment::Patched { versions: said.patched_versions, note: said.note },
        Type::ComponentLocationChanged(said) => {
            Assessment::ComponentMoved { from: said.previous_location, to: said.new_location, note: said.note }
        }
    };
    Some(assessment)
}

fn detection(how: detection::Type) -> Detection {
    match how {
        detection::Type::Manual(_) => Detection::Manual,
        detection::Type::Nvdapi(said) => Detection::Nvd { searched: said.cpe_searched, matched: said.cpe_found },
        detection::Type::Scanv1(scan) => Detection::Scan(Box::new(Scan {
            scanner: scan.scanner,
            scanner_version: scan.scanner_version,
            subpackage: scan.subpackage_name,
            component_id: scan.component_id,
            component_name: scan.component_name,
            component_version: scan.component_version,
            component_kind: scan.component_type,
            component_location: scan.component_location,
            artifact_version: scan.artifact_version,
            database_built: scan.grype_db_built,
            database_checksum: scan.grype_db_checksum,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::vex::convert;

    #[test]
    fn every_judgement_comes_back_as_it_was() {
        let note = || "note".to_owned();
        let scan = Scan { scanner: "grype".into(), database_checksum: "sum".into(), ..Scan::default() };
        let assessments = [
            Assessment::Detection(Detection::Manual),
            Assessment::Detection(Detection::Nvd { searched: "a".into(), matched: "b".into() }),
            Assessment::Detection(Detection::Scan(Box::new(scan))),
            Assessment::TruePositive { note: note() },
            Assessment::Fixed { version: "1".into(), note: note() },
            Assessment::AnalysisNotPlanned { note: note() },
            Assessment::FixNotPlanned { note: note() },
            Assessment::PendingUpstreamFix { note: note() },
            Assessment::Patched { versions: vec!["1".into(), "2".into()], note: note() },
            Assessment::ComponentMoved { from: "a".into(), to: "b".into(), note: note() },
        ];
        let whys = FalsePositive::ALL.map(|why| Assessment::FalsePositive { why, note: note() });
        let events = assessments.into_iter().chain(whys).enumerate().map(|(at, assessment)| Event {
            at: Some(at as i64 * 1_000_001),
            author: String::new(),
            assessment,
            provenance: Provenance::default(),
        });
        let before = Advisory {
            artifact: Artifact { kind: "apk".into(), name: "curl".into(), architecture: "x86_64".into() },
            component: Component { kind: "python".into(), name: "a".into(), location: String::new() },
            id: "BWL-2222-2222-2222".into(),
            aliases: vec!["CVE-2026-1".into()],
            events: events.collect(),
            ..Advisory::default()
        };
        let sent = ExportedAdvisory { advisory: Some(convert::advisory(&before, |_| true)), origins: Vec::new() };
        assert_eq!(advisory(sent), Ok(before));
    }
}
