//! Retention: what is removed, what stays, and the events.

use std::time::Duration;

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::*;

/// Sets the policy of a repository (`repos`) or a group (`groups`).
async fn policy(server: &TestServer, kind: &str, uid: &str, given: Value) {
    let path = format!("/registrypolicies/v1/{kind}/{uid}");
    let reply = server.operator().await.rest("PATCH", &path, Some(given)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// Calls a method of retention for a repository.
async fn ask(server: &TestServer, verb: &str, repo: &str, what: &str) -> Value {
    let path = format!("/registrypolicies/v1/repos/{repo}:{what}");
    let body = (verb == "POST").then(|| json!({}));
    let reply = server.operator().await.rest(verb, &path, body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

fn digests(outcome: &Value) -> Vec<String> {
    let removed = outcome["removed"].as_array().unwrap();
    removed.iter().map(|one| one["digest"].as_str().unwrap().to_owned()).collect()
}

/// Pushes an image a second after what was pushed before; its digest.
async fn image_of(server: &TestServer, client: &Client, name: &str, tag: &str, layer: &[u8]) -> String {
    server.clock().advance(Duration::from_secs(1));
    digest_of(&client.image(name, tag, layer).await)
}

async fn put(server: &TestServer, client: &Client, name: &str, reference: &str, manifest: &Value) -> String {
    server.clock().advance(Duration::from_secs(1));
    let reply = client.put(name, reference, manifest).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    digest_of(manifest)
}

fn days_pass(server: &TestServer, days: u64) {
    server.clock().advance(Duration::from_secs(days * 24 * 3600));
}

/// The status of a pull by an onlooker of now.
async fn status(server: &TestServer, org: &str, path: &str) -> u16 {
    client(server, "registry.pull", org).await.get(&format!("/v2/{path}")).await.status
}

async fn whole_images_go_as_the_preview_says(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let release = image_of(server, &client, &name, "release-1", b"release").await;
    let old = image_of(server, &client, &name, "1", b"old").await;
    let mut signature = image(b"old");
    signature["subject"] = json!({ "mediaType": IMAGE, "digest": old, "size": 1 });
    let signature = put(server, &client, &name, &digest_of(&signature), &signature).await;
    let mut members = Vec::new();
    for layer in [b"amd64", b"arm64"] {
        client.blob(&name, layer).await;
        let member = image(layer);
        put(server, &client, &name, &digest_of(&member), &member).await;
        members.push(descriptor(IMAGE, member.to_string().as_bytes()));
    }
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": members });
    let index = put(server, &client, &name, "2", &index).await;
    let newest = image_of(server, &client, &name, "latest", b"newest").await;
    let repo = repo_uid(server, "app").await;
    let rules = json!({ "keepLast": 2, "keepPatterns": ["release-.*"] });
    policy(server, "repos", &repo, json!({ "retention": rules })).await;
    days_pass(server, 2);

    let preview = ask(server, "GET", &repo, "previewRetention").await;
    assert_eq!(digests(&preview), [old.clone(), signature.clone()]);
    assert_eq!((&preview["kept"], &preview["remaining"]), (&json!(5), &json!(0)));
    assert_eq!(preview["removed"][0]["tags"], json!(["1"]));
    let tried = ask(server, "GET", &repo, "previewRetention?retention.keepLast=1").await;
    assert_eq!((digests(&tried).len(), &tried["kept"]), (6, &json!(1)));
    assert_eq!(status(server, &org, &format!("{name}/manifests/1")).await, 200, "nothing went");

    // That pull is written down at some time, which must not come between the two.
    server.server().parts().registry.flush_pulls().await;
    let preview = ask(server, "GET", &repo, "previewRetention").await;
    assert_eq!(digests(&preview), [old.clone(), signature.clone()]);
    let applied = ask(server, "POST", &repo, "applyRetention").await;
    assert_eq!(applied, preview);
    for (path, expected) in [
        ("manifests/1".to_owned(), 404),
        (format!("manifests/{old}"), 404),
        (format!("manifests/{signature}"), 404),
        (format!("blobs/{}", digest(b"old")), 404),
        (format!("blobs/{}", digest(CONFIG_BYTES)), 200),
        (format!("blobs/{}", digest(b"arm64")), 200),
        (format!("manifests/{release}"), 200),
        (format!("manifests/{index}"), 200),
        (format!("manifests/{newest}"), 200),
    ] {
        assert_eq!(status(server, &org, &format!("{name}/{path}")).await, expected, "{path}");
    }
    let audited = "SELECT count(*) FROM audit WHERE after_image IS NULL
                   AND method = 'bowline.registry.v1.RegistryPolicies.ApplyRetention'";
    assert_eq!(number(server, audited).await, 4, "two manifests, a tag, a blob");
    assert_eq!(digests(&ask(server, "POST", &repo, "applyRetention").await), [""; 0]);
    assert_eq!(number(server, audited).await, 4);
    let told =
        "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.registry.retention.applied.v1' AND customer";
    assert_eq!(number(server, told).await, 1);
}

async fn immutable_tags_pulls_and_no_rules_keep_images(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let fixed = image_of(server, &client, &name, "v1", b"fixed").await;
    let unused = image_of(server, &client, &name, "unused", b"unused").await;
    let used = image_of(server, &client, &name, "used", b"used").await;
    let repo = repo_uid(server, "app").await;
    let rules = json!({ "keepDays": 10 });
    policy(server, "groups", &org, json!({ "immutableTagPatterns": ["v.*"], "retention": rules })).await;
    days_pass(server, 8);
    assert_eq!(status(server, &org, &format!("{name}/manifests/used")).await, 200);
    server.server().parts().registry.flush_pulls().await;
    days_pass(server, 8);
    policy(server, "repos", &repo, json!({ "retention": {} })).await;
    let preview = ask(server, "GET", &repo, "previewRetention").await;
    assert_eq!(digests(&preview), [unused], "no rules of its own");
    policy(server, "repos", &repo, json!({ "retention": { "keepDays": 100 } })).await;
    assert_eq!(digests(&ask(server, "POST", &repo, "applyRetention").await), [""; 0], "its own rules come first");
    policy(server, "repos", &repo, json!({ "retention": { "keepDays": 1 } })).await;
    let applied = ask(server, "POST", &repo, "applyRetention").await;
    assert_eq!((digests(&applied).contains(&used), &applied["kept"]), (true, &json!(1)));
    assert_eq!(status(server, &org, &format!("{name}/manifests/{fixed}")).await, 200);
}

async fn the_server_retains_by_itself_below_places_with_rules(server: &TestServer) {
    let (ours, client) = pusher(server, "ours").await;
    let (theirs, other) = pusher(server, "theirs").await;
    for name in ["app", "team/app", "team/own"] {
        for layer in [b"a", b"b", b"c"] {
            image_of(server, &client, &format!("{ours}/{name}"), "latest", layer).await;
        }
    }
    image_of(server, &other, &format!("{theirs}/app"), "latest", b"a").await;
    image_of(server, &other, &format!("{theirs}/app"), "latest", b"b").await;
    policy(server, "groups", &ours, json!({ "retention": { "keepLast": 1 } })).await;
    let own = repo_uid(server, "own").await;
    policy(server, "repos", &own, json!({ "retention": { "keepLast": 2 } })).await;
    let registry = &server.server().parts().registry;
    assert_eq!(registry.retain().await.unwrap(), 0, "what has no tag stays for a day");
    days_pass(server, 2);
    assert_eq!(registry.retain().await.unwrap(), 5);
    assert_eq!(registry.retain().await.unwrap(), 0);
    assert_eq!(number(server, "SELECT count(*) FROM repo_manifests").await, 6);
    let audited = "SELECT count(*) FROM audit WHERE kind = 'registry.chainguard.dev/Manifest'
                   AND actor = '0000000000000000000000000000000000000000' AND after_image IS NULL";
    assert_eq!(number(server, audited).await, 5);
}

each_engine!(
    multi_thread:
    whole_images_go_as_the_preview_says,
    immutable_tags_pulls_and_no_rules_keep_images,
    the_server_retains_by_itself_below_places_with_rules
);
