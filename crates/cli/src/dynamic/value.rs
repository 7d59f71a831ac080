use bowline_contract::Contract;
use bowline_terminal::suggestion;
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind};
use serde_json::Value;

/// A value as JSON has it, from the text of an argument. For a repeated field it is one element, unless the text is a
/// JSON array.
///
/// # Errors
/// The text is not a value of the field.
pub(crate) fn parse(field: &FieldDescriptor, text: &str) -> Result<Value, String> {
    if field.is_list() && text.starts_with('[') {
        return json(text);
    }
    match field.kind() {
        Kind::Bool => match text {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(format!("{text:?} is neither true nor false")),
        },
        Kind::Enum(descriptor) => enum_value(&descriptor, text),
        Kind::Message(message) if !is_text(message.full_name()) => json(text),
        // JSON accepts numbers as texts, and its parser reports invalid ones.
        _ => Ok(Value::from(text)),
    }
}

/// A value of an enumeration: its name, the name without what all names begin with in any case, or a number.
/// Capabilities have names of their own, such as `groups.list`.
///
/// # Errors
/// The enumeration has no such value.
pub(crate) fn enum_value(descriptor: &EnumDescriptor, text: &str) -> Result<Value, String> {
    if let Ok(number) = text.parse::<i32>() {
        return Ok(Value::from(number));
    }
    if descriptor.full_name() == "chainguard.capabilities.Capability" {
        let contract = Contract::load();
        if let Some(facts) = contract.capabilities().by_name(text) {
            return Ok(Value::from(facts.enum_name.clone()));
        }
        let names: Vec<&str> = contract.capabilities().iter().map(|facts| facts.name.as_str()).collect();
        if descriptor.get_value_by_name(text).is_none() {
            return Err(format!("there is no capability {text:?}{}", suggestion(text, names)));
        }
    }
    let constant = text.to_uppercase().replace(['-', '.'], "_");
    let names: Vec<String> = descriptor.values().map(|value| value.name().to_owned()).collect();
    let exact = names.iter().find(|name| **name == constant);
    let short =
        || names.iter().find(|name| short_enum_name(descriptor, name).replace('-', "_").to_uppercase() == constant);
    if let Some(name) = exact.or_else(short) {
        return Ok(Value::from(name.clone()));
    }
    let shorts: Vec<String> = names.iter().map(|name| short_enum_name(descriptor, name)).collect();
    let near = suggestion(text, shorts.iter().map(String::as_str));
    let near = if near.is_empty() { format!("; there are {}", shorts.join(", ")) } else { near };
    Err(format!("there is no value {text:?}{near}"))
}

/// The name of a capability, such as `groups.list` of `CAP_IAM_GROUPS_LIST`; absent for other texts.
pub(crate) fn capability_name(text: &str) -> Option<String> {
    if !text.starts_with("CAP_") {
        return None;
    }
    let contract = Contract::of("chainguard.platform.iam.v2.RolesService.ListRoles");
    contract.capabilities().iter().find(|facts| facts.enum_name == text).map(|facts| facts.name.clone())
}

/// A value's name without what all names of the enumeration begin with, in lower case with hyphens.
pub(crate) fn short_enum_name(descriptor: &EnumDescriptor, name: &str) -> String {
    let names: Vec<String> = descriptor.values().map(|value| value.name().to_owned()).collect();
    let first = names.first().cloned().unwrap_or_default();
    let shared = names.iter().fold(first.len(), |shared, name| {
        let same = first.bytes().zip(name.bytes()).take_while(|(one, other)| one == other).count();
        shared.min(same)
    });
    let prefix = first.get(..shared).and_then(|shared| shared.rfind('_')).map_or(0, |at| at + 1);
    name.get(prefix..).unwrap_or(name).to_lowercase().replace('_', "-")
}

/// Whether JSON has the message as one text.
fn is_text(message: &str) -> bool {
    ["google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask"].contains(&message)
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON document: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(message: &str, name: &str) -> FieldDescriptor {
        let message = Contract::load().pool().get_message_by_name(message).unwrap();
        message.get_field_by_name(name).unwrap()
    }

    #[test]
    fn values_as_people_write_them() {
        let kind = field("chainguard.platform.iam.v2.ListIdentitiesRequest", "relationship_type");
        for text in ["RELATIONSHIP_TYPE_CLAIM_MATCH", "claim-match", "CLAIM_MATCH", "claim_match"] {
            assert_eq!(parse(&kind, text), Ok(Value::from("RELATIONSHIP_TYPE_CLAIM_MATCH")), "{text}");
        }
        assert!(parse(&kind, "claim-mach").unwrap_err().contains("did you mean claim-match?"));
        let capabilities = field("chainguard.platform.iam.v2.Role", "capabilities");
        assert_eq!(parse(&capabilities, "groups.list"), Ok(Value::from("CAP_IAM_GROUPS_LIST")));
        assert_eq!(parse(&capabilities, "CAP_IAM_GROUPS_LIST"), Ok(Value::from("CAP_IAM_GROUPS_LIST")));
        assert!(parse(&capabilities, "groups.lst").unwrap_err().contains("did you mean groups.list?"));
        let single = field("chainguard.platform.iam.v2.GroupInvite", "single_use");
        assert_eq!(parse(&single, "true"), Ok(Value::Bool(true)));
        assert!(parse(&single, "yes").is_err());
        let group = field("chainguard.platform.iam.v2.CreateGroupRequest", "group");
        assert_eq!(parse(&group, r#"{"name":"x"}"#), Ok(serde_json::json!({"name": "x"})));
        assert!(parse(&group, "x").is_err());
        let ttl = field("chainguard.platform.iam.v2.GroupInvite", "ttl");
        assert_eq!(parse(&ttl, "3600s"), Ok(Value::from("3600s")));
    }
}
