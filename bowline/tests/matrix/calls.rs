//! The same request over gRPC and over REST. The REST form is made from the contract's bindings here,
//! not by the server's transcoder.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_contract::{Body, HttpBinding, MethodInfo};
use bowline_testkit::{Actor, GrpcError, RestReply};
use prost_reflect::{DynamicMessage, FieldDescriptor, MapKey, ReflectMessage, Value};
use serde_json::{Value as Json, json};

use crate::fixture::{Fixture, Place};
use crate::table::{Aim, Row};

/// HTTP statuses by gRPC code.
pub(crate) const STATUSES: &[(i32, u16)] =
    &[(0, 200), (3, 400), (5, 404), (6, 409), (7, 403), (9, 400), (12, 501), (13, 500), (16, 401)];

/// An answer, as far as both transports have it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) message: String,
    /// How many details the error has.
    pub(crate) details: usize,
    /// The UIDPs in a successful answer, as text to look into.
    pub(crate) body: String,
}

impl Outcome {
    pub(crate) fn of_grpc(reply: Result<Vec<u8>, GrpcError>) -> Outcome {
        match reply {
            Ok(bytes) => {
                let body = String::from_utf8_lossy(&bytes).into_owned();
                Outcome { code: 0, message: String::new(), details: 0, body }
            }
            Err(error) => {
                assert_eq!((error.code, &error.message), (error.status.code, &error.status.message));
                let details = error.status.details.len();
                Outcome { code: error.code, message: error.message, details, body: String::new() }
            }
        }
    }

    pub(crate) fn of_rest(reply: &RestReply) -> Outcome {
        // A status that does not belong to the code, or no error body, is never what a test expects.
        let belongs = |code: &i32| STATUSES.contains(&(*code, reply.status));
        let code = Some(reply.code()).filter(belongs).unwrap_or(-i32::from(reply.status));
        let body: Json = serde_json::from_slice(&reply.body).unwrap_or_default();
        Outcome {
            code,
            message: body["message"].as_str().filter(|_| code != 0).unwrap_or_default().into(),
            details: body["details"].as_array().map_or(0, Vec::len),
            body: if code == 0 { reply.text() } else { String::new() },
        }
    }
}

