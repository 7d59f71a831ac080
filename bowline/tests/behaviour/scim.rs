//! SCIM: what a directory can do with users, request by request.

use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::{Actor, RestReply, TestServer, each_engine};
use http::HeaderMap;
use serde_json::{Value, json};

/// A provider with SCIM switched on, and its token.
pub(crate) struct Directory {
    pub(crate) provider: String,
    pub(crate) issuer: String,
    base: String,
    pub(crate) actor: Actor,
}

pub(crate) const TOKEN: &str = "cgscim_";

impl Directory {
    /// A provider of the organization whose people have tokens of the test's issuer.
    pub(crate) async fn new(server: &TestServer, org: &str, id: u64) -> Directory {
        Directory::with(server, org, id, 1).await
    }

    pub(crate) async fn with(server: &TestServer, org: &str, id: u64, correlation: i64) -> Directory {
        let (provider, token) = (format!("{org}/{id:016x}"), format!("{TOKEN}{id:064x}"));
        let issuer = server.idp().issuer().to_owned();
        let row = (provider.clone(), org.to_owned(), issuer.clone());
        let hash = bowline_authn::crypto::sha256(token.as_bytes());
        let db = &server.server().parts().storage.db;
        let written = db.write(move |tx| {
            let (provider, org, issuer) = row.clone();
            Box::pin(async move {
                let sql = "INSERT INTO identity_providers (uid, parent, org, name, description, default_role, issuer,
                             client_id, client_secret, additional_scopes, groups_claim, correlation_rule, pkce_enabled,
                             scim_enabled, created_at, updated_at)
                           VALUES ($1, $2, $2, 'directory', '', '', $3, 'client', $4, '[]', '', $5, FALSE, TRUE, 0, 0)";
                let params =
                    [Sql::from(&provider), Sql::from(&org), Sql::from(&issuer), Sql::Bytes(&[]), Sql::Int(correlation)];
                tx.execute(sql, &params).await?;
                let sql = "INSERT INTO scim_tokens (provider, hash, revision) VALUES ($1, $2, 1)";
                tx.execute(sql, &[Sql::from(&provider), Sql::Bytes(&hash)]).await.map_err(Error::from)
            })
        });
        written.await.expect("the provider is stored");
        let base = format!("/scim/v2/{}", provider.replace('/', "."));
        Directory { provider, issuer, base, actor: server.anonymous().with_token(&token) }
    }

    /// Calls `"VERB path"` below the provider's endpoint, as this caller.
    pub(crate) async fn call_as(&self, actor: &Actor, what: &str, body: &Value) -> RestReply {
        let (verb, path) = what.split_once(' ').expect("a verb and a path");
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/scim+json".parse().expect("a header"));
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        actor.rest_with(verb, &format!("{}/{path}", self.base), headers, body).await
    }

    pub(crate) async fn call(&self, what: &str, body: Value) -> RestReply {
        self.call_as(&self.actor, what, &body).await
    }

    /// A call that must be answered with this status.
    pub(crate) async fn ok(&self, what: &str, body: Value, status: u16) -> Value {
        let reply = self.call(what, body).await;
        assert_eq!(reply.status, status, "{what}: {}", reply.text());
        reply.json()
    }

    /// A call that must be refused with this status and type.
    pub(crate) async fn rejected(&self, what: &str, body: Value, status: u16, scim_type: &str) {
        let found = self.ok(what, body, status).await;
        assert_eq!(found["schemas"][0], "urn:ietf:params:scim:api:messages:2.0:Error", "{what}: {found}");
        assert_eq!(found["status"], status.to_string(), "{what}: {found}");
        assert_eq!(found["scimType"].as_str().unwrap_or_default(), scim_type, "{what}: {found}");
        assert!(found["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{what}: {found}");
    }

    /// A new user; the id.
    pub(crate) async fn user(&self, name: &str, external_id: &str) -> String {
        let created = self.ok("POST Users", json!({ "userName": name, "externalId": external_id }), 201).await;
        created["id"].as_str().expect("an id").into()
    }

    pub(crate) async fn patch(&self, id: &str, operations: Value) -> Value {
        self.ok(&format!("PATCH Users/{id}"), patch(operations), 200).await
    }
}

