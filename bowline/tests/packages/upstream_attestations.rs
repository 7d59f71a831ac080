//! Signed statements about packages of upstreams: named as the upstream names them, compared with the file, and passed on.

use std::time::Duration;

use bowline_content::{Algorithm, Digest};
use bowline_testkit::sigstore::{PROVENANCE, REPOSITORY, SIGNER, Sigstore, WORKFLOW, statement};
use bowline_testkit::{Engine, RestReply, TestServer, by_engine, each_engine};
use serde_json::{Value, json};

use crate::attestations::trusting;
use crate::fake_index::{FakeIndex, set_upstream};
use crate::support::*;
use crate::upstreams::installer;

const STALE: Duration = Duration::from_secs(301);
/// How many sets of statements are stored.
const STORED: &str = "SELECT count(*) FROM upstream_documents WHERE package LIKE '% %'";

fn path() -> String {
    format!("integrity/foo/1.0/{}/provenance", file_name("foo", "1.0"))
}

/// The provenance of the wheel of `foo` 1.0, as an index has it that claims to know who signed.
fn provenance(sigstore: &Sigstore, sha256: &str) -> Value {
    let bundle = sigstore.bundle(&SIGNER, &statement(&file_name("foo", "1.0"), &[("sha256", sha256)], PROVENANCE));
    let claims = json!({ "identity": "claimed", "issuer": "claimed" });
    let publisher = json!({ "kind": "GitHub", "repository": "claimed/claimed", "workflow": "w.yml", "claims": claims });
    let bundles = json!([{ "publisher": publisher, "attestations": [Sigstore::attestation(&bundle)] }]);
    json!({ "version": 1, "attestation_bundles": bundles })
}

/// An index with a wheel of `foo` 1.0 that names its provenance; the provenance.
async fn attested(server: &TestServer, sigstore: &Sigstore) -> (FakeIndex, Value) {
    let index = FakeIndex::start().await;
    let bytes = index.publish(server, "foo", "1.0", 30);
    let provenance = provenance(sigstore, &sha256(&bytes));
    name(&index, &format!("{}/{}", index.base, path()));
    has(&index, &provenance.to_string());
    (index, provenance)
}

fn name(index: &FakeIndex, address: &str) {
    index.state().pages.get_mut("foo").unwrap()[0]["provenance"] = json!(address);
}

fn has(index: &FakeIndex, text: &str) {
    index.state().statements.insert(format!("/{}", path()), text.to_owned());
}

async fn get(client: &Client) -> RestReply {
    client.send(&format!("GET {}", path()), &[], &[]).await
}

async fn provenance_of_an_upstream_is_passed_on(server: &TestServer) {
    let (index, mut stated) = attested(server, &Sigstore::new()).await;
    let (org, _, client) = installer(server, &index).await;
    let page = client.project("foo").await;
    let address = format!("{}/libraries/python/{}", server.base(), path());
    assert_eq!(page["files"][0]["provenance"], address);
    let html = client.send("GET simple/foo/", &[("accept", "text/html")], &[]).await.text();
    assert!(html.contains(&format!("data-provenance=\"{address}\"")), "{html}");
    let below = client.at(&org).project("foo").await;
    assert!(below["files"][0]["provenance"].as_str().unwrap().contains(&format!("/~{org}/integrity/")), "{below}");
    assert_eq!(index.seen(), ["/simple/foo/"], "no one asked for it yet");

    // No one verified what the index claims to know, so its claims are left out.
    stated["attestation_bundles"][0]["publisher"]["claims"] = json!(null);
    for _ in 0..2 {
        let reply = get(&client).await;
        assert_eq!((reply.status, reply.json()), (200, stated.clone()), "{}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/vnd.pypi.integrity.v1+json"));
        assert_eq!(reply.header("x-bowline-attestations"), Some("unverified"));
    }
    let bundle = path().replace("provenance", "bundle.json");
    let bundle = client.send(&format!("GET {bundle}"), &[], &[]).await;
    let attestation = &stated["attestation_bundles"][0]["attestations"][0];
    assert_eq!(Sigstore::attestation(&bundle.json()), *attestation);
    assert_eq!(index.seen(), [format!("/{}", path())], "it is here");
    let spelled = client.send(&format!("GET {}", path().replacen("foo/1.0", "Foo/1.0.0", 1)), &[], &[]).await;
    assert_eq!(spelled.status, 200, "in another spelling");

    server.clock().advance(STALE);
    assert_eq!(get(&client).await.status, 200);
    let requests = index.requests();
    let asked: Vec<_> = requests.iter().map(|seen| (seen.path.as_str(), seen.is_conditional)).collect();
    assert_eq!(asked, [(&*format!("/{}", path()), true)], "an old page is good enough");
    for other in [path().replacen("1.0", "1.1", 1), path().replacen("foo", "bar", 1), path().replace(".whl", ".zip")] {
        assert_eq!(client.send(&format!("GET {other}"), &[], &[]).await.status, 404, "{other}");
    }
}

