//! Policies: what an organization does not want to download, and what is exempt from that.

mod validate;

use bowline_contract::bowline::libraries::v1::PolicyTestResult;
use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::library_policies::{CreatePolicy, DeletePolicy, ListPolicies, UpdatePolicy};
use bowline_core::{Error, Micros, Result, UidRange, Uidp, intersect};
use bowline_pipeline::{
    Authorized, Change, Changed, Direction, Handlers, PageRequest, ResourceSnapshot, SortKey, handler,
};
use bowline_resources::kinds::LIBRARY_POLICY;
use bowline_resources::list::{self, BY_UID, Filter, Listed, Selection, Table, timestamp};
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::Message;

use super::ecosystems::Language;
use super::policy::age::AgeSource;
use super::policy::decide::{Exemption, Overrides, Policy};
use super::policy::purl::Pattern;
use super::{policy_ages, policy_bindings, policy_expectations, policy_vulnerabilities, require_organization};

pub(super) use validate::violations;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .validate::<CreatePolicy>(|request| validate::created(request.policy.as_ref()))
        .write::<CreatePolicy>(handler!(create))
        .validate::<UpdatePolicy>(validate::violations)
        .write::<UpdatePolicy>(handler!(update))
        .read::<ListPolicies>(handler!(list))
        .write::<DeletePolicy>(handler!(delete))
}

const TABLE: Table = Table {
    name: "library_policies",
    columns: "uid, name, policy_type, policy, created_at, updated_at",
    orders: &[BY_UID],
};

/// Policies that an organization may have.
const MAX_IN_ORGANIZATION: i64 = 1000;

/// A policy as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PolicyRow {
    pub(super) uid: Uidp,
    name: String,
    kind: i32,
    /// What the other members do not say.
    stored: v1::LibraryPolicy,
    created_at: Micros,
    updated_at: Micros,
}

