//! JavaScript packages of another registry: requested once, pinned by their digests, and withheld while they are young.

use std::io::Read;
use std::time::Duration;

use base64::Engine;
use bowline_testkit::tarball::tarball;
use bowline_testkit::{Actor, TestServer, each_engine, npm};
use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

use crate::fake_index::{FakeIndex, Fault};
use crate::support::*;

const MINUTES: Duration = Duration::from_secs(301);

/// An organization with an upstream, someone who may publish there, and its owner.
async fn installer(server: &TestServer, index: &FakeIndex) -> (String, Client, Actor) {
    let (org, client) = npm_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    index.npm_serve(&owner, &org).await;
    (org, client, owner)
}

async fn a_package_of_an_upstream_is_requested_once(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.npm_publish(server, "@pub/foo", "1.0.0", 30);
    index.npm_publish(server, "@pub/foo", "1.1.0", 20);
    let (_, client, _) = installer(server, &index).await;
    let document = client.document("@pub%2ffoo").await;
    assert_eq!(document["dist-tags"], json!({ "latest": "1.1.0" }));
    let dist = &document["versions"]["1.0.0"]["dist"];
    let address = format!("{}/libraries/javascript/@pub/foo/-/foo-1.0.0.tgz", server.base());
    assert_eq!((&dist["tarball"], dist.get("shasum"), dist.get("fileCount")), (&json!(address), None, None));
    assert!(document["time"]["1.0.0"].is_string(), "{document}");
    assert_eq!(client.npm_file(server, &document, "1.0.0").await.body, bytes);
    assert_eq!(index.seen(), ["/npm/@pub%2ffoo", "/npm/files/@pub-foo-1.0.0.tgz"]);

    assert_eq!(client.document("@pub/foo/latest").await["version"], "1.1.0");
    let reply = client.npm_file(server, &document, "1.0.0").await;
    assert_eq!((reply.status, reply.body), (200, bytes));
    assert_eq!(index.seen(), Vec::<String>::new(), "all of it is here");
    server.clock().advance(MINUTES);
    client.document("@pub/foo").await;
    let asked: Vec<bool> = index.requests().iter().map(|seen| seen.is_conditional).collect();
    assert_eq!(asked, [true]);
    assert_eq!(client.send("GET absent", &[], &[]).await.status, 404);
    let stored = "SELECT count(*) FROM upstream_files WHERE sha512 <> '' AND sha256 = '' AND license = 'MIT'";
    assert_eq!(number(server, stored).await, 1);
}