async fn statements_about_something_else_are_not_served(server: &TestServer) {
    let sigstore = Sigstore::new();
    let (index, good) = attested(server, &sigstore).await;
    let (_, _, client) = installer(server, &index).await;
    let other = provenance(&sigstore, &"ab".repeat(32));
    let mut with_other = good.clone();
    let bundles = with_other["attestation_bundles"].as_array_mut().unwrap();
    bundles.push(other["attestation_bundles"][0].clone());
    for (text, why) in [
        (other.to_string(), "attestation 1 is about other bytes than those of the file"),
        (with_other.to_string(), "attestation 2 is about other bytes than those of the file"),
        (json!({ "version": 1, "attestation_bundles": [] }).to_string(), "it has no attestation"),
        ("{}".into(), "it is no provenance of version 1"),
        ("[1]".into(), "it is no provenance of version 1"),
    ] {
        has(&index, &text);
        let refused = sentence(&get(&client).await, 502);
        let begins =
            format!("the upstream pypi has statements about {} that are not served: ", file_name("foo", "1.0"));
        assert!(refused.starts_with(&begins) && refused.contains(why), "{why}: {refused}");
        server.clock().advance(STALE);
    }
    has(&index, &good.to_string());
    assert_eq!(get(&client).await.status, 200);
    // The file is another one now, and what is said is about the one of before.
    index.state().pages.get_mut("foo").unwrap()[0]["hashes"]["sha256"] = json!("cd".repeat(32));
    server.clock().advance(STALE);
    client.project("foo").await;
    let refused = sentence(&get(&client).await, 502);
    assert!(refused.contains("is about other bytes"), "{refused}");
}

async fn what_is_no_answer_is_not_stored(server: &TestServer) {
    let (index, good) = attested(server, &Sigstore::new()).await;
    let (_, _, client) = installer(server, &index).await;
    client.project("foo").await;
    let large = format!("\"{}\"", "x".repeat(256 << 10));
    for text in ["<html>sign in</html>", "", &large] {
        has(&index, text);
        index.seen();
        let silent = sentence(&get(&client).await, 503);
        assert_eq!(silent, "the upstream pypi does not answer: try again in a few seconds");
        assert_eq!(get(&client).await.status, 503);
        assert_eq!(index.seen().len(), 1, "the failure is remembered");
        assert_eq!(number(server, STORED).await, 0);
        server.clock().advance(Duration::from_secs(11));
    }
    index.state().statements.clear();
    for _ in 0..2 {
        let gone = sentence(&get(&client).await, 404);
        assert_eq!(gone, format!("{} of foo 1.0 has no attestations here", file_name("foo", "1.0")));
    }
    assert_eq!(index.seen().len(), 1, "its absence is remembered");
    has(&index, &good.to_string());
    server.clock().advance(Duration::from_secs(61));
    assert_eq!(get(&client).await.status, 200);
    index.state().statements.clear();
    server.clock().advance(STALE);
    assert_eq!(get(&client).await.status, 404, "they were taken back");
    assert_eq!(client.project("foo").await["versions"], json!(["1.0"]));
}

async fn old_statements_are_served_where_the_upstream_does_not_answer(server: &TestServer) {
    let (index, _) = attested(server, &Sigstore::new()).await;
    let (_, _, client) = installer(server, &index).await;
    assert_eq!(get(&client).await.header("x-bowline-stale"), None);
    server.clock().advance(STALE);
    index.state().status = Some(500);
    let old = get(&client).await;
    assert_eq!((old.status, old.header("x-bowline-stale")), (200, Some("301")));
    server.clock().advance(Duration::from_secs(11));
    index.state().status = None;
    // Its answer takes longer than clients wait.
    index.state().delay = Duration::from_secs(4);
    assert_eq!(get(&client).await.header("x-bowline-stale"), Some("312"));
}

