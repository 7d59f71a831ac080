//! All entries, in a stream that ends.

use bowline_contract::bowline::audit::v1::{Entry, ExportEntriesRequest};
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Direction, Watched};
use bowline_store::ReadTx;

use super::entries::micros;
use super::scan::{EXAMINED_BY_WATCH, EntryFilter, Limits, Span, scan};
use super::snapshots;
use super::visibility::sequence;

/// Entries that one step reads into memory, besides the limit for their snapshots.
const AT_ONCE: usize = 200;

/// The entries after the cursor, up to the newest one.
pub(super) async fn look(
    tx: &mut ReadTx,
    call: &Authorized<ExportEntriesRequest>,
    cursor: Option<i64>,
) -> Result<Watched<Entry>> {
    let request = call.request();
    if request.after < 0 {
        return Err(Error::invalid_field("after", "must not be negative"));
    }
    let scopes = [("resource", request.resource.as_str()), ("within", request.within.as_str())];
    let filter = EntryFilter {
        sequence: sequence(call, &request.organization, &scopes)?,
        resource: request.resource.clone(),
        within: request.within.clone(),
        actor: request.actor.clone(),
        method: request.method.clone(),
        kind: request.kind.clone(),
        from: micros(request.start_time.as_ref(), "startTime")?,
        until: micros(request.end_time.as_ref(), "endTime")?,
    };
    let after = cursor.unwrap_or(request.after);
    let span = Span { after, before: i64::MAX, direction: Direction::Ascending };
    let limits = Limits { matches: AT_ONCE, examined: EXAMINED_BY_WATCH };
    let matches = scan(tx, call, &filter, span, limits).await?;
    let entries = snapshots::entries(tx, call, &matches.rows).await?;
    let is_whole = entries.len() == matches.rows.len();
    let numbers = matches.rows.iter().map(|row| row.number(&filter.sequence));
    let items: Vec<(i64, Entry)> = numbers.zip(entries).collect();
    let last = if is_whole { matches.last } else { items.last().map(|(number, _)| *number) };
    Ok(Watched { items, cursor: last.unwrap_or(after), more: matches.more || !is_whole })
}
