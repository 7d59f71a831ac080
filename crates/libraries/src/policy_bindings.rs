//! Bindings: which policy is in force for an ecosystem of an organization. One for each ecosystem and mode.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::library_policy_bindings::{
    CreateBinding, DeleteBinding, ListBindings, UpdateBinding,
};
use bowline_core::{Error, FieldViolation, Micros, Result, Uidp};
use bowline_pipeline::{
    Authorized, Change, Changed, Direction, Handlers, PageRequest, ResourceSnapshot, SortKey, handler,
};
use bowline_resources::kinds::{LIBRARY_POLICY, LIBRARY_POLICY_BINDING};
use bowline_resources::list::{self, BY_UID, Comparison, Condition, Filter, Listed, Selection, Table, timestamp};
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::Message;

use super::ecosystems::{Language, MUST_BE, OWN_FROM};
use super::policies::{self, Mode};
use super::{cargo_policies, require_organization};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .validate::<CreateBinding>(|request| match &request.binding {
            Some(binding) => violations(binding),
            None => vec![FieldViolation { field: "binding".into(), description: "binding is required".into() }],
        })
        .write::<CreateBinding>(handler!(create))
        .validate::<UpdateBinding>(violations)
        .write::<UpdateBinding>(handler!(update))
        .read::<ListBindings>(handler!(list))
        .write::<DeleteBinding>(handler!(delete))
}

const TABLE: Table = Table {
    name: "library_policy_bindings",
    columns: "uid, policy, ecosystem, mode, created_at, updated_at",
    orders: &[BY_UID],
};

/// A binding as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BindingRow {
    uid: Uidp,
    pub(super) policy: String,
    ecosystem: i32,
    pub(super) mode: i32,
    created_at: Micros,
    updated_at: Micros,
}

