//! Pages of users, and searches through all of them.

use bowline_store::{ReadTx, Value};

use super::access::Directory;
use super::filter::Condition;
use super::refusal::Result;
use super::rows::{COLUMNS, UserRow, select};
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
    let provider = directory.provider.as_str();
    let count = select("COUNT(*)", provider, conditions, &uids);
    let counted = tx.query_opt(&count.text, &count.params, |row| row.int(0)).await?;
    let total = usize::try_from(counted.unwrap_or(0)).unwrap_or_default();
    let mut sql = select(COLUMNS, provider, conditions, &uids);
    sql.bind(" ORDER BY uid LIMIT ", Value::Int(query.count.min(MAX_COUNT) as i64));
    sql.bind(" OFFSET ", Value::Int(i64::try_from(query.offset).unwrap_or(i64::MAX)));
    let users = tx.query(&sql.text, &sql.params, |row| UserRow::read(row).map(User::from)).await?;
    Ok(Listing { users, total })
}

pub(super) async fn scan(
    tx: &mut ReadTx,
    directory: &Directory,
    conditions: &[Condition],
    after: &str,
) -> Result<Vec<UserRow>> {
    let uids = uids(directory, conditions);
    let mut sql = select(COLUMNS, directory.provider.as_str(), conditions, &uids);
    sql.bind(" AND uid > ", after).bind(" ORDER BY uid LIMIT ", Value::Int(SCAN));
    tx.query(&sql.text, &sql.params, UserRow::read).await
}
