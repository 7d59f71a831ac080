//! A version is published once by npm's protocol, and read by installers in both forms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_content::{Algorithm, Digest};
use bowline_core::hex;
use bowline_testkit::{TestServer, each_engine, npm};
use serde_json::json;

use crate::support::*;

const SHORT: &str = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*";

async fn a_published_version_is_in_its_document_and_can_be_downloaded(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    let mut manifest = npm::manifest("@acme/foo", "1.0.0");
    manifest["dependencies"] = json!({ "bar": "^1.0.0" });
    manifest["bin"] = json!("index.js");
    manifest["scripts"] = json!({ "postinstall": "x" });
    let bytes = npm::package(&manifest);
    let document = npm::document("@acme/foo", "1.0.0", "latest", &bytes);
    let published = client.put("@acme%2ffoo", &document).await;
    assert_eq!((published.status, published.json()), (201, json!({ "ok": true })));

    let whole = client.document("@acme%2Ffoo").await;
    let version = &whole["versions"]["1.0.0"];
    assert_eq!((&whole["_id"], &whole["dist-tags"]), (&json!("@acme/foo"), &json!({ "latest": "1.0.0" })));
    assert_eq!((&version["_id"], &version["license"]), (&json!("@acme/foo@1.0.0"), &json!("MIT")));
    assert_eq!((&version["bin"], &version["hasInstallScript"]), (&json!({ "foo": "index.js" }), &json!(true)));
    assert_eq!(version["dependencies"], json!({ "bar": "^1.0.0" }));
    let sha512 = Digest::of(Algorithm::Sha512, &bytes);
    let integrity = version["dist"]["integrity"].as_str().unwrap().strip_prefix("sha512-").unwrap();
    assert_eq!(hex(&STANDARD.decode(integrity).unwrap()), sha512.hex());
    assert_eq!(version["dist"]["fileCount"], 2);
    assert!(whole["time"]["1.0.0"].is_string() && whole["time"]["modified"].is_string(), "{whole}");

    let address = format!("{}/libraries/javascript/@acme/foo/-/foo-1.0.0.tgz", server.base());
    assert_eq!(version["dist"]["tarball"], address);
    let reply = client.npm_file(server, &whole, "1.0.0").await;
    assert_eq!((reply.status, &reply.body), (200, &bytes));
    let tag = reply.header("etag").unwrap().to_owned();
    let same = client.send("GET @acme/foo/-/foo-1.0.0.tgz", &[("if-none-match", &tag)], &[]).await;
    assert_eq!(same.status, 304);
    let part = client.send("GET @acme/foo/-/foo-1.0.0.tgz", &[("range", "bytes=0-1")], &[]).await;
    assert_eq!((part.status, &part.body[..]), (206, &bytes[..2]));

    let sql = "SELECT count(*) FROM audit WHERE method = 'bowline.libraries.v1.JavascriptHost.PublishFile'";
    assert_eq!(number(server, sql).await, 2, "the file and the tag");
    let sql = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.file.published.v1'";
    assert_eq!(number(server, sql).await, 1);
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
}

async fn documents_have_the_form_that_is_asked_for(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    client.npm_publish("foo", "1.0.0", "latest").await;
    client.npm_publish("foo", "1.1.0-rc.1", "next").await;
    let short = client.send("GET foo", &[("accept", SHORT)], &[]).await;
    assert_eq!(short.header("content-type"), Some("application/vnd.npm.install-v1+json"));
    assert_eq!(short.header("vary"), Some("Accept, Accept-Encoding, Authorization"));
    let document = short.json();
    assert_eq!(document["dist-tags"], json!({ "latest": "1.0.0", "next": "1.1.0-rc.1" }));
    assert_eq!((document.get("_id"), document["versions"]["1.0.0"].get("license")), (None, None));
    assert!(document["time"]["1.0.0"].is_string(), "{document}");
    let tag = short.header("etag").unwrap().to_owned();
    let known = client.send("GET foo", &[("accept", SHORT), ("if-none-match", &tag)], &[]).await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    let whole = client.send("GET foo", &[("if-none-match", &tag)], &[]).await;
    assert_eq!((whole.status, whole.header("content-type")), (200, Some("application/json")));

    assert_eq!(client.document("foo/next").await["version"], "1.1.0-rc.1");
    assert_eq!(client.document("foo/1.0.0").await["dist"], whole.json()["versions"]["1.0.0"]["dist"]);
    let absent = client.send("GET foo/3.0.0", &[], &[]).await;
    assert_eq!(sentence(&absent, 404), "Not found: package \"foo@3.0.0\" does not exist");
    assert_eq!(client.document("-/package/foo/dist-tags").await, document["dist-tags"]);
    assert_eq!(client.document("-/ping").await, json!({}));
    assert!(client.document("-/whoami").await["username"].as_str().is_some_and(|name| name.contains('/')));
    assert_eq!(client.send("GET bar", &[], &[]).await.status, 404);
    assert_eq!(client.send("GET -/v1/search?text=foo", &[], &[]).await.status, 404);
    assert_eq!(client.send("POST foo", &[], b"{}").await.header("allow"), Some("GET, HEAD, PUT"));
}

