//! External group role mappings: anyone who is in a group of an identity provider has a role while they are signed in.

use std::collections::BTreeSet;

use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::external_group_role_mappings_service::{
    BatchDeleteExternalGroupRoleMappings, CreateExternalGroupRoleMapping, DeleteExternalGroupRoleMapping,
    GetExternalGroupRoleMapping, ListExternalGroupRoleMappings,
};
use bowline_core::{Error, FieldViolation, Micros, Result, Uidp};
use bowline_pipeline::{
    Authorized, Change, Changed, Direction, EventBody, Handlers, ResourceSnapshot, SortKey, handler,
};
use bowline_resources::kinds::EXTERNAL_GROUP_ROLE_MAPPING;
use bowline_resources::list::{self, BY_CREATED, BY_UID, Listed, Table, timestamp};
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::{Message, Name};

use super::external_group_role_mappings_v1::down;
use super::{identity_providers, role_bindings, roles};
use crate::access::iam_changed;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetExternalGroupRoleMapping>(handler!(get))
        .read::<ListExternalGroupRoleMappings>(handler!(list))
        .write::<CreateExternalGroupRoleMapping>(handler!(create_v2))
        .write::<DeleteExternalGroupRoleMapping>(handler!(delete))
        .write::<BatchDeleteExternalGroupRoleMappings>(handler!(delete_batch_v2))
}

pub(crate) const TABLE: Table = Table {
    name: "external_group_role_mappings",
    columns: "uid, external_group, role, scope, created_at",
    orders: &[BY_UID, BY_CREATED],
};

/// A mapping as it is stored; its provider is its parent.
#[derive(Clone, Debug)]
pub(crate) struct MappingRow {
    pub(crate) uid: Uidp,
    pub(crate) external_group: String,
    pub(crate) role: String,
    pub(crate) scope: String,
    pub(crate) created_at: Micros,
}

impl Listed for MappingRow {
    fn read(row: &Row<'_>) -> Result<MappingRow> {
        Ok(MappingRow {
            uid: list::stored_uid(row, &TABLE)?,
            external_group: row.text(1)?,
            role: row.text(2)?,
            scope: row.text(3)?,
            created_at: row.int(4)?,
        })
    }

    fn uid(&self) -> &str {
        self.uid.as_str()
    }

    fn sort_key(&self, _column: &str) -> SortKey {
        SortKey::Int(self.created_at)
    }
}

impl MappingRow {
    pub(crate) fn to_v2(&self) -> v2::ExternalGroupRoleMapping {
        v2::ExternalGroupRoleMapping {
            uid: self.uid.as_str().into(),
            identity_provider_uid: self.uid.parent_str().into(),
            external_group_id: self.external_group.clone(),
            role_uid: self.role.clone(),
            scope: self.scope.clone(),
            create_time: timestamp(self.created_at),
        }
    }
}

async fn find(tx: &mut ReadTx, uid: &str) -> Result<Option<MappingRow>> {
    let sql = "SELECT uid, external_group, role, scope, created_at FROM external_group_role_mappings WHERE uid = $1";
    tx.query_opt(sql, &[Value::from(uid)], MappingRow::read).await
}

/// The mapping that the call is about.
pub(crate) async fn require<T>(tx: &mut ReadTx, call: &Authorized<T>) -> Result<MappingRow> {
    let uid = call.require_scope()?.as_str();
    find(tx, uid).await?.ok_or_else(|| Error::not_found(EXTERNAL_GROUP_ROLE_MAPPING, uid))
}

