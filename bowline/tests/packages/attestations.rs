//! Signed statements come with files: verified by the trusted root of the server, served, and gone with their files.

use std::io::Write as _;

use bowline_content::{Algorithm, Digest};
use bowline_testkit::sigstore::{PROVENANCE, PUBLISH, REPOSITORY, SIGNER, Sigstore, WORKFLOW, statement};
use bowline_testkit::{Engine, RestReply, TestServer, by_engine, npm};
use serde_json::{Value, json};

use crate::support::*;

/// A server that trusts an instance of Sigstore.
pub(crate) async fn trusting(engine: Engine, sigstore: &Sigstore) -> TestServer {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    write!(file, "{}", sigstore.trusted_root()).expect("room for a file");
    TestServer::start_with(engine, |options| options.sigstore_trust_root = Some(file.path().to_owned())).await
}

/// The attestation of a kind about the wheel of a version.
fn attestation(sigstore: &Sigstore, kind: &str, version: &str) -> Value {
    let name = file_name("foo", version);
    let digest = sha256(&wheel("foo", version, ""));
    Sigstore::attestation(&sigstore.bundle(&SIGNER, &statement(&name, &[("sha256", &digest)], kind)))
}

/// Uploads the wheel of a version with the text of a field of attestations.
async fn upload(client: &Client, version: &str, attestations: &str) -> RestReply {
    let bytes = wheel("foo", version, "");
    let form = fields("foo", version, &bytes).field("attestations", attestations);
    client.upload(&form.file(&file_name("foo", version), &bytes).end()).await
}

fn integrity(version: &str, what: &str) -> String {
    format!("integrity/foo/{version}/{}/{what}", file_name("foo", version))
}

/// Nothing is left of what was refused.
async fn require_nothing(server: &TestServer) {
    for sql in ["SELECT count(*) FROM hosted_files", "SELECT count(*) FROM hosted_attestations"] {
        assert_eq!(number(server, sql).await, 0, "{sql}");
    }
    assert_eq!((number(server, "SELECT count(*) FROM uploads").await, stored_files(server)), (0, 0));
}

async fn a_verified_attestation_is_served_with_who_signed_it(engine: Engine) {
    let sigstore = Sigstore::new();
    let server = trusting(engine, &sigstore).await;
    let (org, client) = publisher(&server, "acme").await;
    let sent = json!([attestation(&sigstore, PROVENANCE, "1.0"), attestation(&sigstore, PUBLISH, "1.0")]);
    let published = upload(&client, "1.0", &sent.to_string()).await;
    assert_eq!((published.status, &*published.text()), (200, "published\n"));

    let page = client.project("foo").await;
    let address = format!("{}/libraries/python/{}", server.base(), integrity("1.0", "provenance"));
    assert_eq!(page["files"][0]["provenance"], address);
    let html = client.send("GET simple/foo/", &[("accept", "text/html")], &[]).await.text();
    assert!(html.contains(&format!("data-provenance=\"{address}\"")), "{html}");
    let below = client.at(&org).project("foo").await;
    let address = format!("{}/libraries/python/~{org}/{}", server.base(), integrity("1.0", "provenance"));
    assert_eq!(below["files"][0]["provenance"], address);

    let reply = client.send(&format!("GET {}", integrity("1.0", "provenance")), &[], &[]).await;
    assert_eq!(reply.header("content-type"), Some("application/vnd.pypi.integrity.v1+json"));
    assert_eq!(reply.header("x-bowline-attestations"), Some("verified"));
    let provenance = reply.json();
    let bundles = provenance["attestation_bundles"].as_array().expect("bundles");
    assert_eq!((&provenance["version"], bundles.len()), (&json!(1), 1));
    assert_eq!(bundles[0]["attestations"], json!([sent[1], sent[0]]), "by predicate type");
    let publisher = &bundles[0]["publisher"];
    assert_eq!((&publisher["kind"], &publisher["repository"]), (&json!("GitHub"), &json!("acme/foo")));
    let claims = json!({ "identity": WORKFLOW, "issuer": SIGNER.issuer, "source_repository": REPOSITORY });
    assert_eq!(publisher["claims"], claims);

    let bundle = client.send(&format!("GET {}", integrity("1.0", "bundle.json")), &[], &[]).await;
    assert_eq!(bundle.header("content-type"), Some("application/vnd.dev.sigstore.bundle.v0.3+json"));
    assert_eq!(Sigstore::attestation(&bundle.json()), sent[0], "that of the build");
    let known = [("if-none-match", bundle.header("etag").expect("a tag"))];
    assert_eq!(client.send(&format!("GET {}", integrity("1.0", "bundle.json")), &known, &[]).await.status, 304);

    let db = &server.server().parts().storage.db;
    let sql =
        "SELECT identity, issuer FROM hosted_attestations WHERE predicate_type = 'https://slsa.dev/provenance/v1'";
    let read = |row: &bowline_store::Row<'_>| Ok::<_, bowline_core::Error>((row.opt_text(0)?, row.opt_text(1)?));
    let stored = db.read(move |tx| Box::pin(async move { tx.query(sql, &[], read).await })).await.expect("rows");
    assert_eq!(stored, [(Some(WORKFLOW.to_owned()), Some(SIGNER.issuer.to_owned()))]);
    server.stop().await;
}

