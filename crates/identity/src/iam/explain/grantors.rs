//! Identities that can grant the missing capabilities, where the caller may list role bindings.

use std::collections::HashMap;

use bowline_contract::bowline::iam::v1::AccessGrantor;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{CapabilitySet, Error, Result, Uidp};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Row, Value};

use crate::access::HOLDERS;
use crate::iam::role_bindings::reads_identity_at;

/// Grantors that are shown.
const SHOWN: usize = 10;
/// Custom roles that are read.
const ROLES: usize = 200;

/// Identities with a role that has what is missing and may bind roles, the nearest first.
pub(super) async fn find<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    scope: &Uidp,
    missing: &CapabilitySet,
) -> Result<Vec<AccessGrantor>> {
    let groups: Vec<&str> =
        scope.self_and_ancestors().filter(|group| call.holds(group, Capability::CapIamRoleBindingsList)).collect();
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let binds = call.contract().capabilities().by_number(Capability::CapIamRoleBindingsCreate as i32);
    let binds = binds.ok_or_else(|| Error::internal("the contract has no capability to bind roles"))?;
    let roles = roles_with(tx, call, &groups, &missing.union(&CapabilitySet::of_bit(binds.bit))).await?;
    if roles.is_empty() {
        return Ok(Vec::new());
    }
    let mut holders = holders(tx, call, &groups, &roles).await?;
    // The nearest first: a longer UIDP is further down.
    holders.sort_by(|a, b| (b.group.len(), &a.identity).cmp(&(a.group.len(), &b.identity)));
    Ok(holders)
}

/// Built-in roles, and custom ones of these groups that the reader may list, which have all of this: names by UIDP.
async fn roles_with<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    groups: &[&str],
    needed: &CapabilitySet,
) -> Result<HashMap<String, String>> {
    let built_in = call.contract().built_in_roles().iter().filter(|role| role.capabilities.contains(needed));
    let mut roles: HashMap<String, String> = built_in.map(|role| (role.uid.clone(), role.name.clone())).collect();
    let listed = groups.iter().filter(|group| call.holds(group, Capability::CapIamRolesList));
    let params: Vec<Value<'_>> = listed.map(|group| Value::from(*group)).collect();
    if params.is_empty() {
        return Ok(roles);
    }
    let sql = format!(
        "SELECT uid, name, capabilities FROM roles WHERE parent IN ({}) ORDER BY parent, uid LIMIT {ROLES}",
        numbered(1, params.len())
    );
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?, row.bytes(2)?));
    for (uid, name, bytes) in tx.query(&sql, &params, read).await? {
        if CapabilitySet::from_bytes(&bytes).is_some_and(|capabilities| capabilities.contains(needed)) {
            roles.insert(uid, name);
        }
    }
    Ok(roles)
}

async fn holders<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    groups: &[&str],
    roles: &HashMap<String, String>,
) -> Result<Vec<AccessGrantor>> {
    let mut uids: Vec<&String> = roles.keys().collect();
    uids.sort_unstable();
    let mut params = vec![Value::Int(call.now())];
    params.extend(groups.iter().map(|group| Value::from(*group)));
    params.extend(uids.into_iter().map(Value::from));
    let (first, last) = (groups.len() + 1, params.len());
    let sql = format!(
        "{HOLDERS} b.parent IN ({}) AND b.role IN ({}) LIMIT {SHOWN}",
        numbered(2, first),
        numbered(first + 1, last)
    );
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(AccessGrantor {
            identity: row.text(0)?,
            name: row.text(1)?,
            email: row.text(2)?,
            group: row.text(3)?,
            role: row.text(4)?,
            role_name: String::new(),
        })
    };
    let mut holders: Vec<AccessGrantor> = tx.query(&sql, &params, read).await?;
    for holder in &mut holders {
        holder.role_name = roles.get(&holder.role).cloned().unwrap_or_default();
        if !reads_identity_at(call, &holder.identity, &holder.group) {
            holder.name.clear();
            holder.email.clear();
        }
    }
    Ok(holders)
}

/// `$first, ..., $last`: the positions of parameters in a statement.
fn numbered(first: usize, last: usize) -> String {
    (first..=last).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ")
}
