//! Roles: named sets of capabilities. Built-in ones stand at the root and come with the contract,
//! custom ones live in a group.

mod built_in;
mod uses;

use bowline_contract::Contract;
use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::roles_service::{CreateRole, DeleteRole, GetRole, ListRoles, UpdateRole};
use bowline_core::{CapabilitySet, Error, Micros, Result, UidRange, Uidp, intersect};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Mask, SortKey, handler};

use crate::access::iam_changed;
use bowline_resources::kinds::ROLE;
use bowline_resources::list::{self, BY_CREATED, BY_NAME, BY_UID, Filter, Listed, Selection, Table, timestamp};
use bowline_resources::references;
use bowline_store::{ErrorKind, ReadTx, Row, Value, WriteTx};

pub use built_in::seed_built_in_roles;
pub(crate) use built_in::{add_built_in, built_in_ranges};
pub use uses::{ROLE_COLUMNS, RoleColumn};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetRole>(handler!(get))
        .read::<ListRoles>(handler!(list))
        .write::<CreateRole>(handler!(create_v2))
        .write::<UpdateRole>(handler!(update_v2))
        .write::<DeleteRole>(handler!(delete))
}

pub(crate) const TABLE: Table = Table {
    name: "roles",
    columns: "uid, name, description, capabilities, created_at, updated_at",
    orders: &[BY_UID, BY_NAME, BY_CREATED],
};

/// A role as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct RoleRow {
    pub(crate) uid: Uidp,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) capabilities: CapabilitySet,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
}

impl Listed for RoleRow {
    fn read(row: &Row<'_>) -> Result<RoleRow> {
        let uid = row.text(0)?;
        let damaged = |what: &str| Error::internal(format!("the role {uid} has a damaged {what}"));
        Ok(RoleRow {
            uid: Uidp::parse(&uid).map_err(|_| damaged("uid"))?,
            name: row.text(1)?,
            description: row.text(2)?,
            capabilities: CapabilitySet::from_bytes(&row.bytes(3)?).ok_or_else(|| damaged("capability set"))?,
            created_at: row.int(4)?,
            updated_at: row.int(5)?,
        })
    }

    fn uid(&self) -> &str {
        self.uid.as_str()
    }

    fn sort_key(&self, column: &str) -> SortKey {
        match column {
            "name" => SortKey::Text(self.name.clone()),
            _ => SortKey::Int(self.created_at),
        }
    }
}

impl RoleRow {
    pub(crate) fn is_built_in(&self) -> bool {
        self.uid.is_root()
    }

    pub(crate) fn to_v2(&self, contract: &Contract) -> v2::Role {
        v2::Role {
            uid: self.uid.as_str().into(),
            name: self.name.clone(),
            description: self.description.clone(),
            capabilities: contract.capabilities().numbers(&self.capabilities),
            create_time: timestamp(self.created_at),
            update_time: timestamp(self.updated_at),
        }
    }

    pub(crate) fn to_v1(&self, contract: &Contract) -> v1::Role {
        let mut names = contract.capabilities().names(&self.capabilities);
        names.sort_unstable();
        v1::Role {
            id: self.uid.as_str().into(),
            name: self.name.clone(),
            description: self.description.clone(),
            capabilities: names.into_iter().map(String::from).collect(),
        }
    }
}

/// What a caller may say of a role.
#[derive(Clone, Debug)]
pub(crate) struct RoleInput {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Absent where an update leaves them as they are.
    pub(crate) capabilities: Option<CapabilitySet>,
}

