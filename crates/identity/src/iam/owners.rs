//! Who owns a group and can act as its owner today.

use bowline_contract::v2::iam::RelationshipType;
use bowline_contract::{BuiltInRole, Contract};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::{ReadTx, Value};

/// The built-in role of owners.
///
/// # Errors
/// INTERNAL: the contract has none.
pub(crate) fn role(contract: &Contract) -> Result<&BuiltInRole> {
    let owner = contract.built_in_roles().iter().find(|role| role.name == "owner");
    owner.ok_or_else(|| Error::internal("the contract has no role of the name owner"))
}

/// Bindings of the role owner (`$1`) whose identities can act at the time `$2`: they exist, are neither deactivated, here
/// or by a directory of the group or of one above it, nor past their end, and can be assumed, which service principals
/// (`$3`) cannot.
const ACTING: &str = "
FROM role_bindings b JOIN identities i ON i.uid = b.identity
WHERE b.role = $1 AND NOT i.deactivated AND (i.expires_at IS NULL OR i.expires_at > $2) AND i.relationship_type <> $3
  AND NOT EXISTS (
    SELECT 1 FROM scim_users u
    WHERE u.person = b.identity AND u.org = b.org AND NOT u.active
      AND substr(b.parent || '/', 1, length(u.provider) - 16) = substr(u.provider, 1, length(u.provider) - 16))";

fn acting(contract: &Contract, now: Micros) -> Result<Vec<Value<'_>>> {
    let service_principal = i64::from(RelationshipType::ServicePrincipal as i32);
    Ok(vec![Value::from(&role(contract)?.uid), Value::Int(now), Value::Int(service_principal)])
}

async fn counted(tx: &mut ReadTx, condition: &str, params: &[Value<'_>]) -> Result<i64> {
    let sql = format!("SELECT count(DISTINCT b.identity) {ACTING} {condition}");
    Ok(tx.query_opt(&sql, params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0))
}

/// How many identities besides `except` have the role owner at the group itself and can act.
///
/// # Errors
/// The storage fails.
pub(crate) async fn count(tx: &mut ReadTx, contract: &Contract, group: &str, except: &str, now: Micros) -> Result<i64> {
    let mut params = acting(contract, now)?;
    params.extend([Value::from(group), Value::from(except)]);
    counted(tx, "AND b.parent = $4 AND b.identity <> $5", &params).await
}

/// What a directory does to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lockout {
    /// Deactivates them: their bindings stay and count for nothing.
    Deactivation,
    /// Takes their bindings away, those of a person who cannot act at the moment too.
    Removal,
}

/// Whether a directory may lock this person out of its group and what is below: they own nothing there, or the group
/// keeps an owner who can act, at the group or above it. A person with an owner binding that others than the directory's
/// provider made needs to leave such an owner behind: a directory never ends the last one that is not its own.
///
/// # Errors
/// The storage fails.
pub(crate) async fn may_be_locked_out(
    tx: &mut ReadTx,
    contract: &Contract,
    provider: &Uidp,
    person: &str,
    lockout: Lockout,
    now: Micros,
) -> Result<bool> {
    let group = provider.parent_str();
    // Everything below begins with the group and a slash, which `0` follows.
    let (below, after) = (format!("{group}/"), format!("{group}0"));
    let mut params = acting(contract, now)?;
    params.extend([Value::from(person), Value::from(group), Value::from(&below), Value::from(&after)]);
    let is_below = "b.identity = $4 AND (b.parent = $5 OR (b.parent >= $6 AND b.parent < $7))";
    let owns = match lockout {
        Lockout::Deactivation => counted(tx, &format!("AND {is_below}"), &params).await? > 0,
        Lockout::Removal => {
            let sql = "SELECT count(*) FROM role_bindings b
                       WHERE b.role = $1 AND b.identity = $2 AND (b.parent = $3 OR (b.parent >= $4 AND b.parent < $5))";
            let owner = Value::from(&role(contract)?.uid);
            let params = [owner, Value::from(person), Value::from(group), Value::from(&below), Value::from(&after)];
            tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0) > 0
        }
    };
    if !owns {
        return Ok(true);
    }
    let is_own = is_made_owner_by(tx, contract, provider, person).await?;
    let mut params = acting(contract, now)?;
    params.extend([Value::from(person), Value::from(provider.as_str())]);
    let mut scopes = Vec::new();
    let mut scope = Some(group);
    while let Some(uid) = scope {
        params.push(Value::from(uid));
        scopes.push(format!("${}", params.len()));
        scope = uid.rsplit_once('/').map(|(parent, _)| parent);
    }
    // With an owner of its own gone, any other will do; the provider is named in both cases. Where the binding is not
    // recorded (NULL), removal is harder on both sides: the person is neither an independent owner here nor one of the
    // directory's own in `is_made_owner_by`.
    let others = if is_own { "OR TRUE" } else { "" };
    let condition = format!(
        "AND b.identity <> $4 AND b.parent IN ({scopes})
         AND (NOT EXISTS (SELECT 1 FROM default_roles_given d JOIN identity_providers p ON p.uid = d.provider
                          WHERE d.provider = $5 AND d.person = b.identity
                            AND (d.binding = b.uid OR (d.binding IS NULL AND p.default_role = $1))) {others})",
        scopes = scopes.join(", ")
    );
    Ok(counted(tx, &condition, &params).await? > 0)
}

/// Whether the provider's default role made each binding that makes the person an owner of its group or of what is below.
/// Bindings that were changed since, and those of default roles given before bindings were recorded, are not its own.
async fn is_made_owner_by(tx: &mut ReadTx, contract: &Contract, provider: &Uidp, person: &str) -> Result<bool> {
    let group = provider.parent_str();
    let (below, after) = (format!("{group}/"), format!("{group}0"));
    let sql = "SELECT b.uid FROM role_bindings b
               WHERE b.role = $1 AND b.identity = $2 AND (b.parent = $3 OR (b.parent >= $4 AND b.parent < $5))
                 AND NOT EXISTS (SELECT 1 FROM default_roles_given d
                                 WHERE d.provider = $6 AND d.person = b.identity AND d.binding = b.uid)
               LIMIT 1";
    let params = [role(contract)?.uid.as_str(), person, group, &below, &after, provider.as_str()].map(Value::from);
    Ok(tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?.is_none())
}
