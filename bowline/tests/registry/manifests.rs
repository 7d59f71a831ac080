//! What is taken for a manifest, and what is not.

use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::support::*;

async fn a_manifest_names_only_what_its_repository_has(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    client.image(&format!("{org}/app"), "1", b"a layer").await;
    // The blobs are in the store, and not in this repository.
    let name = format!("{org}/other");
    let reply = client.put(&name, "1", &image(b"a layer")).await;
    assert_eq!(code(&reply, 400), "MANIFEST_BLOB_UNKNOWN");
    assert_eq!(reply.json()["errors"][0]["detail"]["digests"].as_array().unwrap().len(), 2);
    assert_eq!(number(server, "SELECT count(*) FROM repos").await, 1, "nothing is left of it");
    client.blob(&name, CONFIG_BYTES).await;
    let mut foreign = image(b"elsewhere");
    foreign["layers"][0]["mediaType"] = json!("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip");
    foreign["layers"][0]["urls"] = json!(["https://elsewhere.example/x"]);
    assert_eq!(client.put(&name, "foreign", &foreign).await.status, 201);
    client.blob(&name, b"a layer").await;
    let mut wrong = image(b"a layer");
    wrong["layers"][0]["size"] = json!(3);
    assert_eq!(code(&client.put(&name, "1", &wrong).await, 400), "SIZE_INVALID");
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor(IMAGE, b"absent")] });
    assert_eq!(client.put(&name, "index", &index).await.status, 201, "children may be absent");
}

async fn what_is_no_manifest_is_refused(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    client.image(&name, "1", b"a layer").await;
    let path = format!("PUT /v2/{name}/manifests/x");
    let kind = [("content-type", IMAGE)];
    let large = vec![b' '; (4 << 20) + 1];
    assert_eq!(code(&client.send(&path, &kind, &large).await, 413), "SIZE_INVALID");
    let deep = format!("{{\"schemaVersion\":2,\"a\":{}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
    for body in [b"".as_slice(), b"{}", b"null", b"[]", b"\xff", deep.as_bytes()] {
        assert_eq!(code(&client.send(&path, &kind, body).await, 400), "MANIFEST_INVALID");
    }
    let manifest = image(b"a layer").to_string();
    let html = [("content-type", "text/html")];
    assert_eq!(code(&client.send(&path, &html, manifest.as_bytes()).await, 400), "MANIFEST_INVALID");
    let by_digest = format!("PUT /v2/{name}/manifests/{}", digest(b"other"));
    assert_eq!(code(&client.send(&by_digest, &kind, manifest.as_bytes()).await, 400), "DIGEST_INVALID");
    let path = format!("PUT /v2/{name}/manifests/.x");
    assert_eq!(code(&client.send(&path, &kind, manifest.as_bytes()).await, 400), "MANIFEST_INVALID");
    assert_eq!(number(server, "SELECT count(*) FROM manifests").await, 1);
}

async fn referrers_are_found_by_subject_and_type(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let subject = client.image(&name, "1", b"a layer").await;
    let of = digest_of(&subject);
    for (kind, note) in [("application/vnd.a", "first"), ("application/vnd.b", "second")] {
        let mut referrer = image(b"a layer");
        referrer["artifactType"] = json!(kind);
        referrer["annotations"] = json!({ "note": note });
        referrer["subject"] = json!({ "mediaType": IMAGE, "digest": of, "size": subject.to_string().len() });
        let reply = client.put(&name, &digest_of(&referrer), &referrer).await;
        assert_eq!((reply.status, header(&reply, "oci-subject")), (201, of.clone()), "{}", reply.text());
    }
    let reply = client.get(&format!("/v2/{name}/referrers/{of}")).await;
    assert_eq!((reply.status, header(&reply, "content-type").as_str()), (200, INDEX));
    assert_eq!(reply.json()["manifests"].as_array().unwrap().len(), 2);
    assert!(!reply.headers.contains_key("oci-filters-applied"));
    let reply = client.get(&format!("/v2/{name}/referrers/{of}?artifactType=application/vnd.b")).await;
    assert_eq!(header(&reply, "oci-filters-applied"), "artifactType");
    let found = reply.json()["manifests"].clone();
    assert_eq!((found.as_array().unwrap().len(), &found[0]["annotations"]), (1, &json!({ "note": "second" })));
    assert_eq!(found[0]["artifactType"], "application/vnd.b");
    // An absent subject has referrers too, and one without any has an empty list.
    let absent = digest(b"absent");
    let mut early = image(b"a layer");
    early["subject"] = descriptor(IMAGE, b"absent");
    assert_eq!(client.put(&name, &digest_of(&early), &early).await.status, 201);
    let reply = client.get(&format!("/v2/{name}/referrers/{absent}")).await.json();
    assert_eq!(reply["manifests"][0]["artifactType"], CONFIG, "the config says what it is");
    let reply = client.get(&format!("/v2/{name}/referrers/{}", digest(b"none"))).await;
    assert_eq!((reply.status, reply.json()["manifests"].clone()), (200, json!([])));
    assert_eq!(code(&client.get(&format!("/v2/{name}/referrers/sha256:x")).await, 400), "DIGEST_INVALID");
}

each_engine!(
    multi_thread:
    a_manifest_names_only_what_its_repository_has,
    what_is_no_manifest_is_refused,
    referrers_are_found_by_subject_and_type
);
