//! Rules that several resources share: parents exist, limits hold.

use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::Authorized;
use bowline_store::counters::{self, Scope};
use bowline_store::{ReadTx, Value, placeholders};

use crate::kinds;

/// The group to create something in.
///
/// # Errors
/// NOT_FOUND naming the parent.
pub async fn require_group(tx: &mut ReadTx, uid: &Uidp) -> Result<()> {
    let sql = "SELECT uid FROM groups WHERE uid = $1";
    let found = tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.text(0).map_err(Error::from)).await?;
    found.map(|_| ()).ok_or_else(|| Error::not_found(kinds::GROUP, uid.as_str()))
}

/// Refuses one more resource where a group at or above `parent` has a limit and has reached it.
///
/// # Errors
/// RESOURCE_EXHAUSTED naming the group and the limit.
pub async fn require_room(tx: &mut ReadTx, parent: &Uidp, limit: &str, collection: &str) -> Result<()> {
    for (place, limits) in limited(tx, parent).await? {
        let Some(most) = stored_limit(&limits, limit) else { continue };
        let count = counters::total(tx, collection, &Scope::Below(&place)).await?;
        if count >= most {
            return Err(Error::quota(
                &place,
                format!(
                    "the group {place} may hold {most} {limit} and holds {count}; delete some or ask the operator for more"
                ),
            ));
        }
    }
    Ok(())
}

/// The groups at and above `parent` that have limits, with them; one look-up for all.
async fn limited(tx: &mut ReadTx, parent: &Uidp) -> Result<Vec<(String, String)>> {
    let params: Vec<Value<'_>> = parent.self_and_ancestors().map(Value::from).collect();
    let groups = placeholders(1, params.len());
    let sql = format!("SELECT uid, resource_limits FROM groups WHERE resource_limits <> '{{}}' AND uid IN ({groups})");
    tx.query(&sql, &params, |row| Ok((row.text(0)?, row.text(1)?))).await
}

fn stored_limit(text: &str, limit: &str) -> Option<i64> {
    serde_json::from_str::<serde_json::Value>(text).ok()?.get(limit)?.as_i64()
}

/// The parent of something that lives in a group, which the gate has checked already.
pub async fn require_scope<T>(tx: &mut ReadTx, call: &Authorized<T>) -> Result<Uidp> {
    let place = call.require_scope()?.clone();
    require_group(tx, &place).await?;
    Ok(place)
}
