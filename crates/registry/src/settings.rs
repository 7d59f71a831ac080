//! Settings of an organization's registry.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::{GetRegistrySettings, UpdateRegistrySettings};
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::kinds::REGISTRY_SETTINGS;
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, Row, Value, WriteTx};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<GetRegistrySettings>(handler!(get)).write::<UpdateRegistrySettings>(handler!(update))
}

/// What is set for an organization; nothing is on until someone turns it on.
pub(super) async fn of(tx: &mut ReadTx, organization: &str) -> Result<v1::RegistrySettings> {
    let sql = "SELECT unique_tags, eol_grace_period FROM registry_settings WHERE org = $1";
    let flags = |row: &Row<'_>| Ok::<_, Error>((row.bool(0)?, row.bool(1)?));
    let found = tx.query_opt(sql, &[Value::from(organization)], flags).await?;
    let (unique_tags, eol_grace_period) = found.unwrap_or_default();
    Ok(v1::RegistrySettings { registry_id: organization.into(), unique_tags, eol_grace_period })
}

/// The organization that the request names.
async fn require_registry(tx: &mut ReadTx, place: &Uidp) -> Result<()> {
    if !place.is_root() {
        return Err(Error::invalid_field("registryId", "must be an organization: only a root group has a registry"));
    }
    require_group(tx, place).await
}

async fn get(tx: &mut ReadTx, call: &Authorized<v1::GetRegistrySettingsRequest>) -> Result<v1::RegistrySettings> {
    let place = call.require_scope()?;
    require_registry(tx, place).await?;
    of(tx, place.as_str()).await
}

async fn update(tx: &mut WriteTx, call: &Authorized<v1::RegistrySettings>) -> Result<Changed<v1::RegistrySettings>> {
    let place = call.require_scope()?;
    require_registry(tx, place).await?;
    let (before, after) = (of(tx, place.as_str()).await?, call.request().clone());
    if before == after {
        return Ok(Changed::nothing(after));
    }
    let sql = "INSERT INTO registry_settings (org, unique_tags, eol_grace_period) VALUES ($1, $2, $3)
               ON CONFLICT (org) DO UPDATE SET unique_tags = excluded.unique_tags, eol_grace_period = excluded.eol_grace_period";
    let params = [Value::from(place.as_str()), Value::Bool(after.unique_tags), Value::Bool(after.eol_grace_period)];
    tx.execute(sql, &params).await?;
    Ok(Changed::one(REGISTRY_SETTINGS, place, Some(&before), Some(&after), after.clone()))
}
