//! Pages of advisories, whatever is filtered, in bounded time.
//!
//! The filter that leaves the fewest advisories finds them by its index, and the others check what it found. Where every
//! filter leaves many, pages by UIDP are read along the index of the one that leaves fewest, and in other orders the list
//! is walked, because a page is full soon; what matches is not counted then.

use bowline_core::{Error, Result, UidRange};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest, SortKey};
use bowline_resources::list::{self, Clause, Listed, Selection, Table, push_clause};
use bowline_store::{ReadTx, Row, Sql, Value};

use super::filters::{Filters, Source, WORDS};
use super::rows::{self, ALL, AdvisoryRow, DELETED, LOADED_AT_ONCE, SHOWN};
use super::{pagination, words};

/// Maximum number of advisories checked and sorted at once: reading them costs about as much as finding a page of more.
const FEW: i64 = 5000;
/// The same where an index has the page's order.
const FEW_BY_UID: i64 = 2000;
/// How far it is counted which of several filters that leave many leaves fewest, one step after the other.
const MANY: [i64; 2] = [10_000, 50_000];
/// Maximum bytes that the events of a page have: a page is shorter rather than larger.
const PAGE_BYTES: i64 = 32 << 20;
/// Maximum number of packages of an origin that are looked up by index.
const MAX_PACKAGES: i64 = 500;

/// A page of advisories, without their events.
pub(super) struct AdvisoryPage {
    pub(super) rows: Vec<AdvisoryRow>,
    pub(super) next_page_token: String,
    /// Absent where counting would cost more than the page.
    pub(super) total_count: Option<i64>,
    pub(super) skipped: i32,
}

/// Which advisories, in which manner.
pub(super) struct AdvisoryQuery<'a> {
    pub(super) selection: Selection<'a>,
    pub(super) filters: &'a Filters,
    /// Whether advisories are named by their UIDPs, which shows deleted ones as well.
    pub(super) by_uid: bool,
    pub(super) page: PageRequest,
    /// Order and direction where the request names none.
    pub(super) default: (usize, Direction),
}

pub(super) async fn page<R>(
    tx: &mut ReadTx,
    call: &Authorized<R>,
    mut wanted: AdvisoryQuery<'_>,
) -> Result<AdvisoryPage> {
    let names: Vec<&[&str]> = ALL.orders.iter().map(|order| order.names).collect();
    let page = Page::validate(call, &wanted.page, &names, wanted.default)?;
    let column = ALL.orders[page.order].column;
    let table = match column {
        // The others have no such time.
        "deleted_at" => &DELETED,
        _ if wanted.by_uid || wanted.filters.names_advisories() => &ALL,
        _ => &SHOWN,
    };
    let tests = wanted.filters.tests(&[]);
    let organization = organization(&wanted.selection.ranges).filter(|_| page.order != 0);
    let (mut rows, total_count) = if tests.is_empty() {
        let total = list::total(tx, table, &wanted.selection).await?;
        wanted.selection.clauses = organization.as_deref().map(in_organization).into_iter().collect();
        (list::rows_of(tx, table, &wanted.selection, &page).await?, Some(total))
    } else {
        let by_uid = page.order == 0 && page.skip <= pagination::MAX_SKIPPED;
        match fewest(tx, wanted.filters, &wanted.selection.ranges, by_uid).await? {
            Fewest::Few(source) => {
                let matching = matching(tx, table, column, &source, &wanted).await?;
                let total = matching.len() as i64;
                (cut(tx, matching, &page).await?, Some(total))
            }
            Fewest::AdvisoryPage(uids) => {
                let matching = among(tx, table, column, &uids, &wanted).await?;
                let total = matching.len() as i64;
                (cut(tx, matching, &page).await?, Some(total))
            }
            Fewest::Many(sources) => (pagination::page(tx, table, &sources, &wanted, &page).await?, None),
            Fewest::Unknown => {
                wanted.selection.clauses = tests;
                wanted.selection.clauses.extend(organization.as_deref().map(in_organization));
                (list::rows_of(tx, table, &wanted.selection, &page).await?, None)
            }
        }
    };
    let next_page_token = shorten(&mut rows, &page).then(|| rows.last()).flatten().map(|last| {
        let key = (page.order != 0).then(|| last.sort_key(column));
        page.next_token(call, key, last.uid().to_owned())
    });
    let skipped = i32::try_from(page.skipped()).unwrap_or(i32::MAX);
    Ok(AdvisoryPage { rows, next_page_token: next_page_token.unwrap_or_default(), total_count, skipped })
}

/// The organization that all ranges lie in, if it is one.
fn organization(ranges: &[UidRange]) -> Option<String> {
    let mut organizations = ranges.iter().map(|range| range.lower.get(..bowline_core::ROOT_LENGTH));
    let first = organizations.next()??;
    organizations.all(|organization| organization == Some(first)).then(|| first.to_owned())
}

