//! What has to change so that the server has what the files have.

use std::collections::{BTreeMap, BTreeSet};

use bowline_client::ClientError;
use bowline_contract::Contract;
use serde_json::Value;

use super::addresses;
use super::kinds::{self, GROUP, Kind, PathOf, REPOSITORY};
use super::matching::Item;
use super::names::Names;
use super::ownership::{Entries, hash, key};
use super::schema::{self, Difference, Members};
use super::server::{Server, Stored};
use super::spec::Secret;

/// How a plan is made.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    /// Name under which the files own objects.
    pub(super) owner: String,
    /// Whether objects are deleted that the owner has and the files do not.
    pub(super) prune: bool,
    /// Whether objects of others become the owner's.
    pub(super) take_over: bool,
    /// Whether secrets are written again, since it is unknown whether they differ.
    pub(super) write_secrets: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Update,
    Delete,
    /// Only the owner changes.
    TakeOver,
    /// Nothing changes, as far as can be known: there is a secret.
    Unknown,
}

/// A change of one object.
pub(super) struct Change {
    pub(super) action: Action,
    pub(super) kind: &'static Kind,
    /// What distinguishes the object; it is printed as [`Change::shown_label`].
    pub(super) label: String,
    pub(super) root: String,
    pub(super) uid: String,
    pub(super) parent: String,
    pub(super) name: String,
    /// The fields to write; of a deletion those that there are.
    pub(super) spec: Members,
    pub(super) differences: Vec<Difference>,
    pub(super) secrets: Vec<Secret>,
    /// Why the change is not allowed.
    pub(super) blocked: Option<String>,
}

impl Change {
    /// The label without the secret part of an address.
    pub(super) fn shown_label(&self) -> String {
        addresses::shown_label(self.kind, &self.label, &self.spec)
    }
}

/// All changes, in the order in which they are made.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) changes: Vec<Change>,
    /// Objects that are as the files have them.
    pub(super) unchanged: usize,
    /// Those of them that the owner does not own.
    pub(super) not_owned: usize,
    /// Objects of the owner in no file, which `--prune` would delete.
    pub(super) not_pruned: Vec<String>,
    /// Inventories by organization and owner: as they are, and as they will be.
    pub(super) inventories: BTreeMap<(String, String), (Entries, Entries)>,
}

impl Plan {
    /// Whether an apply would do anything.
    pub(super) fn has_changes(&self) -> bool {
        self.changes.iter().any(|change| change.action != Action::Unknown)
    }

    /// Whether an inventory is not as it should be: a run ended before it recorded what it did, or an object is gone.
    pub(super) fn has_stale_inventory(&self) -> bool {
        self.inventories.values().any(|(before, after)| before != after)
    }

    /// The changes with an action.
    pub(super) fn count(&self, action: Action) -> usize {
        self.changes.iter().filter(|change| change.action == action).count()
    }
}

/// Makes the plan.
///
/// # Errors
/// A defect: the contract has no message of a kind.
pub(super) fn plan(
    contract: &Contract,
    items: &[Item<'_>],
    server: &Server,
    names: &Names,
    manner: &Manner,
) -> Result<Plan, ClientError> {
    let mut planner = Planner { contract, server, names, manner, plan: Plan::default() };
    for item in items {
        planner.item(item)?;
    }
    planner.order_repositories();
    let mut deletions = planner.deletions(items)?;
    if manner.prune {
        planner.plan.changes.append(&mut deletions);
    } else {
        planner.plan.not_pruned = deletions.iter().map(Change::shown_label).collect();
    }
    planner.inventories(items);
    Ok(planner.plan)
}

struct Planner<'a> {
    contract: &'a Contract,
    server: &'a Server,
    names: &'a Names,
    manner: &'a Manner,
    plan: Plan,
}

