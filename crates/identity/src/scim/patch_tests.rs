use super::*;
use serde_json::json;

fn user() -> Value {
    json!({
        "userName": "bob", "externalId": "1", "active": true,
        "name": { "givenName": "Bob", "familyName": "B" },
        "emails": [{ "type": "work", "value": "w", "primary": true }, { "type": "home", "value": "h" }],
    })
}

fn patched(operations: Value) -> Result<Value> {
    let Value::Object(mut user) = user() else { unreachable!("an object") };
    apply(&mut user, &json!({ "schemas": [SCHEMA], "Operations": operations }))?;
    Ok(Value::Object(user))
}

fn good(operation: Value) -> Value {
    patched(json!([operation])).unwrap()
}

fn refusal(operation: Value) -> Refusal {
    match patched(json!([operation.clone()])) {
        Err(ScimError::Refused(refusal, _)) => refusal,
        other => unreachable!("{operation}: {other:?}"),
    }
}

#[test]
fn paths_of_every_kind() {
    let enterprise = super::super::attributes::ENTERPRISE_SCHEMA;
    assert_eq!(good(json!({ "op": "Replace", "path": "ACTIVE", "value": "False" }))["active"], "False");
    assert_eq!(good(json!({ "op": "add", "path": "displayName", "value": "B" }))["displayName"], "B");
    let name = json!({ "givenName": "Rob", "familyName": "B" });
    assert_eq!(good(json!({ "op": "replace", "path": "name.givenname", "value": "Rob" }))["name"], name);
    assert_eq!(good(json!({ "op": "replace", "path": "name", "value": { "givenName": "Rob" } }))["name"], name);
    let emails =
        good(json!({ "op": "Replace", "path": "emails[type eq \"work\"].value", "value": "n" }))["emails"].clone();
    assert_eq!(emails, json!([{ "type": "work", "value": "n", "primary": true }, { "type": "home", "value": "h" }]));
    let emails =
        good(json!({ "op": "Add", "path": "emails[type eq \"other\"].value", "value": "o" }))["emails"].clone();
    assert_eq!(emails[2], json!({ "type": "other", "value": "o" }));
    let path = format!("{enterprise}:department");
    assert_eq!(good(json!({ "op": "Add", "path": path, "value": "d" }))[enterprise], json!({ "department": "d" }));
    let value = json!({ enterprise: { "department": "d" }, "name.givenName": "Rob", "active": false, "unknown": 1 });
    let whole = good(json!({ "op": "replace", "value": value }));
    assert_eq!(
        (&whole[enterprise]["department"], &whole["name"], &whole["active"]),
        (&json!("d"), &name, &json!(false))
    );
    assert_eq!(whole.get("unknown"), None);
}

#[test]
fn additions_extend_lists_and_keep_one_first() {
    let new = json!({ "type": "other", "value": "o", "primary": true });
    let emails = good(json!({ "op": "add", "path": "emails", "value": [new] }))["emails"].clone();
    assert_eq!(emails, json!([{ "type": "work", "value": "w" }, { "type": "home", "value": "h" }, new]));
    let twice = good(json!({ "op": "add", "path": "emails", "value": { "type": "home", "value": "h" } }));
    assert_eq!(twice["emails"].as_array().map(Vec::len), Some(2));
    let replaced = good(json!({ "op": "replace", "path": "emails", "value": [new] }));
    assert_eq!(replaced["emails"], json!([new]));
}

#[test]
fn removals() {
    assert_eq!(good(json!({ "op": "remove", "path": "name.givenName" }))["name"], json!({ "familyName": "B" }));
    assert_eq!(good(json!({ "op": "remove", "path": "name" })).get("name"), None);
    let emails = good(json!({ "op": "remove", "path": "emails[type eq \"work\"]" }))["emails"].clone();
    assert_eq!(emails, json!([{ "type": "home", "value": "h" }]));
    assert_eq!(good(json!({ "op": "remove", "path": "emails[type eq \"none\"]" })), user());
    assert_eq!(refusal(json!({ "op": "remove" })), Refusal::NoTarget);
    assert_eq!(refusal(json!({ "op": "remove", "path": "emails", "value": [{ "value": "w" }] })), Refusal::InvalidPath);
}

#[test]
fn a_password_is_passed_over_and_what_the_server_sets_stays() {
    assert_eq!(good(json!({ "op": "replace", "path": "password", "value": "p" })), user());
    assert_eq!(good(json!({ "op": "replace", "value": { "password": "p", "id": "x" } })), user());
    for path in ["id", "meta.created", "groups", "schemas"] {
        assert_eq!(refusal(json!({ "op": "replace", "path": path, "value": "x" })), Refusal::Mutability);
    }
}

#[test]
fn bad_operations_say_what_is_wrong() {
    for path in [
        "a..b",
        "favourite",
        "emails[",
        "emails[type eq]",
        "name[type eq \"x\"]",
        "emails.value",
        "name.a.b",
        "emails[type eq \"x\"] y",
    ] {
        assert_eq!(refusal(json!({ "op": "add", "path": path, "value": "x" })), Refusal::InvalidPath, "{path}");
    }
    assert_eq!(refusal(json!({ "op": "add", "path": 5, "value": "x" })), Refusal::InvalidPath);
    assert_eq!(refusal(json!({ "op": "move", "path": "name" })), Refusal::InvalidSyntax);
    assert_eq!(refusal(json!({ "op": "add", "value": "x" })), Refusal::InvalidValue);
    assert_eq!(refusal(json!("x")), Refusal::InvalidSyntax);
    let missing = json!({ "op": "replace", "path": "emails[type eq \"none\"].value", "value": "x" });
    assert_eq!(refusal(missing), Refusal::NoTarget);
    for message in [json!({}), json!({ "schemas": [SCHEMA], "Operations": [] }), json!({ "Operations": [{}] })] {
        assert!(matches!(apply(&mut Map::new(), &message), Err(ScimError::Refused(Refusal::InvalidSyntax, _))));
    }
}