async fn an_attestation_that_does_not_verify_refuses_the_file(engine: Engine) {
    let (sigstore, other) = (Sigstore::new(), Sigstore::new());
    let server = trusting(engine, &sigstore).await;
    let (_, client) = publisher(&server, "acme").await;
    let good = attestation(&sigstore, PROVENANCE, "1.0");
    let with = |pointer: &str, value: &Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).expect("a member") = value.clone();
        json!([changed]).to_string()
    };
    let of_other = attestation(&sigstore, PUBLISH, "1.0");
    let statement_of_other = with("/envelope/statement", &of_other["envelope"]["statement"]);
    let of_other_version = json!([attestation(&sigstore, PROVENANCE, "1.1")]).to_string();
    for (sent, why) in [
        (json!([attestation(&other, PROVENANCE, "1.0")]).to_string(), "does not verify by the trusted root"),
        (statement_of_other, "does not verify by the trusted root"),
        (with("/verification_material/transparency_entries", &json!([])), "does not verify by the trusted root"),
        (with("/verification_material/certificate", &json!("AAAA")), "does not verify by the trusted root"),
        (with("/envelope/signature", &of_other["envelope"]["signature"]), "does not verify by the trusted root"),
        (of_other_version, "attestation 1 is not about foo-1.0-py3-none-any.whl"),
        (json!([good, good]).to_string(), "two attestations have the predicate type"),
        (with("/version", &json!(2)), "attestation 1 has no version 1"),
        ("{}".into(), "attestations is no array of JSON"),
        ("[".repeat(1000), "attestations is no array of JSON"),
        (format!("[\"{}\"]", "x".repeat(256 << 10)), "a field of the form has more than 262144 bytes"),
    ] {
        let refused = upload(&client, "1.0", &sent).await;
        assert!(sentence(&refused, 400).contains(why), "{why}: {}", refused.text());
    }
    require_nothing(&server).await;
    assert_eq!(upload(&client, "1.0", &json!([good]).to_string()).await.status, 200);
    server.stop().await;
}

async fn without_a_trusted_root_they_are_stored_unverified(engine: Engine) {
    let (sigstore, server) = (Sigstore::new(), TestServer::start(engine).await);
    let (org, client) = publisher(&server, "acme").await;
    let published = upload(&client, "1.0", &json!([attestation(&sigstore, PROVENANCE, "1.0")]).to_string()).await;
    assert!(published.text().contains("not verified: this server has no trusted root"), "{}", published.text());
    let reply = client.get(&integrity("1.0", "provenance")).await;
    assert_eq!(reply.status, 406, "an index of files is something else");
    let headers = [("accept", "application/vnd.pypi.integrity.v1+json")];
    let reply = client.send(&format!("GET {}", integrity("1.0", "provenance")), &headers, &[]).await;
    assert_eq!(reply.header("x-bowline-attestations"), Some("unverified"));
    let publisher = json!({ "kind": "unverified", "claims": null });
    assert_eq!(reply.json()["attestation_bundles"][0]["publisher"], publisher);
    // What is not about the file is refused all the same.
    let other = upload(&client, "1.1", &json!([attestation(&sigstore, PROVENANCE, "1.0")]).to_string()).await;
    assert!(sentence(&other, 400).contains("is not about"), "{}", other.text());
    let forged = statement(&file_name("foo", "1.1"), &[("sha256", &"ab".repeat(32))], PROVENANCE);
    let forged = json!([Sigstore::attestation(&sigstore.bundle(&SIGNER, &forged))]).to_string();
    let other = upload(&client, "1.1", &forged).await;
    assert!(sentence(&other, 400).contains("is about other bytes"), "{}", other.text());

    let npm = client_of_npm(&server, &org).await;
    let published = npm.put("foo", &with_statement(&sigstore, "foo", "1.0.0")).await;
    let notice = published.header("npm-notice").expect("a notice");
    assert!(published.status == 201 && notice.contains("not verified"), "{notice}");
    let listed = npm.send("GET -/npm/v1/attestations/foo@1.0.0", &[], &[]).await;
    assert_eq!(listed.json()["attestations"][0]["signer"], json!(null));
    let shown = npm.document("foo").await;
    let dist = &shown["versions"]["1.0.0"]["dist"];
    assert_eq!(dist.get("attestations"), None, "clients take what a document names for trust");
    server.stop().await;
}

