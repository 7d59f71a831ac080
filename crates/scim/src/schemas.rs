//! The schemas of users: the attributes that are stored.

use bowline_identity::scim::{CORE_SCHEMA, ENTERPRISE_SCHEMA};
use serde_json::{Value, json};

const SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:Schema";

pub(crate) fn core() -> Value {
    let texts = [
        ("displayName", "Name for display"),
        ("nickName", "How the person is called"),
        ("profileUrl", "Address of a page about the person"),
        ("title", "Position"),
        ("userType", "Relation to the organization"),
        ("preferredLanguage", "Language that the person prefers"),
        ("locale", "Conventions for numbers and dates"),
        ("timezone", "Time zone"),
    ];
    let lists = [
        ("phoneNumbers", "Telephone numbers"),
        ("ims", "Addresses for instant messages"),
        ("photos", "Addresses of pictures"),
        ("entitlements", "Things that the person is entitled to; stored, not evaluated"),
        ("roles", "Roles in the directory; stored, not evaluated"),
        ("x509Certificates", "Certificates"),
    ];
    let mut attributes = vec![
        key("userName", "Name that is unique in the directory", false),
        key("externalId", "Subject or object id that the person's tokens carry", true),
        attribute("active", "boolean", "Whether the person may act in the organization"),
        complex("name", "Name in its parts", &NAME, false),
    ];
    attributes.extend(texts.map(|(name, description)| attribute(name, "string", description)));
    attributes.push(emails());
    attributes.extend(lists.map(|(name, description)| complex(name, description, &PLAIN, true)));
    attributes.push(complex("addresses", "Postal addresses", &ADDRESS, true));
    json!({
        "schemas": [SCHEMA],
        "id": CORE_SCHEMA,
        "name": "User",
        "description": "A person of the organization",
        "attributes": attributes,
    })
}

pub(crate) fn enterprise() -> Value {
    let texts = ["employeeNumber", "costCenter", "organization", "division", "department"];
    let mut attributes: Vec<Value> =
        texts.iter().map(|name| attribute(name, "string", "Stored, not evaluated")).collect();
    let manager = "Who the person reports to; stored, not evaluated";
    attributes.push(complex("manager", manager, &["value", "$ref", "displayName"], false));
    json!({
        "schemas": [SCHEMA],
        "id": ENTERPRISE_SCHEMA,
        "name": "EnterpriseUser",
        "description": "Enterprise attributes of a person",
        "attributes": attributes,
    })
}

const NAME: [&str; 6] = ["formatted", "familyName", "givenName", "middleName", "honorificPrefix", "honorificSuffix"];
const PLAIN: [&str; 4] = ["value", "display", "type", "primary"];
const ADDRESS: [&str; 8] =
    ["formatted", "streetAddress", "locality", "region", "postalCode", "country", "type", "primary"];

fn attribute(name: &str, kind: &str, description: &str) -> Value {
    let mut attribute = json!({
        "name": name,
        "type": kind,
        "multiValued": false,
        "description": description,
        "required": false,
        "mutability": "readWrite",
        "returned": "default",
    });
    if kind == "string" {
        attribute["caseExact"] = json!(false);
        attribute["uniqueness"] = json!("none");
    }
    attribute
}

/// An attribute that identifies a user.
fn key(name: &str, description: &str, case_exact: bool) -> Value {
    let mut key = attribute(name, "string", description);
    key["required"] = json!(true);
    key["caseExact"] = json!(case_exact);
    key["uniqueness"] = json!("server");
    key
}

fn complex(name: &str, description: &str, subs: &[&str], multi_valued: bool) -> Value {
    let sub = |name: &&str| {
        if *name == "primary" {
            attribute(name, "boolean", "Whether this is the preferred value")
        } else {
            attribute(name, "string", "A part of the value")
        }
    };
    let mut complex = attribute(name, "complex", description);
    complex["multiValued"] = json!(multi_valued);
    complex["subAttributes"] = subs.iter().map(sub).collect();
    complex
}

/// Addresses are case-sensitive, as in filters.
fn emails() -> Value {
    let mut emails = complex("emails", "E-mail addresses; people are not matched by them", &PLAIN, true);
    emails["subAttributes"][0]["caseExact"] = json!(true);
    emails
}
