//! Reads rows of one sequence in order, through the index that fits best, a bounded number at a time.

use bowline_core::{Error, Micros, Result, UidRange};
use bowline_pipeline::{Authorized, Direction, OPERATOR};
use bowline_store::{ReadTx, Value};

use super::visibility::{Sequence, sees};

/// Rows of one statement.
const BATCH: i64 = 200;
/// Rows that one call looks at: what it did not come to is on a later page.
pub(super) const EXAMINED: usize = 5000;
/// The same for one look of a stream, of which there are many.
pub(super) const EXAMINED_BY_WATCH: usize = 1000;
/// How far the clocks of replicas may be apart, and how long a change may take: rows stand in the order of their
/// transactions, nearly that of their times.
const SLACK: Micros = 10 * 60 * 1_000_000;

/// The conditions of a request; all hold.
#[derive(Clone, Debug)]
pub(super) struct EntryFilter {
    pub(super) sequence: Sequence,
    pub(super) resource: String,
    pub(super) within: String,
    pub(super) actor: String,
    pub(super) method: String,
    pub(super) kind: String,
    pub(super) from: Option<Micros>,
    pub(super) until: Option<Micros>,
}

/// Where in a sequence: numbers greater than the one and smaller than the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) after: i64,
    pub(super) before: i64,
    pub(super) direction: Direction,
}

/// A row of the audit log, without its snapshots.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) seq: i64,
    pub(super) org_seq: i64,
    pub(super) at: Micros,
    pub(super) org: String,
    pub(super) actor: String,
    pub(super) method: String,
    pub(super) request_id: String,
    pub(super) kind: String,
    pub(super) resource: String,
    pub(super) before: Option<(String, Vec<u8>)>,
    pub(super) after: Option<(String, Vec<u8>)>,
    pub(super) org_hash: Vec<u8>,
    pub(super) hash: Vec<u8>,
}

/// What a scan found.
pub(super) struct ScanResult {
    pub(super) rows: Vec<Row>,
    /// Number of the last row that was looked at; absent if there was none.
    pub(super) last: Option<i64>,
    /// Whether the scan ended before the span did.
    pub(super) more: bool,
}

const COLUMNS: &str = "seq, org_seq, at, org, actor, method, request_id, kind, resource,
  before_type, before_hash, after_type, after_hash, org_hash, hash";

impl Row {
    fn read(row: &bowline_store::Row<'_>) -> Result<Row> {
        let side = |at| -> Result<Option<(String, Vec<u8>)>> { Ok(row.opt_text(at)?.zip(row.opt_bytes(at + 1)?)) };
        Ok(Row {
            seq: row.int(0)?,
            org_seq: row.int(1)?,
            at: row.int(2)?,
            org: row.text(3)?,
            actor: row.text(4)?,
            method: row.text(5)?,
            request_id: row.text(6)?,
            kind: row.text(7)?,
            resource: row.text(8)?,
            before: side(9)?,
            after: side(11)?,
            org_hash: row.bytes(13)?,
            hash: row.bytes(14)?,
        })
    }

    /// Its number in the sequence.
    pub(super) fn number(&self, sequence: &Sequence) -> i64 {
        match sequence {
            Sequence::Server => self.seq,
            Sequence::Of(_) => self.org_seq,
        }
    }
}

/// The index that a scan walks.
enum ScanIndex<'a> {
    All,
    Organization(&'a str),
    Resource(&'a str),
    Actor(&'a str),
    Method(&'a str),
}

impl EntryFilter {
    /// The narrowest index. What the operator did is everywhere, so it narrows an organization's rows least.
    fn index(&self) -> ScanIndex<'_> {
        match &self.sequence {
            _ if !self.resource.is_empty() => ScanIndex::Resource(&self.resource),
            Sequence::Server if !self.actor.is_empty() => ScanIndex::Actor(&self.actor),
            Sequence::Of(_) if !self.actor.is_empty() && self.actor != OPERATOR => ScanIndex::Actor(&self.actor),
            Sequence::Of(root) => ScanIndex::Organization(root),
            Sequence::Server if !self.method.is_empty() => ScanIndex::Method(&self.method),
            Sequence::Server => ScanIndex::All,
        }
    }

    fn admits(&self, row: &Row) -> bool {
        let is = |wanted: &str, value: &str| wanted.is_empty() || wanted == value;
        (self.sequence == Sequence::Server || self.sequence.chain() == row.org)
            && is(&self.resource, &row.resource)
            && is(&self.actor, &row.actor)
            && is(&self.method, &row.method)
            && is(&self.kind, &row.kind)
            && (self.within.is_empty() || UidRange::subtree(&self.within).contains(&row.resource))
            && self.from.is_none_or(|from| row.at >= from)
            && self.until.is_none_or(|until| row.at < until)
    }
}

impl<'a> ScanIndex<'a> {
    /// The condition, its value, and the number that orders the index.
    fn parts(self) -> (&'static str, Option<&'a str>, &'static str) {
        match self {
            ScanIndex::All => ("", None, "seq"),
            ScanIndex::Organization(root) => ("AND org = $4", Some(root), "org_seq"),
            ScanIndex::Resource(uid) => ("AND resource = $4", Some(uid), "seq"),
            ScanIndex::Actor(uid) => ("AND actor = $4", Some(uid), "seq"),
            ScanIndex::Method(name) => ("AND method = $4", Some(name), "seq"),
        }
    }
}

/// How much a scan finds and looks at, each at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) matches: usize,
    pub(super) examined: usize,
}

/// Rows of the span that meet the conditions and that the caller may see.
pub(super) async fn scan<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    wanted: &EntryFilter,
    span: Span,
    limits: Limits,
) -> Result<ScanResult> {
    let mut span = narrow_to_times(tx, wanted, span).await?;
    let mut found = ScanResult { rows: Vec::new(), last: None, more: true };
    let mut examined = 0;
    while examined < limits.examined {
        let rows = batch(tx, wanted, span).await?;
        let is_end = rows.len() < BATCH as usize;
        for row in rows {
            examined += 1;
            let number = row.number(&wanted.sequence);
            found.last = Some(number);
            match span.direction {
                Direction::Ascending => span.after = number,
                Direction::Descending => span.before = number,
            }
            if wanted.admits(&row) && sees(call, &row) {
                found.rows.push(row);
                if found.rows.len() == limits.matches {
                    return Ok(found);
                }
            }
        }
        if is_end {
            found.more = false;
            break;
        }
    }
    Ok(found)
}

