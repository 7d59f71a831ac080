//! Signatures of JavaScript packages of another registry: its own where clients can verify them, else those of this server.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_authn::package_key::PackageSigner;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::fake_index::FakeIndex;
use crate::npm_signatures::{keys, remove, rotate, signers, verified};
use crate::support::*;

const MINUTES: Duration = Duration::from_secs(301);
/// Where the list of keys is at an upstream.
const LIST: &str = "-/npm/v1/keys";

/// An organization with an upstream, someone who may publish there, and its owner.
async fn installer(server: &TestServer, name: &str, index: &FakeIndex) -> (String, Client, Actor) {
    let (org, client) = npm_publisher(server, name).await;
    let owner = server.actor("owner", &org).await;
    index.npm_serve(&owner, &org).await;
    (org, client, owner)
}

/// A key as a list has it, under an id.
fn listed(keyid: &str, key: &PackageSigner, expires: Value) -> Value {
    let kind = "ecdsa-sha2-nistp256";
    let public = STANDARD.encode(key.public_key());
    json!({ "keyid": keyid, "key": public, "keytype": kind, "scheme": kind, "expires": expires })
}

/// Has the upstream list these keys.
fn list(index: &FakeIndex, keys: &[Value]) {
    index.state().documents.insert(LIST.into(), json!({ "keys": keys }));
}

/// Has the upstream sign a version of `foo`, by keys under these ids.
fn sign(index: &FakeIndex, version: &str, keys: &[(&str, &PackageSigner)]) -> Value {
    let mut state = index.state();
    let dist = &mut state.documents.get_mut("foo").unwrap()["versions"][version]["dist"];
    let message = format!("foo@{version}:{}", dist["integrity"].as_str().unwrap());
    let signature = |(keyid, key): &(&str, &PackageSigner)| json!({ "keyid": keyid, "sig": STANDARD.encode(key.sign(message.as_bytes()).unwrap()) });
    dist["signatures"] = keys.iter().map(signature).collect();
    dist["signatures"].clone()
}

fn signatures(document: &Value, version: &str) -> Value {
    document["versions"][version]["dist"]["signatures"].clone()
}

async fn signatures_and_keys_of_an_upstream_are_passed_on(server: &TestServer) {
    let (index, key, old) =
        (FakeIndex::start().await, PackageSigner::generate().unwrap(), PackageSigner::generate().unwrap());
    for (version, days) in [("1.0.0", 30), ("1.1.0", 3), ("1.2.0", 2), ("1.3.0", 1)] {
        index.npm_publish(server, "foo", version, days);
    }
    let end = bowline_core::rfc3339::text(
        bowline_core::Clock::now(server.clock()) - 10 * 24 * 3600 * 1_000_000,
        bowline_core::rfc3339::Digits::Fewest,
    );
    list(&index, &[listed("theirs", &key, Value::Null), listed("old", &old, json!(end))]);
    let both = sign(&index, "1.0.0", &[("theirs", &key), ("old", &old)]);
    // With a key that had expired; with one that is not listed besides; with such a one alone.
    sign(&index, "1.1.0", &[("old", &old)]);
    let two = sign(&index, "1.2.0", &[("theirs", &key), ("unknown", &old)]);
    sign(&index, "1.3.0", &[("unknown", &old)]);
    let (_, client, _) = installer(server, "acme", &index).await;
    let all = keys(&client).await;
    let ids: Vec<&str> = all.iter().map(|key| key["keyid"].as_str().unwrap()).collect();
    assert_eq!(ids[1..], ["theirs", "old"]);
    assert_eq!((&all[1]["expires"], &all[2]["expires"]), (&Value::Null, &json!(end)));
    let document = client.document("foo").await;
    assert_eq!((signatures(&document, "1.0.0"), signatures(&document, "1.2.0")), (both, json!([two[0]])));
    assert_eq!(
        (signers(&document, "1.1.0"), signers(&document, "1.3.0")),
        (vec![ids[0].to_owned()], vec![ids[0].to_owned()])
    );
    for version in ["1.0.0", "1.1.0", "1.2.0", "1.3.0"] {
        assert_eq!(verified(&all, &document, version), Ok(true), "{version}");
    }
    // A wrong signature of a listed key is passed on, for clients to see.
    index.state().documents.get_mut("foo").unwrap()["versions"]["1.0.0"]["dist"]["signatures"] = json!([two[0]]);
    server.clock().advance(MINUTES);
    let document = client.document("foo").await;
    assert_eq!(verified(&keys(&client).await, &document, "1.0.0"), Ok(false), "{document}");
}

