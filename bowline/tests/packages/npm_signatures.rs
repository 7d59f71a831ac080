//! Signatures of JavaScript packages, verified as `npm audit signatures` does: each by a listed key that had not expired.

use std::time::Duration;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, ParsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_authn::package_key::PackageSigner;
use bowline_core::rfc3339::parse_micros;
use bowline_core::{Clock as _, Error};
use bowline_libraries::hosting::{removed_keys, signing};
use bowline_testkit::{Engine, TestServer, by_engine, each_engine};
use serde_json::{Value, json};

use crate::support::*;

/// The list of keys at a group, which must be there.
pub(crate) async fn keys(client: &Client) -> Vec<Value> {
    let reply = client.send("GET -/npm/v1/keys", &[], &[]).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{}", reply.text());
    reply.json()["keys"].as_array().unwrap().clone()
}

/// Ids of the keys that the signatures of a version name.
pub(crate) fn signers(document: &Value, version: &str) -> Vec<String> {
    let signatures = document["versions"][version]["dist"]["signatures"].as_array().cloned().unwrap_or_default();
    signatures.iter().map(|signature| signature["keyid"].as_str().unwrap().to_owned()).collect()
}

/// A time as npm compares it: whole milliseconds.
fn millis(text: &str) -> Option<i64> {
    parse_micros(text).map(|micros| micros.div_euclid(1000))
}

/// Whether a version is signed, as npm decides it; an error if npm would refuse all packages for it.
pub(crate) fn verified(keys: &[Value], document: &Value, version: &str) -> Result<bool, String> {
    let dist = &document["versions"][version]["dist"];
    let message = format!("{}@{version}:{}", document["name"].as_str().unwrap(), dist["integrity"].as_str().unwrap());
    let published_at = millis(document["time"][version].as_str().unwrap_or("2015-01-01T00:00:00.000Z")).unwrap();
    let signatures = dist["signatures"].as_array().cloned().unwrap_or_default();
    let mut is_verified = !signatures.is_empty();
    for signature in &signatures {
        let key = keys.iter().find(|key| key["keyid"] == signature["keyid"]);
        let key = key.ok_or_else(|| format!("no key {}", signature["keyid"]))?;
        if key["expires"].as_str().and_then(millis).is_some_and(|end| published_at >= end) {
            return Err(format!("{} has expired", signature["keyid"]));
        }
        let der = STANDARD.decode(key["key"].as_str().unwrap()).unwrap();
        let sig = STANDARD.decode(signature["sig"].as_str().unwrap()).unwrap();
        // The point is the last part of the key.
        let public_key = ParsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &der[der.len() - 65..]);
        let public_key = public_key.map_err(|error| format!("{} is no key: {error}", signature["keyid"]))?;
        is_verified &= public_key.verify_sig(message.as_bytes(), &sig).is_ok();
    }
    Ok(is_verified)
}

/// Changes rows behind the server's back, and has it make the pages of groups again.
async fn tamper(server: &TestServer, sql: &'static str) {
    let written = server.server().parts().storage.db.write(move |tx| {
        Box::pin(async move {
            tx.execute(sql, &[]).await?;
            Ok::<_, Error>(tx.execute("UPDATE package_repositories SET revision = revision + 1", &[]).await?)
        })
    });
    written.await.unwrap();
}

async fn a_published_version_is_signed(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    client.npm_publish("@acme/foo", "1.0.0", "latest").await;
    client.npm_publish("@acme/foo", "1.1.0", "latest").await;
    let listed = keys(&client).await;
    let [key] = listed.as_slice() else { panic!("{listed:?}") };
    let type_of = |member: &str| key[member].as_str().unwrap().to_owned();
    assert_eq!(
        (&key["expires"], type_of("keytype"), type_of("scheme")),
        (&Value::Null, type_of("scheme"), "ecdsa-sha2-nistp256".into())
    );
    assert!(type_of("keyid").starts_with("SHA256:"), "{key}");
    let document = client.document("@acme%2ffoo").await;
    for version in ["1.0.0", "1.1.0"] {
        assert_eq!(verified(&listed, &document, version), Ok(true), "{document}");
    }
    // Not of other bytes, and not of another version.
    let mut other = document.clone();
    other["versions"]["1.0.0"]["dist"]["signatures"] = document["versions"]["1.1.0"]["dist"]["signatures"].clone();
    assert_eq!(verified(&listed, &other, "1.0.0"), Ok(false));

    let signatures = document["versions"]["1.0.0"]["dist"]["signatures"].clone();
    let short = [("accept", "application/vnd.npm.install-v1+json")];
    let short = client.send("GET @acme%2ffoo", &short, &[]).await.json();
    assert_eq!(short["versions"]["1.0.0"]["dist"]["signatures"], signatures);
    assert_eq!(client.document("@acme/foo/1.0.0").await["dist"]["signatures"], signatures);
    let mut own = client.document("@acme%2ffoo?write=true").await;
    assert_eq!(own["versions"]["1.0.0"]["dist"]["signatures"], signatures);
    own["versions"]["1.0.0"]["deprecated"] = json!("Use 1.1.0.");
    assert_eq!(client.put("@acme%2ffoo", &own).await.status, 201);
    let tagged = client.send("PUT -/package/@acme%2ffoo/dist-tags/old", &[], b"\"1.0.0\"").await;
    assert_eq!(tagged.status, 201, "{}", tagged.text());
    let changed = client.document("@acme%2ffoo").await;
    assert_eq!(changed["versions"]["1.0.0"]["deprecated"], "Use 1.1.0.");
    assert_eq!(changed["versions"]["1.0.0"]["dist"]["signatures"], signatures);
}

