use bowline_client::{Api, ClientError, tables};
use bowline_contract::MethodInfo;
use bowline_transcode::JsonOptions;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value};

/// A request as it is sent.
///
/// # Errors
/// Values that do not fit their fields; all of them are named.
pub(crate) fn encoded(message: &MessageDescriptor, request: &Map<String, Value>) -> Result<Vec<u8>, ClientError> {
    let unknown = || ClientError::Usage(format!("{} is not a message of the contract", message.full_name()));
    let tables = tables(message);
    let id = tables.message(message.full_name()).ok_or_else(unknown)?;
    let json = Value::Object(request.clone()).to_string();
    let mut wire = Vec::new();
    tables.from_json(id, json.as_bytes(), &mut wire).map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        ClientError::Usage(all.join("; "))
    })?;
    Ok(wire)
}

/// A message as the API writes it.
///
/// # Errors
/// The bytes are not that message.
pub(crate) fn to_json(message: &MessageDescriptor, wire: &[u8]) -> Result<Value, ClientError> {
    written(message, wire, true)
}

/// The same without fields that have their defaults.
///
/// # Errors
/// The bytes are not that message.
pub(crate) fn to_sparse_json(message: &MessageDescriptor, wire: &[u8]) -> Result<Value, ClientError> {
    written(message, wire, false)
}

fn written(message: &MessageDescriptor, wire: &[u8], emit_defaults: bool) -> Result<Value, ClientError> {
    let damaged = |why: String| ClientError::Transport(format!("the response is damaged: {why}"));
    let tables = tables(message);
    let id = tables.message(message.full_name()).ok_or_else(|| damaged(message.full_name().to_owned()))?;
    let options = JsonOptions { proto_names: false, emit_defaults };
    let mut json = Vec::new();
    tables.to_json(id, wire, &options, &mut json).map_err(|error| damaged(error.to_string()))?;
    serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))
}

/// Calls a method with a request in JSON; the response in JSON.
///
/// # Errors
/// The request has what its message does not take, the server refuses, or no response comes.
pub(crate) async fn call(api: &Api, method: &MethodInfo, request: &Map<String, Value>) -> Result<Value, ClientError> {
    let wire = api.call_encoded(method, &encoded(&method.input, request)?).await?;
    to_json(&method.output, &wire)
}

/// The same; the response is without fields that have their defaults.
///
/// # Errors
/// The request has what its message does not take, the server refuses, or no response comes.
pub(crate) async fn call_sparse(
    api: &Api,
    method: &MethodInfo,
    request: &Map<String, Value>,
) -> Result<Value, ClientError> {
    let wire = api.call_encoded(method, &encoded(&method.input, request)?).await?;
    to_sparse_json(&method.output, &wire)
}

/// Whether a method has pages: its request takes a token and its response gives the next one.
pub(crate) fn page_token_field(method: &MethodInfo) -> bool {
    let is_text = |message: &MessageDescriptor, name: &str| {
        message.get_field_by_name(name).is_some_and(|field| field.kind() == Kind::String)
    };
    is_text(&method.input, "page_token") && is_text(&method.output, "next_page_token")
}

/// The field with the elements of a list: the first list of messages in the response.
pub(crate) fn list_field(method: &MethodInfo) -> Option<FieldDescriptor> {
    method.output.fields().find(|field| field.is_list() && matches!(field.kind(), Kind::Message(_)))
}

/// The elements of a page of a list.
pub(crate) fn elements<'p>(method: &MethodInfo, page: &'p Value) -> &'p [Value] {
    let elements = list_field(method).and_then(|field| page.get(field.json_name())?.as_array());
    elements.map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bowline_contract::Contract;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_elements_are_those_of_the_field_that_the_contract_names() {
        let contract = Contract::load();
        let of = |name: &str, page: Value| elements(contract.by_full_name(name).unwrap(), &page).to_vec();
        let groups = "chainguard.platform.iam.v2.GroupsService.ListGroups";
        assert_eq!(of(groups, json!({ "groups": [{ "uid": "a" }], "nextPageToken": "" })), [json!({ "uid": "a" })]);
        assert!(of(groups, json!({ "other": [{}, {}] })).is_empty());
        // The bounds are more than the points, and no messages.
        let metrics = "bowline.operator.v1.Operator.GetMetrics";
        assert_eq!(of(metrics, json!({ "bounds": [1, 2, 3], "points": [{ "calls": 1 }] })), [json!({ "calls": 1 })]);
    }
}
