//! Taking the approved state of a group out, a page at a time.
//!
//! Nothing that waits for its review may show, not even by a number or a time: what goes out is made of approved events
//! alone.

use bowline_contract::bowline::advisories::v1 as own;
use bowline_contract::bowline::advisories::v1::rpc::advisory_transfers::ExportAdvisories;
use bowline_contract::v1::vulnerabilities::{Advisory, AdvisoryEvent, ReviewStatus};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Direction, Handlers, Page, PageRequest, SortKey, handler};
use bowline_resources::list::{Listed as _, timestamp};
use bowline_resources::references::require_scope;
use bowline_store::{ReadTx, Value};
use prost::Message as _;

use super::super::events::{self, EventRow};
use super::super::rows::{ALL, AdvisoryRow};
use super::origins::{self, Origin};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ExportAdvisories>(handler!(export))
}

type Call = Authorized<own::ExportAdvisoriesRequest>;

/// Maximum bytes of events that a page is made of.
const PAGE_BYTES: i64 = 16 << 20;

async fn export(tx: &mut ReadTx, call: &Call) -> Result<own::ExportAdvisoriesResponse> {
    let group = require_scope(tx, call).await?;
    let page = page(call)?;
    let (rows, is_cut) = shorten(rows(tx, &group, &page).await?, page.size);
    let uids: Vec<&str> = rows.iter().map(|row| row.uid.as_str()).collect();
    let mut events = events::load(tx, &uids).await?;
    let mut origins = origins::load(tx, &uids).await?;
    let mut response = own::ExportAdvisoriesResponse::default();
    for row in &rows {
        let events = events.remove(row.uid.as_str()).unwrap_or_default().into_iter();
        let approved = events.filter(|event| event.state == ReviewStatus::Approved);
        let approved = approved.map(|event| {
            let origin = origins.remove(event.uid.as_str()).unwrap_or_default();
            (event, origin)
        });
        let mut approved: Vec<(EventRow, Origin)> = approved.collect();
        if !call.request().include_restricted {
            let all = approved.len();
            approved = unrestricted(approved);
            response.restricted_events += (all - approved.len()) as i32;
        }
        if !approved.is_empty() {
            response.advisories.push(exported(row, approved));
        }
    }
    if let (true, Some(last)) = (is_cut, rows.last()) {
        let key = SortKey::Text(format!("{}\n{}", last.subject.artifact_type, last.subject.artifact_name));
        response.next_page_token = page.next_token(call, Some(key), last.uid.as_str().into());
    }
    Ok(response)
}

fn page(call: &Call) -> Result<Page> {
    let request = call.request();
    let rest = own::ExportAdvisoriesRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let request = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    Page::validate(call, &request, &[&["artifact"]], (0, Direction::Ascending))
}

/// The rows of the page, and one more if there are more.
async fn rows(tx: &mut ReadTx, group: &Uidp, page: &Page) -> Result<Vec<AdvisoryRow>> {
    let (mut kind, mut name, mut uid) = ("", "", "");
    if let Some(cursor) = &page.cursor {
        let Some(SortKey::Text(key)) = &cursor.key else {
            return Err(Error::internal("the token of an export has no artifact"));
        };
        (kind, name) = key.split_once('\n').unwrap_or((key, ""));
        uid = &cursor.uid;
    }
    let sql = format!(
        "SELECT {} FROM advisories
         WHERE parent = $1 AND (artifact_type, artifact_name, uid) > ($2, $3, $4)
           AND deleted_at IS NULL AND latest_event_type <> 0
         ORDER BY artifact_type, artifact_name, uid LIMIT $5",
        ALL.columns
    );
    let params = [
        Value::from(group.as_str()),
        Value::from(kind),
        Value::from(name),
        Value::from(uid),
        Value::Int(page.size as i64 + 1),
    ];
    tx.query(&sql, &params, AdvisoryRow::read).await
}

/// Cuts the rows to the page, in number and in bytes, but to one at least; returns whether some were left
/// out.
fn shorten(mut rows: Vec<AdvisoryRow>, size: usize) -> (Vec<AdvisoryRow>, bool) {
    let mut bytes = 0;
    let fit = rows.iter().take_while(|row| {
        bytes += row.event_bytes;
        bytes <= PAGE_BYTES
    });
    let kept = fit.count().clamp(1, size);
    let is_cut = rows.len() > kept;
    rows.truncate(kept);
    (rows, is_cut)
}

/// What may go out of an advisory's approved events, the oldest first, without those whose licence restricts it. Where
/// the newest is one of them nothing goes out: an older statement would, as if it held still.
fn unrestricted(approved: Vec<(EventRow, Origin)>) -> Vec<(EventRow, Origin)> {
    if approved.last().is_some_and(|(_, origin)| origin.restricted) {
        return Vec::new();
    }
    approved.into_iter().filter(|(_, origin)| !origin.restricted).collect()
}

fn exported(row: &AdvisoryRow, approved: Vec<(EventRow, Origin)>) -> own::ExportedAdvisory {
    let created: Option<Micros> = approved.iter().map(|(event, _)| event.created_at).min();
    let updated: Option<Micros> = approved.iter().map(|(event, _)| event.created_at).max();
    let (events, origins): (Vec<AdvisoryEvent>, Vec<Origin>) =
        approved.into_iter().map(|(event, origin)| (redacted(&event), origin)).unzip();
    let advisory = Advisory {
        created_at: created.and_then(timestamp),
        updated_at: updated.and_then(timestamp),
        events,
        ..row.to_v1(&[])
    };
    let origins = origins.into_iter().map(|origin| origin.origin).collect();
    own::ExportedAdvisory { advisory: Some(advisory), origins }
}

/// Without what is for reviewers: who reviewed, what a scanner wrote, where the work is tracked.
fn redacted(event: &EventRow) -> AdvisoryEvent {
    AdvisoryEvent { findings: Vec::new(), reviewer: String::new(), issue: None, ..event.to_v1() }
}
