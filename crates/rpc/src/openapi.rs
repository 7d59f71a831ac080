//! OpenAPI 3.1 from the contract: every bound method of one version, with the documentation of the proto files.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::{ApiVersion, Auth, Body, Contract, HttpBinding, MethodInfo};
use prost_reflect::{DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

/// The document of one version.
pub fn openapi(contract: &Contract, version: ApiVersion, base_url: &str) -> Value {
    let mut builder = Builder { docs: Docs::load(), wanted: BTreeSet::new(), schemas: BTreeMap::new() };
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for method in contract.methods().iter().filter(|method| method.version == version) {
        for binding in &method.bindings {
            let operation = builder.operation(contract, method, binding);
            let path = paths.entry(path_of(&binding.template.to_string())).or_default();
            path.insert(binding.verb.name().to_lowercase(), operation);
        }
    }
    builder.wanted.insert("google.rpc.Status".into());
    builder.finish(contract.pool());
    let name = if version == ApiVersion::V1 { "v1" } else { "v2" };
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Bowline platform API", "version": name, "license": { "name": "Apache-2.0" } },
        "servers": [{ "url": base_url }],
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" } },
            "schemas": builder.schemas,
        },
    })
}

struct Builder {
    docs: Docs,
    wanted: BTreeSet<String>,
    schemas: BTreeMap<String, Value>,
}

impl Builder {
    fn operation(&mut self, contract: &Contract, method: &MethodInfo, binding: &HttpBinding) -> Value {
        let path_fields: Vec<&str> = binding.template.fields().collect();
        let mut parameters: Vec<Value> = path_fields
            .iter()
            .map(|field| json!({ "name": field, "in": "path", "required": true, "schema": { "type": "string" } }))
            .collect();
        if binding.body != Body::Whole {
            self.query_parameters(&method.input, "", &path_fields, binding, &mut parameters);
        }
        let mut operation = json!({
            "operationId": operation_id(method, binding),
            "summary": self.docs.of(&method.full_name),
            "tags": [method.domain],
            "parameters": parameters,
            "responses": {
                "200": self.response(&method.output),
                "default": {
                    "description": "An error.",
                    "content": { "application/json": { "schema": reference("google.rpc.Status") } }
                }
            },
        });
        if let Some(schema) = self.body_schema(method, binding) {
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        }
        match &method.auth {
            Auth::Public => operation["security"] = json!([]),
            Auth::Capabilities { needed, .. } => {
                operation["x-capabilities"] = json!(contract.capabilities().names(needed));
            }
            Auth::Own => {}
        }
        operation
    }

    fn body_schema(&mut self, method: &MethodInfo, binding: &HttpBinding) -> Option<Value> {
        match &binding.body {
            Body::None => None,
            Body::Whole => Some(self.message(&method.input)),
            Body::Field(field) => method.input.get_field_by_name(field).map(|field| self.field(&field)),
        }
    }

    fn response(&mut self, output: &MessageDescriptor) -> Value {
        if output.full_name() == "google.protobuf.Empty" {
            return json!({ "description": "Done." });
        }
        json!({ "description": "The answer.", "content": { "application/json": { "schema": self.message(output) } } })
    }

    fn query_parameters(
        &mut self,
        message: &MessageDescriptor,
        prefix: &str,
        path_fields: &[&str],
        binding: &HttpBinding,
        parameters: &mut Vec<Value>,
    ) {
        for field in message.fields() {
            let is_body = matches!(&binding.body, Body::Field(body) if prefix.is_empty() && body == field.name());
            let name = format!("{prefix}{}", field.json_name());
            if is_body || path_fields.contains(&field.name()) || field.is_map() {
                continue;
            }
            match field.kind() {
                Kind::Message(inner) if !inner.full_name().starts_with("google.protobuf.") => {
                    if prefix.is_empty() && !field.is_list() {
                        self.query_parameters(&inner, &format!("{name}."), path_fields, binding, parameters);
                    }
                }
                _ => parameters.push(json!({
                    "name": name,
                    "in": "query",
                    "description": self.docs.of(field.full_name()),
                    "schema": self.field(&field),
                })),
            }
        }
    }

    fn message(&mut self, message: &MessageDescriptor) -> Value {
        if let Some(known) = well_known(message.full_name()) {
            return known;
        }
        self.wanted.insert(message.full_name().into());
        reference(message.full_name())
    }

