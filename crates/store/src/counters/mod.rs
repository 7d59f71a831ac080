//! Kept counts: exact totals and fast skips over resources whose uid is a path.
//!
//! A uid is `seg/seg/...`: ASCII letters and digits, each segment of two or more
//! characters, ordered bytewise. `/` sorts before both, so everything below `p`
//! is the range `p/` to `p0`, and a uid comes right before what is below it.
//!
//! A write appends one row to `count_deltas` ([`record`]), which contends with
//! no one. In the background [`fold`] moves deltas into `counts`. Readers add
//! what is pending to what is folded, in one snapshot, so both are exact always.
//!
//! For the uid `a/b/c` these nodes count it (`n` is never kept at zero):
//!
//! | node | meaning |
//! |---|---|
//! | `+`, `+a`, `+a/b` | everything below the path (the empty path: all) |
//! | `~ aa`, `~a bb`, `~a/b cc` | below the path, by the next segment's first two characters |
//! | `= a`, `=a b`, `=a/b c` | the path's child with everything below it |
//!
//! The space sorts before `/`, so one range scan finds the buckets or the
//! children of a path and nothing deeper.

mod seek;
mod totals;

use std::collections::BTreeMap;
use std::fmt::Write;

pub use seek::{Seek, seek, seek_within};
pub use totals::totals;

use crate::error::StoreError;
use crate::tx::{ReadTx, WriteTx};
use crate::value::Value;

/// The tables, for SQLite and for PostgreSQL; include them in a [`crate::Migration`].
pub const COUNTERS_MIGRATION: (&str, &str) = (
    "CREATE TABLE counts (
         collection TEXT NOT NULL,
         node TEXT NOT NULL,
         n INTEGER NOT NULL,
         PRIMARY KEY (collection, node)
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE count_deltas (
         id INTEGER PRIMARY KEY,
         collection TEXT NOT NULL,
         uid TEXT NOT NULL,
         delta INTEGER NOT NULL
     ) STRICT;
     CREATE INDEX count_deltas_uid ON count_deltas (collection, uid, delta);",
    "CREATE TABLE counts (
         collection TEXT COLLATE \"C\" NOT NULL,
         node TEXT COLLATE \"C\" NOT NULL,
         n BIGINT NOT NULL,
         PRIMARY KEY (collection, node)
     );
     CREATE TABLE count_deltas (
         id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
         collection TEXT COLLATE \"C\" NOT NULL,
         uid TEXT COLLATE \"C\" NOT NULL,
         delta BIGINT NOT NULL
     );
     CREATE INDEX count_deltas_uid ON count_deltas (collection, uid, delta);",
);

/// Which resources to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    All,
    /// The uid itself and everything below it.
    Subtree(&'a str),
    /// Everything below the uid, without itself.
    Below(&'a str),
}

/// Notes that the resource `uid` came (`1`) or went (`-1`). Call it in the
/// transaction that inserts or deletes the row.
pub async fn record(tx: &mut WriteTx, collection: &str, uid: &str, delta: i64) -> Result<(), StoreError> {
    check(uid)?;
    tx.execute(
        "INSERT INTO count_deltas (collection, uid, delta) VALUES ($1, $2, $3)",
        &[collection.into(), uid.into(), delta.into()],
    )
    .await?;
    Ok(())
}

/// Notes two things at once: one statement where a round trip costs more than the row.
pub async fn record_two(tx: &mut WriteTx, both: [(&str, &str); 2], delta: i64) -> Result<(), StoreError> {
    let [(first_collection, first_uid), (second_collection, second_uid)] = both;
    check(first_uid)?;
    check(second_uid)?;
    tx.execute(
        "INSERT INTO count_deltas (collection, uid, delta) VALUES ($1, $2, $3), ($4, $5, $3)",
        &[first_collection.into(), first_uid.into(), delta.into(), second_collection.into(), second_uid.into()],
    )
    .await?;
    Ok(())
}

/// Moves up to `limit` deltas, oldest first, into the counts and returns how
/// many. One caller at a time (under a lease); on PostgreSQL two would conflict.
pub async fn fold(tx: &mut WriteTx, limit: i64) -> Result<u64, StoreError> {
    let deltas = tx
        .query("SELECT id, collection, uid, delta FROM count_deltas ORDER BY id LIMIT $1", &[limit.into()], |row| {
            Ok::<_, StoreError>((row.int(0)?, row.text(1)?, row.text(2)?, row.int(3)?))
        })
        .await?;
    let Some(last) = deltas.last().map(|delta| delta.0) else {
        return Ok(0);
    };
    let mut sums: BTreeMap<(&str, String), i64> = BTreeMap::new();
    for (_, collection, uid, delta) in &deltas {
        for node in nodes(uid) {
            *sums.entry((collection, node)).or_default() += delta;
        }
    }
    sums.retain(|_, delta| *delta != 0);
    let sums: Vec<_> = sums.into_iter().collect();
    for chunk in sums.chunks(UPSERT_ROWS) {
        add(tx, chunk).await?;
    }
    // The snapshot that was read is the snapshot that is deleted from: a delta
    // with a smaller id that commits meanwhile is in neither.
    tx.execute("DELETE FROM count_deltas WHERE id <= $1", &[last.into()]).await
}

/// Rows per upsert: saves round trips on PostgreSQL.
const UPSERT_ROWS: usize = 32;

async fn add(tx: &mut WriteTx, rows: &[((&str, String), i64)]) -> Result<(), StoreError> {
    let mut sql = String::from("INSERT INTO counts (collection, node, n) VALUES ");
    let mut params = Vec::with_capacity(rows.len() * 3);
    for (i, ((collection, node), n)) in rows.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        let first = i * 3 + 1;
        let _ = write!(sql, "{comma}(${first}, ${}, ${})", first + 1, first + 2);
        params.extend([Value::from(*collection), node.into(), (*n).into()]);
    }
    sql += " ON CONFLICT (collection, node) DO UPDATE SET n = counts.n + excluded.n
            RETURNING collection, node, n";
    let after = tx.query(&sql, &params, |row| Ok::<_, StoreError>((row.text(0)?, row.text(1)?, row.int(2)?))).await?;
    for (collection, node, n) in after {
        if n == 0 {
            tx.execute(
                "DELETE FROM counts WHERE collection = $1 AND node = $2",
                &[(&collection).into(), (&node).into()],
            )
            .await?;
        }
    }
    Ok(())
}

