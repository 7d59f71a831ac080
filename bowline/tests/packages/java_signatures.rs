//! Signatures of Sigstore beside files of Maven's repository: verified, about the very file, in either order.

use bowline_testkit::sigstore::{PROVENANCE, SIGNER, Sigstore, WORKFLOW, statement};
use bowline_testkit::{Engine, RestReply, TestServer, by_engine, maven};
use serde_json::{Value, json};

use crate::attestations::trusting;
use crate::support::*;

const JAR: &[u8] = b"bytes of a jar";
const ROWS: &str = "SELECT count(*) FROM hosted_attestations";

/// Publishes a file of version 1.0 of `com.acme:tool`, by what follows its version.
async fn put(client: &Client, end: &str, bytes: &[u8]) -> RestReply {
    client.send(&format!("PUT com/acme/tool/1.0/tool-1.0{end}"), &[], bytes).await
}

async fn put_signature(client: &Client, bundle: &Value) -> RestReply {
    put(client, ".jar.sigstore.json", bundle.to_string().as_bytes()).await
}

/// One text out of the database.
async fn text(server: &TestServer, sql: &'static str) -> String {
    let db = &server.server().parts().storage.db;
    let read = db.read(|tx| {
        Box::pin(async move { tx.query_opt(sql, &[], |row| row.text(0).map_err(bowline_core::Error::from)).await })
    });
    read.await.expect("the database answers").expect("a row")
}

async fn a_signature_is_verified_after_its_file(engine: Engine) {
    let sigstore = Sigstore::new();
    let server = trusting(engine, &sigstore).await;
    let (_, client) = java_publisher(&server, "acme").await;
    assert_eq!(put(&client, ".jar", JAR).await.status, 201);
    let bundle = sigstore.file_bundle(&SIGNER, JAR);
    let published = put_signature(&client, &bundle).await;
    assert_eq!((published.status, &*published.text()), (201, ""));
    assert_eq!(published.header("x-bowline-attestations"), Some("verified"));
    assert_eq!(put_signature(&client, &bundle).await.status, 200, "it is there");
    let sent = client.send("GET com/acme/tool/1.0/tool-1.0.jar.sigstore.json", &[], &[]).await;
    assert_eq!((sent.status, sent.text()), (200, bundle.to_string()), "as it was sent");
    let digest = client.send("GET com/acme/tool/1.0/tool-1.0.jar.sigstore.json.sha1", &[], &[]).await;
    assert_eq!(digest.body.len(), 40);
    assert_eq!(text(&server, "SELECT identity FROM hosted_attestations").await, WORKFLOW);
    for (table, condition) in
        [("outbox", "event_type = 'dev.bowline.libraries.file.published.v1'"), ("audit", "method LIKE '%.PublishFile'")]
    {
        let sql = format!("SELECT count(*) FROM {table} WHERE {condition}");
        assert_eq!(number(&server, sql.leak()).await, 2, "{table}");
    }
    // A statement about the file is a signature as well.
    let pom = maven::pom("com.acme", "tool", "1.0", "");
    assert_eq!(put(&client, ".pom", pom.as_bytes()).await.status, 201);
    let stated = statement("any name", &[("sha256", &sha256(pom.as_bytes()))], PROVENANCE);
    let stated = sigstore.bundle(&SIGNER, &stated).to_string();
    assert_eq!(put(&client, ".pom.sigstore.json", stated.as_bytes()).await.status, 201);
    let kinds = "SELECT count(*) FROM hosted_attestations
                 WHERE predicate_type IN ('messageSignature', 'https://slsa.dev/provenance/v1') AND issuer IS NOT NULL";
    assert_eq!(number(&server, kinds).await, 2);
    assert_eq!(client.send("DELETE com/acme/tool/1.0/", &[], &[]).await.status, 204);
    assert_eq!(number(&server, ROWS).await, 0);
    server.stop().await;
}

