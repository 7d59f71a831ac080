//! A scope field that names no place is refused before the permission is checked, but not before the caller is known.

use bowline_contract::{Auth, MethodInfo};
use bowline_testkit::{Engine, TestServer};
use prost_reflect::{DynamicMessage, Value};

use crate::calls::Outcome;

/// A request with nothing in it but the scope field.
pub(crate) fn scoped(info: &MethodInfo, scope: &str) -> DynamicMessage {
    let mut request = DynamicMessage::new(info.input.clone());
    set(&mut request, info.scope_field.as_deref().expect("a scope field"), scope);
    request
}

/// Sets a text in a message, or in a message in it.
pub(crate) fn set(message: &mut DynamicMessage, path: &str, text: &str) {
    match path.split_once('.') {
        None => message.set_field_by_name(path, Value::String(text.into())),
        Some((first, rest)) => {
            let inner = message.get_field_by_name_mut(first).and_then(Value::as_message_mut);
            set(inner.expect("a message on the way to the scope"), rest, text);
        }
    }
}

#[tokio::test]
async fn malformed_scopes_are_reported_to_any_authenticated_caller() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (stranger, operator) = (server.stranger().await, server.operator().await);
    let contract = &server.server().parts().contract;
    let with_slash = "63921b2c44617e3f2603851537be0123af4a57d7/";
    let in_capitals = "63921B2C44617E3F2603851537BE0123AF4A57D7";
    let malformed = ["", "nope!", "ABCDEF", "/", with_slash, in_capitals];
    let mut wrong = Vec::new();
    for index in bowline_services::implemented(contract) {
        let info = contract.method(index);
        let is_scoped = matches!(info.auth, Auth::Capabilities { unscoped: false, .. });
        if !is_scoped || info.scope_field.is_none() {
            continue;
        }
        for scope in malformed {
            let payload = prost::Message::encode_to_vec(&scoped(info, scope));
            for (actor, expected) in [(&server.anonymous(), 16), (&stranger, 3), (&operator, 3)] {
                let outcome = Outcome::of_grpc(actor.grpc_raw(&info.grpc_path, payload.clone()).await);
                if outcome.code != expected {
                    let case = format!("{} at {scope:?} by {}", info.full_name, actor.name);
                    wrong.push(format!("{case}: expected {expected}, got {outcome:?}"));
                }
            }
        }
    }
    server.stop().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
