//! OpenAPI 3.1 from the contract: every route of one version, with the rules of its fields and the documentation of
//! the proto files.

mod errors;
mod parameters;
mod paths;

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::{ApiVersion, Auth, Body, Contract, Docs, MethodInfo};
use bowline_schemas::{Form, Schemas};
use prost_reflect::Kind;
use serde_json::{Map, Value, json};

use paths::{PathItem, Route};

/// Where the document holds its schemas.
const COMPONENTS: &str = "#/components/schemas/";

/// The document of one version.
pub fn openapi(contract: &Contract, version: ApiVersion, base_url: &str) -> Value {
    let methods: Vec<&MethodInfo> = contract.methods().iter().filter(|method| method.version == version).collect();
    let docs = Docs::load();
    let mut schemas = Schemas::new(contract, &docs, &methods, COMPONENTS);
    schemas.add(errors::STATUS);
    let mut all = Map::new();
    for item in paths::items(contract, &methods) {
        let mut operations = Map::new();
        for route in &item.routes {
            let operation = operation(&mut schemas, &item, route);
            operations.insert(route.binding.verb.name().to_lowercase(), operation);
        }
        all.insert(item.path, operations.into());
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bowline platform API",
            "version": version_name(version),
            "description": "Paths take the UIDPs of resources with their slashes written as `%2F` or as they are.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": base_url }],
        "security": [{ "bearer": [] }],
        "tags": tags(&methods),
        "paths": all,
        "components": {
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" } },
            "responses": errors::responses(version),
            "schemas": schemas.finish(),
        },
    })
}

fn version_name(version: ApiVersion) -> &'static str {
    match version {
        ApiVersion::V1 => "v1",
        ApiVersion::V2 => "v2",
    }
}

/// The domains, each with its services.
fn tags(methods: &[&MethodInfo]) -> Vec<Value> {
    let mut services: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for method in methods {
        let service = method.short_name().split('.').next().unwrap_or_default();
        services.entry(&method.domain).or_default().insert(service);
    }
    let tag = |(domain, services): (&str, BTreeSet<&str>)| {
        let services: Vec<&str> = services.into_iter().collect();
        json!({ "name": domain, "description": format!("Methods of {}.", services.join(", ")) })
    };
    services.into_iter().map(tag).collect()
}

fn operation(schemas: &mut Schemas<'_>, item: &PathItem<'_>, route: &Route<'_>) -> Value {
    let method = route.method;
    let mut operation = json!({
        "operationId": route.operation_id(),
        "summary": schemas.docs.of(&method.full_name),
        "tags": [method.domain],
        "parameters": parameters::of(schemas, item, route),
        "responses": responses(schemas, route),
    });
    if let Some(schema) = body(schemas, route) {
        let required = requires_body(schemas, route, &schema);
        operation["requestBody"] =
            json!({ "required": required, "content": { "application/json": { "schema": schema } } });
    }
    match &method.auth {
        Auth::Public => operation["security"] = json!([]),
        Auth::Capabilities { needed, .. } => {
            operation["x-capabilities"] = json!(schemas.contract.capabilities().names(needed));
        }
        // The method authenticates by itself: a code, or the token of another issuer, may replace the token.
        Auth::Own => operation["security"] = json!([{ "bearer": [] }, {}]),
    }
    operation
}

/// The body: the request, or one field of it, without what the path fills.
fn body(schemas: &mut Schemas<'_>, route: &Route<'_>) -> Option<Value> {
    let method = route.method;
    let filled: Vec<&str> = route.binding.template.fields().collect();
    match &route.binding.body {
        Body::None => None,
        Body::Whole => Some(schemas.request(method, &filled)),
        Body::Field(name) => {
            let field = method.input.get_field_by_name(name)?;
            let prefix = format!("{name}.");
            let filled: Vec<&str> = filled.iter().filter_map(|path| path.strip_prefix(prefix.as_str())).collect();
            Some(schemas.resource(method, &field, &filled))
        }
    }
}

/// Whether a request without a body lacks something: it is read as an empty object where the body is one.
fn requires_body(schemas: &Schemas<'_>, route: &Route<'_>, schema: &Value) -> bool {
    let Body::Field(name) = &route.binding.body else { return schema.get("required").is_some() };
    let Some(field) = route.method.input.get_field_by_name(name) else { return true };
    let Kind::Message(message) = field.kind() else { return true };
    let mut fields = message.fields().chain([field.clone()]);
    let is_required = |field| schemas.contract.field_rules().facts(&field).is_some_and(|facts| facts.required);
    field.is_list() || fields.any(is_required)
}

fn responses(schemas: &mut Schemas<'_>, route: &Route<'_>) -> Value {
    let method = route.method;
    let mut responses = errors::of(method, route.binding.body != Body::None);
    responses.insert("200".into(), success(schemas, method));
    responses.into()
}

fn success(schemas: &mut Schemas<'_>, method: &MethodInfo) -> Value {
    if method.output.full_name() == "google.protobuf.Empty" && method.version == ApiVersion::V2 {
        return json!({ "description": "Done; the body is empty." });
    }
    let schema = schemas.message(&method.output, Form::Output);
    if method.finite_stream {
        let mut content = json!({ "application/x-ndjson": { "schema": schema } });
        if method.input.get_field_by_name("format").is_some() {
            content["text/csv"] = json!({ "schema": { "type": "string" } });
        }
        return json!({ "description": "A line for each message; the connection breaks where the stream fails.", "content": content });
    }
    if method.server_streaming {
        return json!({
            "description": "Events as they come, until the client leaves or an event `error` says why the stream ends.",
            "content": { "text/event-stream": { "schema": events(method, schema) } },
        });
    }
    json!({ "description": "Done.", "content": { "application/json": { "schema": schema } } })
}

/// One server-sent event: OpenAPI 3.1 has no word for the items of a stream, and its tools read the schema as theirs.
fn events(method: &MethodInfo, message: Value) -> Value {
    let name = method.output.name().to_lowercase();
    let data =
        |schema: Value| json!({ "type": "string", "contentMediaType": "application/json", "contentSchema": schema });
    json!({
        "oneOf": [
            {
                "type": "object",
                "required": ["id", "event", "data"],
                "properties": {
                    "id": { "type": "string", "pattern": "^[0-9]+$", "description": "Position to resume from." },
                    "event": { "const": name },
                    "data": data(message),
                },
            },
            {
                "type": "object",
                "required": ["event", "data"],
                "properties": { "event": { "const": "error" }, "data": data(errors::status()) },
            },
        ],
    })
}
