//! The `spec` of a document: values by the fields of its message, with the line of each.

use std::collections::BTreeMap;

use bowline_terminal::suggestion;
use prost_reflect::{FieldDescriptor, Kind as Type, MessageDescriptor};
use serde_json::Value;

use super::files::{Problems, ValueFiles};
use super::kinds::Kind;
use super::schema::{self, Members};
use super::yaml::{Content, Node};
use crate::{dynamic, input};

/// Largest file of a value, in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// A secret, which is in a file of its own.
#[derive(Clone)]
pub(super) struct Secret {
    /// Path of its field, in JSON names.
    pub(super) path: String,
    /// The file, as the document names it.
    pub(super) file: String,
    pub(super) value: String,
}

/// A `spec` as it was read.
#[derive(Default)]
pub(super) struct Spec {
    /// Values; references are paths.
    pub(super) members: Members,
    pub(super) secrets: Vec<Secret>,
    /// Lines of the fields, by their paths.
    pub(super) lines: BTreeMap<String, usize>,
}

/// Reads a `spec`; what is wrong goes to the problems.
pub(super) fn read(
    kind: &Kind,
    message: &MessageDescriptor,
    node: &Node,
    values: &ValueFiles<'_>,
    problems: &mut Problems<'_>,
) -> Spec {
    let mut reader = Reader { values, problems: &mut *problems, spec: Spec::default() };
    let fields = schema::fields_of_spec(kind, message);
    let members = reader.members(message, node, "", |name| {
        let field = schema::member(message, name)?;
        fields.get(field.json_name()).cloned()
    });
    let mut spec = reader.spec;
    match schema::canonical(message, &members) {
        Ok(members) => spec.members = members,
        Err(error) => problems.push(node.line, "spec", &error.to_string()),
    }
    spec
}

struct Reader<'r, 'p> {
    values: &'r ValueFiles<'r>,
    problems: &'r mut Problems<'p>,
    spec: Spec,
}

impl Reader<'_, '_> {
    fn members(
        &mut self,
        message: &MessageDescriptor,
        node: &Node,
        prefix: &str,
        find: impl Fn(&str) -> Option<FieldDescriptor>,
    ) -> Members {
        let mut members = Members::new();
        let Content::Map(entries) = &node.value else {
            if node.value != Content::Null {
                self.problem(node.line, prefix.trim_end_matches('.'), "must have members, as `field: value`");
            }
            return members;
        };
        for (name, line, value) in entries {
            let path = format!("{prefix}{name}");
            let Some(field) = find(name) else {
                let why = unknown(message, name, prefix.is_empty());
                self.problem(*line, &path, &why);
                continue;
            };
            let path = format!("{prefix}{}", field.json_name());
            self.spec.lines.insert(path.clone(), *line);
            if value.value == Content::Null {
                continue;
            }
            if let Some(value) = self.value(&field, value, &path) {
                members.insert(field.json_name().to_owned(), value);
            }
        }
        members
    }

    fn value(&mut self, field: &FieldDescriptor, node: &Node, path: &str) -> Option<Value> {
        match (&node.value, schema::structure(field)) {
            (Content::Map(entries), Some(entry)) if field.is_map() => {
                let field = entry.map_entry_value_field();
                let mut members = Members::new();
                for (name, line, value) in entries {
                    let path = format!("{path}.{name}");
                    self.spec.lines.insert(path.clone(), *line);
                    members.insert(name.clone(), self.single(&field, value, &path)?);
                }
                Some(Value::Object(members))
            }
            (Content::List(items), _) if field.is_list() => {
                let mut values = Vec::new();
                for (at, item) in items.iter().enumerate() {
                    values.push(self.single(field, item, &format!("{path}[{at}]"))?);
                }
                Some(Value::Array(values))
            }
            (_, _) if field.is_list() => self.problem(node.line, path, "must be a list"),
            (_, Some(_)) if field.is_map() => self.problem(node.line, path, "must have members, as `key: value`"),
            _ => self.single(field, node, path),
        }
    }

