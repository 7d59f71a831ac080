//! Clears away what is not visible any more after a commit, in steps that hold the writer for a moment each.

use bowline_contract::bowline::feeds::v1::ImportState;
use bowline_core::{Error, Micros, Result};
use bowline_store::{Row, Value, WriteTx};

use super::import_row::{self, ImportRow};
use super::statements::{delete_records, set_until};
use super::{NEVER, imports};

/// Records that one step deletes, and how many of them before other writes have their turn.
const AT_ONCE: i64 = 100;
const DELETED_AT_ONCE: usize = 4;
/// An open import that no one touches for so long is given up: a day, in microseconds.
const IDLE: Micros = 24 * 3600 * 1_000_000;
/// How long imports that have ended stay: 400 days, in microseconds. The audit log has them longer.
const RETENTION: Micros = 400 * IDLE;

/// One step; true if there is more to do at once.
pub async fn sweep(tx: &mut WriteTx, now: Micros) -> Result<bool> {
    if let Some(import) = import_row::left_behind(tx, now - IDLE).await?.first() {
        if import.state == ImportState::Open {
            imports::end(tx, import, ImportState::Aborting, None).await?;
        }
        clear(tx, import, now).await?;
        return Ok(true);
    }
    if delete_replaced(tx).await? {
        return Ok(true);
    }
    let sql = "DELETE FROM record_imports WHERE ended_at < $1";
    tx.execute(sql, &[Value::Int(now - RETENTION)]).await?;
    Ok(false)
}

/// One step of clearing away an import that was given up. It is over when its state says so.
pub(super) async fn clear(tx: &mut WriteTx, import: &ImportRow, now: Micros) -> Result<()> {
    // Rows that the import was to end continue; rows that it brought go.
    let sql = "SELECT n FROM records WHERE source = $1 AND until = $2 AND until < 2147483647 LIMIT $3";
    let params = [Value::Int(import.source_number), Value::Int(import.generation), Value::Int(AT_ONCE)];
    let ended = tx.query(sql, &params, number).await?;
    set_until(tx, NEVER, &ended).await?;
    let sql = "SELECT n FROM records WHERE source = $1 AND since = $2 LIMIT $3";
    let brought = tx.query(sql, &params, number).await?;
    delete_records(tx, &brought).await?;
    if ended.len() < AT_ONCE as usize && brought.len() < AT_ONCE as usize {
        imports::end(tx, import, ImportState::Aborted, Some(now)).await?;
    }
    Ok(())
}

/// Deletes some of the rows that an import replaced or removed; true if there were any. What the list of malware, or the
/// matches of packages, have not followed yet stays.
async fn delete_replaced(tx: &mut WriteTx) -> Result<bool> {
    let sources = "SELECT number, malware_generation, matched_generation FROM record_sources";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.int(1)?.min(row.int(2)?)));
    for (source, generation) in tx.query(sources, &[], read).await? {
        let sql = "SELECT n FROM records WHERE source = $1 AND until <= $2 AND until < 2147483647 LIMIT $3";
        let params = [Value::Int(source), Value::Int(generation), Value::Int(AT_ONCE)];
        let replaced = tx.query(sql, &params, number).await?;
        for part in replaced.chunks(DELETED_AT_ONCE) {
            delete_records(tx, part).await?;
            if tx.others_wait() {
                break;
            }
        }
        if !replaced.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn number(row: &Row<'_>) -> Result<i64> {
    Ok(row.int(0)?)
}
