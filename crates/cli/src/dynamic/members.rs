use bowline_client::ClientError;
use bowline_terminal::suggestion;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use super::value::parse;

/// Puts a value into a document at a dotted path of field names; a repeated field gets one more element.
///
/// # Errors
/// The message has no such field, or the text is not a value of it.
pub(crate) fn set(
    document: &mut Map<String, Value>,
    message: &MessageDescriptor,
    path: &str,
    text: &str,
) -> Result<(), ClientError> {
    let refused = |why: String| ClientError::Usage(format!("{path}: {why}"));
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let field = find(message, name).ok_or_else(|| unknown(message, name))?;
    let member = existing(document, &field);
    match (field.kind(), rest) {
        (Kind::Message(entry), Some(key)) if field.is_map() => {
            let value = parse(&entry.map_entry_value_field(), text).map_err(refused)?;
            let mut entries = take_object(document, &member);
            entries.insert(key.to_owned(), value);
            document.insert(member, Value::Object(entries));
        }
        (Kind::Message(inner), Some(rest)) if !field.is_list() => {
            let mut members = take_object(document, &member);
            set(&mut members, &inner, rest, text)?;
            document.insert(member, Value::Object(members));
        }
        (_, Some(_)) => return Err(refused(format!("{name} has no fields"))),
        (_, None) => {
            let value = parse(&field, text).map_err(refused)?;
            match (document.get_mut(&member), value) {
                (Some(Value::Array(items)), value) if field.is_list() => match value {
                    Value::Array(more) => items.extend(more),
                    one => items.push(one),
                },
                (_, Value::Array(items)) => drop(document.insert(member, Value::Array(items))),
                (_, one) if field.is_list() => drop(document.insert(member, Value::Array(vec![one]))),
                (_, one) => drop(document.insert(member, one)),
            }
        }
    }
    Ok(())
}

/// Refuses members that the message does not have: the transcoder ignores them, which would hide typing errors.
///
/// # Errors
/// A member is unknown; the nearest field is named.
pub(crate) fn require_known(message: &MessageDescriptor, value: &Value) -> Result<(), ClientError> {
    let Some(members) = value.as_object() else { return Ok(()) };
    if message.full_name().starts_with("google.protobuf.") {
        return Ok(());
    }
    for (name, value) in members {
        let field = find(message, name).ok_or_else(|| unknown(message, name))?;
        let Kind::Message(inner) = field.kind() else { continue };
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| require_known(&inner, item))?,
            Value::Object(entries) if field.is_map() => {
                if let Kind::Message(inner) = inner.map_entry_value_field().kind() {
                    entries.values().try_for_each(|entry| require_known(&inner, entry))?;
                }
            }
            value => require_known(&inner, value)?,
        }
    }
    Ok(())
}

fn find(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    message.get_field_by_name(name).or_else(|| message.get_field_by_json_name(name))
}

fn unknown(message: &MessageDescriptor, name: &str) -> ClientError {
    let names: Vec<String> = message.fields().map(|field| field.name().to_owned()).collect();
    let near = suggestion(name, names.iter().map(String::as_str));
    let near = if near.is_empty() { format!("; there are {}", names.join(", ")) } else { near };
    ClientError::Usage(format!("unknown field `{name}` of {}{near}", message.name()))
}

/// The name under which a document has a field already, in either spelling; else the one of the proto files.
fn existing(document: &Map<String, Value>, field: &FieldDescriptor) -> String {
    let name = if document.contains_key(field.json_name()) { field.json_name() } else { field.name() };
    name.to_owned()
}

/// The object that is a member of a document, made if it is not there.
fn take_object(document: &mut Map<String, Value>, member: &str) -> Map<String, Value> {
    match document.remove(member) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use bowline_contract::Contract;
    use serde_json::json;

    use super::*;

    fn message(name: &str) -> MessageDescriptor {
        Contract::load().pool().get_message_by_name(&format!("chainguard.platform.iam.v2.{name}")).unwrap()
    }

    #[test]
    fn fields_fill_a_document() {
        let request = message("CreateIdentityRequest");
        let mut document = json!({"identity": {"claimMatch": {"issuer": "a"}}}).as_object().unwrap().clone();
        for (path, text) in [
            ("parent", "acme"),
            ("identity.name", "ci"),
            ("identity.claim_match.issuer", "b"),
            ("identity.claimMatch.claims.a.b", "c"),
        ] {
            set(&mut document, &request, path, text).unwrap();
        }
        let expected = json!({
            "parent": "acme",
            "identity": {"name": "ci", "claimMatch": {"issuer": "b", "claims": {"a.b": "c"}}},
        });
        assert_eq!(Value::Object(document.clone()), expected);
        require_known(&request, &expected).unwrap();
        let mut role = Map::new();
        for capability in ["groups.list", "roles.list"] {
            set(&mut role, &message("Role"), "capabilities", capability).unwrap();
        }
        assert_eq!(role["capabilities"], json!(["CAP_IAM_GROUPS_LIST", "CAP_IAM_ROLES_LIST"]));
        for (path, named) in [
            ("parnt", "unknown field `parnt` of CreateIdentityRequest; did you mean parent?"),
            ("identity.nam", "did you mean name?"),
            ("parent.name", "parent has no fields"),
            ("identity", "not a JSON document"),
        ] {
            let refused = set(&mut document, &request, path, "x").unwrap_err().to_string();
            assert!(refused.contains(named), "{path}: {refused}");
        }
    }

    #[test]
    fn members_of_documents_are_known() {
        let request = message("CreateIdentityRequest");
        for wrong in [json!({"parnt": ""}), json!({"identity": {"claimMatch": {"isuer": ""}}})] {
            assert!(require_known(&request, &wrong).is_err(), "{wrong}");
        }
        let times = json!({"identity": {"static_keys": {"expirationTime": "2026-01-01T00:00:00Z"}}});
        require_known(&request, &times).unwrap();
    }
}
