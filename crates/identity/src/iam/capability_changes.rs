//! Capabilities that identities gain and lose by changes of roles, bindings and identities.
//!
//! The comparison uses only bindings and roles that the caller may list, so it reveals nothing beyond these lists.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bowline_contract::Contract;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v2::iam as v2;
use bowline_core::{CapabilitySet, Error, Result};
use bowline_pipeline::{Authorized, Change, Grants, Narrowing, ResourceSnapshot};
use bowline_resources::kinds::{IDENTITY, ROLE, ROLE_BINDING};
use bowline_store::{ReadTx, Row, Value};
use prost::Message;

use super::role_bindings::readable_roles;

/// Bindings of one role, and of all identities concerned, that a comparison reads.
const MAX_BINDINGS: usize = 20_000;
/// Identities whose bindings one statement reads.
const IDENTITIES_AT_ONCE: usize = 256;

/// What one identity gains and loses at a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapabilityDifference {
    pub identity: String,
    /// UIDP of the group.
    pub scope: String,
    pub gained: CapabilitySet,
    pub lost: CapabilitySet,
}

/// The differences that a call makes.
#[derive(Clone, Debug, Default)]
pub struct CapabilityDifferences {
    /// By identity and scope.
    pub list: Vec<CapabilityDifference>,
    /// Whether there are more bindings than were compared.
    pub is_incomplete: bool,
}

/// A binding by what decides.
#[derive(Clone, Debug)]
struct Binding {
    uid: String,
    identity: String,
    role: String,
}

impl Binding {
    fn group(&self) -> &str {
        self.uid.rsplit_once('/').map_or("", |(group, _)| group)
    }

    fn read(row: &Row<'_>) -> Result<Binding> {
        Ok(Binding { uid: row.text(0)?, identity: row.text(1)?, role: row.text(2)? })
    }

    fn of(snapshot: &ResourceSnapshot) -> Result<Binding> {
        let binding = v2::RoleBinding::decode(snapshot.bytes.as_slice()).map_err(Error::internal)?;
        Ok(Binding { uid: binding.uid, identity: binding.identity_uid, role: binding.role_uid })
    }
}

/// What the changes replace.
#[derive(Default)]
struct Delta {
    /// Roles whose capabilities differ, with those they come to have.
    roles: HashMap<String, CapabilitySet>,
    removed: HashSet<String>,
    added: Vec<Binding>,
    /// Identities that are deleted.
    gone: HashSet<String>,
    /// Identities that the changes name.
    identities: BTreeSet<String>,
}

impl Delta {
    fn of(contract: &Contract, changes: &[Change]) -> Result<Delta> {
        let mut delta = Delta::default();
        for change in changes {
            match change.kind {
                ROLE => delta.add_role(contract, change)?,
                ROLE_BINDING => delta.add_binding(change)?,
                IDENTITY if change.after.is_none() => {
                    delta.gone.insert(change.uid.clone());
                    delta.identities.insert(change.uid.clone());
                }
                _ => {}
            }
        }
        Ok(delta)
    }

    fn add_role(&mut self, contract: &Contract, change: &Change) -> Result<()> {
        let set = |snapshot: &Option<ResourceSnapshot>| -> Result<CapabilitySet> {
            let Some(snapshot) = snapshot else { return Ok(CapabilitySet::EMPTY) };
            let role = v2::Role::decode(snapshot.bytes.as_slice()).map_err(Error::internal)?;
            let bit = |number: &i32| contract.capabilities().by_number(*number).map(|facts| facts.bit);
            Ok(role.capabilities.iter().filter_map(bit).collect())
        };
        let (before, after) = (set(&change.before)?, set(&change.after)?);
        if before != after {
            self.roles.insert(change.uid.clone(), after);
        }
        Ok(())
    }

    fn add_binding(&mut self, change: &Change) -> Result<()> {
        if let Some(before) = &change.before {
            self.identities.insert(Binding::of(before)?.identity);
            self.removed.insert(change.uid.clone());
        }
        if let Some(after) = &change.after {
            let binding = Binding::of(after)?;
            self.identities.insert(binding.identity.clone());
            self.added.push(binding);
        }
        Ok(())
    }

    /// Whether the binding gives other capabilities, or none, after the changes.
    fn touches(&self, binding: &Binding) -> bool {
        self.removed.contains(&binding.uid)
            || self.roles.contains_key(&binding.role)
            || self.gone.contains(&binding.identity)
    }
}

