//! Go modules of another proxy: requested once, pinned by their first bytes, and as old as they are known.

use std::time::Duration;

use bowline_core::{Clock as _, rfc3339};
use bowline_testkit::golang::archive;
use bowline_testkit::python::zip;
use bowline_testkit::{Actor, RestReply, TestServer, each_engine};
use serde_json::json;

use crate::fake_proxy::FakeProxy;
use crate::support::*;

const LIB: &str = "example.com/pub/lib";
const DAY: u64 = 24 * 3600;

/// An organization with an upstream, someone who may publish there, and its owner.
async fn installer(server: &TestServer, proxy: &FakeProxy) -> (String, Client, Actor) {
    let (org, client) = go_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    proxy.serve(&owner, &org, "public", 0).await;
    (org, client, owner)
}

async fn get(client: &Client, path: &str) -> RestReply {
    client.send(&format!("GET {path}"), &[], &[]).await
}

/// What a refusal says, which must have this status.
fn text(reply: &RestReply, status: u16) -> String {
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (status, Some("text/plain; charset=utf-8")),
        "{}",
        reply.text()
    );
    reply.text().trim_end().to_owned()
}

async fn a_file_of_an_upstream_is_requested_once(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let archive = proxy.publish(server, LIB, "v1.0.0", 30);
    proxy.list(LIB, &["v1.0.0"]);
    let (_, client, _) = installer(server, &proxy).await;
    let zip = get(&client, &format!("{LIB}/@v/v1.0.0.zip")).await;
    assert_eq!((zip.status, &zip.body), (200, &archive), "{}", zip.text());
    let dated = format!("{LIB}/@v/v1.0.0.info");
    let asked = [format!("{LIB}/@v/list"), dated.clone(), dated, format!("{LIB}/@v/v1.0.0.zip")];
    assert_eq!(proxy.seen(), asked, "the list, with the times of its highest versions; the version; its archive");
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.0.0.mod")).await.text(), format!("module {LIB}\n"));
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.0.0.info")).await.json()["Version"], "v1.0.0");
    assert_eq!(proxy.seen(), [format!("{LIB}/@v/v1.0.0.mod")]);
    // Other bytes at the upstream change nothing here.
    proxy.put(&format!("{LIB}/@v/v1.0.0.zip"), b"changed");
    proxy.put(&format!("{LIB}/@v/v1.0.0.mod"), b"module changed");
    server.clock().advance(Duration::from_secs(1000));
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.0.0.zip")).await.body, archive);
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.0.0.info")).await.status, 200);
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.0.0.mod")).await.text(), format!("module {LIB}\n"));
    assert_eq!(proxy.seen(), Vec::<String>::new(), "a version does not change");

    for absent in ["v1.0.1.info", "v1.0.1.mod", "v1.0.1.zip"] {
        text(&get(&client, &format!("{LIB}/@v/{absent}")).await, 404);
    }
    assert_eq!(proxy.seen(), [format!("{LIB}/@v/v1.0.1.info"), format!("{LIB}/@v/v1.0.1.mod")]);
    proxy.state().is_down = true;
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.0.0.zip")).await.body, archive);
    let list = get(&client, &format!("{LIB}/@v/list")).await;
    assert_eq!((list.text().as_str(), list.header("x-bowline-stale").is_some()), ("v1.0.0\n", true));
    assert_eq!(get(&client, "example.com/pub/unknown/@v/list").await.status, 503);
}

