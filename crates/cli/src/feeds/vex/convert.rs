//! The neutral form of statements as the messages of the API.

use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::advisory_event as kinds;
use bowline_contract::v1::vulnerabilities::advisory_event::Type;
use bowline_contract::v1::vulnerabilities::advisory_event::detection::{self, Manual, Nvdapi, ScanV1};
use bowline_feeds::{Advisory, Assessment, Detection, Event, Micros, Scan};
use prost_types::Timestamp;

/// An advisory with those of its events that `wanted` picks, as a request brings it.
pub(super) fn advisory(from: &Advisory, wanted: impl Fn(&Event) -> bool) -> v1::Advisory {
    let filled = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    v1::Advisory {
        artifact_type: from.artifact.kind.clone(),
        artifact_name: from.artifact.name.clone(),
        artifact_architecture: from.artifact.architecture.clone(),
        component_name: filled(&from.component.name),
        component_location: filled(&from.component.location),
        component_type: filled(&from.component.kind),
        aliases: from.aliases.clone(),
        advisory_id: from.id.clone(),
        events: from.events.iter().filter(|event| wanted(event)).map(event).collect(),
        ..v1::Advisory::default()
    }
}

/// A time of the wire.
pub(super) fn timestamp(at: Micros) -> Timestamp {
    Timestamp {
        seconds: at.div_euclid(1_000_000),
        nanos: i32::try_from(at.rem_euclid(1_000_000) * 1000).unwrap_or_default(),
    }
}

fn event(from: &Event) -> v1::AdvisoryEvent {
    v1::AdvisoryEvent {
        timestamp: from.at.map(timestamp),
        r#type: Some(kind(from.assessment.clone())),
        ..v1::AdvisoryEvent::default()
    }
}

fn kind(assessment: Assessment) -> Type {
    match assessment {
        Assessment::Detection(how) => Type::Detection(kinds::Detection { r#type: Some(detected(how)) }),
        Assessment::TruePositive { note } => Type::TruePositiveDetermination(kinds::TruePositiveDetermination { note }),
        Assessment::FalsePositive { why, note } => {
            Type::FalsePositiveDetermination(kinds::FalsePositiveDetermination { r#type: why as i32, note })
        }
        Assessment::Fixed { version, note } => {
            Type::Fixed(kinds::Fixed { fixed_version: version, note, ..kinds::Fixed::default() })
        }
        Assessment::AnalysisNotPlanned { note } => Type::AnalysisNotPlanned(kinds::AnalysisNotPlanned { note }),
        Assessment::FixNotPlanned { note } => Type::FixNotPlanned(kinds::FixNotPlanned { note }),
        Assessment::PendingUpstreamFix { note } => Type::PendingUpstreamFix(kinds::PendingUpstreamFix { note }),
        Assessment::Patched { versions, note } => Type::Patched(kinds::Patched { patched_versions: versions, note }),
        Assessment::ComponentMoved { from, to, note } => {
            Type::ComponentLocationChanged(kinds::ComponentLocationChanged {
                previous_location: from,
                new_location: to,
                note,
            })
        }
    }
}

fn detected(how: Detection) -> detection::Type {
    match how {
        Detection::Manual => detection::Type::Manual(Manual {}),
        Detection::Nvd { searched, matched: found } => {
            detection::Type::Nvdapi(Nvdapi { cpe_searched: searched, cpe_found: found })
        }
        Detection::Scan(scan) => detection::Type::Scanv1(scanned(*scan)),
    }
}

fn scanned(scan: Scan) -> ScanV1 {
    ScanV1 {
        scanner: scan.scanner,
        subpackage_name: scan.subpackage,
        component_id: scan.component_id,
        component_name: scan.component_name,
        component_version: scan.component_version,
        component_type: scan.component_kind,
        component_location: scan.component_location,
        artifact_version: scan.artifact_version,
        scanner_version: scan.scanner_version,
        grype_db_built: scan.database_built,
        grype_db_checksum: scan.database_checksum,
    }
}
