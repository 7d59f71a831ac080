//! Taking things out of a repository.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::support::*;

async fn tags_manifests_and_blobs_go_one_by_one(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let manifest = client.image(&name, "1", b"a layer").await;
    client.put(&name, "2", &manifest).await;
    client.put(&name, "3", &manifest).await;
    let of = digest_of(&manifest);
    let delete = async |path: &str| client.send(&format!("DELETE /v2/{name}/{path}"), &[], b"").await;
    assert_eq!(delete("manifests/1").await.status, 202);
    assert_eq!(code(&delete("manifests/1").await, 404), "MANIFEST_UNKNOWN");
    assert_eq!(client.get(&format!("/v2/{name}/manifests/{of}")).await.status, 200);
    let blob = format!("blobs/{}", digest(b"a layer"));
    assert_eq!(code(&delete(&blob).await, 405), "UNSUPPORTED", "a manifest names it");
    assert_eq!(delete(&format!("manifests/{of}")).await.status, 202);
    assert_eq!(code(&client.get(&format!("/v2/{name}/manifests/2")).await, 404), "MANIFEST_UNKNOWN");
    assert_eq!(number(server, "SELECT count(*) FROM tags").await, 0);
    assert_eq!(delete(&blob).await.status, 202);
    assert_eq!(code(&delete(&blob).await, 404), "BLOB_UNKNOWN");
    assert_eq!(code(&client.get(&format!("/v2/{name}/{blob}")).await, 404), "BLOB_UNKNOWN");
    let deleted = "SELECT count(*) FROM audit WHERE after_image IS NULL AND before_image IS NOT NULL";
    assert_eq!(number(server, deleted).await, 5, "three tags, a manifest, a blob");
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.api.platform.registry.tag.deleted.v1'";
    assert_eq!(number(server, told).await, 1);
}

async fn readers_delete_nothing(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let of = digest_of(&client.image(&name, "1", b"a layer").await);
    let reader = crate::support::client(server, "registry.pull", &org).await;
    for path in
        ["manifests/1", "manifests/absent", &format!("manifests/{of}"), &format!("blobs/{}", digest(b"a layer"))]
    {
        let reply = reader.send(&format!("DELETE /v2/{name}/{path}"), &[], b"").await;
        assert_eq!(code(&reply, 403), "DENIED", "{path}");
    }
    assert_eq!(number(server, "SELECT count(*) FROM tags").await, 1);
}

async fn what_scanners_found_goes_with_the_manifest(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (name, other) = (format!("{org}/app"), format!("{org}/other"));
    let of = digest_of(&client.image(&name, "1", b"a layer").await);
    client.image(&other, "1", b"a layer").await;
    let operator = server.operator().await;
    let (app, kept) = (repo_uid(server, "app").await, repo_uid(server, "other").await);
    for repo in [&app, &kept] {
        let report = STANDARD.encode(r#"{"matches":[],"descriptor":{}}"#);
        let body = json!({ "digest": of, "scanner": "SCANNER_NAME_GRYPE", "report": report });
        let reply = operator.rest("POST", &format!("/scans/v1/repos/{repo}/reports"), Some(body)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(client.send(&format!("DELETE /v2/{name}/manifests/{of}"), &[], b"").await.status, 202);
    assert_eq!(number(server, "SELECT count(*) FROM scan_reports").await, 1);
    let list = operator.rest("GET", &format!("/registry/v1/vuln_reports?digest={of}"), None).await;
    assert_eq!(list.json()["items"].as_array().map(Vec::len), Some(1), "{}", list.text());

    // One that was left behind is no one's.
    execute(server, "DELETE FROM repo_manifests").await;
    let list = operator.rest("GET", &format!("/registry/v1/vuln_reports?digest={of}"), None).await;
    assert_eq!(list.json()["items"].as_array().map_or(0, Vec::len), 0, "{}", list.text());
    let raw = operator.rest("GET", &format!("/registry/v1/vuln_reports/raw?digest={of}"), None).await;
    assert_eq!(raw.status, 404, "{}", raw.text());
}

each_engine!(
    multi_thread:
    tags_manifests_and_blobs_go_one_by_one,
    readers_delete_nothing,
    what_scanners_found_goes_with_the_manifest
);
