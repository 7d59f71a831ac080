//! Schemas of messages. A resource has up to three: as responses show it, as requests bring it, and as an update
//! does, which may leave everything out.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::{Contract, Docs, FieldFacts, MethodInfo, TextFacts};
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use crate::patterns::{RESERVED_NAME, UIDP, ecma};

/// A number of at most 64 bits as a text.
const INTEGER: &str = "^(?:0|-?[1-9][0-9]{0,18})$";

/// Which of the schemas of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// As responses show it.
    Output,
    /// As requests bring it.
    Input,
    /// As an update with a mask brings it.
    Update,
}

/// Schemas of messages and enumerations, collected as they are referred to.
pub struct Schemas<'a> {
    pub contract: &'a Contract,
    pub docs: &'a Docs,
    /// What references begin with, such as `#/components/schemas/`.
    base: &'static str,
    /// Messages that responses hold: what requests bring of these has a name of its own.
    outputs: BTreeSet<String>,
    pending: BTreeSet<(String, Form)>,
    enums: BTreeMap<String, EnumDescriptor>,
}

impl<'a> Schemas<'a> {
    /// A collection for a document that holds its schemas at `base`; `methods` are those whose responses it shows.
    pub fn new(contract: &'a Contract, docs: &'a Docs, methods: &[&MethodInfo], base: &'static str) -> Schemas<'a> {
        let mut outputs = BTreeSet::new();
        for method in methods {
            reach(&method.output, &mut outputs);
        }
        Schemas { contract, docs, base, outputs, pending: BTreeSet::new(), enums: BTreeMap::new() }
    }

    /// Adds a message that the document refers to by itself.
    pub fn add(&mut self, message: &str) {
        self.pending.insert((message.to_owned(), Form::Output));
    }

    /// A whole request, without the fields that the path fills.
    pub fn request(&mut self, method: &MethodInfo, filled: &[&str]) -> Value {
        let resource = method.resource_field().filter(|_| has_mask(method));
        let mut schema = self.object(&method.input, filled, true, |field| match &resource {
            Some(resource) if resource == field => Form::Update,
            _ => Form::Input,
        });
        let scope = method.authorized_field().filter(|path| !filled.contains(path));
        if let Some(field) = scope.and_then(|path| method.input.get_field_by_name(path)) {
            scoped(method, &mut schema["properties"][field.json_name()]);
            let name = Value::from(field.json_name());
            match schema.get_mut("required").and_then(Value::as_array_mut) {
                Some(names) if names.contains(&name) => {}
                Some(names) => names.push(name),
                None => schema["required"] = json!([name]),
            }
        }
        schema
    }

    /// The field of a request that stands alone in the body.
    pub fn resource(&mut self, method: &MethodInfo, field: &FieldDescriptor, filled: &[&str]) -> Value {
        let form = if has_mask(method) { Form::Update } else { Form::Input };
        match field.kind() {
            Kind::Message(message) if !field.is_list() && !filled.is_empty() => {
                self.object(&message, filled, false, |_| form)
            }
            _ => self.field(field, form),
        }
    }

    /// A message: a reference to its schema, or the schema itself of a message that JSON has as a value.
    pub fn message(&mut self, message: &MessageDescriptor, form: Form) -> Value {
        if let Some(known) = well_known(message.full_name()) {
            return known;
        }
        let form = if form == Form::Update && !self.requires(message) { Form::Input } else { form };
        self.pending.insert((message.full_name().into(), form));
        self.reference(&self.name(message.full_name(), form))
    }

    /// A field, with its rules unless responses show it.
    pub fn field(&mut self, field: &FieldDescriptor, form: Form) -> Value {
        let facts = match form {
            Form::Output => FieldFacts::default(),
            Form::Input | Form::Update => self.contract.field_rules().facts(field).unwrap_or_default(),
        };
        if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                return json!({});
            };
            let value = self.kind(&entry.map_entry_value_field(), form, false, &TextFacts::default());
            let mut schema = json!({ "type": "object", "additionalProperties": value });
            if entry.map_entry_key_field().kind() != Kind::String {
                schema["propertyNames"] = json!({ "pattern": INTEGER });
            }
            return limited(schema, "Properties", &facts);
        }
        if field.is_list() {
            let items = self.kind(field, form, facts.text.not_empty, &facts.text);
            return limited(json!({ "type": "array", "items": items }), "Items", &facts);
        }
        self.kind(field, form, facts.required, &facts.text)
    }

    fn kind(&mut self, field: &FieldDescriptor, form: Form, not_empty: bool, rule: &TextFacts) -> Value {
        let not_zero = not_empty && !field.is_list();
        let mut schema = match field.kind() {
            Kind::Message(message) => return self.message(&message, form),
            Kind::Enum(descriptor) => {
                let mut schema = self.reference(descriptor.full_name());
                if not_zero {
                    schema["not"] = json!({ "const": descriptor.default_value().name() });
                }
                self.enums.insert(descriptor.full_name().into(), descriptor);
                return schema;
            }
            Kind::String => return text(rule, not_empty),
            Kind::Bytes => {
                let mut schema = json!({ "type": "string", "format": "byte", "contentEncoding": "base64" });
                if not_empty {
                    schema["minLength"] = 1.into();
                }
                return schema;
            }
            Kind::Bool => return json!({ "type": "boolean" }),
            Kind::Double | Kind::Float => return json!({ "type": "number", "format": "double" }),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => return int64(field, form, not_zero),
            Kind::Uint64 | Kind::Fixed64 => {
                let digits = if not_zero { "^[1-9][0-9]{0,19}$" } else { "^(?:0|[1-9][0-9]{0,19})$" };
                return json!({ "type": "string", "format": "uint64", "pattern": digits });
            }
            Kind::Uint32 | Kind::Fixed32 => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
            _ => json!({ "type": "integer", "format": "int32", "minimum": i32::MIN, "maximum": i32::MAX }),
        };
        if not_zero {
            schema["not"] = json!({ "const": 0 });
        }
        if is_paging(field, form) {
            schema["minimum"] = 0.into();
        }
        schema
    }

    /// A message as an object. `is_request` where it is the request itself; `form_of` is the form of what a field holds.
    fn object(
        &mut self,
        message: &MessageDescriptor,
        without: &[&str],
        is_request: bool,
        form_of: impl Fn(&FieldDescriptor) -> Form,
    ) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for field in message.fields() {
            let form = form_of(&field);
            let facts = self.contract.field_rules().facts(&field);
            let is_shown = form == Form::Output || facts.is_some();
            if !is_shown || without.contains(&field.name()) {
                continue;
            }
            let mut schema = self.field(&field, form);
            let description = self.description(&field, facts.as_ref().filter(|_| form != Form::Output));
            if let (Some(schema), false) = (schema.as_object_mut(), description.is_empty()) {
                schema.insert("description".into(), description.into());
            }
            let is_required = match (form, facts) {
                // Responses leave out messages that are not set, members of a oneof, and the token of a last page.
                (Form::Output, _) => !field.supports_presence() && field.name() != "next_page_token",
                (Form::Input, Some(facts)) => facts.required && (is_request || !facts.scope),
                (Form::Update, Some(facts)) => is_request && facts.required,
                (_, None) => false,
            };
            if is_required {
                required.push(Value::from(field.json_name()));
            }
            properties.insert(field.json_name().into(), schema);
        }
        let exclusive = exclusive(message, &properties);
        let mut schema = json!({ "type": "object", "properties": properties });
        let description = self.docs.of(message.full_name());
        if !description.is_empty() {
            schema["description"] = description.into();
        }
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if !exclusive.is_empty() {
            schema["not"] = json!({ "anyOf": exclusive });
        }
        schema
    }

    fn reference(&self, name: &str) -> Value {
        json!({ "$ref": format!("{}{name}", self.base) })
    }

    fn description(&self, field: &FieldDescriptor, facts: Option<&FieldFacts>) -> String {
        let text = self.docs.of(field.full_name());
        match facts.map(|facts| &facts.text) {
            Some(rule) if rule.pattern.as_ref().is_some_and(|pattern| *pattern != rule.shown_pattern) => {
                format!("{text} Form: {}.", rule.shown_pattern)
            }
            _ => text,
        }
    }

    fn name(&self, message: &str, form: Form) -> String {
        match form {
            Form::Input if self.outputs.contains(message) => format!("{message}.Input"),
            Form::Output | Form::Input => message.into(),
            Form::Update => format!("{message}.Update"),
        }
    }

    /// Whether a request must bring anything of the message.
    fn requires(&self, message: &MessageDescriptor) -> bool {
        let mut reached = BTreeSet::new();
        reach(message, &mut reached);
        let messages = reached.iter().filter_map(|name| self.contract.pool().get_message_by_name(name));
        let mut facts = messages.flat_map(|message| {
            let facts = message.fields().filter_map(|field| self.contract.field_rules().facts(&field));
            facts.collect::<Vec<_>>()
        });
        facts.any(|facts| facts.required)
    }

    /// Schemas of everything that was referred to, and of what those refer to.
    pub fn finish(mut self) -> BTreeMap<String, Value> {
        let mut schemas = BTreeMap::new();
        while let Some((message, form)) = self.pending.pop_first() {
            let name = self.name(&message, form);
            if schemas.contains_key(&name) {
                continue;
            }
            schemas.insert(name.clone(), Value::Null);
            if let Some(message) = self.contract.pool().get_message_by_name(&message) {
                let schema = self.object(&message, &[], false, |_| form);
                schemas.insert(name, schema);
            }
        }
        for (name, descriptor) in &self.enums {
            let values: Vec<String> = descriptor.values().map(|value| value.name().to_owned()).collect();
            schemas.insert(name.clone(), json!({ "type": "string", "enum": values }));
        }
        schemas
    }
}

