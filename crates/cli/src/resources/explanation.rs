//! A decision about access for people.

use bowline_contract::{BuiltInRole, Contract};
use bowline_terminal::Table;
use serde_json::Value;

use super::list::text;
use super::uidp_names::UidpNames;

/// The decision, the bindings that were looked at, and who can grant what is missing: a line each.
pub(super) fn table(contract: &Contract, explanation: &Value, names: &UidpNames) -> Table {
    let mut table = Table::new(&["field", "value"]);
    for (head, path) in [("allowed", "allowed"), ("why", "summary"), ("needed", "capabilities"), ("missing", "missing")]
    {
        push(&mut table, head, text(explanation, path));
    }
    push(&mut table, "in roles", roles_with(contract, explanation));
    for member in ["identity", "scope"] {
        push(&mut table, member, names.path(&text(explanation, member)));
    }
    for step in elements(explanation, "steps") {
        push(&mut table, &word(step, "outcome", "ACCESS_OUTCOME_"), binding(step));
    }
    if explanation.get("moreSteps") == Some(&Value::Bool(true)) {
        push(&mut table, "more", "there are more bindings than these".into());
    }
    for grantor in elements(explanation, "grantors") {
        push(&mut table, "can grant", holder(grantor, names));
    }
    table
}

/// The UIDPs that the table shows by name.
pub(super) fn uidps(explanation: &Value) -> Vec<String> {
    let groups = elements(explanation, "grantors").map(|grantor| text(grantor, "group"));
    ["identity", "scope"].into_iter().map(|member| text(explanation, member)).chain(groups).collect()
}

/// The built-in roles that have all missing capabilities.
fn roles_with(contract: &Contract, explanation: &Value) -> String {
    let missing: Vec<&str> = elements(explanation, "missing").filter_map(Value::as_str).collect();
    if missing.is_empty() {
        return String::new();
    }
    let has_all = |role: &&BuiltInRole| {
        let names = contract.capabilities().names(&role.capabilities);
        missing.iter().all(|name| names.contains(name))
    };
    let roles = contract.built_in_roles().iter().filter(has_all).map(|role| role.name.as_str());
    roles.collect::<Vec<_>>().join(",")
}

/// Adds a line, unless it says nothing.
fn push(table: &mut Table, head: &str, value: String) {
    if !value.is_empty() {
        table.push([head.to_owned(), value]);
    }
}

fn elements<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// A value of an enumeration without its prefix.
fn word(value: &Value, name: &str, prefix: &str) -> String {
    let text = text(value, name);
    text.strip_prefix(prefix).unwrap_or(&text).to_lowercase().replace('_', " ")
}

/// A role and where it is bound, as far as the reader may list them.
fn binding(step: &Value) -> String {
    let (role, group) = (named(step, "roleName", "role"), named(step, "groupName", "group"));
    let gives = text(step, "gives");
    let gives = if gives.is_empty() { gives } else { format!(" ({gives})") };
    if step.get("bySession") == Some(&Value::Bool(true)) {
        return format!("role {role} of the session{gives}");
    }
    if group.is_empty() {
        return format!("role bindings that you may not list{gives}");
    }
    format!("role {role} at {group}{gives}")
}

/// An identity that can grant, and by which role.
fn holder(grantor: &Value, names: &UidpNames) -> String {
    let (who, email) = (named(grantor, "name", "identity"), text(grantor, "email"));
    let email = if email.is_empty() { email } else { format!(" <{email}>") };
    format!("{who}{email}, role {} at {}", named(grantor, "roleName", "role"), names.path(&text(grantor, "group")))
}

/// A name, or the UIDP where the reader sees no name.
fn named(value: &Value, name: &str, uidp: &str) -> String {
    let text_of_name = text(value, name);
    if text_of_name.is_empty() { text(value, uidp) } else { text_of_name }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_decision_is_read_from_the_top() {
        let explanation = json!({
            "allowed": false, "summary": "No binding gives it.", "missing": ["groups.create"], "scope": "ab",
            "steps": [
                {"outcome": "ACCESS_OUTCOME_ROLE_LACKS", "roleName": "viewer", "group": "ab"},
                {"outcome": "ACCESS_OUTCOME_GIVES", "gives": ["groups.list"]},
                {"outcome": "ACCESS_OUTCOME_GIVES", "role": "r", "bySession": true},
            ],
            "moreSteps": true,
            "grantors": [{"name": "Ada", "email": "ada@example.com", "group": "ab", "roleName": "owner"}],
        });
        let expected = "FIELD\tVALUE\nallowed\tfalse\nwhy\tNo binding gives it.\nmissing\tgroups.create\nin roles\towner,registry.push\nscope\tab\n\
            role lacks\trole viewer at ab\ngives\trole bindings that you may not list (groups.list)\n\
            gives\trole r of the session\nmore\tthere are more bindings than these\n\
            can grant\tAda <ada@example.com>, role owner at ab\n";
        let table = table(&Contract::load(), &explanation, &UidpNames::default());
        assert_eq!(table.text(), expected);
    }
}