async fn changed_rows_do_not_verify(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    client.npm_publish("foo", "1.0.0", "latest").await;
    let (listed, before) = (keys(&client).await, client.document("foo").await);
    assert_eq!(verified(&listed, &before, "1.0.0"), Ok(true));
    tamper(server, "UPDATE hosted_manifests SET sha512 = 'ff' || substr(sha512, 3)").await;
    let after = client.document("foo").await;
    assert_ne!(after["versions"]["1.0.0"]["dist"]["integrity"], before["versions"]["1.0.0"]["dist"]["integrity"]);
    assert_eq!(verified(&listed, &after, "1.0.0"), Ok(false), "{after}");
}

async fn what_was_published_before_is_signed(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    client.npm_publish("foo", "1.0.0", "latest").await;
    cargo_publisher(server, "crates").await.1.cargo_publish("krate", "1.0.0").await;
    tamper(server, "UPDATE hosted_manifests SET signature = NULL, signature_keyid = '' WHERE package = 'foo'").await;
    let listed = keys(&client).await;
    assert_eq!(verified(&listed, &client.document("foo").await, "1.0.0"), Ok(true), "signed as it is sent");
    server.server().parts().package_hosts.sign_unsigned().await.unwrap();
    assert_eq!(number(server, "SELECT count(*) FROM hosted_manifests WHERE signature IS NULL").await, 0);
    tamper(server, "UPDATE package_repositories SET revision = revision + 1").await;
    let document = client.document("foo").await;
    assert_eq!(verified(&listed, &document, "1.0.0"), Ok(true));
    tamper(server, "UPDATE package_repositories SET revision = revision + 1").await;
    assert_eq!(client.document("foo").await, document, "stored now");
    assert_eq!(
        number(server, "SELECT count(*) FROM hosted_manifests WHERE length(signature) = 0").await,
        1,
        "the crate"
    );
}

/// Makes another key the one that signs.
pub(crate) async fn rotate(server: &TestServer) {
    let (parts, now) = (server.server().parts(), server.clock().now());
    let wrapping = parts.storage.wrapping_key.as_bytes().to_vec();
    let written = parts.storage.db.write(move |tx| {
        let wrapping = wrapping.clone();
        Box::pin(async move {
            let wrapping = bowline_authn::crypto::KeyEncryptionKey::from_bytes(&wrapping).map_err(Error::internal)?;
            let key = PackageSigner::generate().map_err(Error::internal)?;
            signing::replace_key(tx, &key, &wrapping, now).await
        })
    });
    written.await.unwrap();
}

async fn a_key_that_was_replaced_verifies_what_it_signed(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    client.npm_publish("foo", "1.0.0", "latest").await;
    let before = client.document("foo").await;
    server.clock().advance(Duration::from_secs(1));
    rotate(server).await;
    server.clock().advance(Duration::from_secs(1));
    client.npm_publish("foo", "1.1.0", "latest").await;
    let listed = keys(&client).await;
    let ends: Vec<bool> = listed.iter().map(|key| key["expires"].is_string()).collect();
    assert_eq!(ends, [false, true], "{listed:?}");
    let document = client.document("foo").await;
    for (version, key) in [("1.0.0", &listed[1]), ("1.1.0", &listed[0])] {
        assert_eq!(signers(&document, version), [key["keyid"].as_str().unwrap()]);
        assert_eq!(verified(&listed, &document, version), Ok(true), "{version}");
    }
    assert_eq!(document["versions"]["1.0.0"], before["versions"]["1.0.0"]);
    let sealed = "SELECT count(*) FROM package_signing_keys WHERE length(sealed) > 0";
    assert_eq!(number(server, sealed).await, 1, "the private half of the old one is gone");
}

