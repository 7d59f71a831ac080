//! Checks request fields: `field_behavior`, enum ranges, and the string rules of `bowline.contract.v1`.
//!
//! Reads the wire bytes once; nothing is decoded into a message for it.

use std::collections::{BTreeMap, HashMap, HashSet};

use bowline_core::MAX_VIOLATIONS;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::fields::{Fields, Payload, packed_varints};
use crate::options;
use crate::text_rule::{TextRule, text_rules};

mod facts;
pub use facts::{FieldFacts, TextFacts};

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Dotted path in JSON names.
    pub field: String,
    pub description: String,
}

/// What is wrong with a message.
#[derive(Debug, Default)]
pub struct Violations {
    /// The first ones by field, [`MAX_VIOLATIONS`] at most.
    pub list: Vec<Violation>,
    /// How many there are besides.
    pub more: usize,
    /// Whether a list has too many elements or a text too many characters: then nothing costlier than these rules may
    /// look at the message.
    pub over_limit: bool,
}

impl Violations {
    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn push(&mut self, field: &str, description: impl Into<String>) {
        if self.list.len() < MAX_VIOLATIONS {
            self.list.push(Violation { field: field.into(), description: description.into() });
        } else {
            self.more += 1;
        }
    }
}

/// The rules of every message of the contract, compiled.
#[derive(Default)]
pub struct FieldRules {
    plans: Vec<Plan>,
    by_message: HashMap<String, usize>,
}

/// What to look at in one message.
#[derive(Default)]
struct Plan {
    fields: BTreeMap<u32, FieldPlan>,
}

struct FieldPlan {
    json_name: String,
    proto_name: String,
    required: bool,
    /// Names the scope that is authorized: inside a batch, the scope of the batch replaces it.
    scope: bool,
    repeated: bool,
    /// Maximum number of elements of a repeated field, of whatever type.
    max_elements: usize,
    check: Check,
}

enum Check {
    Nothing,
    Text(Option<TextRule>),
    Enum(HashSet<i32>),
    Message(usize),
}

/// The occurrences of one field. A message that comes in several is the one that they merge to; of a
/// scalar the last one counts.
#[derive(Default)]
struct Occurrences<'a> {
    count: usize,
    last: Option<Payload<'a>>,
    merged: Vec<u8>,
}

impl<'a> Occurrences<'a> {
    fn add(&mut self, field: &FieldPlan, payload: Payload<'a>) {
        let is_message = matches!(field.check, Check::Message(_));
        match &payload {
            // An empty message is present; an empty scalar is not distinguished from an absent one.
            Payload::Empty if !is_message && !field.repeated => self.count = 0,
            _ => self.count += field.elements(&payload),
        }
        if is_message && !field.repeated {
            if let Some(Payload::Bytes(first)) = self.last.take_if(|_| self.count == 2) {
                self.merged.extend(first);
            }
            if let (Payload::Bytes(bytes), true) = (&payload, self.count > 1) {
                self.merged.extend(*bytes);
            }
        }
        self.last = Some(payload);
    }

    fn payload(&self) -> Option<Payload<'_>> {
        if self.merged.is_empty() { self.last } else { Some(Payload::Bytes(&self.merged)) }
    }
}

impl FieldPlan {
    fn path(&self, prefix: &str) -> String {
        if prefix.is_empty() { self.json_name.clone() } else { format!("{prefix}.{}", self.json_name) }
    }

    /// Elements in one occurrence of the field.
    fn elements(&self, payload: &Payload<'_>) -> usize {
        match payload {
            // Enumerations of a list come one by one, or many in one.
            Payload::Bytes(packed) if self.repeated && matches!(self.check, Check::Enum(_)) => {
                packed_varints(packed).count()
            }
            _ => 1,
        }
    }

    fn validate_absence(&self, count: usize, prefix: &str, scope: &Scope<'_>, violations: &mut Violations) {
        let rule = match &self.check {
            Check::Text(rule) => rule.as_ref(),
            _ => None,
        };
        let is_needed = (self.required && !(self.scope && scope.depth > 0)) || rule.is_some_and(|rule| rule.not_empty);
        if count == 0 && is_needed && scope.validates_absence(&self.proto_name) {
            let field = self.path(prefix);
            violations.push(&field, required(&field));
        }
    }
}

/// Maximum number of elements of a repeated field or map to which no rule gives a number.
const MAX_ELEMENTS: usize = 1000;

