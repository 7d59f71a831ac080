//! No one gives through a provider what they do not hold: a sign-in there gives its default role, and what the
//! mappings of the person's groups name.

use bowline_core::{CapabilitySet, Error, Result};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Row, Value};

use super::ProviderRow;
use crate::iam::{owners, role_bindings, roles};

/// Checks the default role of a provider, at the provider's group.
///
/// # Errors
/// INVALID_ARGUMENT for a role that cannot be bound there; PERMISSION_DENIED naming what the caller lacks.
pub(super) async fn require_default_role<T>(tx: &mut ReadTx, call: &Authorized<T>, row: &ProviderRow) -> Result<()> {
    let capabilities =
        role_bindings::require_role(tx, call, row.uid.parent_str(), &row.default_role, "defaultRole").await?;
    call.require_all(row.uid.parent_str(), &capabilities)
}

/// Authorizes an issuer and a client at it. They are keys to everyone who signs in there, owners among them: with a
/// client of one's own at the owners' issuer, a token that an owner gets there could be exchanged for theirs here.
///
/// # Errors
/// PERMISSION_DENIED naming what of the owner role the caller lacks at the group.
pub(super) fn require_owner<T>(call: &Authorized<T>, row: &ProviderRow) -> Result<()> {
    call.require_all(row.uid.parent_str(), &owners::role(call.contract())?.capabilities)
}

/// Authorizes a change. Who says where sign-ins come from, or what their groups are, can sign in with all that the
/// provider gives.
///
/// # Errors
/// As for a new provider.
pub(super) async fn require_may_change<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    before: &ProviderRow,
    after: &ProviderRow,
) -> Result<()> {
    if after.default_role != before.default_role {
        require_default_role(tx, call, after).await?;
    }
    let client = |row: &ProviderRow| (row.oidc.issuer.clone(), row.oidc.client_id.clone());
    let is_same_client = client(after) == client(before);
    if is_same_client && after.oidc.groups_claim == before.oidc.groups_claim {
        return Ok(());
    }
    if !is_same_client {
        require_owner(call, after)?;
    }
    require_all_given(tx, call, after).await
}

/// Authorizes a change of who comes in through a provider. Who decides that can sign in with all that it gives.
///
/// # Errors
/// PERMISSION_DENIED naming what of the default role, or of the role of a mapping, the caller lacks.
pub(in crate::iam) async fn require_all_given<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    row: &ProviderRow,
) -> Result<()> {
    if let Some(role) = roles::find(tx, &row.default_role).await? {
        call.require_all(row.uid.parent_str(), &role.capabilities)?;
    }
    require_mapped(tx, call, row).await
}

async fn require_mapped<T>(tx: &mut ReadTx, call: &Authorized<T>, row: &ProviderRow) -> Result<()> {
    let sql = "SELECT DISTINCT m.scope, r.uid, r.capabilities FROM external_group_role_mappings m JOIN roles r ON r.uid = m.role
               WHERE m.parent = $1 ORDER BY m.scope, r.uid";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?, row.bytes(2)?));
    for (scope, role, bytes) in tx.query(sql, &[Value::from(row.uid.as_str())], read).await? {
        let capabilities = CapabilitySet::from_bytes(&bytes)
            .ok_or_else(|| Error::internal(format!("the role {role} has a damaged capability set")))?;
        call.require_all(&scope, &capabilities)?;
    }
    Ok(())
}