async fn provenance_elsewhere_is_neither_named_nor_requested(server: &TestServer) {
    let (index, good) = attested(server, &Sigstore::new()).await;
    let elsewhere = FakeIndex::start().await;
    has(&elsewhere, &good.to_string());
    name(&index, &format!("{}/{}", elsewhere.base, path()));
    let (org, owner, client) = installer(server, &index).await;
    assert_eq!(client.project("foo").await["files"][0]["provenance"], json!(null));
    assert_eq!(get(&client).await.status, 404);
    assert_eq!((index.seen(), elsewhere.seen()), (vec!["/simple/foo/".to_owned()], vec![]));
    // The account goes to the origin of the index.
    let upstream = json!({
        "name": "pypi", "ecosystem": "PYTHON", "url": format!("{}/simple", index.base), "username": "me",
        "password": "hush",
    });
    assert_eq!(set_upstream(&owner, &org, upstream).await.0, 200);
    name(&index, &format!("../../{}", path()));
    assert_eq!(get(&client).await.status, 200);
    let proofs: Vec<_> = index.requests().into_iter().map(|seen| seen.proof).collect();
    assert_eq!(proofs, ["Basic bWU6aHVzaA==", "Basic bWU6aHVzaA=="]);
}

async fn readers_get_statements_about_what_policies_withhold_and_others_nothing(server: &TestServer) {
    let (index, _) = attested(server, &Sigstore::new()).await;
    let (org, owner, client) = installer(server, &index).await;
    let page = client.project("foo").await;
    let rules = json!({ "name": "rules", "blockList": [{ "purl": "pkg:pypi/foo@1.0" }] });
    bind(&owner, &org, "ENFORCED", rules).await;
    assert_eq!(client.file(&page, 0).await.status, 403);
    let other = server.organization("other").await;
    let stranger = Client::of(server, &server.actor("libraries.python.pull", &other).await);
    assert_eq!(get(&stranger).await.status, 404);
    assert_eq!(get(&stranger.at(&org)).await.status, 403);
    assert_eq!(get(&Client::anonymous(server)).await.status, 401);
    assert_eq!(get(&client.at(&format!("{org}@2001-01-01"))).await.status, 404, "it had not been published then");
    assert_eq!(index.seen(), ["/simple/foo/"], "no one was asked");
    assert_eq!(get(&client).await.status, 200, "as core metadata");
}

async fn documents_of_an_earlier_version_are_requested_whole_again(server: &TestServer) {
    let (index, _) = attested(server, &Sigstore::new()).await;
    let (_, _, client) = installer(server, &index).await;
    for (etag, is_conditional) in [("substr(etag, 3)", false), ("etag", true)] {
        client.project("foo").await;
        index.seen();
        let db = &server.server().parts().storage.db;
        let sql: &'static str = format!("UPDATE upstream_documents SET etag = {etag}").leak();
        let write =
            db.write(move |tx| Box::pin(async move { tx.execute(sql, &[]).await.map_err(bowline_core::Error::from) }));
        assert_eq!(write.await.unwrap(), 1);
        server.clock().advance(STALE);
        client.project("foo").await;
        let asked: Vec<_> = index.requests().iter().map(|seen| seen.is_conditional).collect();
        assert_eq!(asked, [is_conditional]);
    }
}

async fn stored_statements_are_bounded(server: &TestServer) {
    let (index, _) = attested(server, &Sigstore::new()).await;
    let (_, _, client) = installer(server, &index).await;
    client.project("foo").await;
    let db = &server.server().parts().storage.db;
    let filled = db.write(|tx| {
        Box::pin(async move {
            let sql = "INSERT INTO upstream_documents (upstream, package, etag, last_modified, serial, document, fetched_at)
                       WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
                       SELECT upstream, 'p ' || i, '', '', 0, document, i FROM n, upstream_documents WHERE package = 'foo'";
            tx.execute(sql, &[]).await.map_err(bowline_core::Error::from)
        })
    });
    assert_eq!(filled.await.unwrap(), 1000);
    assert_eq!(get(&client).await.status, 200);
    assert_eq!(number(server, STORED).await, 901);
    assert_eq!(number(server, "SELECT count(*) FROM upstream_documents").await, 902, "pages have room of their own");
}