impl FieldRules {
    /// # Panics
    /// A rule names a field that does not exist; in a part of the contract, it may be one of another file.
    pub(crate) fn load(pool: &DescriptorPool, is_whole: bool) -> FieldRules {
        let mut texts = text_rules(pool);
        let behavior = options::extension(pool, "google.api.field_behavior");
        let iam_scope = options::extension(pool, "chainguard.annotations.iam_scope");
        let messages: Vec<MessageDescriptor> = pool.all_messages().collect();
        let by_message: HashMap<String, usize> =
            messages.iter().enumerate().map(|(i, message)| (message.full_name().to_owned(), i)).collect();
        let mut plans = Vec::with_capacity(messages.len());
        for message in &messages {
            let mut plan = Plan::default();
            for field in message.fields() {
                let behaviors = behaviors(&field.options(), &behavior);
                if behaviors.contains(&OUTPUT_ONLY) {
                    texts.remove(field.full_name());
                    continue;
                }
                let rule = texts.remove(field.full_name());
                let max_elements = rule.as_ref().map_or(0, |rule| rule.max_elements);
                let max_elements = if max_elements == 0 { MAX_ELEMENTS } else { max_elements };
                let check = check(&field, rule, &by_message);
                plan.fields.insert(
                    field.number(),
                    FieldPlan {
                        json_name: field.json_name().into(),
                        proto_name: field.name().into(),
                        required: behaviors.contains(&REQUIRED) && can_be_absent(&field),
                        scope: options::get(&field.options(), &iam_scope).is_some(),
                        repeated: field.is_list() || field.is_map(),
                        max_elements,
                        check,
                    },
                );
            }
            plans.push(plan);
        }
        if let Some(unknown) = texts.keys().next().filter(|_| is_whole) {
            panic!("a field rule names {unknown}, which is no input field of the contract");
        }
        FieldRules { plans, by_message }
    }

    /// Compiles every pattern, so that no request waits for it.
    ///
    /// # Panics
    /// A pattern does not compile: a defect of the contract that no input causes; a test covers it.
    pub fn compile(&self) {
        for field in self.plans.iter().flat_map(|plan| plan.fields.values()) {
            if let Check::Text(Some(rule)) = &field.check {
                rule.compile();
            }
        }
    }

    /// Checks a request. `resource` names the request field that holds the resource: violations inside it are
    /// named relative to it. `mask` limits what is checked inside it to the fields that an update changes.
    pub fn validate(&self, message: &str, wire: &[u8], resource: Option<&str>, mask: Option<&[String]>) -> Violations {
        let mut violations = Violations::default();
        if let Some(plan) = self.by_message.get(message) {
            let scope = Scope { resource, mask, partial: false, depth: 0 };
            self.walk(*plan, wire, "", &scope, &mut violations);
        }
        violations.list.sort_by(|a, b| a.field.cmp(&b.field));
        violations
    }

    /// Counts every list of a message before it looks at the first element of any.
    fn walk(&self, plan: usize, wire: &[u8], prefix: &str, scope: &Scope<'_>, violations: &mut Violations) {
        let plan = &self.plans[plan];
        let masked_out: HashSet<u32> =
            plan.fields.iter().filter(|(_, field)| scope.is_masked_out(&field.proto_name)).map(|(n, _)| *n).collect();
        let Some(too_long) = Self::too_long(plan, &masked_out, wire, prefix, violations) else {
            return;
        };
        let mut found: BTreeMap<u32, Occurrences<'_>> = BTreeMap::new();
        for (number, payload) in Fields(wire).flatten() {
            let Some(field) = plan.fields.get(&number).filter(|_| !masked_out.contains(&number)) else {
                continue;
            };
            let found = found.entry(number).or_default();
            if field.repeated && !too_long.contains(&number) {
                let path = format!("{}[{}]", field.path(prefix), found.count);
                self.validate_value(field, &payload, &path, scope, violations);
            }
            found.add(field, payload);
        }
        for (number, field) in plan.fields.iter().filter(|(number, _)| !masked_out.contains(number)) {
            let found = found.remove(number).unwrap_or_default();
            if let Some(payload) = found.payload().filter(|_| !field.repeated) {
                self.validate_value(field, &payload, &field.path(prefix), scope, violations);
            }
            field.validate_absence(found.count, prefix, scope, violations);
        }
    }

    /// The lists of a message that have too many elements; absent if the message is damaged.
    fn too_long(
        plan: &Plan,
        masked_out: &HashSet<u32>,
        wire: &[u8],
        prefix: &str,
        violations: &mut Violations,
    ) -> Option<HashSet<u32>> {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for item in Fields(wire) {
            // What the walk cannot read, nothing behind it may: a decoder might read on.
            let Ok((number, payload)) = item else {
                violations.push(if prefix.is_empty() { "request" } else { prefix }, "is not well-formed");
                return None;
            };
            if let Some(field) = plan.fields.get(&number).filter(|field| field.repeated) {
                *counts.entry(number).or_default() += field.elements(&payload);
            }
        }
        let mut too_long = HashSet::new();
        for (number, count) in counts.iter().filter(|(number, _)| !masked_out.contains(number)) {
            let field = &plan.fields[number];
            if *count > field.max_elements {
                violations.push(&field.path(prefix), format!("at most {} elements", field.max_elements));
                violations.over_limit = true;
                too_long.insert(*number);
            }
        }
        Some(too_long)
    }

