//! What bindings refer to, read for a whole page at once and only as far as the caller may read it.

use std::collections::{BTreeSet, HashMap};

use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_core::{Micros, Result};
use bowline_pipeline::Authorized;
use bowline_resources::list::{Listed, timestamp};
use bowline_store::{ReadTx, Row, Value};

use super::BindingRow;
use crate::iam::groups::{self, GroupRow};
use crate::iam::roles::{self, RoleRow};

/// What is known of the identities, roles and groups of some bindings.
pub(crate) struct References {
    identities: HashMap<String, IdentityFacts>,
    roles: HashMap<String, RoleRow>,
    groups: HashMap<String, GroupRow>,
}

/// What a binding shows of its identity.
struct IdentityFacts {
    uid: String,
    name: String,
    description: String,
    email: String,
    email_unverified: String,
    issuer: String,
    subject: String,
    expires_at: Option<Micros>,
    deactivated: bool,
}

const IDENTITY_COLUMNS: &str =
    "uid, name, description, email, email_unverified, issuer, subject, expires_at, deactivated";

impl IdentityFacts {
    fn read(row: &Row<'_>) -> Result<IdentityFacts> {
        Ok(IdentityFacts {
            uid: row.text(0)?,
            name: row.text(1)?,
            description: row.text(2)?,
            email: row.text(3)?,
            email_unverified: row.text(4)?,
            issuer: row.text(5)?,
            subject: row.text(6)?,
            expires_at: row.opt_int(7)?,
            deactivated: row.bool(8)?,
        })
    }
}

/// Whether the caller may read who has the role: themselves, identities that they may list, and people
/// that are bound where they may list identities.
fn reads_identity<T>(call: &Authorized<T>, row: &BindingRow) -> bool {
    reads_identity_at(call, &row.identity, row.group())
}

/// The same for an identity that is bound at the group.
pub(crate) fn reads_identity_at<T>(call: &Authorized<T>, identity: &str, group: &str) -> bool {
    let is_person = !identity.contains('/');
    identity == call.principal().subject()
        || call.holds(identity, Capability::CapIamIdentityList)
        || is_person && call.holds(group, Capability::CapIamIdentityList)
}

fn reads_role<T>(call: &Authorized<T>, row: &BindingRow) -> bool {
    may_read_role(call, &row.role)
}

/// Whether the caller may read the role: everyone reads the built-in ones.
pub(crate) fn may_read_role<T>(call: &Authorized<T>, role: &str) -> bool {
    !role.contains('/') || call.holds(role, Capability::CapIamRolesList)
}

/// Those of the roles that exist and that the caller may read, by UIDP.
pub(crate) async fn readable_roles<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    uids: impl Iterator<Item = &str>,
) -> Result<HashMap<String, RoleRow>> {
    let uids: BTreeSet<&str> = uids.filter(|uid| may_read_role(call, uid)).collect();
    let rows = fetch(tx, roles::TABLE.name, roles::TABLE.columns, &uids, RoleRow::read).await?;
    Ok(rows.into_iter().map(|row| (row.uid.as_str().to_owned(), row)).collect())
}

fn reads_group<T>(call: &Authorized<T>, row: &BindingRow) -> bool {
    call.holds(row.group(), Capability::CapIamGroupsList)
}

impl References {
    pub(crate) async fn load<T>(tx: &mut ReadTx, call: &Authorized<T>, rows: &[BindingRow]) -> Result<References> {
        let readable = |reads: fn(&Authorized<T>, &BindingRow) -> bool, uid: fn(&BindingRow) -> &str| {
            rows.iter().filter(|row| reads(call, row)).map(uid).collect::<BTreeSet<&str>>()
        };
        let identities = readable(reads_identity, |row| &row.identity);
        let roles = readable(reads_role, |row| &row.role);
        let groups = readable(reads_group, BindingRow::group);
        let identities = fetch(tx, "identities", IDENTITY_COLUMNS, &identities, IdentityFacts::read).await?;
        let roles = fetch(tx, roles::TABLE.name, roles::TABLE.columns, &roles, RoleRow::read).await?;
        let groups = fetch(tx, groups::TABLE.name, groups::TABLE.columns, &groups, GroupRow::read).await?;
        Ok(References {
            identities: identities.into_iter().map(|facts| (facts.uid.clone(), facts)).collect(),
            roles: roles.into_iter().map(|row| (row.uid.as_str().to_owned(), row)).collect(),
            groups: groups.into_iter().map(|row| (row.uid.as_str().to_owned(), row)).collect(),
        })
    }

