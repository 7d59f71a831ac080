//! What the contract says of a message's fields: which of them files have, and how two values compare.

use std::collections::BTreeMap;

use bowline_client::ClientError;
use bowline_contract::Contract;
use prost_reflect::{FieldDescriptor, Kind as Type, MessageDescriptor, Value as Reflected};
use serde_json::{Map, Value};

use super::kinds::{DEFAULTED, INHERITED, Kind, REFERENCES, WRITE_ONLY};
use crate::dynamic;

/// Members of a message in JSON.
pub(super) type Members = Map<String, Value>;

const OUTPUT_ONLY: i32 = 3;
const INPUT_ONLY: i32 = 4;
const IMMUTABLE: i32 = 5;

/// The message of a kind.
///
/// # Errors
/// A defect: the contract has no such message.
pub(super) fn message(contract: &Contract, kind: &Kind) -> Result<MessageDescriptor, ClientError> {
    let unknown = || ClientError::Usage(format!("{} is not a message of the contract", kind.message));
    contract.pool().get_message_by_name(kind.message).ok_or_else(unknown)
}

/// Fields that `spec` may have, by their JSON names.
pub(super) fn fields_of_spec(kind: &Kind, message: &MessageDescriptor) -> BTreeMap<String, FieldDescriptor> {
    let is_own = |field: &FieldDescriptor| {
        field.name() != kind.uid_field() && !(kind.is_named() && field.name() == "name") && !is_output_only(field)
    };
    message.fields().filter(is_own).map(|field| (field.json_name().to_owned(), field)).collect()
}

/// Whether only the server sets a field.
pub(super) fn is_output_only(field: &FieldDescriptor) -> bool {
    behaves(field, OUTPUT_ONLY)
}

/// Whether a field cannot be changed after the creation.
pub(super) fn is_immutable(field: &FieldDescriptor) -> bool {
    behaves(field, IMMUTABLE)
}

/// Whether a field is never returned: a secret.
pub(super) fn is_write_only(field: &FieldDescriptor) -> bool {
    behaves(field, INPUT_ONLY) || WRITE_ONLY.contains(&field.full_name())
}

/// Whether the server has a value for the field where a file has none.
pub(super) fn is_defaulted(field: &FieldDescriptor) -> bool {
    DEFAULTED.contains(&field.full_name())
}

fn behaves(field: &FieldDescriptor, behavior: i32) -> bool {
    let pool = field.parent_pool();
    let Some(extension) = pool.get_extension_by_name("google.api.field_behavior") else { return false };
    let options = field.options();
    let value = options.get_extension(&extension);
    let Reflected::List(values) = value.as_ref() else { return false };
    values.iter().any(|value| *value == Reflected::EnumNumber(behavior))
}

/// Kind of the object whose UIDP the field has.
pub(super) fn reference(field: &FieldDescriptor) -> Option<&'static str> {
    REFERENCES.iter().find(|(name, _)| *name == field.full_name()).map(|(_, kind)| *kind)
}

/// The message of a field, unless JSON has it as a text.
pub(super) fn structure(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    match field.kind() {
        Type::Message(message) if !message.full_name().starts_with("google.protobuf.") => Some(message),
        _ => None,
    }
}

/// The field of a member, by either of its names.
pub(super) fn member(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    message.get_field_by_json_name(name).or_else(|| message.get_field_by_name(name))
}

/// What files have of a resource as the server returns it.
pub(super) fn spec(kind: &Kind, message: &MessageDescriptor, resource: &Members) -> Members {
    let fields = fields_of_spec(kind, message);
    let mut spec = resource.clone();
    spec.retain(|name, _| fields.contains_key(name));
    settle(message, &mut spec);
    if kind.message.ends_with(".v2.Repo") && spec.contains_key("sync_config") {
        spec.retain(|name, _| !INHERITED.contains(&name.as_str()));
    }
    spec
}

/// Removes what only the server sets, and empty messages; sorts enumerations, whose order has no meaning.
pub(super) fn settle(message: &MessageDescriptor, members: &mut Members) {
    members.retain(|name, value| {
        let Some(field) = member(message, name) else { return true };
        if is_output_only(&field) {
            return false;
        }
        settle_value(&field, value);
        !matches!(value, Value::Object(inner) if inner.is_empty())
    });
}

fn settle_value(field: &FieldDescriptor, value: &mut Value) {
    match (structure(field), value) {
        (Some(entry), Value::Object(entries)) if field.is_map() => {
            let Some(inner) = structure(&entry.map_entry_value_field()) else { return };
            entries.values_mut().filter_map(Value::as_object_mut).for_each(|members| settle(&inner, members));
        }
        (Some(inner), Value::Object(members)) => settle(&inner, members),
        (Some(inner), Value::Array(items)) => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(|members| settle(&inner, members));
        }
        (None, Value::Array(items)) if matches!(field.kind(), Type::Enum(_)) => {
            items.sort_by_key(ToString::to_string);
            items.dedup();
        }
        _ => {}
    }
}

/// A document's members as the server would return them.
///
/// # Errors
/// A value does not fit its field.
pub(super) fn canonical(message: &MessageDescriptor, members: &Members) -> Result<Members, ClientError> {
    let wire = dynamic::encoded(message, members)?;
    let mut canonical = match dynamic::to_sparse_json(message, &wire)? {
        Value::Object(members) => members,
        _ => Members::new(),
    };
    settle(message, &mut canonical);
    Ok(canonical)
}

