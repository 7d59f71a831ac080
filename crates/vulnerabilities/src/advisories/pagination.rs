//! Pages by UIDP of what filters leave that all leave many, read along the index of one of them: however many match, and
//! wherever they lie, a page costs about what it shows. The indexes of the others check before any advisory is read.

use std::collections::BTreeMap;

use bowline_core::{Error, Result, UidRange};
use bowline_pipeline::{Direction, Page};
use bowline_resources::list::{Clause, Listed as _, Table, push_clause};
use bowline_store::{ReadTx, Row, Sql, Value};

use super::filters::Source;
use super::lists::{AdvisoryQuery, in_range, one_of, validate};
use super::rows::{AdvisoryRow, LOADED_AT_ONCE};

/// Maximum number of advisories that a page leaves out at its beginning: they are read all the same.
pub(super) const MAX_SKIPPED: i64 = 1000;
/// Maximum number of entries of an index in one batch.
const LARGEST_BATCH: usize = 3200;

/// The rows of the page, and one more if there are more.
pub(super) async fn page(
    tx: &mut ReadTx,
    table: &Table,
    sources: &[Source<'_>],
    wanted: &AdvisoryQuery<'_>,
    page: &Page,
) -> Result<Vec<AdvisoryRow>> {
    let skip = usize::try_from(page.skip).unwrap_or(usize::MAX);
    let needed = skip.saturating_add(page.size + 1);
    let mut ranges: Vec<&UidRange> = wanted.selection.ranges.iter().collect();
    if page.direction == Direction::Descending {
        ranges.reverse();
    }
    let mut rows: Vec<AdvisoryRow> = Vec::new();
    // One after the other: what lies between them is not the caller's, and may be very much.
    for range in ranges {
        if rows.len() < needed {
            let part = Part { table, sources, range, after: page.cursor.as_ref().map(|cursor| cursor.uid.clone()) };
            rows.extend(part.rows(tx, wanted, page.direction, needed - rows.len()).await?);
        }
    }
    rows.drain(..skip.min(rows.len()));
    rows.truncate(page.size + 1);
    Ok(rows)
}

/// What a page is looked for in: one range of the hierarchy.
struct Part<'a> {
    table: &'a Table,
    sources: &'a [Source<'a>],
    range: &'a UidRange,
    /// The last advisory of the page before.
    after: Option<String>,
}

impl Part<'_> {
    /// Rows in the page's order, until there are as many as needed or no more.
    async fn rows(
        self,
        tx: &mut ReadTx,
        wanted: &AdvisoryQuery<'_>,
        direction: Direction,
        needed: usize,
    ) -> Result<Vec<AdvisoryRow>> {
        let (mut rows, mut last) = (Vec::new(), self.after);
        // Without further filters, the first batch is enough.
        let mut at_once = needed.min(LOADED_AT_ONCE);
        while rows.len() < needed {
            let entries = next(tx, self.sources, self.range, (last.as_deref(), direction), at_once).await?;
            let is_all = entries.len() < at_once;
            last = entries.last().map(|(uid, _)| uid.clone());
            let uids: Vec<String> =
                entries.into_iter().filter(|(_, is_in_all)| *is_in_all).map(|(uid, _)| uid).collect();
            for uids in uids.chunks(LOADED_AT_ONCE) {
                rows.extend(validated(tx, self.table, uids, self.sources, wanted, direction).await?);
            }
            if is_all {
                break;
            }
            // The fewer pass, the larger the batches.
            at_once = (at_once * 4).clamp(LOADED_AT_ONCE, LARGEST_BATCH);
        }
        Ok(rows)
    }
}

/// The next entries of the first source, in their order, and whether the others have them too.
async fn next(
    tx: &mut ReadTx,
    sources: &[Source<'_>],
    range: &UidRange,
    (last, direction): (Option<&str>, Direction),
    count: usize,
) -> Result<Vec<(String, bool)>> {
    let Some((source, others)) = sources.split_first() else { return Ok(Vec::new()) };
    let mut all: BTreeMap<String, bool> = BTreeMap::new();
    // The index has the advisories of each value in order, not those of all.
    for clause in source.each() {
        let query = batch((source, &clause), others, range, (last, direction), count);
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.int(1)? == 1));
        all.extend(tx.query(&query.text, &query.params, read).await?);
    }
    let mut entries: Vec<(String, bool)> = all.into_iter().collect();
    if direction == Direction::Descending {
        entries.reverse();
    }
    entries.truncate(count);
    Ok(entries)
}

/// Asks for the next entries of one value.
///
/// Of a source with one value, only entries count that the others have: each is checked once, however many batches a page
/// takes. Of several values a batch ends after so many entries, whatever the others have: the rest of a value may be very
/// much, and lie beyond the page.
fn batch<'a>(
    (source, clause): (&Source<'a>, &Clause<'a>),
    others: &'a [Source<'a>],
    range: &'a UidRange,
    (last, direction): (Option<&'a str>, Direction),
    count: usize,
) -> Sql<'a> {
    let found = source.matching();
    let (after, order) = match direction {
        Direction::Ascending => (">", "ASC"),
        Direction::Descending => ("<", "DESC"),
    };
    let (counted, listed) = if source.has_one_value() { (others, [].as_slice()) } else { ([].as_slice(), others) };
    let mut query = Sql::new("SELECT f.uid, CAST(CASE WHEN 1 = 1");
    for other in listed {
        query.text += " AND ";
        push_clause(&mut query, "advisories", &other.has("f.uid"));
    }
    query.text += " THEN 1 ELSE 0 END AS BIGINT) FROM (";
    push_clause(&mut query, "advisories", clause);
    in_range(&mut query, &found, range);
    if let Some(last) = last {
        let last = query.param(Value::Text(last));
        query.text += &format!(" AND {found} {after} {last}");
    }
    for other in counted {
        query.text += " AND ";
        push_clause(&mut query, "advisories", &other.has(&found));
    }
    let limit = query.param(Value::Int(count as i64));
    query.text += &format!(" ORDER BY {found} {order} LIMIT {limit}) f");
    query
}

/// Those that pass the tests which no index has decided, in their order.
async fn validated(
    tx: &mut ReadTx,
    table: &Table,
    uids: &[String],
    decided: &[Source<'_>],
    wanted: &AdvisoryQuery<'_>,
    direction: Direction,
) -> Result<Vec<AdvisoryRow>> {
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = Sql::new(format!("SELECT {} FROM {} WHERE ", table.columns, table.name));
    one_of(&mut query, "uid", uids);
    let tests = wanted.filters.tests(&decided.iter().map(|source| source.decides).collect::<Vec<_>>());
    validate(&mut query, table.name, &tests, wanted);
    let mut rows: Vec<AdvisoryRow> = tx.query(&query.text, &query.params, AdvisoryRow::read).await?;
    rows.sort_by(|one, other| one.uid().cmp(other.uid()));
    if direction == Direction::Descending {
        rows.reverse();
    }
    Ok(rows)
}
