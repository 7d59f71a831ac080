//! Entries as they come.

use bowline_contract::bowline::audit::v1::{Entry, WatchEntriesRequest};
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Direction, Watched};
use bowline_store::ReadTx;

use super::scan::{EXAMINED_BY_WATCH, EntryFilter, Limits, Span, ends, scan};
use super::snapshots;
use super::visibility::{Sequence, sequence};

/// Entries of one look.
const AT_ONCE: usize = 50;

/// What came after the cursor; at first after the number that the request names, or from now on.
pub(super) async fn look(
    tx: &mut ReadTx,
    call: &Authorized<WatchEntriesRequest>,
    cursor: Option<i64>,
) -> Result<Watched<Entry>> {
    let request = call.request();
    let matches = matches(call)?;
    let after = match cursor.or(request.after) {
        Some(after) if after < 0 => return Err(Error::invalid_field("after", "must not be negative")),
        Some(after) => after,
        None => ends(tx, &matches.sequence).await?.0,
    };
    let span = Span { after, before: i64::MAX, direction: Direction::Ascending };
    let limits = Limits { matches: AT_ONCE, examined: EXAMINED_BY_WATCH };
    let found = scan(tx, call, &matches, span, limits).await?;
    let entries = snapshots::entries(tx, call, &found.rows).await?;
    let is_whole = entries.len() == found.rows.len();
    let number = |entry: &Entry| match &matches.sequence {
        Sequence::Server => entry.global_sequence,
        Sequence::Of(_) => entry.sequence,
    };
    let items: Vec<(i64, Entry)> = entries.into_iter().map(|entry| (number(&entry), entry)).collect();
    let last = if is_whole { found.last } else { items.last().map(|(number, _)| *number) };
    Ok(Watched { items, cursor: last.unwrap_or(after), more: found.more || !is_whole })
}

fn matches(call: &Authorized<WatchEntriesRequest>) -> Result<EntryFilter> {
    let request = call.request();
    let scopes = [("resource", request.resource.as_str()), ("within", request.within.as_str())];
    Ok(EntryFilter {
        sequence: sequence(call, &request.organization, &scopes)?,
        resource: request.resource.clone(),
        within: request.within.clone(),
        actor: request.actor.clone(),
        method: request.method.clone(),
        kind: request.kind.clone(),
        from: None,
        until: None,
    })
}