/// The role of this UIDP.
pub(crate) async fn find(tx: &mut ReadTx, uid: &str) -> Result<Option<RoleRow>> {
    let sql = "SELECT uid, name, description, capabilities, created_at, updated_at FROM roles WHERE uid = $1";
    tx.query_opt(sql, &[Value::from(uid)], RoleRow::read).await
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetRoleRequest>) -> Result<v2::Role> {
    let uid = &call.request().uid;
    let scope = Uidp::parse(uid).map_err(|error| Error::invalid_field("uid", format!("uid {error}")))?;
    // The contract has no scope for this method: everyone reads the built-in roles.
    if !built_in::is_built_in(call.contract(), uid) {
        call.require_all(scope.as_str(), call.needed())?;
    }
    let row = find(tx, uid).await?.ok_or_else(|| Error::not_found(ROLE, uid))?;
    Ok(row.to_v2(call.contract()))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v2::ListRolesRequest>) -> Result<v2::ListRolesResponse> {
    let request = call.request();
    let mut selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    add_built_in(&mut selection, call.contract(), request.uidp.as_ref(), "");
    if !request.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&request.name) });
    }
    let page = list::paging(request);
    let listing = list::page::<_, RoleRow>(tx, call, &TABLE, &selection, &page, (0, Direction::Ascending)).await?;
    Ok(v2::ListRolesResponse {
        roles: listing.items.iter().map(|row| row.to_v2(call.contract())).collect(),
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

/// Narrows a list to what lies directly in a group.
pub(crate) fn only_in(selection: &mut Selection<'_>, group: &str) {
    selection.ranges = intersect(&selection.ranges, &[UidRange::below(group)]);
    if selection.parent.replace(group.into()).is_some_and(|other| other != group) {
        selection.ranges.clear();
    }
}

/// The set of these enum numbers.
fn set_of_numbers(contract: &Contract, numbers: &[i32]) -> Result<CapabilitySet> {
    let known = |number: &i32| contract.capabilities().by_number(*number).map(|facts| facts.bit);
    let unknown: Vec<String> = numbers.iter().filter(|number| known(number).is_none()).map(i32::to_string).collect();
    refuse_unknown(&unknown)?;
    Ok(numbers.iter().filter_map(known).collect())
}

/// Refuses capabilities that the contract does not have.
pub(crate) fn refuse_unknown(unknown: &[String]) -> Result<()> {
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Error::invalid_field("capabilities", format!("unknown capability {}", unknown.join(", "))))
}

/// What a custom role may hold: something, and nothing that is for built-in roles alone.
fn validate_capabilities(contract: &Contract, set: &CapabilitySet) -> Result<()> {
    if set.is_empty() {
        return Err(Error::invalid_field("capabilities", "capabilities needs at least one capability"));
    }
    let internal = set.intersection(&contract.capabilities().internal_only());
    if internal.is_empty() {
        return Ok(());
    }
    let names = contract.capabilities().names(&internal).join(", ");
    Err(Error::invalid_field("capabilities", format!("a custom role cannot hold {names}")))
}

fn validate_name(contract: &Contract, name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid_field("name", "name is required"));
    }
    let mut reserved = contract.built_in_roles().iter().chain(contract.operator_roles());
    if reserved.any(|role| role.name == name) {
        return Err(Error::already_exists(ROLE, name));
    }
    Ok(())
}

async fn create_v2(tx: &mut WriteTx, call: &Authorized<v2::CreateRoleRequest>) -> Result<Changed<v2::Role>> {
    let role = call.request().role.clone().unwrap_or_default();
    let v2::Role { uid: _, name, description, capabilities, create_time: _, update_time: _ } = role;
    let input = RoleInput { name, description, capabilities: Some(set_of_numbers(call.contract(), &capabilities)?) };
    Ok(create(tx, call, input).await?.map(|row| row.to_v2(call.contract())))
}

/// Creates a custom role. By itself it grants nothing, so the caller need not hold what is in it.
pub(crate) async fn create<T>(tx: &mut WriteTx, call: &Authorized<T>, input: RoleInput) -> Result<Changed<RoleRow>> {
    let contract = call.contract();
    let group = references::require_scope(tx, call).await?;
    let capabilities = input.capabilities.unwrap_or_default();
    validate_capabilities(contract, &capabilities)?;
    validate_name(contract, &input.name)?;
    let row = RoleRow {
        uid: call.new_child(&group),
        name: input.name,
        description: input.description,
        capabilities,
        created_at: call.now(),
        updated_at: call.now(),
    };
    if !insert(tx, &row).await? {
        return Err(Error::already_exists(ROLE, &row.name));
    }
    iam_changed(tx).await?;
    let event = v1::CreateRoleRequest { parent_id: group.as_str().into(), role: Some(row.to_v1(contract)) };
    Ok(Changed::one(ROLE, &row.uid, None, Some(&row.to_v2(contract)), row.clone()).with_event(&row.uid, &event))
}

/// Inserts and counts a role; false if the name is taken.
async fn insert(tx: &mut WriteTx, row: &RoleRow) -> Result<bool> {
    let sql = "INSERT INTO roles (uid, parent, org, name, description, capabilities, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.uid.parent_str()),
        Value::from(if row.is_built_in() { "" } else { row.uid.root_str() }),
        Value::from(&row.name),
        Value::from(&row.description),
        Value::Bytes(&row.capabilities.to_bytes()),
        Value::Int(row.created_at),
        Value::Int(row.updated_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Ok(false);
    }
    list::count(tx, &TABLE, &row.uid, 1).await?;
    Ok(true)
}

