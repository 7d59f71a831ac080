//! A row of `record_imports`.

use bowline_contract::bowline::feeds::v1 as feeds;
use bowline_core::{Error, Micros, Result};
use bowline_resources::kinds::RECORD_IMPORT;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value};
use feeds::ImportState;

/// An import, as it is stored.
#[derive(Clone, Debug)]
pub(super) struct ImportRow {
    pub(super) uid: String,
    pub(super) source: String,
    pub(super) source_number: i64,
    pub(super) state: ImportState,
    pub(super) full: bool,
    pub(super) licence: String,
    pub(super) url: String,
    /// The generation that committing it makes.
    pub(super) generation: i64,
    pub(super) counts: Counts,
    pub(super) begun_at: Micros,
    pub(super) ended_at: Option<Micros>,
    /// How often it was begun.
    pub(super) attempt: i64,
}

/// What an import does to its source, or a batch adds to that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) added: i64,
    pub(super) changed: i64,
    pub(super) removed: i64,
}

impl Counts {
    pub(super) fn is_nothing(self) -> bool {
        self == Counts::default()
    }
}

const SELECT: &str = "SELECT i.uid, i.source, s.number, i.state, i.is_full, i.licence, i.url, i.generation, i.added,
                             i.changed, i.removed, i.begun_at, i.ended_at, i.attempt
                      FROM record_imports i JOIN record_sources s ON s.name = i.source";

impl ImportRow {
    fn read(row: &Row<'_>) -> Result<ImportRow> {
        let state = i32::try_from(row.int(3)?).ok().and_then(|state| ImportState::try_from(state).ok());
        Ok(ImportRow {
            uid: row.text(0)?,
            source: row.text(1)?,
            source_number: row.int(2)?,
            state: state.ok_or_else(|| Error::internal("an import has an unknown state"))?,
            full: row.bool(4)?,
            licence: row.text(5)?,
            url: row.text(6)?,
            generation: row.int(7)?,
            counts: Counts { added: row.int(8)?, changed: row.int(9)?, removed: row.int(10)? },
            begun_at: row.int(11)?,
            ended_at: row.opt_int(12)?,
            attempt: row.int(13)?,
        })
    }

    pub(super) fn to_message(&self) -> feeds::RecordImport {
        feeds::RecordImport {
            uid: self.uid.clone(),
            source: self.source.clone(),
            licence: self.licence.clone(),
            url: self.url.clone(),
            full: self.full,
            state: self.state.into(),
            added: self.counts.added,
            changed: self.counts.changed,
            removed: self.counts.removed,
            begin_time: timestamp(self.begun_at),
            end_time: self.ended_at.and_then(timestamp),
            attempt: self.attempt,
        }
    }
}

/// The import of that UIDP.
///
/// # Errors
/// NOT_FOUND.
pub(super) async fn require(tx: &mut ReadTx, uid: &str) -> Result<ImportRow> {
    let sql = format!("{SELECT} WHERE i.uid = $1");
    let found = tx.query_opt(&sql, &[Value::from(uid)], ImportRow::read).await?;
    found.ok_or_else(|| Error::not_found(RECORD_IMPORT, uid))
}

/// The import of that UIDP, if it still takes batches, and takes them from this attempt.
///
/// # Errors
/// NOT_FOUND, FAILED_PRECONDITION.
pub(super) async fn require_open(tx: &mut ReadTx, uid: &str, attempt: Option<i64>) -> Result<ImportRow> {
    let import = require(tx, uid).await?;
    if import.state != ImportState::Open {
        return Err(Error::precondition(
            "IMPORT_ENDED",
            uid,
            "the import was committed or given up; begin another one",
        ));
    }
    if attempt.is_some_and(|attempt| attempt != import.attempt) {
        let description = "another client has begun the import again and continues it; wait until it is committed";
        return Err(Error::precondition("IMPORT_TAKEN_OVER", uid, description));
    }
    Ok(import)
}

/// The import of a source that is open or being cleared away.
pub(super) async fn unfinished(tx: &mut ReadTx, source: &str) -> Result<Option<ImportRow>> {
    let sql = format!("{SELECT} WHERE i.source = $1 AND i.ended_at IS NULL");
    tx.query_opt(&sql, &[Value::from(source)], ImportRow::read).await
}

/// Imports that are given up and not cleared away yet, or that no one has touched since then.
pub(super) async fn left_behind(tx: &mut ReadTx, untouched_since: Micros) -> Result<Vec<ImportRow>> {
    let sql = format!("{SELECT} WHERE i.ended_at IS NULL AND (i.state = $1 OR i.touched_at < $2) LIMIT 100");
    let params = [Value::Int(ImportState::Aborting as i64), Value::Int(untouched_since)];
    tx.query(&sql, &params, ImportRow::read).await
}

/// Imports, the newest first, after a position in that order.
pub(super) async fn newest(
    tx: &mut ReadTx,
    source: &str,
    after: Option<(Micros, &str)>,
    limit: usize,
) -> Result<Vec<ImportRow>> {
    let (before, uid) = after.unwrap_or((Micros::MAX, ""));
    let mut sql = format!("{SELECT} WHERE (i.begun_at, i.uid) < ($1, $2)");
    let mut params = vec![Value::Int(before), Value::from(uid), Value::Int(limit as i64)];
    if !source.is_empty() {
        sql += " AND i.source = $3";
        params.insert(2, Value::from(source));
    }
    sql += &format!(" ORDER BY i.begun_at DESC, i.uid DESC LIMIT ${}", params.len());
    tx.query(&sql, &params, ImportRow::read).await
}