impl Listed for PolicyRow {
    fn read(row: &Row<'_>) -> Result<PolicyRow> {
        Ok(PolicyRow {
            uid: list::stored_uid(row, &TABLE)?,
            name: row.text(1)?,
            kind: row.int(2)? as i32,
            stored: v1::LibraryPolicy::decode(row.bytes(3)?.as_slice()).map_err(Error::internal)?,
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

impl PolicyRow {
    fn shown(&self) -> v1::LibraryPolicy {
        v1::LibraryPolicy {
            id: self.uid.as_str().into(),
            name: self.name.clone(),
            policy_type: self.kind,
            created_at: timestamp(self.created_at),
            updated_at: timestamp(self.updated_at),
            ..self.stored.clone()
        }
    }

    fn require_custom(&self) -> Result<()> {
        if self.kind == v1::LibraryPolicyType::System as i32 {
            return Err(Error::permission_denied("Permission denied: system policies cannot be changed or removed"));
        }
        Ok(())
    }

    fn change(before: Option<&PolicyRow>, after: Option<&PolicyRow>) -> Vec<Change> {
        let snapshot = |row: Option<&PolicyRow>| row.map(|row| ResourceSnapshot::of(&row.shown()));
        let uid = before.or(after).map(|row| row.uid.as_str().to_owned()).unwrap_or_default();
        vec![Change { kind: LIBRARY_POLICY, uid, before: snapshot(before), after: snapshot(after) }]
    }
}

pub(super) async fn find(tx: &mut ReadTx, uid: &str) -> Result<Option<PolicyRow>> {
    let sql = format!("SELECT {} FROM library_policies WHERE uid = $1", TABLE.columns);
    tx.query_opt(&sql, &[Value::from(uid)], PolicyRow::read).await
}

async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<PolicyRow> {
    find(tx, uid.as_str()).await?.ok_or_else(|| Error::not_found(LIBRARY_POLICY, uid.as_str()))
}

async fn create(
    tx: &mut WriteTx,
    call: &Authorized<v1::CreateLibraryPolicyRequest>,
) -> Result<Changed<v1::LibraryPolicy>> {
    let organization = require_organization(tx, call).await?;
    let given = call.request().policy.clone().unwrap_or_default();
    require_free(tx, &organization, &given.name).await?;
    let uid = call.new_child(&organization);
    let row = PolicyRow {
        uid: uid.clone(),
        name: given.name.clone(),
        kind: v1::LibraryPolicyType::Custom as i32,
        stored: validate::stored(given),
        created_at: call.now(),
        updated_at: call.now(),
    };
    let sql = "INSERT INTO library_policies (uid, parent, org, name, policy_type, policy, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let stored = row.stored.encode_to_vec();
    let params = [
        Value::from(uid.as_str()),
        Value::from(organization.as_str()),
        Value::from(uid.root_str()),
        Value::from(&row.name),
        Value::from(row.kind),
        Value::from(&stored),
        Value::Int(row.created_at),
        Value::Int(row.updated_at),
    ];
    tx.execute(sql, &params).await?;
    list::count(tx, &TABLE, &uid, 1).await?;
    let event = v1::CreateLibraryPolicyRequest { parent_id: organization.as_str().into(), policy: Some(row.shown()) };
    Ok(Changed::many(PolicyRow::change(None, Some(&row)), row.shown()).with_event(&uid, &event))
}

/// A name that nothing has, in an organization that has room.
async fn require_free(tx: &mut ReadTx, organization: &Uidp, name: &str) -> Result<()> {
    let sql = "SELECT count(*), CAST(coalesce(sum(CASE WHEN name = $2 THEN 1 ELSE 0 END), 0) AS BIGINT)
               FROM library_policies WHERE parent = $1";
    let params = [Value::from(organization.as_str()), Value::from(name)];
    let found = tx.query_opt(sql, &params, |row| Ok::<_, Error>((row.int(0)?, row.int(1)?))).await?;
    let (all, same) = found.unwrap_or_default();
    if same > 0 {
        return Err(Error::already_exists(LIBRARY_POLICY, name));
    }
    if all >= MAX_IN_ORGANIZATION {
        let text = format!("an organization may hold {MAX_IN_ORGANIZATION} library policies; delete some");
        return Err(Error::quota(organization.as_str(), text));
    }
    Ok(())
}

/// Replaces a policy as a whole, unless a test of it fails.
async fn update(tx: &mut WriteTx, call: &Authorized<v1::LibraryPolicy>) -> Result<Changed<v1::LibraryPolicy>> {
    let uid = call.require_scope()?;
    let (changed, failed) = replace(tx, call, uid, call.request().clone()).await?;
    policy_expectations::require_passed(uid, &failed)?;
    Ok(changed)
}

/// Replaces a policy as a whole; also returns the tests of it that fail from then on, because of which the caller may have
/// to fail. None are run where nothing changes.
pub(super) async fn replace<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    uid: &Uidp,
    given: v1::LibraryPolicy,
) -> Result<(Changed<v1::LibraryPolicy>, Vec<PolicyTestResult>)> {
    let before = require(tx, uid).await?;
    before.require_custom()?;
    if given.name != before.name {
        let organization = uid.parent().ok_or_else(|| Error::not_found(LIBRARY_POLICY, uid.as_str()))?;
        require_free(tx, &organization, &given.name).await?;
    }
    let mut after = PolicyRow { name: given.name.clone(), stored: validate::stored(given), ..before.clone() };
    if after == before {
        return Ok((Changed::nothing(after.shown()), Vec::new()));
    }
    let policy = with_rule(tx, uid, &after.stored).await?;
    let failed = policy_expectations::failing(tx, uid, &policy, call.now()).await?;
    after.updated_at = call.now();
    let sql = "UPDATE library_policies SET name = $2, policy = $3, updated_at = $4 WHERE uid = $1";
    let stored = after.stored.encode_to_vec();
    let params =
        [Value::from(uid.as_str()), Value::from(&after.name), Value::from(&stored), Value::Int(after.updated_at)];
    tx.execute(sql, &params).await?;
    let event = after.shown();
    let changed = Changed::many(PolicyRow::change(Some(&before), Some(&after)), event.clone()).with_event(uid, &event);
    Ok((changed, failed))
}

/// The policy of this UIDP, ready to check by.
///
/// # Errors
/// NOT_FOUND.
pub(super) async fn stored_policy(tx: &mut ReadTx, uid: &Uidp) -> Result<Policy> {
    let row = require(tx, uid).await?;
    with_rule(tx, uid, &row.stored).await
}

/// The same of a policy that its organization may change.
///
/// # Errors
/// PERMISSION_DENIED for one of the platform.
pub(super) async fn stored_custom(tx: &mut ReadTx, uid: &Uidp) -> Result<Policy> {
    let row = require(tx, uid).await?;
    row.require_custom()?;
    with_rule(tx, uid, &row.stored).await
}

/// A policy ready to check by, with the rules about vulnerabilities and age that the stored one has.
async fn with_rule(tx: &mut ReadTx, uid: &Uidp, policy: &v1::LibraryPolicy) -> Result<Policy> {
    let vulnerabilities = policy_vulnerabilities::of_policy(tx, uid).await?;
    let age_source = policy_ages::of_policy(tx, uid).await?;
    Ok(Policy { age_source, vulnerabilities, ..ready(policy)? })
}

/// The ranges of a list that names an organization or none.
pub(super) fn within<T>(call: &Authorized<T>, parent: &str) -> Vec<UidRange> {
    if parent.is_empty() { call.visible() } else { intersect(&call.visible(), &[UidRange::below(parent)]) }
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::LibraryPolicyFilter>) -> Result<v1::LibraryPolicyList> {
    let request = call.request();
    let parent = Some(request.parent_id.clone()).filter(|parent| !parent.is_empty());
    let ranges = within(call, &request.parent_id);
    let mut selection = Selection { ranges, parent, filters: Vec::new(), conditions: Vec::new(), clauses: Vec::new() };
    if !request.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&request.name) });
    }
    if request.policy_type() != v1::LibraryPolicyType::Unspecified {
        selection.filters.push(Filter { column: "policy_type", value: Value::from(request.policy_type) });
    }
    let rest = v1::LibraryPolicyFilter { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let listing = list::page::<_, PolicyRow>(tx, call, &TABLE, &selection, &page, (0, Direction::Ascending)).await?;
    Ok(v1::LibraryPolicyList {
        items: listing.items.iter().map(PolicyRow::shown).collect(),
        next_page_token: listing.next_page_token,
        total_count: listing.total_count,
        skipped: listing.skipped,
    })
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteLibraryPolicyRequest>) -> Result<Changed<()>> {
    let uid = call.require_scope()?;
    let before = require(tx, uid).await?;
    before.require_custom()?;
    policy_bindings::require_not_in_force(tx, uid).await?;
    remove(tx, uid).await?;
    let event = v1::DeleteLibraryPolicyRequest { id: uid.as_str().into() };
    Ok(Changed::many(PolicyRow::change(Some(&before), None), ()).with_event(uid, &event))
}

