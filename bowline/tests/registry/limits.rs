//! What policies forbid: tags that stay where they are, and bytes beyond what was allotted.

use bowline_testkit::{RestReply, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::*;

/// Sets what is given of the policy of a repository (`repos`) or a group (`groups`).
async fn policy(server: &TestServer, kind: &str, uid: &str, given: Value) {
    let path = format!("/registrypolicies/v1/{kind}/{uid}");
    let reply = server.operator().await.rest("PATCH", &path, Some(given)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

async fn delete(client: &Client, path: &str) -> RestReply {
    client.send(&format!("DELETE /v2/{path}"), &[], b"").await
}

async fn mount(client: &Client, to: &str, digest: &str) -> RestReply {
    client.send(&format!("POST /v2/{to}/blobs/uploads/?mount={digest}"), &[], b"").await
}

async fn immutable_tags_are_neither_moved_nor_deleted(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let first = client.image(&name, "v1", b"one").await;
    client.put(&name, "latest", &first).await;
    policy(server, "groups", &org, json!({ "immutableTagPatterns": ["v[0-9.]+"] })).await;
    client.blob(&name, b"two").await;
    let second = image(b"two");
    for (tag, status) in [("latest", 201), ("v2", 201), ("xv1", 201), ("v1", 403), ("v2", 201)] {
        let reply = client.put(&name, tag, &second).await;
        assert_eq!(reply.status, status, "{tag}: {}", reply.text());
    }
    let refused = client.put(&name, "v1", &second).await;
    assert_eq!(code(&refused, 403), "DENIED");
    assert!(refused.text().contains("the tag \\\"v1\\\" is immutable"), "{}", refused.text());
    assert_eq!(client.put(&name, "v1", &first).await.status, 201, "it is there already");
    assert_eq!(code(&delete(&client, &format!("{name}/manifests/v1")).await, 403), "DENIED");
    let manifest = format!("{name}/manifests/{}", digest_of(&first));
    assert_eq!(code(&delete(&client, &manifest).await, 403), "DENIED");
    assert_eq!(delete(&client, &format!("{name}/manifests/latest")).await.status, 202);
    let kept = client.get(&format!("/v2/{name}/manifests/v1")).await;
    assert_eq!(kept.json(), first);
    policy(server, "groups", &org, json!({ "immutableTagPatterns": [] })).await;
    assert_eq!(delete(&client, &manifest).await.status, 202);
}

fn index(member: &Value, media_type: &str) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [{ "mediaType": media_type, "digest": digest_of(member), "size": member.to_string().len() }],
    })
}

async fn what_an_immutable_tag_needs_is_not_deleted(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let image = client.image(&name, "amd64", b"one").await;
    let inner = index(&image, IMAGE);
    let outer = index(&inner, INDEX);
    assert_eq!(client.put(&name, &digest_of(&inner), &inner).await.status, 201);
    assert_eq!(client.put(&name, "1.0", &outer).await.status, 201);
    policy(server, "groups", &org, json!({ "immutableTagPatterns": ["v.*", "[0-9.]+"] })).await;
    for member in [&image, &inner] {
        let refused = delete(&client, &format!("{name}/manifests/{}", digest_of(member))).await;
        assert_eq!(code(&refused, 403), "DENIED");
        assert!(refused.text().contains("the immutable tag \\\"1.0\\\" is at an index"), "{}", refused.text());
    }
    assert_eq!(client.get(&format!("/v2/{name}/manifests/amd64")).await.status, 200);

    // Another repository, where nothing names it, may let it go.
    let other = format!("{org}/other");
    client.image(&other, "1.0-amd64", b"one").await;
    assert_eq!(delete(&client, &format!("{other}/manifests/{}", digest_of(&image))).await.status, 202);
    policy(server, "groups", &org, json!({ "immutableTagPatterns": ["v.*"] })).await;
    assert_eq!(delete(&client, &format!("{name}/manifests/{}", digest_of(&image))).await.status, 202);
}

