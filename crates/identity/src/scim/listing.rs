//! Pages of users, and searches through all of them.

use bowline_store::{ReadTx, Value};

use super::access::Directory;
use super::filter::Condition;
use super::refusal::Result;
use super::rows::{COLUMNS, UserRow, Where};
use super::users::{Listing, MAX_COUNT, Query, User};

/// Users that a search by e-mail reads at a time.
pub(super) const SCAN: i64 = 200;

fn uids(directory: &Directory, conditions: &[Condition]) -> Vec<String> {
    let of = |condition: &Condition| match condition {
        Condition::Id(id) => Some(format!("{}/{id}", directory.provider)),
        _ => None,
    };
    conditions.iter().filter_map(of).collect()
}

pub(super) async fn page(
    tx: &mut ReadTx,
    directory: &Directory,
    conditions: &[Condition],
    query: &Query,
) -> Result<Listing> {
    let uids = uids(directory, conditions);
    let Where { sql, mut params } = Where::new(directory.provider.as_str(), conditions, &uids);
    let counted = tx.query_opt(&format!("SELECT COUNT(*) FROM scim_users {sql}"), &params, |row| row.int(0)).await?;
    let total = usize::try_from(counted.unwrap_or(0)).unwrap_or_default();
    let (limit, offset) = (params.len() + 1, params.len() + 2);
    let sql = format!("SELECT {COLUMNS} FROM scim_users {sql} ORDER BY uid LIMIT ${limit} OFFSET ${offset}");
    params.push(Value::Int(query.count.min(MAX_COUNT) as i64));
    params.push(Value::Int(i64::try_from(query.offset).unwrap_or(i64::MAX)));
    let users = tx.query(&sql, &params, |row| UserRow::read(row).map(User::from)).await?;
    Ok(Listing { users, total })
}

pub(super) async fn scan(
    tx: &mut ReadTx,
    directory: &Directory,
    conditions: &[Condition],
    after: &str,
) -> Result<Vec<UserRow>> {
    let uids = uids(directory, conditions);
    let Where { sql, mut params } = Where::new(directory.provider.as_str(), conditions, &uids);
    let (last, limit) = (params.len() + 1, params.len() + 2);
    let sql = format!("SELECT {COLUMNS} FROM scim_users {sql} AND uid > ${last} ORDER BY uid LIMIT ${limit}");
    params.push(Value::from(after));
    params.push(Value::Int(SCAN));
    tx.query(&sql, &params, UserRow::read).await
}