async fn no_upstream_ends_the_audit_of_others(server: &TestServer) {
    let (index, key) = (FakeIndex::start().await, PackageSigner::generate().unwrap());
    let versions = ["1.0.0", "1.1.0", "1.2.0"];
    for version in versions {
        index.npm_publish(server, "foo", version, 30);
    }
    // In one millisecond before the end of the key; without a time; with a key that is not on the curve.
    let mut off_curve = key.public_key().to_vec();
    *off_curve.last_mut().unwrap() ^= 1;
    let mut off_curve = json!({ "key": STANDARD.encode(off_curve) });
    for (member, value) in listed("off", &key, Value::Null).as_object().unwrap() {
        if member != "key" {
            off_curve[member] = value.clone();
        }
    }
    let early = listed("early", &key, json!("2015-01-01T00:00:00.000Z"));
    list(&index, &[listed("ends", &key, json!("2023-11-01T00:00:00.123900Z")), early, off_curve]);
    for (version, keyid) in [("1.0.0", "ends"), ("1.1.0", "early"), ("1.2.0", "off")] {
        sign(&index, version, &[(keyid, &key)]);
    }
    let mut document = index.state().documents["foo"].clone();
    document["time"]["1.0.0"] = json!("2023-11-01T00:00:00.123400Z");
    document["time"].as_object_mut().unwrap().remove("1.1.0");
    index.state().documents.insert("foo".into(), document);
    let (_, client, _) = installer(server, "acme", &index).await;
    let (all, document) = (keys(&client).await, client.document("foo").await);
    let ids: Vec<&str> = all.iter().map(|key| key["keyid"].as_str().unwrap()).collect();
    assert_eq!(ids[1..], ["ends", "early"]);
    for version in versions {
        assert_eq!(signers(&document, version), ids[..1], "{document}");
        assert_eq!(verified(&all, &document, version), Ok(true), "{document}");
    }
}

async fn an_upstream_without_keys_is_signed_for(server: &TestServer) {
    let (index, key) = (FakeIndex::start().await, PackageSigner::generate().unwrap());
    index.npm_publish(server, "foo", "1.0.0", 30);
    index.npm_publish(server, "foo", "1.1.0", 20);
    sign(&index, "1.1.0", &[("theirs", &key)]);
    let (_, client, _) = installer(server, "acme", &index).await;
    let first = client.document("foo").await;
    assert_eq!(index.seen(), ["/npm/foo"], "keys are requested for those who ask for keys");
    let own = keys(&client).await;
    assert_eq!((own.len(), index.seen()), (1, vec![format!("/npm/{LIST}")]));
    for version in ["1.0.0", "1.1.0"] {
        assert_eq!(verified(&own, &first, version), Ok(true), "{first}");
    }
    keys(&client).await;
    assert_eq!(index.seen(), Vec::<String>::new(), "that there are none is known for a while");
    // What the upstream confirms, and what it adds to, has the signatures of before.
    server.clock().advance(MINUTES);
    assert_eq!(client.document("foo").await["versions"], first["versions"]);
    index.npm_publish(server, "foo", "1.2.0", 1);
    server.clock().advance(MINUTES);
    let second = client.document("foo").await;
    assert_eq!(second["versions"]["1.0.0"], first["versions"]["1.0.0"]);
    assert_eq!(verified(&own, &second, "1.2.0"), Ok(true));
    // Once it lists keys, its signatures are passed on.
    list(&index, &[listed("theirs", &key, Value::Null)]);
    assert_eq!(keys(&client).await.len(), 2);
    assert_eq!(signers(&client.document("foo").await, "1.1.0"), ["theirs"]);
}

async fn the_signature_is_of_the_bytes_that_are_served(server: &TestServer) {
    let (index, key) = (FakeIndex::start().await, PackageSigner::generate().unwrap());
    let bytes = index.npm_publish(server, "foo", "1.0.0", 30);
    list(&index, &[listed("theirs", &key, Value::Null)]);
    sign(&index, "1.0.0", &[("theirs", &key)]);
    let (_, client, _) = installer(server, "acme", &index).await;
    let all = keys(&client).await;
    let before = client.document("foo").await;
    assert_eq!(client.npm_file(server, &before, "1.0.0").await.body, bytes);
    // The upstream changes the file of a version that is stored, and signs it again.
    index.npm_list(server, ("foo", "1.0.0"), 30, bytes.iter().rev().copied().collect());
    sign(&index, "1.0.0", &[("theirs", &key)]);
    server.clock().advance(MINUTES);
    let after = client.document("foo").await;
    assert_eq!(signers(&after, "1.0.0"), [all[0]["keyid"].as_str().unwrap()]);
    assert_eq!(verified(&all, &after, "1.0.0"), Ok(true), "{after}");
    // An integrity with another digest besides is not what clients see here.
    index.npm_publish(server, "foo", "2.0.0", 30);
    let integrity = {
        let mut state = index.state();
        let dist = &mut state.documents.get_mut("foo").unwrap()["versions"]["2.0.0"]["dist"];
        let alone = dist["integrity"].as_str().unwrap().to_owned();
        dist["integrity"] = json!(format!("sha1-3rSDcKPo2dFx6Yk/KmFBxKmqM9k= {alone}"));
        alone
    };
    sign(&index, "2.0.0", &[("theirs", &key)]);
    server.clock().advance(MINUTES);
    let (all, document) = (keys(&client).await, client.document("foo").await);
    assert_eq!(document["versions"]["2.0.0"]["dist"]["integrity"], json!(integrity));
    assert_eq!(verified(&all, &document, "2.0.0"), Ok(true), "{document}");
}

