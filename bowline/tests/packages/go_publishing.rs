//! Go modules are published as archives, and what is known of a version follows from it.

use bowline_testkit::golang::archive;
use bowline_testkit::python::zip;
use bowline_testkit::{TestServer, each_engine};

use crate::support::*;

const MODULE: &str = "git.acme.example/Team/tool";
/// Its path as addresses have it.
const PATH: &str = "git.acme.example/!team/tool";

async fn a_published_version_is_listed_and_can_be_downloaded(server: &TestServer) {
    let (_, client) = go_publisher(server, "acme").await;
    let bytes = archive(MODULE, "v1.2.0", &[("sub/x.go", "package sub\n")]);
    assert_eq!(client.send(&format!("GET {PATH}/@v/list"), &[], &[]).await.status, 404);
    let put = client.send(&format!("PUT {PATH}/@v/v1.2.0.zip"), &[], &bytes).await;
    assert_eq!(put.status, 201, "{}", put.text());
    client.go_publish(MODULE, PATH, "v1.10.0").await;
    client.go_publish(MODULE, PATH, "v1.11.0-rc.1").await;

    let list = client.send(&format!("GET {PATH}/@v/list"), &[], &[]).await;
    assert_eq!((list.status, list.text().as_str()), (200, "v1.2.0\nv1.10.0\nv1.11.0-rc.1\n"));
    let info = client.send(&format!("GET {PATH}/@v/v1.2.0.info"), &[], &[]).await;
    assert_eq!((info.status, info.header("content-type")), (200, Some("application/json")));
    assert_eq!(info.json()["Version"], "v1.2.0");
    assert!(info.json()["Time"].as_str().is_some_and(|time| time.ends_with('Z')), "{}", info.text());
    let latest = client.send(&format!("GET {PATH}/@latest"), &[], &[]).await;
    assert_eq!(latest.json()["Version"], "v1.10.0", "{}", latest.text());
    let go_mod = client.send(&format!("GET {PATH}/@v/v1.2.0.mod"), &[], &[]).await;
    assert_eq!((go_mod.status, go_mod.text()), (200, format!("module {MODULE}\n\ngo 1.21\n")));
    let zip = client.send(&format!("GET {PATH}/@v/v1.2.0.zip"), &[], &[]).await;
    assert_eq!((zip.status, &zip.body), (200, &bytes));
    let part = client.send(&format!("GET {PATH}/@v/v1.2.0.zip"), &[("range", "bytes=0-3")], &[]).await;
    assert_eq!((part.status, &part.body[..]), (206, &b"PK\x03\x04"[..]));
    let head = client.send(&format!("HEAD {PATH}/@v/v1.2.0.zip"), &[], &[]).await;
    assert_eq!((head.status, head.header("content-length")), (200, Some(bytes.len().to_string().as_str())));
    for absent in ["v1.3.0.info", "v1.3.0.mod", "v1.3.0.zip", "master.info"] {
        let reply = client.send(&format!("GET {PATH}/@v/{absent}"), &[], &[]).await;
        assert_eq!((reply.status, reply.header("content-type")), (404, Some("text/plain; charset=utf-8")), "{absent}");
    }

    let sql = "SELECT count(*) FROM audit WHERE method = 'bowline.libraries.v1.GoHost.PublishFile'";
    assert_eq!(number(server, sql).await, 3);
    let sql = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.file.published.v1'";
    assert_eq!(number(server, sql).await, 3);
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
}

async fn versions_do_not_change(server: &TestServer) {
    let (_, client) = go_publisher(server, "acme").await;
    client.go_publish(MODULE, PATH, "v1.1.0").await;
    client.go_publish(MODULE, PATH, "v1.0.0").await;
    let before = stored_files(server);
    let put = format!("PUT {PATH}/@v/v1.0.0.zip");
    let same = client.send(&put, &[], &archive(MODULE, "v1.0.0", &[])).await;
    assert_eq!(same.status, 200, "{}", same.text());
    let other = client.send(&put, &[], &archive(MODULE, "v1.0.0", &[("new.go", "package tool\n")])).await;
    let text = "v1.0.0.zip already exists with other bytes, and files do not change: publish another version\n";
    assert_eq!((other.status, other.text().as_str()), (409, text));
    assert_eq!(stored_files(server), before);

    assert_eq!(client.send(&format!("DELETE {PATH}/@v/v1.0.0.zip"), &[], &[]).await.status, 204);
    assert_eq!(client.send(&format!("DELETE {PATH}/@v/v1.0.0.zip"), &[], &[]).await.status, 404);
    let of_another = client.send(&format!("GET {PATH}/@v/v1.1.0.mod"), &[], &[]).await;
    assert_eq!(of_another.status, 200, "it has the same go.mod: {}", of_another.text());
    for path in ["@v/v1.0.0.zip", "@v/v1.0.0.mod", "@v/v1.0.0.info"] {
        assert_eq!(client.send(&format!("GET {PATH}/{path}"), &[], &[]).await.status, 404, "{path}");
    }
    let again = client.send(&put, &[], &archive(MODULE, "v1.0.0", &[])).await;
    assert_eq!((again.status, again.text().contains("was deleted")), (409, true), "{}", again.text());
    let sql = "SELECT count(*) FROM audit WHERE method = 'bowline.libraries.v1.GoHost.DeleteVersion'";
    assert_eq!(number(server, sql).await, 1);
    let sql = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.go.version.deleted.v1'";
    assert_eq!(number(server, sql).await, 1);
}