async fn no_wrong_file_is_stored(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let (_, client, _) = installer(server, &proxy).await;
    for version in ["v1.0.0", "v1.1.0", "v1.2.0"] {
        proxy.publish(server, LIB, version, 30);
    }
    proxy.list(LIB, &[]);
    proxy.put(&format!("{LIB}/@v/v1.0.0.zip"), &archive("example.com/pub/other", "v1.0.0", &[]));
    proxy.put(&format!("{LIB}/@v/v1.0.0.mod"), b"<html></html>");
    proxy.put(&format!("{LIB}/@v/v1.1.0.zip"), b"PK");
    proxy.put(&format!("{LIB}/@v/v1.2.0.info"), br#"{"Version":"v1.3.0","Time":"2020-01-01T00:00:00Z"}"#);
    for file in ["v1.0.0.zip", "v1.0.0.mod", "v1.1.0.zip"] {
        let refused = get(&client, &format!("{LIB}/@v/{file}")).await;
        let why = format!("{file} of the upstream public is not a file of this version, so it is not served");
        assert_eq!(text(&refused, 502), why);
    }
    for file in ["v1.2.0.zip", "v1.2.0.info"] {
        assert_eq!(get(&client, &format!("{LIB}/@v/{file}")).await.status, 503, "{file}");
    }
    let left = (number(server, "SELECT count(*) FROM upstream_files").await, stored_files(server));
    assert_eq!(left, (0, 0));
    // A copy that replaces another module keeps the name of that.
    let (name, go_mod) = (format!("{LIB}@v1.4.0/go.mod"), b"module example.com/original\n".to_vec());
    let copy = zip(&[(name, go_mod)]);
    proxy.publish(server, LIB, "v1.4.0", 30);
    proxy.put(&format!("{LIB}/@v/v1.4.0.zip"), &copy);
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.4.0.zip")).await.body, copy);
}

async fn a_young_version_is_withheld_until_it_is_old_enough(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    proxy.publish(server, LIB, "v1.0.0", 30);
    let young = proxy.publish(server, LIB, "v1.1.0", 6);
    proxy.list(LIB, &["v1.1.0", "v1.0.0"]);
    let (org, client, owner) = installer(server, &proxy).await;
    assert_eq!(get(&client, &format!("{LIB}/@v/list")).await.text(), "v1.0.0\nv1.1.0\n");
    bind_to("GO", &owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    assert_eq!(get(&client, &format!("{LIB}/@v/list")).await.text(), "v1.0.0\n");
    assert_eq!(get(&client, &format!("{LIB}/@latest")).await.json()["Version"], "v1.0.0");
    for file in ["v1.1.0.info", "v1.1.0.zip"] {
        let refused = get(&client, &format!("{LIB}/@v/{file}")).await;
        let sentence = text(&refused, 403);
        let beginning = "Blocked by policy cooldown: pkg:golang/example.com/pub/lib@v1.1.0 is younger than 7 days";
        assert!(sentence.starts_with(beginning), "{sentence}");
        assert_eq!(refused.header("x-bowline-reason"), Some("COOLDOWN"));
    }
    // The graph of requirements names versions that are not installed.
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.1.0.mod")).await.status, 200);
    let noted = blocked(&owner, server, &org, "ENFORCED").await;
    assert_eq!(noted, [("pkg:golang/example.com/pub/lib@v1.1.0".into(), "COOLDOWN".into(), 2)]);
    let explain = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl=pkg:golang/{LIB}@v1.1.0");
    assert_eq!(owner.rest("GET", &explain, None).await.json()["decision"]["reason"], "COOLDOWN");

    server.clock().advance(Duration::from_secs(DAY + 1));
    let client = Client::of(server, &server.actor("libraries.go.pull", &org).await).go();
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.1.0.zip")).await.body, young);
    assert_eq!(get(&client, &format!("{LIB}/@latest")).await.json()["Version"], "v1.1.0");
}

async fn a_version_that_is_new_here_is_young_whatever_its_commit_says(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let old = proxy.publish(server, LIB, "v1.0.0", 300);
    proxy.list(LIB, &["v1.0.0"]);
    let (org, client, owner) = installer(server, &proxy).await;
    bind_to("GO", &owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.0.0.zip")).await.body, old, "known from the beginning");

    // One that the list lacks, and one that a later list has.
    proxy.publish(server, LIB, "v1.0.1", 200);
    text(&get(&client, &format!("{LIB}/@v/v1.0.1.zip")).await, 403);
    server.clock().advance(Duration::from_secs(1000));
    proxy.publish(server, LIB, "v1.1.0", 200);
    proxy.list(LIB, &["v1.0.0", "v1.0.1", "v1.1.0"]);
    assert_eq!(get(&client, &format!("{LIB}/@v/list")).await.text(), "v1.0.0\n");
    text(&get(&client, &format!("{LIB}/@v/v1.1.0.info")).await, 403);
    let shown = "v1.0.2-0.20230714214113-ca9018fc6e4b";
    proxy.publish(server, LIB, shown, 200);
    assert_eq!(
        get(&client, &format!("{LIB}/@v/{shown}.zip")).await.status,
        200,
        "no list has what is made of a commit"
    );

    server.clock().advance(Duration::from_secs(7 * DAY));
    let client = Client::of(server, &server.actor("libraries.go.pull", &org).await).go();
    assert_eq!(get(&client, &format!("{LIB}/@v/list")).await.text(), "v1.0.0\nv1.0.1\nv1.1.0\n");
    let info = get(&client, &format!("{LIB}/@v/v1.1.0.info")).await;
    let made = rfc3339::parse_micros(info.json()["Time"].as_str().unwrap()).unwrap();
    assert!(made < server.clock().now() - 200 * 24 * 3600 * 1_000_000, "the time of the commit: {}", info.text());
}

async fn own_modules_are_never_requested(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let (org, client, owner) = installer(server, &proxy).await;
    client.go_publish("git.acme.example/team/tool", "git.acme.example/team/tool", "v1.0.0").await;
    client.go_publish("git.acme.example/Team/kit", "git.acme.example/!team/kit", "v1.0.0").await;
    let path = format!("/packagereservations/v1/organizations/{org}:createReservation");
    let reservation = json!({ "ecosystem": "GO", "pattern": "github.com/acme/*" });
    let reserved = owner.rest("POST", &path, Some(reservation)).await;
    assert_eq!(reserved.status, 200, "{}", reserved.text());
    for path in [
        "git.acme.example/team/tool/@v/v1.1.0.zip",
        "git.acme.example/team/tool/secret/@v/list",
        "git.acme.example/team/tool/secret/@latest",
        "git.acme.example/team/kit/@v/v1.1.0.zip",
        "git.acme.example/!t!e!a!m/kit/secret/@v/list",
        "github.com/acme/@v/list",
        "github.com/acme/secret/@v/list",
        "github.com/!acme/secret/@v/v1.0.0.info",
        "github.com/acme/secret/v2/@v/v2.0.0.mod",
        "sumdb/sum.example/lookup/git.acme.example/team/tool@v1.0.0",
        "sumdb/sum.example/lookup/github.com/acme/secret@v1.0.0",
    ] {
        text(&get(&client, path).await, 404);
        assert_eq!(proxy.seen(), Vec::<String>::new(), "{path}");
    }
    let refused = text(&get(&client, "sumdb/sum.example/lookup/github.com/acme/secret@v1.0.0").await, 404);
    assert!(refused.contains("set GONOSUMDB=github.com/acme/secret"), "{refused}");
}

async fn blocked_modules_are_refused_in_any_case(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    proxy.publish(server, "github.com/Evil/tool/v2", "v2.0.0", 30);
    for path in ["github.com/!evil/tool/v2/@v/list", "github.com/!evil/tool/v2/@v/v2.0.0.info"] {
        proxy.put(
            path,
            if path.ends_with("list") { b"v2.0.0" } else { br#"{"Version":"v2.0.0","Time":"2020-01-01T00:00:00Z"}"# },
        );
    }
    let (org, client, owner) = installer(server, &proxy).await;
    assert_eq!(get(&client, "github.com/!evil/tool/v2/@v/list").await.text(), "v2.0.0\n");
    let policy =
        json!({ "name": "strict", "cooldownDays": 0, "blockList": [{ "purl": "pkg:golang/github.com/evil/" }] });
    bind_to("GO", &owner, &org, "ENFORCED", policy).await;
    for path in ["@v/list", "@latest", "@v/v2.0.0.info", "@v/v2.0.0.zip"] {
        let refused = text(&get(&client, &format!("github.com/!evil/tool/v2/{path}")).await, 403);
        assert!(refused.starts_with("Blocked by policy strict: pkg:golang/github.com/Evil/tool/v2"), "{refused}");
    }
}

async fn other_queries_lead_to_versions(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let (org, client, owner) = installer(server, &proxy).await;
    let made = |day: &str| format!("v0.0.0-202307{day}214113-ca9018fc6e4b");
    proxy.list(LIB, &[]);
    proxy.describe(server, LIB, ("@latest", &made("14")), 30);
    proxy.describe(server, LIB, ("master", &made("14")), 30);
    let list = get(&client, &format!("{LIB}/@v/list")).await;
    assert_eq!((list.status, list.text().as_str()), (200, ""), "a module without versions");
    assert_eq!(get(&client, &format!("{LIB}/@latest")).await.json()["Version"], made("14"));
    assert_eq!(get(&client, &format!("{LIB}/@v/master.info")).await.json()["Version"], made("14"));
    proxy.describe(server, LIB, ("master", &made("20")), 1);
    assert_eq!(get(&client, &format!("{LIB}/@v/master.info")).await.json()["Version"], made("14"), "for five minutes");
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(get(&client, &format!("{LIB}/@v/master.info")).await.json()["Version"], made("20"));
    bind_to("GO", &owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    let refused = text(&get(&client, &format!("{LIB}/@v/master.info")).await, 403);
    assert!(refused.contains(&format!("{}@{}", LIB, made("20"))), "{refused}");
    text(&get(&client, &format!("{LIB}/@v/branch.info")).await, 404);
}

async fn checksums_are_passed_on(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let (_, lonely) = go_publisher(server, "lonely").await;
    text(&get(&lonely, "sumdb/sum.example/supported").await, 404);
    let (_, client, _) = installer(server, &proxy).await;
    text(&get(&client, "sumdb/sum.example/supported").await, 404);
    proxy.put("sumdb/sum.example/supported", b"");
    proxy.put("sumdb/sum.example/tile/8/0/000", b"tile");
    proxy.put("sumdb/sum.example/lookup/github.com/!azure/sdk@v1.0.0", b"7\n");
    assert_eq!(get(&client, "sumdb/sum.example/supported").await.status, 200);
    assert_eq!(get(&client, "sumdb/sum.example/tile/8/0/000").await.text(), "tile");
    assert_eq!(get(&client, "sumdb/sum.example/lookup/github.com/!azure/sdk@v1.0.0").await.text(), "7\n");
    proxy.state().is_down = true;
    let refused = text(&get(&client, "sumdb/sum.example/latest").await, 503);
    assert!(refused.contains("the upstream public does not say what sum.example has"), "{refused}");
}

async fn a_version_stays_with_its_upstream(server: &TestServer) {
    let (first, second) = (FakeProxy::start().await, FakeProxy::start().await);
    let archive = second.publish(server, LIB, "v1.0.0", 30);
    second.list(LIB, &["v1.0.0"]);
    let (org, client, owner) = installer(server, &first).await;
    second.serve(&owner, &org, "later", 1).await;
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.0.0.zip")).await.body, archive);
    for version in ["v1.0.0", "v1.1.0"] {
        first.publish(server, LIB, version, 30);
    }
    first.list(LIB, &["v1.0.0", "v1.1.0"]);
    second.publish(server, LIB, "v1.2.0", 30);
    first.put(&format!("{LIB}/@v/v1.0.0.mod"), b"module example.com/first\n");
    server.clock().advance(Duration::from_secs(1000));
    first.seen();
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.0.0.mod")).await.text(), format!("module {LIB}\n"));
    assert_eq!(first.seen(), Vec::<String>::new());

    // The first one that has a list supplies all others, and what it lacks is nowhere.
    assert_eq!(get(&client, &format!("{LIB}/@v/list")).await.text(), "v1.0.0\nv1.1.0\n");
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.1.0.zip")).await.status, 200);
    second.seen();
    for file in ["v1.2.0.mod", "v1.2.0.zip", "v1.2.0.info"] {
        text(&get(&client, &format!("{LIB}/@v/{file}")).await, 404);
    }
    assert_eq!(second.seen(), Vec::<String>::new());
}

async fn a_list_that_was_empty_or_gone_is_an_earlier_list(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let (org, client, owner) = installer(server, &proxy).await;
    bind_to("GO", &owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    let list = || get(&client, "example.com/pub/lib/@v/list");
    proxy.list(LIB, &[]);
    assert_eq!((list().await.status, list().await.text().as_str()), (200, ""));
    let later = || server.clock().advance(Duration::from_secs(301));
    later();
    proxy.publish(server, LIB, "v1.0.0", 300);
    proxy.list(LIB, &["v1.0.0"]);
    text(&list().await, 403);
    later();
    proxy.state().forget(&format!("{LIB}/@v/list"));
    text(&list().await, 404);
    later();
    proxy.list(LIB, &["v1.0.0"]);
    text(&list().await, 403);
    text(&get(&client, &format!("{LIB}/@v/v1.0.0.zip")).await, 403);

    // One that cannot be asked for its list says nothing of the age of versions.
    proxy.publish(server, "example.com/pub/other", "v1.0.0", 300);
    proxy.state().is_down = true;
    assert_eq!(get(&client, "example.com/pub/other/@v/v1.0.0.zip").await.status, 503);
    let seen = proxy.seen();
    assert!(seen.iter().all(|path| path.ends_with("/list") || path.contains("lib/")), "{seen:?}");

    // What comes back is as old as before.
    proxy.state().is_down = false;
    server.clock().advance(Duration::from_secs(7 * DAY));
    let client = Client::of(server, &server.actor("libraries.go.pull", &org).await).go();
    proxy.list(LIB, &[]);
    get(&client, &format!("{LIB}/@v/list")).await;
    later();
    proxy.list(LIB, &["v1.0.0"]);
    assert_eq!(get(&client, &format!("{LIB}/@v/list")).await.text(), "v1.0.0\n");
}

async fn a_directory_that_others_use_is_not_taken(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let (org, client, owner) = installer(server, &proxy).await;
    proxy.publish(server, LIB, "v1.0.0", 30);
    proxy.list(LIB, &["v1.0.0"]);
    assert_eq!(get(&client, &format!("{LIB}/@v/v1.0.0.zip")).await.status, 200);
    let put = async |module: &str| {
        let archive = archive(module, "v1.0.0", &[]);
        client.send(&format!("PUT {module}/@v/v1.0.0.zip"), &[], &archive).await
    };
    let host = text(&put("example.com").await, 400);
    assert!(host.contains("add a directory, such as example.com/tool"), "{host}");
    for module in ["example.com/pub", LIB] {
        let taken = text(&put(module).await, 409);
        assert!(taken.contains("have an owner reserve this one"), "{taken}");
    }
    assert_eq!(put("example.com/own").await.status, 201);
    assert_eq!(get(&client, "example.com/own/below/@v/list").await.status, 404);
    proxy.seen();
    assert_eq!(client.send("DELETE example.com/own/@v/v1.0.0.zip", &[], &[]).await.status, 204);
    assert_eq!(get(&client, "example.com/own/below/@v/list").await.status, 404);
    assert_eq!(proxy.seen(), ["example.com/own/below/@v/list"], "nothing is own below a deleted module");
    assert_eq!(get(&client, "example.com/!own/@v/list").await.status, 404);
    assert_eq!(proxy.seen(), Vec::<String>::new(), "its own path stays, in any case");
    let path = format!("/packagereservations/v1/organizations/{org}:createReservation");
    let reserved = owner.rest("POST", &path, Some(json!({ "ecosystem": "GO", "pattern": "example.com/pub" }))).await;
    assert_eq!(reserved.status, 200, "{}", reserved.text());
    assert_eq!(put("example.com/pub").await.status, 201);
}

async fn reports_and_exceptions_hold_in_any_case(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let (org, client, owner) = installer(server, &proxy).await;
    let module = "example.com/Pub/Lib";
    let escaped = "example.com/!pub/!lib";
    proxy.describe(server, escaped, ("v1.0.0", "v1.0.0"), 1);
    proxy.put(&format!("{escaped}/@v/v1.0.0.zip"), &archive(module, "v1.0.0", &[]));
    proxy.list(escaped, &["v1.0.0"]);
    bind_to("GO", &owner, &org, "ENFORCED", json!({ "name": "rules", "cooldownDays": 7 })).await;
    let zip = async || get(&client, &format!("{escaped}/@v/v1.0.0.zip")).await;
    assert!(text(&zip().await, 403).contains("is younger than 7 days"));
    let exception =
        json!({ "purl": "pkg:golang/example.com/pub/lib@v1.0.0", "justification": "CVE-2026-7", "hours": 1 });
    let path = format!("/packageexceptions/v1/organizations/{org}:createException");
    let created = owner.rest("POST", &path, Some(exception)).await;
    assert_eq!(created.status, 200, "{}", created.text());
    assert_eq!(zip().await.status, 200);
    let entry = json!({
        "malid": "MAL-1", "packageName": "example.com/PUB/lib", "ecosystem": "Go", "scope": "MALWARE_SCOPE_PACKAGE",
        "source": "operator",
    });
    let operator = server.operator().await;
    let imported = operator.rest("POST", "/catalog/v1/malware:import", Some(json!({ "entries": [entry] }))).await;
    assert_eq!(imported.status, 200, "{}", imported.text());
    assert!(text(&zip().await, 403).contains("is reported as malware"));
}

async fn a_version_without_a_path_of_its_major_is_marked(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    let (_, client, _) = installer(server, &proxy).await;
    let marked = "v2.0.0+incompatible";
    let archive = proxy.publish(server, LIB, marked, 30);
    proxy.describe(server, LIB, ("v2.0.0", marked), 30);
    proxy.list(LIB, &[marked]);
    assert_eq!(get(&client, &format!("{LIB}/@v/v2.0.0.info")).await.json()["Version"], marked);
    assert_eq!(get(&client, &format!("{LIB}/@v/{marked}.zip")).await.body, archive);
    text(&get(&client, &format!("{LIB}/@v/v2.0.0.zip")).await, 404);
}

each_engine!(
    a_list_that_was_empty_or_gone_is_an_earlier_list,
    a_directory_that_others_use_is_not_taken,
    reports_and_exceptions_hold_in_any_case,
    a_version_without_a_path_of_its_major_is_marked,
    a_file_of_an_upstream_is_requested_once,
    no_wrong_file_is_stored,
    a_young_version_is_withheld_until_it_is_old_enough,
    a_version_that_is_new_here_is_young_whatever_its_commit_says,
    own_modules_are_never_requested,
    blocked_modules_are_refused_in_any_case,
    other_queries_lead_to_versions,
    checksums_are_passed_on,
    a_version_stays_with_its_upstream,
);