async fn no_upstream_takes_the_id_of_a_key(server: &TestServer) {
    let (index, key) = (FakeIndex::start().await, PackageSigner::generate().unwrap());
    index.npm_publish(server, "foo", "1.0.0", 30);
    let (org, client, owner) = installer(server, "acme", &index).await;
    let own = keys(&client).await;
    let keyid = own[0]["keyid"].as_str().unwrap();
    sign(&index, "1.0.0", &[(keyid, &key)]);
    list(&index, &[listed(keyid, &key, Value::Null), listed("theirs", &key, Value::Null)]);
    server.clock().advance(MINUTES);
    let all = keys(&client).await;
    assert_eq!((all.len(), &all[0], &all[1]["keyid"]), (2, &own[0], &json!("theirs")));
    let document = client.document("foo").await;
    assert_eq!(signers(&document, "1.0.0"), [keyid]);
    assert_eq!(verified(&all, &document, "1.0.0"), Ok(true), "{document}");

    // Of two upstreams, the first has the id.
    let (second, other) = (FakeIndex::start().await, PackageSigner::generate().unwrap());
    second.npm_publish(server, "bar", "1.0.0", 30);
    list(&second, &[listed("theirs", &other, Value::Null)]);
    let body =
        json!({ "name": "second", "ecosystem": "JAVASCRIPT", "url": format!("{}/npm/", second.base), "position": 5 });
    assert_eq!(crate::fake_index::set_upstream(&owner, &org, body).await.0, 200);
    let mut bar = second.state().documents["bar"].clone();
    let message = format!("bar@1.0.0:{}", bar["versions"]["1.0.0"]["dist"]["integrity"].as_str().unwrap());
    let sig = STANDARD.encode(other.sign(message.as_bytes()).unwrap());
    bar["versions"]["1.0.0"]["dist"]["signatures"] = json!([{ "keyid": "theirs", "sig": sig }]);
    second.state().documents.insert("bar".into(), bar);
    let (all, document) = (keys(&client).await, client.document("bar").await);
    assert_eq!((all.len(), &all[1]["key"]), (2, &json!(STANDARD.encode(key.public_key()))));
    assert_eq!(verified(&all, &document, "1.0.0"), Ok(true), "{document}");
}

async fn keys_are_listed_while_upstreams_are_silent(server: &TestServer) {
    let (index, second) = (FakeIndex::start().await, FakeIndex::start().await);
    let (org, client, owner) = installer(server, "acme", &index).await;
    let body =
        json!({ "name": "second", "ecosystem": "JAVASCRIPT", "url": format!("{}/npm/", second.base), "position": 5 });
    assert_eq!(crate::fake_index::set_upstream(&owner, &org, body).await.0, 200);
    for index in [&index, &second] {
        list(index, &[listed("theirs", &PackageSigner::generate().unwrap(), Value::Null)]);
        index.state().delay = Duration::from_secs(30);
    }
    let listing = tokio::time::timeout(Duration::from_secs(15), keys(&client));
    assert_eq!(listing.await.expect("an answer without those of the upstreams").len(), 1);
    // Both were requested, once.
    assert_eq!((index.seen(), second.seen()), (vec![format!("/npm/{LIST}")], vec![format!("/npm/{LIST}")]));
    assert_eq!(keys(&client).await.len(), 1);
    assert_eq!((index.seen(), second.seen()), (vec![], vec![]), "silent for some seconds");
}

