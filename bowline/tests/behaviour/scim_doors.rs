//! SCIM: who is let in, and how much.

use std::time::Duration;

use bowline_testkit::{Engine, TestServer, by_engine, each_engine};
use serde_json::{Value, json};

use crate::scim::{Directory, TOKEN};
use crate::support::{execute, log};

async fn every_bad_token_gets_the_same_answer(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let other = Directory::new(server, &org, 2).await;
    let id = directory.user("ann", "e1").await;
    let unknown = server.anonymous().with_token(&format!("{TOKEN}{:064x}", 9));
    let (anonymous, operator) = (server.anonymous(), server.operator().await);
    let first = directory.call_as(&anonymous, "GET Users", &Value::Null).await;
    assert_eq!((first.status, first.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(first.header("content-type"), Some("application/scim+json"));
    let new = json!({ "userName": "x", "externalId": "x" });
    for actor in [&anonymous, &unknown, &operator, &other.actor] {
        for (what, body) in [
            ("GET Users", &Value::Null),
            ("POST Users", &new),
            ("POST Users", &json!("x".repeat(300_000))),
            ("DELETE Users/x", &Value::Null),
            ("GET Schemas", &Value::Null),
            ("GET nowhere", &Value::Null),
            (&format!("DELETE Users/{id}"), &Value::Null),
        ] {
            let reply = directory.call_as(actor, what, body).await;
            assert_eq!((reply.status, reply.text()), (401, first.text()), "{} {what}", actor.name);
        }
    }
    for path in ["/scim/v2/", "/scim/v2/x/Users", &format!("/scim/v2/{org}/Users"), "/scim/v2/%00/Users"] {
        let reply = directory.actor.rest("GET", path, None).await;
        // Without any provider there is no such path.
        assert!(reply.status == 401 && reply.text() == first.text() || path == "/scim/v2/", "{path}: {}", reply.text());
    }
    assert_eq!(directory.ok("GET Users", Value::Null, 200).await["totalResults"], 1);
}

async fn a_token_ends_with_its_time_its_provider_and_its_revocation(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let provider = directory.provider.as_str();
    let open = async || directory.call("GET Users", Value::Null).await.status == 200;
    let now = server.clock().seconds();
    let at = |seconds: i64| ((now + seconds) * 1_000_000).to_string();
    assert!(open().await);
    let set = "UPDATE scim_tokens SET expires_at = CAST(CAST($2 AS TEXT) AS BIGINT) WHERE provider = $1";
    execute(server, set, &[provider, &at(60)]).await;
    assert!(open().await);
    server.clock().advance(Duration::from_secs(61));
    assert!(!open().await, "expired");

    // Another token in its place leaves it good for a while.
    let rotate = "UPDATE scim_tokens SET previous_hash = hash, expires_at = NULL,
                        previous_expires_at = CAST(CAST($2 AS TEXT) AS BIGINT) WHERE provider = $1";
    execute(server, rotate, &[provider, &at(120)]).await;
    let fresh =
        "UPDATE scim_tokens SET hash = (SELECT t.hash FROM scim_tokens t WHERE t.provider = $2) WHERE provider = $1";
    let other = Directory::new(server, &org, 2).await;
    execute(server, fresh, &[provider, &other.provider]).await;
    assert!(open().await, "the one before");
    assert_eq!(directory.call_as(&other.actor, "GET Users", &Value::Null).await.status, 200, "the new one");
    server.clock().advance(Duration::from_secs(61));
    assert!(!open().await, "the one before has ended");
    execute(
        server,
        "UPDATE scim_tokens SET previous_expires_at = NULL, hash = previous_hash WHERE provider = $1",
        &[provider],
    )
    .await;
    assert!(open().await);
    execute(server, "UPDATE identity_providers SET scim_enabled = FALSE WHERE uid = $1", &[provider]).await;
    assert!(!open().await, "switched off");
    execute(server, "UPDATE identity_providers SET scim_enabled = TRUE WHERE uid = $1", &[provider]).await;
    assert!(open().await);
    execute(server, "UPDATE scim_tokens SET hash = NULL WHERE provider = $1", &[provider]).await;
    assert!(!open().await, "revoked");
    execute(server, "DELETE FROM scim_tokens WHERE provider = $1", &[provider]).await;
    assert!(!open().await, "never issued");
}

async fn bodies_have_a_size_and_a_depth(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let with = |title: usize| json!({ "userName": "u", "externalId": "e", "title": "x".repeat(title) });
    directory.rejected("POST Users", with(256 << 10), 413, "").await;
    directory.rejected("POST Users", with(64 << 10), 413, "").await;
    let deep = async |levels: usize| {
        let value = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let body = format!("{{\"userName\":\"u\",\"externalId\":\"e\",\"name\":{{\"x\":{value}}}}}");
        let path = format!("/scim/v2/{}/Users", directory.provider.replace('/', "."));
        directory.actor.rest_with("POST", &path, http::HeaderMap::new(), body.into_bytes()).await
    };
    for levels in [20, 120, 100_000] {
        let reply = deep(levels).await;
        assert_eq!(reply.status, 400, "{levels}: {}", reply.text());
    }
    directory.rejected("POST Users", json!("not an object"), 400, "invalidSyntax").await;
    assert_eq!(directory.ok("GET Users", Value::Null, 200).await["totalResults"], 0);
    directory.ok("POST Users", with(60 << 10), 201).await;
}

async fn a_directory_writes_at_its_rate(engine: Engine) {
    log();
    let server = TestServer::start_with(engine, |options| options.scim_rate = Some(1)).await;
    let org = server.organization("acme").await;
    let directory = Directory::new(&server, &org, 1).await;
    let other = Directory::new(&server, &org, 2).await;
    // Who has no token takes nothing from those who have one.
    for _ in 0..20 {
        assert_eq!(directory.call_as(&server.anonymous(), "DELETE Users/x", &Value::Null).await.status, 401);
    }
    let mut limited = None;
    for _ in 0..30 {
        let reply = directory.call("DELETE Users/0123456789abcdef", Value::Null).await;
        if reply.status == 429 {
            limited = Some(reply);
            break;
        }
        assert_eq!(reply.status, 404);
    }
    let limited = limited.expect("a bucket of ten is empty after thirty");
    assert!(limited.header("retry-after").and_then(|wait| wait.parse::<u64>().ok()).is_some_and(|wait| wait > 0));
    assert_eq!(limited.json()["status"], "429");
    assert_eq!(directory.call("GET Users", Value::Null).await.status, 200, "reading goes on");
    let search = "GET Users?filter=emails.value%20eq%20%22a@acme.example%22";
    assert_eq!(directory.call(search, Value::Null).await.status, 429, "but not reading everybody");
    assert_eq!(other.call(search, Value::Null).await.status, 200);
    assert_eq!(other.call("DELETE Users/0123456789abcdef", Value::Null).await.status, 404, "others go on");
    server.stop().await;
    let server = TestServer::start_with(engine, |options| options.rate_limit_address = Some(1)).await;
    let mut statuses = Vec::new();
    for _ in 0..30 {
        statuses.push(server.anonymous().rest("GET", "/scim/v2/x/Users", None).await.status);
    }
    assert!(statuses.starts_with(&[401; 10]) && statuses.contains(&429), "{statuses:?}");
    server.stop().await;
}

async fn the_endpoint_describes_itself(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = Directory::new(server, &org, 1).await;
    let config = directory.ok("GET ServiceProviderConfig", Value::Null, 200).await;
    assert_eq!([&config["patch"]["supported"], &config["bulk"]["supported"]], [&json!(true), &json!(false)]);
    let types = directory.ok("GET ResourceTypes", Value::Null, 200).await;
    assert_eq!((&types["totalResults"], &types["Resources"][0]["endpoint"]), (&json!(1), &json!("/Users")));
    assert_eq!(directory.ok("GET ResourceTypes/User", Value::Null, 200).await["id"], "User");
    let schemas = directory.ok("GET Schemas", Value::Null, 200).await;
    assert_eq!(schemas["totalResults"], 2);
    for schema in schemas["Resources"].as_array().into_iter().flatten() {
        let id = schema["id"].as_str().unwrap_or_default();
        assert_eq!(directory.ok(&format!("GET Schemas/{id}"), Value::Null, 200).await, *schema);
    }
    for what in ["GET Groups", "GET Schemas/x", "GET Users/x/y", "GET Bulk"] {
        directory.rejected(what, Value::Null, 404, "").await;
    }
    for (what, allow) in [
        ("PATCH Users", "GET, HEAD, POST"),
        ("POST Users/x", "GET, HEAD, PUT, PATCH, DELETE"),
        ("PUT Schemas", "GET, HEAD"),
    ] {
        let reply = directory.call(what, json!({})).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{what}");
    }
}

each_engine!(
    every_bad_token_gets_the_same_answer,
    a_token_ends_with_its_time_its_provider_and_its_revocation,
    bodies_have_a_size_and_a_depth,
    the_endpoint_describes_itself
);

by_engine!(a_directory_writes_at_its_rate);
