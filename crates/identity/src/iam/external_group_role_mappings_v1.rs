//! External group role mappings as in v1.

use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::rpc::external_group_role_mappings::{BatchDelete, Create, Delete, Get, List};
use bowline_contract::v2::iam as v2;
use bowline_core::Result;
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::list;
use bowline_store::{ReadTx, WriteTx};
use prost::Message;

use super::external_group_role_mappings::{self as mappings, MappingRow, Spelling};
use super::roles;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<Create>(handler!(create))
        .read::<Get>(handler!(get))
        .read::<List>(handler!(list))
        .write::<Delete>(handler!(delete))
        .write::<BatchDelete>(handler!(delete_batch))
}

const V1: Spelling = Spelling { role: "roleUidp", names: "ids" };

/// A mapping as v1 has it.
pub(crate) fn down(mapping: v2::ExternalGroupRoleMapping) -> v1::ExternalGroupRoleMapping {
    v1::ExternalGroupRoleMapping {
        id: mapping.uid,
        identity_provider_uidp: mapping.identity_provider_uid,
        external_group_id: mapping.external_group_id,
        role_uidp: mapping.role_uid,
        scope: mapping.scope,
        created_at: mapping.create_time,
    }
}

async fn create(
    tx: &mut WriteTx,
    call: &Authorized<v1::CreateExternalGroupRoleMappingRequest>,
) -> Result<Changed<v1::ExternalGroupRoleMapping>> {
    let given = call.request().mapping.clone().unwrap_or_default();
    let given = v2::ExternalGroupRoleMapping {
        external_group_id: given.external_group_id,
        role_uid: given.role_uidp,
        scope: given.scope,
        ..v2::ExternalGroupRoleMapping::default()
    };
    Ok(mappings::create(tx, call, given, &V1).await?.map(down))
}

async fn get(
    tx: &mut ReadTx,
    call: &Authorized<v1::GetExternalGroupRoleMappingRequest>,
) -> Result<v1::ExternalGroupRoleMapping> {
    Ok(down(mappings::require(tx, call).await?.to_v2()))
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<v1::ExternalGroupRoleMappingFilter>,
) -> Result<v1::ExternalGroupRoleMappingList> {
    let filter = call.request();
    let mut selection = list::select_v1(call.visible(), filter.uidp.as_ref(), "");
    if !filter.identity_provider_uidp.is_empty() {
        roles::only_in(&mut selection, &filter.identity_provider_uidp);
    }
    let size = |row: &MappingRow| row.to_v2().encoded_len();
    let rows = list::everything(tx, call, &mappings::TABLE, &selection, size).await?;
    Ok(v1::ExternalGroupRoleMappingList { items: rows.iter().map(|row| down(row.to_v2())).collect() })
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteExternalGroupRoleMappingRequest>) -> Result<Changed<()>> {
    mappings::remove(tx, call).await
}

async fn delete_batch(
    tx: &mut WriteTx,
    call: &Authorized<v1::BatchDeleteExternalGroupRoleMappingsRequest>,
) -> Result<Changed<v1::BatchDeleteExternalGroupRoleMappingsResponse>> {
    let parent_id = call.require_scope()?.as_str().to_owned();
    let changed = mappings::remove_batch(tx, call, &call.request().ids, &V1).await?;
    Ok(changed.map(|deleted| v1::BatchDeleteExternalGroupRoleMappingsResponse {
        parent_id,
        items: deleted.into_iter().map(down).collect(),
    }))
}