async fn the_api_moves_no_immutable_tag_either(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let first = digest_of(&client.image(&name, "v1", b"one").await);
    let second = digest_of(&client.image(&name, "latest", b"two").await);
    let repo = repo_uid(server, "app").await;
    policy(server, "repos", &repo, json!({ "immutableTagPatterns": ["v1"] })).await;
    let operator = server.operator().await;
    let list = operator.rest("GET", &format!("/registry/v2/tags?uidp.childrenOf={repo}&name=v1"), None).await;
    let tag = list.json()["tags"][0]["uid"].as_str().unwrap().to_owned();
    let moved = json!({ "name": "v1", "digest": second });
    let renamed = json!({ "name": "v2", "digest": first });
    for (verb, path, body) in [
        ("POST", format!("/registry/v2/tags/{repo}"), Some(moved.clone())),
        ("DELETE", format!("/registry/v2/tags/{tag}"), None),
        ("PUT", format!("/registry/v1/tags/{tag}"), Some(moved)),
        ("PUT", format!("/registry/v1/tags/{tag}"), Some(renamed)),
    ] {
        let reply = operator.rest(verb, &path, body).await;
        assert_eq!(reply.status, 400, "{verb} {path}: {}", reply.text());
        assert_eq!(reply.json()["code"], 9, "{}", reply.text());
        if path.starts_with("/registry/v2/") {
            assert!(reply.text().contains("TAG_IMMUTABLE"), "{}", reply.text());
        }
    }
    let looks = json!({ "name": "v1", "digest": first, "deprecated": true });
    let reply = operator.rest("PUT", &format!("/registry/v1/tags/{tag}"), Some(looks)).await;
    assert_eq!(reply.status, 200, "how it looks may change: {}", reply.text());
    let reply = operator.rest("DELETE", &format!("/registry/v2/repos/{repo}"), None).await;
    assert_eq!(reply.status, 200, "it goes with its repository: {}", reply.text());
}

async fn no_more_is_stored_than_was_allotted(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (a, b) = (format!("{org}/team/a"), format!("{org}/team/b"));
    policy(server, "groups", &org, json!({ "byteQuota": "100" })).await;
    let large = client.blob(&a, &[1; 60]).await;
    assert_eq!(mount(&client, &b, &large).await.status, 201, "its bytes count once");
    let push = async |name: &str, content: &[u8]| {
        let digest = digest(content);
        client.send(&format!("POST /v2/{name}/blobs/uploads/?digest={digest}"), &[], content).await
    };
    let refused = push(&b, &[2; 41]).await;
    assert_eq!(code(&refused, 403), "DENIED");
    assert!(refused.text().contains(&format!("the blobs of {org} may have 100 bytes")), "{}", refused.text());
    assert_eq!(number(server, "SELECT count(*) FROM repo_blobs").await, 2);
    assert_eq!(push(&b, &[2; 40]).await.status, 201);
    assert_eq!(push(&b, &[2; 40]).await.status, 201, "it is there already");
    assert_eq!(delete(&client, &format!("{a}/blobs/{large}")).await.status, 202);
    assert_eq!(code(&push(&a, &[3; 1]).await, 403), "DENIED", "the other repository has it too");
    assert_eq!(delete(&client, &format!("{b}/blobs/{large}")).await.status, 202);
    assert_eq!(push(&a, &[3; 60]).await.status, 201);

    // Each place with a quota is asked, the repository's own too.
    policy(server, "groups", &org, json!({ "byteQuota": "0" })).await;
    let repo = repo_uid(server, "a").await;
    policy(server, "repos", &repo, json!({ "byteQuota": "70" })).await;
    assert_eq!(code(&mount(&client, &a, &digest(&[2; 40])).await, 403), "DENIED");
    assert_eq!(push(&b, &[4; 500]).await.status, 201);
    assert_eq!(push(&a, &[5; 10]).await.status, 201);
}

