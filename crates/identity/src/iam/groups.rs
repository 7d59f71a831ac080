//! Groups: the nodes of the hierarchy. A root group is an organization.

mod row;

use std::sync::Arc;

use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::groups_service::{CreateGroup, DeleteGroup, GetGroup, ListGroups, UpdateGroup};
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Mask, OrganizationCreators, handler, require_terms};
use bowline_resources::groups::GroupContents;
use bowline_resources::kinds::GROUP;
use bowline_resources::list::{self, Filter, Listed};
use bowline_store::{ReadTx, Value, WriteTx, tables};

pub(crate) use row::TABLE;
pub use row::{GroupInput, GroupRow};

use super::role_bindings;

pub(crate) fn register(handlers: Handlers, domains: &Arc<[GroupContents]>) -> Handlers {
    let domains = domains.clone();
    handlers
        .read::<GetGroup>(handler!(get))
        .read::<ListGroups>(handler!(list))
        .write::<CreateGroup>(handler!(create_v2))
        .write::<UpdateGroup>(handler!(update_v2))
        .write::<DeleteGroup>(move |tx, call| {
            let domains = domains.clone();
            Box::pin(async move { remove(tx, call.require_scope()?, &domains).await })
        })
}

/// The group of this UIDP.
pub async fn find(tx: &mut ReadTx, uid: &str) -> Result<Option<GroupRow>> {
    let sql = "SELECT uid, parent, name, description, verified, kind, status, resource_limits, created_at, updated_at
               FROM groups WHERE uid = $1";
    tx.query_opt(sql, &[Value::from(uid)], GroupRow::read).await
}

/// The verified organization of this name.
pub async fn find_verified(tx: &mut ReadTx, name: &str) -> Result<Option<GroupRow>> {
    let sql = "SELECT uid, parent, name, description, verified, kind, status, resource_limits, created_at, updated_at
               FROM groups WHERE name = $1 AND parent = '' AND verified";
    tx.query_opt(sql, &[Value::from(name)], GroupRow::read).await
}

async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<GroupRow> {
    find(tx, uid.as_str()).await?.ok_or_else(|| Error::not_found(GROUP, uid.as_str()))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetGroupRequest>) -> Result<v2::Group> {
    Ok(require(tx, call.require_scope()?).await?.to_v2())
}

