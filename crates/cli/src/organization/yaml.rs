//! Reads YAML with the line of every value, which errors name. JSON is YAML, too.
//!
//! A scalar keeps its text: its field decides whether `1.10` is a number.

use std::collections::HashSet;

use granit_parser::{Event, Options, Parser, ScalarStyle};

/// Deepest nesting of a document.
const DEEPEST: usize = 100;

/// A value, and the line that it begins on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Null,
    Text(String),
    List(Vec<Node>),
    /// Members in their order, with the line of each name.
    Map(Vec<(String, usize, Node)>),
}

/// Why a text is not YAML, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) line: usize,
    pub(super) reason: String,
}

/// The documents of a text; empty ones are left out.
///
/// # Errors
/// The text is not YAML, nests too deep, or has aliases or a member twice.
pub(super) fn documents(text: &str) -> Result<Vec<Node>, Unreadable> {
    let mut builder = Builder::default();
    for next in Parser::new_from_str_with_options(text, Options::default()) {
        let (event, span) = next.map_err(|error| Unreadable { line: error.marker().line(), reason: error.info() })?;
        let line = span.start.line();
        builder.take(event, line).map_err(|reason| Unreadable { line, reason })?;
    }
    Ok(builder.done.into_iter().filter(|node| node.value != Content::Null).collect())
}

/// An open list or object.
enum Open {
    List(usize, Vec<Node>),
    Map(usize, OpenMap),
}

/// An open object: its members, all their names, and the name whose value comes next.
#[derive(Default)]
struct OpenMap {
    members: Vec<(String, usize, Node)>,
    names: HashSet<String>,
    name: Option<(String, usize)>,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    done: Vec<Node>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, _, _) => {
                let is_null = style == ScalarStyle::Plain && matches!(text.as_ref(), "" | "~" | "null");
                let value = if is_null { Content::Null } else { Content::Text(text.into_owned()) };
                self.close(Node { line, value })
            }
            Event::SequenceStart(..) => self.begin(Open::List(line, Vec::new())),
            Event::MappingStart(..) => self.begin(Open::Map(line, OpenMap::default())),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(line, elements)) => self.close(Node { line, value: Content::List(elements) }),
                Some(Open::Map(line, OpenMap { members, name: None, .. })) => {
                    self.close(Node { line, value: Content::Map(members) })
                }
                _ => Err("something ends that did not begin".into()),
            },
            // Aliases could make a small document expand to a large one.
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err("aliases are not read; write the value again".into()),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, open: Open) -> Result<(), String> {
        if self.open.len() >= DEEPEST {
            return Err(format!("nests deeper than {DEEPEST} levels"));
        }
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self, node: Node) -> Result<(), String> {
        match self.open.last_mut() {
            None => self.done.push(node),
            Some(Open::List(_, elements)) => elements.push(node),
            Some(Open::Map(_, map)) => match (map.name.take(), node) {
                (Some((name, line)), node) => map.members.push((name, line, node)),
                (None, Node { line, value: Content::Text(text) }) => {
                    if !map.names.insert(text.clone()) {
                        return Err(format!("the member {text} is here twice"));
                    }
                    map.name = Some((text, line));
                }
                (None, _) => return Err("the name of a member must be a text".into()),
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_lines() {
        let read = documents("a: 1.10\nb:\n  - x\n  - {c: ~}\n---\n---\n{\"d\": \"e\"}\n").unwrap();
        let [first, second] = read.as_slice() else { panic!("{read:?}") };
        let Content::Map(members) = &first.value else { panic!("{first:?}") };
        assert_eq!(members[0], ("a".into(), 1, Node { line: 1, value: Content::Text("1.10".into()) }));
        let Content::List(items) = &members[1].2.value else { panic!("{members:?}") };
        assert_eq!((items[0].line, items[1].line), (3, 4));
        assert_eq!(second.line, 7);
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (text, line, reason) in [
            ("a: 1\na: 2\n", 2, "twice"),
            ("a: &x 1\nb: *x\n", 2, "aliases"),
            ("a: 1\n? [b]\n: c\n", 2, "must be a text"),
            ("a: 1\n b: 2\n", 2, ""),
        ] {
            let error = documents(text).unwrap_err();
            assert!(error.line == line && error.reason.contains(reason), "{text}: {error:?}");
        }
        assert!(documents(&"[".repeat(2000)).is_err());
    }
}
