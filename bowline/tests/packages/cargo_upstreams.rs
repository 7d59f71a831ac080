//! Crates of another registry: requested once, pinned by their digests, and withheld as policies say.

use std::time::Duration;

use bowline_core::Clock as _;
use bowline_core::rfc3339::{self, Digits};
use bowline_testkit::cargo::{announced, archive, body};
use bowline_testkit::{Actor, RestReply, TestServer, each_engine};
use serde_json::{Value, json};

use crate::fake_proxy::FakeProxy;
use crate::support::*;

const PATH: &str = "pu/b_/pub_lib";
const LIB: (&str, &str) = (PATH, "pub_lib");
const DAY: u64 = 24 * 3600;

/// An organization with an upstream, someone who may publish there, and its owner.
async fn installer(server: &TestServer, proxy: &FakeProxy) -> (String, Client, Actor) {
    let (org, client) = cargo_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    proxy.serve_as("CARGO", &owner, &org, ("public", 0)).await;
    (org, client, owner)
}

async fn get(client: &Client, path: &str) -> RestReply {
    client.send(&format!("GET {path}"), &[], &[]).await
}

async fn download(client: &Client, version: &str) -> RestReply {
    get(client, &format!("api/v1/crates/pub_lib/{version}/download")).await
}

/// What a refusal says, which must have this status.
fn text(reply: &RestReply, status: u16) -> String {
    let shown = (reply.status, reply.header("content-type"));
    assert_eq!(shown, (status, Some("text/plain; charset=utf-8")), "{}", reply.text());
    reply.text().trim_end().to_owned()
}

/// Versions of the index, and whether they are yanked.
async fn shown(client: &Client) -> Vec<(String, bool)> {
    let of = |line: &Value| (line["vers"].as_str().unwrap().to_owned(), line["yanked"] == true);
    client.crate_lines(PATH).await.iter().map(of).collect()
}

fn versions(list: &[(&str, bool)]) -> Vec<(String, bool)> {
    list.iter().map(|(version, yanked)| ((*version).to_owned(), *yanked)).collect()
}

async fn a_crate_of_an_upstream_is_requested_once(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let archives = proxy.publish_crates(server, LIB, &[("1.0.0", Some(30)), ("1.1.0", None)]);
    let (_, client, _) = installer(server, &proxy).await;
    let lines = client.crate_lines(PATH).await;
    assert_eq!((&lines[0]["name"], &lines[0]["cksum"]), (&json!("pub_lib"), &json!(sha256(&archives[0]))));
    assert_eq!((lines[0]["pubtime"].is_string(), &lines[1]["pubtime"]), (true, &Value::Null));
    assert_eq!(download(&client, "1.0.0").await.body, archives[0]);
    assert_eq!(proxy.seen(), [PATH, "config.json", "dl/pub_lib/1.0.0/download"]);
    assert_eq!(download(&client, "1.0.0").await.body, archives[0]);
    assert_eq!(client.crate_lines(PATH).await, lines);
    assert_eq!(proxy.seen(), Vec::<String>::new());
    // Other bytes at the upstream change nothing of what is stored here.
    proxy.put("dl/pub_lib/1.0.0/download", b"changed");
    proxy.put("dl/pub_lib/1.1.0/download", &archive("pub_lib", "1.1.0", "license = \"ISC\"\n"));
    assert_eq!(download(&client, "1.0.0").await.body, archives[0]);
    let wrong =
        "pub_lib-1.1.0.crate of the upstream public has another digest than the index says, so it is not served";
    assert_eq!(text(&download(&client, "1.1.0").await, 502), wrong);
    for absent in ["3/a/abc", "pu/b-/pub-lib"] {
        text(&get(&client, absent).await, 404);
    }
    text(&download(&client, "1.2.0").await, 404);
    proxy.state().is_down = true;
    server.clock().advance(Duration::from_secs(1000));
    let stale = get(&client, PATH).await;
    assert_eq!((stale.status, stale.header("x-bowline-stale").is_some()), (200, true));
    assert_eq!(download(&client, "1.0.0").await.body, archives[0]);
    assert_eq!(get(&client, "un/kn/unknown").await.status, 503);
}

