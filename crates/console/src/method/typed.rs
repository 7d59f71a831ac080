//! What was typed into a form, and the request that it makes.

use std::collections::BTreeMap;

use bowline_contract::MethodInfo;
use bowline_core::{Error, FieldViolation, Result};
use bowline_transcode::{JsonOptions, Tables};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::fields::{Input, Leaf};
use crate::query::Query;

/// Prefix of the names of fields in forms and addresses.
pub(crate) const PREFIX: &str = "f.";
/// Name of the field with the whole request.
pub(crate) const JSON: &str = "json";

/// Texts by the path of their field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Typed {
    texts: BTreeMap<String, String>,
    /// The whole request as JSON, which stands for all fields; empty for none.
    pub(crate) json: String,
}

impl Typed {
    /// Reads the fields of a query or a form.
    ///
    /// # Errors
    /// INVALID_ARGUMENT: the method has no such field.
    pub(crate) fn read(query: &Query, leaves: &[&Leaf]) -> Result<Typed> {
        let mut typed = Typed::default();
        for (name, value) in query.pairs() {
            let Some(path) = name.strip_prefix(PREFIX) else { continue };
            if !leaves.iter().any(|leaf| leaf.path == path) {
                return Err(Error::invalid_field(path, "is no field of this method; open the form again"));
            }
            typed.texts.entry(path.to_owned()).or_insert_with(|| lines(value));
        }
        Ok(typed)
    }

    pub(crate) fn get(&self, path: &str) -> &str {
        self.texts.get(path).map_or("", String::as_str)
    }

    /// Texts by their paths.
    pub(crate) fn of(texts: BTreeMap<String, String>) -> Typed {
        Typed { texts, json: String::new() }
    }

    /// All texts, with their paths.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn set(&mut self, path: &str, text: String) {
        self.texts.insert(path.to_owned(), text);
    }

    /// The request as JSON.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with the fields whose texts are no values.
    pub(crate) fn request(&self, leaves: &[&Leaf]) -> Result<Value> {
        if !self.json.trim().is_empty() {
            return match serde_json::from_str(&self.json) {
                Ok(Value::Object(members)) => Ok(Value::Object(members)),
                Ok(_) => Err(Error::invalid_field(JSON, "must be an object: { ... }")),
                Err(error) => Err(Error::invalid_field(JSON, format!("is no JSON: {error}"))),
            };
        }
        let (mut request, mut violations) = (Map::new(), Vec::new());
        for leaf in leaves {
            match value(leaf, self.get(&leaf.path)) {
                Ok(Some(value)) => insert(&mut request, &leaf.path, value),
                Ok(None) => {}
                Err(description) => violations.push(FieldViolation { field: leaf.path.clone(), description }),
            }
        }
        if violations.is_empty() { Ok(Value::Object(request)) } else { Err(Error::invalid(violations)) }
    }
}

/// A text with the line ends that it had before a browser sent it.
pub(crate) fn lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// The value that a text stands for; absent for none.
fn value(leaf: &Leaf, text: &str) -> std::result::Result<Option<Value>, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok(None);
    }
    let value = match &leaf.input {
        Input::Area | Input::Secret => Value::String(text.to_owned()),
        Input::Flag => match trimmed {
            "true" | "yes" => Value::Bool(true),
            "false" | "no" => Value::Bool(false),
            _ => return Err("must be true or false".to_owned()),
        },
        Input::Presence => Value::Object(Map::new()),
        Input::Lines(_) if !trimmed.starts_with('[') => {
            let items = trimmed.lines().map(str::trim).filter(|line| !line.is_empty());
            Value::Array(items.map(|line| Value::String(line.to_owned())).collect())
        }
        Input::Lines(_) | Input::Json => {
            serde_json::from_str(trimmed).map_err(|error| format!("is no JSON: {error}"))?
        }
        _ => Value::String(trimmed.to_owned()),
    };
    Ok(Some(value))
}

fn insert(object: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            object.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = object.entry(first.to_owned()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// The value at a dotted path, by proto names or JSON names.
pub(crate) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| value.get(name).or_else(|| value.get(camel(name))))
}

fn camel(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut is_first = false;
    for letter in name.chars() {
        match letter {
            '_' => is_first = true,
            letter if is_first => {
                text.push(letter.to_ascii_uppercase());
                is_first = false;
            }
            letter => text.push(letter),
        }
    }
    text
}

/// How a form writes the value of a field; empty for none.
pub(crate) fn text_of(leaf: &Leaf, value: Option<&Value>) -> String {
    let Some(value) = value else { return String::new() };
    match (&leaf.input, value) {
        (Input::Presence, _) => "true".to_owned(),
        (Input::Lines(_), Value::Array(items)) => list(items).unwrap_or_else(|| value.to_string()),
        (Input::Json | Input::Lines(_), value) => serde_json::to_string_pretty(value).unwrap_or_default(),
        (_, Value::String(text)) => lines(text),
        (_, value) => value.to_string(),
    }
}

/// The elements of a list in lines; absent where an element does not fit into one.
fn list(items: &[Value]) -> Option<String> {
    let texts: Option<Vec<String>> = items
        .iter()
        .map(|item| match item {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        })
        .collect();
    let texts = texts?;
    let fits = |text: &String| !text.is_empty() && text.trim() == text && !text.contains(['\n', '\r']);
    let is_plain = texts.iter().all(fits) && texts.first().is_none_or(|first| !first.starts_with('['));
    is_plain.then(|| texts.join("\n"))
}

