//! Advisories that a person names, and words for what events say.

use bowline_client::{Api, ClientError};
use bowline_contract::v2::vulnerabilities as v2;
use bowline_contract::v2::vulnerabilities::advisory_event::Type;
use bowline_contract::v2::vulnerabilities::rpc::advisories_service::{GetAdvisory, ListAdvisories};
use bowline_core::Uidp;

use crate::resolve::only;

/// The advisory of a UIDP, or of a public identifier such as BWL-2345-6789-cfgh.
///
/// # Errors
/// The caller sees none of that name, or several; or the server refuses.
pub(super) async fn advisory(api: &Api, name: &str) -> Result<v2::Advisory, ClientError> {
    let uid = if Uidp::is_valid(name) {
        name.to_owned()
    } else {
        let request = v2::ListAdvisoriesRequest {
            advisory_ids: vec![name.into()],
            page_size: 200,
            ..v2::ListAdvisoriesRequest::default()
        };
        let found = api.call::<ListAdvisories>(&request).await?.advisories;
        only(name, "advisory", found.into_iter().map(|advisory| advisory.uid).collect())?
    };
    api.call::<GetAdvisory>(&v2::GetAdvisoryRequest { uid }).await
}

/// What an event says, in a word and in its own words.
pub(super) fn parsed(event: &v2::AdvisoryEvent) -> (&'static str, String) {
    match &event.r#type {
        None => ("", String::new()),
        Some(Type::Detection(_)) => ("detection", String::new()),
        Some(Type::TruePositiveDetermination(inner)) => ("affected", inner.note.clone()),
        Some(Type::FalsePositiveDetermination(inner)) => ("not-affected", inner.note.clone()),
        Some(Type::Fixed(inner)) => ("fixed", format!("{} {}", inner.fixed_version, inner.note).trim().to_owned()),
        Some(Type::AnalysisNotPlanned(inner)) => ("analysis-not-planned", inner.note.clone()),
        Some(Type::FixNotPlanned(inner)) => ("fix-not-planned", inner.note.clone()),
        Some(Type::PendingUpstreamFix(inner)) => ("pending-upstream-fix", inner.note.clone()),
        Some(Type::Patched(inner)) => ("patched", inner.patched_versions.join(",")),
    }
}

/// A state of the review for people.
pub(super) fn state(event: &v2::AdvisoryEvent) -> String {
    let name = event.review_state().as_str_name();
    name.strip_prefix("REVIEW_STATE_").unwrap_or(name).to_lowercase().replace('_', "-")
}
