//! Text fields of requests, found in the contract.

use std::collections::HashMap;
use std::fmt;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind as Type, MapKey, MessageDescriptor, Value};

/// Messages in messages that are looked into.
const DEPTH: usize = 4;

/// A text field of a request: where it is, and for a map whether its keys are meant.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    path: Vec<FieldDescriptor>,
    in_key: bool,
}

impl fmt::Display for Field {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.path.iter().map(FieldDescriptor::name).collect();
        formatter.write_str(&names.join("."))?;
        formatter.write_str(if self.in_key { " (key)" } else { "" })
    }
}

/// All text fields of a request, also those of messages in it.
pub(crate) fn fields(message: &MessageDescriptor) -> Vec<Field> {
    let mut found = Vec::new();
    walk(message, &mut Vec::new(), &mut found);
    found
}

fn walk(message: &MessageDescriptor, path: &mut Vec<FieldDescriptor>, found: &mut Vec<Field>) {
    for field in message.fields() {
        path.push(field.clone());
        match field.kind() {
            Type::String => found.push(Field { path: path.clone(), in_key: false }),
            Type::Message(entry) if field.is_map() => {
                let sides = [entry.map_entry_key_field(), entry.map_entry_value_field()];
                let are_texts = sides.iter().all(|side| side.kind() == Type::String);
                found.extend(
                    [false, true].into_iter().filter(|_| are_texts).map(|in_key| Field { path: path.clone(), in_key }),
                );
            }
            Type::Message(inner) if !inner.full_name().starts_with("google.") && path.len() <= DEPTH => {
                walk(&inner, path, found);
            }
            _ => {}
        }
        path.pop();
    }
}

/// Puts a text into a field, and the field into the mask of an update.
pub(crate) fn set(request: &mut DynamicMessage, field: &Field, text: &str) {
    set_at(request, &field.path, field.in_key, text);
    let mask = request.get_field_by_name("update_mask").map(std::borrow::Cow::into_owned);
    if let (Some(Value::Message(mut mask)), [_, rest @ ..]) = (mask, field.path.as_slice())
        && !rest.is_empty()
    {
        let names: Vec<&str> = rest.iter().map(FieldDescriptor::name).collect();
        mask.set_field_by_name("paths", Value::List(vec![Value::String(names.join("."))]));
        request.set_field_by_name("update_mask", Value::Message(mask));
    }
}

fn set_at(message: &mut DynamicMessage, path: &[FieldDescriptor], in_key: bool, text: &str) {
    let Some((field, rest)) = path.split_first() else { return };
    let written = Value::String(text.to_owned());
    if field.is_map() {
        let (key, value) = if in_key { (text, Value::String("value".into())) } else { ("key", written) };
        return message.set_field(field, Value::Map(HashMap::from([(MapKey::String(key.to_owned()), value)])));
    }
    if rest.is_empty() {
        return message.set_field(field, if field.is_list() { Value::List(vec![written]) } else { written });
    }
    let Type::Message(kind) = field.kind() else { return };
    let first = match message.get_field(field).into_owned() {
        Value::Message(inner) => Some(inner),
        Value::List(items) => items.into_iter().find_map(|item| match item {
            Value::Message(inner) => Some(inner),
            _ => None,
        }),
        _ => None,
    };
    let mut inner = first.unwrap_or_else(|| DynamicMessage::new(kind));
    set_at(&mut inner, rest, in_key, text);
    let value = Value::Message(inner);
    message.set_field(field, if field.is_list() { Value::List(vec![value]) } else { value });
}
