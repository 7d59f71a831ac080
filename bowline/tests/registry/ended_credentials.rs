//! Basic credentials at the registry: an exchange is kept no longer than the credential and its identity last.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_authn::keys::{Algorithm, KeyRing, RingKey, SigningKey};
use bowline_pipeline::OwnKeys;
use bowline_testkit::{RestReply, TestServer, each_engine};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::support::*;

/// Begins an upload with a user name and a password.
async fn push(server: &TestServer, org: &str, user: &str, password: &str) -> RestReply {
    let value = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
    server.anonymous().rest_with("POST", &format!("/v2/{org}/app/blobs/uploads/"), headers, Vec::new()).await
}

/// An organization with a machine that may push and has this relationship.
async fn machine(server: &TestServer, relationship: Value) -> (String, String) {
    let org = server.organization("acme").await;
    let mut body = relationship;
    body["name"] = json!("robot");
    let made = server.operator().await.rest("POST", &format!("/iam/v2/identities/{org}"), Some(body)).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let uid = made.json()["uid"].as_str().unwrap().to_owned();
    server.bind(&uid, &server.role("registry.push"), &org).await;
    (org, uid)
}

/// Changes the machine.
async fn change(server: &TestServer, uid: &str, body: Value) {
    let changed = server.operator().await.rest("PATCH", &format!("/iam/v2/identities/{uid}"), Some(body)).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
}

fn static_keys(server: &TestServer) -> Value {
    json!({ "staticKeys": { "issuer": "robots", "subject": "robot", "issuerKeys": server.idp().jwks().to_string() } })
}

fn claim_match(server: &TestServer, subject: &str) -> Value {
    json!({ "claimMatch": { "issuer": server.idp().issuer(), "subject": subject } })
}

async fn issued(server: &TestServer) -> i64 {
    number(server, "SELECT count(*) FROM audit WHERE method LIKE '%SecurityTokenService.Exchange'").await
}

fn assert_ended(reply: &RestReply) {
    assert!([401, 403].contains(&reply.status), "{}: {}", reply.status, reply.text());
}

async fn a_credential_ends_with_its_own_exp(server: &TestServer) {
    let (org, uid) = machine(server, claim_match(server, "robot")).await;
    let password = server.idp().token("robot", server.base(), Value::Null);
    for _ in 0..3 {
        assert_eq!(push(server, &org, &uid, &password).await.status, 202);
    }
    assert_eq!(issued(server).await, 1, "the exchange is kept");
    // Ten minutes, and the tolerance of an exchange.
    server.clock().advance(Duration::from_secs(599));
    assert_eq!(push(server, &org, &uid, &password).await.status, 202);
    server.clock().advance(Duration::from_secs(61));
    assert_ended(&push(server, &org, &uid, &password).await);
}

async fn a_credential_whose_key_was_replaced_ends_with_the_next_call(server: &TestServer) {
    let (org, uid) = machine(server, static_keys(server)).await;
    let token = || server.idp().token("robot", server.base(), json!({ "iss": "robots" }));
    let old = token();
    assert_eq!(push(server, &org, &uid, &old).await.status, 202);
    server.idp().rotate();
    let new = token();
    assert_ended(&push(server, &org, &uid, &new).await);
    change(server, &uid, static_keys(server)).await;
    assert_ended(&push(server, &org, &uid, &old).await);
    assert_eq!(push(server, &org, &uid, &new).await.status, 202);
}

async fn a_credential_ends_with_a_change_of_its_identity(server: &TestServer) {
    let (org, uid) = machine(server, claim_match(server, "robot")).await;
    let password = server.idp().token("robot", server.base(), Value::Null);
    assert_eq!(push(server, &org, &uid, &password).await.status, 202);
    change(server, &uid, claim_match(server, "another")).await;
    assert_ended(&push(server, &org, &uid, &password).await);
    change(server, &uid, claim_match(server, "robot")).await;
    assert_eq!(push(server, &org, &uid, &password).await.status, 202);
    execute(server, "UPDATE identities SET deactivated = TRUE WHERE name = 'robot'").await;
    assert_ended(&push(server, &org, &uid, &password).await);
    execute(server, "UPDATE identities SET deactivated = FALSE WHERE name = 'robot'").await;
    assert_eq!(push(server, &org, &uid, &password).await.status, 202);
    execute(server, "UPDATE identities SET expires_at = 1 WHERE name = 'robot'").await;
    assert_ended(&push(server, &org, &uid, &password).await);
    execute(server, "UPDATE identities SET expires_at = NULL WHERE name = 'robot'").await;
    let deleted = server.operator().await.rest("DELETE", &format!("/iam/v2/identities/{uid}"), None).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    assert_ended(&push(server, &org, &uid, &password).await);
}

async fn a_credential_outlives_the_servers_signing_key(server: &TestServer) {
    let (org, uid) = machine(server, claim_match(server, "robot")).await;
    let password = server.idp().token("robot", server.base(), Value::Null);
    assert_eq!(push(server, &org, &uid, &password).await.status, 202);
    let now = server.clock().seconds();
    let key = SigningKey::generate(Algorithm::default()).unwrap();
    let key = RingKey { key: key.into(), published_at: now, signs_from: now, retired_at: None };
    let ring = KeyRing::new(vec![key]);
    let verification = ring.verification_keys(now);
    server.server().parts().authenticator.replace_keys(OwnKeys { ring, verification });
    assert_eq!(push(server, &org, &uid, &password).await.status, 202);
}

each_engine!(
    multi_thread:
    a_credential_ends_with_its_own_exp,
    a_credential_whose_key_was_replaced_ends_with_the_next_call,
    a_credential_ends_with_a_change_of_its_identity,
    a_credential_outlives_the_servers_signing_key
);
