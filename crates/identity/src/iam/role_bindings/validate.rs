//! Who may be given which role at a group, and by whom.

use std::collections::BTreeMap;

use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{CapabilitySet, Error, FieldViolation, Result, Uidp};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Value};

use super::BindingInput;
use crate::iam::roles;

/// How a version calls the fields of a binding.
#[derive(Clone, Debug)]
pub(crate) struct Spelling {
    prefix: String,
    identity: &'static str,
    role: &'static str,
}

impl Spelling {
    pub(crate) const V1: Spelling = Spelling { prefix: String::new(), identity: "identity", role: "role" };
    pub(crate) const V2: Spelling = Spelling { prefix: String::new(), identity: "identityUid", role: "roleUid" };

    /// The same fields elsewhere in the request.
    pub(crate) fn within(self, prefix: String) -> Spelling {
        Spelling { prefix, ..self }
    }

    fn violation(&self, name: &str, what: &str) -> FieldViolation {
        FieldViolation { field: format!("{}{name}", self.prefix), description: format!("{name} {what}") }
    }
}

/// Checks what the bindings name, then that the caller holds at the group everything they would give.
///
/// # Errors
/// INVALID_ARGUMENT with every wrong reference; PERMISSION_DENIED naming what the caller lacks.
pub(super) async fn grants<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    group: &Uidp,
    bindings: &[(BindingInput, Spelling)],
) -> Result<()> {
    let mut violations = Vec::new();
    let mut known: BTreeMap<&str, Option<CapabilitySet>> = BTreeMap::new();
    let mut granted = CapabilitySet::EMPTY;
    for (input, spelling) in bindings {
        if let Some(wrong) = validate_identity(group, &input.identity) {
            violations.push(spelling.violation(spelling.identity, wrong));
        }
        if !known.contains_key(input.role.as_str()) {
            known.insert(&input.role, usable_role(tx, call, group.as_str(), &input.role).await?);
        }
        match known.get(input.role.as_str()).copied().flatten() {
            Some(capabilities) => granted = granted.union(&capabilities),
            None => violations.push(spelling.violation(spelling.role, wrong_role(&input.role))),
        }
    }
    if !violations.is_empty() {
        return Err(Error::invalid(violations));
    }
    call.require_all(group.as_str(), &granted)?;
    // Last, so that only callers who could have bound an identity learn whether it exists.
    for (input, spelling) in bindings {
        if !exists(tx, &input.identity).await? {
            violations.push(spelling.violation(spelling.identity, WRONG_IDENTITY));
        }
    }
    if violations.is_empty() { Ok(()) } else { Err(Error::invalid(violations)) }
}

/// Checks a promise of a role at the group, such as an invitation: as a binding of it would be. `field` is what
/// the caller calls the role.
///
/// # Errors
/// INVALID_ARGUMENT naming the field; PERMISSION_DENIED naming what the caller lacks.
pub(crate) async fn promise<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    group: &Uidp,
    role: &str,
    field: &str,
) -> Result<CapabilitySet> {
    let capabilities = require_role(tx, call, group.as_str(), role, field).await?;
    call.require_all(group.as_str(), &capabilities)?;
    Ok(capabilities)
}

fn wrong_role(role: &str) -> &'static str {
    match role {
        "" => "is required",
        _ => "must name a built-in role, or a custom role of this group or of a group above it",
    }
}

/// What a role gives that is named in this field of something else than a binding, to be given at the group.
///
/// # Errors
/// INVALID_ARGUMENT for a role that cannot be bound there.
pub(crate) async fn require_role<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    group: &str,
    role: &str,
    field: &str,
) -> Result<CapabilitySet> {
    let capabilities = usable_role(tx, call, group, role).await?;
    capabilities.ok_or_else(|| Error::invalid_field(field, format!("{field} {}", wrong_role(role))))
}

/// What the role gives, if it may be bound at the group. A role that the caller may not list is like none.
async fn usable_role<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    group: &str,
    role: &str,
) -> Result<Option<CapabilitySet>> {
    let Ok(uid) = Uidp::parse(role) else { return Ok(None) };
    let reaches = uid.parent().is_none_or(|parent| parent.contains(group));
    let is_listed = uid.is_root() || call.holds(role, Capability::CapIamRolesList);
    if !reaches || !is_listed {
        return Ok(None);
    }
    Ok(roles::find(tx, role).await?.map(|row| row.capabilities))
}

const WRONG_IDENTITY: &str = "must name a person, or an identity of the group's own organization";

/// What is wrong with the name of the identity, if anything.
fn validate_identity(group: &Uidp, identity: &str) -> Option<&'static str> {
    if identity.is_empty() {
        return Some("is required");
    }
    match Uidp::parse(identity) {
        Ok(uid) if uid.is_root() || uid.root_str() == group.root_str() => None,
        _ => Some(WRONG_IDENTITY),
    }
}

/// Whether the identity can be bound: people have fixed UIDPs, so they can be bound before they come for the
/// first time.
async fn exists(tx: &mut ReadTx, identity: &str) -> Result<bool> {
    if !identity.contains('/') {
        return Ok(true);
    }
    let sql = "SELECT uid FROM identities WHERE uid = $1";
    let found = tx.query_opt(sql, &[Value::from(identity)], |row| row.text(0).map_err(Error::from)).await?;
    Ok(found.is_some())
}
