//! Role bindings as in v1.

use std::collections::HashMap;

use bowline_contract::Contract;
use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::rpc::role_bindings::{Create, CreateBatch, Delete, List, Update};
use bowline_core::Result;
use bowline_pipeline::{Authorized, Changed, Handlers, Mask, handler};
use bowline_resources::list;
use bowline_store::{ReadTx, WriteTx};
use prost::Message;

use super::role_bindings::{self, BindingInput, BindingRow, References, Spelling};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<Create>(handler!(create))
        .write::<CreateBatch>(handler!(create_batch))
        .write::<Update>(handler!(update))
        .read::<List>(handler!(list))
        .write::<Delete>(handler!(delete))
}

/// The group is where the request goes, whatever the deprecated field says.
fn input(binding: v1::RoleBinding) -> BindingInput {
    BindingInput { identity: binding.identity, role: binding.role }
}

async fn create(tx: &mut WriteTx, call: &Authorized<v1::CreateRoleBindingRequest>) -> Result<Changed<v1::RoleBinding>> {
    let input = input(call.request().role_binding.clone().unwrap_or_default());
    Ok(role_bindings::create(tx, call, input, &Spelling::V1).await?.map(|row| row.to_v1()))
}

async fn create_batch(
    tx: &mut WriteTx,
    call: &Authorized<v1::CreateRoleBindingBatchRequest>,
) -> Result<Changed<v1::RoleBindingBatch>> {
    let bindings = call.request().role_bindings.iter().cloned().enumerate();
    let inputs = bindings.map(|(i, binding)| (input(binding), Spelling::V1.within(format!("roleBindings[{i}]."))));
    let changed = role_bindings::create_batch(tx, call, "roleBindings", inputs.collect()).await?;
    Ok(changed.map(|rows| v1::RoleBindingBatch { role_bindings: rows.iter().map(BindingRow::to_v1).collect() }))
}

async fn update(tx: &mut WriteTx, call: &Authorized<v1::RoleBinding>) -> Result<Changed<v1::RoleBinding>> {
    let input = input(call.request().clone());
    let changed = role_bindings::update(tx, call, &Mask::whole(), input, &Spelling::V1).await?;
    Ok(changed.map(|row| row.to_v1()))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::RoleBindingFilter>) -> Result<v1::RoleBindingList> {
    let filter = call.request();
    let selection = list::select_v1(call.visible(), filter.uidp.as_ref(), &filter.id);
    let sizes = Sizes::of(call.contract());
    let rows = list::everything(tx, call, &role_bindings::TABLE, &selection, |row| sizes.item(row)).await?;
    let references = References::load(tx, call, &rows).await?;
    Ok(v1::RoleBindingList { items: rows.iter().map(|row| references.to_v1(call, row)).collect() })
}

/// Estimates how large items become, before what they refer to is read.
struct Sizes(HashMap<String, usize>);

/// What group, identity and times add to an item.
const OTHER_REFERENCES: usize = 512;
/// What a custom role adds to an item.
const CUSTOM_ROLE: usize = 1024;

impl Sizes {
    /// The roles that most bindings name are known beforehand, and are most of an item.
    fn of(contract: &Contract) -> Sizes {
        let size = |names: Vec<&str>| names.iter().map(|name| name.len() + 2).sum::<usize>();
        let roles = contract.built_in_roles().iter();
        Sizes(roles.map(|role| (role.uid.clone(), size(contract.capabilities().names(&role.capabilities)))).collect())
    }

    fn item(&self, row: &BindingRow) -> usize {
        let role = self.0.get(&row.role).copied().unwrap_or(CUSTOM_ROLE);
        row.to_v1().encoded_len() + role + OTHER_REFERENCES
    }
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteRoleBindingRequest>) -> Result<Changed<()>> {
    role_bindings::remove(tx, call.require_scope()?).await
}