pub(crate) fn patch(operations: Value) -> Value {
    json!({ "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": operations })
}

const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

async fn a_user_has_a_place_and_a_version(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let body = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", ENTERPRISE],
        "userName": "Bob@acme.example", "externalId": "e1", "password": "secret", "active": true,
        "name": { "givenName": "Bob" }, "emails": [{ "type": "work", "value": "bob@acme.example" }],
        ENTERPRISE: { "department": "ships" },
    });
    let reply = directory.call("POST Users", body).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let user = reply.json();
    let id = user["id"].as_str().expect("an id");
    assert_eq!((id.len(), reply.header("content-type")), (16, Some("application/scim+json")));
    let place = format!("{}{}/Users/{id}", server.base(), directory.base);
    assert_eq!((reply.header("location"), &user["meta"]["location"]), (Some(place.as_str()), &json!(place)));
    assert_eq!(reply.header("etag"), user["meta"]["version"].as_str());
    assert_eq!((&user["password"], &user[ENTERPRISE]["department"]), (&Value::Null, &json!("ships")));
    assert!(!reply.text().contains("secret"));
    let read = directory.ok(&format!("GET Users/{id}"), Value::Null, 200).await;
    assert_eq!(read, user);
    let some = directory.ok(&format!("GET Users/{id}?attributes=userName,name"), Value::Null, 200).await;
    assert_eq!(some.as_object().map(serde_json::Map::len), Some(4), "{some}");

    // Versions guard writes, and spare reads.
    let version = user["meta"]["version"].as_str().expect("a version");
    let guarded = async |verb: &str, header: &'static str, tag: &str, body: Value| {
        let mut headers = HeaderMap::new();
        headers.insert(header, tag.parse().expect("a tag"));
        let path = format!("{}/Users/{id}", directory.base);
        directory.actor.rest_with(verb, &path, headers, body.to_string().into_bytes()).await.status
    };
    assert_eq!(guarded("GET", "if-none-match", version, Value::Null).await, 304);
    let next = json!({ "userName": "bob", "externalId": "e1" });
    assert_eq!(guarded("PUT", "if-match", "W/\"other\"", next.clone()).await, 412);
    assert_eq!(guarded("PUT", "if-match", version, next.clone()).await, 200);
    assert_eq!(guarded("DELETE", "if-match", version, Value::Null).await, 412);
    assert_eq!(guarded("GET", "if-none-match", version, Value::Null).await, 200);

    // A replacement takes away what it does not name, save whether they are active.
    directory.patch(id, json!([{ "op": "replace", "path": "active", "value": false }])).await;
    let replaced = directory.ok(&format!("PUT Users/{id}"), next, 200).await;
    assert_eq!((&replaced["name"], &replaced["active"]), (&Value::Null, &json!(false)));
    assert_eq!(directory.call(&format!("DELETE Users/{id}"), Value::Null).await.status, 204);
    for what in ["GET", "DELETE"] {
        directory.rejected(&format!("{what} Users/{id}"), Value::Null, 404, "").await;
    }
}

async fn what_identifies_a_user_is_required_and_unique(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    directory.rejected("POST Users", json!({ "externalId": "e" }), 400, "invalidValue").await;
    directory.rejected("POST Users", json!({ "userName": "u" }), 400, "invalidValue").await;
    directory.rejected("POST Users", json!([]), 400, "invalidSyntax").await;
    let first = directory.user("Ann", "e1").await;
    let second = directory.user("Ben", "e2").await;
    let taken = [json!({ "userName": "aNN", "externalId": "e3" }), json!({ "userName": "c", "externalId": "e1" })];
    for body in taken {
        directory.rejected("POST Users", body.clone(), 409, "uniqueness").await;
        directory.rejected(&format!("PUT Users/{second}"), body, 409, "uniqueness").await;
    }
    let steal = patch(json!([{ "op": "replace", "path": "externalId", "value": "e1" }]));
    directory.rejected(&format!("PATCH Users/{second}"), steal, 409, "uniqueness").await;
    let drop = patch(json!([{ "op": "remove", "path": "externalId" }]));
    directory.rejected(&format!("PATCH Users/{second}"), drop, 400, "invalidValue").await;
    // An external id is compared as it is, and both only within the provider.
    directory.user("dora", "E1").await;
    let other = Directory::new(server, &org, 2).await;
    other.user("ann", "e1").await;
    other.rejected(&format!("GET Users/{first}"), Value::Null, 404, "").await;
}

