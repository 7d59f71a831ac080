//! Users as SCIM resources.

use bowline_core::Micros;
use bowline_core::rfc3339::{self, Digits};
use bowline_identity::scim::{CORE_SCHEMA, User};
use serde_json::{Map, Value, json};

use crate::request::Parameters;

/// Renders a user as a resource, with the requested attributes.
pub(crate) fn user(user: User, base: &str, parameters: &Parameters) -> Value {
    let User { id, attributes, created, updated, version } = user;
    let extensions = attributes.keys().filter(|name| name.starts_with("urn:"));
    let schemas: Vec<&str> = [CORE_SCHEMA].into_iter().chain(extensions.map(String::as_str)).collect();
    let meta = json!({
        "resourceType": "User",
        "created": time(created),
        "lastModified": time(updated),
        "location": location(base, &id),
        "version": version,
    });
    let mut always = Map::from_iter([("schemas".to_owned(), json!(schemas)), ("id".to_owned(), json!(id))]);
    let members = attributes.into_iter().chain([("meta".to_owned(), meta)]);
    always.extend(members.filter(|(name, _)| is_requested(name, parameters)));
    Value::Object(always)
}

/// URL of a user.
pub(crate) fn location(base: &str, id: &str) -> String {
    format!("{base}/Users/{id}")
}

fn is_requested(name: &str, parameters: &Parameters) -> bool {
    let is_named = |names: &[String]| names.iter().any(|wanted| names_it(wanted, name));
    parameters.attributes.as_deref().is_none_or(is_named) && !is_named(&parameters.excluded)
}

/// Whether a requested name refers to this attribute; a schema before it and a sub-attribute after it are
/// ignored.
fn names_it(wanted: &str, name: &str) -> bool {
    let wanted = wanted.strip_prefix(CORE_SCHEMA).map_or(wanted, |rest| rest.trim_start_matches(':'));
    if name.starts_with("urn:") {
        return wanted.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    }
    wanted.split('.').next().is_some_and(|first| first.eq_ignore_ascii_case(name))
}

fn time(micros: Micros) -> String {
    rfc3339::text(micros, Digits::Fewest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(query: &str) -> Value {
        let attributes = json!({ "userName": "b", "name": { "givenName": "B" }, "urn:x:User": { "a": 1 } });
        let Value::Object(attributes) = attributes else { unreachable!("an object") };
        let user = User { id: "1".into(), attributes, created: 0, updated: 1_500_000, version: "W/\"v\"".into() };
        super::user(user, "https://x.example/scim/v2/p", &Parameters::read(query).unwrap())
    }

    #[test]
    fn a_resource_says_where_it_is() {
        let whole = rendered("");
        assert_eq!(whole["schemas"], json!([CORE_SCHEMA, "urn:x:User"]));
        let meta = json!({
            "resourceType": "User", "created": "1970-01-01T00:00:00Z", "lastModified": "1970-01-01T00:00:01.500Z",
            "location": "https://x.example/scim/v2/p/Users/1", "version": "W/\"v\"",
        });
        assert_eq!(whole["meta"], meta);
    }

    #[test]
    fn top_level_attributes_can_be_chosen() {
        let names = |query: &str| -> Vec<String> { rendered(query).as_object().unwrap().keys().cloned().collect() };
        assert_eq!(names("attributes=USERNAME,name.givenName"), ["id", "name", "schemas", "userName"]);
        assert_eq!(names("excludedAttributes=meta,name,id,urn:x:User"), ["id", "schemas", "userName"]);
        assert_eq!(names(&format!("attributes={CORE_SCHEMA}:userName")), ["id", "schemas", "userName"]);
    }
}
