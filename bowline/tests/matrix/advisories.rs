//! Advisories, their events, and how groups review and publish them.

use bowline_contract::bowline::vulnerabilities::v1 as reviews;
use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_contract::bowline::vulnerabilities::v1::rpc::advisory_settings_service as settings;
use bowline_contract::bowline::vulnerabilities::v1::rpc::matches::ListMatches;
use bowline_contract::bowline::vulnerabilities::v1::rpc::posture::{GetPosture, ListFindings};
use bowline_contract::bowline::vulnerabilities::v1::rpc::reviews::{BatchReviewEvents, PreviewPublication};
use bowline_contract::v1::advisory as a1;
use bowline_contract::v1::advisory::rpc::security_advisory as resolved1;
use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::advisory_event::{FixNotPlanned, Type};
use bowline_contract::v1::vulnerabilities::rpc::advisories as methods1;
use bowline_contract::v2::advisory as a2;
use bowline_contract::v2::advisory::rpc::security_advisory_service as resolved2;
use bowline_contract::v2::vulnerabilities as v2;
use bowline_contract::v2::vulnerabilities::rpc::advisories_service as methods2;

use super::{Aim, Row, anybody, at, default, delete, list, mask};
use crate::fixture::Kind;
use crate::oracle::OK;

/// An advisory that no other is like.
pub(crate) fn advisory(name: String) -> v1::Advisory {
    v1::Advisory { artifact_type: "apk".into(), artifact_name: name, ..default() }
}

pub(crate) fn event() -> v1::AdvisoryEvent {
    v1::AdvisoryEvent { r#type: Some(Type::FixNotPlanned(FixNotPlanned::default())), ..default() }
}

fn time() -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 }
}

pub(super) fn rows() -> Vec<Row> {
    let uid = |aim: &Aim<'_>| aim.uid(Kind::Advisory);
    vec![
        at::<methods2::GetAdvisory>(move |aim| v2::GetAdvisoryRequest { uid: uid(aim) }),
        list::<methods2::ListAdvisories>(Kind::Advisory, true, |uidp| v2::ListAdvisoriesRequest { uidp, ..default() }),
        at::<methods1::Create>(|aim| v1::CreateAdvisoryRequest {
            parent_id: aim.group(),
            advisory: Some(advisory(aim.name())),
        }),
        list::<methods1::List>(Kind::Advisory, false, |uidp| v1::AdvisoryFilter { uidp, ..default() }),
        at::<methods1::Update>(move |aim| v1::Advisory { id: uid(aim), ..advisory(aim.name()) }),
        delete::<methods1::Delete>(Kind::Advisory, |id| v1::DeleteAdvisoryRequest { id }),
        at::<methods1::CreateAdvisoryEvent>(move |aim| v1::CreateAdvisoryEventRequest {
            parent_id: uid(aim),
            advisory_event: Some(event()),
        }),
        at::<methods1::ListAdvisoryEvents>(move |aim| v1::AdvisoryEventFilter { parent_id: uid(aim) }),
        at::<methods1::UpdateAdvisoryEvent>(|aim| v1::AdvisoryEvent {
            id: aim.uid(Kind::AdvisoryEvent),
            status: v1::ReviewStatus::RequestChanges as i32,
            ..default()
        }),
        batch_review(),
        at::<PreviewPublication>(|aim| reviews::PreviewPublicationRequest { uid: aim.uid(Kind::AdvisoryEvent) }),
        anybody::<resolved1::ListResolvedVulnsReports>(OK, |_| a1::ResolvedVulnsReportFilter {
            image_refs: vec![a1::resolved_vulns_report_filter::ImageRef { repo: "nothing".into(), ..default() }],
            from: Some(time()),
            to: Some(time()),
        }),
        anybody::<resolved2::ListResolvedVulnsReports>(OK, |_| a2::ListResolvedVulnsReportsRequest {
            image_refs: vec![a2::ImageRef { repo: "nothing".into(), ..default() }],
            start_time: Some(time()),
            end_time: Some(time()),
        }),
        at::<GetPosture>(|aim| own::GetPostureRequest { scope: aim.group(), ..default() }),
        anybody::<ListMatches>(OK, |aim| own::ListMatchesRequest { scope: aim.group(), ..default() }),
        at::<ListFindings>(|aim| own::ListFindingsRequest { scope: aim.group(), ..default() }),
        at::<settings::GetAdvisorySettings>(|aim| own::GetAdvisorySettingsRequest { uid: aim.group() }),
        at::<settings::UpdateAdvisorySettings>(|aim| own::UpdateAdvisorySettingsRequest {
            settings: Some(own::AdvisorySettings { uid: aim.group(), second_reviewer_required: true, ..default() }),
            update_mask: Some(mask("second_reviewer_required")),
        }),
    ]
}

/// A review of one event, which asks for changes.
pub(crate) fn batch_review() -> Row {
    at::<BatchReviewEvents>(|aim| reviews::BatchReviewEventsRequest {
        parent: aim.group(),
        reviews: vec![reviews::EventReview {
            uid: aim.uid(Kind::AdvisoryEvent),
            status: v1::ReviewStatus::RequestChanges as i32,
        }],
    })
}
