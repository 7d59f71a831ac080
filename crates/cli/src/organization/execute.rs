//! Makes the changes of a plan, one call each, and records who owns what.

use std::collections::BTreeMap;

use bowline_client::{Api, ClientError};
use bowline_contract::Contract;
use bowline_terminal::note;
use serde_json::Value;

use super::matching::{is_stand_in, settled};
use super::ownership::{self, Entries, hash, key};
use super::plan::{Action, Change, Plan};
use super::requests::{self, Written};
use super::schema::Members;
use super::server::text;
use crate::dynamic;
use crate::error::CliError;

/// Most changes that an error names.
const SHOWN: usize = 20;

/// Makes all changes.
///
/// # Errors
/// A call failed: the error names it, and what was not done because of it. Changes before it stay.
pub(super) async fn execute(api: &Api, contract: &Contract, plan: &Plan) -> Result<(), CliError> {
    let mut execution = Execution { api, contract, plan, created: BTreeMap::new(), written: BTreeMap::new() };
    let changes: Vec<&Change> = plan.changes.iter().filter(|change| change.action != Action::Unknown).collect();
    let mut done = Vec::new();
    let mut is_refused = true;
    let mut failure = execution.record_plan().await.err().map(|error| ("the record of owners".to_owned(), error));
    for change in &changes {
        if failure.is_some() {
            break;
        }
        match execution.change(change).await {
            Ok(()) => {
                note(&format!("{} {}\n", past(change.action), change.shown_label()));
                done.push(*change);
            }
            Err(error) => {
                is_refused = matches!(error, ClientError::Refused { .. });
                failure = Some((change.shown_label(), error));
            }
        }
    }
    // A claim stays only for a change of which it is unknown whether it was made.
    let unknown = changes.get(done.len()).filter(|_| !is_refused).copied();
    let is_recorded = !execution.written.is_empty() || failure.is_none();
    let recorded = if is_recorded { execution.record_result(&done, unknown).await } else { Ok(()) };
    let failure = failure.or_else(|| recorded.err().map(|error| ("the record of owners".to_owned(), error)));
    let Some((label, cause)) = failure else { return Ok(()) };
    if done.is_empty() && !changes.is_empty() {
        note(&format!("nothing was changed: {label} failed\n"));
        return Err(cause.into());
    }
    let left: Vec<String> = changes[done.len()..].iter().map(|change| change.shown_label()).collect();
    Err(CliError::Partial {
        done: done.len(),
        planned: changes.len(),
        left: remainder(&left),
        cause: format!("{label}: {cause}"),
    })
}

/// What was not made, as the end of an error; empty if nothing is left.
fn remainder(left: &[String]) -> String {
    let more = if left.len() > SHOWN { format!(", and {} more", left.len() - SHOWN) } else { String::new() };
    let shown: Vec<&str> = left.iter().take(SHOWN).map(String::as_str).collect();
    if left.is_empty() { String::new() } else { format!("\nnot made: {}{more}", shown.join(", ")) }
}

fn past(action: Action) -> &'static str {
    match action {
        Action::Create => "created",
        Action::Update => "updated",
        Action::Delete => "deleted",
        Action::TakeOver => "took over",
        Action::Unknown => "left",
    }
}

struct Execution<'a> {
    api: &'a Api,
    contract: &'a Contract,
    plan: &'a Plan,
    /// UIDPs of created objects, by their stand-ins.
    created: BTreeMap<String, String>,
    /// Inventories as they were written last, by organization and owner.
    written: BTreeMap<(String, String), Entries>,
}