async fn a_file_that_comes_after_its_signature_has_the_signed_bytes(engine: Engine) {
    let sigstore = Sigstore::new();
    let server = trusting(engine, &sigstore).await;
    let (_, client) = java_publisher(&server, "acme").await;
    // Maven sends files at the same time.
    let published = put_signature(&client, &sigstore.file_bundle(&SIGNER, JAR)).await;
    assert_eq!((published.status, published.header("x-bowline-attestations")), (201, Some("verified")));
    let before = stored_files(&server);
    let refused = put(&client, ".jar", b"other bytes").await;
    assert_eq!(
        sentence(&refused, 409),
        "1.0/tool-1.0.jar.sigstore.json is about other bytes than those of 1.0/tool-1.0.jar: publish another version"
    );
    assert_eq!((stored_files(&server), number(&server, "SELECT count(*) FROM uploads").await), (before, 0));
    assert_eq!(put(&client, ".jar", JAR).await.status, 201);
    assert_eq!(put(&client, "-sources.jar", b"other bytes").await.status, 201, "another file");
    // What does not say which bytes it is about must come after them.
    let mut silent = sigstore.file_bundle(&SIGNER, b"sources");
    silent["messageSignature"].as_object_mut().unwrap().remove("messageDigest");
    let silent = silent.to_string();
    let early = sentence(&put(&client, "-x.jar.sigstore.json", silent.as_bytes()).await, 400);
    assert!(early.ends_with("which bytes it is about: send 1.0/tool-1.0-x.jar before it"), "{early}");
    assert_eq!(put(&client, "-x.jar", b"sources").await.status, 201);
    assert_eq!(put(&client, "-x.jar.sigstore.json", silent.as_bytes()).await.status, 201);
    server.stop().await;
}

async fn of_a_file_and_a_signature_of_other_bytes_at_the_same_time_one_is_refused(engine: Engine) {
    let (sigstore, server) = (Sigstore::new(), TestServer::start(engine).await);
    let (_, client) = java_publisher(&server, "acme").await;
    let bundle = sigstore.file_bundle(&SIGNER, JAR).to_string();
    let pairs = (0..40).map(async |pair| {
        let (file, signature) = (format!("-{pair}.jar"), format!("-{pair}.jar.sigstore.json"));
        tokio::join!(put(&client, &file, b"other bytes"), put(&client, &signature, bundle.as_bytes()))
    });
    for (file, signature) in futures_util::future::join_all(pairs).await {
        // A signature is refused when it is read, or, if its file came meanwhile, when it is published.
        assert!(
            matches!((file.status, signature.status), (201, 400 | 409) | (409, 201)),
            "{} {}, {} {}",
            file.status,
            file.text(),
            signature.status,
            signature.text()
        );
    }
    server.stop().await;
}