async fn client_of_npm(server: &TestServer, org: &str) -> Client {
    Client::of(server, &server.actor("libraries.javascript.push", org).await).javascript()
}

/// The document that publishes a version of npm with its provenance.
fn with_statement(sigstore: &Sigstore, name: &str, version: &str) -> Value {
    let bytes = npm::package(&npm::manifest(name, version));
    let purl = format!("pkg:npm/{}@{version}", name.replace('@', "%40"));
    let sha512 = Digest::of(Algorithm::Sha512, &bytes).hex().to_owned();
    let bundle = sigstore.bundle(&SIGNER, &statement(&purl, &[("sha512", &sha512)], PROVENANCE)).to_string();
    let mut document = npm::document(name, version, "latest", &bytes);
    document["_attachments"][format!("{name}-{version}.sigstore")] = json!({
        "content_type": "application/vnd.dev.sigstore.bundle.v0.3+json", "data": bundle, "length": bundle.len(),
    });
    document
}

async fn npm_publishes_with_provenance(engine: Engine) {
    let sigstore = Sigstore::new();
    let server = trusting(engine, &sigstore).await;
    let (org, client) = npm_publisher(&server, "acme").await;
    let document = with_statement(&sigstore, "@acme/foo", "1.0.0");
    let published = client.put("@acme%2ffoo", &document).await;
    assert_eq!((published.status, published.header("npm-notice")), (201, None));
    client.npm_publish("@acme/foo", "1.1.0", "latest").await;

    let shown = client.at(&org).document("@acme%2ffoo").await;
    let address = format!("{}/libraries/javascript/~{org}/-/npm/v1/attestations/@acme/foo@1.0.0", server.base());
    let attested = json!({ "url": address, "provenance": { "predicateType": PROVENANCE } });
    assert_eq!(shown["versions"]["1.0.0"]["dist"]["attestations"], attested);
    assert_eq!(shown["versions"]["1.1.0"]["dist"].get("attestations"), None);
    let path = address.strip_prefix(server.base()).expect("an address of the server");
    let listed = client.send_from_root(&format!("GET {path}"), &[], &[]).await.json();
    let sent = &document["_attachments"]["@acme/foo-1.0.0.sigstore"]["data"];
    let sent: Value = serde_json::from_str(sent.as_str().expect("a text")).expect("JSON");
    let one = &listed["attestations"][0];
    assert_eq!((&one["predicateType"], &one["bundle"]), (&json!(PROVENANCE), &sent));
    let signer = json!({ "identity": WORKFLOW, "issuer": SIGNER.issuer, "source_repository": REPOSITORY });
    assert_eq!(one["signer"], signer);
    for path in ["-/npm/v1/attestations/@acme%2ffoo@1.1.0", "-/npm/v1/attestations/@acme%2ffoo@2.0.0"] {
        assert_eq!(client.send(&format!("GET {path}"), &[], &[]).await.status, 404, "{path}");
    }
    let deleted = client.send("PUT -/npm/v1/attestations/@acme%2ffoo@1.0.0", &[], &[]).await;
    assert_eq!(deleted.status, 405);
    server.stop().await;
}