async fn lists_are_filtered_and_paged(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let other = Directory::new(server, &org, 2).await;
    other.user("u1", "x").await;
    let mut ids = Vec::new();
    for n in 0..5 {
        let body = json!({
            "userName": format!("U{n}"), "externalId": format!("e{n}"), "active": n != 2,
            "emails": [{ "type": "work", "value": format!("u{n}@x.example") }],
        });
        let created = directory.ok("POST Users", body, 201).await;
        ids.push(created["id"].as_str().expect("an id").to_owned());
    }
    let names = async |query: &str| {
        let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let found = directory.ok(&format!("GET Users?filter={query}"), Value::Null, 200).await;
        let users = found["Resources"].as_array().cloned().unwrap_or_default();
        assert_eq!(found["totalResults"].as_u64(), Some(users.len() as u64));
        let mut names: Vec<String> = users.iter().map(|user| user["userName"].as_str().unwrap_or("").into()).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(names("userName eq \"u1\"").await, "U1");
    assert_eq!(names("userName eq \"u9\"").await, "");
    assert_eq!(names("externalId eq \"e3\"").await, "U3");
    assert_eq!(names("externalId eq \"E3\"").await, "");
    assert_eq!(names(&format!("id eq \"{}\"", ids[4])).await, "U4");
    assert_eq!(names("id eq \"../x\"").await, "");
    assert_eq!(names("active eq true").await, "U0 U1 U3 U4");
    assert_eq!(names("active eq false").await, "U2");
    assert_eq!(names("emails.value eq \"u1@x.example\"").await, "U1");
    assert_eq!(names("emails[value eq \"u2@x.example\"]").await, "U2");
    assert_eq!(names("emails[type eq \"work\"].value eq \"u2@x.example\" and active eq true").await, "");
    assert_eq!(names("userName eq \"u3\" and externalId eq \"e3\" and active eq true").await, "U3");
    for bad in ["userName sw \"u\"", "displayName eq \"x\"", "userName eq \"a\" or active eq true", "x"] {
        let query: String = url::form_urlencoded::byte_serialize(bad.as_bytes()).collect();
        directory.rejected(&format!("GET Users?filter={query}"), Value::Null, 400, "invalidFilter").await;
    }
    let page = directory.ok("GET Users?startIndex=2&count=2", Value::Null, 200).await;
    let numbers = [&page["totalResults"], &page["startIndex"], &page["itemsPerPage"]];
    assert_eq!(numbers.map(Value::as_u64), [Some(5), Some(2), Some(2)]);
    let mut seen = Vec::new();
    for start in [1, 3, 5] {
        let page = directory.ok(&format!("GET Users?startIndex={start}&count=2"), Value::Null, 200).await;
        let users = page["Resources"].as_array().cloned().unwrap_or_default();
        seen.extend(users.iter().map(|user| user["id"].as_str().unwrap_or("").to_owned()));
    }
    ids.sort();
    assert_eq!(seen, ids, "each once");
    let none = directory.ok("GET Users?count=0", Value::Null, 200).await;
    assert_eq!((&none["totalResults"], &none["Resources"]), (&json!(5), &json!([])));
    directory.rejected("GET Users?count=x", Value::Null, 400, "").await;
}

async fn entra_provisions_changes_and_withdraws(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let search = "GET Users?filter=userName+eq+%22ann%40acme.example%22";
    assert_eq!(directory.ok(search, Value::Null, 200).await["totalResults"], 0);
    let body = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", ENTERPRISE],
        "externalId": "0a21f0f2", "userName": "ann@acme.example", "active": true,
        "displayName": "Ann", "emails": [{ "primary": true, "type": "work", "value": "ann@acme.example" }],
        "meta": { "resourceType": "User" }, "name": { "formatted": "Ann A", "familyName": "A", "givenName": "Ann" },
        "roles": [],
    });
    let id = directory.ok("POST Users", body, 201).await["id"].as_str().expect("an id").to_owned();
    let found = directory.ok(search, Value::Null, 200).await;
    assert_eq!(found["Resources"][0]["id"], id.as_str());
    let changed = directory
        .patch(
            &id,
            json!([
                { "op": "Replace", "path": "emails[type eq \"work\"].value", "value": "a@acme.example" },
                { "op": "Add", "path": "phoneNumbers[type eq \"mobile\"].value", "value": "1" },
                { "op": "Replace", "path": "name.familyName", "value": "B" },
                { "op": "Add", "path": format!("{ENTERPRISE}:department"), "value": "ships" },
                { "op": "Remove", "path": "displayName" },
            ]),
        )
        .await;
    assert_eq!(changed["emails"], json!([{ "primary": true, "type": "work", "value": "a@acme.example" }]));
    assert_eq!(changed["phoneNumbers"], json!([{ "type": "mobile", "value": "1" }]));
    assert_eq!((&changed["name"]["familyName"], &changed["displayName"]), (&json!("B"), &Value::Null));
    assert_eq!(changed[ENTERPRISE], json!({ "department": "ships" }));
    let off = directory.patch(&id, json!([{ "op": "Replace", "path": "active", "value": "False" }])).await;
    assert_eq!(off["active"], false);
    let off = directory.patch(&id, json!([{ "op": "Replace", "value": { "active": "True" } }])).await;
    assert_eq!(off["active"], true);
    let path = format!("PATCH Users/{id}");
    let missing = patch(json!([{ "op": "Replace", "path": "ims[type eq \"x\"].value", "value": "1" }]));
    directory.rejected(&path, missing, 400, "noTarget").await;
    directory.rejected(&path, patch(json!([{ "op": "Replace", "path": "a b", "value": 1 }])), 400, "invalidPath").await;
    directory.rejected(&path, patch(json!([{ "op": "Replace", "path": "id", "value": "x" }])), 400, "mutability").await;
    directory.rejected(&path, json!({ "Operations": [] }), 400, "invalidSyntax").await;
    assert_eq!(directory.call(&format!("DELETE Users/{id}"), Value::Null).await.status, 204);
}