impl Execution<'_> {
    /// The UIDP of an object that may have been created.
    fn uid(&self, uid: &str) -> String {
        self.created.get(uid).cloned().unwrap_or_else(|| uid.to_owned())
    }

    /// Records what the plan adds, before it is there: an interrupted run can continue then.
    async fn record_plan(&mut self) -> Result<(), ClientError> {
        let plan = self.plan;
        for (key, (before, after)) in &plan.inventories {
            if !is_stand_in(&key.0) && after.keys().any(|entry| !before.contains_key(entry)) {
                self.write(key, before, after).await?;
            }
        }
        Ok(())
    }

    /// The same for an organization that was just created.
    async fn record_organization(&mut self, stand_in: &str) -> Result<(), ClientError> {
        let plan = self.plan;
        for (key, (before, after)) in plan.inventories.iter().filter(|(key, _)| key.0 == stand_in) {
            self.write(key, before, after).await?;
        }
        Ok(())
    }

    /// Records the UIDPs of what was created, and forgets what was deleted and what was not created. `unknown` is the change
    /// of which it is not known whether it was made.
    async fn record_result(&mut self, done: &[&Change], unknown: Option<&Change>) -> Result<(), ClientError> {
        let plan = self.plan;
        let is_made = |change: &Change| done.iter().copied().chain(unknown).any(|made| std::ptr::eq(made, change));
        for (inventory, (before, after)) in &plan.inventories {
            if is_stand_in(&inventory.0) && !self.created.contains_key(&inventory.0) {
                continue;
            }
            let mut entries = after.clone();
            let planned = plan.changes.iter().filter(|change| change.action == Action::Create);
            for change in planned.filter(|change| change.root == inventory.0 && !is_made(change)) {
                entries.remove(&key(change.kind.name, &change.label));
            }
            for change in done.iter().filter(|change| change.root == inventory.0) {
                let entry = key(change.kind.name, &change.label);
                match change.action {
                    Action::Create => {
                        if let Some(uid) = entries.get_mut(&entry) {
                            *uid = hash(&self.uid(&change.uid));
                        }
                    }
                    Action::Delete => {
                        let uid = hash(&change.uid);
                        entries.retain(|(kind, label), known| *kind != entry.0 || (*label != entry.1 && *known != uid));
                    }
                    Action::Update | Action::TakeOver | Action::Unknown => {}
                }
            }
            let written = self.written.get(inventory).unwrap_or(before).clone();
            if entries != written {
                self.write(inventory, &written, &entries).await?;
            }
        }
        Ok(())
    }

    async fn write(
        &mut self,
        inventory: &(String, String),
        before: &Entries,
        after: &Entries,
    ) -> Result<(), ClientError> {
        let root = self.uid(&inventory.0);
        ownership::write(self.api, self.contract, &root, &inventory.1, (before, after)).await?;
        self.written.insert(inventory.clone(), after.clone());
        Ok(())
    }

    async fn change(&mut self, change: &Change) -> Result<(), ClientError> {
        let (uid, parent) = (self.uid(&change.uid), self.uid(&change.parent));
        let mut spec = Value::Object(change.spec.clone());
        settled(&mut spec, &self.created);
        let spec = spec.as_object().cloned().unwrap_or_default();
        let (kind, name, secrets) = (change.kind, change.name.as_str(), change.secrets.as_slice());
        let written = Written { kind, parent: &parent, name, spec: &spec, secrets };
        let call = match change.action {
            Action::Create => requests::create(self.contract, written)?,
            Action::Update => requests::update(self.contract, written, &uid, &changed_fields(change))?,
            Action::Delete => requests::delete(self.contract, kind, &uid, &spec)?,
            Action::TakeOver | Action::Unknown => return Ok(()),
        };
        let response = dynamic::call_sparse(self.api, call.method, &call.request).await?;
        if change.action == Action::Create && is_stand_in(&change.uid) {
            let members: Members = response.as_object().cloned().unwrap_or_default();
            self.created.insert(change.uid.clone(), text(&members, kind.uid_field()));
            if change.uid == change.root {
                self.record_organization(&change.uid).await?;
            }
        }
        Ok(())
    }
}

/// Fields of the message that the differences are in.
fn changed_fields(change: &Change) -> Vec<&str> {
    change.differences.iter().filter_map(|difference| difference.path.split('.').next()).collect()
}
