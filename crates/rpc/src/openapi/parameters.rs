//! Parameters of the path, the query and the header.

use bowline_contract::Body;
use bowline_schemas::{Form, Schemas, scoped};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Value, json};

use super::paths::{self, PathItem, Route};
use crate::slice::is_whole_list;

/// The parameters of a route.
pub(super) fn of(schemas: &mut Schemas<'_>, item: &PathItem<'_>, route: &Route<'_>) -> Vec<Value> {
    let variables = route.variables();
    let mut parameters: Vec<Value> =
        item.names.iter().zip(&variables).map(|(name, path)| in_path(schemas, route, name, path)).collect();
    if route.binding.body != Body::Whole {
        let mut query = Query { schemas, route, parameters: &mut parameters };
        query.of(&route.method.input, "", "", true);
    }
    if is_whole_list(route.method) {
        let numbers = [
            ("offset", 0, "Elements to leave out."),
            ("limit", 0, "Most elements of the response; all of them without it."),
            ("page", 1, "Number of a page; ignored beside `offset` or `limit`."),
            ("pageSize", 0, "Elements of a page; 50 if only `page` is there."),
        ];
        parameters.extend(numbers.map(|(name, least, description)| {
            json!({
                "name": name,
                "in": "query",
                "required": false,
                "description": description,
                "schema": { "type": "integer", "format": "int64", "minimum": least, "maximum": i64::MAX },
            })
        }));
    }
    if route.method.server_streaming {
        parameters.push(json!({
            "name": "Last-Event-ID",
            "in": "header",
            "description": "Id of the last event that arrived: the stream resumes after it.",
            "schema": { "type": "string", "pattern": "^[0-9]{1,18}$" },
        }));
    }
    parameters
}

fn in_path(schemas: &mut Schemas<'_>, route: &Route<'_>, name: &str, path: &str) -> Value {
    let mut schema = json!({ "type": "string" });
    let mut description = String::new();
    if let Some(field) = paths::field(route.method, path) {
        schema = schemas.field(&field, Form::Input);
        description = schemas.docs.of(field.full_name());
        if name != path {
            let space = if description.is_empty() { "" } else { " " };
            description.push_str(&format!("{space}Fills `{path}` of the request."));
        }
    }
    if route.method.authorized_field() == Some(path) {
        scoped(route.method, &mut schema);
    }
    if schema["type"] == "string" && schema.get("minLength").is_none() {
        schema["minLength"] = 1.into();
    }
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
}

struct Query<'q, 's> {
    schemas: &'q mut Schemas<'s>,
    route: &'q Route<'q>,
    parameters: &'q mut Vec<Value>,
}

impl Query<'_, '_> {
    /// The fields of a message that neither path nor body fill. `spelled` is the path of the message in JSON names,
    /// `path` in the contract's.
    fn of(&mut self, message: &MessageDescriptor, spelled: &str, path: &str, is_needed: bool) {
        for field in message.fields() {
            let own = format!("{path}{}", field.name());
            let is_body = matches!(&self.route.binding.body, Body::Field(body) if *body == own);
            let is_filled = self.route.binding.template.fields().any(|filled| filled == own);
            let Some(facts) = self.schemas.contract.field_rules().facts(&field) else { continue };
            if is_body || is_filled || field.is_map() {
                continue;
            }
            let name = format!("{spelled}{}", field.json_name());
            let is_needed = is_needed && facts.required;
            match field.kind() {
                Kind::Message(inner) if self.has_text_form(&inner) => {
                    let text = json!({ "type": "string", "minLength": 1 });
                    let schema = if field.is_list() { json!({ "type": "array", "items": text }) } else { text };
                    self.push(&field, name, is_needed, schema);
                }
                Kind::Message(inner) if is_text(inner.full_name()) => {
                    let schema = self.schemas.field(&field, Form::Input);
                    self.push(&field, name, is_needed, schema);
                }
                Kind::Message(inner) => {
                    if path.is_empty() && !field.is_list() && !inner.full_name().starts_with("google.protobuf.") {
                        self.of(&inner, &format!("{name}."), &format!("{own}."), is_needed);
                    }
                }
                _ => {
                    let schema = self.schemas.field(&field, Form::Input);
                    self.push(&field, name, is_needed, schema);
                }
            }
        }
    }

    fn has_text_form(&self, message: &MessageDescriptor) -> bool {
        self.schemas.contract.text_forms().any(|(name, _, _)| name == message.full_name())
    }

    fn push(&mut self, field: &FieldDescriptor, name: String, is_needed: bool, mut schema: Value) {
        let is_scope = name == field.json_name() && self.route.method.authorized_field() == Some(field.name());
        if is_scope {
            scoped(self.route.method, &mut schema);
        }
        self.parameters.push(json!({
            "name": name,
            "in": "query",
            "required": is_needed || is_scope,
            "description": self.schemas.docs.of(field.full_name()),
            "schema": schema,
        }));
    }
}

/// Messages that a parameter holds as their JSON text.
fn is_text(name: &str) -> bool {
    matches!(name, "google.protobuf.Timestamp" | "google.protobuf.Duration" | "google.protobuf.FieldMask")
}
