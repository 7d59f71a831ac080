//! Transfer of a whole database and its blobs, for `bowline migrate`, `restore` and `backup verify`: all rows
//! in the order of their keys, all blobs, then every row compared. A second run resumes an interrupted one.

mod blobs;
mod target;

use std::sync::Arc;

use bowline_pipeline::audit::{Findings, verify};
use bowline_store::{Cell, Db, Snapshot, TransferTable, transfer_tables};

use crate::error::StartError;
use crate::facts;

pub(crate) use blobs::{BadBlobs, BlobBytes, BlobSource, Transferred, transfer_blobs};
pub(crate) use target::{Target, location, open_target, start_line};

/// What a target was filled with.
pub(crate) struct Filled {
    pub(crate) rows: u64,
    pub(crate) blobs: Transferred,
    pub(crate) audit: Findings,
}

/// Fills a target, which stays marked as not whole, and compares it. `told` is called with the current step.
///
/// # Errors
/// A blob is missing or damaged, if that is to end the work, a row differs, the audit log does not hold, or either side refuses.
pub(crate) async fn fill(
    source: &Db,
    blobs: &dyn BlobSource,
    target: &Target,
    bad_blobs: BadBlobs,
    mut progress: impl FnMut(&str),
) -> Result<Filled, StartError> {
    let mut snapshot = source.snapshot().await?;
    transfer_rows(&mut snapshot, &target.db, |table, rows| progress(&format!("{rows} rows, {table}"))).await?;
    let blobs = transfer_blobs((source, blobs), (&target.db, &target.content), bad_blobs, |done| {
        progress(&format!("{} blobs, {} bytes", done.blobs, done.bytes));
    });
    let blobs = blobs.await?;
    let (mut before, mut after) = (source.snapshot().await?, target.db.snapshot().await?);
    let rows = compare_rows(&mut before, &mut after, |table, rows| progress(&format!("{rows} rows compared, {table}")))
        .await?;
    let audit = verify(&target.db, None, |rows| progress(&format!("{rows} rows of the audit log"))).await?;
    match &audit.wrong {
        Some(wrong) => Err(StartError::Audit(wrong.clone())),
        None => Ok(Filled { rows, blobs, audit }),
    }
}

impl Filled {
    /// The blobs that were left out, for people; empty if there are none.
    pub(crate) fn left_out(&self) -> String {
        let bad = &self.blobs.bad;
        if bad.is_empty() {
            return String::new();
        }
        let lines: String = bad.iter().map(|line| format!("  {line}\n")).collect::<Vec<_>>().concat();
        format!(
            "{} blobs are missing or damaged, and were left out: push what they belong to again\n{lines}",
            bad.len()
        )
    }
}

/// The name under which a database owns its blobs.
///
/// # Errors
/// The database refuses.
pub(crate) async fn owner(db: &Db) -> Result<String, StartError> {
    let owner = facts::read(db).await?.remove("blobs_owner");
    owner.ok_or_else(|| {
        StartError::Option("no server has worked with this database: there is nothing to take along".into())
    })
}

/// Rows of the first page of a table.
const FIRST_PAGE: usize = 16;
/// Rows of a page at most.
const MAX_ROWS: usize = 10_000;
/// Bytes that a page should have at most: rows with images and manifests are megabytes.
const PAGE_BYTES: usize = 4 << 20;

/// Locations of blobs differ between source and target.
const BLOB_LOCATION: (&str, &str) = ("blobs", "upload");

/// How many rows a page may have, by what the last one weighed.
struct PageSize(usize);

impl PageSize {
    fn next(&mut self, page: &[Vec<Cell>]) {
        let bytes: usize = page.iter().flatten().map(Cell::size).sum();
        let fitting = PAGE_BYTES / (bytes / page.len().max(1)).max(1);
        self.0 = (self.0 * 4).min(fitting).clamp(1, MAX_ROWS);
    }
}

/// Copies the rows that the target does not have yet, then makes its indexes. `told` is called with the table and the
/// number of rows copied in all.
///
/// # Errors
/// Either database refuses.
pub(crate) async fn transfer_rows(
    source: &mut Snapshot,
    target: &Db,
    mut progress: impl FnMut(&str, u64),
) -> Result<u64, StartError> {
    let mut copied = 0;
    for table in transfer_tables()? {
        let table = Arc::new(table);
        let mut after = target.last_key(&table).await?;
        let mut size = PageSize(FIRST_PAGE);
        loop {
            let page = source.page(&table, after.as_deref(), size.0).await?;
            let Some(last) = page.last() else { break };
            after = Some(table.key_of(last));
            size.next(&page);
            copied += page.len() as u64;
            target.insert_rows(table.clone(), Arc::new(page)).await?;
            progress(&table.name, copied);
        }
    }
    target.build_indexes(|name| progress(name, copied)).await?;
    Ok(copied)
}

/// Compares every row of two databases, but for where blobs lie; how many rows there are.
///
/// # Errors
/// A table differs, which is named, or either database refuses.
pub(crate) async fn compare_rows(
    source: &mut Snapshot,
    target: &mut Snapshot,
    mut progress: impl FnMut(&str, u64),
) -> Result<u64, StartError> {
    let mut compared = 0;
    for table in transfer_tables()? {
        let mut size = PageSize(FIRST_PAGE);
        let mut after: Option<Vec<Cell>> = None;
        loop {
            let mut page = source.page(&table, after.as_deref(), size.0).await?;
            let mut copy = target.page(&table, after.as_deref(), size.0).await?;
            let Some(last) = page.last() else {
                if copy.is_empty() {
                    break;
                }
                return Err(differs(&table));
            };
            after = Some(table.key_of(last));
            size.next(&page);
            forget_locations(&table, &mut page);
            forget_locations(&table, &mut copy);
            if page != copy {
                return Err(differs(&table));
            }
            compared += page.len() as u64;
            progress(&table.name, compared);
        }
    }
    Ok(compared)
}

fn forget_locations(table: &TransferTable, rows: &mut [Vec<Cell>]) {
    let (name, column) = BLOB_LOCATION;
    if table.name == name
        && let Some(at) = table.columns.iter().position(|known| known == column)
    {
        for row in rows {
            row[at] = Cell::Null;
        }
    }
}

fn differs(table: &TransferTable) -> StartError {
    StartError::Unusable {
        cause: format!("rows of the table {} are not those of the source", table.name),
        hint: "a server worked with the source after the transfer had begun: stop it, empty the target, and run the \
               command again"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_while_rows_are_small_and_shrink_when_they_are_large() {
        let mut size = PageSize(FIRST_PAGE);
        size.next(&vec![vec![Cell::Int(1)]; 16]);
        assert_eq!(size.0, 64);
        size.next(&[vec![Cell::Bytes(vec![0; PAGE_BYTES / 2])]]);
        assert_eq!(size.0, 2);
        size.next(&[vec![Cell::Bytes(vec![0; PAGE_BYTES * 2])]]);
        assert_eq!(size.0, 1);
    }
}
