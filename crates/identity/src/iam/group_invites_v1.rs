//! Invitations as in v1.

use std::collections::HashMap;

use bowline_contract::Contract;
use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::rpc::group_invites::{Create, CreateWithGroup, Delete, List};
use bowline_core::{Error, FieldViolation, Result};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::list::{self, Filter, timestamp};
use bowline_resources::references;
use bowline_store::{ReadTx, Value, WriteTx};
use prost::{Message, Name};

use super::group_invites::{self, InviteInput, InviteRow, V1, code, violations};
use super::groups::{self, GroupInput};
use super::role_bindings::readable_roles;
use super::roles::{self, RoleRow};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .validate::<Create>(|request| violations(&input(request), &V1))
        .write::<Create>(handler!(create))
        .validate::<CreateWithGroup>(|request| violations(&input(request), &V1))
        .write::<CreateWithGroup>(handler!(create_with_group))
        .read::<List>(handler!(list))
        .write::<Delete>(handler!(delete))
}

fn input(request: &v1::GroupInviteRequest) -> InviteInput {
    InviteInput {
        role: request.role.clone(),
        email: request.email.clone(),
        ttl: request.ttl,
        single_use: request.single_use,
    }
}

/// The role as far as the caller may read it, else its UIDP alone.
fn role(contract: &Contract, uid: &str, roles: &HashMap<String, RoleRow>) -> v1::Role {
    let known = roles.get(uid).map(|role| role.to_v1(contract));
    known.unwrap_or_else(|| v1::Role { id: uid.into(), ..v1::Role::default() })
}

async fn create(tx: &mut WriteTx, call: &Authorized<v1::GroupInviteRequest>) -> Result<Changed<v1::GroupInvite>> {
    let group = references::require_scope(tx, call).await?;
    let changed = group_invites::create(tx, call, &group, input(call.request()), V1.role).await?;
    answer(tx, call, changed).await
}

async fn answer<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    changed: Changed<InviteRow>,
) -> Result<Changed<v1::GroupInvite>> {
    let roles = readable_roles(tx, call, std::iter::once(changed.response.role.as_str())).await?;
    Ok(changed.map(|row| v1::GroupInvite {
        id: row.uid.as_str().into(),
        expiration: timestamp(row.expires_at),
        key_id: row.key_id.clone(),
        role: Some(role(call.contract(), &row.role, &roles)),
        code: code(call.vault(), &row),
    }))
}

/// Creates an organization of the name that `group` gives, which no one owns, and an invitation into it.
async fn create_with_group(
    tx: &mut WriteTx,
    call: &Authorized<v1::GroupInviteRequest>,
) -> Result<Changed<v1::GroupInvite>> {
    let name = &call.request().group;
    validate_name(call.contract(), name)?;
    let group = groups::create(tx, call, "", GroupInput { name: name.clone(), ..GroupInput::default() }).await?;
    let invite = group_invites::create(tx, call, &group.response.uid, input(call.request()), V1.role).await?;
    let mut changes = group.changes;
    changes.extend(invite.changes);
    answer(tx, call, Changed::many(changes, invite.response)).await
}

/// The name is checked as that of any new group, and called as this method calls it.
fn validate_name(contract: &Contract, name: &str) -> Result<()> {
    let group = v1::Group { name: name.into(), ..v1::Group::default() };
    let violations = contract.field_rules().validate(&v1::Group::full_name(), &group.encode_to_vec(), None, None);
    let violations: Vec<FieldViolation> = violations
        .list
        .into_iter()
        .map(|wrong| FieldViolation { field: "group".into(), description: wrong.description })
        .collect();
    if violations.is_empty() { Ok(()) } else { Err(Error::invalid(violations)) }
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::GroupInviteFilter>) -> Result<v1::GroupInviteList> {
    let filter = call.request();
    let mut selection = list::select_v1(call.visible(), None, &filter.id);
    if !filter.group.is_empty() {
        roles::only_in(&mut selection, &filter.group);
    }
    if !filter.key_id.is_empty() {
        selection.filters.push(Filter { column: "key_id", value: Value::from(&filter.key_id) });
    }
    let rows = list::everything(tx, call, &group_invites::TABLE, &selection, size).await?;
    let roles = readable_roles(tx, call, rows.iter().map(|row: &InviteRow| row.role.as_str())).await?;
    Ok(v1::GroupInviteList { items: rows.iter().map(|row| stored(call.contract(), row, &roles)).collect() })
}

fn stored(contract: &Contract, row: &InviteRow, roles: &HashMap<String, RoleRow>) -> v1::StoredGroupInvite {
    v1::StoredGroupInvite {
        id: row.uid.as_str().into(),
        expiration: timestamp(row.expires_at),
        key_id: row.key_id.clone(),
        role: Some(role(contract, &row.role, roles)),
        email: row.email.clone(),
        created_at: timestamp(row.created_at),
        single_use: row.single_use,
    }
}

/// What the largest built-in role adds to an item, about.
const ROLE: usize = 4096;

/// Estimates how large an item becomes, before its role is read.
fn size(row: &InviteRow) -> usize {
    row.to_v2().encoded_len() + ROLE
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteGroupInviteRequest>) -> Result<Changed<()>> {
    group_invites::remove(tx, call.require_scope()?).await
}
