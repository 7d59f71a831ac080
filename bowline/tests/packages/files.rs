//! Generic files are published, listed, read and deleted, as any client of HTTP does it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_content::{Algorithm, Digest};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::*;

const TOOL: &str = "tool/1.2.0/linux/amd64/tool.tar.gz";

/// A SHA-256 in hex as headers have it.
fn in_base64(hex: &str) -> String {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    STANDARD.encode((0..hex.len()).step_by(2).map(byte).collect::<Vec<_>>())
}

async fn put(client: &Client, path: &str, bytes: &[u8]) -> Value {
    let reply = client.send(&format!("PUT {path}"), &[], bytes).await;
    assert_eq!(reply.status, 201, "{path}: {}", reply.text());
    reply.json()
}

async fn uploads(server: &TestServer) -> i64 {
    number(server, "SELECT count(*) FROM uploads").await
}

async fn a_published_file_is_served_with_its_digest(server: &TestServer) {
    let (org, client) = files_publisher(server, "acme").await;
    let bytes = b"any bytes at all".repeat(100);
    let sha256 = sha256(&bytes);
    let published = client.at(&org).send(&format!("PUT {TOOL}"), &[], &bytes).await;
    assert_eq!(published.status, 201, "{}", published.text());
    let wanted = json!({
        "purl": "pkg:generic/tool@1.2.0", "path": "linux/amd64/tool.tar.gz", "size_bytes": bytes.len(), "sha256": sha256,
    });
    assert_eq!(published.json(), wanted);
    let address = format!("{}/libraries/files/~{org}/{TOOL}", server.base());
    assert_eq!(published.header("location"), Some(address.as_str()));
    let tag = format!("\"sha256:{sha256}\"");
    let (repr, digest) = (format!("sha-256=:{}:", in_base64(&sha256)), format!("sha-256={}", in_base64(&sha256)));
    for verb in ["GET", "HEAD"] {
        let file = client.send(&format!("{verb} {TOOL}"), &[], &[]).await;
        assert_eq!((file.status, file.body == bytes), (200, verb == "GET"), "{verb}");
        for (header, value) in [
            ("content-length", bytes.len().to_string().as_str()),
            ("content-type", "application/octet-stream"),
            ("content-disposition", "attachment; filename=\"tool.tar.gz\""),
            ("x-content-type-options", "nosniff"),
            ("accept-ranges", "bytes"),
            ("cache-control", "private, no-cache"),
            ("etag", &tag),
            ("repr-digest", &repr),
            ("digest", &digest),
        ] {
            assert_eq!(file.header(header), Some(value), "{verb}: {header}");
        }
    }
    let part = client.send(&format!("GET {TOOL}"), &[("range", "bytes=4-8")], &[]).await;
    assert_eq!((part.status, part.body.as_slice()), (206, &bytes[4..9]));
    assert_eq!(part.header("content-range"), Some(format!("bytes 4-8/{}", bytes.len()).as_str()));
    assert_eq!(part.header("repr-digest"), Some(repr.as_str()), "the digest is that of the whole file");
    assert_eq!(client.send(&format!("GET {TOOL}"), &[("range", "bytes=9999-")], &[]).await.status, 416);
    assert_eq!(client.send(&format!("GET {TOOL}"), &[("if-none-match", &tag)], &[]).await.status, 304);
    let shown = client.send(&format!("GET {TOOL}"), &[("sec-fetch-dest", "document")], &[]).await;
    assert!(sentence(&shown, 403).contains("browsers do not show files"));
    // The group may stand in the address without its mark.
    let plain = client.send_from_root(&format!("GET /libraries/files/{org}/{TOOL}"), &[], &[]).await;
    assert_eq!((plain.status, &plain.body), (200, &bytes));
    let sql = "SELECT count(*) FROM audit WHERE method = 'bowline.libraries.v1.FilesHost.PublishFile'";
    assert_eq!(number(server, sql).await, 1);
    let sql = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.file.published.v1'";
    assert_eq!((number(server, sql).await, uploads(server).await), (1, 0));
}

