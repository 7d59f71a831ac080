//! Pushes and pulls, whole and in chunks.

use crate::support::*;
use bowline_testkit::{TestServer, each_engine};

async fn an_image_goes_in_and_comes_out(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/tools/app");
    let manifest = client.image(&name, "latest", b"a layer").await;
    let digest = digest_of(&manifest);
    for reference in ["latest", &digest] {
        let reply = client.get(&format!("/v2/{name}/manifests/{reference}")).await;
        assert_eq!((reply.status, reply.json()), (200, manifest.clone()), "{}", reply.text());
        assert_eq!(header(&reply, "docker-content-digest"), digest);
        assert_eq!(header(&reply, "content-type"), IMAGE);
        assert_eq!(header(&reply, "etag"), format!("\"{digest}\""));
    }
    let blob = client.get(&format!("/v2/{name}/blobs/{}", crate::support::digest(b"a layer"))).await;
    assert_eq!((blob.status, blob.body.as_slice()), (200, &b"a layer"[..]));
    assert_eq!(number(server, "SELECT count(*) FROM repos WHERE name = 'app'").await, 1);
    assert_eq!(number(server, "SELECT count(*) FROM groups WHERE name = 'tools'").await, 1);
}

async fn a_push_has_one_audit_entry_and_one_event_for_each_resource(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let manifest = client.image(&name, "latest", b"a layer").await;
    let audit = "SELECT count(*) FROM audit WHERE method = 'bowline.registry.v1.Content.PushManifest'";
    assert_eq!(number(server, audit).await, 2, "the manifest and the tag");
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.registry.push.v1' AND customer";
    assert_eq!(number(server, told).await, 1);
    let created =
        "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.api.platform.registry.repo.created.v1'";
    assert_eq!(number(server, created).await, 1);
    client.put(&name, "latest", &manifest).await;
    assert_eq!(number(server, audit).await, 2, "nothing changed");
    assert_eq!(number(server, told).await, 2, "a push all the same");
    let platform =
        "SELECT count(*) FROM manifest_references WHERE kind = 1 AND os = 'linux' AND architecture = 'arm64'";
    assert_eq!(number(server, platform).await, 1);
}

async fn names_lead_to_the_same_place_as_uidps(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let manifest = client.image(&format!("{org}/team/app"), "1", b"a layer").await;
    let repo = repo_uid(server, "app").await;
    let group = repo.rsplit_once('/').unwrap().0;
    for name in [repo.clone(), format!("{group}/app"), format!("{org}/team/{}", repo.rsplit('/').next().unwrap())] {
        assert_eq!(client.get(&format!("/v2/{name}/manifests/1")).await.json(), manifest, "{name}");
    }
    // The name of an organization counts once it is verified.
    assert_eq!(code(&client.get("/v2/acme/team/app/manifests/1").await, 403), "DENIED");
    let verified = serde_json::json!({ "name": "acme", "verified": true, "kind": 1 });
    let reply = server.operator().await.rest("PATCH", &format!("/iam/v2/groups/{org}"), Some(verified)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(client.get("/v2/acme/team/app/manifests/1").await.json(), manifest);
}

async fn names_that_nothing_may_have_create_nothing(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let deep = "/abc".repeat(40);
    for rest in ["/0123456789abcdef/app", "/ab/app", &format!("{deep}/app"), "/team/0123456789abcdef"] {
        let reply = client.send(&format!("POST /v2/{org}{rest}/blobs/uploads/"), &[], &[]).await;
        assert_eq!(code(&reply, 400), "NAME_INVALID", "{rest}");
    }
    for path in [format!("{org}/../x"), format!("{org}/%2e%2e/x"), format!("{org}/a%2f..%2fb"), format!("{org}/A")] {
        let reply = client.send(&format!("POST /v2/{path}/blobs/uploads/"), &[], &[]).await;
        assert_eq!(code(&reply, 400), "NAME_INVALID", "{path}");
    }
    assert_eq!(number(server, "SELECT count(*) FROM repos").await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM groups").await, 1);
}

/// Clients send the layers of an image at the same time, and each of them may be the first to come.
async fn many_first_pushes_make_one_repository(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let pushes: Vec<_> = (0..8_u8)
        .map(|n| {
            let (client, name) = (client.clone(), format!("{org}/team/app"));
            tokio::spawn(async move { client.blob(&name, &[n]).await })
        })
        .collect();
    for push in pushes {
        push.await.unwrap();
    }
    assert_eq!(number(server, "SELECT count(*) FROM repos").await, 1);
    assert_eq!(number(server, "SELECT count(*) FROM repo_blobs").await, 8);
}

async fn a_push_by_digest_gives_several_tags(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let manifest = client.image(&name, "first", b"a layer").await;
    let digest = digest_of(&manifest);
    let reply = client.put(&name, &format!("{digest}?tag=a&tag=b.1"), &manifest).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let told: Vec<&str> = reply.headers.get_all("oci-tag").iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(told, ["a", "b.1"]);
    let tags = client.get(&format!("/v2/{name}/tags/list")).await;
    assert_eq!(tags.json()["tags"], serde_json::json!(["a", "b.1", "first"]));
    assert_eq!(code(&client.put(&name, &format!("{digest}?tag=-"), &manifest).await, 400), "MANIFEST_INVALID");
    assert_eq!(code(&client.put(&name, "x?tag=y", &manifest).await, 400), "MANIFEST_INVALID");
    let many: Vec<String> = (0..21).map(|n| format!("tag=t{n}")).collect();
    let reply = client.put(&name, &format!("{digest}?{}", many.join("&")), &manifest).await;
    assert_eq!(code(&reply, 414), "MANIFEST_INVALID");
    assert_eq!(client.get(&format!("/v2/{name}/tags/list")).await.json(), tags.json());
}

async fn nothing_refers_to_what_is_not_there(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let reply = client.get(&format!("/v2/{org}/absent/referrers/{}", digest(b"x"))).await;
    assert_eq!((reply.status, &reply.json()["manifests"]), (200, &serde_json::json!([])), "{}", reply.text());
}

each_engine!(
    multi_thread:
    an_image_goes_in_and_comes_out,
    a_push_has_one_audit_entry_and_one_event_for_each_resource,
    names_lead_to_the_same_place_as_uidps,
    names_that_nothing_may_have_create_nothing,
    many_first_pushes_make_one_repository,
    a_push_by_digest_gives_several_tags,
    nothing_refers_to_what_is_not_there
);
