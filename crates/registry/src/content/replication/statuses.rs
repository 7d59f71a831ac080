//! How fetching from elsewhere goes, and who fetches.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::{GetRepoCountBySource, GetSyncStatus, ListSyncStatuses};
use bowline_core::{Error, Result, UidRange};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::list::timestamp;
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, Row, Value};

use crate::repos;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetSyncStatus>(handler!(get))
        .read::<ListSyncStatuses>(handler!(list))
        .read::<GetRepoCountBySource>(handler!(count_by_source))
}

fn status(row: &Row<'_>) -> Result<v1::SyncStatus> {
    let number = i32::try_from(row.int(0)?).unwrap_or(v1::sync_status::Status::Unknown as i32);
    Ok(v1::SyncStatus { status: number, create_time: timestamp(row.int(1)?) })
}

async fn get(tx: &mut ReadTx, call: &Authorized<v1::GetSyncStatusRequest>) -> Result<v1::SyncStatus> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    let sql = "SELECT status, checked_at FROM upstream_syncs WHERE repo = $1";
    Ok(tx.query_opt(sql, &[Value::from(repo.as_str())], status).await?.unwrap_or_default())
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::ListSyncStatusesRequest>) -> Result<v1::SyncStatusList> {
    let registry = call.require_scope()?;
    require_group(tx, registry).await?;
    let range = UidRange::below(registry.as_str());
    let sql = "SELECT status, checked_at, repo FROM upstream_syncs WHERE repo >= $1 AND repo < $2 ORDER BY repo";
    let params = [Value::from(&range.lower), Value::from(&range.upper)];
    let item =
        |row: &Row<'_>| Ok::<_, Error>(v1::RepoSyncStatus { repo_id: row.text(2)?, repo_status: Some(status(row)?) });
    Ok(v1::SyncStatusList { items: tx.query(sql, &params, item).await? })
}

/// How many of the repositories that the caller may see are synchronized from this one.
async fn count_by_source(tx: &mut ReadTx, call: &Authorized<v1::GetRepoCountBySourceRequest>) -> Result<v1::RepoCount> {
    let source = call.require_scope()?;
    repos::require(tx, source).await?;
    let sql = "SELECT count(*) FROM repos WHERE source = $1 AND source <> '' AND uid >= $2 AND uid < $3";
    let mut count = 0;
    for range in call.visible() {
        let params = [Value::from(source.as_str()), Value::from(&range.lower), Value::from(&range.upper)];
        count += tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0);
    }
    Ok(v1::RepoCount { count })
}
