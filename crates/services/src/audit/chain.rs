//! Verification of an organization's chain, and counts of its entries by day.

use std::collections::BTreeMap;

use bowline_contract::bowline::audit::v1 as audit;
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Error, Micros, Result, hex};
use bowline_pipeline::audit::verify_slice;
use bowline_pipeline::{Authorized, Watched};
use bowline_resources::days::{DayLimits, day_span};
use bowline_store::{ReadTx, Row, Value};

use super::visibility::{Sequence, is_own, require_at, sequence};

const DAY: Micros = 24 * 3600 * 1_000_000;
/// Without a beginning, a summary has today and the thirty days before.
const DAYS: DayLimits = DayLimits { usual: 31, max: 366 };

/// The next part of a verification.
pub(super) async fn verify(
    tx: &mut ReadTx,
    call: &Authorized<audit::VerifyChainRequest>,
    cursor: Option<i64>,
) -> Result<Watched<audit::VerifyChainProgress>> {
    let request = call.request();
    let organization = call.require_scope()?;
    if !organization.is_root() {
        let why = "must be the UIDP of an organization or a person, which is a root";
        return Err(Error::invalid_field("organization", why));
    }
    let last = if request.last == 0 { i64::MAX } else { request.last };
    if request.first < 0 || last < request.first {
        return Err(Error::invalid_field("last", "must not be less than first, which must not be negative"));
    }
    let after = cursor.unwrap_or_else(|| (request.first - 1).max(0));
    let slice = verify_slice(tx, organization.as_str(), after, last).await?;
    let is_done = slice.is_end || slice.last >= last;
    let progress = audit::VerifyChainProgress {
        sequence: slice.last,
        newest: slice.newest,
        hash: if slice.last > 0 { hex(&slice.hash) } else { String::new() },
        erased_images: slice.erased,
        problem: slice.problem.unwrap_or_default(),
        done: is_done,
    };
    Ok(Watched { items: vec![(slice.last, progress)], cursor: slice.last, more: !is_done })
}

/// Counts of entries by day and kind.
pub(super) async fn summary(tx: &mut ReadTx, call: &Authorized<audit::GetSummaryRequest>) -> Result<audit::Summary> {
    let request = call.request();
    let sequence = sequence(call, &request.organization, &[])?;
    require_at(call, &sequence)?;
    let (first, last) = day_span(request.start_time, request.end_time, call.now(), DAYS)?;
    let sql = "SELECT day, kind, entries FROM audit_days WHERE org = $1 AND day >= $2 AND day <= $3 ORDER BY day, kind";
    let params = [Value::from(sequence.chain()), Value::Int(first), Value::Int(last)];
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.text(1)?, row.int(2)?));
    let mut days: BTreeMap<i64, audit::DaySummary> = BTreeMap::new();
    for (day, kind, entries) in tx.query(sql, &params, read).await? {
        if !lists(call, &sequence, &kind) {
            continue;
        }
        let summary = days.entry(day).or_insert_with(|| audit::DaySummary { day: date(day), ..Default::default() });
        summary.entries += entries;
        summary.kinds.push(audit::KindSummary { kind, entries });
    }
    Ok(audit::Summary { days: days.into_values().collect() })
}

/// Whether the caller sees every entry of the kind in the sequence.
fn lists<T>(call: &Authorized<T>, sequence: &Sequence, kind: &str) -> bool {
    let Sequence::Of(root) = sequence else { return true };
    let needed = match call.contract().listing_of_kind(kind) {
        Some(listing) => call.needed().union(listing),
        None => *call.needed(),
    };
    is_own(call, root) || call.grants().allows(root, &needed)
}

fn date(day: i64) -> String {
    let mut text = rfc3339::text(day * DAY, Digits::Nine);
    text.truncate("2026-11-24".len());
    text
}