/// Encodes the JSON of a method's request.
///
/// # Errors
/// INVALID_ARGUMENT with the fields whose values do not fit.
pub(crate) fn encode(tables: &Tables, method: &MethodInfo, request: &Value) -> Result<Bytes> {
    let id = tables.message(method.input.full_name());
    let id = id.ok_or_else(|| Error::internal(format!("no table for {}", method.input.full_name())))?;
    let mut wire = Vec::new();
    match tables.from_json(id, request.to_string().as_bytes(), &mut wire) {
        Ok(_) => Ok(wire.into()),
        Err(errors) => {
            let violation = |error: bowline_transcode::TranscodeError| FieldViolation {
                field: error.field,
                description: error.message,
            };
            Err(Error::invalid(errors.into_iter().map(violation).collect()))
        }
    }
}

/// A message as JSON with proto names; absent where it does not decode.
pub(crate) fn decode(tables: &Tables, message: &str, wire: &[u8]) -> Option<Value> {
    let id = tables.message(message)?;
    let mut json = Vec::new();
    tables.to_json(id, wire, &JsonOptions { proto_names: true, emit_defaults: false }, &mut json).ok()?;
    serde_json::from_slice(&json).ok()
}

#[cfg(test)]
mod tests {
    use bowline_contract::Contract;

    use super::super::fields::{fields, leaves};
    use super::*;

    const UPDATE: &str = "chainguard.platform.iam.v2.IdentitiesService.UpdateIdentity";

    #[test]
    fn what_is_shown_is_what_is_sent() {
        let contract = Contract::load();
        let method = contract.by_full_name(UPDATE).unwrap();
        let (nodes, tables) = (fields(&contract, method), Tables::new(contract.pool()));
        let leaves = leaves(&nodes);
        let text = r#"{"identity":{"uid":"a/b","name":"x","description":"two\nlines","static_keys":{"issuer":"https://i",
            "subject":"[s","issuer_keys":"{}","expiration_time":"2026-01-31T12:00:00Z","audiences":["[a","b"]}},
            "update_mask":"name,description"}"#;
        let wire = encode(&tables, method, &serde_json::from_str(text).unwrap()).unwrap();
        let json = decode(&tables, method.input.full_name(), &wire).unwrap();
        let mut typed = Typed::default();
        for leaf in &leaves {
            typed.set(&leaf.path, text_of(leaf, at(&json, &leaf.path)));
        }
        assert_eq!(typed.get("identity.static_keys.audiences"), r#"["[a","b"]"#);
        let again = encode(&tables, method, &typed.request(&leaves).unwrap()).unwrap();
        assert_eq!(again, wire);
    }

    #[test]
    fn wrong_texts_name_their_fields() {
        let contract = Contract::load();
        let method = contract.by_full_name(UPDATE).unwrap();
        let (nodes, tables) = (fields(&contract, method), Tables::new(contract.pool()));
        let leaves = leaves(&nodes);
        let unknown = Query::of(&[("f.identity.nothing", "x")]);
        assert!(Typed::read(&unknown, &leaves).is_err());
        let mut typed = Typed::read(&Query::of(&[("f.identity.claim_match.claims", "{")]), &leaves).unwrap();
        let error = typed.request(&leaves).unwrap_err();
        assert!(error.message().contains("identity.claim_match.claims: is no JSON"), "{error}");
        typed.json = "[]".into();
        assert!(typed.request(&leaves).is_err());
        typed.json = r#"{"identity":{"static_keys":{"expiration_time":"yesterday"}}}"#.into();
        let error = encode(&tables, method, &typed.request(&leaves).unwrap()).unwrap_err();
        assert!(error.message().contains("expirationTime"), "{error}");
    }

    /// A text that fits an input, where any does.
    fn example(leaf: &Leaf) -> Option<&str> {
        match &leaf.input {
            Input::Line | Input::Area | Input::Secret => Some("AAAA"),
            Input::Number => Some("7"),
            Input::Flag | Input::Presence => Some("true"),
            Input::Time => Some("2026-01-31T12:00:00Z"),
            Input::Duration => Some("60s"),
            Input::Choice(names) | Input::Lines(names) => names.last().map(String::as_str),
            Input::Mask | Input::Json => None,
        }
    }

    #[test]
    fn every_field_of_every_method_can_be_sent() {
        let contract = Contract::load();
        let tables = Tables::new(contract.pool());
        let mut sent = 0;
        for method in contract.methods() {
            let nodes = fields(&contract, method);
            let leaves = leaves(&nodes);
            for leaf in &leaves {
                let Some(text) = example(leaf) else { continue };
                let mut typed = Typed::default();
                typed.set(&leaf.path, text.to_owned());
                let wire = encode(&tables, method, &typed.request(&leaves).unwrap());
                let wire = wire.unwrap_or_else(|error| panic!("{} {}: {error}", method.full_name, leaf.path));
                let json = decode(&tables, method.input.full_name(), &wire).unwrap();
                assert_eq!(text_of(leaf, at(&json, &leaf.path)), text, "{} {}", method.full_name, leaf.path);
                sent += 1;
            }
        }
        assert!(sent > 1000, "hardly any field: {sent}");
    }
}