async fn list(tx: &mut ReadTx, call: &Authorized<v2::ListGroupsRequest>) -> Result<v2::ListGroupsResponse> {
    let request = call.request();
    let mut selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    if !request.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&request.name) });
    }
    let page = list::paging(request);
    let listing = list::page::<_, GroupRow>(tx, call, &TABLE, &selection, &page, (0, Direction::Ascending)).await?;
    Ok(v2::ListGroupsResponse {
        groups: listing.items.iter().map(GroupRow::to_v2).collect(),
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

fn input(group: v2::Group) -> GroupInput {
    let v2::Group {
        name,
        description,
        verified,
        kind,
        // Of the server and the operator alone.
        uid: _,
        resource_limits: _,
        create_time: _,
        update_time: _,
        status: _,
    } = group;
    GroupInput { name, description, verified, kind, resource_limits: None, status: None }
}

async fn create_v2(tx: &mut WriteTx, call: &Authorized<v2::CreateGroupRequest>) -> Result<Changed<v2::Group>> {
    let request = call.request();
    let input = input(request.group.clone().unwrap_or_default());
    Ok(create(tx, call, &request.parent, input).await?.map(|row| row.to_v2()))
}

/// Levels that groups nest below their organization; what lives in them stands deeper still.
const DEEPEST_GROUP: usize = bowline_core::MAX_LEVELS / 2;

/// Creates a group; without a parent, an organization.
pub async fn create<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    parent: &str,
    input: GroupInput,
) -> Result<Changed<GroupRow>> {
    let above = if parent.is_empty() { None } else { Some(parent_group(tx, call, parent).await?) };
    if let Some(above) = &above {
        // The method has no scope, so that the pipeline cannot check the terms.
        require_terms(tx, call, &above.uid).await?;
    }
    if above.is_none() {
        require_organization_creator(call)?;
    }
    if let Some(above) = &above {
        require_depth(&above.uid)?;
    }
    let uid = above.as_ref().map_or_else(|| call.new_root(), |above| call.new_child(&above.uid));
    let by_operator = call.is_operator();
    let row = GroupRow {
        uid,
        verified: by_operator && above.is_none() && input.verified,
        kind: above.as_ref().map_or(if by_operator { input.kind } else { 0 }, |above| above.kind),
        status: input.status.filter(|_| by_operator).unwrap_or(v2::OrgStatus::Ready as i32),
        resource_limits: input.resource_limits.filter(|_| by_operator).unwrap_or_default(),
        name: input.name,
        description: input.description,
        created_at: call.now(),
        updated_at: call.now(),
    };
    if row.verified && row.kind == 0 {
        return Err(Error::invalid_field("kind", "kind is required for a verified organization"));
    }
    insert(tx, &row).await?;
    let mut bindings = Vec::new();
    if above.is_none() && !by_operator {
        bindings.push(role_bindings::bind_owner(tx, call, &row.uid).await?);
    }
    let event = v1::CreateGroupRequest { parent: row.uid.parent_str().into(), group: Some(row.to_v1()) };
    Ok(Changed::one(GROUP, &row.uid, None, Some(&row.to_v2()), row.clone())
        .along(bindings)
        .with_event(&row.uid, &event))
}

/// Refuses a parent below which groups do not nest any more.
pub fn require_depth(parent: &Uidp) -> Result<()> {
    if parent.levels() < DEEPEST_GROUP {
        return Ok(());
    }
    let description = format!("groups nest at most {DEEPEST_GROUP} levels below their organization");
    Err(Error::invalid_field("parent", description))
}

/// The parent of a new group: a UIDP, or the name of a verified organization that the caller may list.
async fn parent_group<T>(tx: &mut WriteTx, call: &Authorized<T>, parent: &str) -> Result<GroupRow> {
    let create = list::capability(call, Capability::CapIamGroupsCreate);
    if Uidp::is_valid(parent) {
        call.require_all(parent, &create)?;
        return find(tx, parent).await?.ok_or_else(|| Error::not_found(GROUP, parent));
    }
    let named = find_verified(tx, parent).await?;
    let Some(group) = named.filter(|group| call.holds(group.uid.as_str(), Capability::CapIamGroupsList)) else {
        return Err(Error::invalid_field("parent", format!("parent {}", bowline_core::UidpError)));
    };
    call.require_all(group.uid.as_str(), &create)?;
    Ok(group)
}

fn require_organization_creator<T>(call: &Authorized<T>) -> Result<()> {
    let narrowed = call.principal().token().is_some_and(|token| token.narrowing.is_narrow());
    if narrowed {
        return Err(Error::permission_denied("Permission denied: a narrowed token cannot create an organization"));
    }
    match call.settings().organizations {
        _ if call.is_operator() => Ok(()),
        OrganizationCreators::Anyone => Ok(()),
        OrganizationCreators::Operator => Err(Error::permission_denied(
            "Permission denied: on this server only the operator creates organizations: ask the operator for one, or name a parent to create a group inside one",
        )),
    }
}

async fn insert(tx: &mut WriteTx, row: &GroupRow) -> Result<()> {
    let sql = "INSERT INTO groups (uid, parent, org, name, description, verified, kind, status, resource_limits, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";
    let limits = serde_json::to_string(&row.resource_limits).map_err(Error::internal)?;
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.uid.parent_str()),
        Value::from(row.uid.root_str()),
        Value::from(&row.name),
        Value::from(&row.description),
        Value::Bool(row.verified),
        Value::Int(row.kind.into()),
        Value::Int(row.status.into()),
        Value::from(&limits),
        Value::Int(row.created_at),
        Value::Int(row.updated_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Err(Error::already_exists(GROUP, &row.name));
    }
    list::count(tx, &TABLE, &row.uid, 1).await
}

async fn update_v2(tx: &mut WriteTx, call: &Authorized<v2::UpdateGroupRequest>) -> Result<Changed<v2::Group>> {
    let input = input(call.request().group.clone().unwrap_or_default());
    Ok(update(tx, call, &call.mask(), &input).await?.map(|row| row.to_v2()))
}

/// Changes what the mask covers. What only the operator sets stays as it is for everyone else.
pub(crate) async fn update<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    mask: &Mask,
    input: &GroupInput,
) -> Result<Changed<GroupRow>> {
    let before = require(tx, call.require_scope()?).await?;
    let mut after = before.clone();
    if mask.covers("name") {
        after.name.clone_from(&input.name);
    }
    if mask.covers("description") {
        after.description.clone_from(&input.description);
    }
    if call.is_operator() {
        apply_operator_fields(&mut after, mask, input);
    }
    if after.name != before.name && before.verified && !call.is_operator() {
        return Err(Error::precondition(
            "ORGANIZATION_VERIFIED",
            before.uid.as_str(),
            "a verified organization keeps its name; ask the operator to rename it",
        ));
    }
    if after.verified && after.kind == 0 {
        return Err(Error::invalid_field("kind", "kind is required for a verified organization"));
    }
    after.updated_at = call.now();
    save(tx, &before, &after).await?;
    let event = after.to_v1();
    Ok(Changed::one(GROUP, &after.uid, Some(&before.to_v2()), Some(&after.to_v2()), after.clone())
        .with_event(&after.uid, &event))
}

