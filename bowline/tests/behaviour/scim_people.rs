//! SCIM: what becomes of the people behind the users.

use bowline_authn::claims::{AccessClaims, TokenClass, mint};
use bowline_core::Error;
use bowline_identity::human_uid;
use bowline_store::Value as Sql;
use bowline_testkit::{Actor, TestServer, each_engine};
use prost::Message as _;
use serde_json::{Value, json};

use crate::scim::Directory;
use crate::support::{call, execute, number};

/// Someone who has signed in: the UIDP of the person with this subject.
async fn person(server: &TestServer, directory: &Directory, subject: &str) -> String {
    let uid = human_uid(&directory.issuer, subject).as_str().to_owned();
    let row = (uid.clone(), directory.issuer.clone(), subject.to_owned());
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let (uid, issuer, subject) = row.clone();
        Box::pin(async move {
            let sql = "INSERT INTO identities (uid, parent, org, name, description, email, email_unverified, company,
                         relationship_type, relationship, issuer, subject, deactivated, created_at, updated_at)
                       VALUES ($1, '', '', 'person', '', '', '', '', 0, $2, $3, $4, FALSE, 0, 0)";
            let params = [Sql::from(&uid), Sql::Bytes(&[]), Sql::from(&issuer), Sql::from(&subject)];
            tx.execute(sql, &params).await.map_err(Error::from)
        })
    });
    written.await.expect("the person is stored");
    uid
}

/// The person with a token of an hour, of a session if there is one.
fn signed_in(server: &TestServer, person: &str, session: Option<&str>) -> Actor {
    let parts = server.server().parts();
    let (now, keys) = (server.clock().seconds(), parts.authenticator.keys());
    let claims = AccessClaims {
        iss: parts.settings.auth_url.clone(),
        sub: person.into(),
        aud: vec![parts.settings.api_audience.clone()],
        exp: now + 3600,
        iat: now,
        sid: session.map(String::from),
        ..AccessClaims::default()
    };
    let key = keys.ring.signing_key(now).expect("a key that signs");
    server.anonymous().with_token(&mint(TokenClass::Access, &claims, key))
}

/// Begins a session with all that hangs on one.
async fn session(server: &TestServer, id: &str, person: &str, provider: &str) {
    let ends = ((server.clock().seconds() + 86_400) * 1_000_000).to_string();
    let sql = "INSERT INTO sessions (id, identity, provider, created_at, expires_at)
               VALUES ($1, $2, $3, 0, CAST(CAST($4 AS TEXT) AS BIGINT))";
    execute(server, sql, &[id, person, provider, &ends]).await;
    execute(server, "INSERT INTO session_groups (session, external_group) VALUES ($1, 'crew')", &[id]).await;
    let (id, person) = (id.to_owned(), person.to_owned());
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let (id, person) = (id.clone(), person.clone());
        Box::pin(async move {
            let sql = "INSERT INTO refresh_tokens (hash, family, session, identity, audiences, narrowing, expires_at)
                       VALUES ($1, $2, $2, $3, '[]', '{}', 9000000000000000)";
            let params = [Sql::Bytes(id.as_bytes()), Sql::from(&id), Sql::from(&person)];
            tx.execute(sql, &params).await.map_err(Error::from)
        })
    });
    written.await.expect("the refresh token is stored");
}

async fn sees(actor: &Actor, group: &str) -> u16 {
    call(actor, &format!("GET /iam/v2/groups/{group}"), Value::Null).await.status
}

async fn person_of(server: &TestServer, directory: &Directory, id: &str) -> String {
    let uid = format!("{}/{id}", directory.provider);
    let db = &server.server().parts().storage.db;
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT person FROM scim_users WHERE uid = $1";
            tx.query_opt(sql, &[Sql::from(&uid)], |row| row.text(0).map_err(Error::from)).await
        })
    });
    read.await.expect("the database answers").expect("a row")
}