/// The schema of the field that names the scope.
pub fn scoped(method: &MethodInfo, schema: &mut Value) {
    schema["minLength"] = 1.into();
    if !method.scope_takes_names() {
        schema["pattern"] = UIDP.into();
    }
}

fn has_mask(method: &MethodInfo) -> bool {
    method.input.get_field_by_name("update_mask").is_some()
}

/// The message, and what is in it.
fn reach(message: &MessageDescriptor, reached: &mut BTreeSet<String>) {
    if !reached.insert(message.full_name().into()) {
        return;
    }
    for field in message.fields() {
        if let Kind::Message(inner) = field.kind() {
            reach(&inner, reached);
        }
    }
}

/// Numbers of a list request, which are never negative.
fn is_paging(field: &FieldDescriptor, form: Form) -> bool {
    form != Form::Output && matches!(field.name(), "page_size" | "skip")
}

fn int64(field: &FieldDescriptor, form: Form, not_zero: bool) -> Value {
    let digits = match (is_paging(field, form), not_zero) {
        (true, _) => "^(?:0|[1-9][0-9]{0,18})$",
        (false, true) => "^-?[1-9][0-9]{0,18}$",
        (false, false) => INTEGER,
    };
    json!({ "type": "string", "format": "int64", "pattern": digits })
}