    fn validate_value(
        &self,
        field: &FieldPlan,
        payload: &Payload<'_>,
        path: &str,
        scope: &Scope<'_>,
        violations: &mut Violations,
    ) {
        match (&field.check, payload) {
            (Check::Text(Some(rule)), Payload::Bytes(bytes)) => {
                let text = String::from_utf8_lossy(bytes);
                let name = path.rsplit('.').next().unwrap_or(path);
                violations.over_limit |= rule.is_too_long(&text);
                if let Some(description) = rule.validate(name, &text) {
                    violations.push(path, description);
                }
            }
            (Check::Text(None), Payload::Bytes(bytes)) if bytes.contains(&0) => {
                violations.push(path, "must not contain the character U+0000");
            }
            (Check::Enum(known), Payload::Varint(value)) if !known.contains(&(*value as i32)) => {
                violations.push(path, format!("unknown enum value {}", *value as i32));
            }
            (Check::Enum(known), Payload::Bytes(packed)) if field.repeated => {
                for value in packed_varints(packed).filter(|value| !known.contains(&(*value as i32))) {
                    violations.push(path, format!("unknown enum value {}", value as i32));
                }
            }
            (Check::Message(inner), Payload::Bytes(_) | Payload::Empty) => {
                let bytes = if let Payload::Bytes(bytes) = payload { *bytes } else { &[] };
                if scope.depth < MAX_DEPTH {
                    let is_resource = scope.resource == Some(field.proto_name.as_str()) && scope.depth == 0;
                    let prefix = if is_resource { "" } else { path };
                    self.walk(*inner, bytes, prefix, &scope.nested(is_resource, &field.proto_name), violations);
                }
            }
            _ => {}
        }
    }
}

const REQUIRED: i32 = 2;
const OUTPUT_ONLY: i32 = 3;
const MAX_DEPTH: u32 = 100;

/// Where in the request the walk is.
struct Scope<'a> {
    resource: Option<&'a str>,
    mask: Option<&'a [String]>,
    /// Inside a message of which the mask names a part only: what is left out there is left alone.
    partial: bool,
    depth: u32,
}

impl Scope<'_> {
    fn nested(&self, is_resource: bool, field: &str) -> Scope<'_> {
        let mask = if self.depth == 0 && is_resource { self.mask } else { None };
        let whole = |path: &String| path == "*" || path == field;
        let partial = self.partial || (self.is_in_resource() && !self.mask.unwrap_or(&[]).iter().any(whole));
        Scope { resource: None, mask, partial, depth: self.depth + 1 }
    }

    fn is_in_resource(&self) -> bool {
        self.depth == 1 && self.mask.is_some()
    }

    fn is_masked_out(&self, field: &str) -> bool {
        self.is_in_resource() && !self.names(field)
    }

    fn validates_absence(&self, field: &str) -> bool {
        !self.partial && (!self.is_in_resource() || self.names(field))
    }

    fn names(&self, field: &str) -> bool {
        self.mask.unwrap_or(&[]).iter().any(|path| path == "*" || path.split('.').next() == Some(field))
    }
}

fn required(field: &str) -> String {
    format!("{} is required", field.rsplit('.').next().unwrap_or(field))
}

fn behaviors(field_options: &DynamicMessage, extension: &prost_reflect::ExtensionDescriptor) -> Vec<i32> {
    match options::get(field_options, extension) {
        Some(Value::List(list)) => list.iter().filter_map(Value::as_enum_number).collect(),
        _ => Vec::new(),
    }
}

/// A plain boolean that is false is not on the wire, and false is a valid value.
fn can_be_absent(field: &FieldDescriptor) -> bool {
    field.kind() != Kind::Bool || field.supports_presence()
}

fn check(field: &FieldDescriptor, rule: Option<TextRule>, by_message: &HashMap<String, usize>) -> Check {
    match field.kind() {
        Kind::String => Check::Text(rule),
        Kind::Enum(descriptor) => Check::Enum(descriptor.values().map(|value| value.number()).collect()),
        Kind::Message(inner) if !inner.full_name().starts_with("google.protobuf.") => {
            Check::Message(by_message[inner.full_name()])
        }
        _ => Check::Nothing,
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
