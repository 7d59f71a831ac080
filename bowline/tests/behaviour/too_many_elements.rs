//! Every list of every method, with forty thousand elements: the request is refused by its size, before anything looks at
//! an element, and no other organization waits for it.

use bowline_contract::{Auth, MethodInfo};
use bowline_testkit::{Actor, Engine, GrpcError, TestServer, on_engine};
use prost::encoding::encode_varint;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::neighbours::{Neighbour, is_caused, median};

const ELEMENTS: usize = 40_000;
const INVALID: i32 = 3;
const DENIED: i32 = 7;
const UNIMPLEMENTED: i32 = 12;

/// A list that a request may hold: the fields that lead to it, itself last.
type Path = Vec<FieldDescriptor>;

/// What the elements hold: texts that are patterns, or nothing.
#[derive(Clone, Copy, Debug)]
enum Texts {
    Patterns,
    Empty,
}

async fn forty_thousand_elements_are_refused_by_their_number_and_hold_up_no_neighbour(server: &TestServer) {
    let org = server.organization("loud").await;
    let (owner, operator) = (server.actor("owner", &org).await, server.operator().await);
    let neighbour = Neighbour::of(server).await;
    let contract = server.server().parts().contract.clone();
    let mut harmless = Vec::new();
    let mut lists = Vec::new();
    for method in contract.methods().iter().filter(|method| !method.server_streaming) {
        let paths = paths(&method.input);
        if paths.is_empty() {
            continue;
        }
        let Some(caller) = caller(method, &org, [&owner, &operator]).await else { continue };
        let call = caller.grpc_raw(&method.grpc_path, scope(method, &org));
        harmless.push(neighbour.waits_beside(call).await.0);
        lists.extend(paths.into_iter().map(|path| (method, caller, path)));
    }
    let usual = median(harmless);
    assert!(lists.len() > 100, "the contract has more lists than {}", lists.len());
    let mut problems = Vec::new();
    for (method, caller, path) in lists {
        for texts in [Texts::Patterns, Texts::Empty] {
            let what = format!("{} {} {texts:?}", method.full_name, shown(&path));
            let request = [scope(method, &org), filled(&path, texts)].concat();
            let call = || caller.grpc_raw(&method.grpc_path, request.clone());
            let (mut wait, answer) = neighbour.waits_beside(call()).await;
            if is_caused(wait, usual) {
                let again = [neighbour.waits_beside(call()).await.0, neighbour.waits_beside(call()).await.0];
                wait = median([&again[..], &[wait]].concat());
            }
            if is_caused(wait, usual) {
                problems.push(format!("{what}: the neighbour waits {wait:?} instead of {usual:?}"));
            }
            problems.extend(problem(method, &path, answer.err()).map(|problem| format!("{what}: {problem}")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What is wrong with the answer. Methods without a permission have limits of their own; what only the server sets is not
/// read.
fn problem(method: &MethodInfo, path: &Path, error: Option<GrpcError>) -> Option<String> {
    if !matches!(method.auth, Auth::Capabilities { .. }) || path.iter().any(is_output_only) {
        return None;
    }
    let Some(error) = error else { return Some("it is accepted".into()) };
    let details = error.detail::<bowline_contract::google::rpc::BadRequest>().unwrap_or_default();
    let is_counted =
        error.code == INVALID && ["at most ", "are the most"].iter().any(|text| error.message.contains(text));
    let is_too_large = error.message.contains("too large");
    let is_short = details.field_violations.len() <= 100;
    (!is_short || !(is_counted || is_too_large)).then(|| format!("{} {:.200}", error.code, error.message))
}

/// The first of these who may call the method, or the last; absent if the server does not offer it.
async fn caller<'a>(method: &MethodInfo, org: &str, callers: [&'a Actor; 2]) -> Option<&'a Actor> {
    let [.., last] = callers;
    for caller in callers {
        match caller.grpc_raw(&method.grpc_path, scope(method, org)).await {
            Err(error) if error.code == UNIMPLEMENTED => return None,
            Err(error) if error.code == DENIED => {}
            _ => return Some(caller),
        }
    }
    Some(last)
}

/// The encoded request that names the organization as its scope, or the caller, and nothing else.
fn scope(method: &MethodInfo, org: &str) -> Vec<u8> {
    let Some(field) = method.scope_field.as_deref().or(method.own_subject_field.as_deref()) else { return Vec::new() };
    let (mut message, mut path) = (Some(method.input.clone()), Vec::new());
    for name in field.split('.') {
        let field = message.as_ref().and_then(|message| message.get_field_by_name(name)).expect("the scope is a field");
        message = field.kind().as_message().cloned();
        path.push(field);
    }
    let Some((last, above)) = path.split_last() else { return Vec::new() };
    wrapped(above, framed(last.number(), org.as_bytes()))
}

/// Every list and map of a message and of the messages in it, each message once.
fn paths(message: &MessageDescriptor) -> Vec<Path> {
    fn walk(message: &MessageDescriptor, above: &Path, found: &mut Vec<Path>) {
        if above.iter().any(|field| field.parent_message() == message) {
            return;
        }
        for field in message.fields() {
            let path: Path = above.iter().cloned().chain([field.clone()]).collect();
            if field.is_list() || field.is_map() {
                found.push(path.clone());
            }
            if let Kind::Message(inner) = field.kind()
                && !field.is_map()
            {
                walk(&inner, &path, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(message, &Vec::new(), &mut found);
    found
}

/// The encoded request whose list at this path has forty thousand elements.
fn filled(path: &Path, texts: Texts) -> Vec<u8> {
    let (list, above) = path.split_last().expect("a path has a list at its end");
    let mut elements = Vec::new();
    if let Kind::Enum(_) = list.kind() {
        let values: Vec<u8> = std::iter::repeat_n(1, ELEMENTS).collect();
        return wrapped(above, framed(list.number(), &values));
    }
    for number in 0..ELEMENTS {
        let text = match texts {
            Texts::Patterns => format!("(a|b{{1,9}}){{1,9}}{number}"),
            Texts::Empty => String::new(),
        };
        let element = match list.kind() {
            _ if list.is_map() => [framed(1, number.to_string().as_bytes()), map_value(list, &text)].concat(),
            Kind::Message(_) => Vec::new(),
            _ => text.into_bytes(),
        };
        elements.extend(framed(list.number(), &element));
    }
    wrapped(above, elements)
}

fn map_value(map: &FieldDescriptor, text: &str) -> Vec<u8> {
    let entry = map.kind();
    let value = entry.as_message().map(MessageDescriptor::map_entry_value_field);
    match value.map(|value| value.kind()) {
        Some(Kind::String) => framed(2, text.as_bytes()),
        Some(Kind::Message(_)) => framed(2, b""),
        _ => vec![2 << 3, 1],
    }
}

/// Puts a message into the fields above it, the innermost last.
fn wrapped(above: &[FieldDescriptor], message: Vec<u8>) -> Vec<u8> {
    above.iter().rev().fold(message, |inner, field| framed(field.number(), &inner))
}

fn framed(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut wire = Vec::with_capacity(bytes.len() + 6);
    encode_varint(u64::from(number << 3 | 2), &mut wire);
    encode_varint(bytes.len() as u64, &mut wire);
    wire.extend(bytes);
    wire
}

fn is_output_only(field: &FieldDescriptor) -> bool {
    const OUTPUT_ONLY: i32 = 3;
    let extension = field.parent_pool().get_extension_by_name("google.api.field_behavior").expect("it is declared");
    let options = field.options();
    let behaviors = options.get_extension(&extension);
    behaviors.as_list().unwrap_or(&[]).iter().filter_map(Value::as_enum_number).any(|number| number == OUTPUT_ONLY)
}

fn shown(path: &Path) -> String {
    path.iter().map(FieldDescriptor::name).collect::<Vec<_>>().join(".")
}

/// On the engine with one writer, where a neighbour would wait the longest: no list is looked at by the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_thousand_elements_are_refused_and_hold_up_no_neighbour() {
    on_engine(Engine::Sqlite, forty_thousand_elements_are_refused_by_their_number_and_hold_up_no_neighbour).await;
}