async fn get(
    tx: &mut ReadTx,
    call: &Authorized<v2::GetExternalGroupRoleMappingRequest>,
) -> Result<v2::ExternalGroupRoleMapping> {
    Ok(require(tx, call).await?.to_v2())
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<v2::ListExternalGroupRoleMappingsRequest>,
) -> Result<v2::ListExternalGroupRoleMappingsResponse> {
    let request = call.request();
    let mut selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    if !request.identity_provider_uid.is_empty() {
        roles::only_in(&mut selection, &request.identity_provider_uid);
    }
    let page = list::paging(request);
    let listing = list::page::<_, MappingRow>(tx, call, &TABLE, &selection, &page, (0, Direction::Ascending)).await?;
    Ok(v2::ListExternalGroupRoleMappingsResponse {
        external_group_role_mappings: listing.items.iter().map(MappingRow::to_v2).collect(),
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

/// How a version calls the fields of mappings.
pub(crate) struct Spelling {
    pub(crate) role: &'static str,
    pub(crate) names: &'static str,
}

const V2: Spelling = Spelling { role: "roleUid", names: "names" };

async fn create_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::CreateExternalGroupRoleMappingRequest>,
) -> Result<Changed<v2::ExternalGroupRoleMapping>> {
    let given = call.request().external_group_role_mapping.clone().unwrap_or_default();
    create(tx, call, given, &V2).await
}

/// Creates a mapping of the checked provider.
pub(crate) async fn create<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    given: v2::ExternalGroupRoleMapping,
    spelling: &Spelling,
) -> Result<Changed<v2::ExternalGroupRoleMapping>> {
    let provider = call.require_scope()?;
    identity_providers::require(tx, provider).await?;
    let scope = provider.root_str();
    if !["", scope].contains(&given.scope.as_str()) {
        return Err(Error::invalid_field("scope", "scope must be empty or the provider's organization"));
    }
    // What it gives is given at the organization, whichever group of it the provider belongs to.
    call.require_all(scope, call.needed())?;
    let capabilities = role_bindings::require_role(tx, call, scope, &given.role_uid, spelling.role).await?;
    call.require_all(scope, &capabilities)?;
    let row = MappingRow {
        uid: call.new_child(provider),
        external_group: given.external_group_id,
        role: given.role_uid,
        scope: scope.into(),
        created_at: call.now(),
    };
    insert(tx, &row).await?;
    iam_changed(tx).await?;
    let mapping = row.to_v2();
    let event = v1::CreateExternalGroupRoleMappingRequest {
        parent_id: provider.as_str().into(),
        mapping: Some(down(mapping.clone())),
    };
    let mut changed = Changed::one(EXTERNAL_GROUP_ROLE_MAPPING, &row.uid, None, Some(&row.to_v2()), mapping);
    changed.event = Some(event_of(provider, row.uid.as_str(), &event));
    Ok(changed)
}

/// The event belongs to the provider's group: subscriptions are made there.
fn event_of<E: Message + Name>(provider: &Uidp, subject: &str, body: &E) -> EventBody {
    EventBody {
        subject: subject.into(),
        group: provider.parent_str().into(),
        body: ResourceSnapshot::of(body),
        extensions: vec![("identityprovider", provider.as_str().into())],
    }
}

async fn insert(tx: &mut WriteTx, row: &MappingRow) -> Result<()> {
    let sql = "INSERT INTO external_group_role_mappings (uid, parent, org, external_group, role, scope, created_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.uid.parent_str()),
        Value::from(row.uid.root_str()),
        Value::from(&row.external_group),
        Value::from(&row.role),
        Value::from(&row.scope),
        Value::from(row.created_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        let name = format!("{} to {}", row.external_group, row.role);
        return Err(Error::already_exists(EXTERNAL_GROUP_ROLE_MAPPING, name));
    }
    list::count(tx, &TABLE, &row.uid, 1).await
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v2::DeleteExternalGroupRoleMappingRequest>) -> Result<Changed<()>> {
    remove(tx, call).await
}

/// Deletes a mapping: who has its role by it has it no longer.
pub(crate) async fn remove<T>(tx: &mut WriteTx, call: &Authorized<T>) -> Result<Changed<()>> {
    let before = require(tx, call).await?;
    let change = take(tx, &before).await?;
    iam_changed(tx).await?;
    let mut changed = Changed::many(vec![change], ());
    if let Some(provider) = before.uid.parent() {
        let event = v1::DeleteExternalGroupRoleMappingRequest { id: before.uid.as_str().into() };
        changed.event = Some(event_of(&provider, before.uid.as_str(), &event));
    }
    Ok(changed)
}

/// Deletes a mapping that may be gone already.
pub(crate) async fn remove_if_there(tx: &mut WriteTx, uid: &Uidp) -> Result<Vec<Change>> {
    let Some(before) = find(tx, uid.as_str()).await? else { return Ok(Vec::new()) };
    let change = take(tx, &before).await?;
    iam_changed(tx).await?;
    Ok(vec![change])
}

/// Deletes and counts one row.
async fn take(tx: &mut WriteTx, row: &MappingRow) -> Result<Change> {
    let sql = "DELETE FROM external_group_role_mappings WHERE uid = $1";
    tx.execute(sql, &[Value::from(row.uid.as_str())]).await?;
    list::count(tx, &TABLE, &row.uid, -1).await?;
    let before = Some(ResourceSnapshot::of(&row.to_v2()));
    Ok(Change { kind: EXTERNAL_GROUP_ROLE_MAPPING, uid: row.uid.as_str().into(), before, after: None })
}

async fn delete_batch_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::BatchDeleteExternalGroupRoleMappingsRequest>,
) -> Result<Changed<v2::BatchDeleteExternalGroupRoleMappingsResponse>> {
    let parent = call.require_scope()?.as_str().to_owned();
    let changed = remove_batch(tx, call, &call.request().names, &V2).await?;
    Ok(changed.map(|external_group_role_mappings| v2::BatchDeleteExternalGroupRoleMappingsResponse {
        parent,
        external_group_role_mappings,
    }))
}