async fn which_bytes_a_repository_shows_is_audited(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let came = "SELECT count(*) FROM audit WHERE kind = 'registry.chainguard.dev/Blob' AND before_image IS NULL
                AND after_type = 'bowline.registry.v1.StoredBlob'
                AND method = 'bowline.registry.v1.Content.PushBlob'";
    let digest = client.blob(&format!("{org}/a"), b"a blob").await;
    assert_eq!(number(server, came).await, 1);
    client.blob(&format!("{org}/a"), b"a blob").await;
    assert_eq!(number(server, came).await, 1, "it was there");
    for _ in 0..2 {
        assert_eq!(mount(&client, &format!("{org}/b"), &digest).await.status, 201);
    }
    assert_eq!(number(server, came).await, 2);
}

async fn what_no_quota_has_room_for_is_not_even_kept_for_a_while(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    policy(server, "groups", &org, json!({ "byteQuota": "100" })).await;
    // More than the quota in one upload: refused while it arrives.
    let at = client.begin(&name).await;
    assert_eq!(client.send(&format!("PATCH {at}"), &[], &[1; 90]).await.status, 202);
    let refused = client.send(&format!("PATCH {at}"), &[], &[1; 11]).await;
    assert_eq!(code(&refused, 403), "DENIED");
    assert!(refused.text().contains(&format!("the blobs of {org} may have 100 bytes")), "{}", refused.text());
    assert_eq!(client.send(&format!("DELETE {at}"), &[], b"").await.status, 204);
    // More than is left: refused while it arrives, too.
    client.blob(&name, &[2; 60]).await;
    let at = client.begin(&name).await;
    let digest = digest(&[3; 50]);
    let refused = client.send(&format!("PUT {at}?digest={digest}"), &[], &[3; 50]).await;
    assert_eq!(code(&refused, 403), "DENIED");
    let content = &server.server().parts().content;
    let mut locations = 0;
    for shard in content.shards() {
        locations += content.locations(shard).await.unwrap().len();
    }
    assert_eq!(locations, 1, "only what is kept is on the disk");
}

async fn many_tags_in_one_push_are_checked_against_all_patterns_in_force(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let mut parent = org.clone();
    let mut name = org.clone();
    for level in 0..3 {
        let patterns: Vec<String> = (0..20).map(|n| format!("fixed-{level}-{n}-[a-z]{{1,9}}")).collect();
        policy(server, "groups", &parent, json!({ "immutableTagPatterns": patterns })).await;
        parent = server.group(&parent, &format!("level-{level}")).await;
        name = format!("{name}/level-{level}");
    }
    let repo = server.repo(&parent, "app").await;
    let name = format!("{name}/app");
    assert!(!repo.is_empty());
    client.blob(&name, CONFIG_BYTES).await;
    for layer in [&b"one"[..], b"two"] {
        client.blob(&name, layer).await;
        let manifest = image(layer);
        let tags: Vec<String> = (0..19).map(|n| format!("tag=moves-{n}")).collect();
        let reply = client.put(&name, &format!("{}?{}", digest_of(&manifest), tags.join("&")), &manifest).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
    }
    let (first, second) = (image(b"one"), image(b"two"));
    let fixed = format!("{}?tag=moves-1&tag=fixed-2-19-x", digest_of(&first));
    assert_eq!(client.put(&name, &fixed, &first).await.status, 201, "the tag is new");
    let moved = format!("{}?tag=moves-1&tag=fixed-2-19-x", digest_of(&second));
    assert_eq!(code(&client.put(&name, &moved, &second).await, 403), "DENIED");
    let tag = client.get(&format!("/v2/{name}/manifests/moves-1")).await;
    assert_eq!(tag.json(), first, "nothing of the refused push stays");
}

each_engine!(
    multi_thread:
    immutable_tags_are_neither_moved_nor_deleted,
    what_an_immutable_tag_needs_is_not_deleted,
    the_api_moves_no_immutable_tag_either,
    no_more_is_stored_than_was_allotted,
    which_bytes_a_repository_shows_is_audited,
    what_no_quota_has_room_for_is_not_even_kept_for_a_while,
    many_tags_in_one_push_are_checked_against_all_patterns_in_force
);