async fn an_index_of_another_crate_is_not_taken(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    proxy.publish_crates(server, ("pu/b_/pub_lib", "pub-lib"), &[("1.0.0", Some(30))]);
    let (_, client, _) = installer(server, &proxy).await;
    assert_eq!(get(&client, PATH).await.status, 503, "it is an answer that cannot be used");
    let config = json!({ "dl": format!("https://a.example/{}", "x".repeat(2000)) });
    proxy.put("config.json", config.to_string().as_bytes());
    proxy.put("bi/ga/bigarchive", b"not json\n");
    assert_eq!(get(&client, "bi/ga/bigarchive").await.status, 503);
}

async fn a_young_version_is_yanked_until_it_is_old_enough(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let archives = proxy.publish_crates(server, LIB, &[("1.0.0", Some(30)), ("1.1.0", Some(6)), ("1.2.0", None)]);
    let (org, client, owner) = installer(server, &proxy).await;
    assert_eq!(shown(&client).await, versions(&[("1.0.0", false), ("1.1.0", false), ("1.2.0", false)]));
    bind_to_cargo(&owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    assert_eq!(shown(&client).await, versions(&[("1.0.0", false), ("1.1.0", true), ("1.2.0", true)]));
    let refused = download(&client, "1.1.0").await;
    let sentence = text(&refused, 403);
    let beginning = "Blocked by policy cooldown: pkg:cargo/pub_lib@1.1.0 is younger than 7 days; allowed from ";
    assert!(sentence.starts_with(beginning), "{sentence}");
    assert_eq!(refused.header("x-bowline-reason"), Some("COOLDOWN"));
    let unknown = "Blocked by policy cooldown: pkg:cargo/pub_lib@1.2.0 must be public for 7 days, and its upstream does not say \
                   since when it is";
    assert_eq!(text(&download(&client, "1.2.0").await, 403), unknown);
    assert_eq!(download(&client, "1.0.0").await.body, archives[0]);
    server.clock().advance(Duration::from_secs(DAY + 60));
    let actor = server.actor("libraries.cargo.push", &org).await;
    let client = Client::of(server, &actor).cargo();
    assert_eq!(shown(&client).await, versions(&[("1.0.0", false), ("1.1.0", false), ("1.2.0", true)]));
    assert_eq!(download(&client, "1.1.0").await.body, archives[1]);
}

async fn policies_are_about_crates(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    proxy.publish_crates(server, LIB, &[("1.0.0", Some(30)), ("1.1.0", Some(30))]);
    proxy.publish_crates(server, ("ev/il/evil", "evil"), &[("1.0.0", Some(30))]);
    let (org, client, owner) = installer(server, &proxy).await;
    let policy = json!({
        "name": "strict",
        "blockList": [{ "purl": "pkg:cargo/pub-lib@1.1.0" }, { "purl": "pkg:cargo/evil" }],
        "blockedLicenses": ["GPL-3.0-only"],
    });
    bind_to_cargo(&owner, &org, "ENFORCED", policy).await;
    assert_eq!(shown(&client).await, versions(&[("1.0.0", false), ("1.1.0", true)]), "names differ in - and _ alone");
    let whole = text(&get(&client, "ev/il/evil").await, 403);
    assert_eq!(whole, "Blocked by policy strict: pkg:cargo/evil is on its block list as pkg:cargo/evil");
    assert_eq!(download(&client, "1.0.0").await.status, 200, "its license is read before the first byte");
    client.cargo_publish("own", "1.0.0").await;
    let own = body(&announced("own", "1.1.0"), &archive("own", "1.1.0", "license = \"GPL-3.0-only\"\n"));
    assert_eq!(client.send("PUT api/v1/crates/new", &[], &own).await.status, 200);
    let lines = client.crate_lines("3/o/own").await;
    assert_eq!((&lines[0]["yanked"], &lines[1]["yanked"]), (&json!(false), &json!(true)));
    let refused = text(&get(&client, "api/v1/crates/own/1.1.0/download").await, 403);
    assert_eq!(refused, "Blocked by policy strict: pkg:cargo/own@1.1.0 has the license GPL-3.0-only");
}

async fn own_names_are_never_requested(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    proxy.publish_crates(server, LIB, &[("1.0.0", Some(30))]);
    let (org, client, owner) = installer(server, &proxy).await;
    client.cargo_publish("Acme_web-core", "1.0.0").await;
    let reserve = json!({ "ecosystem": "CARGO", "pattern": "secret_*" });
    let path = format!("/packagereservations/v1/organizations/{org}:createReservation");
    let reserved = owner.rest("POST", &path, Some(reserve)).await;
    assert_eq!(reserved.status, 200, "{}", reserved.text());
    for own in ["ac/me/acme-web_core", "ac/me/acme_web_core", "se/cr/secret-thing", "se/cr/secret_thing"] {
        text(&get(&client, own).await, 404);
    }
    assert_eq!(proxy.seen(), Vec::<String>::new());
    // Nor may a name take the place of one that the organization installs.
    assert_eq!(client.crate_lines(PATH).await.len(), 1);
    for close in ["pub_lib", "Pub-Lib"] {
        let put = body(&announced(close, "9.0.0"), &archive(close, "9.0.0", ""));
        let refused = client.send("PUT api/v1/crates/new", &[], &put).await;
        assert_eq!(refused.status, 409, "{}", refused.text());
        assert!(refused.text().contains("the upstream public has a package pub_lib"), "{}", refused.text());
    }
    let everything = Client::of(server, &owner);
    assert_eq!(everything.cargo().crate_lines("ac/me/acme_web-core").await.len(), 1);
    let group = server.group(&org, "web").await;
    let put = body(&announced("acme-web_core", "1.0.0"), &archive("acme-web_core", "1.0.0", ""));
    let refused = everything.cargo().at(&group.replace('/', ":")).send("PUT api/v1/crates/new", &[], &put).await;
    let text = "acme-web_core is too close to the name of a crate of another group: publish under another name";
    assert_eq!((refused.status, refused.json()["errors"][0]["detail"].as_str()), (409, Some(text)));
    // A project of Python is no crate.
    everything.publish("pub_lib", "1.0").await;
    everything.publish("other", "1.0").await;
    assert_eq!(client.crate_lines(PATH).await.len(), 1);
    proxy.publish_crates(server, ("ot/he/other", "other"), &[("1.0.0", Some(30))]);
    assert_eq!(client.crate_lines("ot/he/other").await.len(), 1);
}

async fn an_exception_lifts_a_cooldown_in_either_spelling(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    proxy.publish_crates(server, LIB, &[("1.0.0", Some(1)), ("1.1.0", Some(1))]);
    let (org, client, owner) = installer(server, &proxy).await;
    bind_to_cargo(&owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    assert_eq!(shown(&client).await, versions(&[("1.0.0", true), ("1.1.0", true)]));
    let exception = json!({ "purl": "pkg:cargo/pub-lib@1.1.0", "justification": "a fix of a worm" });
    let path = format!("/packageexceptions/v1/organizations/{org}:createException");
    assert_eq!(owner.rest("POST", &path, Some(exception)).await.status, 200);
    assert_eq!(shown(&client).await, versions(&[("1.0.0", true), ("1.1.0", false)]));
    assert_eq!((download(&client, "1.1.0").await.status, download(&client, "1.0.0").await.status), (200, 403));
}

async fn crates_are_shown_as_of_a_time(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    proxy.publish_crates(server, LIB, &[("1.0.0", Some(30)), ("1.1.0", Some(6)), ("1.2.0", None)]);
    let (org, client, _) = installer(server, &proxy).await;
    let then = server.clock().now() - 10 * 24 * 3600 * 1_000_000;
    let then = rfc3339::text(then, Digits::Fewest);
    let dated = client.at(&format!("{org}@{then}"));
    assert_eq!(shown(&dated).await, versions(&[("1.0.0", false)]));
    assert_eq!(download(&dated, "1.0.0").await.status, 200);
    text(&download(&dated, "1.1.0").await, 404);
}

each_engine!(
    a_crate_of_an_upstream_is_requested_once,
    an_index_of_another_crate_is_not_taken,
    a_young_version_is_yanked_until_it_is_old_enough,
    policies_are_about_crates,
    own_names_are_never_requested,
    an_exception_lifts_a_cooldown_in_either_spelling,
    crates_are_shown_as_of_a_time,
);
