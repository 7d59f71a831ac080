//! Filters of lists: comparisons by `eq` of what identifies a user, joined by `and`.

use serde_json::{Map, Value};

use super::attributes::core;
use super::path::{Comparison, Plain, Token, bracket, fits, tokens};
use super::refusal::{Refusal, Result, ScimError};

/// Maximum number of conditions of one filter.
const MAX_CONDITIONS: usize = 10;

/// What a user must be like.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// The text, in lower case.
    UserName(String),
    ExternalId(String),
    /// Last segment of the UIDP.
    Id(String),
    Active(bool),
    /// One e-mail address that fits all of these.
    Email(Vec<Comparison>),
}

impl Condition {
    /// Whether attributes, the only place of e-mail addresses, fit.
    pub(super) fn fits(&self, all: &Map<String, Value>) -> bool {
        match self {
            Condition::Email(comparisons) => {
                let emails = all.get("emails").and_then(Value::as_array);
                emails.is_some_and(|emails| emails.iter().any(|email| fits(comparisons, email)))
            }
            _ => true,
        }
    }
}

pub(super) fn read(text: &str) -> Result<Vec<Condition>> {
    conditions(text).ok_or_else(|| {
        ScimError::refuse(
            Refusal::InvalidFilter,
            "filters compare userName, externalId, id, active or emails.value by eq, joined by and",
        )
    })
}

fn conditions(text: &str) -> Option<Vec<Condition>> {
    let tokens = tokens(text)?;
    let mut rest = tokens.as_slice();
    let mut found = Vec::new();
    loop {
        let condition;
        (condition, rest) = condition_of(rest)?;
        found.push(condition);
        rest = match rest {
            [] => return Some(found),
            [Token::Word(and), rest @ ..] if and.eq_ignore_ascii_case("and") && found.len() < MAX_CONDITIONS => rest,
            _ => return None,
        };
    }
}

fn condition_of(rest: &[Token]) -> Option<(Condition, &[Token])> {
    let [Token::Word(word), rest @ ..] = rest else { return None };
    let Plain { extension: None, attribute: Some(attribute), sub } = Plain::read(word)? else { return None };
    let (name, _) = core(&attribute)?;
    if let [Token::Open, rest @ ..] = rest {
        let (mut comparisons, rest) = bracket(rest)?;
        let (last, rest) = match rest {
            [Token::Word(member), rest @ ..] if member.eq_ignore_ascii_case(".value") => {
                let (comparison, rest) = Comparison::read("value", rest)?;
                (Some(comparison), rest)
            }
            _ => (None, rest),
        };
        comparisons.extend(last);
        return (name == "emails" && sub.is_none()).then_some((Condition::Email(comparisons), rest));
    }
    let (comparison, rest) = Comparison::read(sub.as_deref().unwrap_or_default(), rest)?;
    let condition = match (name, sub.as_deref(), comparison.value) {
        ("userName", None, Value::String(text)) => Condition::UserName(text.to_lowercase()),
        ("externalId", None, Value::String(text)) => Condition::ExternalId(text),
        ("id", None, Value::String(text)) => Condition::Id(text),
        ("active", None, Value::Bool(active)) => Condition::Active(active),
        ("active", None, Value::String(text)) => Condition::Active(text.to_ascii_lowercase().parse().ok()?),
        ("emails", None | Some("value"), value @ Value::String(_)) => {
            Condition::Email(vec![Comparison { attribute: "value".into(), value }])
        }
        _ => return None,
    };
    // Storage refuses such texts, and no one has one.
    let has_nul = matches!(&condition, Condition::UserName(text) | Condition::ExternalId(text) | Condition::Id(text) if text.contains('\0'));
    (!has_nul).then_some((condition, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_filters_that_directories_send() {
        let one = |text: &str| read(text).unwrap().pop().unwrap();
        assert_eq!(one(r#"userName eq "Bob@X.example""#), Condition::UserName("bob@x.example".into()));
        assert_eq!(one(r#"USERNAME EQ "b""#), Condition::UserName("b".into()));
        assert_eq!(one(r#"externalId eq "A""#), Condition::ExternalId("A".into()));
        assert_eq!(one(r#"id eq "a1""#), Condition::Id("a1".into()));
        assert_eq!(one("active eq true"), Condition::Active(true));
        assert_eq!(one(r#"active eq "False""#), Condition::Active(false));
        let urn = r#"urn:ietf:params:scim:schemas:core:2.0:User:userName eq "b""#;
        assert_eq!(one(urn), Condition::UserName("b".into()));
        assert_eq!(read(r#"userName eq "b" and active eq true"#).unwrap().len(), 2);
        let emails = json!({ "emails": [{ "type": "home", "value": "h" }, { "type": "work", "value": "w" }] });
        for (text, fits) in [
            (r#"emails eq "w""#, true),
            (r#"emails.value eq "h""#, true),
            (r#"emails.value eq "H""#, false),
            (r#"emails[value eq "w"]"#, true),
            (r#"emails[type eq "WORK" and value eq "w"]"#, true),
            (r#"emails[type eq "work"].value eq "w""#, true),
            (r#"emails[type eq "work"].value eq "h""#, false),
        ] {
            assert_eq!(one(text).fits(emails.as_object().unwrap()), fits, "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "userName",
            "userName pr",
            r#"userName sw "b""#,
            r#"userName eq "a" or userName eq "b""#,
            r#"not (userName eq "a")"#,
            r#"displayName eq "x""#,
            r#"password eq "x""#,
            r#"name[value eq "x"]"#,
            r#"userName eq "a\u0000b""#,
            "userName eq 5",
            "active eq maybe",
            r#"userName eq "a" and"#,
            r#"emails[value eq "a""#,
        ] {
            assert!(matches!(read(text), Err(ScimError::Refused(Refusal::InvalidFilter, _))), "{text}");
        }
    }
}