async fn npm_refuses_what_is_not_the_provenance_of_the_version(engine: Engine) {
    let sigstore = Sigstore::new();
    let server = trusting(engine, &sigstore).await;
    let (_, client) = npm_publisher(&server, "acme").await;
    let good = with_statement(&sigstore, "foo", "1.0.0");
    let of = |sigstore: &Sigstore, version: &str| {
        with_statement(sigstore, "foo", version)["_attachments"][format!("foo-{version}.sigstore")].clone()
    };
    let with = |name: &str, attachment: Value| {
        let mut document = good.clone();
        document["_attachments"][name] = attachment;
        document
    };
    let mut alone = good.clone();
    alone["_attachments"].as_object_mut().expect("an object").remove("foo-1.0.0.tgz");
    for (document, why) in [
        (with("foo-1.0.0.sigstore", of(&sigstore, "1.0.1")), "is not about pkg:npm/foo@1.0.0"),
        (with("foo-1.0.0.sigstore", of(&Sigstore::new(), "1.0.0")), "does not verify by the trusted root"),
        (with("foo-1.0.0.sigstore", json!({ "data": "no JSON" })), "the statement beside the file is no JSON"),
        (with("foo-1.0.0.sigstore", json!({ "data": "x".repeat(262_145) })), "has more than 262144 bytes"),
        (with("foo-1.0.0.sigstore", json!({})), "the statement beside the file is no JSON"),
        (with("foo-1.0.0.sigstore", json!({ "data": "{}" })), "must have verificationMaterial as an object"),
        (with("second.sigstore", of(&sigstore, "1.0.0")), "nor one statement about it"),
        (with("foo-1.0.0.sbom", of(&sigstore, "1.0.0")), "is neither the package (.tgz) nor one statement"),
        (alone, "is no package (.tgz): send the package with it"),
    ] {
        let refused = client.put("foo", &document).await;
        assert!(sentence(&refused, 400).contains(why), "{why}: {}", refused.text());
    }
    require_nothing(&server).await;
    assert_eq!(client.put("foo", &good).await.status, 201);
    server.stop().await;
}

async fn attestations_neither_change_nor_outlive_their_file(engine: Engine) {
    let sigstore = Sigstore::new();
    let server = trusting(engine, &sigstore).await;
    let (org, client) = publisher(&server, "acme").await;
    let sent = json!([attestation(&sigstore, PROVENANCE, "1.0")]).to_string();
    let more = json!([attestation(&sigstore, PUBLISH, "1.0")]).to_string();
    for (text, status) in [(&sent, 200), (&sent, 200), (&"[]".to_owned(), 200), (&more, 409)] {
        assert_eq!(upload(&client, "1.0", text).await.status, status, "{text}");
    }
    let refused = upload(&client, "1.0", &more).await;
    assert!(sentence(&refused, 409).contains("already exists without these attestations"), "{}", refused.text());
    assert_eq!(number(&server, "SELECT count(*) FROM hosted_attestations").await, 1);

    let owner = server.actor("owner", &org).await;
    let path = format!("/pythonpackages/v1/groups/{org}:deleteVersion");
    let deleted = owner.rest("POST", &path, Some(json!({ "package": "foo", "version": "1.0" }))).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    assert_eq!(number(&server, "SELECT count(*) FROM hosted_attestations").await, 0);
    let gone = client.send(&format!("GET {}", integrity("1.0", "provenance")), &[], &[]).await;
    assert!(
        sentence(&gone, 404).contains("foo-1.0-py3-none-any.whl of foo 1.0 has no attestations here"),
        "{}",
        gone.text()
    );
    server.stop().await;
}

async fn what_was_stored_unverified_is_not_taken_for_verified(engine: Engine) {
    let (sigstore, server) = (Sigstore::new(), TestServer::start(engine).await);
    let (org, client) = publisher(&server, "acme").await;
    let sent = json!([attestation(&sigstore, PROVENANCE, "1.0")]).to_string();
    assert_eq!(upload(&client, "1.0", &sent).await.status, 200);
    let again = upload(&client, "1.0", &sent).await;
    assert_eq!((again.status, &*again.text()), (200, "published\n"), "nothing is stored now");
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    write!(file, "{}", sigstore.trusted_root()).expect("room for a file");
    let root = file.path().to_owned();
    let server = server.restarted_with(|options| options.sigstore_trust_root = Some(root)).await;
    let client = Client::of(&server, &server.actor("libraries.python.push", &org).await);
    let again = upload(&client, "1.0", &sent).await;
    assert!(sentence(&again, 409).contains("or with unverified ones"), "{}", again.text());
    server.stop().await;
}

