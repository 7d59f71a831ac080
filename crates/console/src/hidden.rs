//! Values that pages show once or not at all, by what the contract says of their fields.

use bowline_contract::Contract;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage as _, Value};

use crate::values::{address_of, has_path_or_query};

/// Full name of the message that holds one of any type.
const ANY: &str = "google.protobuf.Any";

/// A value with what a document has in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// Dotted path in proto names.
    pub(crate) path: String,
    pub(crate) value: String,
    /// Whether it is a secret, and not an address with one in it.
    pub(crate) is_secret: bool,
}

/// Whether a message has a value in a field that holds a secret. A message in a message counts; inside of `Any`, any
/// message can be.
pub(crate) fn has_secret(contract: &Contract, message: &DynamicMessage) -> bool {
    if message.descriptor().full_name() == ANY {
        return true;
    }
    message.fields().any(|(field, value)| {
        let is_address = contract.is_secret_address(&field) && value.as_str().is_some_and(has_path_or_query);
        contract.is_secret(&field) || is_address || value_has_secret(contract, value)
    })
}

fn value_has_secret(contract: &Contract, value: &Value) -> bool {
    match value {
        Value::Message(inner) => has_secret(contract, inner),
        Value::List(items) => items.iter().any(|item| value_has_secret(contract, item)),
        Value::Map(items) => items.values().any(|item| value_has_secret(contract, item)),
        _ => false,
    }
}

/// Whether a value of this message may hold a secret: in a field of its own or deeper.
pub(crate) fn reaches_secret(contract: &Contract, message: &MessageDescriptor) -> bool {
    reaches(message, &|field| contract.is_secret(field) || contract.is_secret_address(field), &mut Vec::new())
}

fn reaches(message: &MessageDescriptor, is_one: &dyn Fn(&FieldDescriptor) -> bool, seen: &mut Vec<String>) -> bool {
    if message.full_name() == ANY {
        return true;
    }
    if seen.iter().any(|name| name == message.full_name()) {
        return false;
    }
    seen.push(message.full_name().to_owned());
    message.fields().any(|field| match field.kind() {
        Kind::Message(inner) => reaches(&inner, is_one, seen),
        _ => is_one(&field),
    })
}

/// All such values of a message, in lists and maps, too.
pub(crate) fn of(contract: &Contract, message: &DynamicMessage) -> Vec<Hidden> {
    let mut found = Vec::new();
    collect(contract, message, "", &mut found);
    found
}

fn collect(contract: &Contract, message: &DynamicMessage, path: &str, found: &mut Vec<Hidden>) {
    for (field, value) in message.fields() {
        let path = if path.is_empty() { field.name().to_owned() } else { format!("{path}.{}", field.name()) };
        let is_secret = contract.is_secret(&field);
        if is_secret || contract.is_secret_address(&field) {
            let texts = match value {
                Value::List(items) => items.iter().filter_map(text).collect(),
                value => text(value).into_iter().collect::<Vec<_>>(),
            };
            let texts = texts.into_iter().filter(|text| is_secret || has_path_or_query(text));
            found.extend(texts.map(|value| Hidden { path: path.clone(), value, is_secret }));
        }
        match value {
            Value::Message(inner) => collect(contract, inner, &path, found),
            Value::List(items) => items.iter().filter_map(Value::as_message).for_each(|inner| {
                collect(contract, inner, &path, found);
            }),
            Value::Map(items) => items.values().filter_map(Value::as_message).for_each(|inner| {
                collect(contract, inner, &path, found);
            }),
            _ => {}
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A document without these values: secrets are shown above it, addresses with their host.
pub(crate) fn replaced(json: serde_json::Value, hidden: &[Hidden]) -> serde_json::Value {
    use serde_json::Value as Json;
    match json {
        Json::Object(members) => {
            Json::Object(members.into_iter().map(|(name, value)| (name, replaced(value, hidden))).collect())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(|item| replaced(item, hidden)).collect()),
        Json::String(text) => match hidden.iter().find(|one| one.value == text) {
            Some(one) if one.is_secret => "(above)".into(),
            Some(one) => address_of(&one.value).into(),
            None => Json::String(text),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(contract: &Contract, name: &str, json: serde_json::Value) -> DynamicMessage {
        let tables = bowline_transcode::Tables::new(contract.pool());
        let mut wire = Vec::new();
        tables.from_json(tables.message(name).unwrap(), json.to_string().as_bytes(), &mut wire).unwrap();
        DynamicMessage::decode(contract.pool().get_message_by_name(name).unwrap(), wire.as_slice()).unwrap()
    }

    #[test]
    fn addresses_count_where_they_have_something_to_hide() {
        let contract = Contract::load();
        let create = "chainguard.platform.events.v2.CreateSubscriptionRequest";
        let of_sink = |sink: &str| message(&contract, create, json!({ "subscription": { "sink": sink } }));
        assert!(!has_secret(&contract, &of_sink("https://hooks.example/")));
        for sink in ["https://hooks.example/services/T0/hunter2", "https://hooks.example?token=hunter2"] {
            let message = of_sink(sink);
            assert!(has_secret(&contract, &message), "{sink}");
            let hidden = of(&contract, &message);
            assert_eq!((hidden[0].path.as_str(), hidden.len()), ("subscription.sink", 1));
            let shown = replaced(json!({ "subscription": { "sink": sink, "uid": "a" } }), &hidden).to_string();
            assert!(shown.contains("https://hooks.example/(not shown)") && !shown.contains("hunter2"), "{shown}");
        }
    }

    /// Reading methods can be followed, exported and called by their address. These fields are in messages that they return,
    /// and the API leaves them out there.
    #[test]
    fn reading_methods_return_no_other_secrets() {
        let contract = Contract::load();
        let mut found = std::collections::BTreeSet::new();
        for method in contract.methods() {
            if method.only_reads() && !matches!(method.auth, bowline_contract::Auth::Own) {
                secrets_below(&contract, &method.output, &mut Vec::new(), &mut found);
            }
        }
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(
            found,
            [
                "bowline.libraries.v1.PackageUpstream.password",
                "bowline.registry.v1.Upstream.password",
                "chainguard.platform.iam.IdentityProvider.OIDC.client_secret",
                "chainguard.platform.iam.v2.GroupInvite.code",
                "chainguard.platform.iam.v2.IdentityProvider.OIDC.client_secret",
            ]
        );
    }

    fn secrets_below(
        contract: &Contract,
        message: &MessageDescriptor,
        seen: &mut Vec<String>,
        found: &mut std::collections::BTreeSet<String>,
    ) {
        if seen.iter().any(|name| name == message.full_name()) {
            return;
        }
        seen.push(message.full_name().to_owned());
        for field in message.fields() {
            if contract.is_secret(&field) {
                found.insert(field.full_name().to_owned());
            }
            if let Kind::Message(inner) = field.kind() {
                secrets_below(contract, &inner, seen, found);
            }
        }
    }

    #[test]
    fn secrets_of_lists_are_found() {
        let contract = Contract::load();
        let list = "chainguard.platform.iam.v2.ListGroupInvitesResponse";
        let list =
            message(&contract, list, json!({ "groupInvites": [{ "code": "a" }, { "uid": "x" }, { "code": "b" }] }));
        let found = of(&contract, &list);
        let values: Vec<&str> = found.iter().map(|one| one.value.as_str()).collect();
        assert_eq!(values, ["a", "b"]);
        assert!(found.iter().all(|one| one.is_secret && one.path == "group_invites.code"));
        assert!(reaches_secret(&contract, &list.descriptor()));
    }
}
