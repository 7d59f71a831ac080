//! Documents as trees: what JSON and YAML have in common, with bounds on what is taken in.

use std::collections::BTreeSet;
use std::fmt;

use bowline_core::rfc3339::{self, Digits};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserializer, Serialize, Serializer};

use crate::model::Micros;
use crate::problem::Unreadable;

/// A value of a document. Members keep their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
    /// An object with a duplicate member; its name.
    Ambiguous(String),
}

impl Node {
    pub(crate) fn text(text: impl Into<String>) -> Node {
        Node::Text(text.into())
    }

    /// A time as RFC 3339, with as many digits as it needs.
    pub(crate) fn time(at: Micros) -> Node {
        Node::Text(rfc3339::text(at, Digits::Fewest))
    }

    /// An object without the members that are absent.
    pub(crate) fn map<const N: usize>(members: [(&str, Option<Node>); N]) -> Node {
        Node::Map(members.into_iter().filter_map(|(name, node)| Some((name.to_owned(), node?))).collect())
    }

    pub(crate) fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Node {
        Node::List(texts.into_iter().map(Node::text).collect())
    }

    /// A map, or `Ambiguous` if a name occurs twice.
    pub(crate) fn members(members: Vec<(String, Node)>) -> Node {
        let mut seen = BTreeSet::new();
        match members.iter().find(|(name, _)| !seen.insert(name.as_str())) {
            Some((name, _)) => Node::Ambiguous(name.clone()),
            None => Node::Map(members),
        }
    }

    /// As JSON that people can read, with a line end.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Texts, numbers and names that are texts: nothing here can fail to be written.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// The text; absent if it is empty.
pub(crate) fn non_empty_text(text: &str) -> Option<Node> {
    (!text.is_empty()).then(|| Node::text(text))
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Null | Node::Ambiguous(_) => serializer.serialize_unit(),
            Node::Bool(value) => serializer.serialize_bool(*value),
            Node::Int(value) => serializer.serialize_i64(*value),
            Node::Float(value) => serializer.serialize_f64(*value),
            Node::Text(text) => serializer.serialize_str(text),
            Node::List(elements) => {
                let mut list = serializer.serialize_seq(Some(elements.len()))?;
                elements.iter().try_for_each(|element| list.serialize_element(element))?;
                list.end()
            }
            Node::Map(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
        }
    }
}

/// How much of a document is taken in.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum bytes of a document.
    pub bytes: usize,
    /// Maximum number of values in a document, each member and element one.
    pub values: usize,
    /// How deep values may lie.
    pub depth: usize,
    /// Maximum number of advisories of a document.
    pub advisories: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 128 << 20, values: 8_000_000, depth: 64, advisories: 500_000 }
    }
}

/// What is left of the limits.
pub(crate) struct Budget {
    values: usize,
    depth: usize,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Budget {
        Budget { values: limits.values, depth: limits.depth }
    }

    /// Counts one more value at that depth.
    pub(crate) fn spend(&mut self, depth: usize) -> Result<(), String> {
        if depth > self.depth {
            return Err(format!("values lie deeper than {} levels", self.depth));
        }
        self.values = self.values.checked_sub(1).ok_or("the document has too many values")?;
        Ok(())
    }
}

/// Reads a JSON document.
pub(crate) fn from_json(bytes: &[u8], limits: &Limits) -> Result<Node, Unreadable> {
    if bytes.len() > limits.bytes {
        return Err(too_long(bytes.len(), limits));
    }
    let not_json = |error: serde_json::Error| Unreadable(format!("not readable as JSON: {error}"));
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let mut budget = Budget::new(limits);
    let node = Seed { budget: &mut budget, depth: 0 }.deserialize(&mut reader).map_err(not_json)?;
    reader.end().map_err(not_json)?;
    Ok(node)
}

pub(crate) fn too_long(length: usize, limits: &Limits) -> Unreadable {
    Unreadable(format!("the document has {length} bytes; at most {} are read", limits.bytes))
}

struct Seed<'a> {
    budget: &'a mut Budget,
    depth: usize,
}

impl Seed<'_> {
    fn below(&mut self) -> Seed<'_> {
        Seed { budget: self.budget, depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        self.budget.spend(self.depth).map_err(D::Error::custom)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(i64::try_from(value).map_or(Node::Float(value as f64), Node::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::text(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(self.below())? {
            list.push(element);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(name) = members.next_key::<String>()? {
            map.push((name, members.next_value_seed(self.below())?));
        }
        Ok(Node::members(map))
    }
}
