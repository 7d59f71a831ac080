//! The one way that lists are read: visible ranges, filters, order, pages, counts.
//!
//! A resource says once how its table looks ([`Table`]); every list of both versions goes through
//! [`page`] or [`everything`], and neither compiles without the caller's visible ranges.

mod counts;
mod paged;
mod query;
mod select;

use bowline_core::{CapabilitySet, Error, Micros, Result, UidRange, Uidp, just_after};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest, SortKey};
use bowline_store::counters;
use bowline_store::{ReadTx, Row, Value};

use counts::total_in;
pub use counts::{count, total};
pub use paged::paging;
pub use query::push_clause;
pub use select::{select, select_v1};

/// How a resource's table looks to lists. Every table has `uid`, `parent` and `org` columns.
pub struct Table {
    /// Table name; also the name of the counted collection.
    pub name: &'static str,
    /// Columns that a row is read from.
    pub columns: &'static str,
    /// Order fields by the names they go by; the first is `uid`.
    pub orders: &'static [Order],
}

/// A field that a list can be sorted by.
pub struct Order {
    /// Names that callers use, the preferred one first.
    pub names: &'static [&'static str],
    pub column: &'static str,
}

/// `uid`, the default order of nearly every list.
pub const BY_UID: Order = Order { names: &["uid", "id"], column: "uid" };
/// Order by the column `name`.
pub const BY_NAME: Order = Order { names: &["name"], column: "name" };
/// By time of creation.
pub const BY_CREATED: Order =
    Order { names: &["create_time", "created_at", "createTime", "createdAt"], column: "created_at" };

/// The UIDP of a row, from the first of its columns.
///
/// # Errors
/// INTERNAL: the table holds something else.
pub fn stored_uid(row: &Row<'_>, table: &Table) -> Result<Uidp> {
    let uid = row.text(0)?;
    Uidp::parse(&uid).map_err(|_| Error::internal(format!("{} holds the damaged uid {uid}", table.name)))
}

/// A row that a list returns.
pub trait Listed: Sized + Send {
    /// Reads a row of the table's columns.
    fn read(row: &Row<'_>) -> Result<Self>;
    fn uid(&self) -> &str;
    /// Value of the order column.
    fn sort_key(&self, column: &str) -> SortKey;
}

/// A condition on a column, besides the ranges.
#[derive(Clone, Copy)]
pub struct Filter<'a> {
    pub column: &'static str,
    pub value: Value<'a>,
}

/// A condition on a column other than equality.
#[derive(Clone, Copy)]
pub struct Condition<'a> {
    pub column: &'static str,
    pub comparison: Comparison,
    pub value: Value<'a>,
}

/// How a column compares to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Not,
    /// It is the value or more.
    AtLeast,
    /// It is less than the value.
    Below,
}

/// A condition in SQL of its own, of static parts alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause<'a> {
    /// The text: `?` for each value, and `@` for the name of the listed table.
    pub text: String,
    /// The values, in the order of their placeholders.
    pub values: Vec<Value<'a>>,
}

/// What a list may look at.
pub struct Selection<'a> {
    /// Where the caller may look, already narrowed by the hierarchy filter; sorted and disjoint.
    pub ranges: Vec<UidRange>,
    /// Only direct children of this one.
    pub parent: Option<String>,
    /// Column conditions, all of which hold.
    pub filters: Vec<Filter<'a>>,
    /// Further conditions, all of which hold.
    pub conditions: Vec<Condition<'a>>,
    /// What no column says, all of which holds.
    pub clauses: Vec<Clause<'a>>,
}

/// One page of a list.
pub struct Listing<T> {
    /// Its rows, in the requested order.
    pub items: Vec<T>,
    /// Where the next page begins; empty on the last.
    pub next_page_token: String,
    /// Rows of all pages.
    pub total_count: i64,
    /// Rows that the request's `skip` left out.
    pub skipped: i32,
}

/// One page, as in v2.
pub async fn page<R, T: Listed>(
    tx: &mut ReadTx,
    call: &Authorized<R>,
    table: &Table,
    selection: &Selection<'_>,
    request: &PageRequest,
    default: (usize, Direction),
) -> Result<Listing<T>> {
    let names: Vec<&[&str]> = table.orders.iter().map(|order| order.names).collect();
    let page = Page::validate(call, request, &names, default)?;
    let total_count = total(tx, table, selection).await?;
    let mut items: Vec<T> = rows_of(tx, table, selection, &page).await?;
    let mut next_page_token = String::new();
    if items.len() > page.size {
        items.truncate(page.size);
        if let Some(last) = items.last() {
            let column = table.orders[page.order].column;
            let key = (page.order != 0).then(|| last.sort_key(column));
            next_page_token = page.next_token(call, key, last.uid().to_owned());
        }
    }
    let skipped = i32::try_from(page.skipped()).unwrap_or(i32::MAX);
    Ok(Listing { items, next_page_token, total_count, skipped })
}

