//! Role bindings: an identity has a role at a group and everywhere below it.

mod deletes;
mod give;
mod hydrate;
mod validate;

use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::role_bindings_service::{
    BatchCreateRoleBindings, CreateRoleBinding, DeleteRoleBinding, GetRoleBinding, ListRoleBindings, UpdateRoleBinding,
};
use bowline_core::{Error, FieldViolation, Micros, Result, Uidp};
use bowline_pipeline::{
    Authorized, Change, Changed, Direction, EventBody, Handlers, Mask, ResourceSnapshot, SortKey, handler,
};
use bowline_resources::kinds::ROLE_BINDING;
use bowline_resources::list::{self, BY_CREATED, BY_UID, Filter, Listed, Table, timestamp};
use bowline_resources::references;
use bowline_store::{ErrorKind, ReadTx, Row, Value, WriteTx};

pub(crate) use deletes::{delete_of_group, delete_of_identity, delete_of_identity_in};
pub(crate) use give::give;
pub(crate) use hydrate::{References, may_read_role, readable_roles, reads_identity_at};
pub(crate) use validate::{Spelling, promise, require_role};

use super::{owners, roles};
use crate::access::iam_changed;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetRoleBinding>(handler!(get))
        .read::<ListRoleBindings>(handler!(list))
        .write::<CreateRoleBinding>(handler!(create_v2))
        .write::<BatchCreateRoleBindings>(handler!(create_batch_v2))
        .write::<UpdateRoleBinding>(handler!(update_v2))
        .write::<DeleteRoleBinding>(handler!(delete))
}

pub(crate) const TABLE: Table =
    Table { name: "role_bindings", columns: "uid, identity, role, created_at", orders: &[BY_UID, BY_CREATED] };

/// A binding as it is stored; its group is its parent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BindingRow {
    pub(crate) uid: Uidp,
    pub(crate) identity: String,
    pub(crate) role: String,
    pub(crate) created_at: Micros,
}

impl Listed for BindingRow {
    fn read(row: &Row<'_>) -> Result<BindingRow> {
        Ok(BindingRow {
            uid: list::stored_uid(row, &TABLE)?,
            identity: row.text(1)?,
            role: row.text(2)?,
            created_at: row.int(3)?,
        })
    }

    fn uid(&self) -> &str {
        self.uid.as_str()
    }

    fn sort_key(&self, _column: &str) -> SortKey {
        SortKey::Int(self.created_at)
    }
}

impl BindingRow {
    pub(crate) fn group(&self) -> &str {
        self.uid.parent_str()
    }

    /// The binding with nothing but UIDPs in its references: what the audit log keeps.
    pub(crate) fn to_v2(&self) -> v2::RoleBinding {
        v2::RoleBinding {
            uid: self.uid.as_str().into(),
            identity: Some(v2::RoleBindingIdentity { uid: self.identity.clone(), ..Default::default() }),
            group: Some(v2::RoleBindingGroup { uid: self.group().into(), ..Default::default() }),
            role: Some(v2::RoleBindingRole { uid: self.role.clone(), ..Default::default() }),
            create_time: timestamp(self.created_at),
            identity_uid: self.identity.clone(),
            role_uid: self.role.clone(),
        }
    }

    #[expect(deprecated, reason = "clients of the first version still read the group")]
    pub(crate) fn to_v1(&self) -> v1::RoleBinding {
        v1::RoleBinding {
            id: self.uid.as_str().into(),
            identity: self.identity.clone(),
            group: self.group().into(),
            role: self.role.clone(),
        }
    }
}

/// What a caller may say of a binding.
#[derive(Clone, Debug, Default)]
pub(crate) struct BindingInput {
    pub(crate) identity: String,
    pub(crate) role: String,
}

/// The binding of this UIDP.
pub(crate) async fn find(tx: &mut ReadTx, uid: &Uidp) -> Result<Option<BindingRow>> {
    let sql = "SELECT uid, identity, role, created_at FROM role_bindings WHERE uid = $1";
    tx.query_opt(sql, &[Value::from(uid.as_str())], BindingRow::read).await
}

async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<BindingRow> {
    find(tx, uid).await?.ok_or_else(|| Error::not_found(ROLE_BINDING, uid.as_str()))
}

/// The bindings with their references filled in as far as the caller may read them.
async fn filled<T>(tx: &mut ReadTx, call: &Authorized<T>, rows: &[BindingRow]) -> Result<Vec<v2::RoleBinding>> {
    let references = References::load(tx, call, rows).await?;
    Ok(rows.iter().map(|row| references.to_v2(call, row)).collect())
}