async fn batch(tx: &mut ReadTx, wanted: &EntryFilter, span: Span) -> Result<Vec<Row>> {
    let (condition, value, number) = wanted.index().parts();
    let (after, before) = match &wanted.sequence {
        Sequence::Of(root) if number == "seq" => (
            seq_at(tx, root, span.after, AT_MOST).await?.unwrap_or(0),
            seq_at(tx, root, span.before, AT_LEAST).await?.unwrap_or(i64::MAX),
        ),
        _ => (span.after, span.before),
    };
    let order = if span.direction == Direction::Ascending { "ASC" } else { "DESC" };
    // The organization's rows are wanted alone, so that a batch cannot be filled with those of others.
    let of_root = if matches!(wanted.sequence, Sequence::Of(_)) && number == "seq" { "AND org = $5" } else { "" };
    let sql = format!(
        "SELECT {COLUMNS} FROM audit WHERE seq IS NOT NULL AND {number} > $1 AND {number} < $2 {condition} {of_root}
         ORDER BY {number} {order} LIMIT $3"
    );
    let mut params = vec![Value::Int(after), Value::Int(before), Value::Int(BATCH)];
    params.extend(value.map(Value::from));
    if !of_root.is_empty() {
        params.push(Value::from(wanted.sequence.chain()));
    }
    tx.query(&sql, &params, Row::read).await
}

const AT_MOST: &str = "
SELECT seq FROM audit WHERE seq IS NOT NULL AND org = $1 AND org_seq <= $2 ORDER BY org_seq DESC LIMIT 1";
const AT_LEAST: &str = "
SELECT seq FROM audit WHERE seq IS NOT NULL AND org = $1 AND org_seq >= $2 ORDER BY org_seq LIMIT 1";

/// The number, among all rows, of the organization's row nearest to that number of its own.
async fn seq_at(tx: &mut ReadTx, root: &str, org_seq: i64, sql: &'static str) -> Result<Option<i64>> {
    let params = [Value::from(root), Value::Int(org_seq)];
    tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await
}

/// Where a sequence ends and up to where it was pruned.
pub(super) async fn ends(tx: &mut ReadTx, sequence: &Sequence) -> Result<(i64, i64)> {
    let sql = "SELECT seq, pruned_seq FROM audit_chains WHERE org = $1";
    let read = |row: &bowline_store::Row<'_>| Ok::<_, Error>((row.int(0)?, row.int(1)?));
    Ok(tx.query_opt(sql, &[Value::from(sequence.chain())], read).await?.unwrap_or((0, 0)))
}

/// Leaves out what lies before or after the wanted times by more than clocks can be wrong.
async fn narrow_to_times(tx: &mut ReadTx, wanted: &EntryFilter, mut span: Span) -> Result<Span> {
    if wanted.from.is_none() && wanted.until.is_none() {
        return Ok(span);
    }
    let (last, pruned) = ends(tx, &wanted.sequence).await?;
    if let Some(from) = wanted.from {
        let first = first_since(tx, &wanted.sequence, (pruned, last), from.saturating_sub(SLACK)).await?;
        span.after = span.after.max(first - 1);
    }
    if let Some(until) = wanted.until {
        let first = first_since(tx, &wanted.sequence, (pruned, last), until.saturating_add(SLACK)).await?;
        span.before = span.before.min(first);
    }
    Ok(span)
}

/// The number of the first row since that time, found by halving; one past the end if there is none.
async fn first_since(tx: &mut ReadTx, sequence: &Sequence, (pruned, last): (i64, i64), time: Micros) -> Result<i64> {
    let (mut low, mut high) = (pruned + 1, last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if at(tx, sequence, middle).await?.is_some_and(|at| at >= time) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

async fn at(tx: &mut ReadTx, sequence: &Sequence, number: i64) -> Result<Option<Micros>> {
    let read = |row: &bowline_store::Row<'_>| row.int(0).map_err(Error::from);
    match sequence {
        Sequence::Server => {
            let sql = "SELECT at FROM audit WHERE seq IS NOT NULL AND seq = $1";
            tx.query_opt(sql, &[Value::Int(number)], read).await
        }
        Sequence::Of(root) => {
            let sql = "SELECT at FROM audit WHERE seq IS NOT NULL AND org = $1 AND org_seq = $2";
            tx.query_opt(sql, &[Value::from(root), Value::Int(number)], read).await
        }
    }
}

/// The row of this number.
pub(super) async fn find(tx: &mut ReadTx, sequence: &Sequence, number: i64) -> Result<Option<Row>> {
    let (condition, root) = match sequence {
        Sequence::Server => ("seq = $1", None),
        Sequence::Of(root) => ("org_seq = $1 AND org = $2", Some(root)),
    };
    let sql = format!("SELECT {COLUMNS} FROM audit WHERE seq IS NOT NULL AND {condition}");
    let mut params = vec![Value::Int(number)];
    params.extend(root.map(Value::from));
    tx.query_opt(&sql, &params, Row::read).await
}
