//! The REST form of a call: path, query and body by the bindings of the contract, JSON by the transcoder.

use bowline_contract::{Body, Contract, MethodInfo, Verb};
use bowline_formats::percent::{self, NOT_UNRESERVED};
use bowline_transcode::{JsonOptions, Tables};
use prost_reflect::MessageDescriptor;
use serde_json::Value;

use crate::Inexpressible;

/// A call as HTTP/1.1 carries it.
#[derive(Debug, PartialEq, Eq)]
pub struct RestRequest {
    pub verb: Verb,
    /// Path with the query, without the server's address.
    pub path: String,
    /// A JSON document, if the binding has a body.
    pub body: Option<String>,
}

impl RestRequest {
    /// The REST form of an encoded request.
    ///
    /// # Errors
    /// The contract gives the method no address, or the request has what a query cannot hold.
    pub fn new(tables: &Tables, method: &MethodInfo, request: &[u8]) -> Result<RestRequest, Inexpressible> {
        let Some(binding) = method.bindings.first() else {
            let name = &method.full_name;
            return Err(Inexpressible(format!("{name} has no REST address; it is called over gRPC alone")));
        };
        let mut json = to_json(tables, &method.input, request)?;
        let mut path = String::new();
        let template = binding.template.to_string();
        let mut rest = template.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (variable, after) = after.split_once('}').unwrap_or((after, ""));
            path += before;
            path += &segments(&take(&mut json, variable.split('=').next().unwrap_or_default()))?;
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
            // Names have keys of maps in them, which callers choose.
            path += &format!("{}={}", percent::encode(&name, NOT_UNRESERVED), percent::encode(&value, NOT_UNRESERVED));
        }
        Ok(RestRequest { verb: binding.verb, path, body: body.map(|body| body.to_string()) })
    }
}

/// A request as JSON, in proto names and without defaults.
pub(crate) fn to_json(tables: &Tables, message: &MessageDescriptor, wire: &[u8]) -> Result<Value, Inexpressible> {
    let options = JsonOptions { proto_names: true, emit_defaults: false };
    let name = message.full_name();
    let unknown = || Inexpressible(format!("{name} is not a message of the contract"));
    let id = tables.message(name).ok_or_else(unknown)?;
    let mut json = Vec::new();
    let written = tables.to_json(id, wire, &options, &mut json);
    written.map_err(|error| Inexpressible(error.to_string()))?;
    serde_json::from_slice(&json).map_err(|error| Inexpressible(error.to_string()))
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
///
/// # Errors
/// A segment is `.` or `..`, which clients and proxies remove: the request would reach another address.
fn segments(text: &str) -> Result<String, Inexpressible> {
    if let Some(dots) = text.split('/').find(|segment| matches!(*segment, "." | "..")) {
        return Err(Inexpressible(format!("an address cannot hold the segment \"{dots}\"; call the method over gRPC")));
    }
    let escaped = text.split('/').map(|segment| percent::encode(segment, NOT_UNRESERVED));
    Ok(escaped.collect::<Vec<_>>().join("/"))
}

fn scalar(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

pub(crate) fn parameters(prefix: &str, json: &Value, query: &mut Vec<(String, String)>) -> Result<(), Inexpressible> {
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
fn element(name: &str, item: &Value) -> Result<String, Inexpressible> {
    let Some(members) = item.as_object() else { return Ok(scalar(item.clone())) };
    let contract = Contract::load();
    let text = |field: &str| members.get(field).cloned().map(scalar).unwrap_or_default();
    let fits = |before: &str, after: &str| members.keys().all(|key| key == before || key == after);
    let mut forms = contract.text_forms();
    let form = forms.find(|(_, before, after)| fits(before, after));
    let refused = || Inexpressible(format!("{name}: a query cannot hold it; call the method over gRPC"));
    form.map(|(_, before, after)| format!("{}:{}", text(before), text(after))).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use bowline_contract::Method;
    use bowline_contract::chainguard::platform::common::UidpFilter;
    use bowline_contract::v2::iam as v2;
    use bowline_contract::v2::iam::rpc::groups_service::{CreateGroup, GetGroup, ListGroups, UpdateGroup};
    use prost::Message as _;

    use super::*;

    fn rest<M: Method>(request: &M::Request) -> RestRequest {
        let contract = Contract::load();
        let tables = Tables::new(contract.pool());
        RestRequest::new(&tables, contract.by_full_name(M::FULL_NAME).unwrap(), &request.encode_to_vec()).unwrap()
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

    #[test]
    fn addresses_have_no_segment_that_clients_remove() {
        let contract = Contract::load();
        let tables = Tables::new(contract.pool());
        let method = contract.by_full_name(GetGroup::FULL_NAME).unwrap();
        let get = |uid: &str| {
            let request = v2::GetGroupRequest { uid: uid.into() };
            RestRequest::new(&tables, method, &request.encode_to_vec()).map(|request| request.path)
        };
        for uid in ["../../x", "a/..", "a/./b", "."] {
            assert!(get(uid).is_err(), "{uid}");
        }
        assert_eq!(get("a/...").as_deref(), Ok("/iam/v2/groups/a/..."));
    }
}
