//! Summaries of a repository's tags, and the history of one.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::{GetRepoTagsSummary, GetUpdateStatus, ListTagHistory};
use bowline_core::{Error, Micros, Result, UidRange, Uidp};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::list::{self, Selection, timestamp};
use bowline_store::{ReadTx, Value};

use super::tag_lists::LeftOut;
use super::tags::{self, Hidden, TagRow};
use super::{repos, tag_calls};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetRepoTagsSummary>(handler!(summary))
        .read::<ListTagHistory>(handler!(history))
        .read::<GetUpdateStatus>(handler!(update_status))
}

async fn summary(tx: &mut ReadTx, call: &Authorized<v1::GetRepoTagsSummaryRequest>) -> Result<v1::RepoTagsSummary> {
    let (repo, request) = (call.require_scope()?, call.request());
    repos::require(tx, repo).await?;
    let left_out =
        LeftOut { referrers: request.exclude_referrers, dates: request.exclude_dates, epochs: request.exclude_epochs };
    let mut selection = Selection {
        ranges: vec![UidRange::below(repo.as_str())],
        parent: Some(repo.as_str().into()),
        filters: Vec::new(),
        conditions: Vec::new(),
        clauses: Vec::new(),
    };
    let table = left_out.table(&mut selection);
    let tag_count = list::total(tx, table, &selection).await?;
    let latest = tags::find_by_name(tx, repo, "latest").await?;
    let latest_version = match &latest {
        Some(latest) => version_of(tx, repo, latest, left_out).await?,
        None => String::new(),
    };
    Ok(v1::RepoTagsSummary {
        id: repo.as_str().into(),
        tag_count,
        last_updated: last_update(tx, repo).await?.and_then(timestamp),
        latest_tag: latest.as_ref().map(TagRow::to_v1),
        latest_version,
    })
}

async fn last_update(tx: &mut ReadTx, repo: &Uidp) -> Result<Option<Micros>> {
    let sql = "SELECT max(updated_at) FROM tags WHERE parent = $1";
    let found = tx.query_opt(sql, &[Value::from(repo.as_str())], |row| row.opt_int(0).map_err(Error::from)).await?;
    Ok(found.flatten())
}

/// The longest name that another tag has at the same digest: the most exact version.
async fn version_of(tx: &mut ReadTx, repo: &Uidp, latest: &TagRow, left_out: LeftOut) -> Result<String> {
    if latest.digest.is_empty() {
        return Ok(String::new());
    }
    let sql = "SELECT name FROM tags WHERE parent = $1 AND digest = $2 AND name <> $3";
    let params = [Value::from(repo.as_str()), Value::from(&latest.digest), Value::from(&latest.name)];
    let mut names: Vec<String> = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    names.retain(|name| match Hidden::of(name) {
        Hidden::No => true,
        Hidden::Referrer => false,
        Hidden::Dated => !left_out.dates,
        Hidden::Epoch => !left_out.epochs,
    });
    names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    Ok(names.pop().unwrap_or_default())
}

/// The moves of a tag, the oldest first; removals are none.
async fn history(tx: &mut ReadTx, call: &Authorized<v1::TagHistoryFilter>) -> Result<v1::TagHistoryList> {
    let (uid, request) = (call.require_scope()?, call.request());
    let tag = tag_calls::require(tx, uid).await?;
    let repo = tag_calls::repo_of(uid)?;
    let period = (request.start.map(list::micros), request.end.map(list::micros));
    let moves = tags::moves(tx, &repo, &tag.name, period).await?;
    let item = |(at, digest)| v1::TagHistory { update_timestamp: timestamp(at), digest };
    Ok(v1::TagHistoryList { items: moves.into_iter().map(item).collect() })
}

/// How long ago a move is recent: a week.
const RECENT: Micros = 7 * 24 * 3600 * 1_000_000;

async fn update_status(tx: &mut ReadTx, call: &Authorized<v1::UpdateStatusRequest>) -> Result<v1::UpdateStatus> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    // A tag that moved was updated; the other way round it may have been its bundles.
    let sql = "SELECT 1 FROM tags t WHERE t.parent = $1 AND t.updated_at >= $2 AND EXISTS
                 (SELECT 1 FROM tag_history h
                  WHERE h.repo = t.parent AND h.name = t.name AND h.at >= $2 AND h.digest <> '') LIMIT 1";
    let params = [Value::from(repo.as_str()), Value::Int(call.now() - RECENT)];
    let found = tx.query_opt(sql, &params, |_| Ok::<_, Error>(())).await?;
    Ok(v1::UpdateStatus { recently_updated: found.is_some() })
}
