//! Number of rows of a list: from the maintained counts where possible, else counted.

use bowline_core::{Error, Result, UidRange, Uidp};
use bowline_store::ReadTx;
use bowline_store::counters::{self, Scope};

use super::query;
use super::{Selection, Table};

/// Number of rows of a selection.
pub async fn total(tx: &mut ReadTx, table: &Table, selection: &Selection<'_>) -> Result<i64> {
    let mut sum = 0;
    for range in &selection.ranges {
        sum += total_in(tx, table, selection, range).await?;
    }
    Ok(sum)
}

pub(super) async fn total_in(
    tx: &mut ReadTx,
    table: &Table,
    selection: &Selection<'_>,
    range: &UidRange,
) -> Result<i64> {
    if selection.is_counted() {
        if let Some(parent) = selection.parent.as_deref().filter(|parent| *range == UidRange::below(parent)) {
            return children(tx, table, parent).await;
        }
        if selection.parent.is_none()
            && let Some(scope) = counted_scope(range)
        {
            return Ok(counters::total(tx, table.name, &scope).await?);
        }
    }
    let sql = query::count(table, selection, range);
    let count = tx.query_opt(&sql.text, &sql.params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(count.unwrap_or(0))
}

/// The maintained count of exactly this range, if there is one.
fn counted_scope(range: &UidRange) -> Option<Scope<'_>> {
    if *range == UidRange::all() {
        return Some(Scope::All);
    }
    let base = range.upper.strip_suffix('0')?;
    match range.lower.strip_prefix(base)? {
        "" => Some(Scope::Subtree(base)),
        "/" => Some(Scope::Below(base)),
        _ => None,
    }
}

/// Direct children are counted under their parent's UIDP in a collection of their own.
async fn children(tx: &mut ReadTx, table: &Table, parent: &str) -> Result<i64> {
    let collection = children_collection(table.name);
    let with_below = counters::total(tx, &collection, &Scope::Subtree(parent)).await?;
    Ok(with_below - counters::total(tx, &collection, &Scope::Below(parent)).await?)
}

fn children_collection(table: &str) -> String {
    format!("{table}/children")
}

/// Adjusts the counts for a row that was inserted (1) or deleted (-1); every insert and delete of a listed
/// table calls it.
pub async fn count(tx: &mut bowline_store::WriteTx, table: &Table, uid: &Uidp, delta: i64) -> Result<()> {
    let parent = uid.parent_str();
    if parent.is_empty() {
        counters::record(tx, table.name, uid.as_str(), delta).await?;
    } else {
        let children = children_collection(table.name);
        counters::record_two(tx, [(table.name, uid.as_str()), (&children, parent)], delta).await?;
    }
    Ok(())
}