/// The capabilities that identities would gain and lose by changes that were not committed.
///
/// # Errors
/// The storage refuses.
pub async fn capability_differences<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    changes: &[Change],
) -> Result<CapabilityDifferences> {
    let mut delta = Delta::of(call.contract(), changes)?;
    let mut is_incomplete = false;
    for role in delta.roles.keys().cloned().collect::<Vec<_>>() {
        is_incomplete |= add_bound(tx, &role, &mut delta.identities).await?;
    }
    let identities: Vec<String> = delta.identities.iter().cloned().collect();
    let mut stored = Vec::new();
    for chunk in identities.chunks(IDENTITIES_AT_ONCE) {
        if stored.len() > MAX_BINDINGS {
            is_incomplete = true;
            break;
        }
        stored.extend(bindings_of(tx, chunk).await?);
    }
    is_incomplete |= stored.len() > MAX_BINDINGS;
    let known = stored.iter().chain(&delta.added);
    let roles = readable_roles(tx, call, known.map(|binding| binding.role.as_str())).await?;
    let roles: HashMap<&str, CapabilitySet> =
        roles.iter().map(|(uid, role)| (uid.as_str(), role.capabilities)).collect();
    let is_visible = |binding: &&Binding| {
        roles.contains_key(binding.role.as_str()) && call.holds(binding.group(), Capability::CapIamRoleBindingsList)
    };
    let mut by_identity: BTreeMap<&str, (Vec<&Binding>, Vec<&Binding>)> = BTreeMap::new();
    for binding in stored.iter().filter(is_visible) {
        by_identity.entry(&binding.identity).or_default().0.push(binding);
    }
    for binding in delta.added.iter().filter(is_visible) {
        by_identity.entry(&binding.identity).or_default().1.push(binding);
    }
    let differences = by_identity
        .into_iter()
        .flat_map(|(identity, (stored, added))| difference(&delta, &roles, identity, &stored, &added));
    Ok(CapabilityDifferences { list: differences.collect(), is_incomplete })
}

/// What one identity gains and loses, by the bindings it has and those it would get.
fn difference(
    delta: &Delta,
    roles: &HashMap<&str, CapabilitySet>,
    identity: &str,
    stored: &[&Binding],
    added: &[&Binding],
) -> Vec<CapabilityDifference> {
    let now = |role: &str| roles.get(role).copied().unwrap_or(CapabilitySet::EMPTY);
    let then = |role: &str| delta.roles.get(role).copied().unwrap_or_else(|| now(role));
    let before = stored.iter().map(|binding| (binding.group().to_owned(), now(&binding.role)));
    let stays = |binding: &&&Binding| !delta.removed.contains(&binding.uid) && !delta.gone.contains(&binding.identity);
    let after = stored.iter().filter(stays).chain(added);
    let after = after.map(|binding| (binding.group().to_owned(), then(&binding.role)));
    let before = Grants::from_bindings(before, Narrowing::default());
    let after = Grants::from_bindings(after, Narrowing::default());
    let touched = stored.iter().filter(|binding| delta.touches(binding)).chain(added);
    let scopes: BTreeSet<&str> = touched.map(|binding| binding.group()).collect();
    let compare = |scope: &str| {
        let (before, after) = (before.at(scope), after.at(scope));
        let (gained, lost) = (after.difference(&before), before.difference(&after));
        let is_same = gained.is_empty() && lost.is_empty();
        (!is_same).then(|| CapabilityDifference { identity: identity.into(), scope: scope.into(), gained, lost })
    };
    scopes.into_iter().filter_map(compare).collect()
}

/// Adds the identities that have the role; true if there are more.
async fn add_bound(tx: &mut ReadTx, role: &str, identities: &mut BTreeSet<String>) -> Result<bool> {
    let sql = "SELECT identity FROM role_bindings WHERE role = $1 ORDER BY uid LIMIT $2";
    let params = [Value::from(role), Value::Int(MAX_BINDINGS as i64 + 1)];
    let bound = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    let is_more = bound.len() > MAX_BINDINGS;
    identities.extend(bound.into_iter().take(MAX_BINDINGS));
    Ok(is_more)
}

/// The bindings of these identities.
async fn bindings_of(tx: &mut ReadTx, identities: &[String]) -> Result<Vec<Binding>> {
    let Some(last) = identities.last() else { return Ok(Vec::new()) };
    // A few widths instead of any number, so that few texts fill the statement caches.
    let width = identities.len().next_power_of_two();
    let placeholders: Vec<String> = (1..=width).map(|n| format!("${n}")).collect();
    let sql = format!(
        "SELECT uid, identity, role FROM role_bindings WHERE identity IN ({}) ORDER BY identity, role, parent LIMIT ${}",
        placeholders.join(", "),
        width + 1
    );
    let padded = identities.iter().chain(std::iter::repeat(last)).take(width);
    let mut params: Vec<Value<'_>> = padded.map(Value::from).collect();
    params.push(Value::Int(MAX_BINDINGS as i64 + 1));
    tx.query(&sql, &params, Binding::read).await
}