/// The custom role that a write is about.
async fn require_custom<T>(tx: &mut ReadTx, call: &Authorized<T>) -> Result<RoleRow> {
    let uid = call.require_scope()?.as_str();
    let row = find(tx, uid).await?.ok_or_else(|| Error::not_found(ROLE, uid))?;
    if row.is_built_in() {
        return Err(Error::precondition("BUILT_IN_ROLE", uid, "built-in roles cannot be changed or deleted"));
    }
    Ok(row)
}

async fn update_v2(tx: &mut WriteTx, call: &Authorized<v2::UpdateRoleRequest>) -> Result<Changed<v2::Role>> {
    let (mask, role) = (call.mask(), call.request().role.clone().unwrap_or_default());
    let v2::Role { uid: _, name, description, capabilities, create_time: _, update_time: _ } = role;
    let numbers = Some(&capabilities).filter(|_| mask.covers("capabilities"));
    let capabilities = numbers.map(|numbers| set_of_numbers(call.contract(), numbers)).transpose()?;
    let input = RoleInput { name, description, capabilities };
    Ok(update(tx, call, &mask, &input).await?.map(|row| row.to_v2(call.contract())))
}

/// Changes what the mask covers.
pub(crate) async fn update<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    mask: &Mask,
    input: &RoleInput,
) -> Result<Changed<RoleRow>> {
    let contract = call.contract();
    let before = require_custom(tx, call).await?;
    let mut after = RoleRow { updated_at: call.now(), ..before.clone() };
    if mask.covers("name") {
        after.name.clone_from(&input.name);
    }
    if mask.covers("description") {
        after.description.clone_from(&input.description);
    }
    if let Some(capabilities) = input.capabilities {
        validate_capabilities(contract, &capabilities)?;
        after.capabilities = capabilities;
    }
    if after.name != before.name {
        validate_name(contract, &after.name)?;
        require_name_free(tx, &after).await?;
    }
    uses::require_may_widen(tx, call, &before, &after).await?;
    save(tx, &after).await?;
    iam_changed(tx).await?;
    let event = after.to_v1(contract);
    Ok(Changed::one(ROLE, &after.uid, Some(&before.to_v2(contract)), Some(&after.to_v2(contract)), after.clone())
        .with_event(&after.uid, &event))
}

async fn require_name_free(tx: &mut ReadTx, role: &RoleRow) -> Result<()> {
    let sql = "SELECT uid FROM roles WHERE parent = $1 AND name = $2";
    let params = [Value::from(role.uid.parent_str()), Value::from(&role.name)];
    match tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await? {
        Some(_) => Err(Error::already_exists(ROLE, &role.name)),
        None => Ok(()),
    }
}

async fn save(tx: &mut WriteTx, row: &RoleRow) -> Result<()> {
    let sql = "UPDATE roles SET name = $2, description = $3, capabilities = $4, updated_at = $5 WHERE uid = $1";
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(&row.name),
        Value::from(&row.description),
        Value::Bytes(&row.capabilities.to_bytes()),
        Value::Int(row.updated_at),
    ];
    // Another transaction may have taken the name since it was looked up.
    tx.execute(sql, &params).await.map_err(|error| match error.kind() {
        ErrorKind::UniqueViolation => Error::already_exists(ROLE, &row.name),
        _ => error.into(),
    })?;
    Ok(())
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v2::DeleteRoleRequest>) -> Result<Changed<()>> {
    remove(tx, call).await
}

/// Deletes a custom role that no one has.
pub(crate) async fn remove<T>(tx: &mut WriteTx, call: &Authorized<T>) -> Result<Changed<()>> {
    let before = require_custom(tx, call).await?;
    let uid = before.uid.as_str();
    uses::require_unused(tx, uid, call.now()).await?;
    tx.execute("DELETE FROM roles WHERE uid = $1", &[Value::from(uid)]).await?;
    list::count(tx, &TABLE, &before.uid, -1).await?;
    iam_changed(tx).await?;
    let event = v1::DeleteRoleRequest { id: uid.into() };
    Ok(Changed::one(ROLE, &before.uid, Some(&before.to_v2(call.contract())), None, ()).with_event(&before.uid, &event))
}