async fn a_trusted_root_verifies_what_an_upstream_has(engine: Engine) {
    let sigstore = Sigstore::new();
    let server = trusting(engine, &sigstore).await;
    let (index, good) = attested(&server, &sigstore).await;
    let (_, _, client) = installer(&server, &index).await;
    let reply = get(&client).await;
    assert_eq!((reply.status, reply.header("x-bowline-attestations")), (200, Some("verified")), "{}", reply.text());
    let bundles = reply.json()["attestation_bundles"].clone();
    assert_eq!(bundles[0]["attestations"], good["attestation_bundles"][0]["attestations"]);
    // The publisher is the one of the certificate, whatever the index says.
    let claims = json!({ "identity": WORKFLOW, "issuer": SIGNER.issuer, "source_repository": REPOSITORY });
    let publisher = &bundles[0]["publisher"];
    assert_eq!((&publisher["repository"], &publisher["claims"]), (&json!("acme/foo"), &claims));

    let page = client.project("foo").await;
    let sha256 = page["files"][0]["hashes"]["sha256"].as_str().unwrap();
    has(&index, &provenance(&Sigstore::new(), sha256).to_string());
    server.clock().advance(STALE);
    let refused = sentence(&get(&client).await, 502);
    let why = format!("the attestation {PROVENANCE} does not verify by the trusted root of this server: ");
    assert!(refused.contains(&why), "{refused}");
    server.stop().await;
}

/// The statements about a version that a registry of npm has: bundles about these names, by a key where that is wanted.
fn statements(sigstore: &Sigstore, bytes: &[u8], about: &[(&str, bool)]) -> Value {
    let sha512 = Digest::of(Algorithm::Sha512, bytes).hex().to_owned();
    let attestation = |(purl, is_by_key): &(&str, bool)| {
        let kind = if *is_by_key { "https://registry.example/publish/v0.1" } else { PROVENANCE };
        let mut bundle = sigstore.bundle(&SIGNER, &statement(purl, &[("sha512", &sha512)], kind));
        if *is_by_key {
            bundle["verificationMaterial"].as_object_mut().unwrap().remove("certificate");
            bundle["verificationMaterial"]["publicKey"] = json!({ "hint": "SHA256:key" });
        }
        json!({ "predicateType": "anything", "bundle": bundle, "signer": { "identity": "claimed", "issuer": "claimed" } })
    };
    json!({ "attestations": about.iter().map(attestation).collect::<Vec<_>>() })
}

/// A registry with two versions of `@pub/foo`, of which the first names its provenance; its bytes.
async fn registry(server: &TestServer) -> (FakeIndex, Vec<u8>) {
    let index = FakeIndex::start().await;
    let bytes = index.npm_publish(server, "@pub/foo", "1.0.0", 30);
    index.npm_publish(server, "@pub/foo", "1.1.0", 20);
    name_of_npm(&index);
    (index, bytes)
}

fn name_of_npm(index: &FakeIndex) {
    let attestations = json!({
        "url": "https://registry.example/-/npm/v1/attestations/@pub%2ffoo@1.0.0",
        "provenance": { "predicateType": PROVENANCE },
    });
    let mut state = index.state();
    state.documents.get_mut("@pub/foo").unwrap()["versions"]["1.0.0"]["dist"]["attestations"] = attestations;
}

const OF_NPM: &str = "/npm/-/npm/v1/attestations/@pub%2ffoo@1.0.0";
const PURL: &str = "pkg:npm/%40pub/foo@1.0.0";

async fn npm_names_and_serves_what_its_upstream_has(engine: Engine) {
    let server = TestServer::start(engine).await;
    let sigstore = Sigstore::new();
    let (index, bytes) = registry(&server).await;
    let (org, client) = npm_publisher(&server, "acme").await;
    index.npm_serve(&server.actor("owner", &org).await, &org).await;
    let document = client.document("@pub%2ffoo").await;
    let address = format!("{}/libraries/javascript/-/npm/v1/attestations/@pub/foo@1.0.0", server.base());
    let named = json!({ "url": address, "provenance": { "predicateType": PROVENANCE } });
    assert_eq!(document["versions"]["1.0.0"]["dist"]["attestations"], named);
    assert_eq!(document["versions"]["1.1.0"]["dist"].get("attestations"), None);

    let of_upstream = statements(&sigstore, &bytes, &[(PURL, false)]);
    index.state().statements.insert(OF_NPM.into(), of_upstream.to_string());
    let path = address.strip_prefix(server.base()).unwrap();
    index.seen();
    for _ in 0..2 {
        let reply = client.send_from_root(&format!("GET {path}"), &[], &[]).await;
        assert_eq!((reply.status, reply.header("x-bowline-attestations")), (200, Some("unverified")));
        let bundle = &of_upstream["attestations"][0]["bundle"];
        let shown = json!({ "attestations": [{ "predicateType": PROVENANCE, "bundle": bundle, "signer": null }] });
        assert_eq!(reply.json(), shown, "the claims of the upstream are left out");
    }
    let unnamed = client.send("GET -/npm/v1/attestations/@pub%2ffoo@1.1.0", &[], &[]).await;
    assert_eq!(unnamed.status, 404);
    assert_eq!(index.seen(), [OF_NPM], "below the upstream itself, whatever the document names");

    let other = statements(&sigstore, &bytes, &[("pkg:npm/%40pub/foo@1.1.0", false)]);
    index.state().statements.insert(OF_NPM.into(), other.to_string());
    server.clock().advance(STALE);
    let refused = sentence(&client.send_from_root(&format!("GET {path}"), &[], &[]).await, 502);
    assert!(refused.contains("foo-1.0.0.tgz that are not served: attestation 1 is not about"), "{refused}");
    // The stored file stays, and what the upstream says is about another one from now on.
    assert_eq!(client.npm_file(&server, &document, "1.0.0").await.body, bytes);
    index.npm_list(&server, ("@pub/foo", "1.0.0"), 30, bytes.iter().rev().copied().collect());
    name_of_npm(&index);
    server.clock().advance(STALE);
    let document = client.document("@pub%2ffoo").await;
    assert_eq!(document["versions"]["1.0.0"]["dist"].get("attestations"), None);
    assert_eq!(client.send_from_root(&format!("GET {path}"), &[], &[]).await.status, 404);
    server.stop().await;
}

