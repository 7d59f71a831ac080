//! Usage and activity: bytes as quotas count them, activity from the daily sums of the store.

use std::collections::BTreeMap;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::statistics::{GetUsage, ListActivity, ListTopUsage};
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::days::{DayLimits, day_span};
use bowline_resources::kinds::GROUP;
use bowline_resources::list::timestamp;
use bowline_store::activity::{self, ActivityKind};
use bowline_store::counters::{self, Scope};
use bowline_store::{ReadTx, Row, Value};

use super::{limits, stored_bytes};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetUsage>(handler!(usage))
        .read::<ListTopUsage>(handler!(top_usage))
        .read::<ListActivity>(handler!(list_activity))
}

/// Default number of days of a response, and of the period of a list by activity.
const USUAL_DAYS: i64 = 30;
/// Rows of a list by usage or activity.
const USUAL_ROWS: i32 = 10;
const MAX_ROWS: i32 = 100;
/// Direct children that are measured for one list.
const MAX_CHILDREN: i64 = 2000;

/// Rejects a scope that is neither a group nor a repository.
async fn require_scope<T>(tx: &mut ReadTx, call: &Authorized<T>) -> Result<Uidp> {
    let scope = call.require_scope()?;
    let sql = "SELECT uid FROM groups WHERE uid = $1 UNION ALL SELECT uid FROM repos WHERE uid = $1";
    let stored = tx.query_opt(sql, &[Value::from(scope.as_str())], |row| row.text(0).map_err(Error::from)).await?;
    stored.map(|_| scope.clone()).ok_or_else(|| Error::not_found(GROUP, scope.as_str()))
}

async fn usage(tx: &mut ReadTx, call: &Authorized<own::GetUsageRequest>) -> Result<own::Usage> {
    let scope = require_scope(tx, call).await?;
    let policies = limits::policies(tx, &scope).await?;
    let quotas = policies.iter().map(|policy| policy.byte_quota).filter(|quota| *quota > 0);
    let within = Scope::Subtree(scope.as_str());
    Ok(own::Usage {
        scope: scope.as_str().into(),
        bytes: stored_bytes::total(tx, scope.as_str()).await?,
        upload_bytes: stored_bytes::of_open_uploads(tx, scope.as_str(), "").await?,
        byte_quota: quotas.min().unwrap_or(0),
        repos: counters::total(tx, "repos", &within).await?,
        tags: counters::total(tx, "tags", &within).await?,
    })
}

async fn top_usage(tx: &mut ReadTx, call: &Authorized<own::ListTopUsageRequest>) -> Result<own::ListTopUsageResponse> {
    let scope = require_scope(tx, call).await?;
    let request = call.request();
    let limit = match request.limit {
        0 => USUAL_ROWS,
        limit if limit > 0 => limit.min(MAX_ROWS),
        _ => return Err(Error::invalid_field("limit", "must not be negative")),
    };
    let kind = match request.order() {
        own::UsageOrder::Unspecified | own::UsageOrder::Bytes => {
            let mut rows = children(tx, &scope).await?;
            rows.sort_by(|one, other| other.amount.cmp(&one.amount).then_with(|| one.uid.cmp(&other.uid)));
            rows.truncate(limit as usize);
            return Ok(own::ListTopUsageResponse { rows });
        }
        own::UsageOrder::PullsByIdentity => ActivityKind::Pulls,
        own::UsageOrder::PushesByIdentity => ActivityKind::Pushes,
    };
    let since = activity::day_of(call.now()) - USUAL_DAYS + 1;
    let most = activity::most_active(tx, scope.as_str(), kind, (since, limit.into())).await?;
    let (shown, hidden): (Vec<_>, Vec<_>) =
        most.into_iter().partition(|(uid, _)| call.holds(uid, Capability::CapIamIdentityList));
    let names = identity_names(tx, &shown).await?;
    let row = |(uid, amount): (String, i64)| {
        let name = names.get(&uid).cloned().unwrap_or_default();
        own::UsageRow { uid, name, amount }
    };
    let mut rows: Vec<own::UsageRow> = shown.into_iter().map(row).collect();
    // Who cannot be listed is not named: callers of other organizations, and those without credentials.
    let amount: i64 = hidden.iter().map(|(_, amount)| amount).sum();
    if amount > 0 {
        rows.push(own::UsageRow { amount, ..own::UsageRow::default() });
        rows.sort_by_key(|row| std::cmp::Reverse(row.amount));
    }
    Ok(own::ListTopUsageResponse { rows })
}

/// The direct children of a group with their bytes.
async fn children(tx: &mut ReadTx, scope: &Uidp) -> Result<Vec<own::UsageRow>> {
    let sql = "SELECT uid, name FROM groups WHERE parent = $1 UNION ALL SELECT uid, name FROM repos WHERE parent = $1
               LIMIT $2";
    let params = [Value::from(scope.as_str()), Value::Int(MAX_CHILDREN + 1)];
    let read = |row: &Row<'_>| Ok::<_, Error>(own::UsageRow { uid: row.text(0)?, name: row.text(1)?, amount: 0 });
    let mut rows = tx.query(sql, &params, read).await?;
    if rows.len() as i64 > MAX_CHILDREN {
        let text = format!("the group has more than {MAX_CHILDREN} children; measure a group below it");
        return Err(Error::precondition("GROUP_TOO_LARGE", scope.as_str(), text));
    }
    for row in &mut rows {
        row.amount = stored_bytes::total(tx, &row.uid).await?;
    }
    Ok(rows)
}

async fn identity_names(tx: &mut ReadTx, most: &[(String, i64)]) -> Result<BTreeMap<String, String>> {
    if most.is_empty() {
        return Ok(BTreeMap::new());
    }
    let positions: Vec<String> = (1..=most.len()).map(|n| format!("${n}")).collect();
    let sql = format!("SELECT uid, name FROM identities WHERE uid IN ({})", positions.join(", "));
    let params: Vec<Value<'_>> = most.iter().map(|(uid, _)| Value::from(uid)).collect();
    let names = tx.query(&sql, &params, |row| Ok::<_, Error>((row.text(0)?, row.text(1)?))).await?;
    Ok(names.into_iter().collect())
}

async fn list_activity(
    tx: &mut ReadTx,
    call: &Authorized<own::ListActivityRequest>,
) -> Result<own::ListActivityResponse> {
    let scope = require_scope(tx, call).await?;
    let request = call.request();
    let limits = DayLimits { usual: USUAL_DAYS, max: activity::DAYS };
    let (first, last) = day_span(request.start_time, request.end_time, call.now(), limits)?;
    let kind = match request.kind() {
        own::ActivityKind::Unspecified | own::ActivityKind::Pulls => ActivityKind::Pulls,
        own::ActivityKind::Pushes => ActivityKind::Pushes,
        own::ActivityKind::Bytes => ActivityKind::Bytes,
        own::ActivityKind::BlockedPackages => ActivityKind::BlockedPackages,
    };
    let amounts = activity::days(tx, scope.as_str(), kind, (first, last)).await?;
    let day = |day: i64| own::ActivityDay {
        day: timestamp(activity::start_of(day)),
        amount: amounts.get(&day).copied().unwrap_or(0),
    };
    Ok(own::ListActivityResponse { days: (first..=last).map(day).collect() })
}
