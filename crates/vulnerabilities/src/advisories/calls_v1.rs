//! Advisories as in v1: all that changes them, and their lists.

use std::collections::BTreeSet;

use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::rpc::advisories::{Create, Delete, List, Update};
use bowline_core::{Error, FieldViolation, Result};
use bowline_pipeline::{Authorized, Change, Changed, Direction, Handlers, PageRequest, ResourceSnapshot, handler};
use bowline_resources::kinds::{ADVISORY, ADVISORY_EVENT};
use bowline_resources::list;
use bowline_resources::references::require_scope;
use bowline_store::{ReadTx, WriteTx};
use prost::Message;

use super::event_calls::new_event;
use super::filters::Filters;
use super::lists::{self, AdvisoryQuery};
use super::operations::{self, NewAdvisory};
use super::rows::{self, AdvisoryRow, Subject};
use super::{events, review, shapes};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<Create>(handler!(create))
        .validate::<Create>(|request| request.advisory.as_ref().map(validate_new).unwrap_or_default())
        .read::<List>(handler!(list))
        .write::<Update>(handler!(update))
        .write::<Delete>(handler!(delete))
}

/// Maximum number of events that an advisory is created with.
const MAX_FIRST_EVENTS: usize = 100;

fn validate_new(advisory: &v1::Advisory) -> Vec<FieldViolation> {
    let mut wrong = Vec::new();
    if advisory.events.len() > MAX_FIRST_EVENTS {
        let description = format!("at most {MAX_FIRST_EVENTS} elements");
        wrong.push(FieldViolation { field: "advisory.events".into(), description });
    }
    for (i, event) in advisory.events.iter().enumerate() {
        let found = match event.r#type {
            None => Some(("", "one kind of event is required")),
            Some(_) => shapes::validate(event),
        };
        wrong.extend(found.map(|(field, description)| FieldViolation {
            field: format!("advisory.events[{i}].{field}").trim_end_matches('.').to_owned(),
            description: description.into(),
        }));
    }
    wrong
}

async fn create(tx: &mut WriteTx, call: &Authorized<v1::CreateAdvisoryRequest>) -> Result<Changed<v1::Advisory>> {
    let group = require_scope(tx, call).await?;
    let given = call.request().advisory.clone();
    let given = given.ok_or_else(|| Error::invalid_field("advisory", "advisory is required"))?;
    let input = NewAdvisory {
        subject: Subject::of_v1(&given),
        aliases: distinct(&given.aliases),
        advisory_id: given.advisory_id.clone(),
        legacy_id: given.legacy_advisory_id.clone().unwrap_or_default(),
    };
    let created = operations::create(tx, call, &group, input).await?;
    let mut along = Vec::new();
    for event in given.events {
        let advisory = rows::require(tx, &created.uid).await?;
        let event = operations::append_event(tx, call, &advisory, new_event(event, call.now())?).await?;
        along.push(Change {
            kind: ADVISORY_EVENT,
            uid: event.uid.as_str().into(),
            before: None,
            after: Some(ResourceSnapshot::of(&event.rendered())),
        });
    }
    let after = shown(tx, &created.uid).await?;
    let event = v1::CreateAdvisoryRequest { parent_id: group.as_str().into(), advisory: Some(after.0.to_v1(&[])) };
    Ok(Changed::one(ADVISORY, &created.uid, None, Some(&after.0.to_v1(&[])), after.1)
        .along(along)
        .with_event(&created.uid, &event))
}

/// Each alias once, in the order that was given.
fn distinct(aliases: &[String]) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::with_capacity(aliases.len());
    for alias in aliases {
        if !distinct.contains(alias) {
            distinct.push(alias.clone());
        }
    }
    distinct
}

/// An advisory as it is now, with its events.
async fn shown(tx: &mut ReadTx, uid: &bowline_core::Uidp) -> Result<(AdvisoryRow, v1::Advisory)> {
    let row = rows::require(tx, uid).await?;
    let events = events::load(tx, &[uid.as_str()]).await?.remove(uid.as_str()).unwrap_or_default();
    let advisory = row.to_v1(&events);
    Ok((row, advisory))
}

/// The advisory of this call, which must be in use.
pub(super) async fn require_in_use(tx: &mut ReadTx, uid: &bowline_core::Uidp) -> Result<AdvisoryRow> {
    let row = rows::require(tx, uid).await?;
    if row.deleted_at.is_some() {
        let description = "the advisory is marked as deleted; create another one";
        return Err(Error::precondition("ADVISORY_DELETED", uid.as_str(), description));
    }
    Ok(row)
}

