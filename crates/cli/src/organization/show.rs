//! A plan for people, and for programs.

use bowline_client::ClientError;
use bowline_contract::Contract;
use serde_json::{Value, json};

use super::addresses;
use super::names::Names;
use super::plan::{Action, Change, Plan};
use super::schema::{self, Difference, Members};

/// Longest value in a plan for people, in characters.
const VALUE_CHARACTERS: usize = 120;

/// The plan as lines: a sign and a label for each change, and its fields.
///
/// # Errors
/// A defect: the contract has no message of a kind.
pub(super) fn lines(contract: &Contract, plan: &Plan, names: &Names) -> Result<String, ClientError> {
    let mut out = String::new();
    for change in &plan.changes {
        out.push_str(&format!("{} {}\n", sign(change.action), change.shown_label()));
        if let Some(why) = &change.blocked {
            out.push_str(&format!("    not allowed: {why}\n"));
        }
        for difference in named(contract, change, names)? {
            out.push_str(&format!("    {}: {}\n", difference.path, both(change.action, &difference)));
        }
        if change.action == Action::Unknown {
            for secret in &change.secrets {
                out.push_str(&format!("    {}: unknown; --write-secrets writes it again\n", secret.path));
            }
        }
    }
    for label in &plan.not_pruned {
        out.push_str(&format!("! {label}\n    owned by these files, and in none; --prune deletes it\n"));
    }
    out.push_str(&summary(plan));
    Ok(out)
}

/// Counts in one line.
pub(super) fn summary(plan: &Plan) -> String {
    let mut counts: Vec<String> = Vec::new();
    for (action, what) in [
        (Action::Create, "to create"),
        (Action::Update, "to update"),
        (Action::Delete, "to delete"),
        (Action::TakeOver, "to take over"),
    ] {
        match plan.count(action) {
            0 => {}
            count => counts.push(format!("{count} {what}")),
        }
    }
    if counts.is_empty() {
        counts.push("nothing to change".into());
    }
    let not_owned = match plan.not_owned {
        0 => String::new(),
        count => format!(" ({count} not owned by these files)"),
    };
    format!("plan: {}; {} unchanged{not_owned}\n", counts.join(", "), plan.unchanged)
}

fn sign(action: Action) -> char {
    match action {
        Action::Create => '+',
        Action::Update => '~',
        Action::Delete => '-',
        Action::TakeOver => '>',
        Action::Unknown => '?',
    }
}

/// `old -> new`; of a new object the value alone.
fn both(action: Action, difference: &Difference) -> String {
    let text = |value: &Option<Value>| value.as_ref().map_or("none".to_owned(), shortened);
    let (old, new) = match &difference.file {
        Some(file) => (if difference.old.is_some() { "unknown".into() } else { "none".into() }, format!("from {file}")),
        None => (text(&difference.old), text(&difference.new)),
    };
    if action == Action::Create { new } else { format!("{old} -> {new}") }
}

/// A value on one line.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    let count = text.chars().count();
    if count <= VALUE_CHARACTERS {
        return text;
    }
    let head: String = text.chars().take(VALUE_CHARACTERS).collect();
    format!("{head}... ({count} characters)")
}

/// Differences with paths in place of UIDPs, and without the secret part of addresses.
fn named(contract: &Contract, change: &Change, names: &Names) -> Result<Vec<Difference>, ClientError> {
    let message = schema::message(contract, change.kind)?;
    let value = |path: &str, value: &Option<Value>| {
        let Some(value) = value else { return None };
        let mut members = Members::new();
        schema::put(&mut members, path, value.clone());
        let named = Value::Object(names.named(&message, &members));
        let value = named.pointer(&format!("/{}", path.replace('.', "/"))).cloned().unwrap_or_else(|| value.clone());
        Some(addresses::shown_value(change.kind, path, value))
    };
    let differences = change.differences.iter().map(|difference| Difference {
        old: value(&difference.path, &difference.old),
        new: value(&difference.path, &difference.new),
        ..difference.clone()
    });
    Ok(differences.collect())
}

/// The plan as a document.
///
/// # Errors
/// A defect: the contract has no message of a kind.
pub(super) fn document(contract: &Contract, plan: &Plan, names: &Names) -> Result<Value, ClientError> {
    let mut changes = Vec::new();
    for change in &plan.changes {
        let fields = named(contract, change, names)?.into_iter().map(|difference| match difference.file {
            Some(file) => json!({ "path": difference.path, "fromFile": file, "unknown": difference.old.is_some() }),
            None => json!({ "path": difference.path, "old": difference.old, "new": difference.new }),
        });
        let mut document = json!({
            "action": word(change.action), "kind": change.kind.name, "object": change.shown_label(),
            "fields": fields.collect::<Vec<_>>(),
        });
        if let Some(why) = &change.blocked {
            document["notAllowed"] = why.clone().into();
        }
        if change.action == Action::Unknown {
            document["unknown"] = change.secrets.iter().map(|secret| Value::from(secret.path.clone())).collect();
        }
        changes.push(document);
    }
    Ok(json!({
        "changes": changes, "unchanged": plan.unchanged, "notOwned": plan.not_owned, "notPruned": plan.not_pruned,
    }))
}

/// The schema of the document.
pub(crate) fn document_schema() -> Value {
    let actions = [Action::Create, Action::Update, Action::Delete, Action::TakeOver, Action::Unknown].map(word);
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let count = json!({ "type": "integer", "minimum": 0 });
    let value = json!({ "description": "Absent or null where there is none." });
    let field = json!({
        "type": "object", "required": ["path"],
        "properties": {
            "path": text, "old": value, "new": value,
            "fromFile": { "type": "string", "description": "File of a secret, in place of its values." },
            "unknown": { "type": "boolean", "description": "Whether the server has a value of the secret already." },
        },
    });
    let change = json!({
        "type": "object", "required": ["action", "kind", "object", "fields"],
        "properties": {
            "action": { "type": "string", "enum": actions },
            "kind": text, "object": text, "fields": { "type": "array", "items": field },
            "notAllowed": { "type": "string", "description": "Why the change is refused." },
            "unknown": { "type": "array", "items": text, "description": "Secrets that may differ." },
        },
    });
    json!({
        "type": "object", "required": ["changes", "unchanged", "notOwned", "notPruned"],
        "properties": {
            "changes": { "type": "array", "items": change },
            "unchanged": count, "notOwned": count, "notPruned": texts,
        },
    })
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Delete => "delete",
        Action::TakeOver => "take-over",
        Action::Unknown => "unknown",
    }
}