    /// The facts of the identity, if this binding may show them: another binding of the page may where this one may not.
    fn identity<T>(&self, call: &Authorized<T>, row: &BindingRow) -> Option<&IdentityFacts> {
        self.identities.get(&row.identity).filter(|_| reads_identity(call, row))
    }

    pub(crate) fn to_v2<T>(&self, call: &Authorized<T>, row: &BindingRow) -> v2::RoleBinding {
        let mut binding = row.to_v2();
        if let Some(facts) = self.identity(call, row) {
            binding.identity = Some(v2::RoleBindingIdentity {
                uid: facts.uid.clone(),
                name: facts.name.clone(),
                description: facts.description.clone(),
                subject: facts.subject.clone(),
                issuer: facts.issuer.clone(),
                email: facts.email.clone(),
            });
        }
        if let Some(role) = self.roles.get(&row.role) {
            binding.role = Some(v2::RoleBindingRole {
                uid: row.role.clone(),
                name: role.name.clone(),
                description: role.description.clone(),
            });
        }
        if let Some(group) = self.groups.get(row.group()) {
            binding.group = Some(v2::RoleBindingGroup {
                uid: row.group().into(),
                name: group.name.clone(),
                description: group.description.clone(),
            });
        }
        binding
    }

    /// Who has which role where, as explanations list it: what the caller may not list is empty.
    pub(crate) fn to_entry<T>(&self, call: &Authorized<T>, row: &BindingRow) -> own::AccessEntry {
        let mut entry = own::AccessEntry {
            identity: row.identity.clone(),
            group: row.group().into(),
            create_time: timestamp(row.created_at),
            ..own::AccessEntry::default()
        };
        if call.holds(row.group(), Capability::CapIamRoleBindingsList) {
            entry.binding = row.uid.as_str().into();
        }
        if let Some(facts) = self.identity(call, row) {
            entry.identity_name.clone_from(&facts.name);
            entry.email.clone_from(&facts.email);
            entry.expire_time = facts.expires_at.and_then(timestamp);
            entry.inactive = facts.deactivated || facts.expires_at.is_some_and(|end| call.now() >= end);
        }
        if let Some(role) = self.roles.get(&row.role) {
            entry.role.clone_from(&row.role);
            entry.role_name.clone_from(&role.name);
        }
        if let Some(group) = self.groups.get(row.group()) {
            entry.group_name.clone_from(&group.name);
        }
        entry
    }

    pub(crate) fn to_v1<T>(&self, call: &Authorized<T>, row: &BindingRow) -> v1::role_binding_list::Binding {
        let group = self.groups.get(row.group()).map(GroupRow::to_v1);
        let role = self.roles.get(&row.role).map(|role| role.to_v1(call.contract()));
        let mut binding = v1::role_binding_list::Binding {
            id: row.uid.as_str().into(),
            group: group.or_else(|| Some(v1::Group { id: row.group().into(), ..Default::default() })),
            identity: row.identity.clone(),
            role: role.or_else(|| Some(v1::Role { id: row.role.clone(), ..Default::default() })),
            created_at: timestamp(row.created_at),
            ..Default::default()
        };
        if let Some(facts) = self.identity(call, row) {
            binding.email.clone_from(&facts.email);
            binding.email_unverified.clone_from(&facts.email_unverified);
            binding.claim_match_issuer.clone_from(&facts.issuer);
            binding.claim_match_subject.clone_from(&facts.subject);
        }
        binding
    }
}

/// Most UIDPs of one statement.
const UIDS_AT_ONCE: usize = 256;

/// The rows of these UIDPs, as far as they exist.
async fn fetch<T: Send>(
    tx: &mut ReadTx,
    table: &str,
    columns: &str,
    uids: &BTreeSet<&str>,
    read: fn(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let uids: Vec<&str> = uids.iter().copied().collect();
    let mut rows = Vec::with_capacity(uids.len());
    for chunk in uids.chunks(UIDS_AT_ONCE) {
        // A few widths instead of any number, so that few texts fill the statement caches.
        let width = chunk.len().next_power_of_two();
        let placeholders: Vec<String> = (1..=width).map(|n| format!("${n}")).collect();
        let sql = format!("SELECT {columns} FROM {table} WHERE uid IN ({})", placeholders.join(", "));
        let last = chunk[chunk.len() - 1];
        let padded = chunk.iter().copied().chain(std::iter::repeat(last));
        let params: Vec<Value<'_>> = padded.take(width).map(Value::Text).collect();
        rows.extend(tx.query(&sql, &params, read).await?);
    }
    Ok(rows)
}
