//! Warnings, tags and versions that are taken back, as npm changes them: it reads a document, and sends it back.

use bowline_core::Clock as _;
use bowline_server::{Plan, collect};
use bowline_testkit::{TestServer, each_engine, npm};
use serde_json::{Value, json};

use crate::support::*;

async fn a_warning_comes_and_goes(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    client.npm_publish("foo", "1.0.0", "latest").await;
    client.npm_publish("foo", "1.1.0", "latest").await;
    let mut own = client.document("foo?write=true").await;
    own["versions"]["1.0.0"]["deprecated"] = json!("It lost data: use 1.1.0.");
    let changed = client.put("foo", &own).await;
    assert_eq!(changed.status, 201, "{}", changed.text());
    let document = client.document("foo").await;
    assert_eq!(document["versions"]["1.0.0"]["deprecated"], "It lost data: use 1.1.0.");
    assert_eq!(document["versions"]["1.1.0"].get("deprecated"), None);

    // Someone who read the document before would lift it again.
    let stale = client.put("foo", &own).await;
    assert_eq!(sentence(&stale, 409), "foo has changed meanwhile: try again");
    let mut own = client.document("foo?write=true").await;
    own["versions"]["1.0.0"]["deprecated"] = json!("");
    assert_eq!(client.put("foo", &own).await.status, 201);
    assert_eq!(client.document("foo").await["versions"]["1.0.0"].get("deprecated"), None);
    let own = client.document("foo?write=true").await;
    assert_eq!(client.put("foo", &own).await.status, 201, "the same once more");
    let sql =
        "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.javascript.versions.deprecated.v1'";
    assert_eq!(number(server, sql).await, 2);

    let unknown = json!({ "name": "foo", "versions": { "9.0.0": { "deprecated": "x" } } });
    assert_eq!(client.put("foo", &unknown).await.status, 404);
    let owners = json!({ "_id": "foo", "maintainers": [] });
    assert!(sentence(&client.put("foo", &owners).await, 400).contains("roles"));
    let long = json!({ "versions": { "1.0.0": { "deprecated": "x".repeat(2000) } } });
    assert_eq!(client.put("foo", &long).await.status, 400);
}

async fn tags_stand_for_versions(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    client.npm_publish("foo", "1.0.0", "latest").await;
    client.npm_publish("foo", "2.0.0", "latest").await;
    let tag = async |verb: &str, tag: &str, version: &str| {
        let body = if version.is_empty() { Vec::new() } else { json!(version).to_string().into_bytes() };
        client.send(&format!("{verb} -/package/foo/dist-tags/{tag}"), &[], &body).await
    };
    for name in ["old", "latest"] {
        let set = tag("PUT", name, "1.0.0").await;
        assert_eq!(set.status, 201, "{}", set.text());
    }
    assert_eq!(tag("PUT", "old", "1.0.0").await.status, 201, "the same once more");
    assert_eq!(client.document("foo").await["dist-tags"], json!({ "latest": "1.0.0", "old": "1.0.0" }));
    assert_eq!(tag("DELETE", "old", "").await.status, 200);
    assert_eq!(tag("DELETE", "old", "").await.status, 404);
    assert!(sentence(&tag("DELETE", "latest", "").await, 409).contains("let it stand for another version"));
    assert_eq!(tag("PUT", "old", "9.0.0").await.status, 404);
    for wrong in ["1.x", "v2", "x", "a%20b", &"a".repeat(200)] {
        assert_eq!(tag("PUT", wrong, "1.0.0").await.status, 400, "{wrong}");
    }
    assert_eq!(client.send("PUT -/package/foo/dist-tags/old", &[], b"1.0.0").await.status, 400);
    let set = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.javascript.tag.set.v1'";
    assert_eq!(number(server, set).await, 2);
}

