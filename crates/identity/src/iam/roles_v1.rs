//! Roles as in v1.

use bowline_contract::Contract;
use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::rpc::roles::{Create, Delete, List, Update};
use bowline_core::{CapabilitySet, Result, intersect};
use bowline_pipeline::{Authorized, Changed, Handlers, Mask, handler};
use bowline_resources::list::{self, Filter};
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message;

use super::roles::{self, RoleInput, RoleRow};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<Create>(handler!(create))
        .write::<Update>(handler!(update))
        .read::<List>(handler!(list))
        .write::<Delete>(handler!(delete))
}

fn input(contract: &Contract, role: v1::Role) -> Result<RoleInput> {
    let v1::Role { id: _, name, description, capabilities } = role;
    Ok(RoleInput { name, description, capabilities: Some(set_of_names(contract, &capabilities)?) })
}

/// The set of these names.
fn set_of_names(contract: &Contract, names: &[String]) -> Result<CapabilitySet> {
    let known = |name: &String| contract.capabilities().by_name(name).map(|facts| facts.bit);
    let unknown: Vec<String> =
        names.iter().filter(|name| known(name).is_none()).map(|name| format!("\"{name}\"")).collect();
    roles::refuse_unknown(&unknown)?;
    Ok(names.iter().filter_map(known).collect())
}

async fn create(tx: &mut WriteTx, call: &Authorized<v1::CreateRoleRequest>) -> Result<Changed<v1::Role>> {
    let input = input(call.contract(), call.request().role.clone().unwrap_or_default())?;
    Ok(roles::create(tx, call, input).await?.map(|row| row.to_v1(call.contract())))
}

async fn update(tx: &mut WriteTx, call: &Authorized<v1::Role>) -> Result<Changed<v1::Role>> {
    let input = input(call.contract(), call.request().clone())?;
    Ok(roles::update(tx, call, &Mask::whole(), &input).await?.map(|row| row.to_v1(call.contract())))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::RoleFilter>) -> Result<v1::RoleList> {
    let (filter, contract) = (call.request(), call.contract());
    let mut selection = list::select_v1(call.visible(), filter.uidp.as_ref(), &filter.id);
    roles::add_built_in(&mut selection, contract, filter.uidp.as_ref(), &filter.id);
    match filter.parent.as_str() {
        "" => {}
        "/" => selection.ranges = intersect(&selection.ranges, &roles::built_in_ranges(contract)),
        group => roles::only_in(&mut selection, group),
    }
    if !filter.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&filter.name) });
    }
    let size = |row: &RoleRow| row.to_v1(contract).encoded_len();
    let rows = list::everything(tx, call, &roles::TABLE, &selection, size).await?;
    Ok(v1::RoleList { items: rows.iter().map(|row| row.to_v1(contract)).collect() })
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteRoleRequest>) -> Result<Changed<()>> {
    roles::remove(tx, call).await
}