/// Calls a function for each text that refers to another object, with its kind and its path.
///
/// # Errors
/// Those of the function.
pub(super) fn each_reference<E>(
    message: &MessageDescriptor,
    members: &mut Members,
    prefix: &str,
    visit: &mut impl FnMut(&'static str, &str, &mut String) -> Result<(), E>,
) -> Result<(), E> {
    for (name, value) in members.iter_mut() {
        let Some(field) = member(message, name) else { continue };
        let path = format!("{prefix}{name}");
        match (reference(&field), value) {
            (Some(kind), Value::String(text)) => visit(kind, &path, text)?,
            (Some(kind), Value::Object(entries)) => {
                for (key, value) in entries.iter_mut() {
                    if let Value::String(text) = value {
                        visit(kind, &format!("{path}.{key}"), text)?;
                    }
                }
            }
            (None, Value::Object(inner)) if !field.is_map() => {
                if let Some(message) = structure(&field) {
                    each_reference(&message, inner, &format!("{path}."), visit)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Puts a value at a path of JSON names.
pub(super) fn put(members: &mut Members, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        members.insert(path.to_owned(), value);
        return;
    };
    let inner = members.entry(first.to_owned()).or_insert_with(|| Value::Object(Members::new()));
    if let Value::Object(inner) = inner {
        put(inner, rest, value);
    }
}

/// A difference between two specs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// Path of JSON names.
    pub(super) path: String,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
    /// Whether the field cannot be changed.
    pub(super) is_immutable: bool,
    /// The file with the new value of a secret; what the old one is is unknown, or it is absent.
    pub(super) file: Option<String>,
}

/// What differs between two specs, field by field. What the server fills in is compared only if the new one has it.
pub(super) fn differences(message: &MessageDescriptor, old: &Members, new: &Members) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(message, old, new, "", &mut found);
    found
}

fn compare(message: &MessageDescriptor, old: &Members, new: &Members, prefix: &str, found: &mut Vec<Difference>) {
    for field in message.fields() {
        let name = field.json_name();
        let (before, after) = (old.get(name), new.get(name));
        if before == after || (after.is_none() && is_defaulted(&field)) {
            continue;
        }
        let path = format!("{prefix}{name}");
        let inner = structure(&field).filter(|_| !field.is_list() && !field.is_map());
        let empty = Members::new();
        match (inner, before, after) {
            (Some(inner), Some(Value::Object(before)), Some(Value::Object(after))) => {
                compare(&inner, before, after, &format!("{path}."), found);
            }
            // Field by field too where one side has none of it.
            (Some(inner), Some(Value::Object(before)), None) => {
                compare(&inner, before, &empty, &format!("{path}."), found);
            }
            (Some(inner), None, Some(Value::Object(after))) => {
                compare(&inner, &empty, after, &format!("{path}."), found);
            }
            (_, before, after) => found.push(Difference {
                path,
                old: before.cloned(),
                new: after.cloned(),
                is_immutable: is_immutable(&field),
                file: None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::kinds::{KINDS, kind};
    use super::*;

    fn members(value: Value) -> Members {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn tables_name_what_the_contract_has() {
        let contract = Contract::load();
        let has_field = |name: &str| {
            let (message, field) = name.rsplit_once('.').unwrap();
            contract.pool().get_message_by_name(message).and_then(|message| message.get_field_by_name(field)).is_some()
        };
        for name in REFERENCES.iter().map(|(name, _)| name).chain(DEFAULTED).chain(WRITE_ONLY) {
            assert!(has_field(name), "{name}");
        }
        for kind in KINDS {
            let message = message(&contract, kind).unwrap();
            assert!(message.get_field_by_name(kind.uid_field()).is_some(), "{}", kind.name);
            let methods = [Some(kind.list), Some(kind.create), kind.update, kind.delete];
            for name in methods.into_iter().flatten() {
                assert!(contract.by_full_name(name).is_some(), "{name}");
            }
            let fields = fields_of_spec(kind, &message);
            assert!(kind.keys.iter().all(|key| fields.contains_key(*key)), "{}: {fields:?}", kind.name);
        }
    }

    #[test]
    fn differences_are_of_fields() {
        let contract = Contract::load();
        let identity = message(&contract, kind("Identity").unwrap()).unwrap();
        let old = members(json!({"description": "a", "claimMatch": {"issuer": "i", "subject": "s"}}));
        let new = members(json!({"claimMatch": {"issuer": "i", "subject": "t"}, "company": "c"}));
        let found = differences(&identity, &old, &new);
        let paths: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["description", "company", "claimMatch.subject"]);
        let keys = |time: Value| members(json!({"staticKeys": {"issuer": "i", "expirationTime": time}}));
        let without = members(json!({"staticKeys": {"issuer": "i"}}));
        assert!(differences(&identity, &keys(json!("2027-01-01T00:00:00Z")), &without).is_empty());
        let provider = message(&contract, kind("IdentityProvider").unwrap()).unwrap();
        let rule = |rule: &str| members(json!({"oidc": {"correlationRule": rule}}));
        assert!(differences(&provider, &rule("A"), &rule("B"))[0].is_immutable);
    }

    #[test]
    fn canonical_members_are_as_the_server_has_them() {
        let contract = Contract::load();
        let role = message(&contract, kind("Role").unwrap()).unwrap();
        let written =
            members(json!({"description": "", "capabilities": ["CAP_IAM_ROLES_LIST", "CAP_IAM_GROUPS_LIST"]}));
        let expected = json!({"capabilities": ["CAP_IAM_GROUPS_LIST", "CAP_IAM_ROLES_LIST"]});
        assert_eq!(Value::Object(canonical(&role, &written).unwrap()), expected);
        let policy = message(&contract, kind("GroupPolicy").unwrap()).unwrap();
        assert!(canonical(&policy, &members(json!({"retention": {}}))).unwrap().is_empty());
        let password = structure(&policy.get_field_by_name("upstream").unwrap()).unwrap();
        assert!(is_write_only(&password.get_field_by_name("password").unwrap()));
    }
}
