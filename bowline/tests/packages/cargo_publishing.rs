//! Crates are published, resolved, yanked and deleted as cargo does it.

use bowline_testkit::cargo::{announced, archive, body};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::*;

const NEW: &str = "PUT api/v1/crates/new";

/// The one detail of a list of errors, which must have this status.
fn detail(reply: &bowline_testkit::RestReply, status: u16) -> String {
    assert_eq!((reply.status, reply.header("content-type")), (status, Some("application/json")), "{}", reply.text());
    reply.json()["errors"][0]["detail"].as_str().expect("a detail").to_owned()
}

async fn a_published_version_is_indexed_and_can_be_downloaded(server: &TestServer) {
    let (org, client) = cargo_publisher(server, "acme").await;
    assert_eq!(client.send("GET ac/me/acme_tool", &[], &[]).await.status, 404);
    let bytes = archive("Acme_tool", "1.2.0", "license = \"MIT\"\nlinks = \"z\"\nrust-version = \"1.70\"\n");
    let mut said = announced("Acme_tool", "1.2.0");
    said["deps"] = json!([{ "name": "other", "version_req": "^1", "kind": "dev" }]);
    said["features"] = json!({ "a": ["dep:other"], "b": [] });
    let put = client.send(NEW, &[], &body(&said, &bytes)).await;
    assert_eq!((put.status, &put.json()["warnings"]["other"]), (200, &json!([])), "{}", put.text());
    client.cargo_publish("Acme_tool", "1.10.0").await;

    let lines = client.crate_lines("ac/me/acme_tool").await;
    let versions: Vec<&Value> = lines.iter().map(|line| &line["vers"]).collect();
    assert_eq!(versions, ["1.2.0", "1.10.0"]);
    let line = &lines[0];
    assert_eq!(
        (&line["name"], &line["cksum"], &line["yanked"]),
        (&json!("Acme_tool"), &json!(sha256(&bytes)), &json!(false))
    );
    assert_eq!((&line["links"], &line["rust_version"], &line["v"]), (&json!("z"), &json!("1.70"), &json!(2)));
    assert_eq!((&line["features"], &line["features2"]), (&json!({ "b": [] }), &json!({ "a": ["dep:other"] })));
    assert_eq!((&line["deps"][0]["req"], &line["deps"][0]["kind"]), (&json!("^1"), &json!("dev")));
    assert!(line["pubtime"].as_str().is_some_and(|time| time.len() == "2026-01-01T00:00:00Z".len()), "{line}");

    let config = client.send("GET config.json", &[], &[]).await.json();
    let base = format!("{}/libraries/cargo", server.base());
    assert_eq!(config, json!({ "dl": format!("{base}/api/v1/crates"), "api": base, "auth-required": true }));
    let of_group = client.at(&org).send("GET config.json", &[], &[]).await.json();
    assert_eq!(of_group["api"], format!("{base}/~{org}"));

    let file = client.send("GET api/v1/crates/Acme_tool/1.2.0/download", &[], &[]).await;
    assert_eq!((file.status, &file.body), (200, &bytes));
    let head = client.send("HEAD api/v1/crates/Acme_tool/1.2.0/download", &[], &[]).await;
    assert_eq!((head.status, head.header("content-length")), (200, Some(bytes.len().to_string().as_str())));
    let index = client.send("GET ac/me/acme_tool", &[], &[]).await;
    let tag = index.header("etag").expect("an ETag");
    assert_eq!(client.send("GET ac/me/acme_tool", &[("if-none-match", tag)], &[]).await.status, 304);
    for absent in ["api/v1/crates/Acme_tool/1.3.0/download", "ac/me/acme-tool", "Ac/me/acme_tool"] {
        let reply = client.send(&format!("GET {absent}"), &[], &[]).await;
        assert_eq!((reply.status, reply.header("content-type")), (404, Some("text/plain; charset=utf-8")), "{absent}");
    }
    let sql = "SELECT count(*) FROM audit WHERE method = 'bowline.libraries.v1.CargoHost.PublishFile'";
    assert_eq!(number(server, sql).await, 2);
    let sql = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.file.published.v1'";
    assert_eq!(number(server, sql).await, 2);
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
}

