//! Where a role is given, which matters when it is to be widened or deleted.

use bowline_core::{Error, Result};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Value};

use super::RoleRow;

/// Groups that are read at a time to judge a widened role.
const GROUPS_AT_ONCE: i64 = 500;

/// Adding to a role in use grants to everyone who has it or comes to have it by signing in: the caller must hold
/// the addition wherever the role is given.
pub(super) async fn require_may_widen<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    before: &RoleRow,
    after: &RoleRow,
) -> Result<()> {
    let added = after.capabilities.difference(&before.capabilities);
    // A custom role is bound at its group or below, where what is held at the group is held too.
    if added.is_empty() || call.grants().allows(after.uid.parent_str(), &added) {
        return Ok(());
    }
    let sql = "SELECT place FROM (SELECT parent AS place FROM role_bindings WHERE role = $1
                                  UNION SELECT parent FROM identity_providers WHERE default_role = $1
                                  UNION SELECT scope FROM external_group_role_mappings WHERE role = $1) AS places
               WHERE place > $2 ORDER BY place LIMIT $3";
    let mut last = String::new();
    loop {
        let params = [Value::from(after.uid.as_str()), Value::from(&last), Value::Int(GROUPS_AT_ONCE)];
        let bound = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
        for group in &bound {
            call.require_all(group, &added)?;
        }
        match bound.into_iter().next_back() {
            Some(group) => last = group,
            None => return Ok(()),
        }
    }
}

/// What keeps a role from being deleted: who names it, and what to do about them.
const USES: &[(&str, &str)] = &[
    (
        "SELECT uid FROM role_bindings WHERE role = $1 LIMIT 1",
        "cannot delete a role that is bound; delete its role bindings first",
    ),
    (
        "SELECT uid FROM identity_providers WHERE default_role = $1 LIMIT 1",
        "cannot delete a role that is the default role of an identity provider; give the provider another one first",
    ),
    (
        "SELECT uid FROM external_group_role_mappings WHERE role = $1 LIMIT 1",
        "cannot delete a role that an external group is mapped to; delete its mappings first",
    ),
];

/// Refuses to delete a role that somebody has, or comes to have by signing in.
///
/// # Errors
/// FAILED_PRECONDITION saying what to do first.
pub(super) async fn require_unused(tx: &mut ReadTx, uid: &str) -> Result<()> {
    for (sql, what) in USES {
        let found = tx.query_opt(sql, &[Value::from(uid)], |row| row.text(0).map_err(Error::from)).await?;
        if found.is_some() {
            return Err(Error::precondition("ROLE_BOUND", uid, *what));
        }
    }
    Ok(())
}
