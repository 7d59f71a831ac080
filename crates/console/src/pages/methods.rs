use bowline_contract::{Auth, Docs, MethodInfo};
use bowline_core::{Error, Reason, Result};
use bytes::Bytes;
use maud::{Markup, html};
use prost_reflect::{Kind, MessageDescriptor};

use super::required;
use crate::components::{Field, MAX_ROWS, facts, filters, link, more, section, table};
use crate::shell::{self, Content};
use crate::values::{badge, block, code, note, text};
use crate::visit::Visit;

/// How deep the fields of inner messages are offered.
const DEPTH: usize = 3;
/// Fields of a form.
const MAX_FIELDS: usize = 80;
/// What the names of the fields of a request begin with in an address.
const FIELD: &str = "f.";

/// All methods, by service.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let wanted = visit.query.text("q").to_lowercase();
    let docs = Docs::load();
    let contract = visit.app.api.contract();
    let has_text = |method: &&MethodInfo| method.full_name.to_lowercase().contains(&wanted);
    let methods: Vec<&MethodInfo> = contract.methods().iter().filter(has_text).collect();
    let services = methods.chunk_by(|a, b| service(a) == service(b));
    let body = html! {
        (filters(visit, &[], &[Field::Text { name: "q", label: "Name contains" }]))
        @if methods.is_empty() { p.empty { "No method has this in its name." } }
        @for methods in services {
            @let rows: Vec<_> = methods.iter().take(MAX_ROWS).map(|method| row(visit, docs.of(&method.full_name), method)).collect();
            (table(service(methods[0]), &["Method", "Does", "Kind"], &rows))
            (more(methods.len()))
        }
    };
    Ok(Content::new("Methods", body))
}

fn service(method: &MethodInfo) -> &str {
    method.full_name.rsplit_once('.').map_or("", |(service, _)| service)
}

fn row(visit: &Visit, doc: String, method: &MethodInfo) -> Vec<Markup> {
    let name = method.full_name.rsplit('.').next().unwrap_or_default();
    vec![link("/console/method", &[("name", &method.full_name)], name), note(&doc), kind(visit, method)]
}

fn kind(visit: &Visit, method: &MethodInfo) -> Markup {
    if visit.app.api.only_reads(method.index) { badge("good", "reads") } else { badge("plain", "other") }
}

/// One method: its address, capabilities and fields. A method that only reads can be called here; for others the page
/// makes the lines that call it.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let name = required(visit, "name")?;
    let missing = || Error::new(Reason::NotFound, "Not found: this server has no such method");
    let index = visit.app.api.contract().by_full_name(&name).ok_or_else(missing)?.index;
    let reads = visit.app.api.only_reads(index);
    let given = visit.query.prefixed(FIELD);
    let request = if visit.query.get("send").is_some() { Some(encoded(visit, index, &given)?) } else { None };
    let response = match request.clone().filter(|_| reads) {
        Some(request) => Some(visit.call_any(index, request).await),
        None => None,
    };
    let method = visit.app.api.contract().method(index);
    let docs = Docs::load();
    let body = html! {
        p { (note(&docs.of(&method.full_name))) }
        (about(visit, method))
        (section("request", "Request", &form(visit, method, &docs, reads)))
        @match &response {
            Some(Ok(response)) => { (section("response", "Response", &block(&pretty(response)))) }
            Some(Err(error)) => { (section("response", "Response", &crate::components::refused(error, Some(&method.full_name)))) }
            None => {}
        }
        @if let (Some(request), None) = (&request, &response) {
            (section("lines", "Lines that call it", &html! {
                p { "The console only reads. These lines change something when you run them." }
                (shell::lines(&visit.forms(index, request)))
            }))
        }
    };
    let title = method.short_name().to_owned();
    Ok(Content::new(title, body).below("/console/methods".to_owned(), "Methods"))
}

fn pretty(response: &serde_json::Value) -> String {
    serde_json::to_string_pretty(response).unwrap_or_else(|_| response.to_string())
}

