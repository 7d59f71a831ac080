//! What goes with a group or an identity.

use bowline_core::{Result, Uidp};
use bowline_pipeline::{Change, ResourceSnapshot};
use bowline_resources::kinds::ROLE_BINDING;
use bowline_resources::list::{self, Listed};
use bowline_store::{Value, WriteTx};

use super::{BindingRow, TABLE};
use crate::access::iam_changed;

/// Deletes every binding at a group.
pub(crate) async fn delete_of_group(tx: &mut WriteTx, uid: &Uidp) -> Result<Vec<Change>> {
    delete_all(tx, "WHERE parent = $1 ORDER BY uid LIMIT 500", &[Value::from(uid.as_str())]).await
}

/// Deletes every binding of an identity.
pub(crate) async fn delete_of_identity(tx: &mut WriteTx, uid: &Uidp) -> Result<Vec<Change>> {
    delete_all(tx, "WHERE identity = $1 ORDER BY uid LIMIT 500", &[Value::from(uid.as_str())]).await
}

/// Deletes every binding of an identity at a group and below it.
pub(crate) async fn delete_of_identity_in(tx: &mut WriteTx, identity: &str, group: &str) -> Result<Vec<Change>> {
    let condition = "WHERE identity = $1 AND (parent = $2 OR (parent >= $3 AND parent < $4)) ORDER BY uid LIMIT 500";
    // Everything below begins with the group and a slash, which `0` follows.
    let (below, after) = (format!("{group}/"), format!("{group}0"));
    let params = [Value::from(identity), Value::from(group), Value::from(&below), Value::from(&after)];
    delete_all(tx, condition, &params).await
}

/// Deletes and counts, some at a time, until the condition holds for no more. Each becomes a row of the audit log.
async fn delete_all(tx: &mut WriteTx, condition: &str, params: &[Value<'_>]) -> Result<Vec<Change>> {
    let sql = format!("SELECT {} FROM {} {condition}", TABLE.columns, TABLE.name);
    let mut changes = Vec::new();
    loop {
        let found = tx.query(&sql, params, BindingRow::read).await?;
        if found.is_empty() {
            break;
        }
        for row in found {
            tx.execute("DELETE FROM role_bindings WHERE uid = $1", &[Value::from(row.uid.as_str())]).await?;
            list::count(tx, &TABLE, &row.uid, -1).await?;
            let before = Some(ResourceSnapshot::of(&row.to_v2()));
            changes.push(Change { kind: ROLE_BINDING, uid: row.uid.as_str().into(), before, after: None });
        }
    }
    if !changes.is_empty() {
        iam_changed(tx).await?;
    }
    Ok(changes)
}
