//! Groups as in v1.

use std::sync::Arc;

use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::rpc::groups::{Create, Delete, List, Update};
use bowline_core::Result;
use bowline_pipeline::{Authorized, Changed, Handlers, Mask, handler};
use bowline_resources::groups::GroupContents;
use bowline_resources::list::{self, Filter};
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message;

use super::groups::{self, GroupInput, GroupRow};

pub(crate) fn register(handlers: Handlers, domains: &Arc<[GroupContents]>) -> Handlers {
    let domains = domains.clone();
    handlers
        .write::<Create>(handler!(create))
        .write::<Update>(handler!(update))
        .read::<List>(handler!(list))
        .write::<Delete>(move |tx, call| {
            let domains = domains.clone();
            Box::pin(async move { groups::remove(tx, call.require_scope()?, &domains).await })
        })
}

fn input(group: v1::Group) -> GroupInput {
    let v1::Group { id: _, name, description, resource_limits, verified, kind, status } = group;
    let status = Some(status).filter(|status| *status != 0);
    GroupInput { name, description, verified, kind, resource_limits: Some(resource_limits), status }
}

async fn create(tx: &mut WriteTx, call: &Authorized<v1::CreateGroupRequest>) -> Result<Changed<v1::Group>> {
    let group = call.request().group.clone().unwrap_or_default();
    Ok(groups::create(tx, call, &call.request().parent, input(group)).await?.map(|row| row.to_v1()))
}

async fn update(tx: &mut WriteTx, call: &Authorized<v1::Group>) -> Result<Changed<v1::Group>> {
    let group = call.request().clone();
    Ok(groups::update(tx, call, &Mask::whole(), &input(group)).await?.map(|row| row.to_v1()))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::GroupFilter>) -> Result<v1::GroupList> {
    let filter = call.request();
    let mut selection = list::select_v1(call.visible(), filter.uidp.as_ref(), &filter.id);
    if !filter.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&filter.name) });
    }
    let size = |row: &GroupRow| row.to_v1().encoded_len();
    let rows = list::everything(tx, call, &groups::TABLE, &selection, size).await?;
    Ok(v1::GroupList { items: rows.iter().map(GroupRow::to_v1).collect() })
}