/// Deletes those of the checked provider's mappings that exist, and returns them, as they were, in the order
/// of the request.
pub(crate) async fn remove_batch<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    names: &[String],
    spelling: &Spelling,
) -> Result<Changed<Vec<v2::ExternalGroupRoleMapping>>> {
    let provider = call.require_scope()?;
    require_all_below(provider, names, spelling)?;
    identity_providers::require(tx, provider).await?;
    let (mut changes, mut deleted, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for name in names.iter().filter(|name| seen.insert(name.as_str())) {
        let Some(row) = find(tx, name).await? else { continue };
        changes.push(take(tx, &row).await?);
        deleted.push(row.to_v2());
    }
    if deleted.is_empty() {
        return Ok(Changed::nothing(deleted));
    }
    iam_changed(tx).await?;
    let event = v1::BatchDeleteExternalGroupRoleMappingsRequest {
        parent_id: provider.as_str().into(),
        ids: deleted.iter().map(|mapping| mapping.uid.clone()).collect(),
    };
    let mut changed = Changed::many(changes, deleted);
    changed.event = Some(event_of(provider, provider.as_str(), &event));
    Ok(changed)
}

fn require_all_below(provider: &Uidp, names: &[String], spelling: &Spelling) -> Result<()> {
    let is_below = |name: &str| Uidp::parse(name).is_ok_and(|uid| uid.parent_str() == provider.as_str());
    let wrong = names.iter().enumerate().filter(|(_, name)| !is_below(name));
    let violations: Vec<_> = wrong
        .map(|(at, _)| FieldViolation {
            field: format!("{}[{at}]", spelling.names),
            description: "must be the UIDP of a mapping of the parent".into(),
        })
        .collect();
    if violations.is_empty() { Ok(()) } else { Err(Error::invalid(violations)) }
}

/// Deletes every mapping of a provider that goes.
pub(crate) async fn delete_of_provider(tx: &mut WriteTx, provider: &Uidp) -> Result<Vec<Change>> {
    let sql = "SELECT uid, external_group, role, scope, created_at FROM external_group_role_mappings
               WHERE parent = $1 ORDER BY uid";
    let rows = tx.query(sql, &[Value::from(provider.as_str())], MappingRow::read).await?;
    let mut changes = Vec::with_capacity(rows.len());
    for row in &rows {
        changes.push(take(tx, row).await?);
    }
    Ok(changes)
}
