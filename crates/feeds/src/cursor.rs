//! A position in a document, with typed access to its members.

use bowline_core::rfc3339;

use crate::model::Micros;
use crate::problem::RecordError;
use crate::tree::Node;

/// Maximum bytes of an id, a name, a version or a path.
pub(crate) const SHORT: usize = 1024;
/// Maximum bytes of words for people.
pub(crate) const LONG: usize = 16 << 10;

/// A value, and the path to it.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    node: &'a Node,
    path: String,
}

impl<'a> Cursor<'a> {
    pub(crate) fn root(node: &'a Node) -> Cursor<'a> {
        Cursor { node, path: String::new() }
    }

    pub(crate) fn position(&self) -> String {
        if self.path.is_empty() { "the document".into() } else { self.path.clone() }
    }

    pub(crate) fn error(&self, reason: impl Into<String>) -> RecordError {
        RecordError { position: self.position(), reason: reason.into() }
    }

    fn child(&self, name: &str, node: &'a Node) -> Cursor<'a> {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Cursor { node, path }
    }

    /// A member, if it is there and not null.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Cursor<'a>>, RecordError> {
        let found = self.raw_members()?.iter().find(|(member, _)| member == name);
        Ok(found.filter(|(_, node)| *node != Node::Null).map(|(member, node)| self.child(member, node)))
    }

    /// A member that has to be there.
    pub(crate) fn need(&self, name: &str) -> Result<Cursor<'a>, RecordError> {
        self.get(name)?.ok_or_else(|| self.error(format!("has no {name}")))
    }

    fn raw_members(&self) -> Result<&'a [(String, Node)], RecordError> {
        match self.node {
            Node::Map(members) => Ok(members),
            Node::Ambiguous(name) => Err(self.error(format!("has the member {name:?} twice"))),
            _ => Err(self.error("is no object")),
        }
    }

    /// The members of an object.
    pub(crate) fn members(&self) -> Result<Vec<(&'a str, Cursor<'a>)>, RecordError> {
        let members = self.raw_members()?.iter();
        Ok(members.map(|(name, node)| (name.as_str(), self.child(&format!("{name:?}"), node))).collect())
    }

    /// The elements of a list.
    pub(crate) fn elements(&self) -> Result<Vec<Cursor<'a>>, RecordError> {
        let Node::List(elements) = self.node else {
            return Err(self.error("is no list"));
        };
        let element = |(at, node)| Cursor { node, path: format!("{}[{at}]", self.path) };
        Ok(elements.iter().enumerate().map(element).collect())
    }

    /// The elements of a member that may be absent.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<Cursor<'a>>, RecordError> {
        self.get(name)?.map_or(Ok(Vec::new()), |list| list.elements())
    }

    /// A text of at most so many bytes, without control characters other than those of lines.
    pub(crate) fn bounded(&self, most: usize) -> Result<&'a str, RecordError> {
        let Node::Text(text) = self.node else {
            return Err(self.error("is no text"));
        };
        if text.len() > most {
            return Err(self.error(format!("has {} bytes; at most {most} are read", text.len())));
        }
        let is_control = |c: char| c.is_control() && !(most == LONG && "\n\r\t".contains(c));
        if text.contains(is_control) {
            return Err(self.error("has a control character"));
        }
        Ok(text)
    }

    /// A short text that is not empty.
    pub(crate) fn word(&self) -> Result<&'a str, RecordError> {
        match self.bounded(SHORT)? {
            "" => Err(self.error("is empty")),
            text => Ok(text),
        }
    }

    /// A short text, or nothing: for what was checked before.
    pub(crate) fn word_or_empty(&self) -> &'a str {
        self.word().unwrap_or_default()
    }

    /// A short text; empty where it is absent.
    pub(crate) fn short(&self, name: &str) -> Result<String, RecordError> {
        self.get(name)?.map_or(Ok(String::new()), |text| text.bounded(SHORT).map(str::to_owned))
    }

    /// Words for people; empty where they are absent.
    pub(crate) fn long(&self, name: &str) -> Result<String, RecordError> {
        self.get(name)?.map_or(Ok(String::new()), |text| text.bounded(LONG).map(str::to_owned))
    }

    /// The short texts of a list that may be absent.
    pub(crate) fn words(&self, name: &str) -> Result<Vec<String>, RecordError> {
        self.list(name)?.iter().map(|element| element.word().map(str::to_owned)).collect()
    }

    /// A value that is true or false, and nothing else.
    pub(crate) fn flag(&self) -> Result<bool, RecordError> {
        match self.node {
            Node::Bool(flag) => Ok(*flag),
            _ => Err(self.error("is neither true nor false")),
        }
    }

    /// A time in RFC 3339.
    pub(crate) fn time(&self) -> Result<Micros, RecordError> {
        rfc3339::parse_micros(self.word()?).ok_or_else(|| self.error("is no time in RFC 3339"))
    }

    /// A time that may be absent.
    pub(crate) fn time_of(&self, name: &str) -> Result<Option<Micros>, RecordError> {
        self.get(name)?.map(|time| time.time()).transpose()
    }
}
