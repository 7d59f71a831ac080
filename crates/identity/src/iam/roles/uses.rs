//! Where a role is given, which matters when it is to be widened or deleted.

use bowline_core::{Error, Micros, Result};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Value};

use super::RoleRow;

/// A column that holds a role which someone has, or comes to have without another decision of a caller.
#[derive(Clone, Copy, Debug)]
pub struct RoleColumn {
    pub table: &'static str,
    /// The column with the UIDP of the role.
    pub role: &'static str,
    /// The column with the group that the role is given at.
    pub group: &'static str,
    /// Which rows still give the role at the time `$2`, if not all of them.
    open: Option<&'static str>,
    remedy: &'static str,
}

/// Every column that holds a role. Widening and deleting a role look at all of them; a test compares the list with the
/// catalogues of both engines.
pub const ROLE_COLUMNS: [RoleColumn; 4] = [
    RoleColumn {
        table: "role_bindings",
        role: "role",
        group: "parent",
        open: None,
        remedy: "cannot delete a role that is bound; delete its role bindings first",
    },
    RoleColumn {
        table: "identity_providers",
        role: "default_role",
        group: "parent",
        open: None,
        remedy: "cannot delete a role that is the default role of an identity provider; give the provider another one first",
    },
    RoleColumn {
        table: "external_group_role_mappings",
        role: "role",
        group: "scope",
        open: None,
        remedy: "cannot delete a role that an external group is mapped to; delete its mappings first",
    },
    RoleColumn {
        table: "group_invites",
        role: "role",
        group: "parent",
        open: Some("expires_at > $2 AND NOT (single_use AND used_at IS NOT NULL)"),
        remedy: "cannot delete a role that an invitation promises; delete its invitations first",
    },
];

/// Groups that are read at a time to authorize a widened role.
const GROUPS_AT_ONCE: i64 = 500;

/// Adding to a role in use grants to everyone who has it, or comes to have it by signing in or by an invitation: the
/// caller must hold the addition wherever the role is given.
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
    let selects = ROLE_COLUMNS
        .map(|RoleColumn { table, role, group, .. }| format!("SELECT {group} AS place FROM {table} WHERE {role} = $1"));
    let selects = selects.join(" UNION ");
    let sql = format!("SELECT place FROM ({selects}) AS places WHERE place > $2 ORDER BY place LIMIT $3");
    let mut last = String::new();
    loop {
        let params = [Value::from(after.uid.as_str()), Value::from(&last), Value::Int(GROUPS_AT_ONCE)];
        let bound = tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?;
        for group in &bound {
            call.require_all(group, &added)?;
        }
        match bound.into_iter().next_back() {
            Some(group) => last = group,
            None => return Ok(()),
        }
    }
}

/// Refuses to delete a role that someone has, or comes to have by signing in or by an open invitation.
///
/// # Errors
/// FAILED_PRECONDITION saying what to do first.
pub(super) async fn require_unused(tx: &mut ReadTx, uid: &str, now: Micros) -> Result<()> {
    for RoleColumn { table, role, open, remedy, .. } in ROLE_COLUMNS {
        let mut sql = format!("SELECT uid FROM {table} WHERE {role} = $1");
        let mut params = vec![Value::from(uid)];
        if let Some(open) = open {
            sql.push_str(&format!(" AND {open}"));
            params.push(Value::Int(now));
        }
        sql.push_str(" LIMIT 1");
        let found = tx.query_opt(&sql, &params, |row| row.text(0).map_err(Error::from)).await?;
        if found.is_some() {
            return Err(Error::precondition("ROLE_BOUND", uid, remedy));
        }
    }
    Ok(())
}
