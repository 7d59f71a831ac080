//! Who owns a group and can act as its owner today.

use bowline_contract::v2::iam::RelationshipType;
use bowline_contract::{BuiltInRole, Contract};
use bowline_core::{Error, Micros, Result};
use bowline_store::{ReadTx, Value};

/// The built-in role of owners.
///
/// # Errors
/// INTERNAL: the contract has none.
pub(crate) fn role(contract: &Contract) -> Result<&BuiltInRole> {
    let owner = contract.built_in_roles().iter().find(|role| role.name == "owner");
    owner.ok_or_else(|| Error::internal("the contract has no role of the name owner"))
}

/// How many identities besides `except` have the role owner at the group itself and can act: they exist, are neither
/// deactivated, here or by a directory of the group or of one above it, nor past their end, and somebody can assume
/// them, which nobody can service principals.
///
/// # Errors
/// The storage fails.
pub(crate) async fn count(tx: &mut ReadTx, contract: &Contract, group: &str, except: &str, now: Micros) -> Result<i64> {
    let sql = "SELECT count(DISTINCT b.identity) FROM role_bindings b JOIN identities i ON i.uid = b.identity
               WHERE b.parent = $1 AND b.role = $2 AND b.identity <> $3
                 AND NOT i.deactivated AND (i.expires_at IS NULL OR i.expires_at > $4) AND i.relationship_type <> $5
                 AND NOT EXISTS (
                   SELECT 1 FROM scim_users u
                   WHERE u.person = b.identity AND u.org = b.org AND NOT u.active
                     AND substr(b.parent || '/', 1, length(u.provider) - 16) = substr(u.provider, 1, length(u.provider) - 16))";
    let params = [
        Value::from(group),
        Value::from(&role(contract)?.uid),
        Value::from(except),
        Value::Int(now),
        Value::Int(i64::from(RelationshipType::ServicePrincipal as i32)),
    ];
    Ok(tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0))
}
