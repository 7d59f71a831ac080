//! A file is published once, and read by installers in all forms.

use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::support::*;

async fn a_published_file_is_on_its_page_and_can_be_downloaded(server: &TestServer) {
    let (_, client) = publisher(server, "acme").await;
    let bytes = client.publish("foo-bar", "1.0").await;
    let page = client.project("foo-bar").await;
    let file = &page["files"][0];
    assert_eq!((&page["name"], &page["versions"]), (&json!("foo-bar"), &json!(["1.0"])));
    assert_eq!(file["filename"], "foo_bar-1.0-py3-none-any.whl");
    assert_eq!((&file["hashes"]["sha256"], &file["size"]), (&json!(sha256(&bytes)), &json!(bytes.len())));
    assert_eq!((&file["requires-python"], &file["yanked"]), (&json!(">=3.8"), &json!(false)));

    let reply = client.file(&page, 0).await;
    assert_eq!((reply.status, &reply.body), (200, &bytes));
    assert_eq!(reply.header("cache-control"), Some("private, no-cache"), "a policy may withhold it at any time");
    let metadata = metadata("foo-bar", "1.0", "License-Expression: MIT\n");
    assert_eq!(file["core-metadata"]["sha256"], sha256(metadata.as_bytes()));
    let address = format!("files/{}/foo_bar-1.0-py3-none-any.whl", sha256(&bytes));
    assert_eq!(client.get(&format!("{address}.metadata")).await.text(), metadata);

    let packed = client.send(&format!("GET {address}"), &[("accept-encoding", "gzip")], &[]).await;
    assert_eq!((packed.header("content-encoding"), &packed.body), (None, &bytes), "archives are sent as they are");
    let part = client.send(&format!("GET {address}"), &[("range", "bytes=-22")], &[]).await;
    assert_eq!((part.status, &part.body[..]), (206, &bytes[bytes.len() - 22..]));
    let head = client.send(&format!("HEAD {address}"), &[], &[]).await;
    assert_eq!((head.status, head.header("content-length")), (200, Some(&*bytes.len().to_string())));
    assert_eq!((head.body.len(), head.header("accept-ranges")), (0, Some("bytes")));
    let tag = head.header("etag").unwrap().to_owned();
    assert_eq!(client.send(&format!("GET {address}"), &[("if-none-match", &tag)], &[]).await.status, 304);
    let beyond = client.send(&format!("GET {address}"), &[("range", "bytes=100000-")], &[]).await;
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some(&*format!("bytes */{}", bytes.len()))));

    let sql = "SELECT count(*) FROM audit WHERE method = 'bowline.libraries.v1.PythonHost.PublishFile'";
    assert_eq!(number(server, sql).await, 1);
    let sql = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.file.published.v1'";
    assert_eq!(number(server, sql).await, 1);
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
}

async fn pages_have_the_form_that_is_asked_for(server: &TestServer) {
    let (_, client) = publisher(server, "acme").await;
    client.publish("foo-bar", "1.0").await;
    client.publish("zed", "1.0").await;
    let page = client.send("GET simple/foo-bar/", &[], &[]).await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("vary"), Some("Accept, Accept-Encoding, Authorization"));
    assert!(page.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")));
    assert!(page.text().contains("data-requires-python=\"&gt;=3.8\""), "{}", page.text());
    let html = client.send("GET simple/", &[("accept", "application/vnd.pypi.simple.v1+html")], &[]).await;
    assert_eq!(html.header("content-type"), Some("application/vnd.pypi.simple.v1+html"));
    let list = client.get("simple/").await;
    assert_eq!(list.json()["projects"], json!([{ "name": "foo-bar" }, { "name": "zed" }]));
    let tag = list.header("etag").unwrap().to_owned();
    let known = client.send("GET simple/", &[("accept", JSON), ("if-none-match", &tag)], &[]).await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(client.send("GET simple/", &[("accept", "application/json")], &[]).await.status, 406);

    for path in ["simple/Foo._Bar/", "simple/foo-bar", "simple/FOO-BAR"] {
        let moved = client.get(path).await;
        let target = format!("{}/libraries/python/simple/foo-bar/", server.base());
        assert_eq!((moved.status, moved.header("location")), (301, Some(&*target)), "{path}");
    }
    let odd = client.at("\u{fc}b%0d%0aer").get("simple/Foo/").await;
    let target = format!("{}/libraries/python/~%C3%BCb%0D%0Aer/simple/foo/", server.base());
    assert_eq!((odd.status, odd.header("location")), (301, Some(&*target)));
    assert_eq!(sentence(&client.get("simple/absent/").await, 404), "Not found: package \"absent\" does not exist");
    assert_eq!(client.send("POST simple/", &[], &[]).await.status, 405);
    assert_eq!(client.send("PUT legacy/", &[], &[]).await.status, 405);
    let shown = client.send("GET files/ab/zed-1.0.tar.gz", &[("sec-fetch-dest", "document")], &[]).await;
    assert!(sentence(&shown, 403).contains("browsers do not show"), "{}", shown.text());
}

async fn files_do_not_change(server: &TestServer) {
    let (_, client) = publisher(server, "acme").await;
    let bytes = client.publish("foo", "1.0").await;
    let name = file_name("foo", "1.0");
    let before = stored_files(server);
    let again = client.upload(&form("foo", "1.0", &name, &bytes)).await;
    assert_eq!(again.status, 200, "{}", again.text());
    let other = wheel("foo", "1.0", "License-Expression: MIT\nKeywords: other\n");
    let refused = sentence(&client.upload(&form("foo", "1.0", &name, &other)).await, 409);
    assert!(refused.contains("already exists") && refused.contains("publish another version"), "{refused}");
    assert_eq!(client.file(&client.project("foo").await, 0).await.body, bytes);
    assert_eq!(stored_files(server), before);
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
    assert_eq!(number(server, "SELECT file_count FROM package_repositories").await, 1);
}

async fn versions_are_ordered_as_python_does(server: &TestServer) {
    let (_, client) = publisher(server, "acme").await;
    for version in ["1.10", "1.9", "2.0rc1", "1.9.post1"] {
        client.publish("foo", version).await;
    }
    let source = sdist("foo", "1.9");
    let reply = client.upload(&form("foo", "1.9", "foo-1.9.tar.gz", &source)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let page = client.project("foo").await;
    assert_eq!(page["versions"], json!(["1.9", "1.9.post1", "1.10", "2.0rc1"]));
    let names: Vec<&str> =
        page["files"].as_array().unwrap().iter().filter_map(|file| file["filename"].as_str()).collect();
    assert_eq!(names[..2], ["foo-1.9-py3-none-any.whl", "foo-1.9.tar.gz"]);
    assert_eq!((&page["files"][1]["core-metadata"], client.file(&page, 1).await.body), (&json!(false), source));
    let address = page["files"][1]["url"].as_str().unwrap().strip_prefix("../../").unwrap();
    assert_eq!(client.get(&format!("{address}.metadata")).await.status, 404);
}

each_engine!(
    a_published_file_is_on_its_page_and_can_be_downloaded,
    pages_have_the_form_that_is_asked_for,
    files_do_not_change,
    versions_are_ordered_as_python_does,
);
