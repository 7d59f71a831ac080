//! The attributes of a user as they are stored: names in their own spelling, values of the right shape,
//! nothing that only the server sets, and never a password.

use serde_json::{Map, Value};

use super::refusal::{Refusal, Result, ScimError};

/// The schema of users.
pub const CORE_SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
/// The schema of the enterprise attributes of a person.
pub const ENTERPRISE_SCHEMA: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

/// Maximum bytes of a user's attributes as JSON.
const MAX_BYTES: usize = 64 << 10;
/// Maximum characters of a user name or an external id.
const MAX_KEY: usize = 256;
/// Maximum number of levels of a value.
const MAX_DEPTH: usize = 8;
/// Maximum number of elements of a list.
pub(super) const MAX_ELEMENTS: usize = 100;

/// What values an attribute has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Flag,
    Complex,
    List,
    /// Set by the server, or not kept: accepted in bodies, and ignored.
    Ignored,
}

const CORE: &[(&str, Shape)] = &[
    ("userName", Shape::Text),
    ("externalId", Shape::Text),
    ("active", Shape::Flag),
    ("name", Shape::Complex),
    ("displayName", Shape::Text),
    ("nickName", Shape::Text),
    ("profileUrl", Shape::Text),
    ("title", Shape::Text),
    ("userType", Shape::Text),
    ("preferredLanguage", Shape::Text),
    ("locale", Shape::Text),
    ("timezone", Shape::Text),
    ("emails", Shape::List),
    ("phoneNumbers", Shape::List),
    ("ims", Shape::List),
    ("photos", Shape::List),
    ("addresses", Shape::List),
    ("entitlements", Shape::List),
    ("roles", Shape::List),
    ("x509Certificates", Shape::List),
    ("id", Shape::Ignored),
    ("meta", Shape::Ignored),
    ("schemas", Shape::Ignored),
    ("groups", Shape::Ignored),
    (PASSWORD, Shape::Ignored),
];

pub(super) const PASSWORD: &str = "password";

const SUB: &[&str] = &[
    "formatted",
    "familyName",
    "givenName",
    "middleName",
    "honorificPrefix",
    "honorificSuffix",
    "value",
    "display",
    "type",
    "primary",
    "$ref",
    "streetAddress",
    "locality",
    "region",
    "postalCode",
    "country",
    "employeeNumber",
    "costCenter",
    "organization",
    "division",
    "department",
    "manager",
    "displayName",
];

/// The attribute of the core schema with this name, whatever its case.
pub(super) fn core(name: &str) -> Option<(&'static str, Shape)> {
    CORE.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).copied()
}

/// A sub-attribute in its own spelling.
pub(super) fn canonical_sub(name: &str) -> String {
    SUB.iter().find(|known| known.eq_ignore_ascii_case(name)).map_or(name, |known| known).into()
}

/// The schema of an extension in its own spelling, as far as that is known.
pub(super) fn canonical_schema(schema: &str) -> String {
    if schema.eq_ignore_ascii_case(ENTERPRISE_SCHEMA) {
        return ENTERPRISE_SCHEMA.into();
    }
    schema.get(4..).map_or_else(|| schema.into(), |name| format!("urn:{name}"))
}

/// The stored attributes of a user.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attributes {
    pub(super) user_name: String,
    pub(super) external_id: String,
    /// Absent if no one said it.
    pub(super) active: Option<bool>,
    /// All of them, these three among them.
    pub(super) all: Map<String, Value>,
}

impl Attributes {
    /// Checks a resource as a client sent or patched it.
    pub(super) fn read(body: Map<String, Value>) -> Result<Attributes> {
        let mut all = Map::new();
        for (name, value) in body {
            let Some((name, value)) = top_level(&name, value)? else { continue };
            if all.insert(name.clone(), value).is_some() {
                return Err(refuse(Refusal::InvalidSyntax, format!("{name} is there twice")));
            }
        }
        let attributes = Attributes {
            user_name: key(&all, "userName")?,
            external_id: key(&all, "externalId")?,
            active: all.get("active").and_then(Value::as_bool),
            all,
        };
        if attributes.to_json().len() > MAX_BYTES {
            return Err(refuse(Refusal::TooLarge, format!("a user has at most {MAX_BYTES} bytes")));
        }
        Ok(attributes)
    }

    pub(super) fn set_active(&mut self, active: bool) {
        self.active = Some(active);
        self.all.insert("active".into(), Value::Bool(active));
    }

    pub(super) fn to_json(&self) -> String {
        Value::Object(self.all.clone()).to_string()
    }
}

/// The attribute that identifies a user: a text that must be there.
fn key(all: &Map<String, Value>, name: &str) -> Result<String> {
    let text = all.get(name).and_then(Value::as_str).unwrap_or_default();
    if text.is_empty() {
        return Err(refuse(Refusal::InvalidValue, format!("{name} is required")));
    }
    if text.chars().count() > MAX_KEY || text.chars().any(char::is_control) {
        let rule = format!("{name} must have at most {MAX_KEY} characters and no control characters");
        return Err(refuse(Refusal::InvalidValue, rule));
    }
    Ok(text.into())
}