/// Removes a key; how many versions that transaction leaves without a signature.
pub(crate) async fn remove(server: &TestServer, kid: &str) -> i64 {
    let (kid, now) = (kid.to_owned(), server.clock().now());
    let written = server.server().parts().storage.db.write(move |tx| {
        let kid = kid.clone();
        Box::pin(async move {
            assert!(removed_keys::remove_key(tx, &kid, now).await?);
            let sql = "SELECT count(*) FROM hosted_manifests WHERE signature IS NULL";
            tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await
        })
    });
    written.await.unwrap().unwrap()
}

async fn what_a_removed_key_signed_is_signed_again(server: &TestServer) {
    let (_, client) = npm_publisher(server, "acme").await;
    client.npm_publish("foo", "1.0.0", "latest").await;
    let removed = keys(&client).await[0]["keyid"].as_str().unwrap().to_owned();
    rotate(server).await;
    assert_eq!(remove(server, &removed).await, 0, "what it signed is forgotten later, so that the removal is short");
    let listed = keys(&client).await;
    assert!(listed.len() == 1 && listed[0]["keyid"] != json!(removed), "{listed:?}");
    assert_eq!(verified(&listed, &client.document("foo").await, "1.0.0"), Ok(true), "signed as it is sent");
    server.server().parts().package_hosts.sign_unsigned().await.unwrap();
    assert_eq!(number(server, "SELECT count(*) FROM hosted_manifests WHERE signature IS NULL").await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM package_signing_keys").await, 1, "nothing is left of it");
    tamper(server, "UPDATE package_repositories SET revision = revision + 1").await;
    let document = client.document("foo").await;
    assert_eq!(verified(&listed, &document, "1.0.0"), Ok(true));
    assert_eq!(signers(&document, "1.0.0"), [listed[0]["keyid"].as_str().unwrap()]);
}

async fn keys_are_for_those_who_read_packages(server: &TestServer) {
    let (org, client) = npm_publisher(server, "acme").await;
    let path = "GET -/npm/v1/keys";
    assert_eq!(keys(&client.at(&org)).await, keys(&client).await);
    sentence(&Client::anonymous(server).javascript().send(path, &[], &[]).await, 401);
    let (_, other) = npm_publisher(server, "other").await;
    assert_eq!(keys(&other).await, keys(&client).await, "one key of the installation");
    sentence(&other.at(&org).send(path, &[], &[]).await, 403);
    let reader = Client::of(server, &server.actor("libraries.python.pull", &org).await).javascript();
    sentence(&reader.send(path, &[], &[]).await, 403);
    let put = client.send("PUT -/npm/v1/keys", &[], b"{}").await;
    assert_eq!((put.status, put.header("allow")), (405, Some("GET, HEAD")));
}

async fn a_signature_stays_the_same_after_a_restart(engine: Engine) {
    let server = TestServer::start(engine).await;
    let (org, client) = npm_publisher(&server, "acme").await;
    client.npm_publish("foo", "1.0.0", "latest").await;
    let first = client.send("GET foo", &[], &[]).await;
    let listed = keys(&client).await;
    let server = server.restarted().await;
    let client = Client::of(&server, &server.actor("libraries.javascript.push", &org).await).javascript();
    let known = [("if-none-match", first.header("etag").unwrap())];
    let again = client.send("GET foo", &known, &[]).await;
    // The address of the server is another one, so the page is.
    let document = if again.status == 304 { first.json() } else { again.json() };
    let signatures = |document: &Value| document["versions"]["1.0.0"]["dist"]["signatures"].clone();
    assert_eq!(signatures(&document), signatures(&first.json()));
    assert_eq!(keys(&client).await, listed);
    assert_eq!(verified(&listed, &document, "1.0.0"), Ok(true));
    server.stop().await;
}

each_engine!(
    a_key_that_was_replaced_verifies_what_it_signed,
    a_published_version_is_signed,
    changed_rows_do_not_verify,
    keys_are_for_those_who_read_packages,
    what_a_removed_key_signed_is_signed_again,
    what_was_published_before_is_signed,
);

by_engine!(a_signature_stays_the_same_after_a_restart);