async fn deactivation_bites_at_once(server: &TestServer) {
    let org = server.organization("acme").await;
    let elsewhere = server.organization("globex").await;
    let directory = Directory::new(server, &org, 1).await;
    let other = Directory::new(server, &org, 2).await;
    let ann = person(server, &directory, "ann").await;
    let viewer = server.role("viewer");
    server.bind(&ann, &viewer, &org).await;
    server.bind(&ann, &viewer, &elsewhere).await;
    session(server, "here", &ann, &directory.provider).await;
    session(server, "there", &ann, &other.provider).await;
    let [plain, here, there] = [None, Some("here"), Some("there")].map(|session| signed_in(server, &ann, session));
    let id = directory.user("ann", "ann").await;
    assert_eq!(person_of(server, &directory, &id).await, ann);
    for actor in [&plain, &here, &there] {
        assert_eq!(sees(actor, &org).await, 200);
    }
    directory.patch(&id, json!([{ "op": "Replace", "path": "active", "value": "False" }])).await;
    assert_eq!(sees(&plain, &org).await, 403, "the bindings of this organization count for nothing");
    assert_eq!(sees(&plain, &elsewhere).await, 200, "those of others do");
    assert_eq!(sees(&here, &elsewhere).await, 401, "the provider's session has ended");
    assert_eq!(sees(&there, &elsewhere).await, 200, "another provider's has not");
    for sql in [
        "SELECT count(*) FROM sessions WHERE id = 'here'",
        "SELECT count(*) FROM session_groups WHERE session = 'here'",
        "SELECT count(*) FROM refresh_tokens WHERE session = 'here'",
    ] {
        assert_eq!(number(server, sql).await, 0, "{sql}");
    }
    assert_eq!(number(server, "SELECT count(*) FROM refresh_tokens").await, 1);
    directory.patch(&id, json!([{ "op": "replace", "value": { "active": true } }])).await;
    assert_eq!((sees(&plain, &org).await, sees(&here, &org).await), (200, 401), "bindings come back, sessions do not");

    // Anyone who is made inactive from the start is none the better for it.
    let ben = person(server, &directory, "ben").await;
    server.bind(&ben, &viewer, &org).await;
    session(server, "ben", &ben, &directory.provider).await;
    let [plain, signed] = [None, Some("ben")].map(|session| signed_in(server, &ben, session));
    assert_eq!((sees(&plain, &org).await, sees(&signed, &org).await), (200, 200));
    directory.ok("POST Users", json!({ "userName": "ben", "externalId": "ben", "active": false }), 201).await;
    assert_eq!((sees(&plain, &org).await, sees(&signed, &org).await), (403, 401));
}

async fn deletion_takes_the_bindings_of_the_organization(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let elsewhere = server.organization("globex").await;
    let directory = Directory::new(server, &org, 1).await;
    let ann = person(server, &directory, "ann").await;
    let viewer = server.role("viewer");
    for place in [&org, &team, &elsewhere] {
        server.bind(&ann, &viewer, place).await;
    }
    session(server, "here", &ann, &directory.provider).await;
    let [plain, here] = [None, Some("here")].map(|session| signed_in(server, &ann, session));
    let id = directory.user("ann", "ann").await;
    let operator = server.operator().await;
    let bindings = async || {
        let listed = call(&operator, "GET /iam/v2/roleBindings", Value::Null).await.json();
        (listed["totalCount"].clone(), number(server, "SELECT count(*) FROM role_bindings").await)
    };
    assert_eq!(bindings().await, (json!("3"), 3));
    assert_eq!(directory.call(&format!("DELETE Users/{id}"), Value::Null).await.status, 204);
    assert_eq!(bindings().await, (json!("1"), 1), "the count is kept");
    assert_eq!((sees(&plain, &team).await, sees(&plain, &elsewhere).await), (403, 200));
    assert_eq!(sees(&here, &elsewhere).await, 401);
    let audited = "SELECT count(*) FROM audit WHERE method = 'scim Users.delete'
                       AND before_image IS NOT NULL AND after_image IS NULL";
    assert_eq!(number(server, audited).await, 3, "the user and two bindings");
    let bindings_audited = "SELECT count(*) FROM audit WHERE method = 'scim Users.delete'
                                AND kind = 'iam.chainguard.dev/RoleBinding'";
    assert_eq!(number(server, bindings_audited).await, 2);
}