async fn versions_and_files_are_listed(server: &TestServer) {
    let (_, client) = files_publisher(server, "acme").await;
    for path in ["tool/1.10.0/b", "tool/1.2.0/z", "tool/1.2.0/a/b+c", "tool/v1/x", "other/1/x"] {
        put(&client, path, path.as_bytes()).await;
    }
    let list = client.send("GET tool/", &[], &[]).await;
    assert_eq!((list.status, list.header("content-type")), (200, Some("application/json")));
    let named = |list: &Value| {
        let of = |item: &Value| (item["version"].as_str().unwrap().to_owned(), item["file_count"].as_u64().unwrap());
        list["versions"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let all = list.json();
    assert_eq!((&all["name"], &all["withheld"], &all["next_after"]), (&json!("tool"), &json!([]), &json!(null)));
    assert_eq!(named(&all), [("v1".into(), 1), ("1.2.0".into(), 2), ("1.10.0".into(), 1)]);
    assert_eq!(all["versions"][1]["size_bytes"], "tool/1.2.0/z".len() + "tool/1.2.0/a/b+c".len());
    let rest = client.send("GET tool?after=1.2.0", &[], &[]).await.json();
    assert_eq!(named(&rest), [("1.10.0".into(), 1)]);
    assert_eq!(client.send("GET tool/?after=9", &[], &[]).await.json()["versions"], json!([]));
    assert!(sentence(&client.send("GET tool/?after=a%20b", &[], &[]).await, 400).starts_with("after: the version"));
    let tag = list.header("etag").expect("an ETag").to_owned();
    assert_eq!(client.send("GET tool/", &[("if-none-match", &tag)], &[]).await.status, 304);

    let files = client.send("GET tool/1.2.0/", &[], &[]).await.json();
    assert_eq!((&files["purl"], &files["withheld"]), (&json!("pkg:generic/tool@1.2.0"), &json!([])));
    let paths: Vec<&Value> = files["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["a/b+c", "z"]);
    assert_eq!(files["files"][1]["sha256"], sha256(b"tool/1.2.0/z"));
    for absent in ["absent/", "tool/1.2/", "tool/1.2.0/absent", "absent/1/x", "Tool/1.2.0/z"] {
        sentence(&client.send(&format!("GET {absent}"), &[], &[]).await, 404);
    }
}

async fn files_do_not_change_and_their_paths_stay_used(server: &TestServer) {
    let (_, client) = files_publisher(server, "acme").await;
    put(&client, "tool/1.0/a", b"first").await;
    let before = stored_files(server);
    let same = client.send("PUT tool/1.0/a", &[("if-none-match", "*")], b"first").await;
    assert_eq!((same.status, &same.json()["path"]), (200, &json!("a")));
    let changed = sentence(&client.send("PUT tool/1.0/a", &[], b"second").await, 409);
    assert_eq!(changed, "1.0/a already exists with other bytes, and files do not change: publish another version");
    let spelled = sentence(&client.send("PUT tool/1.00/a", &[], b"second").await, 409);
    assert_eq!(spelled, "1.00 is the version 1.0, which exists: publish another version");
    assert_eq!((stored_files(server), uploads(server).await), (before, 0));
    put(&client, "tool/1.0/b", b"first").await;
    let published = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.file.published.v1'";
    assert_eq!(number(server, published).await, 2, "the same bytes again are no event");

    assert_eq!(client.send("DELETE tool/1.0/", &[], &[]).await.status, 204);
    assert!(sentence(&client.send("DELETE tool/1.0", &[], &[]).await, 404).contains("tool@1.0"));
    sentence(&client.send("GET tool/1.0/a", &[], &[]).await, 404);
    sentence(&client.send("GET tool/", &[], &[]).await, 404);
    let again = sentence(&client.send("PUT tool/1.0/a", &[], b"first").await, 409);
    assert!(again.contains("was deleted, and its name stays used"), "{again}");
    put(&client, "tool/1.0/c", b"third").await;
    assert_eq!(client.send("GET tool/1.0/", &[], &[]).await.json()["files"].as_array().unwrap().len(), 1);
    let deleted = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.files.version.deleted.v1'";
    assert_eq!(number(server, deleted).await, 1);
    let audited = "SELECT count(*) FROM audit WHERE method = 'bowline.libraries.v1.FilesHost.DeleteVersion'";
    assert_eq!(number(server, audited).await, 1);
}

async fn digests_are_compared_before_anything_is_published(server: &TestServer) {
    let (_, client) = files_publisher(server, "acme").await;
    let (bytes, right, wrong) = (b"bytes", sha256(b"bytes"), sha256(b"others"));
    let wide = Digest::of(Algorithm::Sha512, bytes);
    let headers = |digest: &str| {
        [
            ("digest", format!("sha-256={}", in_base64(digest))),
            ("content-digest", format!("sha-256=:{}:", in_base64(digest))),
            ("repr-digest", format!("sha-256=:{}:", in_base64(digest))),
            ("x-checksum-sha256", digest.to_owned()),
        ]
    };
    for (header, value) in headers(&wrong) {
        let refused = sentence(&client.send("PUT tool/1.0/a", &[(header, &value)], bytes).await, 400);
        assert_eq!(
            refused,
            format!("the body has the SHA-256 {right}, and the request says {wrong}: send the file again")
        );
    }
    let sha1 = "0".repeat(40);
    for (header, value) in [
        ("digest", "md5=YQ=="),
        ("repr-digest", "sha-256=YQ=="),
        ("x-checksum-sha256", "abc"),
        ("x-checksum-sha1", &sha1),
        ("content-md5", "rL0Y20zC+Fzt72VPzMSk2A=="),
    ] {
        sentence(&client.send("PUT tool/1.0/a", &[(header, value)], bytes).await, 400);
    }
    assert_eq!((stored_files(server), uploads(server).await), (0, 0));
    assert_eq!(number(server, "SELECT count(*) FROM hosted_files").await, 0);
    for (number, (header, value)) in headers(&right).iter().enumerate() {
        let reply = client.send(&format!("PUT tool/1.0/{number}"), &[(header, value)], bytes).await;
        assert_eq!(reply.status, 201, "{header}: {}", reply.text());
    }
    let value = format!("sha-512=:{}:", in_base64(wide.hex()));
    assert_eq!(client.send("PUT tool/1.0/wide", &[("content-digest", &value)], bytes).await.status, 201);
}

async fn what_cannot_be_published_is_refused_with_what_is_wrong(server: &TestServer) {
    let (org, client) = files_publisher(server, "acme").await;
    let deep = format!("tool/1.0/{}b", "a/".repeat(16));
    for (path, why) in [
        ("to%20ol/1.0/a", "the name \"to ol\" must be a letter or digit"),
        (".tool/1.0/a", "the name \".tool\" must be"),
        ("tool/-1/a", "the version \"-1\" must be"),
        ("tool/1.0/a%2F%2E%2E%2Fb", "the path has the segment \"..\""),
        ("tool/1.0/a//b", "an empty segment"),
        ("tool/1.0/a~b", "only letters, digits"),
        ("0123456789abcdef/tool/1.0/a", "join the parts of a group with a colon"),
        (&deep, "the path has 17 segments, and 16 are possible"),
    ] {
        let refused = sentence(&client.send(&format!("PUT {path}"), &[], b"x").await, 400);
        assert!(refused.contains(why), "{path}: {refused}");
    }
    let part = client.send("PUT tool/1.0/a", &[("content-range", "bytes 0-0/2")], b"x").await;
    assert!(sentence(&part, 400).contains("a file is published whole"));
    let form = client.send("PUT tool/1.0/a", &[("content-type", "multipart/form-data; boundary=x")], b"x").await;
    assert!(sentence(&form, 415).contains("--upload-file"));
    let packed = client.send("PUT tool/1.0/a", &[("content-encoding", "gzip")], b"x").await;
    assert!(sentence(&packed, 415).contains("without a content encoding"));
    for (what, allowed) in [
        ("POST tool/1.0/a", "GET, HEAD, PUT"),
        ("DELETE tool/1.0/a", "GET, HEAD, PUT"),
        ("PUT tool/1.0/", "GET, HEAD, DELETE"),
        ("DELETE tool/", "GET, HEAD"),
    ] {
        let reply = client.send(what, &[], &[]).await;
        assert_eq!(reply.header("allow"), Some(allowed), "{what}");
        sentence(&reply, 405);
    }
    let dated = client.at(&format!("{org}@2026-01-01")).send("PUT tool/1.0/a", &[], b"x").await;
    assert!(sentence(&dated, 400).contains("packages are not published at a time"));
    let upstream = json!({ "name": "raw", "ecosystem": "GENERIC", "url": "https://files.example.com/" });
    let owner = server.actor("owner", &org).await;
    let path = format!("/packageupstreams/v1/organizations/{org}:setUpstream");
    let refused = owner.rest("POST", &path, Some(json!({ "upstream": upstream }))).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("generic files have no upstreams"), "{}", refused.text());
    assert_eq!((stored_files(server), uploads(server).await), (0, 0));
}

async fn half_a_body_stores_nothing(server: &TestServer) {
    let (_, client) = files_publisher(server, "acme").await;
    let authorization = client.authorization().expect("an account").to_owned();
    let head = format!(
        "PUT /libraries/files/~/tool/1.0/a HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n\
         content-length: 1000\r\nconnection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(server.server().address()).await.expect("a connection");
    stream.write_all(head.as_bytes()).await.expect("a head");
    stream.write_all(&[7; 500]).await.expect("half a body");
    stream.shutdown().await.expect("no more comes");
    let mut answer = Vec::new();
    // The server may close the connection without an answer.
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    sentence(&client.send("GET tool/1.0/a", &[], &[]).await, 404);
    assert_eq!(number(server, "SELECT count(*) FROM hosted_files").await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM outbox WHERE event_type LIKE '%file.published%'").await, 0);
    put(&client, "tool/1.0/a", &[7; 1000]).await;
}

each_engine!(
    a_published_file_is_served_with_its_digest,
    versions_and_files_are_listed,
    files_do_not_change_and_their_paths_stay_used,
    digests_are_compared_before_anything_is_published,
    what_cannot_be_published_is_refused_with_what_is_wrong,
    half_a_body_stores_nothing,
);