    /// A value that is neither a list nor a map.
    fn single(&mut self, field: &FieldDescriptor, node: &Node, path: &str) -> Option<Value> {
        if let Some(message) = schema::structure(field) {
            let find = |name: &str| schema::member(&message, name).filter(|field| !schema::is_output_only(field));
            return Some(Value::Object(self.members(&message, node, &format!("{path}."), find)));
        }
        if let Content::Map(entries) = &node.value {
            return self.file(field, entries, node.line, path);
        }
        let Content::Text(text) = &node.value else {
            return self.problem(node.line, path, "must be one value");
        };
        if schema::is_write_only(field) {
            let why = format!("is a secret: write it to a file, and `{}: {{fromFile: FILE}}` here", field.json_name());
            return self.problem(node.line, path, &why);
        }
        match scalar(field, text) {
            Ok(value) => Some(value),
            Err(why) => self.problem(node.line, path, &why),
        }
    }

    /// A text that is in a file.
    fn file(
        &mut self,
        field: &FieldDescriptor,
        entries: &[(String, usize, Node)],
        line: usize,
        path: &str,
    ) -> Option<Value> {
        let [(name, _, Node { value: Content::Text(file), .. })] = entries else {
            return self.problem(line, path, "must be one value, or {fromFile: FILE}");
        };
        if name != "fromFile" || field.kind() != Type::String {
            return self.problem(line, path, "must be one value, or {fromFile: FILE} where it is a text");
        }
        let read = self.values.path(file);
        let read = read.and_then(|path| input::read(&path, FILE_BYTES).map_err(|error| error.to_string()));
        let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| format!("{file}: must be UTF-8")));
        match text {
            Err(why) => self.problem(line, path, &why),
            Ok(text) if schema::is_write_only(field) => {
                // Editors end a file with a line feed, which is no part of a secret.
                let value = text.trim_end_matches(['\r', '\n']).to_owned();
                self.spec.secrets.push(Secret { path: path.to_owned(), file: file.clone(), value });
                None
            }
            Ok(text) => Some(Value::from(text)),
        }
    }

    fn problem(&mut self, line: usize, path: &str, why: &str) -> Option<Value> {
        let path = if path.is_empty() { "spec".to_owned() } else { format!("spec.{path}") };
        self.problems.push(line, &path, why);
        None
    }
}

/// A scalar as JSON has it.
fn scalar(field: &FieldDescriptor, text: &str) -> Result<Value, String> {
    let is_number = match field.kind() {
        Type::Int32 | Type::Sint32 | Type::Sfixed32 => text.parse::<i32>().is_ok(),
        Type::Int64 | Type::Sint64 | Type::Sfixed64 => text.parse::<i64>().is_ok(),
        Type::Uint32 | Type::Fixed32 => text.parse::<u32>().is_ok(),
        Type::Uint64 | Type::Fixed64 => text.parse::<u64>().is_ok(),
        _ => true,
    };
    if !is_number {
        return Err(format!("{text:?} is not a number, or too large"));
    }
    // A text that begins like a JSON array is one text here.
    match field.kind() {
        Type::Bool | Type::Enum(_) => dynamic::parse_scalar(field, text),
        _ => Ok(Value::from(text)),
    }
}

/// Why a member is unknown, with the nearest field.
fn unknown(message: &MessageDescriptor, name: &str, is_top: bool) -> String {
    if let Some(field) = schema::member(message, name) {
        if schema::is_output_only(&field) {
            return "is set by the server; leave it out".into();
        }
        if is_top && field.name() == "name" {
            return "the name is the end of `path`; leave it out here".into();
        }
        if is_top {
            return "belongs beside `kind`, as `uid`".into();
        }
    }
    let names: Vec<String> =
        message.fields().filter(|field| !schema::is_output_only(field)).map(|f| f.json_name().to_owned()).collect();
    let near = suggestion(name, names.iter().map(String::as_str));
    let near = if near.is_empty() { format!("; there are {}", names.join(", ")) } else { near };
    format!("unknown field{near}")
}
