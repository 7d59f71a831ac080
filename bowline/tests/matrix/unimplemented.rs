//! Methods without a handler ask who calls, and whether they may, before they say that there is none.

use bowline_contract::{Auth, MethodInfo};
use bowline_testkit::{Actor, Engine, TestServer};
use prost_reflect::DynamicMessage;

use crate::calls::{self, Outcome};
use crate::malformed::{scoped, set};

const UNAUTHENTICATED: i32 = 16;
const DENIED: i32 = 7;
const UNIMPLEMENTED: i32 = 12;

#[tokio::test]
async fn unimplemented_methods_still_guard_themselves() {
    let server = TestServer::start(Engine::Sqlite).await;
    let group = server.organization("matrix").await;
    let (anonymous, stranger, operator) = (server.anonymous(), server.stranger().await, server.operator().await);
    let contract = &server.server().parts().contract;
    let implemented = bowline_services::implemented(contract);
    let mut wrong = Vec::new();
    let mut seen = 0;
    for info in contract.methods().iter().filter(|info| !implemented.contains(&info.index)) {
        seen += 1;
        let mut request = request(info, &group, &operator);
        fill_path(info, &mut request, &group);
        for actor in [&anonymous, &stranger, &operator] {
            let expected = expected(info, actor);
            for (transport, outcome) in both(actor, info, &request).await {
                if !expected.contains(&outcome.code) {
                    let case = format!("{} by {}, {transport}", info.full_name, actor.name);
                    wrong.push(format!("{case}: expected {expected:?}, got {outcome:?}"));
                }
            }
        }
    }
    server.stop().await;
    assert!(seen > 0, "when everything is implemented, this test has done its work: delete it");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Aimed at a group that exists; nothing else is filled in.
fn request(info: &MethodInfo, group: &str, operator: &Actor) -> DynamicMessage {
    if let Some(field) = &info.own_subject_field {
        let mut request = DynamicMessage::new(info.input.clone());
        request.set_field_by_name(field, prost_reflect::Value::String(operator.identity.clone()));
        return request;
    }
    if info.scope_field.is_some() { scoped(info, group) } else { DynamicMessage::new(info.input.clone()) }
}

/// Whatever the path names besides: an empty variable would lead to another route.
fn fill_path(info: &MethodInfo, request: &mut DynamicMessage, group: &str) {
    let template = info.bindings.first().map(|binding| binding.template.to_string()).unwrap_or_default();
    for variable in template.split('{').skip(1) {
        let field = variable.split(['=', '}']).next().expect("a field");
        if text_at(request, field).is_empty() {
            set(request, field, group);
        }
    }
}

fn text_at(message: &DynamicMessage, path: &str) -> String {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = message.get_field_by_name(first).expect("a field of the template");
    match (value.as_message(), rest) {
        (Some(inner), Some(rest)) => text_at(inner, rest),
        _ => value.as_str().unwrap_or("not a text").into(),
    }
}

fn expected(info: &MethodInfo, actor: &Actor) -> Vec<i32> {
    let Auth::Capabilities { needed, unscoped } = &info.auth else {
        return vec![UNIMPLEMENTED];
    };
    let is_scoped = !unscoped && info.scope_field.is_some() && !needed.is_empty();
    match actor.name.as_str() {
        "anonymous" => vec![UNAUTHENTICATED],
        "stranger" if info.operator_only || info.own_subject_field.is_some() || is_scoped => vec![DENIED],
        // The request is all but empty, so that its fields may be refused first.
        _ => vec![UNIMPLEMENTED, 3],
    }
}

async fn both(actor: &Actor, info: &MethodInfo, request: &DynamicMessage) -> Vec<(&'static str, Outcome)> {
    let payload = prost::Message::encode_to_vec(request);
    let mut outcomes = vec![("gRPC", Outcome::of_grpc(actor.grpc_raw(&info.grpc_path, payload).await))];
    if let Some(binding) = info.bindings.first() {
        outcomes.push(("REST", Outcome::of_rest(&calls::rest(actor, binding, request).await)));
    }
    outcomes
}
