//! Where the operator requires entitlements, an organization uses the ecosystems that it has one for.

use bowline_testkit::{Actor, Engine, TestServer, by_engine};
use serde_json::{Value, json};

use crate::fake_index::FakeIndex;
use crate::support::*;
use crate::upstreams::installer;

async fn requiring(engine: Engine) -> TestServer {
    TestServer::start_with(engine, |options| options.entitlements_required = true).await
}

/// Grants an ecosystem; the UIDP of the entitlement.
async fn entitle(owner: &Actor, org: &str, ecosystem: &str, policy: &str) -> String {
    let path = format!("/libraries/v1/entitlements/{org}?policy={policy}");
    let granted = owner.rest("POST", &path, Some(json!(ecosystem))).await;
    assert_eq!(granted.status, 200, "{}", granted.text());
    granted.json()["id"].as_str().expect("a UIDP").to_owned()
}

async fn without_an_entitlement_nothing_is_read_or_published(engine: Engine) {
    let server = requiring(engine).await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let client = Client::of(&server, &owner);
    let bytes = wheel("foo", "1.0", "");
    let form = form("foo", "1.0", &file_name("foo", "1.0"), &bytes);
    for refused in [client.upload(&form).await, client.get("simple/").await, client.get("simple/foo/").await] {
        let sentence = sentence(&refused, 403);
        let command = format!("bowline libraries entitlements create {org} --ecosystem python");
        assert!(sentence.contains("no entitlement for packages of python"), "{sentence}");
        assert!(sentence.ends_with(&command), "{sentence}");
    }
    for (other, path) in
        [(client.javascript(), "foo"), (client.java(), "a/b/maven-metadata.xml"), (client.go(), "a.example/b/@v/list")]
    {
        assert_eq!(other.send(&format!("GET {path}"), &[], &[]).await.status, 403, "{path}");
    }
    assert_eq!(client.cargo().send("GET config.json", &[], &[]).await.status, 200, "the contract has none for crates");
    assert_eq!(number(&server, "SELECT count(*) FROM uploads").await, 0);

    let of_tier = entitle(&owner, &org, "PYTHON_ATHENA", "POLICY_CHAINGUARD").await;
    assert_eq!(client.upload(&form).await.status, 200, "a tier is of its ecosystem");
    assert_eq!(client.project("foo").await["versions"], json!(["1.0"]));
    let (_, outsider) = publisher(&server, "other").await;
    let refused = outsider.at(&org).get("simple/foo/").await;
    assert!(!sentence(&refused, 403).contains("entitlement"), "who may not read is not told of it: {}", refused.text());

    let deleted = owner.rest("DELETE", &format!("/libraries/v1/entitlements/{of_tier}"), None).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    assert_eq!(client.get("simple/foo/").await.status, 403, "a page that is kept is not served any more");
    let file = format!("files/{}/{}", sha256(&bytes), file_name("foo", "1.0"));
    assert_eq!(client.get(&file).await.status, 403);
    server.stop().await;
}

async fn upstreams_need_an_entitlement_that_has_them(engine: Engine) {
    let server = requiring(engine).await;
    let index = FakeIndex::start().await;
    index.publish(&server, "foo", "1.0", 30);
    let (org, owner, client) = installer(&server, &index).await;
    entitle(&owner, &org, "PYTHON", "POLICY_CHAINGUARD").await;
    let refused = client.get("simple/foo/").await;
    assert!(sentence(&refused, 403).ends_with("--ecosystem python --upstream"), "{}", refused.text());
    assert_eq!(index.seen(), Vec::<String>::new(), "nothing is requested");
    entitle(&owner, &org, "PYTHON", "POLICY_CHAINGUARD_AND_UPSTREAM").await;
    let page: Value = client.project("foo").await;
    assert_eq!((&page["versions"], client.file(&page, 0).await.status), (&json!(["1.0"]), 200));
    entitle(&owner, &org, "PYTHON", "POLICY_CHAINGUARD").await;
    assert_eq!(client.file(&page, 0).await.status, 403, "also of what is stored");
    server.stop().await;
}

async fn entitlements_that_are_not_required_refuse_nothing(engine: Engine) {
    let server = TestServer::start(engine).await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    entitle(&owner, &org, "JAVA", "POLICY_CHAINGUARD").await;
    let client = Client::of(&server, &owner);
    client.publish("foo", "1.0").await;
    assert_eq!(client.project("foo").await["versions"], json!(["1.0"]));
    server.stop().await;
}

by_engine!(
    without_an_entitlement_nothing_is_read_or_published,
    upstreams_need_an_entitlement_that_has_them,
    entitlements_that_are_not_required_refuse_nothing,
);
