//! Rows that have ended and only take up room.

use bowline_core::{Error, Micros, Result};
use bowline_store::{Row, Value, WriteTx};

use super::sessions;

/// Rows of one table that one transaction deletes.
const AT_ONCE: i64 = 500;

/// Tables of rows that end by themselves, with their keys.
const TABLES: [(&str, &str); 5] = [
    ("refresh_tokens", "hash"),
    ("signin_flows", "hash"),
    ("headless_sessions", "code"),
    ("device_codes", "device_hash"),
    ("one_time_links", "hash"),
];

/// Deletes what has ended; returns how many rows of the fullest table, so that the caller sees whether there is more.
pub(super) async fn prune(tx: &mut WriteTx, now: Micros) -> Result<u64> {
    let sql = "SELECT id FROM sessions WHERE expires_at <= $1 ORDER BY expires_at, id LIMIT $2";
    let params = [Value::Int(now), Value::Int(AT_ONCE)];
    let ended = tx.query(sql, &params, |row: &Row<'_>| row.text(0).map_err(Error::from)).await?;
    for session in &ended {
        sessions::end(tx, session).await?;
    }
    let mut most = ended.len() as u64;
    for (table, key) in TABLES {
        let sql = format!(
            "DELETE FROM {table} WHERE {key} IN
             (SELECT {key} FROM {table} WHERE expires_at <= $1 ORDER BY expires_at, {key} LIMIT $2)"
        );
        most = most.max(tx.execute(&sql, &params).await?);
    }
    Ok(most)
}

/// Whether there may be more than one transaction deleted.
pub fn is_full(deleted: u64) -> bool {
    deleted >= AT_ONCE as u64
}
