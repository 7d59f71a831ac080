//! Names for UIDPs across the domains, in one statement, as far as the caller may list what has them.

use std::collections::{BTreeSet, HashMap, HashSet};

use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::bowline::iam::v1::rpc::names::ResolveNames;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{CapabilitySet, Error, Result, UidRange};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::kinds;
use bowline_store::{ReadTx, Row, Value};

/// Tables with names, each with the kind of its resources and the capability that lists them.
const SOURCES: [(&str, &str, &str, Capability); 5] = [
    ("groups", "name", kinds::GROUP, Capability::CapIamGroupsList),
    ("identities", "CASE WHEN name = '' THEN email ELSE name END", kinds::IDENTITY, Capability::CapIamIdentityList),
    ("roles", "name", kinds::ROLE, Capability::CapIamRolesList),
    ("identity_providers", "name", kinds::IDENTITY_PROVIDER, Capability::CapIamIdentityProvidersList),
    ("repos", "name", kinds::REPO, Capability::CapRepoList),
];

/// Ranges that one statement reads.
const RANGES_AT_ONCE: usize = 50;
/// Look-ups of bindings in one call: of each person in each range.
const LOOK_UPS: usize = 50_000;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ResolveNames>(handler!(resolve))
}

/// A resource with a name.
struct NameRow {
    source: usize,
    uid: String,
    name: String,
}

async fn resolve(tx: &mut ReadTx, call: &Authorized<own::ResolveNamesRequest>) -> Result<own::ResolveNamesResponse> {
    let requested: BTreeSet<&str> = call.request().uids.iter().map(String::as_str).collect();
    let ranges = call
        .grants()
        .visible(&capabilities(call, &[Capability::CapIamRoleBindingsList, Capability::CapIamIdentityList])?);
    require_few(&requested, ranges.len())?;
    let rows = read(tx, &requested).await?;
    let people = listed_people(tx, &rows, &ranges).await?;
    let mut names: HashMap<&str, own::ResolvedName> = HashMap::new();
    for row in &rows {
        if is_listed(call, row) || people.contains(&row.uid) {
            let (_, _, kind, _) = SOURCES[row.source];
            let name = own::ResolvedName { uid: row.uid.clone(), name: row.name.clone(), kind: kind.into() };
            names.insert(&row.uid, name);
        }
    }
    // One entry for each, however often it is requested.
    let names = call.request().uids.iter().filter_map(|uid| names.remove(uid.as_str()));
    Ok(own::ResolveNamesResponse { names: names.collect() })
}

/// The named resources of these UIDPs: one statement over all sources.
async fn read(tx: &mut ReadTx, uids: &BTreeSet<&str>) -> Result<Vec<NameRow>> {
    let Some(last) = uids.last() else { return Ok(Vec::new()) };
    // A few widths instead of any number, so that few texts fill the statement caches.
    let width = uids.len().next_power_of_two();
    let params: Vec<Value<'_>> =
        uids.iter().copied().chain(std::iter::repeat(*last)).take(width).map(Value::Text).collect();
    let list = numbered(width);
    let parts = SOURCES.iter().enumerate().map(|(source, (table, name, _, _))| {
        format!("SELECT CAST({source} AS BIGINT) AS source, uid, {name} AS name FROM {table} WHERE uid IN ({list})")
    });
    let sql = parts.collect::<Vec<_>>().join(" UNION ALL ");
    let read = |row: &Row<'_>| {
        let source = usize::try_from(row.int(0)?).map_err(Error::internal)?;
        Ok::<_, Error>(NameRow { source, uid: row.text(1)?, name: row.text(2)? })
    };
    tx.query(&sql, &params, read).await
}

fn numbered(width: usize) -> String {
    (1..=width).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ")
}

/// Whether the caller may list the resource where it is. Everyone reads built-in roles, and themselves.
fn is_listed<T>(call: &Authorized<T>, row: &NameRow) -> bool {
    let (_, _, kind, capability) = SOURCES[row.source];
    let is_built_in = kind == kinds::ROLE && !row.uid.contains('/');
    is_built_in || row.uid == call.principal().subject() || call.holds(&row.uid, capability)
}

/// The work depends on the request and the caller's own access alone: a refusal tells nothing about who exists.
fn require_few(requested: &BTreeSet<&str>, ranges: usize) -> Result<()> {
    let roots = requested.iter().filter(|uid| !uid.contains('/')).count();
    if roots.saturating_mul(ranges) <= LOOK_UPS {
        return Ok(());
    }
    let most = LOOK_UPS / ranges.max(1);
    let why = format!("at most {most} people and organizations at once: the caller lists people of {ranges} groups");
    Err(Error::invalid_field("uids", why))
}

/// People belong to no group: callers see them who may list bindings and identities where they have a role.
async fn listed_people(tx: &mut ReadTx, rows: &[NameRow], ranges: &[UidRange]) -> Result<HashSet<String>> {
    let is_person = |row: &&NameRow| SOURCES[row.source].2 == kinds::IDENTITY && !row.uid.contains('/');
    let mut people: BTreeSet<&str> = rows.iter().filter(is_person).map(|row| row.uid.as_str()).collect();
    let mut listed = HashSet::new();
    for ranges in ranges.chunks(RANGES_AT_ONCE) {
        let Some(last) = people.last() else { break };
        let width = people.len().next_power_of_two();
        let mut params: Vec<Value<'_>> =
            people.iter().copied().chain(std::iter::repeat(*last)).take(width).map(Value::Text).collect();
        let conditions: Vec<String> = ranges.iter().map(|range| condition(&mut params, range)).collect();
        // One look-up along the index for each range, however many bindings a person has.
        let sql = format!(
            "SELECT i.uid FROM identities i WHERE i.uid IN ({}) AND ({})",
            numbered(width),
            conditions.join(" OR ")
        );
        let found: Vec<String> = tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?;
        people.retain(|person| !found.iter().any(|uid| uid == person));
        listed.extend(found);
    }
    Ok(listed)
}

fn condition<'a>(params: &mut Vec<Value<'a>>, range: &'a UidRange) -> String {
    params.extend([Value::from(&range.lower), Value::from(&range.upper)]);
    let last = params.len();
    format!(
        "EXISTS (SELECT 1 FROM role_bindings b WHERE b.identity = i.uid AND b.parent >= ${} AND b.parent < ${last})",
        last - 1
    )
}

fn capabilities<T>(call: &Authorized<T>, wanted: &[Capability]) -> Result<CapabilitySet> {
    let bit = |capability: &Capability| call.contract().capabilities().by_number(*capability as i32).map(|c| c.bit);
    let set: Option<CapabilitySet> = wanted.iter().map(bit).collect();
    set.ok_or_else(|| Error::internal("the contract lacks a capability of its own enum"))
}
