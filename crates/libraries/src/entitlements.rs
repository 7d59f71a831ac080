//! Which ecosystems an organization may use: one entitlement for each.

use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::entitlements::{Create, Delete, List};
use bowline_core::{Error, Result, UidRange, Uidp, intersect};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, ResourceSnapshot, SortKey, handler};
use bowline_resources::kinds::LIBRARY_ENTITLEMENT;
use bowline_resources::list::{self, BY_UID, Listed, Selection, Table};
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::Message;

use super::ecosystems::Language;
use super::policy::decide::DEFAULT_COOLDOWN_DAYS;
use super::require_organization;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.write::<Create>(handler!(create)).read::<List>(handler!(list)).write::<Delete>(handler!(delete))
}

const TABLE: Table =
    Table { name: "library_entitlements", columns: "uid, ecosystem, policy, source, cooldown_days", orders: &[BY_UID] };

/// Longest cooldown of an entitlement, in days.
const MAX_COOLDOWN_DAYS: i32 = 3650;

/// An entitlement as it is stored, which is as the wire has it.
struct EntitlementRow(v1::Entitlement);

impl Listed for EntitlementRow {
    fn read(row: &Row<'_>) -> Result<EntitlementRow> {
        read(row).map(EntitlementRow)
    }

    fn uid(&self) -> &str {
        &self.0.id
    }

    fn sort_key(&self, _column: &str) -> SortKey {
        SortKey::Int(0)
    }
}

fn read(row: &Row<'_>) -> Result<v1::Entitlement> {
    Ok(v1::Entitlement {
        id: list::stored_uid(row, &TABLE)?.as_str().into(),
        ecosystem: row.int(1)? as i32,
        policy: row.int(2)? as i32,
        source: row.int(3)? as i32,
        cooldown_days: row.int(4)? as i32,
    })
}

/// Grants an ecosystem, or says again how it may be used.
async fn create(tx: &mut WriteTx, call: &Authorized<v1::CreateEntitlementRequest>) -> Result<Changed<v1::Entitlement>> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let given = validated(request)?;
    let before = find_by_ecosystem(tx, &organization, given.ecosystem).await?;
    let uid = match &before {
        Some(before) => Uidp::parse(&before.id).map_err(Error::internal)?,
        None => call.new_child(&organization),
    };
    let after = v1::Entitlement { id: uid.as_str().into(), ..given };
    if before.as_ref() == Some(&after) {
        return Ok(Changed::nothing(after));
    }
    let sql = "INSERT INTO library_entitlements (uid, parent, org, ecosystem, policy, source, cooldown_days)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (parent, ecosystem) DO UPDATE SET policy = excluded.policy, source = excluded.source,
                                                             cooldown_days = excluded.cooldown_days";
    let params = [
        Value::from(uid.as_str()),
        Value::from(organization.as_str()),
        Value::from(uid.root_str()),
        Value::from(after.ecosystem),
        Value::from(after.policy),
        Value::from(after.source),
        Value::from(after.cooldown_days),
    ];
    tx.execute(sql, &params).await?;
    if before.is_none() {
        list::count(tx, &TABLE, &uid, 1).await?;
    }
    Ok(Changed::one(LIBRARY_ENTITLEMENT, &uid, before.as_ref(), Some(&after), after.clone()).with_event(&uid, request))
}

/// What a request grants, with what it leaves out.
fn validated(request: &v1::CreateEntitlementRequest) -> Result<v1::Entitlement> {
    if Language::of_wire(request.ecosystem).is_none() {
        return Err(Error::invalid_field(
            "ecosystem",
            "must be JAVA, PYTHON, JAVASCRIPT or GO, or one of their remediated tiers: this server has no packages of others",
        ));
    }
    if !(0..=MAX_COOLDOWN_DAYS).contains(&request.cooldown_days) {
        return Err(Error::invalid_field("cooldownDays", format!("must be 0 to {MAX_COOLDOWN_DAYS}")));
    }
    let policy = match request.policy() {
        v1::Policy::Unknown => v1::Policy::Chainguard,
        policy => policy,
    };
    // The field cannot say that it was left out, and no one should lose the wait by leaving it out.
    let cooldown_days = if request.cooldown_days == 0 { DEFAULT_COOLDOWN_DAYS } else { request.cooldown_days };
    let (ecosystem, source) = (request.ecosystem, request.source);
    Ok(v1::Entitlement { id: String::new(), ecosystem, policy: policy as i32, source, cooldown_days })
}

async fn find_by_ecosystem(tx: &mut ReadTx, organization: &Uidp, ecosystem: i32) -> Result<Option<v1::Entitlement>> {
    let sql = format!("SELECT {} FROM library_entitlements WHERE parent = $1 AND ecosystem = $2", TABLE.columns);
    tx.query_opt(&sql, &[Value::from(organization.as_str()), Value::from(ecosystem)], read).await
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::EntitlementFilter>) -> Result<v1::EntitlementList> {
    let request = call.request();
    let ranges = intersect(&call.visible(), &[UidRange::below(&request.parent_id)]);
    let selection = Selection {
        ranges,
        parent: Some(request.parent_id.clone()),
        filters: Vec::new(),
        conditions: Vec::new(),
        clauses: Vec::new(),
    };
    let size = |row: &EntitlementRow| row.0.encoded_len();
    let rows = list::everything(tx, call, &TABLE, &selection, size).await?;
    let mut items: Vec<v1::Entitlement> = rows.into_iter().map(|row| row.0).collect();
    // An organization has one for each ecosystem at most: there is nothing to gain from asking the database.
    items.retain(|item| request.ecosystems.is_empty() || request.ecosystems.contains(&item.ecosystem));
    Ok(v1::EntitlementList { items })
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteEntitlementRequest>) -> Result<Changed<()>> {
    let uid = call.require_scope()?;
    let sql = format!("SELECT {} FROM library_entitlements WHERE uid = $1", TABLE.columns);
    let before = tx.query_opt(&sql, &[Value::from(uid.as_str())], read).await?;
    let before = before.ok_or_else(|| Error::not_found(LIBRARY_ENTITLEMENT, uid.as_str()))?;
    remove(tx, uid).await?;
    Ok(Changed::one(LIBRARY_ENTITLEMENT, uid, Some(&before), None, ()).with_event(uid, call.request()))
}

async fn remove(tx: &mut WriteTx, uid: &Uidp) -> Result<()> {
    tx.execute("DELETE FROM library_entitlements WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    list::count(tx, &TABLE, uid, -1).await
}

/// Withdraws what an organization had that is deleted; one for each ecosystem at most.
pub(super) async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<Vec<Change>> {
    let sql = format!("SELECT {} FROM library_entitlements WHERE parent = $1", TABLE.columns);
    let rows = tx.query(&sql, &[Value::from(group.as_str())], read).await?;
    let mut changes = Vec::new();
    for before in rows {
        remove(tx, &Uidp::parse(&before.id).map_err(Error::internal)?).await?;
        let snapshot = Some(ResourceSnapshot::of(&before));
        changes.push(Change { kind: LIBRARY_ENTITLEMENT, uid: before.id, before: snapshot, after: None });
    }
    Ok(changes)
}