async fn remove(tx: &mut WriteTx, uid: &Uidp) -> Result<()> {
    tx.execute("DELETE FROM library_policies WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    policy_expectations::remove(tx, uid).await?;
    policy_vulnerabilities::remove(tx, uid).await?;
    list::count(tx, &TABLE, uid, -1).await
}

/// Deletes the policies of an organization that is deleted, whose bindings have gone already.
pub(super) async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<Vec<Change>> {
    let sql = format!("SELECT {} FROM library_policies WHERE parent = $1", TABLE.columns);
    let rows = tx.query(&sql, &[Value::from(group.as_str())], PolicyRow::read).await?;
    let mut changes = Vec::new();
    for row in rows {
        remove(tx, &row.uid).await?;
        changes.extend(PolicyRow::change(Some(&row), None));
    }
    Ok(changes)
}

/// What a binding does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Enforced = 1,
    /// Downloads are served, and what would have been refused is recorded.
    Log = 2,
}

/// The policy that is in force for an ecosystem of an organization, with its UIDP.
///
/// # Errors
/// INTERNAL for a stored policy that cannot be read.
pub async fn in_force(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    mode: Mode,
) -> Result<Option<(Uidp, Policy)>> {
    let found = named_in_force(tx, organization, language, mode).await?;
    Ok(found.map(|(uid, _, policy)| (uid, policy)))
}

