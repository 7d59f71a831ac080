//! Pages are kept, and each change of what they show is on the next one.

use std::io::Read as _;
use std::time::Duration;

use bowline_testkit::{Actor, TestServer, each_engine};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::fake_index::FakeIndex;
use crate::support::*;
use crate::upstreams::installer;

/// What a page shows of the files of `foo`, in JSON and in HTML alike: each a version, and why installers pass over it.
async fn shown(client: &Client) -> Vec<(String, Value)> {
    let page = client.project("foo").await;
    let of = |file: &Value| {
        let name = file["filename"].as_str().unwrap();
        (name.split('-').nth(1).unwrap().to_owned(), file["yanked"].clone())
    };
    let shown: Vec<_> = page["files"].as_array().unwrap().iter().map(of).collect();
    let html = client.send("GET simple/foo/", &[("accept", "text/html")], &[]).await.text();
    let yanked = shown.iter().filter(|(_, yanked)| *yanked != json!(false)).count();
    assert_eq!((html.matches("<a ").count(), html.matches("data-yanked").count()), (shown.len(), yanked), "{html}");
    shown
}

fn kept(version: &str) -> (String, Value) {
    (version.to_owned(), json!(false))
}

async fn call(actor: &Actor, verb: &str, path: &str, body: Value) -> Value {
    let reply = actor.rest(verb, path, Some(body).filter(|body| !body.is_null())).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

async fn a_page_of_a_group_follows_each_change(server: &TestServer) {
    let org = server.organization("acme").await;
    let web = server.group(&org, "web").await;
    let owner = server.actor("owner", &org).await;
    let client = Client::of(server, &owner);
    let below = client.at(&format!("{org}:web"));
    client.publish("foo", "1.0").await;
    assert_eq!((shown(&client).await, shown(&below).await), (vec![kept("1.0")], vec![kept("1.0")]));
    client.publish("foo", "1.1").await;
    assert_eq!(shown(&client).await, [kept("1.0"), kept("1.1")]);

    let at = |verb: &str| format!("/pythonpackages/v1/groups/{org}:{verb}Version");
    for reason in ["It lost data.", "It lost all data."] {
        call(&owner, "POST", &at("yank"), json!({ "package": "foo", "version": "1.0", "reason": reason })).await;
        assert_eq!(shown(&client).await, [("1.0".to_owned(), json!(reason)), kept("1.1")]);
    }
    call(&owner, "POST", &at("unyank"), json!({ "package": "foo", "version": "1.0" })).await;
    assert_eq!(shown(&client).await, [kept("1.0"), kept("1.1")]);
    call(&owner, "POST", &at("delete"), json!({ "package": "foo", "version": "1.0" })).await;
    assert_eq!((shown(&client).await, shown(&below).await), (vec![kept("1.1")], vec![kept("1.1")]));

    below.publish("foo", "2.0").await;
    assert_eq!((shown(&client).await, shown(&below).await), (vec![kept("1.1")], vec![kept("2.0")]));
    let nearest = format!("/pythonpackages/v1/groups/{web}:deleteVersion");
    call(&owner, "POST", &nearest, json!({ "package": "foo", "version": "2.0" })).await;
    assert_eq!(shown(&below).await, [kept("1.1")]);
    call(&owner, "POST", &at("delete"), json!({ "package": "foo", "version": "1.1" })).await;
    assert_eq!(client.get("simple/foo/").await.status, 404);
}

async fn a_page_follows_each_change_of_a_policy(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    client.publish("foo", "1.0").await;
    assert_eq!(shown(&client).await, [kept("1.0")]);
    let blocked = |policy: &str| {
        let why = format!("Blocked by policy {policy}: pkg:pypi/foo@1.0 is on its block list as pkg:pypi/foo@1.0");
        vec![("1.0".to_owned(), json!(why))]
    };
    let list = |name: &str, version: &str| json!({ "name": name, "blockList": [{ "purl": format!("pkg:pypi/foo@{version}") }] });
    let uid = bind(&owner, &org, "ENFORCED", list("rules", "1.0")).await;
    assert_eq!(shown(&client).await, blocked("rules"));
    let policy = format!("/libraries/v1/policies/{uid}");
    call(&owner, "PUT", &policy, list("others", "1.0")).await;
    assert_eq!(shown(&client).await, blocked("others"));
    call(&owner, "PUT", &policy, list("others", "9.0")).await;
    assert_eq!(shown(&client).await, [kept("1.0")]);
    call(&owner, "PUT", &policy, list("others", "1.0")).await;
    assert_eq!(shown(&client).await, blocked("others"));
    let bindings = format!("/libraries/v1/policy-bindings?parentId={org}");
    let binding = call(&owner, "GET", &bindings, Value::Null).await["items"][0]["id"].clone();
    let binding = binding.as_str().unwrap();
    call(&owner, "DELETE", &format!("/libraries/v1/policy-bindings/{binding}"), Value::Null).await;
    assert_eq!(shown(&client).await, [kept("1.0")]);
}

async fn a_page_of_an_upstream_follows_each_change(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    let (org, owner, client) = installer(server, &index).await;
    let operator = server.operator().await;
    assert_eq!(shown(&client).await, [kept("1.0")]);
    index.publish(server, "foo", "1.1", 30);
    assert_eq!(shown(&client).await, [kept("1.0")], "the upstream is asked again after a while");
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(shown(&client).await, [kept("1.0"), kept("1.1")]);

    bind(&owner, &org, "ENFORCED", json!({ "name": "rules", "blockedLicenses": ["MIT"] })).await;
    let page = client.project("foo").await;
    assert_eq!(shown(&client).await, [kept("1.0"), kept("1.1")], "licenses are known once files were fetched");
    assert_eq!(client.file(&page, 1).await.status, 403);
    let licensed = ("1.1".to_owned(), json!("Blocked by policy rules: pkg:pypi/foo@1.1 has the license MIT"));
    assert_eq!(shown(&client).await, [kept("1.0"), licensed.clone()]);

    let entry = json!({
        "ecosystem": "PyPI", "packageName": "foo", "version": "1.0", "malid": "MAL-2026-1", "source": "operator",
        "scope": "MALWARE_SCOPE_VERSION", "reason": ["steals tokens"], "blockedAt": "2026-01-01T00:00:00Z",
    });
    call(&operator, "POST", "/catalog/v1/malware:import", json!({ "entries": [entry] })).await;
    let malware = ("1.0".to_owned(), json!("Blocked by policy rules: pkg:pypi/foo@1.0 is reported as malware"));
    assert_eq!(shown(&client).await, [malware, licensed.clone()]);
    call(&operator, "POST", "/catalog/v1/malware:remove", json!({ "malids": ["MAL-2026-1"] })).await;
    assert_eq!(shown(&client).await, [kept("1.0"), licensed]);

    let reservation = json!({ "ecosystem": "PYTHON", "pattern": "foo" });
    call(&owner, "POST", &format!("/packagereservations/v1/organizations/{org}:createReservation"), reservation).await;
    assert_eq!(client.get("simple/foo/").await.status, 404, "the name is the organization's");
}

async fn a_page_changes_when_a_cooldown_ends(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 6);
    let (org, owner, _) = installer(server, &index).await;
    bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    // With tokens that live for an hour, and pages that are asked for every five minutes: two minutes before it ends.
    server.clock().advance(Duration::from_secs(24 * 3600 - 120));
    let client = Client::of(server, &server.actor("libraries.python.pull", &org).await);
    let young =
        |shown: &[(String, Value)]| shown[0].1.as_str().is_some_and(|why| why.contains("is younger than 7 days"));
    assert!(young(&shown(&client).await));
    index.seen();
    server.clock().advance(Duration::from_secs(119));
    assert!(young(&shown(&client).await));
    server.clock().advance(Duration::from_secs(1));
    assert_eq!(shown(&client).await, [kept("1.0")]);
    assert_eq!(index.seen(), Vec::<String>::new(), "no answer of the upstream changed it");
}