async fn archives_must_be_those_of_their_version(server: &TestServer) {
    let (_, client) = go_publisher(server, "acme").await;
    let good = archive(MODULE, "v1.0.0", &[]);
    let member = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
    let outside = zip(&[member("evil/x.go", "package x\n")]);
    let prefix = format!("{MODULE}@v1.0.0");
    let other = zip(&[member(&format!("{prefix}/go.mod"), "module example.com/other\n")]);
    let cases = archive(MODULE, "v1.0.0", &[("TOOL.go", "package tool\n")]);
    let named = archive(MODULE, "v1.0.0", &[("a:b.go", "package tool\n")]);
    let nameless = zip(&[member(&format!("{prefix}/go.mod"), "go 1.21\n")]);
    for (bytes, why) in [
        (&good[..good.len() - 30], "is no ZIP archive"),
        (&outside[..], "has the member \"evil/x.go\", which is not in"),
        (&archive(MODULE, "v1.0.1", &[])[..], "which is not in \"git.acme.example/Team/tool@v1.0.0/\""),
        (&other[..], "has a go.mod of the module \"example.com/other\""),
        (&nameless[..], "has a go.mod without a module"),
        (&cases[..], "in upper and in lower case"),
        (&named[..], "whose name the go command does not take"),
        (&zip(&[])[..], "has no files"),
        (&b""[..], "is no ZIP archive"),
    ] {
        let refused = client.send(&format!("PUT {PATH}/@v/v1.0.0.zip"), &[], bytes).await;
        assert_eq!((refused.status, refused.text().contains(why)), (400, true), "{why}: {}", refused.text());
    }
    let major = client.send(&format!("PUT {PATH}/@v/v2.0.0.zip"), &[], &archive(MODULE, "v2.0.0", &[])).await;
    assert_eq!((major.status, major.text().contains("such as /v2")), (400, true), "{}", major.text());
    for elsewhere in ["@v/v1.0.0.mod", "@v/v1.0.0.info", "@v/list", "@v/v1.zip"] {
        let refused = client.send(&format!("PUT {PATH}/{elsewhere}"), &[], &good).await;
        assert_eq!(refused.status, 405, "{elsewhere}: {}", refused.text());
    }
    assert_eq!((stored_files(server), number(server, "SELECT count(*) FROM uploads").await), (0, 0));

    // Without a go.mod, the go command takes one that says no more than the name.
    let bare = zip(&[member(&format!("{prefix}/x.go"), "package x\n")]);
    assert_eq!(client.send(&format!("PUT {PATH}/@v/v1.0.0.zip"), &[], &bare).await.status, 201);
    let go_mod = client.send(&format!("GET {PATH}/@v/v1.0.0.mod"), &[], &[]).await;
    assert_eq!(go_mod.text(), format!("module {MODULE}\n"));
}

async fn refusals_are_plain_text(server: &TestServer) {
    let (org, client) = go_publisher(server, "acme").await;
    client.go_publish(MODULE, PATH, "v1.0.0").await;
    let list = format!("GET {PATH}/@v/list");
    let anonymous = Client::anonymous(server).go().send(&list, &[], &[]).await;
    assert_eq!((anonymous.status, anonymous.header("content-type")), (401, Some("text/plain; charset=utf-8")));
    let (_, stranger) = go_publisher(server, "other").await;
    assert_eq!(stranger.send(&list, &[], &[]).await.status, 404, "it is not in the organization of the caller");
    let refused = stranger.at("acme").send(&list, &[], &[]).await;
    assert_eq!((refused.status, refused.header("content-type")), (403, Some("text/plain; charset=utf-8")));
    let reader = Client::of(server, &server.actor("libraries.go.pull", &org).await).go();
    assert_eq!(reader.send(&list, &[], &[]).await.status, 200);
    for (what, status) in [("PUT", 403), ("DELETE", 403)] {
        let archive = archive(MODULE, "v1.1.0", &[]);
        let refused = reader.send(&format!("{what} {PATH}/@v/v1.1.0.zip"), &[], &archive).await;
        assert_eq!(refused.status, status, "{what}: {}", refused.text());
    }
    let python = Client::of(server, &server.actor("libraries.python.push", &org).await).go();
    assert_eq!(python.send(&list, &[], &[]).await.status, 403);
    let dated = client.at("acme@2026-01-01").send(&list, &[], &[]).await;
    assert_eq!((dated.status, dated.text().contains("packages of go are not shown as of a time")), (400, true));
    let shown = client.send(&format!("GET {PATH}/@v/v1.0.0.zip"), &[("sec-fetch-dest", "document")], &[]).await;
    assert_eq!((shown.status, shown.text().contains("browsers do not show")), (403, true), "{}", shown.text());
    assert_eq!(client.send("GET ", &[], &[]).await.status, 200);
    let nowhere = client.send("GET git.acme.example/Team/tool/@v/list", &[], &[]).await;
    assert_eq!((nowhere.status, nowhere.text().contains("module/@v/list")), (404, true), "{}", nowhere.text());
}

each_engine!(
    a_published_version_is_listed_and_can_be_downloaded,
    versions_do_not_change,
    archives_must_be_those_of_their_version,
    refusals_are_plain_text,
);