impl Planner<'_> {
    fn owner(&self, root: &str, kind: &'static Kind, label: &str, uid: &str) -> Option<&str> {
        self.server.inventories.get(root)?.owner(kind.name, label, uid)
    }

    fn item(&mut self, item: &Item<'_>) -> Result<(), ClientError> {
        let kind = item.document.kind;
        let message = schema::message(self.contract, kind)?;
        let with_name = |spec: &Members, name: &str| {
            let mut spec = spec.clone();
            if kind.is_named() {
                spec.insert("name".into(), name.into());
            }
            spec
        };
        let nothing = Members::new();
        let old = item.stored.map_or(nothing, |stored| with_name(&stored.spec, &stored.name));
        let new = with_name(&item.spec, item.name());
        let mut differences = schema::differences(&message, &old, &new);
        let secrets = &item.document.spec.secrets;
        differences.extend(secrets.iter().filter_map(|secret| self.secret(item, secret)));
        let (action, blocked) = match item.stored {
            None => (Action::Create, None),
            Some(stored) => match self.verdict(item, stored, &differences) {
                Some(decided) => decided,
                None => return Ok(()),
            },
        };
        if action == Action::Create && kind.is_named() {
            // The path has the name already.
            differences.retain(|difference| difference.path != "name");
        }
        self.plan.changes.push(Change {
            action,
            kind,
            label: item.label.clone(),
            root: item.root.clone(),
            uid: item.uid.clone(),
            parent: item.parent.clone(),
            name: item.name().to_owned(),
            spec: item.spec.clone(),
            differences,
            secrets: secrets.clone(),
            blocked,
        });
        Ok(())
    }

    /// A secret as a difference: where the server is known to have none, or where all are written again.
    fn secret(&self, item: &Item<'_>, secret: &Secret) -> Option<Difference> {
        let is_absent = |stored: &Stored| stored.secrets.get(&secret.path) == Some(&false);
        let is_written = item.stored.is_none_or(is_absent) || self.manner.write_secrets;
        let old = item.stored.filter(|stored| !is_absent(stored)).map(|_| Value::from("unknown"));
        let (path, file) = (secret.path.clone(), Some(secret.file.clone()));
        is_written.then_some(Difference { path, old, new: None, is_immutable: false, file })
    }

    /// What happens to an object that exists; absent for nothing.
    fn verdict(
        &mut self,
        item: &Item<'_>,
        stored: &Stored,
        differences: &[Difference],
    ) -> Option<(Action, Option<String>)> {
        let owner = self.owner(&item.root, stored.kind, &item.label, &stored.uid).map(String::from);
        let is_own = owner.as_deref() == Some(&self.manner.owner);
        if differences.is_empty() {
            if !is_own && self.manner.take_over {
                return Some((Action::TakeOver, None));
            }
            self.plan.unchanged += 1;
            self.plan.not_owned += usize::from(!is_own);
            let has_secret = !item.document.spec.secrets.is_empty();
            return has_secret.then_some((Action::Unknown, None));
        }
        let fixed = differences.iter().find(|difference| difference.is_immutable).map(|found| found.path.clone());
        let fixed = fixed.or_else(|| stored.kind.update.is_none().then(|| "spec".to_owned()));
        let blocked = match (fixed, owner) {
            (Some(path), _) => Some(format!("{path} cannot be changed; delete the object first")),
            (None, _) if is_own || self.manner.take_over => None,
            (None, Some(owner)) => Some(format!("owned by {owner}")),
            (None, None) => Some("not owned by these files".to_owned()),
        };
        Some((Action::Update, blocked))
    }

    /// Puts repositories after those that they are synchronized from.
    fn order_repositories(&mut self) {
        let sources: BTreeMap<String, String> = self
            .plan
            .changes
            .iter()
            .filter(|change| change.kind.name == REPOSITORY)
            .filter_map(|change| Some((change.uid.clone(), source(&change.spec)?)))
            .collect();
        let depth = |uid: &str| {
            let mut at = uid;
            // A cycle ends, too; the server refuses it.
            for depth in 0..=sources.len() {
                match sources.get(at) {
                    Some(source) => at = source,
                    None => return depth,
                }
            }
            sources.len()
        };
        let key = |change: &Change| {
            let depth = if change.kind.name == REPOSITORY { depth(&change.uid) } else { 0 };
            (kinds::rank(change.kind), depth)
        };
        self.plan.changes.sort_by_key(key);
    }

    /// Deletions of the owner's objects that no document describes, in their order.
    fn deletions(&self, items: &[Item<'_>]) -> Result<Vec<Change>, ClientError> {
        let described: BTreeSet<(&str, &str)> =
            items.iter().map(|item| (item.document.kind.name, item.uid.as_str())).collect();
        // An organization that documents only refer to is not theirs.
        let roots: BTreeSet<&str> = items.iter().map(|item| item.root.as_str()).collect();
        let mut deleted = BTreeSet::new();
        let mut deletions = Vec::new();
        for object in &self.server.objects {
            let root = object.uid.split('/').next().unwrap_or_default();
            // An organization is never deleted: what is outside of the files may be in it.
            let is_organization = object.uid == root && object.kind.name == GROUP;
            if is_organization || !roots.contains(root) || described.contains(&(object.kind.name, object.uid.as_str()))
            {
                continue;
            }
            let label = self.label(object)?;
            // A label that an interrupted run had planned may be that of an object which someone else made since.
            let owner =
                self.server.inventories.get(root).and_then(|known| known.owner_of_uid(object.kind.name, &object.uid));
            if owner != Some(&self.manner.owner) {
                continue;
            }
            deleted.insert((object.kind.name, object.uid.clone()));
            deletions.push(Change {
                action: Action::Delete,
                kind: object.kind,
                label,
                root: root.to_owned(),
                uid: object.uid.clone(),
                parent: object.parent.clone(),
                name: object.name.clone(),
                spec: object.spec.clone(),
                differences: Vec::new(),
                secrets: Vec::new(),
                blocked: None,
            });
        }
        // Settings go along with their subject.
        deletions.retain(|change| {
            change.kind.path != PathOf::Subject || !deleted.contains(&(change.kind.within, change.parent.clone()))
        });
        let depth = |change: &Change| change.uid.matches('/').count();
        deletions.sort_by_key(|change| std::cmp::Reverse((kinds::rank(change.kind), depth(change))));
        Ok(deletions)
    }

    fn label(&self, object: &Stored) -> Result<String, ClientError> {
        let message = schema::message(self.contract, object.kind)?;
        let path = self.names.path_of(object.kind, &object.uid, &object.parent);
        Ok(self.names.label(object.kind, &message, &path, &object.spec))
    }

    /// Inventories with what the changes add and take away.
    fn inventories(&mut self, items: &[Item<'_>]) {
        let owner = &self.manner.owner;
        let existing: BTreeSet<(&str, String)> =
            self.server.objects.iter().map(|object| (object.kind.name, hash(&object.uid))).collect();
        let roots: BTreeSet<&String> = items.iter().map(|item| &item.root).collect();
        for root in roots {
            let inventories = self.server.inventories.get(root);
            let before = inventories.map(|known| known.of(owner)).unwrap_or_default();
            // What is gone from the server is forgotten, and what an interrupted run had planned, unless a document has it.
            let mut after: Entries = before.clone();
            after.retain(|(kind, _), uid| existing.contains(&(*kind, uid.clone())));
            let mut labels: BTreeMap<(&str, String), (&'static str, String)> =
                after.iter().map(|(entry, uid)| ((entry.0, uid.clone()), entry.clone())).collect();
            for item in items.iter().filter(|item| item.root == *root && self.will_own(item)) {
                let kind = item.document.kind.name;
                let uid = item.stored.map(|stored| hash(&stored.uid)).unwrap_or_default();
                // An object that was renamed has another label now.
                if let Some(former) = labels.remove(&(kind, uid.clone())).filter(|_| !uid.is_empty()) {
                    after.remove(&former);
                }
                after.insert(key(kind, &item.label), uid);
            }
            self.plan.inventories.insert((root.clone(), owner.clone()), (before, after));
        }
        self.leave_others(items);
    }

    /// Whether the owner has a document's object, or will have it.
    fn will_own(&self, item: &Item<'_>) -> bool {
        let Some(stored) = item.stored else { return true };
        self.manner.take_over
            || self.owner(&item.root, stored.kind, &item.label, &stored.uid) == Some(self.manner.owner.as_str())
    }

    /// Takes objects that are taken over out of the inventories of their owners.
    fn leave_others(&mut self, items: &[Item<'_>]) {
        for item in items.iter().filter(|_| self.manner.take_over) {
            let Some(stored) = item.stored else { continue };
            let owner = self.owner(&item.root, stored.kind, &item.label, &stored.uid).map(String::from);
            let Some(owner) = owner.filter(|owner| *owner != self.manner.owner) else { continue };
            let Some(inventories) = self.server.inventories.get(&item.root) else { continue };
            let of_other = inventories.of(&owner);
            let inventory = self.plan.inventories.entry((item.root.clone(), owner));
            let (_, after) = inventory.or_insert_with(|| (of_other.clone(), of_other.clone()));
            let uid = hash(&stored.uid);
            after.retain(|(kind, label), known| {
                *kind != stored.kind.name || (*known != uid && *label != hash(&item.label))
            });
        }
    }
}

/// The repository that one is synchronized from.
fn source(spec: &Members) -> Option<String> {
    spec.get("sync_config")?.get("source")?.as_str().map(String::from)
}
