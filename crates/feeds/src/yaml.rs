//! Reads and writes YAML. A reader gets strings, nulls and structure: no scalar becomes a number or a
//! boolean, and aliases are rejected.

use std::collections::BTreeMap;

use bowline_formats::yaml::{self, YamlNode, YamlValue};

use crate::problem::Unreadable;
use crate::tree::{Budget, Limits, Node, too_long};

pub(crate) fn from_yaml(bytes: &[u8], limits: &Limits) -> Result<Node, Unreadable> {
    if bytes.len() > limits.bytes {
        return Err(too_long(bytes.len(), limits));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| Unreadable(format!("not readable as YAML: {error}")))?;
    let mut budget = Budget::new(limits);
    let read = yaml::documents(text, |depth| budget.spend(depth));
    let mut documents = read.map_err(|problem| Unreadable(format!("not readable as YAML: {problem}")))?;
    if let Some(second) = documents.get(1) {
        let why = format!("not readable as YAML: line {}: a second document begins; only one is read", second.line);
        return Err(Unreadable(why));
    }
    Ok(documents.pop().map_or(Node::Null, node))
}

/// A value without the lines of its parts.
fn node(read: YamlNode) -> Node {
    match read.value {
        YamlValue::Null => Node::Null,
        YamlValue::Text(text) => Node::Text(text),
        YamlValue::List(elements) => Node::List(elements.into_iter().map(node).collect()),
        YamlValue::Map(members) => {
            Node::members(members.into_iter().map(|(name, _, value)| (name, node(value))).collect())
        }
    }
}

/// Reads a list of objects and returns their string members: for short lists inside of other documents.
///
/// # Errors
/// The text is not YAML or not a list of objects, or exceeds the limits.
pub fn objects_of_yaml(text: &str, limits: &Limits) -> Result<Vec<BTreeMap<String, String>>, Unreadable> {
    let Node::List(elements) = from_yaml(text.as_bytes(), limits)? else {
        return Err(Unreadable("no list".into()));
    };
    elements.into_iter().map(texts_of).collect()
}

fn texts_of(node: Node) -> Result<BTreeMap<String, String>, Unreadable> {
    let Node::Map(members) = node else {
        return Err(Unreadable("the list has something that is no object".into()));
    };
    let text = |(name, value)| if let Node::Text(text) = value { Some((name, text)) } else { None };
    Ok(members.into_iter().filter_map(text).collect())
}

pub(crate) fn to_yaml(node: &Node) -> Vec<u8> {
    let mut out = String::new();
    write(&mut out, node, 0, false);
    out.into_bytes()
}

/// Writes a value. A short one stays on the current line, after a dash if `in_list`; others take lines of
/// their own.
fn write(out: &mut String, node: &Node, indent: usize, in_list: bool) {
    let lead = |out: &mut String, first: bool| {
        if !(first && in_list) {
            out.extend(std::iter::repeat_n(' ', indent));
        }
    };
    match node {
        Node::Map(members) if !members.is_empty() => {
            for (at, (name, value)) in members.iter().enumerate() {
                lead(out, at == 0);
                out.push_str(&scalar(name));
                out.push(':');
                member(out, value, indent);
            }
        }
        Node::List(elements) if !elements.is_empty() => {
            for (at, element) in elements.iter().enumerate() {
                lead(out, at == 0);
                out.push_str("- ");
                write(out, element, indent + 2, true);
            }
        }
        short => {
            out.push_str(&line(short));
            out.push('\n');
        }
    }
}

fn member(out: &mut String, value: &Node, indent: usize) {
    let is_long = matches!(value, Node::Map(members) if !members.is_empty())
        || matches!(value, Node::List(elements) if !elements.is_empty());
    out.push(if is_long { '\n' } else { ' ' });
    write(out, value, indent + 2, false);
}

fn line(node: &Node) -> String {
    match node {
        Node::Null | Node::Ambiguous(_) => "null".into(),
        Node::Bool(value) => value.to_string(),
        Node::Int(value) => value.to_string(),
        Node::Float(value) => value.to_string(),
        Node::Text(text) => scalar(text),
        Node::List(_) => "[]".into(),
        Node::Map(_) => "{}".into(),
    }
}

/// Writes a string without quotes if every reader takes it for a string, else with double quotes.
fn scalar(text: &str) -> String {
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let reserved = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    if is_word && !reserved.contains(&text.to_ascii_lowercase().as_str()) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || is_special(c) => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Line ends beyond ASCII, the byte order mark, and noncharacters.
fn is_special(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_node() -> impl Strategy<Value = Node> {
        let text = prop_oneof!["\\PC{0,12}", any::<String>(), "[a-z]{1,5}"];
        let leaf = prop_oneof![text.clone().prop_map(Node::Text), Just(Node::Null)];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Node::List),
                proptest::collection::btree_map(text.clone(), inner, 0..5)
                    .prop_map(|map| Node::Map(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(node in any_node()) {
            let written = to_yaml(&node);
            let read = from_yaml(&written, &Limits::default());
            prop_assert_eq!(read, Ok(node), "{}", String::from_utf8_lossy(&written));
        }

        #[test]
        fn noise_does_no_harm(noise in proptest::collection::vec(any::<u8>(), 0..200), text in "[-:{}\\[\\],&*!|>'\"%@ \na-c]{0,80}") {
            let _ = from_yaml(&noise, &Limits::default());
            let _ = from_yaml(text.as_bytes(), &Limits::default());
        }
    }

    #[test]
    fn words_stay_texts_and_references_are_refused() {
        let limits = Limits::default();
        let node = from_yaml(b"a: 1.10\nb: [yes, ~]\n", &limits).expect("readable");
        let expected = vec![
            ("a".to_owned(), Node::text("1.10")),
            ("b".to_owned(), Node::List(vec![Node::text("yes"), Node::Null])),
        ];
        assert_eq!(node, Node::Map(expected));
        assert_eq!(from_yaml(b"a: 1\na: 2\n", &limits), Ok(Node::Ambiguous("a".into())));
        for (text, words) in [
            ("a: &x [1]\nb: *x\n", "line 2, column 4: aliases"),
            ("a: [1\n", "line 1, column 4"),
            ("- a\n---\n- b\n", "second document"),
        ] {
            let error = from_yaml(text.as_bytes(), &limits).expect_err(text).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn lists_of_objects_have_their_texts() {
        let limits = Limits::default();
        let text = "- name: a\n  image: r.example/a:1.10\n  platforms: [linux/amd64]\n- name: b\n";
        let read = objects_of_yaml(text, &limits).expect("readable");
        let expected = [vec![("image", "r.example/a:1.10"), ("name", "a")], vec![("name", "b")]];
        let pairs = |object: &[(&str, &str)]| object.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        assert_eq!(read, expected.map(|object| pairs(&object)));
        for text in ["a: b", "- a", "- [a]", "- a: [", "- {a: 1, a: 2}", ""] {
            assert!(objects_of_yaml(text, &limits).is_err(), "{text}");
        }
    }

    #[test]
    fn deep_and_large_documents_are_refused() {
        let limits = Limits { depth: 10, values: 100, bytes: 2000, advisories: 1 };
        for text in ["[".repeat(12) + &"]".repeat(12), "- a\n".repeat(101), "a".repeat(2001)] {
            assert!(from_yaml(text.as_bytes(), &limits).is_err(), "{text}");
        }
        assert!(from_yaml("[".repeat(200_000).as_bytes(), &Limits::default()).is_err());
    }
}
