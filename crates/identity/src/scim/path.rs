//! Attribute paths and the comparisons inside of their brackets: what filters and PATCH have in common.

use serde_json::{Map, Value};

use super::attributes::{CORE_SCHEMA, canonical_sub};

/// Maximum number of comparisons of one filter.
const MAX_COMPARISONS: usize = 10;
/// Longest filter or path, in bytes.
const MAX_LENGTH: usize = 2048;

/// A piece of a filter or path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// Attribute paths, operators, literals without quotes.
    Word(String),
    /// A text in quotes.
    Text(String),
    Open,
    Close,
}

/// Takes a filter or path apart; absent if it is malformed.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(' ');
    while let Some(first) = rest.chars().next() {
        let token;
        (token, rest) = match first {
            '[' => (Token::Open, &rest[1..]),
            ']' => (Token::Close, &rest[1..]),
            '"' => quoted(rest)?,
            _ => {
                let end = rest.find([' ', '[', ']', '"', '(', ')']).unwrap_or(rest.len());
                if end == 0 {
                    return None;
                }
                (Token::Word(rest[..end].into()), &rest[end..])
            }
        };
        found.push(token);
        rest = rest.trim_start_matches(' ');
    }
    Some(found)
}

fn quoted(text: &str) -> Option<(Token, &str)> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                let quoted: String = serde_json::from_str(&text[..=at]).ok()?;
                return Some((Token::Text(quoted), &text[at + 1..]));
            }
            _ => {}
        }
    }
    None
}

/// A comparison by `eq` with a text or a boolean.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) attribute: String,
    pub(super) value: Value,
}

impl Comparison {
    /// Reads `eq` and the value behind an attribute; what is left comes back.
    pub(super) fn read<'t>(attribute: &str, rest: &'t [Token]) -> Option<(Comparison, &'t [Token])> {
        let [Token::Word(operator), value, rest @ ..] = rest else { return None };
        if !operator.eq_ignore_ascii_case("eq") {
            return None;
        }
        let value = match value {
            Token::Text(text) => Value::String(text.clone()),
            Token::Word(word) if word.eq_ignore_ascii_case("true") => Value::Bool(true),
            Token::Word(word) if word.eq_ignore_ascii_case("false") => Value::Bool(false),
            _ => return None,
        };
        Some((Comparison { attribute: attribute.into(), value }, rest))
    }

    fn holds(&self, element: &Map<String, Value>) -> bool {
        match (element.get(&self.attribute), &self.value) {
            (Some(Value::String(found)), Value::String(expected)) if self.attribute == "type" => {
                found.eq_ignore_ascii_case(expected)
            }
            (Some(found), expected) => found == expected,
            // Clients leave `primary: false` out.
            (None, expected) => self.attribute == "primary" && *expected == Value::Bool(false),
        }
    }
}

/// Whether an element of a list fits all of these.
pub(super) fn fits(comparisons: &[Comparison], element: &Value) -> bool {
    element.as_object().is_some_and(|element| comparisons.iter().all(|comparison| comparison.holds(element)))
}

/// Reads comparisons joined by `and`, up to and with the closing bracket.
pub(super) fn bracket(mut rest: &[Token]) -> Option<(Vec<Comparison>, &[Token])> {
    let mut found = Vec::new();
    loop {
        let [Token::Word(attribute), after @ ..] = rest else { return None };
        let (comparison, after) = Comparison::read(&canonical_sub(attribute), after)?;
        found.push(comparison);
        match after {
            [Token::Close, after @ ..] => return Some((found, after)),
            [Token::Word(and), after @ ..] if and.eq_ignore_ascii_case("and") && found.len() < MAX_COMPARISONS => {
                rest = after;
            }
            _ => return None,
        }
    }
}

/// A path without brackets: `attribute`, `attribute.sub`, either behind a schema.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plain {
    /// Schema of an extension, as it was written.
    pub(super) extension: Option<String>,
    /// Attribute as it was written; absent for the extension as a whole.
    pub(super) attribute: Option<String>,
    pub(super) sub: Option<String>,
}

impl Plain {
    /// Reads one; absent if it is malformed.
    pub(super) fn read(text: &str) -> Option<Plain> {
        let (extension, rest) = split_schema(text)?;
        let extension = extension.filter(|schema| !schema.eq_ignore_ascii_case(CORE_SCHEMA)).map(String::from);
        let Some(rest) = rest else {
            return extension.is_some().then_some(Plain { extension, attribute: None, sub: None });
        };
        let (attribute, sub) = match rest.split_once('.') {
            Some((attribute, sub)) => (attribute, Some(canonical_sub(sub))),
            None => (rest, None),
        };
        let is_name =
            |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"$-_".contains(&b));
        let good = is_name(attribute) && sub.as_deref().is_none_or(is_name);
        good.then(|| Plain { extension, attribute: Some(attribute.into()), sub })
    }
}

/// Splits `schema:attribute`. Schemas of users end in `:User` and have dots in them.
fn split_schema(text: &str) -> Option<(Option<&str>, Option<&str>)> {
    const END: &str = ":user";
    let lower = text.to_ascii_lowercase();
    if !lower.starts_with("urn:") {
        return Some((None, Some(text)));
    }
    if lower.ends_with(END) {
        return Some((Some(text), None));
    }
    let at = lower.rfind(":user:")? + END.len();
    Some((Some(&text[..at]), Some(&text[at + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quotes_are_those_of_json() {
        let found = tokens(r#"a eq "x \" \u0041]"  "#).unwrap();
        assert_eq!(found, [Token::Word("a".into()), Token::Word("eq".into()), Token::Text("x \" A]".into())]);
        for bad in [r#"a eq "x"#, "(a eq true)", r#""\x""#] {
            assert_eq!(tokens(bad), None, "{bad}");
        }
        assert_eq!(tokens(&"a".repeat(MAX_LENGTH + 1)), None);
    }

    #[test]
    fn schemas_and_attributes_are_distinguished() {
        let plain = |extension: Option<&str>, attribute: Option<&str>, sub: Option<&str>| {
            Some(Plain {
                extension: extension.map(String::from),
                attribute: attribute.map(String::from),
                sub: sub.map(String::from),
            })
        };
        let enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
        assert_eq!(Plain::read("name.GIVENNAME"), plain(None, Some("name"), Some("givenName")));
        assert_eq!(Plain::read(&format!("{CORE_SCHEMA}:userName")), plain(None, Some("userName"), None));
        assert_eq!(
            Plain::read(&format!("{enterprise}:manager.value")),
            plain(Some(enterprise), Some("manager"), Some("value"))
        );
        assert_eq!(Plain::read(enterprise), plain(Some(enterprise), None, None));
        for bad in ["", "a.b.c", "a b", ".a", "urn:x", CORE_SCHEMA, "é"] {
            assert_eq!(Plain::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn brackets_compare_with_all() {
        let tokens = tokens(r#"TYPE eq "Work" and primary eq true].value"#).unwrap();
        let (comparisons, rest) = bracket(&tokens).unwrap();
        assert_eq!(rest, [Token::Word(".value".into())]);
        assert!(fits(&comparisons, &json!({ "type": "work", "primary": true })));
        assert!(!fits(&comparisons, &json!({ "type": "work" })));
        assert!(!fits(&comparisons, &json!("work")));
    }
}