/// Every advisory has an organization: with one of them, the index of an order is read in its order.
fn in_organization(organization: &str) -> Clause<'_> {
    Clause { text: "@.org = ?".into(), values: vec![Value::from(organization)] }
}

/// Cuts the rows to the page's size, in number and in bytes; returns whether some were left out.
fn shorten(rows: &mut Vec<AdvisoryRow>, page: &Page) -> bool {
    let mut bytes = 0;
    let fit = rows.iter().take_while(|row| {
        bytes += row.event_bytes;
        bytes <= PAGE_BYTES
    });
    // One advisory is bounded by itself.
    let kept = fit.count().clamp(1, page.size);
    let is_cut = rows.len() > kept;
    rows.truncate(kept);
    is_cut
}

/// The packages that are built from the origin that the filters name, of all organizations: the tests distinguish
/// them.
pub(super) async fn resolve_origin(tx: &mut ReadTx, filters: &mut Filters) -> Result<()> {
    if filters.origin.is_empty() {
        return Ok(());
    }
    let sql = "SELECT DISTINCT package FROM package_origins WHERE origin = $1 LIMIT $2";
    let params = [Value::from(&filters.origin), Value::Int(MAX_PACKAGES + 1)];
    let packages: Vec<String> = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    if packages.len() as i64 <= MAX_PACKAGES {
        filters.packages = packages;
        filters.packages.push(filters.origin.clone());
    }
    Ok(())
}

/// The filter that leaves the fewest advisories.
enum Fewest<'f> {
    /// It leaves so few that they are read and sorted.
    Few(Source<'f>),
    /// They were found by their words, which is not done twice.
    AdvisoryPage(Vec<String>),
    /// It leaves many, and its index has them by UIDP; it is the first of those of which that is so.
    Many(Vec<Source<'f>>),
    Unknown,
}

/// The range from the first to the last of sorted ones; absent if there are none.
fn hull(ranges: &[UidRange]) -> Option<UidRange> {
    Some(UidRange { lower: ranges.first()?.lower.clone(), upper: ranges.last()?.upper.clone() })
}

/// Counts what each source has, as far as it matters. `by_uid`: the index of a source may be walked.
async fn fewest<'f>(tx: &mut ReadTx, filters: &'f Filters, ranges: &[UidRange], by_uid: bool) -> Result<Fewest<'f>> {
    let Some(hull) = hull(ranges) else { return Ok(Fewest::AdvisoryPage(Vec::new())) };
    let mut sources = filters.sources();
    let is_by_words = words::are_indexed(filters);
    let few = if by_uid && !is_by_words { FEW_BY_UID } else { FEW };
    if let Some(best) = least(tx, &sources, &hull, few + 1).await? {
        return Ok(Fewest::Few(sources.swap_remove(best)));
    }
    if is_by_words {
        let uids = words::matching(tx, filters, &hull, FEW + 1).await?;
        if uids.len() as i64 <= FEW {
            return Ok(Fewest::AdvisoryPage(uids));
        }
    }
    if !by_uid || sources.is_empty() {
        return Ok(Fewest::Unknown);
    }
    for many in MANY {
        if sources.len() > 1
            && let Some(best) = least(tx, &sources, &hull, many).await?
        {
            sources.swap(0, best);
            break;
        }
    }
    Ok(Fewest::Many(sources))
}

/// The source with the fewest advisories; absent if all have so many.
async fn least(tx: &mut ReadTx, sources: &[Source<'_>], hull: &UidRange, mut many: i64) -> Result<Option<usize>> {
    let mut best = None;
    for (index, source) in sources.iter().enumerate() {
        let mut query = Sql::new("SELECT count(*) FROM (");
        within(&mut query, source, hull);
        let limit = query.param(Value::Int(many));
        query.text += &format!(" LIMIT {limit}) f");
        let count = tx.query_opt(&query.text, &query.params, |row| row.int(0).map_err(Error::from)).await?;
        let count = count.unwrap_or(0);
        if count < many {
            (best, many) = (Some(index), count);
        }
    }
    Ok(best)
}

/// Adds the source's SELECT, limited to a range.
fn within<'a>(query: &mut Sql<'a>, source: &Source<'a>, range: &'a UidRange) {
    push_clause(query, ALL.name, &source.select());
    in_range(query, &source.matching(), range);
}

/// Adds that a UIDP lies in a range.
pub(super) fn in_range<'a>(query: &mut Sql<'a>, uid: &str, range: &'a UidRange) {
    let (lower, upper) = (query.param(Value::Text(&range.lower)), query.param(Value::Text(&range.upper)));
    query.text += &format!(" AND {uid} >= {lower} AND {uid} < {upper}");
}