/// The same with the name of the policy behind its UIDP.
pub(super) async fn named_in_force(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    mode: Mode,
) -> Result<Option<(Uidp, String, Policy)>> {
    let sql = "SELECT p.uid, p.name, p.policy_type, p.policy, p.created_at, p.updated_at, v.rule, p.age_source
               FROM library_policy_bindings b JOIN library_policies p ON p.uid = b.policy
                 LEFT JOIN library_policy_vulnerabilities v ON v.policy = p.uid
               WHERE b.parent = $1 AND b.ecosystem = $2 AND b.mode = $3";
    let params = [Value::from(organization.as_str()), Value::Int(language.number()), Value::Int(mode as i64)];
    let read = |row: &Row<'_>| Ok::<_, Error>((PolicyRow::read(row)?, row.opt_bytes(6)?, row.int(7)?));
    let Some((row, rule, source)) = tx.query_opt(sql, &params, read).await? else { return Ok(None) };
    let (vulnerabilities, age_source) = (policy_vulnerabilities::read(rule)?, policy_ages::read(source)?);
    let policy = Policy { age_source, vulnerabilities, ..ready(&row.stored)? };
    Ok(Some((row.uid, row.name, policy)))
}

/// A policy in force as it is stored, with how it is bound.
pub(super) struct StoredInForce {
    pub(super) mode: i64,
    pub(super) uid: String,
    pub(super) name: String,
    /// A `LibraryPolicy` as protobuf.
    pub(super) policy: Vec<u8>,
    /// A `VulnerabilityRule` as protobuf; absent without one.
    pub(super) rule: Option<Vec<u8>>,
    /// An `AgeSource` as its number.
    pub(super) age_source: i64,
}

/// The policies in force for an ecosystem of an organization, unread.
pub(super) async fn stored_in_force(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
) -> Result<Vec<StoredInForce>> {
    let sql = "SELECT b.mode, p.uid, p.name, p.policy, v.rule, p.age_source
               FROM library_policy_bindings b JOIN library_policies p ON p.uid = b.policy
                 LEFT JOIN library_policy_vulnerabilities v ON v.policy = p.uid
               WHERE b.parent = $1 AND b.ecosystem = $2 ORDER BY b.mode, p.uid";
    let params = [Value::from(organization.as_str()), Value::Int(language.number())];
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(StoredInForce {
            mode: row.int(0)?,
            uid: row.text(1)?,
            name: row.text(2)?,
            policy: row.bytes(3)?,
            rule: row.opt_bytes(4)?,
            age_source: row.int(5)?,
        })
    };
    tx.query(sql, &params, read).await
}

/// A draft that was validated, ready to check by.
///
/// # Errors
/// INTERNAL for one that was not validated.
pub(super) fn draft(given: v1::LibraryPolicy) -> Result<Policy> {
    ready(&validate::stored(given))
}

/// A stored policy, ready to check by.
fn ready(stored: &v1::LibraryPolicy) -> Result<Policy> {
    let pattern = |purl: &str| {
        Pattern::parse(purl).map_err(|wrong| Error::internal(format!("a stored policy has {purl:?}, which {wrong}")))
    };
    let blocked = stored.block_list.iter().map(|entry| pattern(&entry.purl)).collect::<Result<_>>()?;
    let exemption = |entry: &v1::LibraryAllowListEntry| {
        let (bypass_cooldown, bypass_malware) = (entry.bypass_cooldown, entry.bypass_malware);
        Ok(Exemption { pattern: pattern(&entry.purl)?, bypass_cooldown, bypass_malware })
    };
    Ok(Policy {
        cooldown_days: stored.cooldown_days,
        blocked,
        allowed: stored.allow_list.iter().map(exemption).collect::<Result<_>>()?,
        blocked_licenses: stored.blocked_licenses.clone(),
        age_source: AgeSource::default(),
        vulnerabilities: None,
        overrides: Overrides::default(),
    })
}
