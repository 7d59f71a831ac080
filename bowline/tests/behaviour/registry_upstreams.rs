//! Accounts of upstreams: passwords that no one sees again, and what they stay with.

use bowline_core::Error;
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{assert_nowhere, call, inventory, newest_event, number, ok, rejected};

const URL: &str = "https://registry.example.com/team";

/// The stored password of the upstream of a place, opened.
async fn password(server: &TestServer, place: &str) -> String {
    let storage = &server.server().parts().storage;
    let sought = place.to_owned();
    let read = storage.db.read(move |tx| {
        let sought = sought.clone();
        Box::pin(async move {
            let sql = "SELECT upstream_password FROM registry_policies WHERE place = $1";
            tx.query_opt(sql, &[bowline_store::Value::from(&sought)], |row| row.bytes(0).map_err(Error::from)).await
        })
    });
    let sealed = read.await.expect("the database answers").expect("a policy");
    if sealed.is_empty() {
        return String::new();
    }
    let opened = storage.wrapping_key.open(&format!("upstream of {place}"), &sealed).expect("the password opens");
    String::from_utf8(opened).expect("text")
}

fn upstream(url: &str, username: &str, password: &str) -> Value {
    json!({ "upstream": { "url": url, "username": username, "password": password } })
}

async fn a_password_is_kept_and_never_shown(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let operator = server.operator().await;
    for (kind, uid) in [("repos", &repo), ("groups", &org)] {
        let path = format!("/registrypolicies/v1/{kind}/{uid}");
        let patch = format!("PATCH {path}");
        for (body, kept) in [
            (upstream(URL, "me", "first-secret"), "first-secret"),
            // What is not given again stays, with the same address and name.
            (upstream(URL, "me", ""), "first-secret"),
            (json!({ "upstream": { "url": URL, "username": "me", "hasPassword": true } }), "first-secret"),
            (json!({ "upstream": { "url": URL, "username": "me", "tagPatterns": ["1"] } }), "first-secret"),
            (json!({ "byteQuota": "5" }), "first-secret"),
            // What is given counts.
            (upstream(URL, "me", "second-secret"), "second-secret"),
            (upstream("https://other.example.com/team", "me", "third-secret"), "third-secret"),
            // Without a name there is no account any more.
            (json!({ "upstream": { "url": URL, "hasPassword": true } }), ""),
            (upstream(URL, "me", "fourth-secret"), "fourth-secret"),
            (json!({ "upstream": null }), ""),
            (upstream(URL, "me", "last-secret"), "last-secret"),
        ] {
            let answer = call(&operator, &patch, body.clone()).await;
            assert_eq!(answer.status, 200, "{body}: {}", answer.text());
            let got = call(&operator, &format!("GET {path}"), Value::Null).await;
            assert_eq!(got.json(), answer.json());
            assert!(!answer.text().contains("secret"), "{}", answer.text());
            let has = got.json()["upstream"]["hasPassword"] == json!(true);
            assert_eq!((password(server, uid).await.as_str(), has), (kept, !kept.is_empty()), "{body}");
        }
    }
    let [kind, .., body] = newest_event(server).await;
    assert_eq!(kind, "dev.bowline.registry.policy.updated.v1");
    assert!(body.contains("registry.example.com") && body.contains("\"me\""), "{body}");
    let own = ["SELECT policy FROM registry_policies", "SELECT upstream_password FROM registry_policies"];
    assert_nowhere(server, "secret", &own).await;
    // Changing nothing but the password is a change.
    let before = number(server, "SELECT count(*) FROM audit").await;
    let path = format!("PATCH /registrypolicies/v1/groups/{org}");
    ok(&operator, &path, upstream(URL, "me", "another-secret")).await;
    ok(&operator, &path, upstream(URL, "me", "")).await;
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, before + 1);
}

async fn a_password_goes_nowhere_that_it_was_not_given_for(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let path = format!("PATCH /registrypolicies/v1/groups/{org}");
    let refuse = async |body: Value, field: &str| {
        let refusal = rejected(&operator, &path, body.clone(), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{body}");
        assert!(!refusal.0.to_string().contains("hush"), "{refusal:?}");
    };
    refuse(upstream(URL, "me", ""), "upstream.password").await;
    refuse(upstream(URL, "", "hush"), "upstream.username").await;
    ok(&operator, &path, upstream(URL, "me", "hush")).await;
    let before = inventory(server).await;
    for (url, username) in [
        ("https://evil.example.com/team", "me"),
        ("https://registry.example.com:8443/team", "me"),
        ("https://registry.example.com/other", "me"),
        (URL, "you"),
    ] {
        refuse(upstream(url, username, ""), "upstream.password").await;
    }
    refuse(upstream(URL, "", "hush"), "upstream.username").await;
    refuse(upstream(URL, "a:b", "hush"), "upstream.username").await;
    refuse(upstream(URL, "a\nb", "hush"), "upstream.username").await;
    refuse(upstream(URL, &"a".repeat(257), "hush"), "upstream.username").await;
    refuse(upstream(URL, "me", &"hush".repeat(2049)), "upstream.password").await;
    assert_eq!(inventory(server).await, before);
    assert_eq!(password(server, &org).await, "hush");
    // An upstream that is taken away takes its password along: it cannot be had back without it.
    ok(&operator, &path, json!({ "upstream": null })).await;
    refuse(upstream(URL, "me", ""), "upstream.password").await;
}

each_engine!(a_password_is_kept_and_never_shown, a_password_goes_nowhere_that_it_was_not_given_for);