async fn the_bytes_that_are_stored_count(engine: Engine) {
    let (sigstore, server) = (Sigstore::new(), TestServer::start(engine).await);
    let (_, client) = publisher(&server, "acme").await;
    let mut large = attestation(&sigstore, PROVENANCE, "1.0");
    large["more"] = json!("MORE");
    let numbers = vec!["1e15"; 50_000].join(",");
    let sent = json!([large]).to_string().replace("\"MORE\"", &format!("[{numbers}]"));
    assert!(sent.len() < 256 << 10, "its own length is allowed");
    let refused = upload(&client, "1.0", &sent).await;
    assert!(sentence(&refused, 400).contains("the attestations have more than 262144 bytes"), "{}", refused.text());
    require_nothing(&server).await;
    server.stop().await;
}

async fn only_readers_of_the_group_get_them(engine: Engine) {
    let sigstore = Sigstore::new();
    let server = trusting(engine, &sigstore).await;
    let (org, client) = publisher(&server, "acme").await;
    let sent = json!([attestation(&sigstore, PROVENANCE, "1.0")]).to_string();
    assert_eq!(upload(&client, "1.0", &sent).await.status, 200);
    client.publish("bar", "1.0").await;
    let path = format!("GET {}", integrity("1.0", "provenance"));
    let (_, outsider) = publisher(&server, "other").await;
    assert_eq!(outsider.at(&org).send(&path, &[], &[]).await.status, 403);
    assert_eq!(outsider.send(&path, &[], &[]).await.status, 404);
    assert_eq!(Client::anonymous(&server).send(&path, &[], &[]).await.status, 401);
    server.group(&org, "web").await;
    let below = client.at(&format!("{org}:web"));
    assert_eq!(below.send(&path, &[], &[]).await.status, 200);
    let dated = client.at(&format!("{org}@2001-01-01"));
    assert_eq!(dated.send(&path, &[], &[]).await.status, 404, "it had not been published then");
    for path in [
        "integrity/foo/1.1/foo-1.0-py3-none-any.whl/provenance",
        "integrity/bar/1.0/foo-1.0-py3-none-any.whl/provenance",
        "integrity/bar/1.0/bar-1.0-py3-none-any.whl/provenance",
        "integrity/foo/1.0/absent-1.0-py3-none-any.whl/provenance",
        "integrity/foo/1.0/foo-1.0-py3-none-any.whl/other",
    ] {
        assert_eq!(client.send(&format!("GET {path}"), &[], &[]).await.status, 404, "{path}");
    }
    let spelled = "GET integrity/Foo/1.0.0/foo-1.0-py3-none-any.whl/provenance";
    assert_eq!(client.send(spelled, &[], &[]).await.status, 200, "in another spelling");
    server.stop().await;
}

#[test]
fn a_damaged_trusted_root_ends_the_start() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    write!(file, "{{}}").expect("room for a file");
    let directory = tempfile::tempdir().expect("a directory");
    let start = |root: &std::path::Path| {
        // A server that starts all the same is ended.
        let output = std::process::Command::new("timeout")
            .args([
                "30",
                env!("CARGO_BIN_EXE_bowline"),
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
                "--data-dir",
            ])
            .arg(directory.path())
            .arg("--sigstore-trust-root")
            .arg(root)
            .output()
            .expect("the server runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_success, text) = start(file.path());
    assert!(!is_success && text.contains("--sigstore-trust-root") && text.contains("is no trusted root"), "{text}");
    let (is_success, text) = start(&directory.path().join("absent"));
    assert!(!is_success && text.contains("absent cannot be read"), "{text}");
}

by_engine!(
    a_verified_attestation_is_served_with_who_signed_it,
    an_attestation_that_does_not_verify_refuses_the_file,
    without_a_trusted_root_they_are_stored_unverified,
    npm_publishes_with_provenance,
    npm_refuses_what_is_not_the_provenance_of_the_version,
    attestations_neither_change_nor_outlive_their_file,
    what_was_stored_unverified_is_not_taken_for_verified,
    the_bytes_that_are_stored_count,
    only_readers_of_the_group_get_them,
);