async fn update(tx: &mut WriteTx, call: &Authorized<v1::Advisory>) -> Result<Changed<v1::Advisory>> {
    let before = require_in_use(tx, call.require_scope()?).await?;
    let given = call.request();
    if !given.advisory_id.is_empty() && given.advisory_id != before.advisory_id {
        return Err(Error::invalid_field("advisoryId", "cannot be changed"));
    }
    let mut after = before.clone();
    after.subject = Subject::of_v1(given);
    after.aliases = distinct(&given.aliases);
    after.legacy_id = given.legacy_advisory_id.clone().unwrap_or_default();
    if after == before {
        return Ok(Changed::nothing(shown(tx, &before.uid).await?.1));
    }
    if before.latest_event_type != 0 && is_about_another(&before, &after) {
        // Approved events would come to be about it, unseen by their approvers.
        review::require_may_decide(tx, call, &before.uid, call.principal().subject()).await?;
    }
    after.updated_at = call.now();
    if let Some(group) = before.uid.parent() {
        operations::require_single(tx, &group, &after.subject, &after.aliases, Some(&after.uid)).await?;
    }
    rows::save(tx, &before, &after).await?;
    let (row, advisory) = shown(tx, &after.uid).await?;
    let event = row.to_v1(&[]);
    Ok(Changed::one(ADVISORY, &row.uid, Some(&before.to_v1(&[])), Some(&event), advisory).with_event(&row.uid, &event))
}

/// Whether an advisory names another artifact, component or vulnerability than it did.
fn is_about_another(before: &AdvisoryRow, after: &AdvisoryRow) -> bool {
    let names = |row: &AdvisoryRow| row.aliases.iter().map(|alias| rows::folded(alias)).collect::<BTreeSet<_>>();
    before.subject != after.subject || names(before) != names(after)
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteAdvisoryRequest>) -> Result<Changed<()>> {
    let before = rows::require(tx, call.require_scope()?).await?;
    if before.deleted_at.is_some() {
        return Ok(Changed::nothing(()));
    }
    rows::mark_deleted(tx, &before, call.now()).await?;
    let after = rows::require(tx, &before.uid).await?;
    // The row stays: the audit log shows the mark, not an end.
    Ok(Changed::one(ADVISORY, &before.uid, Some(&before.to_v1(&[])), Some(&after.to_v1(&[])), ())
        .with_event(&before.uid, call.request()))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::AdvisoryFilter>) -> Result<v1::AdvisoriesList> {
    let filter = call.request();
    let selection = list::select_v1(call.visible(), filter.uidp.as_ref(), &filter.id);
    let mut filters = Filters::of_v1(filter);
    lists::resolve_origin(tx, &mut filters).await?;
    let by_uid = !filter.id.is_empty() || filter.uidp.as_ref().is_some_and(|uidp| !uidp.ids.is_empty());
    let wanted =
        AdvisoryQuery { selection, filters: &filters, by_uid, page: paging(filter), default: order(filter.order_by()) };
    let found = lists::page(tx, call, wanted).await?;
    let uids: Vec<&str> = found.rows.iter().map(|row| row.uid.as_str()).collect();
    let mut events = events::load(tx, &uids).await?;
    let items = found.rows.iter().map(|row| row.to_v1(&events.remove(row.uid.as_str()).unwrap_or_default()));
    Ok(v1::AdvisoriesList {
        id: filter.id.clone(),
        items: items.collect(),
        next_page_token: found.next_page_token,
        total_count: found.total_count,
    })
}

/// What says which page is wanted, and of which list: page tokens are good for that list alone.
fn paging(filter: &v1::AdvisoryFilter) -> PageRequest {
    let rest = v1::AdvisoryFilter { page_size: 0, page_token: String::new(), ..filter.clone() };
    PageRequest {
        page_size: i32::try_from(filter.page_size).unwrap_or(if filter.page_size < 0 { -1 } else { i32::MAX }),
        page_token: filter.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    }
}

/// Place in the orders of the table, and direction.
fn order(order: v1::OrderBy) -> (usize, Direction) {
    use v1::OrderBy::{
        AliasesAsc, AliasesDesc, CreatedAtAsc, CreatedAtDesc, DeletedAtAsc, DeletedAtDesc, IdAsc, IdDesc, Unspecified,
        UpdatedAtAsc, UpdatedAtDesc,
    };
    match order {
        Unspecified | IdAsc => (0, Direction::Ascending),
        IdDesc => (0, Direction::Descending),
        CreatedAtAsc => (1, Direction::Ascending),
        CreatedAtDesc => (1, Direction::Descending),
        UpdatedAtAsc => (2, Direction::Ascending),
        UpdatedAtDesc => (2, Direction::Descending),
        AliasesAsc => (3, Direction::Ascending),
        AliasesDesc => (3, Direction::Descending),
        DeletedAtAsc => (4, Direction::Ascending),
        DeletedAtDesc => (4, Direction::Descending),
    }
}
