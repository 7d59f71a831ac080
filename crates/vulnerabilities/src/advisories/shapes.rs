//! Advisories and events in the shapes of both versions.

use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::advisory_event::{Type, detection};
use bowline_contract::v2::vulnerabilities as v2;
use bowline_contract::v2::vulnerabilities::advisory_event as event2;
use bowline_core::{Error, Result};
use bowline_resources::list::timestamp;
use prost::Message;

use super::events::EventRow;
use super::rows::{AdvisoryRow, Subject};
use super::severities::Severities;

impl Subject {
    pub(super) fn of_v1(advisory: &v1::Advisory) -> Subject {
        Subject {
            artifact_name: advisory.artifact_name.clone(),
            artifact_type: advisory.artifact_type.clone(),
            artifact_architecture: advisory.artifact_architecture.clone(),
            component_name: advisory.component_name.clone().unwrap_or_default(),
            component_location: advisory.component_location.clone().unwrap_or_default(),
            component_type: advisory.component_type.clone().unwrap_or_default(),
        }
    }
}

impl AdvisoryRow {
    /// In the shape of v1. The audit log keeps advisories without their events, which it has by themselves.
    pub(super) fn to_v1(&self, events: &[EventRow]) -> v1::Advisory {
        let subject = self.subject.clone();
        let present = |text: String| Some(text).filter(|text| !text.is_empty());
        v1::Advisory {
            id: self.uid.as_str().into(),
            artifact_type: subject.artifact_type,
            artifact_name: subject.artifact_name,
            artifact_architecture: subject.artifact_architecture,
            component_name: present(subject.component_name),
            component_location: present(subject.component_location),
            component_type: present(subject.component_type),
            created_at: timestamp(self.created_at),
            updated_at: timestamp(self.updated_at),
            deleted_at: self.deleted_at.and_then(timestamp),
            aliases: self.aliases.clone(),
            events: events.iter().map(EventRow::to_v1).collect(),
            advisory_id: self.advisory_id.clone(),
            author: self.author.clone(),
            legacy_advisory_id: present(self.legacy_id.clone()),
        }
    }

    /// In the shape of v2, without the events that it has no words for.
    pub(super) fn to_v2(&self, events: &[EventRow], severities: &Severities) -> Result<v2::Advisory> {
        let subject = self.subject.clone();
        let events: Result<Vec<v2::AdvisoryEvent>> =
            events.iter().filter_map(|event| event.to_v2().transpose()).collect();
        Ok(v2::Advisory {
            uid: self.uid.as_str().into(),
            advisory_id: self.advisory_id.clone(),
            create_time: timestamp(self.created_at),
            update_time: timestamp(self.updated_at),
            delete_time: self.deleted_at.and_then(timestamp),
            author: self.author.clone(),
            artifact_name: subject.artifact_name,
            artifact_type: subject.artifact_type,
            artifact_architecture: subject.artifact_architecture,
            component_name: subject.component_name,
            component_location: subject.component_location,
            component_type: subject.component_type,
            aliases: self.aliases.clone(),
            events: events?,
            legacy_advisory_id: Some(self.legacy_id.clone()).filter(|id| !id.is_empty()),
            severities: severities.of(&self.aliases),
        })
    }
}

impl EventRow {
    /// In the shape of v2; nothing if that has no such kind.
    fn to_v2(&self) -> Result<Option<v2::AdvisoryEvent>> {
        let kind = self.body.r#type.as_ref().map(kind_v2).transpose()?.flatten();
        Ok(kind.map(|kind| v2::AdvisoryEvent {
            uid: self.uid.as_str().into(),
            create_time: timestamp(self.at),
            findings: self.body.findings.clone(),
            author: self.author.clone(),
            reviewer: self.reviewer.clone(),
            review_state: self.state as i32,
            issue: self.body.issue.clone(),
            r#type: Some(kind),
        }))
    }
}

