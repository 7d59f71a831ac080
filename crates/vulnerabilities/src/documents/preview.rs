//! What the approval of an event would publish.

use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_contract::bowline::vulnerabilities::v1::UnchangedReason;
use bowline_contract::bowline::vulnerabilities::v1::rpc::reviews::PreviewPublication;
use bowline_contract::v1::vulnerabilities::ReviewStatus;
use bowline_contract::v2::advisory as v2;
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::kinds::ADVISORY_EVENT;
use bowline_store::ReadTx;

use super::pieces;
use crate::advisories::events;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<PreviewPublication>(handler!(preview))
}

async fn preview(
    tx: &mut ReadTx,
    call: &Authorized<own::PreviewPublicationRequest>,
) -> Result<own::PublicationPreview> {
    let uid = call.require_scope()?;
    let event = events::require(tx, uid).await?;
    let absent = || Error::not_found(ADVISORY_EVENT, uid.as_str());
    let advisory = uid.parent_str();
    // What is rejected stays rejected, and adds nothing.
    let with = if event.state == ReviewStatus::Rejected { "" } else { uid.as_str() };
    let drafts = pieces::drafts(tx, advisory, with).await?.ok_or_else(absent)?;
    let is_read = drafts.is_public && !drafts.is_deleted;
    let unchanged = match event.state {
        _ if !drafts.is_public => UnchangedReason::GroupNotPublic,
        _ if drafts.is_deleted => UnchangedReason::AdvisoryDeleted,
        ReviewStatus::Approved => UnchangedReason::ApprovedAlready,
        ReviewStatus::Rejected => UnchangedReason::Rejected,
        _ if drafts.now == drafts.then => UnchangedReason::KindNotPublished,
        _ => UnchangedReason::Unspecified,
    };
    // An advisory without events is in no document.
    let read = |draft: &v2::DocumentAdvisory| Some(draft.clone()).filter(|one| is_read && !one.events.is_empty());
    Ok(own::PublicationPreview {
        published: read(&drafts.now),
        approved: read(&drafts.then),
        document: drafts.document,
        unchanged: unchanged.into(),
    })
}
