//! Who reads and publishes generic files where, and what policies, freezes and quotas withhold of them.

use std::sync::atomic::{AtomicU64, Ordering};

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::*;

async fn put(client: &Client, path: &str) {
    let reply = client.send(&format!("PUT {path}"), &[], path.as_bytes()).await;
    assert_eq!(reply.status, 201, "{path}: {}", reply.text());
}

async fn status(client: &Client, path: &str) -> u16 {
    client.send(&format!("GET {path}"), &[], &[]).await.status
}

async fn others_learn_nothing(server: &TestServer) {
    let (org, client) = files_publisher(server, "acme").await;
    put(&client, "secret-tool/1.0/a").await;
    let (_, stranger) = files_publisher(server, "other").await;
    assert_eq!(status(&stranger, "secret-tool/1.0/a").await, 404, "their own organization has none");
    let at_theirs = stranger.at(&org);
    let nowhere = stranger.at("absent");
    for what in [
        "GET secret-tool/",
        "GET secret-tool/1.0/",
        "GET secret-tool/1.0/a",
        "PUT secret-tool/1.0/b",
        "DELETE secret-tool/1.0",
    ] {
        let refused = sentence(&at_theirs.send(what, &[], b"").await, 403);
        assert!(!refused.contains("secret-tool"), "{refused}");
        let absent = sentence(&nowhere.send(what, &[], b"").await, 403);
        assert_eq!(refused.replace(&org, "absent"), absent, "{what}");
    }
    let anonymous = Client::anonymous(server).files();
    let unknown = anonymous.at(&org).send("GET secret-tool/1.0/a", &[], &[]).await;
    sentence(&unknown, 401);
    assert_eq!(unknown.header("www-authenticate"), Some("Basic realm=\"packages\", charset=\"UTF-8\""));
    for role in ["viewer", "libraries.go.push", "libraries.python.push"] {
        let other = Client::of(server, &server.actor(role, &org).await).files();
        let refused = sentence(&other.send("GET secret-tool/1.0/a", &[], &[]).await, 403);
        assert!(refused.contains("libraries.cargo.pull"), "{refused}");
    }
    let reader = Client::of(server, &server.actor("libraries.cargo.pull", &org).await).files();
    assert_eq!(status(&reader, "secret-tool/1.0/a").await, 200);
    for what in ["PUT secret-tool/1.0/b", "DELETE secret-tool/1.0"] {
        sentence(&reader.send(what, &[], b"x").await, 403);
    }
    assert_eq!(stored_files(server), 1);
}

async fn a_group_shows_the_files_of_those_above_it(server: &TestServer) {
    let (org, client) = files_publisher(server, "acme").await;
    let group = server.group(&org, "web").await;
    put(&client, "tool/1.0/a").await;
    put(&client, "shared/1.0/a").await;
    let below = client.at(&group.replace('/', ":"));
    put(&below, "tool/2.0/a").await;
    assert_eq!((status(&below, "tool/2.0/a").await, status(&below, "shared/1.0/a").await), (200, 200));
    assert_eq!(status(&below, "tool/1.0/a").await, 404, "the nearest group that has the name counts, whole");
    assert_eq!(status(&client, "tool/2.0/a").await, 404);
    let then = client.at(&format!("{org}@2000-01-01"));
    for path in ["tool/", "tool/1.0/", "tool/1.0/a"] {
        let refused = sentence(&then.send(&format!("GET {path}"), &[], &[]).await, 404);
        assert!(refused.contains("had not been published at 2000-01-01"), "{refused}");
    }
}

/// Bytes that differ with each call.
fn draw() -> [u8; 8] {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    DRAWN.fetch_add(1, Ordering::Relaxed).to_be_bytes()
}