fn kind_v2(kind: &Type) -> Result<Option<event2::Type>> {
    Ok(Some(match kind {
        Type::Detection(inner) => event2::Type::Detection(same(inner)?),
        Type::Fixed(inner) => event2::Type::Fixed(same(inner)?),
        Type::FalsePositiveDetermination(inner) => event2::Type::FalsePositiveDetermination(same(inner)?),
        Type::AnalysisNotPlanned(inner) => event2::Type::AnalysisNotPlanned(same(inner)?),
        Type::FixNotPlanned(inner) => event2::Type::FixNotPlanned(same(inner)?),
        Type::PendingUpstreamFix(inner) => event2::Type::PendingUpstreamFix(same(inner)?),
        Type::TruePositiveDetermination(inner) => event2::Type::TruePositiveDetermination(same(inner)?),
        Type::Patched(inner) => event2::Type::Patched(same(inner)?),
        Type::ComponentLocationChanged(_) => return Ok(None),
    }))
}

/// A message of one version as the other has it: inside of events their numbers and types are the same.
fn same<From: Message, To: Message + Default>(message: &From) -> Result<To> {
    To::decode(message.encode_to_vec().as_slice()).map_err(Error::internal)
}

/// What an event lacks to say something, by field.
pub(super) fn validate(event: &v1::AdvisoryEvent) -> Option<(&'static str, &'static str)> {
    if event.findings.len() > MAX_FINDINGS {
        return Some(("findings", "at most 1048576 bytes"));
    }
    match &event.r#type {
        Some(Type::Detection(inner)) => match &inner.r#type {
            None => Some(("detection", "one of nvdapi, manual and scanv1 is required")),
            Some(detection::Type::Nvdapi(_) | detection::Type::Manual(_) | detection::Type::Scanv1(_)) => None,
        },
        Some(Type::FalsePositiveDetermination(inner)) if inner.r#type == 0 => {
            Some(("falsePositiveDetermination.type", "type is required: it says why the artifact is not affected"))
        }
        Some(Type::Patched(inner)) if inner.patched_versions.is_empty() => {
            Some(("patched.patchedVersions", "patchedVersions is required"))
        }
        _ => None,
    }
}

/// Maximum bytes of what a scanner wrote about one event.
const MAX_FINDINGS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use bowline_core::Uidp;

    use super::*;

    fn event(kind: Type) -> EventRow {
        EventRow {
            uid: Uidp::root_from([1; 20]).child_from([2; 8]).child_from([3; 8]),
            state: v1::ReviewStatus::Approved,
            author: "author".into(),
            reviewer: "reviewer".into(),
            at: 5_000_000,
            created_at: 6_000_000,
            body: v1::AdvisoryEvent { r#type: Some(kind), findings: b"{}".to_vec(), ..Default::default() },
        }
    }

    #[test]
    fn a_scan_is_the_same_in_both_versions() {
        let scan = v1::advisory_event::detection::ScanV1 {
            scanner: "grype".into(),
            subpackage_name: "sub".into(),
            component_name: "name".into(),
            grype_db_checksum: "sum".into(),
            ..Default::default()
        };
        let detection = v1::advisory_event::Detection { r#type: Some(detection::Type::Scanv1(scan)) };
        let shown = event(Type::Detection(detection)).to_v2().unwrap().unwrap();
        let Some(event2::Type::Detection(event2::Detection { r#type: Some(event2::detection::Type::Scanv1(scan)) })) =
            shown.r#type
        else {
            panic!("another kind: {:?}", shown.r#type);
        };
        assert_eq!(
            (&*scan.scanner, &*scan.subpackage, &*scan.component, &*scan.grype_db_checksum),
            ("grype", "sub", "name", "sum")
        );
        assert_eq!(shown.review_state, v2::ReviewState::Approved as i32);
    }

    #[test]
    fn a_moved_component_is_not_an_event_of_v2() {
        assert_eq!(event(Type::ComponentLocationChanged(Default::default())).to_v2().unwrap(), None);
    }

    #[test]
    fn what_says_nothing_is_refused() {
        let validated = |kind| validate(&event(kind).body).map(|(field, _)| field);
        assert_eq!(validated(Type::Detection(Default::default())), Some("detection"));
        assert_eq!(
            validated(Type::FalsePositiveDetermination(Default::default())),
            Some("falsePositiveDetermination.type")
        );
        assert_eq!(validated(Type::Patched(Default::default())), Some("patched.patchedVersions"));
        assert_eq!(validated(Type::FixNotPlanned(Default::default())), None);
    }
}