async fn a_young_version_is_withheld_until_it_is_old_enough(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.npm_publish(server, "foo", "1.0.0", 30);
    let young = index.npm_publish(server, "foo", "2.0.0", 6);
    let (org, client, owner) = installer(server, &index).await;
    let open = client.document("foo").await;
    bind_to("JAVASCRIPT", &owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    let document = client.document("foo").await;
    assert_eq!((&document["dist-tags"]["latest"], document["versions"].get("2.0.0")), (&json!("1.0.0"), None));
    let message = document["policyRestrictions"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("Blocked by policy cooldown: pkg:npm/foo@2.0.0 is younger than 7 days; allowed from 20"),
        "{message}"
    );
    assert_eq!(sentence(&client.npm_file(server, &open, "2.0.0").await, 403), message);
    assert_eq!(blocked(&owner, server, &org, "ENFORCED").await.len(), 1);
    let explain = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:npm/foo@2.0.0");
    assert_eq!(owner.rest("GET", &explain, None).await.json()["decision"]["reason"], "COOLDOWN");

    server.clock().advance(Duration::from_secs(24 * 3600 + 1));
    let client = Client::of(server, &server.actor("libraries.javascript.pull", &org).await).javascript();
    // What the package was modified last at stands still, so no time is an answer to whether a client has this view.
    let since = [("if-modified-since", "Fri, 31 Dec 2027 23:59:59 GMT")];
    let again = client.send("GET foo", &since, &[]).await;
    assert_eq!((again.status, again.header("last-modified")), (200, None));
    let document = client.document("foo").await;
    assert_eq!((&document["dist-tags"]["latest"], document.get("policyRestrictions")), (&json!("2.0.0"), None));
    assert_eq!(client.npm_file(server, &document, "2.0.0").await.body, young);
}

async fn no_wrong_tarball_is_stored(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.npm_publish(server, "foo", "1.0.0", 30);
    let (_, client, _) = installer(server, &index).await;
    let document = client.document("foo").await;
    for fault in [Fault::OtherBytes, Fault::More, Fault::Less, Fault::BreaksOff, Fault::Refused] {
        index.state().fault = Some(fault);
        let refused = client.npm_file(server, &document, "1.0.0").await;
        assert_eq!(refused.status, 502, "{fault:?}: {}", refused.text());
        assert_eq!(
            (number(server, "SELECT count(*) FROM upstream_files").await, stored_files(server)),
            (0, 0),
            "{fault:?}"
        );
        server.clock().advance(Duration::from_secs(11));
    }
    index.state().fault = None;
    assert_eq!(client.npm_file(server, &document, "1.0.0").await.body, bytes);
}

/// A package of npm of some 300 KB, which do not compress.
fn large() -> Vec<u8> {
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let manifest = npm::manifest("big", "1.0.0").to_string().into_bytes();
    let files =
        [("package/package.json".to_owned(), manifest), ("package/noise".to_owned(), noise.take(300_000).collect())];
    tarball(&files)
}

async fn a_large_tarball_arrives_while_it_is_fetched(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = large();
    index.npm_list(server, ("big", "1.0.0"), 30, bytes.clone());
    let (_, client, _) = installer(server, &index).await;
    client.document("big").await;
    index.state().stalls = true;
    // No document says how long a tarball is; the response of the upstream does.
    let mut arriving = client.open_at("big/-/big-1.0.0.tgz").await;
    let mut first = Vec::new();
    while first.len() < bytes.len() / 2 {
        first.extend_from_slice(&arriving.part().await.expect("a part").expect("no error"));
    }
    index.state().stalls = false;
    while let Some(part) = arriving.part().await {
        first.extend_from_slice(&part.expect("no error"));
    }
    assert_eq!(first, bytes);
    assert_eq!(client.send("GET big/-/big-1.0.0.tgz", &[], &[]).await.body, bytes);
    assert_eq!(index.seen().len(), 2, "the document and the tarball");

    // Wrong bytes are not completed, of which the last ones come once the client has the first.
    let mut wrong = large();
    let last = wrong.len() - 100;
    wrong[last] ^= 1;
    index.npm_list(server, ("big", "1.1.0"), 30, bytes);
    index.state().files.insert("big-1.1.0.tgz".into(), wrong.clone());
    server.clock().advance(MINUTES);
    client.document("big").await;
    index.state().stalls = true;
    let mut arriving = client.open_at("big/-/big-1.1.0.tgz").await;
    index.state().stalls = false;
    let (mut size, mut is_cut) = (0, false);
    while let Some(part) = arriving.part().await {
        match part {
            Ok(part) => size += part.len(),
            Err(_) => is_cut = true,
        }
    }
    assert!(is_cut && size <= wrong.len() - 65_536, "{size}");
    assert_eq!(client.send("GET big/-/big-1.1.0.tgz", &[], &[]).await.status, 502);
    let stored = number(server, "SELECT count(*) FROM upstream_files WHERE version = '1.1.0'").await;
    assert_eq!(stored, 0);
}

async fn a_stored_tarball_keeps_its_digest(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.npm_publish(server, "foo", "1.0.0", 30);
    let (_, client, _) = installer(server, &index).await;
    let before = client.document("foo").await;
    assert_eq!(client.npm_file(server, &before, "1.0.0").await.body, bytes);
    index.npm_list(server, ("foo", "1.0.0"), 30, bytes.iter().rev().copied().collect());
    server.clock().advance(MINUTES);
    let after = client.document("foo").await;
    let integrity = |document: &Value| document["versions"]["1.0.0"]["dist"]["integrity"].clone();
    assert_eq!(integrity(&after), integrity(&before), "documents name what is served");
    assert_eq!(client.npm_file(server, &after, "1.0.0").await.body, bytes);
    // What the registry takes back leaves the document, and stays for lock files.
    index
        .state()
        .documents
        .insert("foo".into(), json!({ "name": "foo", "versions": {}, "time": { "unpublished": {} } }));
    server.clock().advance(MINUTES);
    assert_eq!(client.send("GET foo", &[], &[]).await.status, 404);
    assert_eq!(client.npm_file(server, &after, "1.0.0").await.body, bytes);
}

async fn the_license_of_the_file_counts(server: &TestServer) {
    let index = FakeIndex::start().await;
    let mut manifest = bowline_testkit::npm::manifest("foo", "1.0.0");
    manifest["license"] = json!("GPL-3.0-only");
    // The document says MIT.
    index.npm_list(server, ("foo", "1.0.0"), 30, bowline_testkit::npm::package(&manifest));
    let (org, client, owner) = installer(server, &index).await;
    bind_to("JAVASCRIPT", &owner, &org, "ENFORCED", json!({ "name": "rules", "blockedLicenses": ["GPL-3.0-only"] }))
        .await;
    let document = client.document("foo").await;
    let refused = sentence(&client.npm_file(server, &document, "1.0.0").await, 403);
    assert_eq!(refused, "Blocked by policy rules: pkg:npm/foo@1.0.0 has the license GPL-3.0-only");
    assert_eq!(client.document("foo").await["versions"], json!({}));
}

async fn odd_documents_are_read_as_far_as_they_can_be(server: &TestServer) {
    let index = FakeIndex::start().await;
    for version in ["1.0.0+a", "1.0.0+b", "2.0.0"] {
        index.npm_publish(server, "foo", version, 30);
    }
    index.state().documents.get_mut("foo").unwrap()["versions"]["v2.0.0"] = json!([[0]]);
    index.state().documents.get_mut("foo").unwrap()["dist-tags"]["odd"] = json!({ "a": 1 });
    let (_, client, _) = installer(server, &index).await;
    let document = client.document("foo").await;
    let versions: Vec<&String> = document["versions"].as_object().unwrap().keys().collect();
    assert_eq!(versions, ["1.0.0+a", "1.0.0+b", "2.0.0"]);
    assert_eq!(document["dist-tags"], json!({ "latest": "2.0.0" }));
    for version in ["1.0.0+a", "1.0.0+b"] {
        assert_eq!(client.npm_file(server, &document, version).await.status, 200, "{version}");
    }
}

async fn own_names_are_not_requested(server: &TestServer) {
    let index = FakeIndex::start().await;
    for name in ["own", "@acme/secret", "@acme/other"] {
        index.npm_publish(server, name, "9.0.0", 30);
    }
    let (org, client, owner) = installer(server, &index).await;
    client.npm_publish("own", "1.0.0", "latest").await;
    let path = format!("/packagereservations/v1/organizations/{org}:createReservation");
    let reserve = async |pattern: &str| {
        let body = json!({ "ecosystem": "JAVASCRIPT", "pattern": pattern });
        owner.rest("POST", &path, Some(body)).await.status
    };
    assert_eq!(reserve("@acme/*").await, 200);
    for wrong in ["*", "@*", "@acme", "a b*", "../*"] {
        assert_eq!(reserve(wrong).await, 400, "{wrong}");
    }
    assert_eq!(client.document("own").await["dist-tags"]["latest"], "1.0.0");
    for path in [
        "@acme/secret",
        "@acme%2fother",
        "@acme/secret/-/secret-9.0.0.tgz",
        "own/-/own-9.0.0.tgz",
        "Own",
        "@Acme/secret",
    ] {
        assert_eq!(client.send(&format!("GET {path}"), &[], &[]).await.status, 404, "{path}");
    }
    assert_eq!(index.seen(), Vec::<String>::new());

    // The name of a package that the organization installs is not taken from it.
    index.npm_publish(server, "public", "1.0.0", 30);
    client.document("public").await;
    let bytes = bowline_testkit::npm::package(&bowline_testkit::npm::manifest("public", "2.0.0"));
    let taken = client.put("public", &bowline_testkit::npm::document("public", "2.0.0", "latest", &bytes)).await;
    assert!(sentence(&taken, 409).contains("the upstream npmjs has a package public"), "{}", taken.text());
}

async fn an_outage_is_bridged(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.npm_publish(server, "foo", "1.0.0", 30);
    let (_, client, _) = installer(server, &index).await;
    let document = client.document("foo").await;
    index.state().status = Some(503);
    server.clock().advance(MINUTES);
    let stale = client.send("GET foo", &[], &[]).await;
    assert_eq!((stale.status, stale.header("x-bowline-stale")), (200, Some("301")));
    assert_eq!(client.npm_file(server, &document, "1.0.0").await.body, bytes);
    assert_eq!(client.send("GET bar", &[], &[]).await.status, 503);
    // A document of another package is no answer.
    index.state().status = None;
    index.state().documents.insert("bar".into(), json!({ "name": "foo", "versions": {} }));
    server.clock().advance(Duration::from_secs(11));
    assert_eq!(client.send("GET bar", &[], &[]).await.status, 503);
}

/// A version as an upstream shows it, with a manifest of some kilobytes.
fn long_version(number: usize) -> Value {
    let dependencies: Map<String, Value> =
        (0..80).map(|at| (format!("a-dependency-of-{number}-and-{at}"), json!("^1.0.0"))).collect();
    let integrity = format!("sha512-{}", base64::engine::general_purpose::STANDARD.encode([7; 64]));
    let dist = json!({ "tarball": format!("https://files.example/long-1.{number}.0.tgz"), "integrity": integrity });
    json!({ "name": "long", "version": format!("1.{number}.0"), "license": "MIT", "dependencies": dependencies, "dist": dist })
}

async fn a_long_document_is_the_same_however_it_is_sent(server: &TestServer) {
    const VERSIONS: usize = 600;
    let index = FakeIndex::start().await;
    let versions: Map<String, Value> = (0..VERSIONS).map(|at| (format!("1.{at}.0"), long_version(at))).collect();
    let document = json!({ "name": "long", "dist-tags": { "latest": "1.7.0" }, "versions": versions });
    index.state().documents.insert("long".into(), document);
    let (_, client, _) = installer(server, &index).await;
    let ask = async |headers: &[(&'static str, &str)]| client.send("GET long", headers, &[]).await;
    let plain = ask(&[("accept-encoding", "identity")]).await;
    let length = plain.body.len();
    assert!(length > 1 << 20, "{length}");
    assert_eq!((plain.status, plain.header("content-encoding")), (200, None));
    assert_eq!(plain.header("content-length"), Some(length.to_string().as_str()));
    let short = ask(&[("accept-encoding", "gzip")]).await;
    assert_eq!(short.header("content-encoding"), Some("gzip"));
    let mut text = Vec::new();
    GzDecoder::new(short.body.as_slice()).read_to_end(&mut text).unwrap();
    assert!(text == plain.body, "other bytes when compressed");
    let shown = plain.json();
    assert_eq!(shown["versions"].as_object().unwrap().len(), VERSIONS);
    assert_eq!(shown["versions"]["1.599.0"]["dependencies"], long_version(599)["dependencies"]);
    assert_eq!(client.document("long/latest").await, shown["versions"]["1.7.0"]);
    for (encoding, known) in [("identity", plain.header("etag")), ("gzip", short.header("etag"))] {
        let reply = ask(&[("accept-encoding", encoding), ("if-none-match", known.unwrap())]).await;
        assert_eq!((reply.status, reply.body.len()), (304, 0), "{encoding}");
    }
}

each_engine!(
    a_package_of_an_upstream_is_requested_once,
    a_long_document_is_the_same_however_it_is_sent,
    a_young_version_is_withheld_until_it_is_old_enough,
    no_wrong_tarball_is_stored,
    a_large_tarball_arrives_while_it_is_fetched,
    a_stored_tarball_keeps_its_digest,
    the_license_of_the_file_counts,
    odd_documents_are_read_as_far_as_they_can_be,
    own_names_are_not_requested,
    an_outage_is_bridged,
);