fn about(visit: &Visit, method: &MethodInfo) -> Markup {
    let needs = match &method.auth {
        Auth::Own => text("a credential of its own"),
        Auth::Public => text("nothing"),
        Auth::Capabilities { needed, .. } => {
            let names = visit.app.api.contract().capabilities().names(needed);
            if names.is_empty() { text("any valid token") } else { code(&names.join(", ")) }
        }
    };
    let address = method.bindings.first();
    let address = address.map(|binding| format!("{} {}", binding.verb.name(), binding.template)).unwrap_or_default();
    facts(&[
        ("Full name", code(&method.full_name)),
        ("Address", code(&address)),
        ("Needs", needs),
        ("Event", code(method.event.as_ref().map_or("", |event| event.event_type.as_str()))),
        ("Kind", kind(visit, method)),
    ])
}

/// A form with a field for each scalar of the request.
fn form(visit: &Visit, method: &MethodInfo, docs: &Docs, reads: bool) -> Markup {
    let mut fields = Vec::new();
    collect("", &method.input, 0, &mut |path, full_name, kind| {
        if fields.len() < MAX_FIELDS {
            fields.push((path, docs.of(full_name), kind));
        }
    });
    html! {
        form.filters method="get" action=(visit.path) {
            input type="hidden" name="name" value=(method.full_name);
            input type="hidden" name="send" value="true";
            @for (at, (path, doc, kind)) in fields.iter().enumerate() {
                @let name = format!("{FIELD}{path}");
                div {
                    label for={ "m-" (at) } { code { (path) } " " span.small { (kind) } }
                    input type="text" id={ "m-" (at) } name=(name) value=(visit.query.text(&name)) maxlength="2000"
                        aria-describedby={ "d-" (at) } autocomplete="off" autocapitalize="none" spellcheck="false";
                    p.small id={ "d-" (at) } { (note(doc)) }
                }
            }
            @if fields.is_empty() { p.empty { "The request has no fields." } }
            button type="submit" { @if reads { "Call" } @else { "Show the lines" } }
        }
    }
}

/// The scalar fields of a message with their paths, and those of inner messages. Lists take one element here; lists of
/// messages and maps do not fit into a form.
fn collect(prefix: &str, message: &MessageDescriptor, depth: usize, add: &mut dyn FnMut(String, &str, String)) {
    for field in message.fields() {
        let path = if prefix.is_empty() { field.name().to_owned() } else { format!("{prefix}.{}", field.name()) };
        let list = if field.is_list() { "list of " } else { "" };
        match field.kind() {
            _ if field.is_map() => {}
            Kind::Message(inner) if is_scalar(&inner) => {
                add(path, field.full_name(), format!("{list}{}", inner.name()));
            }
            Kind::Message(inner) if !field.is_list() && depth + 1 < DEPTH => collect(&path, &inner, depth + 1, add),
            Kind::Message(_) => {}
            Kind::Enum(values) => {
                let names: Vec<String> = values.values().take(12).map(|value| value.name().to_owned()).collect();
                add(path, field.full_name(), format!("{list}one of {}", names.join(", ")));
            }
            other => add(path, field.full_name(), format!("{list}{other:?}").to_lowercase()),
        }
    }
}

/// Messages that have a text form.
fn is_scalar(message: &MessageDescriptor) -> bool {
    let names = ["Timestamp", "Duration", "FieldMask"];
    names.iter().any(|name| message.full_name() == format!("google.protobuf.{name}"))
}

/// The request that a form describes.
///
/// # Errors
/// INVALID_ARGUMENT: a value does not fit, or there is no such field.
fn encoded(visit: &Visit, method: usize, given: &[(String, String)]) -> Result<Bytes> {
    let tables = visit.app.api.tables();
    let input = &visit.app.api.contract().method(method).input;
    let unknown = || Error::internal("the contract has a method without a message");
    let id = tables.message(input.full_name()).ok_or_else(unknown)?;
    let mut wire = Vec::new();
    for (path, value) in given {
        match tables.set_parameter(id, path, value, &mut wire) {
            Ok(true) => {}
            Ok(false) => return Err(Error::invalid_field(path, "is no field of the request")),
            Err(error) => return Err(Error::invalid_field(path, error.message)),
        }
    }
    Ok(wire.into())
}