async fn pages_are_compressed_for_those_who_can_read_that(server: &TestServer) {
    let (_, client) = publisher(server, "acme").await;
    for version in 0..8 {
        client.publish("foo", &format!("1.{version}")).await;
    }
    let ask = async |headers: &[(&'static str, &str)]| client.send("GET simple/foo/", headers, &[]).await;
    let plain = ask(&[("accept", JSON)]).await;
    let short = ask(&[("accept", JSON), ("accept-encoding", "gzip, deflate")]).await;
    assert_eq!((plain.header("content-encoding"), short.header("content-encoding")), (None, Some("gzip")));
    assert!(short.body.len() < plain.body.len() / 2, "{} {}", short.body.len(), plain.body.len());
    let mut text = Vec::new();
    GzDecoder::new(short.body.as_slice()).read_to_end(&mut text).unwrap();
    assert_eq!(text, plain.body);
    for reply in [&plain, &short] {
        assert_eq!(reply.header("vary"), Some("Accept, Accept-Encoding, Authorization"));
    }
    let (tag, tag_of_short) = (plain.header("etag").unwrap(), short.header("etag").unwrap());
    assert_ne!(tag, tag_of_short, "other bytes");
    for (encoding, known, status) in
        [("gzip", tag_of_short, 304), ("identity", tag, 304), ("gzip", tag, 200), ("identity", tag_of_short, 200)]
    {
        let reply = ask(&[("accept", JSON), ("accept-encoding", encoding), ("if-none-match", known)]).await;
        assert_eq!(reply.status, status, "{encoding} {known}");
    }
    let none = ask(&[("accept", JSON), ("accept-encoding", "gzip;q=0")]).await;
    assert_eq!((none.header("content-encoding"), &none.body), (None, &plain.body));
}

each_engine!(
    a_page_of_a_group_follows_each_change,
    a_page_follows_each_change_of_a_policy,
    a_page_of_an_upstream_follows_each_change,
    a_page_changes_when_a_cooldown_ends,
    pages_are_compressed_for_those_who_can_read_that,
);