fn apply_operator_fields(after: &mut GroupRow, mask: &Mask, input: &GroupInput) {
    if after.uid.is_root() {
        if mask.covers("verified") {
            after.verified = input.verified;
        }
        // A replacement that leaves the kind out does not take it away.
        if mask.names("kind") || (mask.is_whole() && input.kind != 0) {
            after.kind = input.kind;
        }
    }
    if let Some(limits) = &input.resource_limits {
        after.resource_limits.clone_from(limits);
    }
    if let Some(status) = input.status.filter(|status| *status != 0) {
        after.status = status;
    }
}

async fn save(tx: &mut WriteTx, before: &GroupRow, after: &GroupRow) -> Result<()> {
    if after.name != before.name {
        require_name_free(tx, after).await?;
    }
    let sql = "UPDATE groups SET name = $2, description = $3, verified = $4, kind = $5, status = $6, resource_limits = $7, updated_at = $8
               WHERE uid = $1";
    let limits = serde_json::to_string(&after.resource_limits).map_err(Error::internal)?;
    let params = [
        Value::from(after.uid.as_str()),
        Value::from(&after.name),
        Value::from(&after.description),
        Value::Bool(after.verified),
        Value::Int(after.kind.into()),
        Value::Int(after.status.into()),
        Value::from(&limits),
        Value::Int(after.updated_at),
    ];
    tx.execute(sql, &params).await.map_err(|error| match error.kind() {
        bowline_store::ErrorKind::UniqueViolation => Error::already_exists(GROUP, &after.name),
        _ => error.into(),
    })?;
    if after.kind != before.kind {
        // Groups below have the kind of their organization.
        let sql = "UPDATE groups SET kind = $2 WHERE org = $1 AND parent <> ''";
        tx.execute(sql, &[Value::from(after.uid.root_str()), Value::Int(after.kind.into())]).await?;
    }
    Ok(())
}

async fn require_name_free(tx: &mut WriteTx, group: &GroupRow) -> Result<()> {
    if group.uid.is_root() {
        return Ok(());
    }
    match find_child(tx, group.uid.parent_str(), &group.name).await? {
        Some(_) => Err(Error::already_exists(GROUP, &group.name)),
        None => Ok(()),
    }
}

/// UIDP of the group of this name in another group.
pub async fn find_child(tx: &mut ReadTx, parent: &str, name: &str) -> Result<Option<String>> {
    let by_name = tx.index_hint("groups_name");
    // The index leaves out organizations, which have no parent.
    let sql = format!("SELECT uid FROM groups {by_name} WHERE parent = $1 AND name = $2 AND parent <> ''");
    tx.query_opt(&sql, &[Value::from(parent), Value::from(name)], |row| row.text(0).map_err(Error::from)).await
}

/// Deletes a group that nothing lives in; what the domains hold of it besides goes with it.
pub(crate) async fn remove(tx: &mut WriteTx, uid: &Uidp, domains: &[GroupContents]) -> Result<Changed<()>> {
    let before = require(tx, uid).await?;
    for domain in domains {
        if let Some(kind) = tables::find_restricting(tx, domain.tables, TABLE.name, uid.as_str()).await? {
            let description = format!("cannot delete group with child {kind}");
            return Err(Error::precondition("RESOURCE_NOT_EMPTY", uid.as_str(), description));
        }
    }
    let mut along = Vec::new();
    for domain in domains {
        if let Some(delete) = domain.delete {
            along.extend(delete(tx, uid).await?);
        }
        tables::delete_rows(tx, domain.tables, TABLE.name, uid.as_str()).await?;
    }
    tx.execute("DELETE FROM groups WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    list::count(tx, &TABLE, uid, -1).await?;
    let event = v1::DeleteGroupRequest { id: uid.as_str().into() };
    Ok(Changed::one(GROUP, uid, Some(&before.to_v2()), None, ()).along(along).with_event(uid, &event))
}
