//! Lists of entries, single ones, the history of a resource, and where a sequence begins and ends.

use bowline_contract::bowline::audit::v1 as audit;
use bowline_core::{Error, Micros, Result, hex};
use bowline_pipeline::{Authorized, Cursor, Direction, Page, PageRequest, SortKey};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Value};
use prost::Message as _;
use prost_types::Timestamp;

use super::scan::{EXAMINED, EntryFilter, Limits, ScanResult, Span, find, scan};
use super::snapshots;
use super::visibility::{Sequence, require_at, sees, sequence};

/// Kind of an entry, in errors.
const ENTRY: &str = "bowline.dev/AuditEntry";

/// The one field that entries are sorted by.
const ORDERS: &[&[&str]] = &[&["seq", "sequence", "time"]];

pub(super) async fn list(
    tx: &mut ReadTx,
    call: &Authorized<audit::ListEntriesRequest>,
) -> Result<audit::ListEntriesResponse> {
    let request = call.request();
    let scopes = [("resource", request.resource.as_str()), ("within", request.within.as_str())];
    let wanted = EntryFilter {
        sequence: sequence(call, &request.organization, &scopes)?,
        resource: request.resource.clone(),
        within: request.within.clone(),
        actor: request.actor.clone(),
        method: request.method.clone(),
        kind: request.kind.clone(),
        from: micros(request.start_time.as_ref(), "startTime")?,
        until: micros(request.end_time.as_ref(), "endTime")?,
    };
    let filter = audit::ListEntriesRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        order_by: request.order_by.clone(),
        skip: 0,
        filter: filter.encode_to_vec(),
    };
    let page = Page::validate(call, &page, ORDERS, (0, Direction::Descending))?;
    let limits = Limits { matches: page.size, examined: EXAMINED };
    let found = scan(tx, call, &wanted, span(&page), limits).await?;
    let entries = found.rows.iter().map(|row| snapshots::entry(call, row)).collect();
    Ok(audit::ListEntriesResponse { entries, next_page_token: next_token(call, &page, &found) })
}

pub(super) async fn history(
    tx: &mut ReadTx,
    call: &Authorized<audit::GetHistoryRequest>,
) -> Result<audit::GetHistoryResponse> {
    let request = call.request();
    let wanted = EntryFilter {
        sequence: Sequence::Of(call.require_scope()?.root_str().into()),
        resource: call.require_scope()?.as_str().into(),
        within: String::new(),
        actor: String::new(),
        method: String::new(),
        kind: String::new(),
        from: None,
        until: None,
    };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        order_by: String::new(),
        skip: 0,
        filter: request.resource.clone().into_bytes(),
    };
    let page = Page::validate(call, &page, ORDERS, (0, Direction::Ascending))?;
    let limits = Limits { matches: page.size, examined: EXAMINED };
    let mut found = scan(tx, call, &wanted, span(&page), limits).await?;
    let entries = snapshots::entries(tx, call, &found.rows).await?;
    if let Some(last) = entries.last().filter(|_| entries.len() < found.rows.len()) {
        found = ScanResult { rows: Vec::new(), last: Some(last.sequence), more: true };
    }
    Ok(audit::GetHistoryResponse { entries, next_page_token: next_token(call, &page, &found) })
}

pub(super) async fn get(tx: &mut ReadTx, call: &Authorized<audit::GetEntryRequest>) -> Result<audit::Entry> {
    let request = call.request();
    if request.sequence < 1 {
        return Err(Error::invalid_field("sequence", "must be 1 or more"));
    }
    let sequence = sequence(call, &request.organization, &[])?;
    let row = find(tx, &sequence, request.sequence).await?.filter(|row| sees(call, row));
    let row = row.ok_or_else(|| Error::not_found(ENTRY, request.sequence.to_string()))?;
    let mut entries = snapshots::entries(tx, call, &[row]).await?;
    entries.pop().ok_or_else(|| Error::internal("a row made no entry"))
}

pub(super) async fn checkpoints(
    tx: &mut ReadTx,
    call: &Authorized<audit::GetCheckpointsRequest>,
) -> Result<audit::Checkpoints> {
    let sequence = sequence(call, &call.request().organization, &[])?;
    require_at(call, &sequence)?;
    let sql = "SELECT seq, hash, pruned_seq, pruned_hash, pruned_rows, pruned_at FROM audit_chains WHERE org = $1";
    let read = |row: &bowline_store::Row<'_>| {
        Ok::<_, Error>(audit::Checkpoints {
            sequence: row.int(0)?,
            hash: hex(&row.bytes(1)?),
            pruned_sequence: row.int(2)?,
            pruned_hash: row.opt_bytes(3)?.map(|hash| hex(&hash)).unwrap_or_default(),
            pruned_entries: row.int(4)?,
            prune_time: row.opt_int(5)?.and_then(timestamp),
        })
    };
    Ok(tx.query_opt(sql, &[Value::from(sequence.chain())], read).await?.unwrap_or_default())
}

/// The numbers of a page: from where the one before ended.
fn span(page: &Page) -> Span {
    let number = match &page.cursor {
        Some(Cursor { key: Some(SortKey::Int(number)), .. }) => Some(*number),
        _ => None,
    };
    match page.direction {
        Direction::Ascending => Span { after: number.unwrap_or(0), before: i64::MAX, direction: page.direction },
        Direction::Descending => Span { after: 0, before: number.unwrap_or(i64::MAX), direction: page.direction },
    }
}

fn next_token<T>(call: &Authorized<T>, page: &Page, found: &ScanResult) -> String {
    match found.last.filter(|_| found.more) {
        Some(last) => page.next_token(call, Some(SortKey::Int(last)), String::new()),
        None => String::new(),
    }
}

pub(super) fn micros(time: Option<&Timestamp>, field: &str) -> Result<Option<Micros>> {
    let Some(time) = time else { return Ok(None) };
    let seconds = time.seconds.checked_mul(1_000_000);
    let micros = seconds.and_then(|micros| micros.checked_add(i64::from(time.nanos) / 1000));
    micros.map(Some).ok_or_else(|| Error::invalid_field(field, "is not a time"))
}
