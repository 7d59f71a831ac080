//! The runs of retention that removed something: the last 100 of each repository.

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::{Error, Micros, Result, Uidp, hex};
use bowline_pipeline::Authorized;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use crate::repos;

/// Runs that are stored of one repository.
const STORED: i64 = 100;

/// Stores a run, unless it removed nothing, and deletes the oldest past the limit.
pub(super) async fn store(
    tx: &mut WriteTx,
    repo: &Uidp,
    outcome: &own::RetentionOutcome,
    now: Micros,
    draw: [u8; 32],
) -> Result<()> {
    if outcome.removed.is_empty() {
        return Ok(());
    }
    let tags: usize = outcome.removed.iter().map(|manifest| manifest.tags.len()).sum();
    let bytes = outcome.removed.iter().fold(0_i64, |sum, manifest| sum.saturating_add(manifest.size));
    let id = hex(&draw[..8]);
    let sql = "INSERT INTO retention_runs (repo, org, run_at, id, removed, tags, bytes, retained, remaining)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING";
    let params = [
        Value::from(repo.as_str()),
        Value::from(repo.root_str()),
        Value::Int(now),
        Value::from(&id),
        Value::Int(outcome.removed.len() as i64),
        Value::Int(tags as i64),
        Value::Int(bytes),
        Value::from(outcome.kept),
        Value::from(outcome.remaining),
    ];
    tx.execute(sql, &params).await?;
    let sql = "DELETE FROM retention_runs WHERE repo = $1 AND run_at < (
                 SELECT run_at FROM retention_runs WHERE repo = $1 ORDER BY run_at DESC, id DESC LIMIT 1 OFFSET $2)";
    tx.execute(sql, &[Value::from(repo.as_str()), Value::Int(STORED - 1)]).await?;
    Ok(())
}

pub(super) async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListRetentionRunsRequest>,
) -> Result<own::ListRetentionRunsResponse> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    let sql = "SELECT run_at, removed, tags, bytes, retained, remaining FROM retention_runs
               WHERE repo = $1 ORDER BY run_at DESC, id DESC LIMIT $2";
    let runs = tx.query(sql, &[Value::from(repo.as_str()), Value::Int(STORED)], run).await?;
    Ok(own::ListRetentionRunsResponse { runs })
}

fn run(row: &Row<'_>) -> Result<own::RetentionRun> {
    let number = |column: usize| Ok::<_, Error>(i32::try_from(row.int(column)?).unwrap_or(i32::MAX));
    Ok(own::RetentionRun {
        time: timestamp(row.int(0)?),
        removed: number(1)?,
        removed_tags: number(2)?,
        removed_bytes: row.int(3)?,
        kept: number(4)?,
        remaining: number(5)?,
    })
}
