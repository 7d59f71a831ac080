//! The REST form of a call: path, query and body by the bindings of the contract, JSON by the transcoder.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_contract::{Body, Contract, MethodInfo, Verb};
use bowline_formats::percent::{self, NOT_UNRESERVED};
use bowline_transcode::{JsonOptions, Tables};
use bytes::Bytes;
use http::StatusCode;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use serde::Deserialize;
use serde_json::Value;

use crate::error::ClientError;

/// The tables of each part of the contract that was used.
static TABLES: Mutex<Vec<(DescriptorPool, Arc<Tables>)>> = Mutex::new(Vec::new());

/// Conversion tables of all messages of the part of the contract that a message is from.
pub fn tables(message: &MessageDescriptor) -> Arc<Tables> {
    // Nothing panics while it is locked but a defect of the build.
    let mut known = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let has_it = |pool: &DescriptorPool| pool.get_message_by_name(message.full_name()).as_ref() == Some(message);
    if let Some((_, tables)) = known.iter().find(|(pool, _)| has_it(pool)) {
        return tables.clone();
    }
    let tables = Arc::new(Tables::new(message.parent_pool()));
    known.push((message.parent_pool().clone(), tables.clone()));
    tables
}

/// A call as HTTP/1.1 carries it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RestRequest {
    pub(crate) verb: Verb,
    /// Path with the query, without the server's address.
    pub(crate) path: String,
    /// A JSON document, if the binding has a body.
    pub(crate) body: Option<String>,
}

impl RestRequest {
    /// The REST form of an encoded request.
    ///
    /// # Errors
    /// The contract gives the method no address, or the request has what a query cannot hold.
    pub(crate) fn new(method: &MethodInfo, request: &[u8]) -> Result<RestRequest, ClientError> {
        let Some(binding) = method.bindings.first() else {
            let name = &method.full_name;
            return Err(ClientError::Usage(format!("{name} has no REST address; it is called over gRPC alone")));
        };
        let mut json = to_json(&method.input, request)?;
        let mut path = String::new();
        let template = binding.template.to_string();
        let mut rest = template.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (variable, after) = after.split_once('}').unwrap_or((after, ""));
            path += before;
            path += &segments(&take(&mut json, variable.split('=').next().unwrap_or_default()));
            rest = after;
        }
        path += rest;
        let body = match &binding.body {
            Body::None => None,
            Body::Whole => Some(std::mem::take(&mut json)),
            Body::Field(name) => {
                let field = json.as_object_mut().and_then(|members| members.remove(name));
                Some(field.unwrap_or_else(|| Value::Object(serde_json::Map::new())))
            }
        };
        let mut query = Vec::new();
        parameters("", &json, &mut query)?;
        for (at, (name, value)) in query.into_iter().enumerate() {
            path.push(if at == 0 { '?' } else { '&' });
            path += &format!("{name}={}", percent::encode(&value, NOT_UNRESERVED));
        }
        Ok(RestRequest { verb: binding.verb, path, body: body.map(|body| body.to_string()) })
    }
}

/// The message that a JSON response is, encoded.
///
/// # Errors
/// The response is not that message.
pub(crate) fn response(method: &MethodInfo, json: &[u8]) -> Result<Bytes, ClientError> {
    let mut wire = Vec::new();
    let json = if json.trim_ascii().is_empty() { b"{}" } else { json };
    let tables = tables(&method.output);
    let Some(id) = tables.message(method.output.full_name()) else { return Ok(Bytes::new()) };
    match tables.from_json(id, json, &mut wire) {
        Ok(_) => Ok(wire.into()),
        Err(errors) => {
            let first = errors.first().map(ToString::to_string).unwrap_or_default();
            Err(ClientError::Transport(format!("the response is damaged: {first}")))
        }
    }
}

#[derive(Deserialize)]
struct Status {
    code: i32,
    message: String,
    #[serde(default)]
    details: Vec<Value>,
}

impl Status {
    /// Metadata of the detail that has some.
    fn facts(&self) -> BTreeMap<String, String> {
        let has_metadata = |detail: &&Value| {
            detail.get("@type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("/google.rpc.ErrorInfo"))
        };
        let metadata = self.details.iter().find(has_metadata).and_then(|info| info.get("metadata")?.as_object());
        let facts = metadata.into_iter().flatten();
        facts.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }
}

/// The error of a JSON body.
pub(crate) fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Status>(body) {
        Ok(status) => {
            let facts = status.facts();
            ClientError::Refused { code: status.code, message: status.message, facts }
        }
        Err(_) => ClientError::NotTheApi(status.as_u16()),
    }
}

fn to_json(message: &MessageDescriptor, wire: &[u8]) -> Result<Value, ClientError> {
    let options = JsonOptions { proto_names: true, emit_defaults: false };
    let name = message.full_name();
    let unknown = || ClientError::Usage(format!("{name} is not a message of the contract"));
    let tables = tables(message);
    let id = tables.message(name).ok_or_else(unknown)?;
    let mut json = Vec::new();
    let written = tables.to_json(id, wire, &options, &mut json);
    written.map_err(|error| ClientError::Usage(error.to_string()))?;
    serde_json::from_slice(&json).map_err(|error| ClientError::Usage(error.to_string()))
}