/// Returns the one binding, filled in.
async fn answer<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    changed: Changed<BindingRow>,
) -> Result<Changed<v2::RoleBinding>> {
    let references = References::load(tx, call, std::slice::from_ref(&changed.response)).await?;
    Ok(changed.map(|row| references.to_v2(call, &row)))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetRoleBindingRequest>) -> Result<v2::RoleBinding> {
    let row = require(tx, call.require_scope()?).await?;
    let references = References::load(tx, call, std::slice::from_ref(&row)).await?;
    Ok(references.to_v2(call, &row))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v2::ListRoleBindingsRequest>) -> Result<v2::ListRoleBindingsResponse> {
    let request = call.request();
    let mut selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    if !request.group.is_empty() {
        roles::only_in(&mut selection, &request.group);
    }
    for (column, value) in [("identity", &request.identity), ("role", &request.role)] {
        if !value.is_empty() {
            selection.filters.push(Filter { column, value: Value::from(value) });
        }
    }
    let page = list::paging(request);
    let listing = list::page::<_, BindingRow>(tx, call, &TABLE, &selection, &page, (0, Direction::Ascending)).await?;
    Ok(v2::ListRoleBindingsResponse {
        role_bindings: filled(tx, call, &listing.items).await?,
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

async fn create_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::CreateRoleBindingRequest>,
) -> Result<Changed<v2::RoleBinding>> {
    let binding = call.request().role_binding.clone().unwrap_or_default();
    let input = BindingInput { identity: binding.identity_uid, role: binding.role_uid };
    let changed = create(tx, call, input, &Spelling::V2).await?;
    answer(tx, call, changed).await
}

/// Creates a binding in the group that was checked.
pub(crate) async fn create<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    input: BindingInput,
    spelling: &Spelling,
) -> Result<Changed<BindingRow>> {
    let group = references::require_scope(tx, call).await?;
    validate::grants(tx, call, &group, &[(input.clone(), spelling.clone())]).await?;
    let row = insert_new(tx, call, &group, input).await?;
    iam_changed(tx).await?;
    let event = v1::CreateRoleBindingRequest { parent: group.as_str().into(), role_binding: Some(row.to_v1()) };
    Ok(Changed::one(ROLE_BINDING, &row.uid, None, Some(&row.to_v2()), row.clone()).with_event(&row.uid, &event))
}

async fn insert_new<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    group: &Uidp,
    input: BindingInput,
) -> Result<BindingRow> {
    let row =
        BindingRow { uid: call.new_child(group), identity: input.identity, role: input.role, created_at: call.now() };
    if insert(tx, &row).await? { Ok(row) } else { Err(taken(&row)) }
}

fn taken(row: &BindingRow) -> Error {
    Error::already_exists(ROLE_BINDING, format!("{} of {}", row.role, row.identity))
}

/// Inserts and counts a binding; false if the identity has the role at the group already.
async fn insert(tx: &mut WriteTx, row: &BindingRow) -> Result<bool> {
    let sql = "INSERT INTO role_bindings (uid, parent, org, identity, role, created_at)
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.group()),
        Value::from(row.uid.root_str()),
        Value::from(&row.identity),
        Value::from(&row.role),
        Value::Int(row.created_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Ok(false);
    }
    list::count(tx, &TABLE, &row.uid, 1).await?;
    Ok(true)
}

async fn create_batch_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::BatchCreateRoleBindingsRequest>,
) -> Result<Changed<v2::BatchCreateRoleBindingsResponse>> {
    let request = call.request();
    let scope = call.require_scope()?.as_str();
    let mut violations = Vec::new();
    let mut inputs = Vec::new();
    for (i, entry) in request.requests.iter().enumerate() {
        let binding = entry.role_binding.clone().unwrap_or_default();
        let mut refuse = |field: String, description: &str| {
            violations.push(FieldViolation { field, description: description.into() });
        };
        if ![scope, &request.parent, ""].contains(&entry.parent.as_str()) {
            refuse(format!("requests[{i}].parent"), "parent must be empty or that of the batch");
        }
        let has_role = !request.role_uid.is_empty() && !binding.role_uid.is_empty();
        if has_role && binding.role_uid != request.role_uid {
            refuse(format!("requests[{i}].roleBinding.roleUid"), "roleUid must be empty or that of the batch");
        }
        let role = if binding.role_uid.is_empty() { request.role_uid.clone() } else { binding.role_uid };
        let spelling = Spelling::V2.within(format!("requests[{i}].roleBinding."));
        inputs.push((BindingInput { identity: binding.identity_uid, role }, spelling));
    }
    if !violations.is_empty() {
        return Err(Error::invalid(violations));
    }
    let changed = create_batch(tx, call, "requests", inputs).await?;
    let role_bindings = filled(tx, call, &changed.response).await?;
    Ok(changed.map(|_| v2::BatchCreateRoleBindingsResponse { role_bindings }))
}

/// Maximum number of bindings of one batch.
const BATCH: usize = 25;