/// The rows of a page, and one more if there are more.
pub async fn rows_of<T: Listed>(
    tx: &mut ReadTx,
    table: &Table,
    selection: &Selection<'_>,
    page: &Page,
) -> Result<Vec<T>> {
    let mut rows = Rows { table, selection, page };
    if page.order == 0 { rows.by_uid(tx, page.size + 1).await } else { rows.by_column(tx, page.size + 1).await }
}

/// Bytes that a whole list of v1 may have, encoded.
const WHOLE_LIST_BYTES: usize = 100 << 20;
/// Rows that are read at a time for it.
const WHOLE_LIST_ROWS: usize = 1000;

/// Everything, by UIDP, as in v1; `encoded_len` bounds it.
pub async fn everything<R, T: Listed>(
    tx: &mut ReadTx,
    call: &Authorized<R>,
    table: &Table,
    selection: &Selection<'_>,
    encoded_len: impl Fn(&T) -> usize,
) -> Result<Vec<T>> {
    let (offset, limit) = call.slice().unwrap_or((0, usize::MAX));
    let mut page = Page::first(i64::try_from(offset).unwrap_or(i64::MAX));
    let mut items: Vec<T> = Vec::new();
    let mut bytes = 0;
    while items.len() < limit {
        let wanted = WHOLE_LIST_ROWS.min(limit - items.len());
        let rows: Vec<T> = Rows { table, selection, page: &page }.by_uid(tx, wanted).await?;
        let is_last = rows.len() < wanted;
        bytes += rows.iter().map(&encoded_len).sum::<usize>();
        if bytes > WHOLE_LIST_BYTES {
            return Err(Error::new(
                bowline_core::Reason::RequestTooLarge,
                "The whole list is larger than 100 MB: narrow it with a filter, or page through the second version of this method",
            ));
        }
        items.extend(rows);
        if is_last {
            break;
        }
        if let Some(last) = items.last() {
            page = Page::after(last.uid());
        }
    }
    Ok(items)
}

/// What is left of a range that rows are read from.
#[derive(Clone, Copy)]
struct Rest {
    /// The page before ended inside of it.
    is_begun: bool,
    /// No other range follows.
    is_last: bool,
    ascending: bool,
}

/// Reads the rows of a page.
struct Rows<'a, 's> {
    table: &'a Table,
    selection: &'a Selection<'s>,
    page: &'a Page,
}

impl Rows<'_, '_> {
    /// In UIDP order: the ranges one after the other.
    async fn by_uid<T: Listed>(&mut self, tx: &mut ReadTx, wanted: usize) -> Result<Vec<T>> {
        let ascending = self.page.direction == Direction::Ascending;
        let mut ranges = self.selection.ranges.clone();
        if !ascending {
            ranges.reverse();
        }
        let mut skip = self.page.skip;
        let mut items = Vec::new();
        let places = ranges.len();
        for (place, mut range) in ranges.into_iter().enumerate() {
            let whole = range.clone();
            if let Some(cursor) = &self.page.cursor {
                if ascending {
                    range.lower = range.lower.max(just_after(&cursor.uid));
                } else {
                    range.upper = range.upper.min(cursor.uid.clone());
                }
            }
            if range.lower >= range.upper || items.len() >= wanted {
                continue;
            }
            let rest = Rest { is_begun: range != whole, is_last: place + 1 == places, ascending };
            if skip > 0 && !self.skip_into(tx, &mut range, &mut skip, rest).await? {
                continue;
            }
            let direction = if ascending { "ASC" } else { "DESC" };
            let mut sql = query::select(self.table, self.selection, &range, false);
            sql.text += &format!(" ORDER BY uid {direction}");
            query::limit(&mut sql, (wanted - items.len()) as i64, skip);
            items.extend(tx.query(&sql.text, &sql.params, T::read).await?);
            skip = 0;
        }
        Ok(items)
    }

    /// Moves the range's start over the items to skip; false if the whole range is skipped.
    async fn skip_into(&self, tx: &mut ReadTx, range: &mut UidRange, skip: &mut i64, rest: Rest) -> Result<bool> {
        // Where a page ended there is no kept count, and in the last range none is needed.
        if !(rest.is_begun && rest.is_last) {
            let in_range = total_in(tx, self.table, self.selection, range).await?;
            if in_range <= *skip {
                *skip -= in_range;
                return Ok(false);
            }
        }
        // Skipping n from the end is skipping all but n from the start.
        if self.selection.is_filtered() || !rest.ascending {
            return Ok(true);
        }
        if let Some(cursor) = self.page.cursor.as_ref().filter(|_| rest.is_begun) {
            // The counters know UIDPs only: counted from the last row on, which is one more if it is still there.
            *skip += total_in(tx, self.table, self.selection, &UidRange::single(&cursor.uid)).await?;
            range.lower.clone_from(&cursor.uid);
        }
        let seek = counters::seek(tx, self.table.name, &range.lower, &range.upper, *skip).await?;
        range.lower = range.lower.clone().max(seek.start_uid_prefix);
        *skip = seek.remaining;
        Ok(true)
    }

