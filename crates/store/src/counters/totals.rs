//! Totals of many scopes at once.

use std::collections::BTreeMap;

use super::{child_node, split};
use crate::error::StoreError;
use crate::sql::Sql;
use crate::tx::ReadTx;
use crate::value::Value;

/// Scopes that one statement names.
const AT_ONCE: usize = 200;

/// How many resources each of these uids and everything below it holds; a uid that is not in the map holds none. No uid
/// may be below another.
///
/// # Errors
/// Those of the statements.
pub async fn totals(tx: &mut ReadTx, collection: &str, uids: &[&str]) -> Result<BTreeMap<String, i64>, StoreError> {
    let mut totals = BTreeMap::new();
    for uids in uids.chunks(AT_ONCE) {
        let nodes: BTreeMap<String, &str> = uids.iter().map(|uid| (node(uid), *uid)).collect();
        let mut sql = Sql::new("SELECT node, n FROM counts");
        sql.bind(" WHERE collection = ", collection).bind_list(" AND node IN ", nodes.keys().map(Value::from));
        let read = |row: &crate::Row<'_>| Ok::<_, StoreError>((row.text(0)?, row.int(1)?));
        for (node, n) in tx.query(&sql.text, &sql.params, read).await? {
            if let Some(uid) = nodes.get(&node) {
                *totals.entry((*uid).to_owned()).or_default() += n;
            }
        }
        for (uid, n) in pending(tx, collection, uids).await? {
            *totals.entry(uid).or_default() += n;
        }
    }
    Ok(totals)
}

fn node(uid: &str) -> String {
    let (parent, segment) = split(uid);
    child_node(parent, segment)
}

/// What is not folded yet of each uid.
async fn pending(tx: &mut ReadTx, collection: &str, uids: &[&str]) -> Result<Vec<(String, i64)>, StoreError> {
    let mut sql = Sql::new("WITH wanted (uid) AS (VALUES ");
    for (at, uid) in uids.iter().enumerate() {
        sql.bind(if at == 0 { "(" } else { ", (" }, *uid).push(")");
    }
    // The wanted ones first: each is one range of the index.
    sql.push(") SELECT w.uid, CAST(sum(d.delta) AS BIGINT) FROM wanted w CROSS JOIN count_deltas d");
    sql.bind(" WHERE d.collection = ", collection);
    sql.push(" AND d.uid >= w.uid AND d.uid < w.uid || '0' GROUP BY w.uid");
    tx.query(&sql.text, &sql.params, |row| Ok::<_, StoreError>((row.text(0)?, row.int(1)?))).await
}