/// Creates all of these bindings or none, in order; `field` is what the caller calls the list.
pub(crate) async fn create_batch<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    field: &str,
    inputs: Vec<(BindingInput, Spelling)>,
) -> Result<Changed<Vec<BindingRow>>> {
    if inputs.is_empty() || inputs.len() > BATCH {
        return Err(Error::invalid_field(field, format!("{field} needs 1 to {BATCH} elements")));
    }
    let group = references::require_scope(tx, call).await?;
    validate::grants(tx, call, &group, &inputs).await?;
    let mut rows = Vec::with_capacity(inputs.len());
    for (input, _) in inputs {
        rows.push(insert_new(tx, call, &group, input).await?);
    }
    iam_changed(tx).await?;
    let created = |row: &BindingRow| Change {
        kind: ROLE_BINDING,
        uid: row.uid.as_str().into(),
        before: None,
        after: Some(ResourceSnapshot::of(&row.to_v2())),
    };
    let event = v1::CreateRoleBindingBatchRequest {
        parent: group.as_str().into(),
        role_bindings: rows.iter().map(BindingRow::to_v1).collect(),
    };
    let mut changed = Changed::many(rows.iter().map(created).collect(), rows);
    // The event is about the group itself, so that its subscriptions see it like those of single bindings.
    changed.event = Some(EventBody {
        subject: group.as_str().into(),
        group: group.as_str().into(),
        body: ResourceSnapshot::of(&event),
        extensions: Vec::new(),
    });
    Ok(changed)
}

async fn update_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::UpdateRoleBindingRequest>,
) -> Result<Changed<v2::RoleBinding>> {
    let binding = call.request().role_binding.clone().unwrap_or_default();
    let input = BindingInput { identity: binding.identity_uid, role: binding.role_uid };
    let changed = update(tx, call, &call.mask(), input, &Spelling::V2).await?;
    answer(tx, call, changed).await
}

/// Gives the binding another identity or role, or both: checked like a new one.
pub(crate) async fn update<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    mask: &Mask,
    input: BindingInput,
    spelling: &Spelling,
) -> Result<Changed<BindingRow>> {
    let before = require(tx, call.require_scope()?).await?;
    let mut after = before.clone();
    if mask.covers("identity_uid") {
        after.identity = input.identity;
    }
    if mask.covers("role_uid") {
        after.role = input.role;
    }
    if after == before {
        return Ok(Changed::nothing(before));
    }
    let group = after.uid.parent().ok_or_else(|| Error::internal("a role binding is stored without a group"))?;
    let wanted = BindingInput { identity: after.identity.clone(), role: after.role.clone() };
    validate::grants(tx, call, &group, &[(wanted, spelling.clone())]).await?;
    save(tx, &after).await?;
    iam_changed(tx).await?;
    let event = after.to_v1();
    Ok(Changed::one(ROLE_BINDING, &after.uid, Some(&before.to_v2()), Some(&after.to_v2()), after.clone())
        .with_event(&after.uid, &event))
}

async fn save(tx: &mut WriteTx, row: &BindingRow) -> Result<()> {
    let sql = "SELECT uid FROM role_bindings WHERE identity = $1 AND role = $2 AND parent = $3";
    let params = [Value::from(&row.identity), Value::from(&row.role), Value::from(row.group())];
    if tx.query_opt(sql, &params, |found| found.text(0).map_err(Error::from)).await?.is_some() {
        return Err(taken(row));
    }
    // A default role made the binding as it was; from now on it is the administrator's.
    let sql = "UPDATE default_roles_given SET binding = '' WHERE binding = $1";
    tx.execute(sql, &[Value::from(row.uid.as_str())]).await?;
    let sql = "UPDATE role_bindings SET identity = $2, role = $3 WHERE uid = $1";
    let params = [Value::from(row.uid.as_str()), Value::from(&row.identity), Value::from(&row.role)];
    // Another transaction may have made the same binding since.
    tx.execute(sql, &params).await.map_err(|error| match error.kind() {
        ErrorKind::UniqueViolation => taken(row),
        _ => error.into(),
    })?;
    Ok(())
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v2::DeleteRoleBindingRequest>) -> Result<Changed<()>> {
    remove(tx, call.require_scope()?).await
}

/// Deletes a binding; succeeds if there is none.
pub(crate) async fn remove(tx: &mut WriteTx, uid: &Uidp) -> Result<Changed<()>> {
    let Some(before) = find(tx, uid).await? else {
        return Ok(Changed::nothing(()));
    };
    tx.execute("DELETE FROM role_bindings WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    list::count(tx, &TABLE, uid, -1).await?;
    iam_changed(tx).await?;
    let event = v1::DeleteRoleBindingRequest { id: uid.as_str().into() };
    Ok(Changed::one(ROLE_BINDING, uid, Some(&before.to_v2()), None, ()).with_event(uid, &event))
}

/// Makes the caller the owner of a new organization.
pub(crate) async fn bind_owner<T>(tx: &mut WriteTx, call: &Authorized<T>, org: &Uidp) -> Result<Change> {
    let owner = owners::role(call.contract())?.uid.clone();
    let input = BindingInput { identity: call.principal().subject().into(), role: owner };
    let row = insert_new(tx, call, org, input).await?;
    iam_changed(tx).await?;
    Ok(Change {
        kind: ROLE_BINDING,
        uid: row.uid.as_str().into(),
        before: None,
        after: Some(ResourceSnapshot::of(&row.to_v2())),
    })
}