fn limited(mut schema: Value, what: &str, facts: &FieldFacts) -> Value {
    if facts.required {
        schema[format!("min{what}")] = 1.into();
    }
    if facts.max_elements > 0 {
        schema[format!("max{what}")] = facts.max_elements.into();
    }
    schema
}

/// A text, under its rule. Where the empty text is allowed it passes whatever the rest of the rule says.
fn text(rule: &TextFacts, not_empty: bool) -> Value {
    let mut schema = json!({ "type": "string" });
    let pattern = match (&rule.pattern, rule.uidp) {
        (Some(pattern), _) => Some((ecma(pattern), rule.pattern_matches_empty)),
        (None, true) => Some((UIDP.to_owned(), false)),
        (None, false) => None,
    };
    if let Some((pattern, matches_empty)) = pattern {
        let is_wider = !not_empty && !matches_empty;
        schema["pattern"] = if is_wider { format!("^$|{pattern}") } else { pattern }.into();
    }
    if not_empty {
        schema["minLength"] = rule.min_characters.max(1).into();
    }
    if rule.max_characters > 0 {
        schema["maxLength"] = rule.max_characters.into();
    }
    if rule.resource_name {
        schema["not"] = json!({ "pattern": RESERVED_NAME });
    }
    schema
}

/// Pairs of members of a oneof: an object has one of them at most.
fn exclusive(message: &MessageDescriptor, properties: &Map<String, Value>) -> Vec<Value> {
    let mut pairs = Vec::new();
    for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
        let names: Vec<String> = oneof.fields().map(|field| field.json_name().to_owned()).collect();
        let names: Vec<&String> = names.iter().filter(|name| properties.contains_key(*name)).collect();
        for (at, first) in names.iter().enumerate() {
            pairs.extend(names[at + 1..].iter().map(|second| json!({ "required": [first, second] })));
        }
    }
    pairs
}

fn well_known(name: &str) -> Option<Value> {
    Some(match name {
        "google.protobuf.Timestamp" => json!({ "type": "string", "format": "date-time" }),
        "google.protobuf.Duration" => {
            json!({ "type": "string", "pattern": "^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?s$", "examples": ["3600s"] })
        }
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
