//! Documents and tarballs that are not what they say: each is refused with what is wrong, and leaves nothing behind.

use bowline_testkit::tarball::tarball;
use bowline_testkit::{TestServer, each_engine, npm};
use serde_json::{Value, json};

use crate::support::*;

/// Refuses a body; nothing of it stays.
async fn refused(server: &TestServer, client: &Client, what: &str, body: &[u8], status: u16, says: &str) {
    let reply = client.send("PUT foo", &[], body).await;
    let sentence = sentence(&reply, status);
    assert!(sentence.contains(says), "{what}: {sentence}");
    let left = (number(server, "SELECT count(*) FROM uploads").await, stored_files(server));
    assert_eq!(left, (0, 0), "{what}");
    assert_eq!(number(server, "SELECT count(*) FROM hosted_files").await, 0, "{what}");
}

async fn documents_must_agree_with_their_file(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    let bytes = npm::package(&npm::manifest("foo", "1.0.0"));
    let good = npm::document("foo", "1.0.0", "latest", &bytes);
    let changed = |change: fn(&mut Value)| {
        let mut document = good.clone();
        change(&mut document);
        document
    };
    let renamed = |name: &str, version: &str| {
        npm::document("foo", "1.0.0", "latest", &npm::package(&npm::manifest(name, version)))
    };
    for (what, document, says) in [
        ("another name", changed(|document| document["name"] = json!("bar")), "the document is of bar"),
        ("another name inside", renamed("bar", "1.0.0"), "is of bar@1.0.0"),
        ("another version inside", renamed("foo", "1.0.1"), "is of foo@1.0.1"),
        (
            "another length",
            changed(|d| d["_attachments"]["foo-1.0.0.tgz"]["length"] = json!(7)),
            "length of the file differs",
        ),
        ("another digest", changed(|d| d["versions"]["1.0.0"]["dist"]["shasum"] = json!("ab")), "another digest"),
        (
            "another integrity",
            changed(|d| d["versions"]["1.0.0"]["dist"]["integrity"] = json!("sha512-YWI=")),
            "another digest",
        ),
        ("two versions", changed(|d| d["versions"]["2.0.0"] = json!({})), "the one version"),
        ("no tag of it", changed(|d| d["dist-tags"] = json!({ "latest": "2.0.0" })), "dist-tags must have one tag"),
        (
            "two tags",
            changed(|d| d["dist-tags"] = json!({ "latest": "1.0.0", "next": "1.0.0" })),
            "dist-tags must have one tag",
        ),
        ("a tag that is a range", npm::document("foo", "1.0.0", "1.x", &bytes), "tag"),
        ("no base64", changed(|d| d["_attachments"]["foo-1.0.0.tgz"]["data"] = json!("!!!!")), "is not base64"),
        (
            "a statement",
            changed(|d| d["_attachments"]["foo-1.0.0.sigstore"] = json!({ "data": "{}" })),
            "must have verificationMaterial as an object",
        ),
        (
            "two files",
            changed(|d| d["_attachments"]["bar-1.0.0.tgz"] = d["_attachments"]["foo-1.0.0.tgz"].clone()),
            "two files",
        ),
        ("no file", changed(|d| d["_attachments"] = json!({ "foo.zip": { "data": "" } })), "is no package"),
        ("no versions", json!({ "name": "foo" }), "no versions"),
        ("versions of another kind", json!({ "versions": [] }), "is no document"),
    ] {
        refused(server, &client, what, document.to_string().as_bytes(), 400, says).await;
    }
    let published = client.put("foo", &good).await;
    assert_eq!(published.status, 201, "{}", published.text());
}

async fn bodies_are_whole_and_bounded(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    let good = npm::document("foo", "1.0.0", "latest", &npm::package(&npm::manifest("foo", "1.0.0")));
    let text = good.to_string();
    refused(server, &client, "a cut body", &text.as_bytes()[..text.len() - 30], 400, "cut off").await;
    for body in [&b""[..], b"[]", b" [1]", b"\"x\""] {
        refused(server, &client, "nothing", body, 400, "must be a JSON object").await;
    }
    let long = json!({ "readme": "x".repeat(17 << 20) }).to_string();
    refused(server, &client, "a long readme", long.as_bytes(), 413, "more than 16777216 bytes").await;

    let many = |count: usize| {
        let versions: Vec<String> = (0..count).map(|n| format!("\"1.0.{n}\":{{}}")).collect();
        format!("{{\"versions\":{{{}}}}}", versions.join(","))
    };
    refused(server, &client, "many versions", many(10_001).as_bytes(), 400, "more than 10000 members").await;
    refused(
        server,
        &client,
        "an odd warning",
        b"{\"versions\":{\"1.0.0\":{\"deprecated\":[[0]]}}}",
        404,
        "does not exist",
    )
    .await;
}

async fn tarballs_must_be_packages(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    let manifest = npm::manifest("foo", "1.0.0").to_string().into_bytes();
    let of = |files: &[(&str, &[u8])]| {
        tarball(&files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect::<Vec<_>>())
    };
    let bomb = vec![b'x'; 64 << 20];
    for (what, bytes, says) in [
        ("no archive", b"nothing".to_vec(), "the file"),
        ("no manifest", of(&[("package/index.js", b"")]), "has no package.json"),
        (
            "two manifests",
            of(&[("package/package.json", &manifest), ("a/package.json", &manifest)]),
            "has metadata twice",
        ),
        ("a member outside", of(&[("package/package.json", &manifest), ("../evil.js", b"")]), "leaves its directory"),
        ("a manifest that does not parse", of(&[("package/package.json", b"{")]), "does not parse"),
        ("a bomb", of(&[("package/package.json", &manifest), ("package/a", &bomb)]), "the file"),
    ] {
        let document = npm::document("foo", "1.0.0", "latest", &bytes).to_string();
        refused(server, &client, what, document.as_bytes(), 400, says).await;
    }
    for (name, version) in [
        ("Foo", "1.0.0"),
        (".foo", "1.0.0"),
        ("node_modules", "1.0.0"),
        ("fo(o", "1.0.0"),
        ("foo", "v1.0.0"),
        ("foo", "1.0"),
        ("foo", "01.0.0"),
    ] {
        let bytes = npm::package(&npm::manifest(name, version));
        let reply = client.put(name, &npm::document(name, version, "latest", &bytes)).await;
        assert_eq!(reply.status, 400, "{name}@{version}: {}", reply.text());
    }
    assert_eq!(stored_files(server), 0);
}

each_engine!(documents_must_agree_with_their_file, bodies_are_whole_and_bounded, tarballs_must_be_packages);
