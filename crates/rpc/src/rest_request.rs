//! A REST request as the message of its method: path, query and body.

use std::collections::HashSet;
use std::sync::Arc;

use bowline_contract::{Body, HttpBinding, MethodInfo};
use bowline_core::{Error, FieldViolation, Reason, Result};
use bowline_pipeline::Caller;
use bowline_transcode::{MessageId, TranscodeError};
use bytes::Bytes;

use crate::front::Front;
use crate::query::{GIVEN_TWICE, Parameter};

/// Maximum number of wrong parameters that one response names.
const MAX_VIOLATIONS: usize = 100;

/// Larger bodies are encoded on a blocking thread, so that they do not delay others.
const BACKGROUND_ENCODING_MIN_BYTES: usize = 64 << 10;

/// What of a request is needed after its body was taken.
pub(crate) struct Parts<'r> {
    pub(crate) method: &'r MethodInfo,
    pub(crate) binding: &'r HttpBinding,
    pub(crate) variables: Vec<(&'r str, String)>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Bytes,
}

/// An encoded request, and the fields that its body names.
pub(crate) type Encoded = (Vec<u8>, Option<Vec<String>>);

/// Encodes a request: a large one on another thread, where no other caller waits for it. Its body counts as under way
/// until then, also if the caller disconnects.
pub(crate) async fn encode_request(front: &Arc<Front>, parts: Parts<'_>, caller: &Caller) -> Result<Encoded> {
    if parts.body.len() < BACKGROUND_ENCODING_MIN_BYTES {
        return encode(front, &parts);
    }
    let (front, method, binding) = (front.clone(), parts.method.index, parts.binding.clone());
    let variables: Vec<_> = parts.variables.into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
    let (parameters, body) = (parts.parameters, front.in_flight.count(parts.body, caller)?);
    let work = move || {
        let variables = variables.iter().map(|(field, value)| (field.as_str(), value.clone())).collect();
        let method = front.contract().method(method);
        encode(&front, &Parts { method, binding: &binding, variables, parameters, body })
    };
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
}

/// Path, query and body as one encoded request, and the fields that the body names.
fn encode(front: &Front, parts: &Parts<'_>) -> Result<Encoded> {
    let tables = front.tables();
    let id = message_id(front, parts.method.input.full_name())?;
    let mut wire = Vec::with_capacity(parts.body.len() + 128);
    let mut violations = Vec::new();
    let mut present = None;
    if parts.binding.body != Body::Whole {
        let mut given = HashSet::new();
        for Parameter { name, value, of_form } in &parts.parameters {
            let wrong = match tables.set_parameter(id, name, value, &mut wire) {
                Ok(true) => {
                    let path = tables.singular_path(id, name);
                    path.is_some_and(|path| !given.insert(path)).then(|| field_violation(name, GIVEN_TWICE))
                }
                Ok(false) => of_form.then(|| field_violation(name, "the method has no such field")),
                Err(error) => Some(violation(name, error)),
            };
            violations.extend(wrong);
            if violations.len() >= MAX_VIOLATIONS {
                break;
            }
        }
    }
    match &parts.binding.body {
        Body::None => {}
        Body::Whole => {
            let paths = read_json(front, id, &parts.body, &mut wire)?;
            present = parts.method.resource_field().map(|field| relative_paths(field.name(), paths));
        }
        Body::Field(field) => {
            // A list of messages is no resource: it stands in the body as the field's value.
            let is_list = parts.method.input.get_field_by_name(field).is_some_and(|field| field.is_list());
            if let Some(inner) = tables.message_at(id, field).filter(|_| !is_list) {
                let mut resource = Vec::new();
                present = Some(read_json(front, inner, &parts.body, &mut resource)?);
                tables.embed(id, field, &resource, &mut wire);
            } else {
                // A field that is no single message: its value stands alone in the body, and nothing beside it.
                if let Err(error) = serde_json::from_slice::<serde_json::Value>(&parts.body) {
                    return Err(malformed(format!("malformed JSON: {error}")));
                }
                let json = [b"{\"", field.as_bytes(), b"\":", &*parts.body, b"}"].concat();
                read_json(front, id, &json, &mut wire)?;
            }
        }
    }
    for (field, value) in &parts.variables {
        if let Err(error) = tables.set_parameter(id, field, value, &mut wire) {
            violations.push(violation(field, error));
        }
    }
    if violations.is_empty() { Ok((wire, present)) } else { Err(Error::invalid(violations)) }
}

/// The paths below `field`, relative to it.
fn relative_paths(field: &str, paths: Vec<String>) -> Vec<String> {
    let relative = |path: String| Some(path.strip_prefix(field)?.strip_prefix('.')?.to_owned());
    paths.into_iter().filter_map(relative).collect()
}

fn read_json(front: &Front, id: MessageId, body: &[u8], wire: &mut Vec<u8>) -> Result<Vec<String>> {
    let body = if body.iter().all(u8::is_ascii_whitespace) { b"{}" } else { body };
    match front.tables().from_json(id, body, wire) {
        Ok(presence) => Ok(presence.paths().to_vec()),
        Err(errors) => {
            let (fields, syntax): (Vec<_>, Vec<_>) = errors.into_iter().partition(|error| !error.field.is_empty());
            if let Some(error) = syntax.into_iter().next() {
                return Err(malformed(error.message));
            }
            let violations = fields.into_iter().map(|e| FieldViolation { field: e.field, description: e.message });
            Err(Error::invalid(violations.collect()))
        }
    }
}

fn violation(name: &str, error: TranscodeError) -> FieldViolation {
    let field = if error.field.is_empty() { name.to_owned() } else { error.field };
    FieldViolation { field, description: error.message }
}

fn field_violation(name: &str, description: &str) -> FieldViolation {
    FieldViolation { field: name.into(), description: description.into() }
}

pub(crate) fn malformed(message: String) -> Error {
    Error::new(Reason::InvalidArgument, format!("Invalid argument: {message}"))
}

pub(crate) fn message_id(front: &Front, name: &str) -> Result<MessageId> {
    front.tables().message(name).ok_or_else(|| Error::internal(format!("{name} has no table")))
}
