//! Reads YAML, of which JSON is a part, with the line of every value. No scalar becomes a number or a boolean: its field
//! decides what `1.10` is. Aliases are rejected.

pub use crate::yaml_writer::render;
use granit_parser::{Event, Options, Parser, ScalarStyle};

/// A value, and the line that it begins on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlNode {
    pub line: usize,
    pub value: YamlValue,
}

/// A value of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum YamlValue {
    Null,
    Text(String),
    List(Vec<YamlNode>),
    /// Members in their order, with the line of each name. A name may be there twice.
    Map(Vec<(String, usize, YamlNode)>),
}

/// Why a text is not YAML, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct YamlProblem {
    pub line: usize,
    pub column: usize,
    pub reason: String,
}

/// The documents of a text. `count` gets the depth of each value before it is taken in, and may refuse it.
///
/// # Errors
/// The text is not YAML, or has aliases or names that are no texts; or a value is refused.
pub fn documents(text: &str, count: impl FnMut(usize) -> Result<(), String>) -> Result<Vec<YamlNode>, YamlProblem> {
    let mut builder = Builder { open: Vec::new(), done: Vec::new(), count };
    for next in Parser::new_from_str_with_options(text, Options::default()) {
        let (event, span) = next.map_err(|error| YamlProblem {
            line: error.marker().line(),
            column: error.marker().col() + 1,
            reason: error.info(),
        })?;
        let (line, column) = (span.start.line(), span.start.col() + 1);
        builder.take(event, line).map_err(|reason| YamlProblem { line, column, reason })?;
    }
    Ok(builder.done)
}

/// An open list or object.
enum Open {
    List(usize, Vec<YamlNode>),
    Map(usize, Vec<(String, usize, YamlNode)>, Option<(String, usize)>),
}

struct Builder<C> {
    open: Vec<Open>,
    done: Vec<YamlNode>,
    count: C,
}

impl<C: FnMut(usize) -> Result<(), String>> Builder<C> {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, _, _) => {
                (self.count)(self.open.len())?;
                let is_null = style == ScalarStyle::Plain && matches!(text.as_ref(), "" | "~" | "null");
                let value = if is_null { YamlValue::Null } else { YamlValue::Text(text.into_owned()) };
                self.close(YamlNode { line, value })
            }
            Event::SequenceStart(..) => self.begin(Open::List(line, Vec::new())),
            Event::MappingStart(..) => self.begin(Open::Map(line, Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(line, elements)) => self.close(YamlNode { line, value: YamlValue::List(elements) }),
                Some(Open::Map(line, members, None)) => self.close(YamlNode { line, value: YamlValue::Map(members) }),
                _ => Err("something ends that did not begin".into()),
            },
            // Aliases could make a small document expand to a large one.
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err("aliases are not read; write the value again".into()),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, open: Open) -> Result<(), String> {
        (self.count)(self.open.len())?;
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self, node: YamlNode) -> Result<(), String> {
        match self.open.last_mut() {
            None => self.done.push(node),
            Some(Open::List(_, elements)) => elements.push(node),
            Some(Open::Map(_, members, name)) => match (name.take(), node) {
                (Some((name, line)), node) => members.push((name, line, node)),
                (None, YamlNode { line, value: YamlValue::Text(text) }) => *name = Some((text, line)),
                (None, _) => return Err("the name of a member must be a text".into()),
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<YamlNode>, YamlProblem> {
        documents(text, |_| Ok(()))
    }

    #[test]
    fn values_have_lines() {
        let read = read("a: 1.10\nb:\n  - x\n  - {c: ~}\n---\n{\"d\": \"e\"}\n").unwrap();
        let [first, second] = read.as_slice() else { panic!("{read:?}") };
        let YamlValue::Map(members) = &first.value else { panic!("{first:?}") };
        assert_eq!(members[0], ("a".into(), 1, YamlNode { line: 1, value: YamlValue::Text("1.10".into()) }));
        let YamlValue::List(items) = &members[1].2.value else { panic!("{members:?}") };
        assert_eq!((items[0].line, items[1].line), (3, 4));
        assert_eq!(second.line, 6);
    }

    #[test]
    fn what_is_wrong_has_its_position() {
        for (text, line, column, reason) in [
            ("a: &x 1\nb: *x\n", 2, 4, "aliases"),
            ("a: 1\n? [b]\n: c\n", 2, 5, "must be a text"),
            ("a: [1\n", 1, 4, ""),
        ] {
            let problem = read(text).unwrap_err();
            assert_eq!((problem.line, problem.column), (line, column), "{text}: {problem:?}");
            assert!(problem.reason.contains(reason), "{text}: {problem:?}");
        }
    }

    #[test]
    fn values_are_counted_before_they_are_taken_in() {
        let mut depths = Vec::new();
        let count = |depth| {
            depths.push(depth);
            Ok(())
        };
        documents("a: [b, {c: d}]\n", count).unwrap();
        assert_eq!(depths, [0, 1, 1, 2, 2, 3, 3]);
        let shallow = |depth| if depth > 10 { Err("too deep".to_owned()) } else { Ok(()) };
        let deep = "[".repeat(12) + &"]".repeat(12);
        assert_eq!(documents(&deep, shallow).unwrap_err().reason, "too deep");
    }
}