async fn the_person_follows_the_external_id(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let (ann, ben) = (person(server, &directory, "ann").await, person(server, &directory, "ben").await);
    server.bind(&ann, &server.role("viewer"), &org).await;
    session(server, "ann", &ann, &directory.provider).await;
    session(server, "ben", &ben, &directory.provider).await;
    let id = directory.user("ann@acme.example", "ann").await;
    // A new name or address is still the same person.
    let same =
        json!([{ "op": "replace", "value": { "userName": "ben", "emails": [{ "value": "ben@acme.example" }] } }]);
    directory.patch(&id, same).await;
    assert_eq!(person_of(server, &directory, &id).await, ann);
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 2);
    directory.patch(&id, json!([{ "op": "replace", "path": "externalId", "value": "ben" }])).await;
    assert_eq!(person_of(server, &directory, &id).await, ben);
    // Whom the directory does not know any more has left: otherwise a new id would undo a deactivation.
    assert_eq!(number(server, "SELECT count(*) FROM sessions WHERE id = 'ann'").await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM sessions WHERE id = 'ben'").await, 1);

    // With the object id, only a sign-in can resolve who it is.
    let by_object = Directory::with(server, &org, 2, 2).await;
    let id = by_object.user("ann", "ann").await;
    assert_eq!(person_of(server, &by_object, &id).await, "");
}

async fn every_write_is_in_the_audit_log_without_secrets(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let before = number(server, "SELECT count(*) FROM audit").await;
    let body = json!({ "userName": "Ann", "externalId": "e", "password": "hunter2", "title": "a" });
    let created = directory.ok("POST Users", body.clone(), 201).await;
    let id = created["id"].as_str().expect("an id");
    let path = format!("Users/{id}");
    directory.patch(id, json!([{ "op": "replace", "value": { "password": "hunter3", "title": "b" } }])).await;
    directory.ok(&format!("PUT {path}"), body.clone(), 200).await;
    // What changes nothing, and what is refused, is not there.
    directory.ok(&format!("PUT {path}"), body, 200).await;
    directory.rejected(&format!("PUT {path}"), json!({}), 400, "invalidValue").await;
    assert_eq!(directory.call(&format!("DELETE {path}"), Value::Null).await.status, 204);
    let db = &server.server().parts().storage.db;
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT method, actor, kind, resource, before_image, after_image, before_type, after_type, org
                           FROM audit WHERE kind = 'bowline.dev/ScimUser' ORDER BY id";
            tx.query(sql, &[], |row| {
                let texts: Vec<String> = [0, 1, 2, 3, 8].iter().map(|i| row.text(*i).unwrap_or_default()).collect();
                let types = [row.opt_text(6)?, row.opt_text(7)?];
                Ok::<_, Error>((texts, [row.opt_bytes(4)?, row.opt_bytes(5)?], types))
            })
            .await
        })
    });
    let rows = read.await.expect("the database answers");
    let methods: Vec<&str> = rows.iter().map(|(texts, ..)| texts[0].as_str()).collect();
    assert_eq!(methods, ["scim Users.create", "scim Users.patch", "scim Users.replace", "scim Users.delete"]);
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, before + 4);
    let uid = format!("{}/{id}", directory.provider);
    for (texts, images, types) in &rows {
        assert_eq!(texts[1..], [directory.provider.as_str(), "bowline.dev/ScimUser", &uid, &org]);
        assert_eq!(types.each_ref().map(Option::is_some), images.each_ref().map(Option::is_some));
        for image in images.iter().flatten() {
            assert!(!image.windows(6).any(|window| window == b"hunter"), "{texts:?}");
            let image = prost_types::Struct::decode(image.as_slice()).expect("a Struct");
            assert!(image.fields.contains_key("userName") && image.fields.contains_key("id"));
        }
    }
    let title = |image: &Option<Vec<u8>>| {
        let image = prost_types::Struct::decode(image.as_deref().expect("an image")).expect("a Struct");
        image.fields["title"].kind.clone()
    };
    assert_ne!(title(&rows[1].1[0]), title(&rows[1].1[1]), "before and after");
    assert!(rows[0].1[0].is_none() && rows[3].1[1].is_none());
    let stored = "SELECT count(*) FROM scim_users WHERE resource LIKE '%hunter%'";
    assert_eq!(number(server, stored).await, 0);
}