async fn versions_do_not_change(server: &TestServer) {
    let (_, client) = cargo_publisher(server, "acme").await;
    let bytes = client.cargo_publish("tool", "1.0.0").await;
    let before = stored_files(server);
    let same = client.send(NEW, &[], &body(&announced("tool", "1.0.0"), &bytes)).await;
    assert_eq!(same.status, 200, "{}", same.text());
    let other = archive("tool", "1.0.0", "license = \"ISC\"\n");
    let refused = client.send(NEW, &[], &body(&announced("tool", "1.0.0"), &other)).await;
    let text = "tool-1.0.0.crate already exists with other bytes, and files do not change: publish another version";
    assert_eq!(detail(&refused, 409), text);
    let build = archive("tool", "1.0.0+build", "");
    let refused = client.send(NEW, &[], &body(&announced("tool", "1.0.0+build"), &build)).await;
    assert_eq!(detail(&refused, 409), "1.0.0+build is the version 1.0.0, which exists: publish another version");
    for close in ["TOOL-a", "too_l"] {
        client.cargo_publish(close, "1.0.0").await;
    }
    for close in ["tool_a", "too-l"] {
        let refused = client.send(NEW, &[], &body(&announced(close, "1.0.0"), &archive(close, "1.0.0", ""))).await;
        assert!(detail(&refused, 409).contains("is too close to"), "{}", refused.text());
    }
    assert_eq!(stored_files(server), before + 2);

    let deleted = client.send("DELETE api/v1/crates/tool/1.0.0", &[], &[]).await;
    assert_eq!((deleted.status, deleted.json()), (200, json!({ "ok": true })));
    let gone = detail(&client.send("DELETE api/v1/crates/tool/1.0.0", &[], &[]).await, 404);
    assert!(gone.contains("\"tool@1.0.0\" does not exist"), "{gone}");
    assert_eq!(client.send("GET api/v1/crates/tool/1.0.0/download", &[], &[]).await.status, 404);
    let again = client.send(NEW, &[], &body(&announced("tool", "1.0.0"), &bytes)).await;
    assert!(detail(&again, 409).contains("was deleted"), "{}", again.text());
    let sql = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.cargo.version.deleted.v1'";
    assert_eq!(number(server, sql).await, 1);
}

async fn a_yanked_version_stays_for_lock_files(server: &TestServer) {
    let (org, client) = cargo_publisher(server, "acme").await;
    let bytes = client.cargo_publish("tool", "1.0.0").await;
    let yanked = async || client.crate_lines("to/ol/tool").await[0]["yanked"].clone();
    for (what, wanted) in [
        ("DELETE api/v1/crates/tool/1.0.0/yank", true),
        ("DELETE api/v1/crates/Tool/1.0.0/yank", true),
        ("PUT api/v1/crates/tool/1.0.0/unyank", false),
        ("PUT api/v1/crates/tool/1.0.0/unyank", false),
        ("DELETE api/v1/crates/tool/1.0.0/yank", true),
    ] {
        let reply = client.send(what, &[], &[]).await;
        assert_eq!((reply.status, reply.json()), (200, json!({ "ok": true })), "{what}");
        assert_eq!(yanked().await, json!(wanted), "{what}");
    }
    let file = client.send("GET api/v1/crates/tool/1.0.0/download", &[], &[]).await;
    assert_eq!((file.status, &file.body), (200, &bytes));
    let absent = detail(&client.send("DELETE api/v1/crates/tool/1.0.1/yank", &[], &[]).await, 404);
    assert!(absent.contains("\"tool@1.0.1\" does not exist"), "{absent}");
    let reader = Client::of(server, &server.actor("libraries.cargo.pull", &org).await).cargo();
    for what in [
        "DELETE api/v1/crates/tool/1.0.0/yank",
        "PUT api/v1/crates/tool/1.0.0/unyank",
        "DELETE api/v1/crates/tool/1.0.0",
    ] {
        detail(&reader.send(what, &[], &[]).await, 403);
    }
    for (kind, wanted) in [("yanked", 2), ("unyanked", 1)] {
        let sql = match kind {
            "yanked" => {
                "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.cargo.version.yanked.v1'"
            }
            _ => "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.cargo.version.unyanked.v1'",
        };
        assert_eq!(number(server, sql).await, wanted, "{kind}");
    }
}

