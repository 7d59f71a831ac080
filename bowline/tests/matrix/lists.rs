//! Lists without a filter show exactly what the caller may see.

use std::collections::BTreeSet;

use bowline_testkit::{Engine, TestServer, by_engine};
use prost_reflect::{DynamicMessage, Kind as Type, ReflectMessage as _, Value};
use serde_json::Value as Json;

use crate::calls::{self, method};
use crate::fixture::{Caller, Fixture, Kind, Standing, UNSHARED};
use crate::oracle::{holds, needed};
use crate::table::{Row, table};

async fn lists_show_what_the_caller_may_see_and_nothing_else(engine: Engine) {
    let server = TestServer::start(engine).await;
    let fixture = Fixture::new(&server).await;
    for row in table().iter().filter(|row| row.lists.is_some()) {
        for caller in fixture.callers.iter().filter(|caller| !matches!(caller.standing, Standing::Anonymous)) {
            one(&fixture, engine, row, caller).await;
        }
    }
    drop(fixture);
    server.stop().await;
}

async fn one(fixture: &Fixture<'_>, engine: Engine, row: &Row, caller: &Caller) {
    let case = format!("{} by {} on {engine:?}", row.full_name, caller.actor.name);
    let expected = visible(fixture, row, caller);
    let info = method(fixture, row.full_name);
    let mut request = DynamicMessage::new(info.input.clone());
    if let Some(field) = info.input.get_field_by_name("page_size") {
        let size = if field.kind() == Type::Int64 { Value::I64(200) } else { Value::I32(200) };
        request.set_field_by_name("page_size", size);
    }
    let payload = prost::Message::encode_to_vec(&request);
    let reply = caller.actor.grpc_raw(&info.grpc_path, payload).await;
    let reply = reply.unwrap_or_else(|error| panic!("{case}: {error:?}"));
    let reply = DynamicMessage::decode(info.output.clone(), reply.as_slice()).expect("an encoded answer");
    assert_eq!(uids_of_message(&reply), expected, "{case}, gRPC");
    if let Some(total) = reply.get_field_by_name("total_count") {
        assert_eq!(total.as_i64(), Some(expected.len() as i64), "{case}: total_count");
    }
    let reply = calls::rest(&caller.actor, &info.bindings[0], &request).await;
    assert_eq!(reply.status, 200, "{case}: {}", reply.text());
    assert_eq!(uids_of_json(&reply.json()), expected, "{case}, REST");
}

/// What is somewhere where the caller holds what the method needs; roles that everyone has; and oneself.
fn visible(fixture: &Fixture<'_>, row: &Row, caller: &Caller) -> BTreeSet<String> {
    let needed = needed(fixture, row.full_name);
    let all = fixture.all.lock().expect(UNSHARED);
    let kind = row.lists.expect("a list");
    let known = all.get(&kind).into_iter().flatten();
    let mut seen: BTreeSet<String> = known.filter(|uid| holds(caller, &needed, uid)).cloned().collect();
    match kind {
        Kind::Role => {
            let built_in = fixture.server.server().parts().contract.built_in_roles();
            seen.extend(built_in.iter().map(|role| role.uid.clone()));
        }
        Kind::Identity if matches!(caller.standing, Standing::Bound(_)) => {
            seen.insert(caller.actor.identity.clone());
        }
        _ => {}
    }
    seen
}

fn uids_of_message(reply: &DynamicMessage) -> BTreeSet<String> {
    let list = reply.fields().find_map(|(_, value)| value.as_list().map(<[Value]>::to_vec)).unwrap_or_default();
    let uid = |item: &Value| {
        let item = item.as_message().expect("a list of messages");
        let field = ["uid", "id", "group"].into_iter().find_map(|name| item.descriptor().get_field_by_name(name));
        item.get_field(&field.expect("a uid")).as_str().expect("a text").to_owned()
    };
    let uids: BTreeSet<String> = list.iter().map(uid).collect();
    assert_eq!(uids.len(), list.len(), "nothing is listed twice");
    uids
}

fn uids_of_json(reply: &Json) -> BTreeSet<String> {
    let list = reply.as_object().expect("an object").values().find_map(Json::as_array).cloned().unwrap_or_default();
    let uid = |item: &Json| {
        item["uid"].as_str().or(item["id"].as_str()).or(item["group"].as_str()).expect("a uid").to_owned()
    };
    list.iter().map(uid).collect()
}

by_engine!(lists_show_what_the_caller_may_see_and_nothing_else);