async fn a_directory_never_ends_the_last_owner_that_is_not_its_own(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let owner = server.role("owner");
    let ann = person(server, &directory, "ann").await;
    server.bind(&ann, &owner, &org).await;
    let bindings = "SELECT count(*) FROM role_bindings";
    let before = number(server, bindings).await;

    // Not by listing the person as deactivated, nor by taking them over first.
    let gone = json!({ "userName": "ann", "externalId": "ann", "active": false });
    directory.rejected("POST Users", gone, 409, "").await;
    let id = directory.user("ann", "ann").await;
    let user = format!("Users/{id}");
    let deactivate = crate::scim::patch(json!([{ "op": "replace", "path": "active", "value": false }]));
    directory.rejected(&format!("PATCH {user}"), deactivate.clone(), 409, "").await;
    let replaced = json!({ "userName": "ann", "externalId": "ann", "active": false });
    directory.rejected(&format!("PUT {user}"), replaced, 409, "").await;
    let other = crate::scim::patch(json!([{ "op": "replace", "path": "externalId", "value": "somebody" }]));
    directory.rejected(&format!("PATCH {user}"), other, 409, "").await;
    directory.rejected(&format!("DELETE {user}"), Value::Null, 409, "").await;
    assert_eq!(number(server, bindings).await, before);
    assert_eq!(sees(&signed_in(server, &ann, None), &org).await, 200);

    // An owner that the directory's provider made does not count as another one.
    let own = person(server, &directory, "own").await;
    let made = server.bind(&own, &owner, &org).await;
    let given = "INSERT INTO default_roles_given (provider, person, given_at, binding) VALUES ($1, $2, 0, $3)";
    execute(server, given, &[&directory.provider, &own, &made]).await;
    directory.rejected(&format!("DELETE {user}"), Value::Null, 409, "").await;
    // Its own owner goes as long as another one stays.
    let own_id = directory.user("own", "own").await;
    directory.ok(&format!("DELETE Users/{own_id}"), Value::Null, 204).await;

    // With another owner who is not the directory's, the person goes like any other.
    let machine = server.identity(&org, "machine").await;
    server.bind(&machine, &owner, &org).await;
    directory.ok(&format!("PATCH {user}"), deactivate, 200).await;
    assert_eq!(sees(&signed_in(server, &ann, None), &org).await, 403);
    // Deactivated, the person keeps the binding that makes them an owner again, should the other one go.
    execute(server, "UPDATE identities SET expires_at = 1 WHERE uid = $1", &[&machine]).await;
    directory.rejected(&format!("DELETE {user}"), Value::Null, 409, "").await;
    execute(server, "UPDATE identities SET expires_at = NULL WHERE uid = $1", &[&machine]).await;
    directory.ok(&format!("DELETE {user}"), Value::Null, 204).await;
}

each_engine!(
    deactivation_bites_at_once,
    deletion_takes_the_bindings_of_the_organization,
    the_person_follows_the_external_id,
    every_write_is_in_the_audit_log_without_secrets,
    a_directory_never_ends_the_last_owner_that_is_not_its_own
);