async fn versions_are_in_one_order(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    for version in ["2.0.0", "1.10.0", "1.9.0"] {
        client.npm_publish("foo", version, "latest").await;
    }
    // A planner that knows the tables may read them in another order.
    let db = &server.server().parts().storage.db;
    db.write(|tx| Box::pin(async move { tx.execute("ANALYZE", &[]).await.map(drop) })).await.unwrap();
    let text = client.send("GET foo", &[], &[]).await.text();
    let places: Vec<usize> =
        ["1.9.0", "1.10.0", "2.0.0"].map(|version| text.find(&format!("\"{version}\":{{")).unwrap()).into();
    assert!(places.is_sorted(), "{text}");
}

async fn versions_do_not_change(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    let bytes = client.npm_publish("foo", "1.0.0", "latest").await;
    let before = stored_files(server);
    let again = client.put("foo", &npm::document("foo", "1.0.0", "latest", &bytes)).await;
    assert_eq!(sentence(&again, 409), "foo@1.0.0 is published already: publish another version");
    let mut manifest = npm::manifest("foo", "1.0.0");
    manifest["description"] = json!("changed");
    let other = client.put("foo", &npm::document("foo", "1.0.0", "latest", &npm::package(&manifest))).await;
    assert!(sentence(&other, 409).contains("already exists with other bytes"), "{}", other.text());
    assert_eq!(client.npm_file(server, &client.document("foo").await, "1.0.0").await.body, bytes);
    assert_eq!(stored_files(server), before);
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
}

async fn builds_are_one_version(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    let bytes = client.npm_publish("foo", "1.0.0+a", "latest").await;
    let other = npm::package(&npm::manifest("foo", "1.0.0+b"));
    let refused = client.put("foo", &npm::document("foo", "1.0.0+b", "latest", &other)).await;
    assert_eq!(sentence(&refused, 409), "1.0.0+b is the version 1.0.0+a, which exists: publish another version");
    let document = client.document("foo").await;
    assert_eq!(document["dist-tags"]["latest"], "1.0.0+a");
    assert_eq!(client.npm_file(server, &document, "1.0.0+a").await.body, bytes);
}

async fn the_first_version_is_the_latest_one(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    client.npm_publish("foo", "1.0.0-beta.1", "beta").await;
    assert_eq!(client.document("foo").await["dist-tags"], json!({ "beta": "1.0.0-beta.1", "latest": "1.0.0-beta.1" }));
    client.npm_publish("foo", "1.0.0-beta.2", "beta").await;
    assert_eq!(client.document("foo").await["dist-tags"], json!({ "beta": "1.0.0-beta.2", "latest": "1.0.0-beta.1" }));
}

async fn a_group_has_packages_of_its_own(server: &TestServer) {
    let (org, client) = npm_publisher(server, "acme").await;
    server.group(&org, "web").await;
    let web = client.at(&format!("{org}:web"));
    let bytes = web.npm_publish("foo", "1.0.0", "latest").await;
    client.npm_publish("shared", "1.0.0", "latest").await;
    assert_eq!(client.send("GET foo", &[], &[]).await.status, 404);
    let document = web.document("foo").await;
    assert!(document["versions"]["1.0.0"]["dist"]["tarball"].as_str().unwrap().contains("web/foo/-/"), "{document}");
    assert_eq!(web.npm_file(server, &document, "1.0.0").await.body, bytes);
    // The same package at two addresses has links below each of them.
    let (here, below) = (client.document("shared").await, web.document("shared").await);
    let link = |document: &serde_json::Value| document["versions"]["1.0.0"]["dist"]["tarball"].to_string();
    assert_ne!(link(&here), link(&below));
    assert_eq!(web.npm_file(server, &below, "1.0.0").await.status, 200);

    let (_, stranger) = npm_publisher(server, "others").await;
    let hidden = stranger.at(&format!("{org}:web"));
    assert_eq!(hidden.send("GET foo", &[], &[]).await.status, 403);
    let document = npm::document("foo", "2.0.0", "latest", &bytes);
    assert_eq!(hidden.put("foo", &document).await.status, 403);
    let reader = server.actor("libraries.javascript.pull", &org).await;
    let reader = Client::of(server, &reader).javascript().at(&format!("{org}:web"));
    assert_eq!(reader.document("foo").await["name"], "foo");
    assert_eq!(reader.put("foo", &document).await.status, 403);
    assert_eq!(reader.send("GET foo?write=true", &[], &[]).await.status, 403);
    assert_eq!(Client::anonymous(server).javascript().send("GET foo", &[], &[]).await.status, 401);
}

each_engine!(
    a_published_version_is_in_its_document_and_can_be_downloaded,
    documents_have_the_form_that_is_asked_for,
    versions_are_in_one_order,
    versions_do_not_change,
    builds_are_one_version,
    the_first_version_is_the_latest_one,
    a_group_has_packages_of_its_own,
);