    fn field(&mut self, field: &FieldDescriptor) -> Value {
        if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                return json!({});
            };
            let value = self.kind(&entry.map_entry_value_field());
            return json!({ "type": "object", "additionalProperties": value });
        }
        let value = self.kind(field);
        if field.is_list() { json!({ "type": "array", "items": value }) } else { value }
    }

    fn kind(&mut self, field: &FieldDescriptor) -> Value {
        match field.kind() {
            Kind::Message(message) => self.message(&message),
            Kind::Enum(descriptor) => enumeration(&descriptor),
            Kind::String => json!({ "type": "string" }),
            Kind::Bytes => json!({ "type": "string", "format": "byte" }),
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Double | Kind::Float => json!({ "type": "number" }),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => json!({ "type": "string", "format": "int64" }),
            Kind::Uint64 | Kind::Fixed64 => json!({ "type": "string", "format": "uint64" }),
            _ => json!({ "type": "integer", "format": "int32" }),
        }
    }

    /// Schemas of everything that was referred to, and of what those refer to.
    fn finish(&mut self, pool: &DescriptorPool) {
        while let Some(name) = self.wanted.pop_first() {
            if self.schemas.contains_key(&name) {
                continue;
            }
            self.schemas.insert(name.clone(), Value::Null);
            let Some(message) = pool.get_message_by_name(&name) else {
                continue;
            };
            let mut properties = Map::new();
            for field in message.fields() {
                let mut schema = self.field(&field);
                let text = self.docs.of(field.full_name());
                if let (Some(schema), false) = (schema.as_object_mut(), text.is_empty()) {
                    schema.insert("description".into(), text.into());
                }
                properties.insert(field.json_name().into(), schema);
            }
            let schema = json!({ "type": "object", "description": self.docs.of(&name), "properties": properties });
            self.schemas.insert(name, schema);
        }
    }
}

fn enumeration(descriptor: &EnumDescriptor) -> Value {
    let names: Vec<String> = descriptor.values().map(|value| value.name().to_owned()).collect();
    json!({ "type": "string", "enum": names })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn well_known(name: &str) -> Option<Value> {
    Some(match name {
        "google.protobuf.Timestamp" => json!({ "type": "string", "format": "date-time" }),
        "google.protobuf.Duration" => json!({ "type": "string", "examples": ["3600s"] }),
        "google.protobuf.FieldMask" => json!({ "type": "string", "examples": ["name,description"] }),
        "google.protobuf.Value" => json!({}),
        "google.protobuf.Any" => json!({
            "type": "object",
            "properties": { "@type": { "type": "string" } },
            "additionalProperties": true
        }),
        "google.protobuf.Struct" | "google.protobuf.Empty" => json!({ "type": "object" }),
        "google.protobuf.ListValue" => json!({ "type": "array", "items": {} }),
        _ => return None,
    })
}

/// `/a/{b.c=**}/d` is `/a/{b.c}/d`.
fn path_of(template: &str) -> String {
    let mut path = String::new();
    let mut in_pattern = false;
    for character in template.chars() {
        match character {
            '=' => in_pattern = true,
            '}' => in_pattern = false,
            _ => {}
        }
        if !in_pattern {
            path.push(character);
        }
    }
    path
}

fn operation_id(method: &MethodInfo, binding: &HttpBinding) -> String {
    let name = method.short_name().replace('.', "_");
    let is_first = method.bindings.first().is_some_and(|first| first.verb == binding.verb);
    if is_first {
        format!("{}_{name}", method.domain)
    } else {
        format!("{}_{name}_{}", method.domain, binding.verb.name())
    }
}

/// Leading comments by full name.
struct Docs(BTreeMap<String, String>);

impl Docs {
    /// From the documented descriptor set, which is read for this alone.
    fn load() -> Docs {
        let mut docs = BTreeMap::new();
        let pool = DescriptorPool::decode(bowline_contract::DESCRIPTOR_SET);
        let pool = pool.expect("the embedded descriptor set decodes, as a test of the contract shows");
        for file in pool.files() {
            let proto = file.file_descriptor_proto();
            let comments: BTreeMap<&[i32], &str> = proto
                .source_code_info
                .iter()
                .flat_map(|info| &info.location)
                .filter_map(|location| Some((location.path.as_slice(), location.leading_comments.as_deref()?)))
                .collect();
            let mut put = |path: &[i32], name: &str| {
                if let Some(text) = comments.get(path) {
                    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    docs.insert(name.to_owned(), text);
                }
            };
            for message in file.messages() {
                visit(&message, &mut put);
            }
            for service in file.services() {
                for method in service.methods() {
                    put(method.path(), method.full_name());
                }
            }
        }
        Docs(docs)
    }

    fn of(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }
}

fn visit(message: &MessageDescriptor, put: &mut impl FnMut(&[i32], &str)) {
    put(message.path(), message.full_name());
    for field in message.fields() {
        put(field.path(), field.full_name());
    }
    for child in message.child_messages() {
        visit(&child, put);
    }
}
