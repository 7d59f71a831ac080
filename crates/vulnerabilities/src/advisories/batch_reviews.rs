//! Reviews of many events at once: all of them, or none.

use std::collections::HashSet;

use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_contract::bowline::vulnerabilities::v1::rpc::reviews::BatchReviewEvents;
use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::ReviewStatus;
use bowline_core::{Error, FieldViolation, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, EventBody, Handlers, ResourceSnapshot, handler};
use bowline_resources::kinds::ADVISORY_EVENT;
use bowline_resources::references;
use bowline_store::WriteTx;

use super::event_calls;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.validate::<BatchReviewEvents>(violations).write::<BatchReviewEvents>(handler!(review))
}

type Call = Authorized<own::BatchReviewEventsRequest>;

/// What the request alone decides: every review names another event of the group, and a state.
fn violations(request: &own::BatchReviewEventsRequest) -> Vec<FieldViolation> {
    let mut named = HashSet::new();
    let mut wrong = Vec::new();
    if request.reviews.is_empty() {
        wrong.push(FieldViolation { field: "reviews".into(), description: "reviews needs 1 to 50 elements".into() });
    }
    for (at, review) in request.reviews.iter().enumerate() {
        let mut add = |field: &str, description: String| {
            wrong.push(FieldViolation { field: format!("reviews[{at}].{field}"), description });
        };
        let is_inside = review.uid.strip_prefix(&request.parent).is_some_and(|rest| rest.starts_with('/'));
        if !is_inside || !Uidp::is_valid(&review.uid) {
            add("uid", format!("must be the UIDP of an event in the group {}", request.parent));
        } else if !named.insert(&review.uid) {
            add("uid", "the event is named twice".into());
        }
        if review.status() == ReviewStatus::Unknown {
            add("status", "status is required: APPROVED, REJECTED, REQUEST_CHANGES or PENDING".into());
        }
    }
    wrong
}

async fn review(tx: &mut WriteTx, call: &Call) -> Result<Changed<own::BatchReviewEventsResponse>> {
    let group = references::require_scope(tx, call).await?;
    let (mut changes, mut events) = (Vec::new(), Vec::new());
    for review in &call.request().reviews {
        let uid = Uidp::parse(&review.uid).map_err(|error| Error::invalid_field("reviews", error.to_string()))?;
        let given = v1::AdvisoryEvent { status: review.status, ..v1::AdvisoryEvent::default() };
        let (before, after) = event_calls::revise(tx, call, &uid, &given).await?;
        if before != after {
            changes.push(Change {
                kind: ADVISORY_EVENT,
                uid: review.uid.clone(),
                before: Some(ResourceSnapshot::of(&before.rendered())),
                after: Some(ResourceSnapshot::of(&after.rendered())),
            });
        }
        events.push(after.to_v1());
    }
    let response = own::BatchReviewEventsResponse { events };
    if changes.is_empty() {
        return Ok(Changed::nothing(response));
    }
    let mut changed = Changed::many(changes, response);
    // The event is about the group itself, so that its subscriptions see it like those of single reviews.
    changed.event = Some(EventBody {
        subject: group.as_str().into(),
        group: group.as_str().into(),
        body: ResourceSnapshot::of(call.request()),
        extensions: Vec::new(),
    });
    Ok(changed)
}