async fn okta_provisions_changes_and_withdraws(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let search = "GET Users?filter=userName%20eq%20%22ben%40acme.example%22&startIndex=1&count=100";
    assert_eq!(directory.ok(search, Value::Null, 200).await["totalResults"], 0);
    let mut body = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "userName": "ben@acme.example", "name": { "givenName": "Ben", "familyName": "B" },
        "emails": [{ "primary": true, "value": "ben@acme.example", "type": "work" }],
        "displayName": "Ben B", "locale": "en-US", "externalId": "00ujl29u0le5T6Aj10h7", "groups": [],
        "password": "1mz050nq", "active": true,
    });
    let created = directory.ok("POST Users", body.clone(), 201).await;
    let id = created["id"].as_str().expect("an id").to_owned();
    // The whole resource goes back with a change in it.
    body = created;
    body["name"]["givenName"] = json!("Benjamin");
    let replaced = directory.ok(&format!("PUT Users/{id}"), body.clone(), 200).await;
    assert_eq!(replaced["name"]["givenName"], "Benjamin");
    let same = directory.ok(&format!("PUT Users/{id}"), body, 200).await;
    assert_eq!(same["meta"], replaced["meta"]);
    let off = directory.patch(&id, json!([{ "op": "replace", "value": { "active": false } }])).await;
    assert_eq!((&off["active"], &off["name"]["givenName"]), (&json!(false), &json!("Benjamin")));
}

each_engine!(
    a_user_has_a_place_and_a_version,
    what_identifies_a_user_is_required_and_unique,
    lists_are_filtered_and_paged,
    entra_provisions_changes_and_withdraws,
    okta_provisions_changes_and_withdraws
);
