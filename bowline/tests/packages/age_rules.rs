//! Rules of policies about ages: parts of them, as clients and their owners see them.

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::fake_index::FakeIndex;
use crate::first_seen::{ALL, LATER, NEW_VERSIONS, set_source, why};
use crate::support::*;
use crate::upstreams::installer;

async fn freezes_count_new_versions_from_when_they_were_seen(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 300);
    let (org, owner, client) = installer(server, &index).await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "rules", "cooldownDays": 0 })).await;
    set_source(&owner, &policy, ALL, 200).await;
    let body = json!({ "ecosystems": ["PYTHON"], "justification": "a worm" });
    let frozen = owner.rest("POST", &format!("/packagefreezes/v1/organizations/{org}:freeze"), Some(body)).await;
    assert_eq!(frozen.status, 200, "{}", frozen.text());
    server.clock().advance(LATER);
    assert_eq!(client.project("foo").await["files"][0]["yanked"], false, "its first list came later");
    server.clock().advance(LATER);
    index.publish(server, "foo", "1.1", 200);
    let page = client.project("foo").await;
    assert_eq!((client.file(&page, 0).await.status, client.file(&page, 1).await.status), (200, 403), "{page}");
    let sentence = page["files"][1]["yanked"].as_str().unwrap();
    assert!(sentence.contains(": pkg:pypi/foo@1.1 was first seen here later, 20"), "{sentence}");
    assert_eq!(why(&owner, &org, "pkg:pypi/foo@1.1").await["reason"], "FREEZE");
}

async fn a_rule_is_a_part_of_its_policy(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 300);
    let (org, owner, client) = installer(server, &index).await;
    client.project("foo").await;
    let policy = bind(&owner, &org, "LOG", json!({ "name": "later" })).await;
    let rule = format!("/policyages/v1/policies/{policy}/rule");
    assert_eq!(owner.rest("GET", &rule, None).await.json()["ageSource"], "AGE_SOURCE_UPSTREAM");
    // Tests of the policy that would fail with it keep it out.
    let tests = json!({ "tests": [{ "purl": "pkg:pypi/foo@1.0", "expected": "EXPECTED_DECISION_ALLOWED" }] });
    let set_tests = format!("/librarypolicytests/v1/policies/{policy}:setTests");
    assert_eq!(owner.rest("POST", &set_tests, Some(tests)).await.status, 200);
    set_source(&owner, &policy, ALL, 400).await;
    let force = json!({ "ageSource": "AGE_SOURCE_FIRST_SEEN_ALL", "force": true });
    let forced = owner.rest("POST", &format!("/policyages/v1/policies/{policy}:setRule"), Some(force)).await;
    assert_eq!(forced.json()["ageSource"], "AGE_SOURCE_FIRST_SEEN_ALL", "{}", forced.text());
    assert_eq!(owner.rest("POST", &set_tests, Some(json!({}))).await.status, 200);
    // An update of the policy keeps the rule.
    let update = json!({ "name": "soon", "cooldownDays": 7 });
    assert_eq!(owner.rest("PUT", &format!("/libraries/v1/policies/{policy}"), Some(update)).await.status, 200);
    let page = client.project("foo").await;
    assert_eq!((&page["files"][0]["yanked"], client.file(&page, 0).await.status), (&json!(false), 200));
    let logged = blocked(&owner, server, &org, "LOG").await;
    assert_eq!(logged, [("pkg:pypi/foo@1.0".to_owned(), "COOLDOWN".to_owned(), 1)]);

    drafts_have_a_source(server, (&owner, &org), &policy).await;
    set_source(&owner, &policy, "SOMETIME", 400).await;
    let viewer = server.actor("viewer", &org).await;
    set_source(&viewer, &policy, ALL, 403).await;
    assert_eq!(viewer.rest("GET", &rule, None).await.status, 200);
}

/// Drafts are evaluated and previewed with their source, or that of the policy whose id they have.
async fn drafts_have_a_source(server: &TestServer, (owner, org): (&Actor, &str), policy: &str) {
    let evaluate = format!("/librarydecisions/v1/organizations/{org}:evaluatePolicy");
    let allowed = async |id: &str, source: &str| {
        let body = json!({
            "policy": { "id": id, "name": "draft" }, "purls": ["pkg:pypi/foo@1.0"],
            "ageSource": format!("AGE_SOURCE_{source}"),
        });
        let reply = owner.rest("POST", &evaluate, Some(body)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()["decisions"][0]["allowed"] == true
    };
    assert!(allowed("", "UNSPECIFIED").await && allowed("", NEW_VERSIONS).await && !allowed("", ALL).await);
    assert!(!allowed(policy, "UNSPECIFIED").await && allowed(policy, "UPSTREAM").await);
    server.server().parts().package_hosts.flush_notes(|| *b"12345678").await;
    let preview = format!("/librarydecisions/v1/organizations/{org}:previewPolicy");
    let body = json!({
        "policy": { "name": "draft" }, "ecosystem": "PYTHON", "ageSource": "AGE_SOURCE_FIRST_SEEN_ALL",
    });
    let previewed = owner.rest("POST", &preview, Some(body)).await.json();
    let refused = &previewed["newlyRefused"][0];
    assert_eq!((&refused["reason"], &refused["purl"]), (&json!("COOLDOWN"), &json!("pkg:pypi/foo@1.0")), "{previewed}");
}

async fn own_packages_are_not_meant(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    client.publish("foo", "1.0").await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    set_source(&owner, &policy, ALL, 200).await;
    let page = client.project("foo").await;
    assert_eq!((&page["files"][0]["yanked"], client.file(&page, 0).await.status), (&json!(false), 200));
    let why = why(&owner, &org, "pkg:pypi/foo@1.0").await;
    assert_eq!((&why["allowed"], &why["firstSeenTime"]), (&json!(true), &Value::Null), "{why}");
}

each_engine!(
    freezes_count_new_versions_from_when_they_were_seen,
    a_rule_is_a_part_of_its_policy,
    own_packages_are_not_meant,
);
