//! Addresses of webhooks in plans. Their paths are often secrets, and plans are printed to the logs of CI jobs.

use serde_json::Value;

use super::kinds::Kind;
use super::ownership::hash;
use super::schema::Members;

/// Fields that have such an address.
const ADDRESSES: &[&str] = &["chainguard.platform.events.v2.Subscription.sink"];

/// Digits that distinguish two addresses at one host.
const DIGITS: usize = 8;

fn is_address(kind: &Kind, path: &str) -> bool {
    ADDRESSES.iter().any(|name| name.strip_prefix(kind.message).and_then(|rest| rest.strip_prefix('.')) == Some(path))
}

/// Scheme and host of an address, and the beginning of a hash of all of it where there is more.
fn masked(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.len() == rest.trim_end_matches('/').len() {
        return address.to_owned();
    }
    let hash = hash(address);
    format!("{scheme}://{host}/…#{}", hash.get(..DIGITS).unwrap_or_default())
}

/// A label as it is printed.
pub(super) fn shown_label(kind: &Kind, label: &str, spec: &Members) -> String {
    let addresses = kind.keys.iter().filter(|key| is_address(kind, key)).filter_map(|key| spec.get(*key)?.as_str());
    addresses.fold(label.to_owned(), |label, address| label.replace(address, &masked(address)))
}

/// The value of a field as it is printed.
pub(super) fn shown_value(kind: &Kind, path: &str, value: Value) -> Value {
    match value {
        Value::String(address) if is_address(kind, path) => masked(&address).into(),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use bowline_contract::Contract;
    use serde_json::json;

    use super::super::kinds::kind;
    use super::*;

    #[test]
    fn addresses_are_shown_without_what_may_be_a_secret() {
        for (address, shown) in [
            ("https://hooks.example.com/services/T0/hush", "https://hooks.example.com/…#"),
            ("https://hooks.example.com?token=hush", "https://hooks.example.com/…#"),
            ("https://user:hush@hooks.example.com:8443/a", "https://hooks.example.com:8443/…#"),
            ("https://user:hush@hooks.example.com", "https://hooks.example.com/…#"),
        ] {
            let masked = masked(address);
            assert!(masked.starts_with(shown) && masked.len() == shown.len() + DIGITS, "{masked}");
            assert!(!masked.contains("hush"), "{masked}");
        }
        for whole in ["https://hooks.example.com", "https://hooks.example.com/", "http://127.0.0.1:8080/"] {
            assert_eq!(masked(whole), whole);
        }
        assert_ne!(masked("https://a.example/1"), masked("https://a.example/2"));
    }

    #[test]
    fn labels_and_values_of_subscriptions_have_masked_addresses() {
        let subscription = kind("Subscription").unwrap();
        let address = "https://a.example/hush";
        let spec = Members::from_iter([("sink".to_owned(), json!(address))]);
        let label = shown_label(subscription, &format!("Subscription acme ({address})"), &spec);
        assert_eq!(label, format!("Subscription acme ({})", masked(address)));
        assert_eq!(shown_value(subscription, "sink", json!(address)), json!(masked(address)));
        assert_eq!(shown_value(kind("Group").unwrap(), "sink", json!(address)), json!(address));
    }

    #[test]
    fn fields_with_addresses_are_those_of_the_contract() {
        let contract = Contract::load();
        for name in ADDRESSES {
            let (message, field) = name.rsplit_once('.').unwrap();
            let message = contract.pool().get_message_by_name(message).unwrap();
            assert!(message.get_field_by_json_name(field).is_some(), "{name}");
        }
    }
}