/// An advisory that matches, and what it is sorted by.
struct Match {
    uid: String,
    key: Option<SortKey>,
}

/// The advisories of the source that pass every test; at most [`FEW`].
async fn matching(
    tx: &mut ReadTx,
    table: &Table,
    column: &'static str,
    source: &Source<'_>,
    wanted: &AdvisoryQuery<'_>,
) -> Result<Vec<Match>> {
    let ranges = &wanted.selection.ranges;
    let Some(hull) = hull(ranges) else { return Ok(Vec::new()) };
    let name = table.name;
    // The cross join keeps SQLite from beginning with the advisories; another planner finds the same by itself.
    let mut query = Sql::new(format!("SELECT {name}.uid, {name}.{column} FROM (SELECT DISTINCT f.uid FROM ("));
    within(&mut query, source, &hull);
    query.text += &format!(") f) g CROSS JOIN {name} WHERE {name}.uid = g.uid");
    let tests = wanted.filters.tests(&[source.decides]);
    validate(&mut query, name, &tests, wanted);
    let found = tx.query(&query.text, &query.params, |row| read_match(row, column)).await?;
    Ok(found.into_iter().filter(|found| ranges.iter().any(|range| range.contains(&found.uid))).collect())
}

/// Those of these advisories, which were found by their words, that pass every other test.
async fn among(
    tx: &mut ReadTx,
    table: &Table,
    column: &'static str,
    uids: &[String],
    wanted: &AdvisoryQuery<'_>,
) -> Result<Vec<Match>> {
    let tests = wanted.filters.tests(&[WORDS]);
    let mut all = Vec::new();
    for uids in uids.chunks(LOADED_AT_ONCE) {
        let mut query = Sql::new(format!("SELECT uid, {column} FROM {} WHERE ", table.name));
        one_of(&mut query, "uid", uids);
        validate(&mut query, table.name, &tests, wanted);
        all.extend(tx.query(&query.text, &query.params, |row| read_match(row, column)).await?);
    }
    all.retain(|found: &Match| wanted.selection.ranges.iter().any(|range| range.contains(&found.uid)));
    Ok(all)
}

/// Adds that a column has one of some values, the last one as often as makes a power of two: few texts of statements are
/// prepared then.
pub(super) fn one_of<'a>(query: &mut Sql<'a>, column: &str, values: &'a [String]) {
    let last = values.last().into_iter().cycle();
    let padded = values.iter().chain(last).take(values.len().next_power_of_two());
    let placeholders: Vec<String> = padded.map(|value| query.param(Value::from(value))).collect();
    query.text += &format!("{column} IN ({})", placeholders.join(", "));
}

/// Adds the conditions, and the requested group.
pub(super) fn validate<'a>(query: &mut Sql<'a>, table: &str, tests: &[Clause<'a>], wanted: &'a AdvisoryQuery<'_>) {
    for test in tests {
        query.text += " AND ";
        push_clause(query, table, test);
    }
    if let Some(parent) = &wanted.selection.parent {
        let parent = query.param(Value::Text(parent));
        query.text += &format!(" AND {table}.parent || '' = {parent}");
    }
}

fn read_match(row: &Row<'_>, column: &str) -> Result<Match> {
    let key = match column {
        "uid" => None,
        "first_alias" => Some(SortKey::Text(row.text(1)?)),
        _ => Some(SortKey::Int(row.int(1)?)),
    };
    Ok(Match { uid: row.text(0)?, key })
}

/// The rows of the page among those that match, and one more if there are more.
async fn cut(tx: &mut ReadTx, mut matching: Vec<Match>, page: &Page) -> Result<Vec<AdvisoryRow>> {
    let ordered = |left: &Match, right: &Match| {
        let order = match (&left.key, &right.key) {
            (Some(left), Some(right)) => list::compare(left, right),
            _ => std::cmp::Ordering::Equal,
        };
        let order = order.then_with(|| left.uid.cmp(&right.uid));
        if page.direction == Direction::Ascending { order } else { order.reverse() }
    };
    if let Some(cursor) = &page.cursor {
        let last = Match { uid: cursor.uid.clone(), key: cursor.key.clone() };
        matching.retain(|found| ordered(found, &last).is_gt());
    }
    matching.sort_by(ordered);
    let skip = usize::try_from(page.skip).unwrap_or(usize::MAX);
    let uids: Vec<String> = matching.into_iter().skip(skip).take(page.size + 1).map(|found| found.uid).collect();
    let mut rows = rows::load(tx, &uids).await?;
    let position = |row: &AdvisoryRow| uids.iter().position(|uid| uid == row.uid());
    rows.sort_by_cached_key(position);
    Ok(rows)
}
