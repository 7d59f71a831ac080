//! Addresses with a time: what had been published then, for builds that can be repeated.

use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::fake_index::FakeIndex;
use crate::support::*;
use crate::upstreams::installer;

async fn a_dated_address_shows_what_had_been_published(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    index.publish(server, "foo", "1.1", 2);
    index.publish(server, "new", "1.0", 2);
    let (org, _, client) = installer(server, &index).await;
    let then = index.state().pages["foo"][0]["upload-time"].as_str().unwrap().to_owned();
    let now = client.project("foo").await;
    let dated = client.at(&format!("{org}@{then}"));
    let page = dated.project("foo").await;
    assert_eq!((&page["versions"], page["files"].as_array().unwrap().len()), (&json!(["1.0"]), 1), "{page}");
    assert_eq!(client.project("foo").await, now, "another page");
    assert_eq!(dated.file(&now, 0).await.status, 200);
    let name = file_name("foo", "1.1");
    let wanted = format!("{name} had not been published at {then}, the time of this address");
    assert_eq!(sentence(&dated.file(&now, 1).await, 404), wanted);
    assert_eq!(client.file(&now, 1).await.status, 200);
    let absent = sentence(&dated.get("simple/new/").await, 404);
    assert!(absent.starts_with("new had not been published at "), "{absent}");
    // Without a group it is that of the caller, and a date stands for its first moment.
    let of_caller = client.at(&format!("@{}", &then[..10]));
    assert_eq!(of_caller.get("simple/foo/").await.status, 404, "it was published later on that day");
    for wrong in ["2099-01-01", "yesterday", "", "2026-02-30", "2026-01-01T", "2026-01-01@2026-01-01"] {
        let refused = client.at(&format!("@{wrong}")).get("simple/foo/").await;
        assert_eq!(refused.status, 400, "{wrong}: {}", refused.text());
    }
}

async fn a_dated_document_has_tags_of_what_had_been_published(server: &TestServer) {
    let index = FakeIndex::start().await;
    for (version, days) in [("1.0.0", 30), ("1.1.0", 20), ("2.0.0", 2)] {
        index.npm_publish(server, "foo", version, days);
    }
    let (org, client) = npm_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    index.npm_serve(&owner, &org).await;
    let whole = client.document("foo").await;
    let dated = client.at(&format!("@{}", whole["time"]["1.1.0"].as_str().unwrap()));
    let document = dated.document("foo").await;
    let versions: Vec<&String> = document["versions"].as_object().unwrap().keys().collect();
    assert_eq!(
        (versions.as_slice(), &document["dist-tags"]["latest"]),
        (["1.0.0", "1.1.0"].map(String::from).iter().collect::<Vec<_>>().as_slice(), &json!("1.1.0"))
    );
    assert_eq!(document["time"].get("2.0.0"), None, "{document}");
    assert_eq!(dated.npm_file(server, &document, "1.1.0").await.status, 200);
    let address = document["versions"]["1.1.0"]["dist"]["tarball"].as_str().unwrap();
    assert!(address.contains("/javascript/~@20"), "files are at the same time, written alike: {address}");
    let later = dated.send("GET foo/-/foo-2.0.0.tgz", &[], &[]).await;
    assert_eq!(later.status, 404, "{}", later.text());
    assert_eq!(dated.send("GET foo/2.0.0", &[], &[]).await.status, 404);
}

async fn nothing_is_published_at_a_time_and_java_has_none(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let bytes = wheel("foo", "1.0", "");
    let dated = client.at(&format!("{org}@2020-01-01"));
    let refused = dated.upload(&form("foo", "1.0", &file_name("foo", "1.0"), &bytes)).await;
    assert_eq!(sentence(&refused, 400), "packages are not published at a time: leave @ and the time out");
    let java = Client::of(server, &server.actor("libraries.java.pull", &org).await).java();
    let refused = java.at("@2020-01-01").send("GET org/pub/lib/1.0/lib-1.0.jar", &[], &[]).await;
    assert_eq!(sentence(&refused, 400), "packages of java are not shown as of a time: leave @ and the time out");
}

each_engine!(
    a_dated_address_shows_what_had_been_published,
    a_dated_document_has_tags_of_what_had_been_published,
    nothing_is_published_at_a_time_and_java_has_none,
);
