//! Events of advisories: adding one, its review, and their lists. V1 alone has methods for them.

use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::ReviewStatus;
use bowline_contract::v1::vulnerabilities::rpc::advisories::{
    CreateAdvisoryEvent, ListAdvisoryEvents, UpdateAdvisoryEvent,
};
use bowline_core::{Error, FieldViolation, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::kinds::ADVISORY_EVENT;
use bowline_resources::list::micros;
use bowline_store::{ReadTx, WriteTx};

use super::calls_v1::require_in_use;
use super::events::{self, EventRow};
use super::operations::{self, NewEvent};
use super::{review, rows, shapes};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<CreateAdvisoryEvent>(handler!(create))
        .validate::<CreateAdvisoryEvent>(|request| {
            request.advisory_event.as_ref().map(|event| validate("advisoryEvent.", event)).unwrap_or_default()
        })
        .read::<ListAdvisoryEvents>(handler!(list))
        .write::<UpdateAdvisoryEvent>(handler!(update))
        .validate::<UpdateAdvisoryEvent>(|event| validate("", event))
}

fn validate(prefix: &str, event: &v1::AdvisoryEvent) -> Vec<FieldViolation> {
    let wrong = shapes::validate(event).map(|(field, description)| FieldViolation {
        field: format!("{prefix}{field}"),
        description: description.into(),
    });
    wrong.into_iter().collect()
}

/// A clock of a scanner may be ahead of this server by as much.
const AHEAD: Micros = 5 * 60 * 1_000_000;

/// What a caller says of a new event.
///
/// # Errors
/// INVALID_ARGUMENT for an event of no kind, or of the future.
pub(super) fn new_event(event: v1::AdvisoryEvent, now: Micros) -> Result<NewEvent> {
    if event.r#type.is_none() {
        return Err(Error::invalid_field("advisoryEvent", "one kind of event is required, such as detection or fixed"));
    }
    let at = event.timestamp.map(|time| validated_time(time, now)).transpose()?;
    Ok(NewEvent { at, state: event.status(), body: event })
}

fn validated_time(time: prost_types::Timestamp, now: Micros) -> Result<Micros> {
    let at = micros(time);
    // Whatever is stored can be written in JSON again, which knows no times before the year 1.
    if at < 0 {
        return Err(Error::invalid_field("timestamp", "must not be before 1970"));
    }
    if at > now.saturating_add(AHEAD) {
        return Err(Error::invalid_field("timestamp", "must not be in the future: it says when the change took place"));
    }
    Ok(at)
}

impl EventRow {
    /// The event as the audit log and subscribers get it: without the scanner's output, which may be large.
    pub(super) fn rendered(&self) -> v1::AdvisoryEvent {
        v1::AdvisoryEvent { findings: Vec::new(), ..self.to_v1() }
    }
}

async fn create(
    tx: &mut WriteTx,
    call: &Authorized<v1::CreateAdvisoryEventRequest>,
) -> Result<Changed<v1::AdvisoryEvent>> {
    let advisory = require_in_use(tx, call.require_scope()?).await?;
    let given = call.request().advisory_event.clone();
    let given = given.ok_or_else(|| Error::invalid_field("advisoryEvent", "advisoryEvent is required"))?;
    let event = operations::append_event(tx, call, &advisory, new_event(given, call.now())?).await?;
    let rendered = v1::CreateAdvisoryEventRequest {
        parent_id: advisory.uid.as_str().into(),
        advisory_event: Some(event.rendered()),
    };
    Ok(Changed::one(ADVISORY_EVENT, &event.uid, None, Some(&event.rendered()), event.to_v1())
        .with_event(&event.uid, &rendered))
}

/// The events of an advisory, or the one event that is named.
async fn list(tx: &mut ReadTx, call: &Authorized<v1::AdvisoryEventFilter>) -> Result<v1::AdvisoryEventList> {
    let scope = call.require_scope()?;
    let items = if let Some(event) = events::find(tx, scope).await? {
        vec![event.to_v1()]
    } else {
        rows::require(tx, scope).await?;
        let events = events::load(tx, &[scope.as_str()]).await?.remove(scope.as_str()).unwrap_or_default();
        events.iter().map(EventRow::to_v1).collect()
    };
    Ok(v1::AdvisoryEventList { parent_id: scope.as_str().into(), items })
}

async fn update(tx: &mut WriteTx, call: &Authorized<v1::AdvisoryEvent>) -> Result<Changed<v1::AdvisoryEvent>> {
    let (before, after) = revise(tx, call, call.require_scope()?, call.request()).await?;
    if after == before {
        return Ok(Changed::nothing(after.to_v1()));
    }
    let rendered = after.rendered();
    Ok(Changed::one(ADVISORY_EVENT, &after.uid, Some(&before.rendered()), Some(&rendered), after.to_v1())
        .with_event(&after.uid, &rendered))
}

/// Changes the statement and the state of an event, as far as the caller may; returns the event before and after.
///
/// # Errors
/// FAILED_PRECONDITION for an event whose review has ended; what the review refuses.
pub(super) async fn revise<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    uid: &Uidp,
    given: &v1::AdvisoryEvent,
) -> Result<(EventRow, EventRow)> {
    let before = events::require(tx, uid).await?;
    let advisory = require_in_use(tx, &advisory_of(&before)?).await?;
    if before.is_final() {
        return Err(Error::precondition(
            "EVENT_FINAL",
            before.uid.as_str(),
            "the event was approved or rejected, which is final; add another event instead",
        ));
    }
    let mut after = corrected(&before, call, given)?;
    review::decide(tx, call, &before, &mut after).await?;
    if after != before {
        events::save(tx, &advisory, &before, &after, call.now()).await?;
        operations::learn_origin(tx, &advisory, &after).await?;
    }
    Ok((before, after))
}

fn advisory_of(event: &EventRow) -> Result<Uidp> {
    event.uid.parent().ok_or_else(|| Error::internal("an advisory event has no advisory"))
}

/// The event with what the caller says again; a caller who changes what it says is its author from then on. What names no
/// kind is a review alone and leaves the kind as it is.
fn corrected<T>(before: &EventRow, call: &Authorized<T>, given: &v1::AdvisoryEvent) -> Result<EventRow> {
    let mut after = before.clone();
    if given.r#type.is_some() {
        after.body = operations::only_content(given.clone());
    } else {
        if given.issue.is_some() {
            after.body.issue.clone_from(&given.issue);
        }
        if !given.findings.is_empty() {
            after.body.findings.clone_from(&given.findings);
        }
    }
    if let Some(time) = given.timestamp {
        after.at = validated_time(time, call.now())?;
    }
    if after != *before {
        call.principal().subject().clone_into(&mut after.author);
    }
    if given.status() != ReviewStatus::Unknown {
        after.state = given.status();
    }
    Ok(after)
}