/// Package URL, reason and attempts of the refused downloads of generic files.
async fn blocked_files(owner: &Actor, server: &TestServer, org: &str) -> Vec<Value> {
    server.server().parts().package_hosts.flush_notes(draw).await;
    let path = format!("/cargopolicies/v1/organizations/{org}/blocked-packages?ecosystem=GENERIC");
    let reply = owner.rest("GET", &path, None).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let items = reply.json()["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| json!([item["purl"], item["reason"], item["attemptCount"]])).collect()
}

async fn block_lists_withhold_versions(server: &TestServer) {
    let (org, client) = files_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    for path in ["tool/1.0/a", "tool/1.1/a", "bad/1.0/a"] {
        put(&client, path).await;
    }
    let list = json!([{ "purl": "pkg:generic/tool@1.1" }, { "purl": "pkg:generic/bad" }]);
    bind_own("GENERIC", &owner, &org, "ENFORCED", json!({ "name": "rules", "blockList": list })).await;
    let why = "Blocked by policy rules: pkg:generic/tool@1.1 is on its block list as pkg:generic/tool@1.1";
    let refused = client.send("GET tool/1.1/a", &[], &[]).await;
    assert_eq!(sentence(&refused, 403), why);
    assert_eq!(
        (refused.header("x-bowline-reason"), refused.header("x-bowline-policy")),
        (Some("BLOCK_LIST"), Some("rules"))
    );
    assert_eq!(sentence(&client.send("GET tool/1.1/", &[], &[]).await, 403), why);
    let listed = client.send("GET tool/", &[], &[]).await.json();
    let withheld = json!([{ "version": "1.1", "reason": "BLOCK_LIST", "message": why }]);
    assert_eq!((&listed["versions"][0]["version"], &listed["withheld"]), (&json!("1.0"), &withheld), "{listed}");
    assert_eq!(listed["versions"].as_array().unwrap().len(), 1);
    assert_eq!(status(&client, "tool/1.0/a").await, 200);
    for path in ["bad/", "bad/1.0/", "bad/1.0/a"] {
        let refused = sentence(&client.send(&format!("GET {path}"), &[], &[]).await, 403);
        assert!(refused.contains("pkg:generic/bad"), "{path}: {refused}");
    }
    let seen = blocked_files(&owner, server, &org).await;
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen.contains(&json!(["pkg:generic/tool@1.1", "BLOCK_LIST", 1])), "{seen:?}");
    let explain = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:generic/tool@1.1");
    let explained = owner.rest("GET", &explain, None).await.json();
    assert_eq!(
        (&explained["decision"]["reason"], &explained["decision"]["known"]),
        (&json!("BLOCK_LIST"), &json!(true))
    );
}

async fn freezes_hold_for_files_where_they_say_so(server: &TestServer) {
    let (org, client) = files_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    put(&client, "tool/1.0/a").await;
    let post = async |path: String, body: Value| {
        let reply = owner.rest("POST", &path, Some(body)).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    };
    let freeze = |includes_own: bool| {
        let (ecosystems, cutoff) = (json!(["GENERIC"]), json!("2001-01-01T00:00:00Z"));
        json!({ "ecosystems": ecosystems, "cutoffTime": cutoff, "justification": "why", "includesOwn": includes_own })
    };
    let path = || format!("/packagefreezes/v1/organizations/{org}:freeze");
    post(path(), freeze(false)).await;
    assert_eq!(status(&client, "tool/1.0/a").await, 200, "own packages are exempt");
    post(path(), freeze(true)).await;
    let refused = client.send("GET tool/1.0/a", &[], &[]).await;
    assert!(sentence(&refused, 403).starts_with("Blocked by a freeze at 2001-01-01"));
    assert_eq!(refused.header("x-bowline-reason"), Some("FREEZE"));
    let exception = json!({ "purl": "pkg:generic/tool@1.0", "justification": "why", "bypassFreeze": true });
    post(format!("/packageexceptions/v1/organizations/{org}:createException"), exception).await;
    assert_eq!(status(&client, "tool/1.0/a").await, 200);
}

async fn files_count_for_quotas(server: &TestServer) {
    let (org, client) = files_publisher(server, "acme").await;
    let operator = server.operator().await;
    let path = format!("/registrypolicies/v1/groups/{org}");
    let set = operator.rest("PATCH", &path, Some(json!({ "byteQuota": "1000" }))).await;
    assert_eq!(set.status, 200, "{}", set.text());
    assert_eq!(client.send("PUT tool/1.0/a", &[], &[1; 900]).await.status, 201);
    let refused = sentence(&client.send("PUT tool/1.0/b", &[], &[2; 900]).await, 429);
    assert!(refused.contains("bytes"), "{refused}");
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
    assert_eq!((stored_files(server), number(server, "SELECT file_count FROM package_repositories").await), (1, 1));
}

each_engine!(
    others_learn_nothing,
    a_group_shows_the_files_of_those_above_it,
    block_lists_withhold_versions,
    freezes_hold_for_files_where_they_say_so,
    files_count_for_quotas,
);
