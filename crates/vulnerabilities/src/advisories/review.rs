//! The review of events: who may decide, and what follows.
//!
//! An event waits (PENDING) or is sent back (REQUEST_CHANGES), as often as it takes, until someone with
//! `advisories.approve` approves or rejects it. Both are final.

use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::vulnerabilities::ReviewStatus;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::Authorized;
use bowline_resources::list;
use bowline_store::ReadTx;

use super::events::EventRow;
use super::settings;

/// Where the review of a new event begins.
///
/// # Errors
/// INVALID_ARGUMENT for a state that only a reviewer gives; what [`require_may_decide`] refuses.
pub(super) async fn begin<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    advisory: &Uidp,
    wanted: ReviewStatus,
) -> Result<ReviewStatus> {
    match wanted {
        ReviewStatus::Unknown | ReviewStatus::Pending => Ok(ReviewStatus::Pending),
        ReviewStatus::Approved => {
            require_may_decide(tx, call, advisory, call.principal().subject()).await?;
            Ok(ReviewStatus::Approved)
        }
        ReviewStatus::RequestChanges | ReviewStatus::Rejected => Err(Error::invalid_field(
            "status",
            "a new event is PENDING, or APPROVED by its author where that is allowed",
        )),
    }
}

/// Checks the state that an event is given, and notes who gave it.
///
/// # Errors
/// What [`require_may_decide`] refuses.
pub(super) async fn decide<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    before: &EventRow,
    after: &mut EventRow,
) -> Result<()> {
    match after.state {
        ReviewStatus::Approved | ReviewStatus::Rejected => {
            require_may_decide(tx, call, &after.uid, &after.author).await?;
        }
        // Back to the author, or to the reviewer, who is recorded.
        ReviewStatus::RequestChanges if before.state != after.state => {}
        ReviewStatus::RequestChanges | ReviewStatus::Pending | ReviewStatus::Unknown => return Ok(()),
    }
    call.principal().subject().clone_into(&mut after.reviewer);
    Ok(())
}

/// Rejects a caller who may not approve or reject an event of this author.
///
/// # Errors
/// PERMISSION_DENIED without `advisories.approve`; FAILED_PRECONDITION for one's own event where another person decides.
pub(super) async fn require_may_decide<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    scope: &Uidp,
    author: &str,
) -> Result<()> {
    call.require_all(scope.as_str(), &list::capability(call, Capability::CapAdvisoriesApprove))?;
    if author == call.principal().subject() && settings::second_reviewer(tx, scope).await? {
        return Err(Error::precondition(
            "SECOND_REVIEWER_REQUIRED",
            scope.as_str(),
            "events of this group are reviewed by someone other than their author; ask another reviewer",
        ));
    }
    Ok(())
}