/// A text with every UIDP in it replaced.
pub(crate) fn without_uids(text: &str) -> String {
    let is_uid = |word: &str| word.len() >= 40 && word.bytes().all(|byte| byte == b'/' || byte.is_ascii_hexdigit());
    let words = text.split(' ').map(|word| if is_uid(word) { "UID" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

pub(crate) async fn over_grpc(fixture: &Fixture<'_>, actor: &Actor, row: &Row, place: &Place) -> Outcome {
    let method = method(fixture, row.full_name);
    let payload = payload(fixture, row, place).await;
    let outcome = Outcome::of_grpc(actor.grpc_raw(&method.grpc_path, payload).await);
    settle(row, place, outcome)
}

pub(crate) async fn over_rest(fixture: &Fixture<'_>, actor: &Actor, row: &Row, place: &Place) -> Outcome {
    let method = method(fixture, row.full_name);
    let payload = payload(fixture, row, place).await;
    let request = DynamicMessage::decode(method.input.clone(), payload.as_slice()).expect("an encoded request");
    let Some(binding) = method.bindings.first() else {
        // Over gRPC alone: the second call must answer like the first.
        return settle(row, place, Outcome::of_grpc(actor.grpc_raw(&method.grpc_path, payload).await));
    };
    settle(row, place, Outcome::of_rest(&rest(actor, binding, &request).await))
}

/// Sends a message as a binding has it.
pub(crate) async fn rest(actor: &Actor, binding: &HttpBinding, request: &DynamicMessage) -> RestReply {
    let (path, body) = rendered(binding, request);
    actor.rest(binding.verb.name(), &path, body).await
}

pub(crate) fn method<'f>(fixture: &'f Fixture<'_>, full_name: &str) -> &'f MethodInfo {
    fixture.server.server().parts().contract.by_full_name(full_name).expect("a method of the contract")
}

async fn payload(fixture: &Fixture<'_>, row: &Row, place: &Place) -> Vec<u8> {
    let doomed = match row.takes {
        Some(kind) => fixture.doomed(place, kind).await,
        None => String::new(),
    };
    (row.build)(&Aim { fixture, place, doomed })
}

fn settle(row: &Row, place: &Place, outcome: Outcome) -> Outcome {
    if let Some(kind) = row.takes.filter(|_| outcome.code == 0) {
        place.spend(kind);
    }
    outcome
}

/// Path with query, and body.
fn rendered(binding: &HttpBinding, request: &DynamicMessage) -> (String, Option<Json>) {
    let mut request = request.clone();
    let mut path = String::new();
    let template = binding.template.to_string();
    let mut rest = template.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        let (variable, after) = after.split_once('}').expect("a closed variable");
        let field = variable.split('=').next().expect("a field");
        path += before;
        path += &escaped(&take(&mut request, field), "/");
        rest = after;
    }
    path += rest;
    let body = match &binding.body {
        Body::None => None,
        Body::Whole => return (path, Some(message(&request))),
        Body::Field(name) => {
            let field = request.descriptor().get_field_by_name(name).expect("the body's field");
            let body = value(&field, &request.get_field(&field));
            request.clear_field(&field);
            Some(body)
        }
    };
    let mut query = Vec::new();
    parameters("", &request, &mut query);
    if !query.is_empty() {
        path.push('?');
        path += &query.join("&");
    }
    (path, body)
}

/// Takes a field of text or a number out of a message.
fn take(request: &mut DynamicMessage, path: &str) -> String {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = request.get_field_by_name_mut(first).expect("a field of the template");
    match (value, rest) {
        (Value::Message(inner), Some(rest)) => take(inner, rest),
        (Value::String(text), None) => std::mem::take(text),
        (Value::I64(number), None) => std::mem::take(number).to_string(),
        other => panic!("{path} is {other:?}"),
    }
}

fn parameters(prefix: &str, request: &DynamicMessage, query: &mut Vec<String>) {
    for (field, given) in request.fields() {
        let name = format!("{prefix}{}", field.name());
        let items = match given {
            Value::List(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        for item in items {
            match item {
                // The one form of several messages: their texts, between colons.
                Value::Message(inner) if field.is_list() => {
                    let texts: Vec<String> =
                        inner.fields().filter_map(|(_, text)| text.as_str().map(String::from)).collect();
                    query.push(format!("{name}={}", escaped(&texts.join(":"), "")));
                }
                Value::Message(inner) if !is_text(inner) => {
                    parameters(&format!("{name}."), inner, query);
                }
                item => {
                    let text = match value(&field, item) {
                        Json::String(text) => text,
                        other => other.to_string(),
                    };
                    query.push(format!("{name}={}", escaped(&text, "")));
                }
            }
        }
    }
}

/// Whether JSON has the message as one text.
fn is_text(message: &DynamicMessage) -> bool {
    ["google.protobuf.FieldMask", "google.protobuf.Timestamp"].contains(&message.descriptor().full_name())
}

fn message(message: &DynamicMessage) -> Json {
    if message.descriptor().full_name() == "google.protobuf.Timestamp" {
        let time: prost_types::Timestamp = message.transcode_to().expect("a time");
        return json!(time.to_string());
    }
    if message.descriptor().full_name() == "google.protobuf.FieldMask" {
        let paths = message.get_field_by_name("paths").expect("a mask has paths").into_owned();
        let paths = paths.as_list().expect("a list").iter().filter_map(|path| path.as_str()).collect::<Vec<_>>();
        return json!(paths.join(","));
    }
    if message.descriptor().full_name() == "google.protobuf.Duration" {
        let seconds = message.get_field_by_name("seconds").and_then(|seconds| seconds.as_i64());
        return json!(format!("{}s", seconds.expect("a whole number of seconds")));
    }
    if message.descriptor().full_name() == "google.protobuf.Any" {
        return any(message);
    }
    message.fields().map(|(field, given)| (field.json_name().to_owned(), value(&field, given))).collect()
}

/// The message inside, with its type as a member.
fn any(outer: &DynamicMessage) -> Json {
    let bytes = outer.get_field_by_name("value").expect("an Any has a value").into_owned();
    let type_url = outer.get_field_by_name("type_url").expect("an Any has a type").into_owned();
    let type_url = type_url.as_str().expect("a text");
    let name = type_url.rsplit('/').next().unwrap_or_default();
    let pool = bowline_contract::Contract::load().pool().clone();
    let inner = pool.get_message_by_name(name).expect("a message of the contract");
    let bytes = bytes.as_bytes().expect("bytes").clone();
    let mut json = message(&DynamicMessage::decode(inner, bytes).expect("the message inside"));
    json["@type"] = json!(type_url);
    json
}

fn value(field: &FieldDescriptor, given: &Value) -> Json {
    match given {
        Value::Bool(flag) => json!(flag),
        Value::I32(number) | Value::EnumNumber(number) => json!(number),
        Value::U32(number) => json!(number),
        Value::I64(number) => json!(number.to_string()),
        Value::U64(number) => json!(number.to_string()),
        Value::String(text) => json!(text),
        Value::Bytes(bytes) => json!(STANDARD.encode(bytes)),
        Value::Message(inner) => message(inner),
        Value::List(items) => items.iter().map(|item| value(field, item)).collect(),
        Value::Map(entries) => entries.iter().map(|(key, item)| (text_of(key), value(field, item))).collect(),
        other => panic!("{}: the matrix sends no {other:?}", field.full_name()),
    }
}

fn text_of(key: &MapKey) -> String {
    match key {
        MapKey::String(text) => text.clone(),
        other => panic!("the matrix sends no {other:?}"),
    }
}

fn escaped(text: &str, kept: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c) || kept.contains(c);
    let mut out = String::new();
    for c in text.chars() {
        if plain(c) {
            out.push(c);
        } else {
            let mut buffer = [0; 4];
            out.extend(c.encode_utf8(&mut buffer).bytes().map(|byte| format!("%{byte:02X}")));
        }
    }
    out
}