/// How many resources the scope holds, in this transaction's snapshot.
pub async fn total(tx: &mut ReadTx, collection: &str, scope: &Scope<'_>) -> Result<i64, StoreError> {
    let (node, lower, upper) = match *scope {
        Scope::All | Scope::Subtree("") | Scope::Below("") => (below_node(""), String::new(), AFTER_ALL.to_owned()),
        Scope::Subtree(uid) => {
            let (parent, segment) = split(uid);
            (child_node(parent, segment), uid.to_owned(), after(uid))
        }
        Scope::Below(uid) => (below_node(uid), format!("{uid}/"), after(uid)),
    };
    Ok(folded(tx, collection, &node).await? + pending(tx, collection, &lower, &upper).await?)
}

/// Sorts after every uid.
const AFTER_ALL: &str = "~";

/// The end of the range of `uid` and everything below it: `0` follows `/`.
fn after(uid: &str) -> String {
    if uid.is_empty() { AFTER_ALL.to_owned() } else { format!("{uid}0") }
}

async fn folded(tx: &mut ReadTx, collection: &str, node: &str) -> Result<i64, StoreError> {
    let n = tx
        .query_opt(
            "SELECT n FROM counts WHERE collection = $1 AND node = $2",
            &[collection.into(), node.into()],
            |row| row.int(0),
        )
        .await?;
    Ok(n.unwrap_or(0))
}

async fn pending(tx: &mut ReadTx, collection: &str, lower: &str, upper: &str) -> Result<i64, StoreError> {
    let sum = tx
        .query_opt(
            "SELECT CAST(coalesce(sum(delta), 0) AS BIGINT) FROM count_deltas
             WHERE collection = $1 AND uid >= $2 AND uid < $3",
            &[collection.into(), lower.into(), upper.into()],
            |row| row.int(0),
        )
        .await?;
    Ok(sum.unwrap_or(0))
}

/// The nodes that count `uid`.
fn nodes(uid: &str) -> impl Iterator<Item = String> {
    let ends = uid.match_indices('/').map(|(at, _)| at);
    ends.chain([uid.len()]).flat_map(|end| {
        let (parent, segment) = split(&uid[..end]);
        [below_node(parent), bucket_node(parent, bucket(segment)), child_node(parent, segment)]
    })
}

/// A path's parent (empty for a root) and last segment.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn join(parent: &str, rest: &str) -> String {
    if parent.is_empty() { rest.to_owned() } else { format!("{parent}/{rest}") }
}

fn bucket(segment: &str) -> &str {
    segment.get(..BUCKET).unwrap_or(segment)
}

/// Two hexadecimal characters: 256 buckets.
const BUCKET: usize = 2;

fn below_node(path: &str) -> String {
    format!("+{path}")
}

fn bucket_node(parent: &str, bucket: &str) -> String {
    format!("~{parent} {bucket}")
}

fn child_node(parent: &str, segment: &str) -> String {
    format!("={parent} {segment}")
}

fn check(uid: &str) -> Result<(), StoreError> {
    let valid = |segment: &str| segment.len() >= BUCKET && segment.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if uid.split('/').all(valid) {
        return Ok(());
    }
    Err(StoreError::bug(format!("{uid:?} is not a path of letters and digits")))
}