/// Takes the text at a dotted path out of a document.
fn take(json: &mut Value, path: &str) -> String {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Some(members) = json.as_object_mut() else { return String::new() };
    match rest {
        Some(rest) => members.get_mut(first).map(|inner| take(inner, rest)).unwrap_or_default(),
        None => members.remove(first).map(scalar).unwrap_or_default(),
    }
}

/// Escaped for a path; slashes separate segments.
fn segments(text: &str) -> String {
    let escaped = text.split('/').map(|segment| percent::encode(segment, NOT_UNRESERVED));
    escaped.collect::<Vec<_>>().join("/")
}

fn scalar(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn parameters(prefix: &str, json: &Value, query: &mut Vec<(String, String)>) -> Result<(), ClientError> {
    for (name, value) in json.as_object().into_iter().flatten() {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(_) => parameters(&format!("{name}."), value, query)?,
            Value::Array(items) => {
                for item in items {
                    query.push((name.clone(), element(&name, item)?));
                }
            }
            other => query.push((name, scalar(other.clone()))),
        }
    }
    Ok(())
}

/// An element of a list in a query: a scalar, or the text form of a message.
fn element(name: &str, item: &Value) -> Result<String, ClientError> {
    let Some(members) = item.as_object() else { return Ok(scalar(item.clone())) };
    let contract = Contract::load();
    let text = |field: &str| members.get(field).cloned().map(scalar).unwrap_or_default();
    let fits = |before: &str, after: &str| members.keys().all(|key| key == before || key == after);
    let mut forms = contract.text_forms();
    let form = forms.find(|(_, before, after)| fits(before, after));
    let refused = || ClientError::Usage(format!("{name}: a query cannot hold it; call the method over gRPC"));
    form.map(|(_, before, after)| format!("{}:{}", text(before), text(after))).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use bowline_contract::Method;
    use bowline_contract::chainguard::platform::common::UidpFilter;
    use bowline_contract::v2::iam as v2;
    use bowline_contract::v2::iam::rpc::groups_service::{CreateGroup, ListGroups, UpdateGroup};
    use prost::Message as _;

    use super::*;

    fn rest<M: Method>(request: &M::Request) -> RestRequest {
        let contract = Contract::load();
        RestRequest::new(contract.by_full_name(M::FULL_NAME).unwrap(), &request.encode_to_vec()).unwrap()
    }

    #[test]
    fn errors_have_their_facts() {
        let body = br#"{"code":7,"message":"no","details":[{"@type":"type.googleapis.com/google.rpc.Help"},
            {"@type":"type.googleapis.com/google.rpc.ErrorInfo","metadata":{"capability":"repo.create","scope":"a"}}]}"#;
        let ClientError::Refused { code: 7, message, facts } = refusal(StatusCode::FORBIDDEN, body) else {
            panic!("not a refusal")
        };
        assert_eq!(
            (message.as_str(), facts["capability"].as_str(), facts["scope"].as_str()),
            ("no", "repo.create", "a")
        );
        let bare = refusal(StatusCode::FORBIDDEN, br#"{"code":7,"message":"no"}"#);
        assert!(matches!(bare, ClientError::Refused { facts, .. } if facts.is_empty()));
    }

    #[test]
    fn requests_have_their_address_query_and_body() {
        let group = v2::Group { uid: "a/b".into(), name: "x y".into(), ..v2::Group::default() };
        let create = v2::CreateGroupRequest { parent: "a/b".into(), group: Some(group.clone()) };
        let created = rest::<CreateGroup>(&create);
        assert_eq!((created.verb, created.path.as_str()), (Verb::Post, "/iam/v2/groups/a/b"));
        assert_eq!(created.body.as_deref(), Some(r#"{"name":"x y","uid":"a/b"}"#));
        let mask = prost_types::FieldMask { paths: vec!["name".into(), "description".into()] };
        let update = rest::<UpdateGroup>(&v2::UpdateGroupRequest { group: Some(group), update_mask: Some(mask) });
        assert_eq!(update.path, "/iam/v2/groups/a/b?update_mask=name%2Cdescription");
        assert_eq!(update.body.as_deref(), Some(r#"{"name":"x y"}"#));
        let filter = UidpFilter { ids: vec!["a".into(), "b&c".into()], in_root: true, ..UidpFilter::default() };
        let list = v2::ListGroupsRequest { uidp: Some(filter), page_size: 5, ..v2::ListGroupsRequest::default() };
        let listed = rest::<ListGroups>(&list);
        assert_eq!(listed.path, "/iam/v2/groups?page_size=5&uidp.ids=a&uidp.ids=b%26c&uidp.in_root=true");
        assert_eq!(listed.body, None);
    }
}