async fn archives_must_be_what_was_announced(server: &TestServer) {
    let (_, client) = cargo_publisher(server, "acme").await;
    let good = archive("tool", "1.0.0", "");
    let whole = body(&announced("tool", "1.0.0"), &good);
    let mut dependency = announced("tool", "1.0.0");
    dependency["deps"] = json!([{ "name": "../x", "version_req": "^1" }]);
    let long = [&whole[..], b"more"].concat();
    let huge = [&2_000_000_u32.to_le_bytes()[..], b"{"].concat();
    for (sent, status, why) in [
        (body(&announced("tool", "1.0.1"), &good), 400, "the archive is tool 1.0.0, which is not what was announced"),
        (body(&announced("other", "1.0.0"), &good), 400, "which is not what was announced"),
        (body(&announced("tool", "1.0"), &good), 400, "\"1.0\" is no version of a crate"),
        (body(&announced("t.l", "1.0.0"), &good), 400, "must be the name of a crate"),
        (body(&json!([]), &good), 400, "does not parse"),
        (body(&dependency, &good), 400, "which is not the name of a crate"),
        (body(&announced("tool", "1.0.0"), b"no archive"), 400, "the archive "),
        (body(&announced("tool", "1.0.0"), &good[..good.len() - 9]), 400, "the archive "),
        (whole[..whole.len() - 9].to_vec(), 400, "the body ends before the archive does"),
        (whole[..9].to_vec(), 400, "the body broke off"),
        (Vec::new(), 400, "the body broke off"),
        (long, 413, "bytes"),
        (huge, 413, "are possible"),
    ] {
        let refused = detail(&client.send(NEW, &[], &sent).await, status);
        assert!(refused.contains(why), "{why}: {refused}");
    }
    assert_eq!((stored_files(server), number(server, "SELECT count(*) FROM uploads").await), (0, 0));
    assert_eq!(client.send(NEW, &[], &whole).await.status, 200);
}

async fn who_may_not_is_refused_in_the_form_that_cargo_shows(server: &TestServer) {
    let (org, client) = cargo_publisher(server, "acme").await;
    client.cargo_publish("tool", "1.0.0").await;
    let text = |reply: &bowline_testkit::RestReply, status: u16| {
        let shown = (reply.status, reply.header("content-type"));
        assert_eq!(shown, (status, Some("text/plain; charset=utf-8")), "{}", reply.text());
    };
    let anonymous = Client::anonymous(server).cargo();
    let refused = anonymous.send("GET config.json", &[], &[]).await;
    text(&refused, 401);
    assert_eq!(
        refused.header("www-authenticate"),
        Some(format!("Cargo login_url=\"{}/console\"", server.base()).as_str())
    );
    detail(&anonymous.send(NEW, &[], &[]).await, 401);
    let (_, stranger) = cargo_publisher(server, "other").await;
    text(&stranger.send("GET to/ol/tool", &[], &[]).await, 404);
    text(&stranger.at(&org).send("GET to/ol/tool", &[], &[]).await, 403);
    detail(&stranger.at(&org).send(NEW, &[], &body(&announced("a", "1.0.0"), &archive("a", "1.0.0", ""))).await, 403);
    for role in ["viewer", "libraries.go.push", "libraries.python.push"] {
        let other = Client::of(server, &server.actor(role, &org).await).cargo();
        text(&other.send("GET to/ol/tool", &[], &[]).await, 403);
        text(&other.send("GET config.json", &[], &[]).await, 403);
    }
    let reader = server.actor("libraries.cargo.pull", &org).await;
    let token = reader.token.clone().expect("a token");
    assert_eq!(client.authorized(&token).send("GET to/ol/tool", &[], &[]).await.status, 200);
    text(&client.authorized("nonsense").send("GET to/ol/tool", &[], &[]).await, 401);
    let reader = client.authorized(&token);
    detail(&reader.send(NEW, &[], &body(&announced("a", "1.0.0"), &archive("a", "1.0.0", ""))).await, 403);
    for (what, status, why) in [
        ("GET api/v1/crates?q=tool", 404, "crates cannot be searched here"),
        ("GET api/v1/crates/tool/owners", 404, "crates have no owners here"),
        ("PUT api/v1/crates/tool/owners", 404, "crates have no owners here"),
        ("GET api/v1/crates/new", 405, "only PUT are possible here"),
        ("POST api/v1/crates/tool/1.0.0/yank", 405, "only DELETE are possible here"),
    ] {
        let refused = detail(&client.send(what, &[], &[]).await, status);
        assert!(refused.contains(why), "{what}: {refused}");
    }
    let shown = client.send("GET api/v1/crates/tool/1.0.0/download", &[("sec-fetch-dest", "document")], &[]).await;
    text(&shown, 403);
}

each_engine!(
    a_published_version_is_indexed_and_can_be_downloaded,
    versions_do_not_change,
    a_yanked_version_stays_for_lock_files,
    archives_must_be_what_was_announced,
    who_may_not_is_refused_in_the_form_that_cargo_shows,
);