async fn a_version_is_taken_back(server: &TestServer) {
    let (org, client) = npm_publisher(server, "acme").await;
    let web = server.group(&org, "web").await;
    let client = client.at(&web.replace('/', ":"));
    let bytes = client.npm_publish("foo", "1.0.0", "latest").await;
    client.npm_publish("foo", "1.1.0-rc.1", "next").await;
    client.npm_publish("foo", "2.0.0", "latest").await;
    let operator = server.operator().await;
    let (mut own, whole) = (client.document("foo?write=true").await, client.document("foo").await);
    let revision = own["_rev"].as_str().unwrap().to_owned();
    for gone in ["2.0.0", "1.1.0-rc.1"] {
        own["versions"].as_object_mut().unwrap().remove(gone);
    }
    let stale = client.put("foo/-rev/1-0", &own).await;
    assert_eq!(sentence(&stale, 409), "foo has changed meanwhile: try again");
    assert!(
        sentence(&client.put(&format!("foo/-rev/{revision}"), &json!({ "name": "foo" })).await, 400)
            .contains("no versions")
    );
    assert_eq!(client.document("foo").await["versions"].as_object().map(serde_json::Map::len), Some(3));
    let kept = client.send(&format!("DELETE foo/-/foo-2.0.0.tgz/-rev/{revision}"), &[], &[]).await;
    assert!(sentence(&kept, 409).contains("npm unpublish"), "{}", kept.text());

    let taken = client.put(&format!("foo/-rev/{revision}"), &own).await;
    assert_eq!(taken.status, 201, "{}", taken.text());
    let now = client.document("foo?write=true").await;
    let next = now["_rev"].as_str().unwrap();
    assert_ne!(next, revision);
    let gone = client.send(&format!("DELETE foo/-/foo-2.0.0.tgz/-rev/{next}"), &[], &[]).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    let document = client.document("foo").await;
    assert_eq!(
        (&document["dist-tags"], document["versions"].as_object().map(serde_json::Map::len)),
        (&json!({ "latest": "1.0.0" }), Some(1))
    );
    assert_eq!(client.npm_file(server, &whole, "2.0.0").await.status, 404);
    let again = client
        .put("foo", &npm::document("foo", "2.0.0", "latest", &npm::package(&npm::manifest("foo", "2.0.0"))))
        .await;
    assert!(sentence(&again, 409).contains("was deleted, and its name stays used"), "{}", again.text());
    assert_eq!(client.npm_file(server, &document, "1.0.0").await.body, bytes);
    let parts = server.server().parts();
    let plan = Plan { until: server.clock().now() + 1, is_dry_run: false };
    let collected = collect(&parts.storage.db, &parts.content, plan).await.unwrap();
    assert_eq!((collected.links, collected.blobs), (0, 2));

    let all = client.send(&format!("DELETE foo/-rev/{next}"), &[], &[]).await;
    assert_eq!(all.status, 200, "{}", all.text());
    assert_eq!(client.send("GET foo", &[], &[]).await.status, 404);
    for table in ["hosted_versions", "hosted_manifests", "hosted_tags", "repo_blobs"] {
        let sql: &'static str = format!("SELECT count(*) FROM {table}").leak();
        assert_eq!(number(server, sql).await, 0, "{table}");
    }
    let gone = operator.rest("DELETE", &format!("/iam/v2/groups/{web}"), None).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(number(server, "SELECT count(*) FROM hosted_files").await, 0);
}

async fn a_client_that_read_less_takes_nothing_back(server: &TestServer) {
    let (org, client) = npm_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    client.npm_publish("foo", "1.0.0", "latest").await;
    client.npm_publish("foo", "2.0.0", "latest").await;
    bind_to(
        "JAVASCRIPT",
        &owner,
        &org,
        "ENFORCED",
        json!({ "name": "r", "blockList": [{ "purl": "pkg:npm/foo@1.0.0" }] }),
    )
    .await;
    let versions = |document: &Value| document["versions"].as_object().map(serde_json::Map::len);
    assert_eq!(versions(&client.document("foo").await), Some(1));
    // Who changes a package sees what a policy withholds from those who install it.
    assert_eq!(versions(&client.document("foo?write=true").await), Some(2));
}

each_engine!(
    a_warning_comes_and_goes,
    tags_stand_for_versions,
    a_version_is_taken_back,
    a_client_that_read_less_takes_nothing_back,
);