async fn npm_verifies_what_has_a_certificate(engine: Engine) {
    let sigstore = Sigstore::new();
    let server = trusting(engine, &sigstore).await;
    let (index, bytes) = registry(&server).await;
    let (org, client) = npm_publisher(&server, "acme").await;
    index.npm_serve(&server.actor("owner", &org).await, &org).await;
    let get = async |sigstore: &Sigstore, about: &[(&str, bool)]| {
        let text = statements(sigstore, &bytes, about).to_string();
        index.state().statements.insert(OF_NPM.into(), text);
        server.clock().advance(STALE);
        client.send("GET -/npm/v1/attestations/@pub%2ffoo@1.0.0", &[], &[]).await
    };
    let verified = get(&sigstore, &[(PURL, false)]).await;
    let signer = json!({ "identity": WORKFLOW, "issuer": SIGNER.issuer, "source_repository": REPOSITORY });
    assert_eq!((verified.header("x-bowline-attestations"), verified.status), (Some("verified"), 200));
    assert_eq!(verified.json()["attestations"][0]["signer"], signer);
    // The registry's own statement is by a key, of which no root says whose it is.
    let both = get(&sigstore, &[(PURL, true), (PURL, false)]).await;
    assert_eq!((both.header("x-bowline-attestations"), both.status), (Some("unverified"), 200), "{}", both.text());
    let signers = |reply: &RestReply| [0, 1].map(|at| reply.json()["attestations"][at]["signer"].clone());
    assert_eq!(signers(&both), [json!(null), signer]);
    let forged = sentence(&get(&Sigstore::new(), &[(PURL, true), (PURL, false)]).await, 502);
    assert!(forged.contains("does not verify by the trusted root"), "{forged}");
    // Provenance by a key proves nothing.
    let mut by_key = statements(&sigstore, &bytes, &[(PURL, false)]);
    let material = &mut by_key["attestations"][0]["bundle"]["verificationMaterial"];
    material.as_object_mut().unwrap().remove("certificate");
    material["publicKey"] = json!({ "hint": "SHA256:key" });
    index.state().statements.insert(OF_NPM.into(), by_key.to_string());
    server.clock().advance(STALE);
    let refused = client.send("GET -/npm/v1/attestations/@pub%2ffoo@1.0.0", &[], &[]).await;
    assert!(sentence(&refused, 502).contains("does not verify by the trusted root"), "{}", refused.text());
    server.stop().await;
}

each_engine!(
    provenance_of_an_upstream_is_passed_on,
    statements_about_something_else_are_not_served,
    what_is_no_answer_is_not_stored,
    old_statements_are_served_where_the_upstream_does_not_answer,
    provenance_elsewhere_is_neither_named_nor_requested,
    readers_get_statements_about_what_policies_withhold_and_others_nothing,
    documents_of_an_earlier_version_are_requested_whole_again,
    stored_statements_are_bounded,
);
by_engine!(
    a_trusted_root_verifies_what_an_upstream_has,
    npm_names_and_serves_what_its_upstream_has,
    npm_verifies_what_has_a_certificate,
);