async fn documents_are_signed_again_after_a_key_was_removed(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.npm_publish(server, "foo", "1.0.0", 30);
    let (_, client, _) = installer(server, "acme", &index).await;
    client.document("foo").await;
    let removed = keys(&client).await[0]["keyid"].as_str().unwrap().to_owned();
    let with_tags = "SELECT count(*) FROM upstream_documents WHERE etag <> ''";
    assert_eq!(number(server, with_tags).await, 1);
    rotate(server).await;
    remove(server, &removed).await;
    server.server().parts().package_hosts.sign_unsigned().await.unwrap();
    assert_eq!(number(server, with_tags).await, 0, "requested whole next");
    let signed = signatures(&client.document("foo").await, "1.0.0");
    assert_ne!(signed[0]["keyid"], json!(removed));
    server.clock().advance(MINUTES);
    let (listed, first) = (keys(&client).await, client.document("foo").await);
    assert_eq!(verified(&listed, &first, "1.0.0"), Ok(true));
    assert_eq!(number(server, with_tags).await, 1);
    // Stored now: a document that is made again has it.
    index.npm_publish(server, "foo", "1.1.0", 1);
    server.clock().advance(MINUTES);
    assert_eq!(client.document("foo").await["versions"]["1.0.0"], first["versions"]["1.0.0"]);
}

async fn keys_of_an_upstream_outlast_it_and_are_of_one_organization(server: &TestServer) {
    let (index, key) = (FakeIndex::start().await, PackageSigner::generate().unwrap());
    index.npm_publish(server, "foo", "1.0.0", 30);
    list(&index, &[listed("theirs", &key, Value::Null)]);
    sign(&index, "1.0.0", &[("theirs", &key)]);
    let (org, client, _) = installer(server, "acme", &index).await;
    let all = keys(&client).await;
    assert_eq!(all.len(), 2);
    client.document("foo").await;
    let (_, other) = npm_publisher(server, "other").await;
    assert_eq!(keys(&other).await, all[..1]);
    sentence(&other.at(&org).send("GET -/npm/v1/keys", &[], &[]).await, 403);
    assert_eq!(client.send(&format!("GET {}", LIST.replace('/', "%2f")), &[], &[]).await.json()["keys"], json!(all));

    index.state().status = Some(503);
    server.clock().advance(MINUTES);
    let document = client.document("foo").await;
    assert_eq!((keys(&client).await, signers(&document, "1.0.0")), (all.clone(), vec!["theirs".to_owned()]));
    // After a week, neither the key nor signatures by it are shown.
    let [_, old] = all.as_slice() else { panic!("{all:?}") };
    server.clock().advance(Duration::from_secs(7 * 24 * 3600));
    let client = Client::of(server, &server.actor("libraries.javascript.pull", &org).await).javascript();
    assert!(!keys(&client).await.contains(old));
    // A list that cannot be read lists no key.
    index.state().status = None;
    index.state().documents.insert(LIST.into(), json!([7]));
    server.clock().advance(Duration::from_secs(11));
    let (all, document) = (keys(&client).await, client.document("foo").await);
    assert_eq!((all.len(), verified(&all, &document, "1.0.0")), (1, Ok(true)));
}

async fn documents_with_many_versions_are_signed_in_turn(server: &TestServer) {
    let index = FakeIndex::start().await;
    for name in ["few", "long", "many"] {
        index.npm_publish(server, name, "1.0.0", 30);
    }
    index.state().documents.get_mut("long").unwrap()["readme"] = json!("x".repeat(1 << 20));
    let first = index.state().documents["many"]["versions"]["1.0.0"].clone();
    for patch in 1..=500 {
        index.state().documents.get_mut("many").unwrap()["versions"][format!("1.0.{patch}")] = first.clone();
    }
    let (org, client, _) = installer(server, "acme", &index).await;
    let turns = server.server().parts().package_hosts.signing_turns();
    let taken = turns.take(Some(org), 2).expect("all of the organization");
    client.document("few").await;
    let requested = async { tokio::join!(client.document("long"), client.document("many")) };
    let mut requested = std::pin::pin!(requested);
    let early = tokio::time::timeout(Duration::from_millis(500), &mut requested).await;
    assert!(early.is_err(), "neither is signed without a turn");
    let stored = "SELECT count(*) FROM upstream_documents WHERE package IN ('long', 'many')";
    assert_eq!(number(server, stored).await, 0);
    drop(taken);
    let (long, many) = requested.await;
    assert_eq!((signatures(&long, "1.0.0").is_array(), signatures(&many, "1.0.500").is_array()), (true, true));
}

each_engine!(
    an_upstream_without_keys_is_signed_for,
    documents_are_signed_again_after_a_key_was_removed,
    documents_with_many_versions_are_signed_in_turn,
    keys_are_listed_while_upstreams_are_silent,
    keys_of_an_upstream_outlast_it_and_are_of_one_organization,
    no_upstream_ends_the_audit_of_others,
    no_upstream_takes_the_id_of_a_key,
    signatures_and_keys_of_an_upstream_are_passed_on,
    the_signature_is_of_the_bytes_that_are_served,
);