impl Listed for BindingRow {
    fn read(row: &Row<'_>) -> Result<BindingRow> {
        Ok(BindingRow {
            uid: list::stored_uid(row, &TABLE)?,
            policy: row.text(1)?,
            ecosystem: row.int(2)? as i32,
            mode: row.int(3)? as i32,
            created_at: row.int(4)?,
            updated_at: row.int(5)?,
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
    fn shown(&self) -> v1::LibraryPolicyBinding {
        v1::LibraryPolicyBinding {
            id: self.uid.as_str().into(),
            policy: self.policy.clone(),
            ecosystem: self.ecosystem,
            mode: self.mode,
            created_at: timestamp(self.created_at),
            updated_at: timestamp(self.updated_at),
        }
    }

    /// What the binding is, to someone who wants another like it.
    fn rendered(&self) -> String {
        let ecosystem = own::Ecosystem::try_from(self.ecosystem).unwrap_or_default().as_str_name();
        let mode = v1::LibraryPolicyBindingMode::try_from(self.mode).unwrap_or_default().as_str_name();
        format!("{ecosystem} in mode {}", mode.trim_start_matches("LIBRARY_POLICY_BINDING_MODE_"))
    }

    /// The binding in the audit log: in a message of this product if the wire contract cannot name its ecosystem.
    fn snapshot(&self) -> ResourceSnapshot {
        if let Some(language) = Language::of_own(self.ecosystem).filter(|language| !language.is_in_contract()) {
            let rows = std::slice::from_ref(self);
            return ResourceSnapshot::of(&cargo_policies::shown(self.uid.parent_str(), language, rows));
        }
        ResourceSnapshot::of(&self.shown())
    }
}

/// Leaves out of lists of the wire contract what is of ecosystems that it does not have.
pub(super) fn in_contract() -> Condition<'static> {
    Condition { column: "ecosystem", comparison: Comparison::Below, value: Value::Int(OWN_FROM) }
}

fn violations(binding: &v1::LibraryPolicyBinding) -> Vec<FieldViolation> {
    let mut wrong = Vec::new();
    let mut refuse = |field: &str, description: &str| {
        wrong.push(FieldViolation { field: field.into(), description: description.into() });
    };
    if Language::required("ecosystem", binding.ecosystem).is_err() {
        refuse("ecosystem", MUST_BE);
    }
    if binding.mode() == v1::LibraryPolicyBindingMode::Unspecified {
        refuse("mode", "must be LIBRARY_POLICY_BINDING_MODE_ENFORCED or LIBRARY_POLICY_BINDING_MODE_LOG");
    }
    wrong
}

/// A policy of the organization itself or of the platform. Those of others are as if they did not exist.
pub(super) async fn require_policy(tx: &mut ReadTx, organization: &str, uid: &str) -> Result<()> {
    let found = policies::find(tx, uid).await?;
    let is_own = found.is_some_and(|row| row.uid.parent_str() == organization || row.uid.is_root());
    if is_own { Ok(()) } else { Err(Error::not_found(LIBRARY_POLICY, uid)) }
}

async fn create(
    tx: &mut WriteTx,
    call: &Authorized<v1::CreateLibraryPolicyBindingRequest>,
) -> Result<Changed<v1::LibraryPolicyBinding>> {
    let organization = require_organization(tx, call).await?;
    let given = call.request().binding.clone().unwrap_or_default();
    require_policy(tx, organization.as_str(), &given.policy).await?;
    let (now, uid) = (call.now(), call.new_child(&organization));
    let v1::LibraryPolicyBinding { policy, ecosystem, mode, .. } = given;
    let row = BindingRow { uid, policy, ecosystem, mode, created_at: now, updated_at: now };
    insert(tx, &row).await?;
    let (shown, uid) = (row.shown(), row.uid);
    let event =
        v1::CreateLibraryPolicyBindingRequest { parent_id: organization.as_str().into(), binding: Some(shown.clone()) };
    Ok(Changed::one(LIBRARY_POLICY_BINDING, &uid, None, Some(&shown), shown.clone()).with_event(&uid, &event))
}

/// Stores a new binding.
///
/// # Errors
/// ALREADY_EXISTS for an ecosystem and mode that another binding has.
async fn insert(tx: &mut WriteTx, row: &BindingRow) -> Result<()> {
    let sql = "INSERT INTO library_policy_bindings (uid, parent, org, policy, ecosystem, mode, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.uid.parent_str()),
        Value::from(row.uid.root_str()),
        Value::from(&row.policy),
        Value::from(row.ecosystem),
        Value::from(row.mode),
        Value::Int(row.created_at),
        Value::Int(row.updated_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Err(Error::already_exists(LIBRARY_POLICY_BINDING, row.rendered()));
    }
    list::count(tx, &TABLE, &row.uid, 1).await
}

/// The binding of this UIDP, if the wire contract has its ecosystem.
async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<BindingRow> {
    let sql = format!("SELECT {} FROM library_policy_bindings WHERE uid = $1 AND ecosystem < $2", TABLE.columns);
    let params = [Value::from(uid.as_str()), in_contract().value];
    let found = tx.query_opt(&sql, &params, BindingRow::read).await?;
    found.ok_or_else(|| Error::not_found(LIBRARY_POLICY_BINDING, uid.as_str()))
}

async fn update(
    tx: &mut WriteTx,
    call: &Authorized<v1::LibraryPolicyBinding>,
) -> Result<Changed<v1::LibraryPolicyBinding>> {
    let (uid, given) = (call.require_scope()?, call.request());
    let before = require(tx, uid).await?;
    require_policy(tx, uid.parent_str(), &given.policy).await?;
    let (policy, ecosystem, mode) = (given.policy.clone(), given.ecosystem, given.mode);
    let mut after = BindingRow { policy, ecosystem, mode, ..before.clone() };
    if after == before {
        return Ok(Changed::nothing(after.shown()));
    }
    after.updated_at = call.now();
    require_unbound(tx, &after).await?;
    replace(tx, &after).await?;
    let (before, after) = (before.shown(), after.shown());
    Ok(Changed::one(LIBRARY_POLICY_BINDING, uid, Some(&before), Some(&after), after.clone()).with_event(uid, &after))
}

/// Stores a binding in place of the one of the same UIDP.
async fn replace(tx: &mut WriteTx, row: &BindingRow) -> Result<()> {
    let sql =
        "UPDATE library_policy_bindings SET policy = $2, ecosystem = $3, mode = $4, updated_at = $5 WHERE uid = $1";
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(&row.policy),
        Value::from(row.ecosystem),
        Value::from(row.mode),
        Value::Int(row.updated_at),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Rejects a parent, ecosystem and mode that another binding has.
async fn require_unbound(tx: &mut ReadTx, row: &BindingRow) -> Result<()> {
    let sql =
        "SELECT uid FROM library_policy_bindings WHERE parent = $1 AND ecosystem = $2 AND mode = $3 AND uid <> $4";
    let params = [
        Value::from(row.uid.parent_str()),
        Value::from(row.ecosystem),
        Value::from(row.mode),
        Value::from(row.uid.as_str()),
    ];
    match tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await? {
        Some(_) => Err(Error::already_exists(LIBRARY_POLICY_BINDING, row.rendered())),
        None => Ok(()),
    }
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<v1::LibraryPolicyBindingFilter>,
) -> Result<v1::LibraryPolicyBindingList> {
    let request = call.request();
    let parent = Some(request.parent_id.clone()).filter(|parent| !parent.is_empty());
    let ranges = policies::within(call, &request.parent_id);
    let conditions = vec![in_contract()];
    let mut selection = Selection { ranges, parent, filters: Vec::new(), conditions, clauses: Vec::new() };
    for (column, value) in [("ecosystem", request.ecosystem), ("mode", request.mode)] {
        if value != 0 {
            selection.filters.push(Filter { column, value: Value::from(value) });
        }
    }
    let rest = v1::LibraryPolicyBindingFilter { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let listing = list::page::<_, BindingRow>(tx, call, &TABLE, &selection, &page, (0, Direction::Ascending)).await?;
    Ok(v1::LibraryPolicyBindingList {
        items: listing.items.iter().map(BindingRow::shown).collect(),
        next_page_token: listing.next_page_token,
        total_count: listing.total_count,
        skipped: listing.skipped,
    })
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteLibraryPolicyBindingRequest>) -> Result<Changed<()>> {
    let uid = call.require_scope()?;
    let before = require(tx, uid).await?.shown();
    remove(tx, uid).await?;
    let event = v1::DeleteLibraryPolicyBindingRequest { id: uid.as_str().into() };
    Ok(Changed::one(LIBRARY_POLICY_BINDING, uid, Some(&before), None, ()).with_event(uid, &event))
}

async fn remove(tx: &mut WriteTx, uid: &Uidp) -> Result<()> {
    tx.execute("DELETE FROM library_policy_bindings WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    list::count(tx, &TABLE, uid, -1).await
}

/// The bindings of an organization for an ecosystem, one of each mode at most.
pub(super) async fn of_language(tx: &mut ReadTx, organization: &Uidp, language: Language) -> Result<Vec<BindingRow>> {
    let sql = format!(
        "SELECT {} FROM library_policy_bindings WHERE parent = $1 AND ecosystem = $2 ORDER BY mode",
        TABLE.columns
    );
    let params = [Value::from(organization.as_str()), Value::Int(language.number())];
    tx.query(&sql, &params, BindingRow::read).await
}

/// Puts a policy into force for an ecosystem in place of the one of the same mode; without a policy, takes that one out of force.
/// Absent if nothing changes.
pub(super) async fn set<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    organization: &Uidp,
    (language, mode): (Language, Mode),
    policy: &str,
) -> Result<Option<Change>> {
    let rows = of_language(tx, organization, language).await?;
    let before = rows.into_iter().find(|row| row.mode == mode as i32);
    if before.as_ref().map_or("", |row| row.policy.as_str()) == policy {
        return Ok(None);
    }
    let new = || BindingRow {
        uid: call.new_child(organization),
        policy: String::new(),
        ecosystem: language.number() as i32,
        mode: mode as i32,
        created_at: call.now(),
        updated_at: call.now(),
    };
    let row = BindingRow { policy: policy.into(), updated_at: call.now(), ..before.clone().unwrap_or_else(new) };
    match &before {
        Some(_) if policy.is_empty() => remove(tx, &row.uid).await?,
        Some(_) => replace(tx, &row).await?,
        None => insert(tx, &row).await?,
    }
    Ok(Some(Change {
        kind: LIBRARY_POLICY_BINDING,
        uid: row.uid.as_str().into(),
        before: before.as_ref().map(BindingRow::snapshot),
        after: (!policy.is_empty()).then(|| row.snapshot()),
    }))
}

/// Rejects a policy that is in force, which would stop applying without notice.
pub(super) async fn require_not_in_force(tx: &mut ReadTx, policy: &Uidp) -> Result<()> {
    let sql = "SELECT uid, ecosystem FROM library_policy_bindings WHERE policy = $1 ORDER BY ecosystem, mode LIMIT 1";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.int(1)?));
    let Some((binding, ecosystem)) = tx.query_opt(sql, &[Value::from(policy.as_str())], read).await? else {
        return Ok(());
    };
    let of = match Language::of_number(ecosystem)? {
        Language::Cargo => Some("Cargo"),
        Language::Generic => Some("generic files"),
        Language::Java | Language::Python | Language::JavaScript | Language::Go => None,
    };
    let text = match of {
        Some(of) => {
            format!("the policy is in force for {of}; take it out of force first, or put another into force")
        }
        None => format!("the binding {binding} puts the policy into force; delete it first, or have it name another"),
    };
    Err(Error::precondition("LIBRARY_POLICY_BOUND", policy.as_str(), text))
}

/// Takes everything out of force in an organization that is deleted: at most two bindings of each ecosystem.
pub(super) async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<Vec<Change>> {
    let sql = format!("SELECT {} FROM library_policy_bindings WHERE parent = $1", TABLE.columns);
    let rows = tx.query(&sql, &[Value::from(group.as_str())], BindingRow::read).await?;
    let mut changes = Vec::new();
    for row in rows {
        remove(tx, &row.uid).await?;
        let before = Some(row.snapshot());
        changes.push(Change { kind: LIBRARY_POLICY_BINDING, uid: row.uid.as_str().into(), before, after: None });
    }
    Ok(changes)
}
