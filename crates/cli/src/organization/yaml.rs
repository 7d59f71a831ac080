//! Documents of YAML, and so of JSON, in which no member is there twice. A scalar keeps its text: its field decides
//! whether `1.10` is a number.

use std::collections::HashSet;

use bowline_formats::yaml;
pub(super) use bowline_formats::yaml::{YamlNode as Node, YamlValue as Content};

/// Deepest nesting of a document.
const DEEPEST: usize = 100;

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
    let bounded = |depth| match depth {
        0..=DEEPEST => Ok(()),
        _ => Err(format!("nests deeper than {DEEPEST} levels")),
    };
    let read = yaml::documents(text, bounded);
    let mut documents = read.map_err(|problem| Unreadable { line: problem.line, reason: problem.reason })?;
    documents.retain(|node| node.value != Content::Null);
    documents.iter().try_for_each(require_unique)?;
    Ok(documents)
}

/// Requires that no object in a value has a member twice.
fn require_unique(node: &Node) -> Result<(), Unreadable> {
    match &node.value {
        Content::Null | Content::Text(_) => Ok(()),
        Content::List(elements) => elements.iter().try_for_each(require_unique),
        Content::Map(members) => {
            let mut names = HashSet::new();
            members.iter().try_for_each(|(name, line, value)| {
                if !names.insert(name.as_str()) {
                    return Err(Unreadable { line: *line, reason: format!("the member {name} is here twice") });
                }
                require_unique(value)
            })
        }
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