    /// In the order of another column: the ranges merged.
    async fn by_column<T: Listed>(&mut self, tx: &mut ReadTx, wanted: usize) -> Result<Vec<T>> {
        let column = self.table.orders[self.page.order].column;
        let ascending = self.page.direction == Direction::Ascending;
        let single = self.selection.ranges.len() == 1;
        if !single && self.page.skip > MERGED_SKIP {
            return Err(Error::invalid_field(
                "skip",
                format!(
                    "may be at most {MERGED_SKIP} in this order over several places; narrow the list to one group, or page by token"
                ),
            ));
        }
        let (reach, offset) =
            if single { (wanted as i64, self.page.skip) } else { (wanted as i64 + self.page.skip, 0) };
        let mut items: Vec<T> = Vec::new();
        for range in &self.selection.ranges {
            // What no column says is not counted to find out.
            let by_org = !self.selection.clauses.is_empty()
                || total_in(tx, self.table, self.selection, range).await? > SORTED_AT_ONCE;
            let mut sql = query::select(self.table, self.selection, range, by_org);
            if let Some(cursor) = &self.page.cursor {
                let key = match &cursor.key {
                    Some(SortKey::Text(text)) => Value::Text(text),
                    Some(SortKey::Int(int)) => Value::Int(*int),
                    None => return Err(Error::internal("a page token of a sorted list has no key")),
                };
                let (key, uid) = (sql.param(key), sql.param(Value::Text(&cursor.uid)));
                let comparison = if ascending { ">" } else { "<" };
                sql.text += &format!(" AND ({column}, uid) {comparison} ({key}, {uid})");
            }
            let direction = if ascending { "ASC" } else { "DESC" };
            sql.text += &format!(" ORDER BY {column} {direction}, uid {direction}");
            query::limit(&mut sql, reach, offset);
            items.extend(tx.query(&sql.text, &sql.params, T::read).await?);
        }
        if self.selection.ranges.len() > 1 {
            items.sort_by(|a, b| {
                let order = compare(&a.sort_key(column), &b.sort_key(column)).then_with(|| a.uid().cmp(b.uid()));
                if ascending { order } else { order.reverse() }
            });
        }
        let skip = if single { 0 } else { self.page.skip as usize };
        Ok(items.into_iter().skip(skip).take(wanted).collect())
    }
}

/// Maximum number of rows that are skipped while several ranges are merged: all of them are read.
const MERGED_SKIP: i64 = 10_000;

/// Up to this many rows are sorted at once; more are read along the index of their organization.
const SORTED_AT_ONCE: i64 = 2000;

/// Orders sort keys; numbers come before texts.
pub fn compare(left: &SortKey, right: &SortKey) -> std::cmp::Ordering {
    match (left, right) {
        (SortKey::Text(left), SortKey::Text(right)) => left.cmp(right),
        (SortKey::Int(left), SortKey::Int(right)) => left.cmp(right),
        (SortKey::Int(_), SortKey::Text(_)) => std::cmp::Ordering::Less,
        (SortKey::Text(_), SortKey::Int(_)) => std::cmp::Ordering::Greater,
    }
}

impl Selection<'_> {
    fn is_filtered(&self) -> bool {
        self.parent.is_some() || !self.is_counted()
    }

    /// Whether maintained counts give the number of rows.
    fn is_counted(&self) -> bool {
        self.filters.is_empty() && self.conditions.is_empty() && self.clauses.is_empty()
    }
}

/// The capability of this number as a set.
pub fn capability<T>(
    call: &Authorized<T>,
    capability: bowline_contract::chainguard::capabilities::Capability,
) -> CapabilitySet {
    let facts = call.contract().capabilities().by_number(capability as i32);
    facts.map(|facts| CapabilitySet::of_bit(facts.bit)).unwrap_or_default()
}

/// A time of the wire in microseconds; what lies beyond them is the end of time.
pub fn micros(time: prost_types::Timestamp) -> Micros {
    time.seconds.saturating_mul(1_000_000).saturating_add(i64::from(time.nanos) / 1000)
}

/// A time as the wire has it.
pub fn timestamp(micros: Micros) -> Option<prost_types::Timestamp> {
    let (seconds, rest) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    Some(prost_types::Timestamp { seconds, nanos: rest as i32 * 1000 })
}