async fn a_signature_that_does_not_hold_is_refused(engine: Engine) {
    let sigstore = Sigstore::new();
    let server = trusting(engine, &sigstore).await;
    let (_, client) = java_publisher(&server, "acme").await;
    assert_eq!(put(&client, ".jar", JAR).await.status, 201);
    let before = (stored_files(&server), number(&server, "SELECT count(*) FROM hosted_files").await);
    let good = sigstore.file_bundle(&SIGNER, JAR);
    let with = |pointer: &str, value: &Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).expect("a member") = value.clone();
        changed
    };
    let other = sigstore.file_bundle(&SIGNER, JAR);
    let about_other = sigstore.file_bundle(&SIGNER, b"other bytes");
    let mut silent = about_other.clone();
    silent["messageSignature"].as_object_mut().unwrap().remove("messageDigest");
    let unverified = "tool-1.0.jar.sigstore.json does not verify by the trusted root of this server";
    let stated = statement("tool-1.0.jar", &[("sha256", &"ab".repeat(32))], PROVENANCE);
    for (bundle, why) in [
        (about_other.clone(), "is about other bytes than those of 1.0/tool-1.0.jar: its SHA-256 differs"),
        (sigstore.bundle(&SIGNER, &stated), "is about other bytes than those of 1.0/tool-1.0.jar"),
        (silent, unverified),
        (Sigstore::new().file_bundle(&SIGNER, JAR), unverified),
        (with("/messageSignature/signature", &other["messageSignature"]["signature"]), unverified),
        (with("/verificationMaterial/tlogEntries", &json!([])), unverified),
        (with("/verificationMaterial/tlogEntries", &other["verificationMaterial"]["tlogEntries"]), unverified),
        (with("/verificationMaterial/certificate", &other["verificationMaterial"]["certificate"]), unverified),
        (with("/messageSignature/messageDigest/algorithm", &json!("SHA2_512")), "SHA2_256"),
        (json!({}), "must have verificationMaterial as an object"),
        (json!("text"), "must have the bundle as an object"),
    ] {
        let refused = sentence(&put_signature(&client, &bundle).await, 400);
        assert!(refused.starts_with("1.0/tool-1.0.jar.sigstore.json ") && refused.contains(why), "{why}: {refused}");
    }
    let large = format!("\"{}\"", "x".repeat(256 << 10));
    assert_eq!(put(&client, ".jar.sigstore.json", large.as_bytes()).await.status, 413);
    let damaged = sentence(&put(&client, ".jar.sigstore.json", b"{").await, 400);
    assert!(damaged.contains("is no JSON"), "{damaged}");
    let after = (stored_files(&server), number(&server, "SELECT count(*) FROM hosted_files").await);
    assert_eq!((after, number(&server, ROWS).await), (before, 0));
    assert_eq!(number(&server, "SELECT count(*) FROM uploads").await, 0);
    assert_eq!(put_signature(&client, &good).await.status, 201);
    server.stop().await;
}

async fn without_a_trusted_root_a_signature_is_stored_unverified(engine: Engine) {
    let (sigstore, server) = (Sigstore::new(), TestServer::start(engine).await);
    let (_, client) = java_publisher(&server, "acme").await;
    assert_eq!(put(&client, ".jar", JAR).await.status, 201);
    let other = sentence(&put_signature(&client, &sigstore.file_bundle(&SIGNER, b"other bytes")).await, 400);
    assert!(other.contains("is about other bytes"), "{other}");
    let published = put_signature(&client, &sigstore.file_bundle(&SIGNER, JAR)).await;
    assert_eq!((published.status, published.header("x-bowline-attestations")), (201, Some("unverified")));
    assert!(published.text().contains("not verified: this server has no trusted root"), "{}", published.text());
    let unverified = "SELECT count(*) FROM hosted_attestations WHERE identity IS NULL AND subject_sha256 <> ''";
    assert_eq!(number(&server, unverified).await, 1);
    server.stop().await;
}

async fn signatures_go_with_old_builds_of_a_snapshot(engine: Engine) {
    let (sigstore, server) = (Sigstore::new(), TestServer::start(engine).await);
    let (_, client) = java_publisher(&server, "acme").await;
    let pom = maven::pom("com.acme", "tool", "1-SNAPSHOT", "");
    let bundle = sigstore.file_bundle(&SIGNER, pom.as_bytes()).to_string();
    for build in 1..=21 {
        let base = format!("PUT com/acme/tool/1-SNAPSHOT/tool-1-20260102.0304{build:02}-{build}.pom");
        assert_eq!(client.send(&format!("{base}.sigstore.json"), &[], bundle.as_bytes()).await.status, 201, "{build}");
        assert_eq!(client.send(&base, &[], pom.as_bytes()).await.status, 201, "{build}");
    }
    assert_eq!(number(&server, ROWS).await, 20, "that of build 1 went");
    server.stop().await;
}

by_engine!(
    a_signature_is_verified_after_its_file,
    a_file_that_comes_after_its_signature_has_the_signed_bytes,
    of_a_file_and_a_signature_of_other_bytes_at_the_same_time_one_is_refused,
    a_signature_that_does_not_hold_is_refused,
    without_a_trusted_root_a_signature_is_stored_unverified,
    signatures_go_with_old_builds_of_a_snapshot,
);