/// The attribute in its own spelling with a value of its shape; absent if it is not kept.
fn top_level(name: &str, value: Value) -> Result<Option<(String, Value)>> {
    let is_extension = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("urn:"));
    let (name, shape) = match core(name) {
        Some((_, Shape::Ignored)) => return Ok(None),
        Some((name, shape)) => (name.to_owned(), shape),
        None if is_extension => (canonical_schema(name), Shape::Complex),
        // Clients send attributes that no schema of this server has.
        None => return Ok(None),
    };
    let value = clean(&name, value, 0)?;
    let value = match (shape, value) {
        // Nothing, in any of its forms, is absence.
        (_, Value::Null) => return Ok(None),
        (_, Value::Array(list)) if list.is_empty() => return Ok(None),
        (Shape::Flag, value) => Value::Bool(flag(&name, &value)?),
        (Shape::Text, value @ Value::String(_)) | (Shape::Complex, value @ Value::Object(_)) => value,
        (Shape::List, Value::Array(list)) if list.len() <= MAX_ELEMENTS => Value::Array(list),
        (Shape::List, Value::Array(_)) => {
            return Err(refuse(Refusal::InvalidValue, format!("{name} has at most {MAX_ELEMENTS} elements")));
        }
        (Shape::List, one @ Value::Object(_)) => Value::Array(vec![one]),
        _ => return Err(refuse(Refusal::InvalidValue, format!("{name} has a value of the wrong type"))),
    };
    Ok(Some((name, value)))
}

/// A boolean; some clients write it as a text.
fn flag(name: &str, value: &Value) -> Result<bool> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(refuse(Refusal::InvalidValue, format!("{name} must be true or false"))),
    }
}

/// The value with sub-attributes in their own spelling, without passwords and null.
fn clean(attribute: &str, value: Value, depth: usize) -> Result<Value> {
    if depth > MAX_DEPTH {
        return Err(refuse(Refusal::InvalidValue, format!("{attribute} is nested too deeply")));
    }
    match value {
        Value::Object(members) => {
            let mut cleaned = Map::new();
            for (name, value) in members {
                let name = canonical_sub(&name);
                if value.is_null() || name.eq_ignore_ascii_case(PASSWORD) {
                    continue;
                }
                let value = clean(attribute, value, depth + 1)?;
                let value = if name == "primary" { Value::Bool(flag(&name, &value)?) } else { value };
                if cleaned.insert(name.clone(), value).is_some() {
                    return Err(refuse(Refusal::InvalidSyntax, format!("{attribute} has {name} twice")));
                }
            }
            Ok(Value::Object(cleaned))
        }
        Value::Array(list) => {
            list.into_iter().map(|value| clean(attribute, value, depth + 1)).collect::<Result<_>>().map(Value::Array)
        }
        other => Ok(other),
    }
}

fn refuse(refusal: Refusal, detail: String) -> ScimError {
    ScimError::refuse(refusal, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> Result<Attributes> {
        let Value::Object(body) = body else { unreachable!("an object") };
        Attributes::read(body)
    }

    fn refusal(body: Value) -> Refusal {
        match read(body) {
            Err(ScimError::Refused(refusal, _)) => refusal,
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn names_get_their_own_spelling_and_secrets_go() {
        let found = read(json!({
            "schemas": [CORE_SCHEMA], "id": "x", "meta": {}, "USERNAME": "Bob", "externalID": "1", "Active": "False",
            "password": "p", "favourite": 1, "title": null, "phoneNumbers": [],
            "emails": { "Type": "work", "VALUE": "b@x.example", "primary": "True", "Password": "p" },
            "URN:ietf:params:scim:schemas:extension:enterprise:2.0:user": { "Department": "d" },
        }))
        .unwrap();
        assert_eq!((found.user_name.as_str(), found.external_id.as_str(), found.active), ("Bob", "1", Some(false)));
        let kept = json!({
            "userName": "Bob", "externalId": "1", "active": false,
            "emails": [{ "type": "work", "value": "b@x.example", "primary": true }],
            ENTERPRISE_SCHEMA: { "department": "d" },
        });
        assert_eq!(Value::Object(found.all), kept);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let with = |more: Value| {
            let mut body = json!({ "userName": "u", "externalId": "e" });
            for (name, value) in more.as_object().unwrap() {
                body[name] = value.clone();
            }
            body
        };
        for bad in [
            json!({ "userName": "" }),
            json!({ "userName": 5 }),
            json!({ "externalId": null }),
            json!({ "externalId": "a\u{0}b" }),
            json!({ "userName": "x".repeat(257) }),
            json!({ "active": "yes" }),
            json!({ "name": "Bob" }),
            json!({ "emails": 1 }),
            json!({ "emails": vec![json!({}); 101] }),
            json!({ "name": { "a": [[[[[[[[1]]]]]]]] } }),
        ] {
            assert_eq!(refusal(with(bad.clone())), Refusal::InvalidValue, "{bad}");
        }
        assert_eq!(refusal(with(json!({ "USERNAME": "v" }))), Refusal::InvalidSyntax);
        assert_eq!(
            refusal(with(json!({ "name": { "x": 1, "givenName": "a", "GIVENNAME": "b" } }))),
            Refusal::InvalidSyntax
        );
        assert_eq!(refusal(with(json!({ "title": "x".repeat(65_536) }))), Refusal::TooLarge);
    }
}
