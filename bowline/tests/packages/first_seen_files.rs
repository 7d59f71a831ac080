//! When files were seen first whose bytes, versions or upstreams change.

use std::time::Duration;

use bowline_store::Value;
use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::fake_index::{FakeIndex, set_upstream};
use crate::first_seen::{ALL, LATER, NEW_VERSIONS, renewed, set_source, why};
use crate::support::*;
use crate::upstreams::installer;

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn another_account_knows_the_versions_of_the_first(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 300);
    let (org, owner, client) = installer(server, &index).await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    set_source(&owner, &policy, NEW_VERSIONS, 200).await;
    client.project("foo").await;
    server.clock().advance(LATER);
    index.publish(server, "foo", "1.1", 200);
    let held = async || {
        let page = client.project("foo").await;
        [0, 1].map(|at: usize| page["files"][at]["yanked"].is_string())
    };
    assert_eq!(held().await, [false, true]);
    let change = async |url: String, username: &str| {
        server.clock().advance(Duration::from_secs(1));
        let upstream = json!({
            "name": "pypi", "ecosystem": "PYTHON", "url": url, "username": username, "password": "secret",
        });
        let set = set_upstream(&owner, &org, upstream).await;
        assert_eq!(set.0, 200, "{}", set.1);
    };
    change(format!("{}/simple/", index.base), "reader").await;
    assert_eq!(number(server, "SELECT count(*) FROM upstream_documents").await, 0);
    assert_eq!(held().await, [false, true]);
    change(format!("{}/simple", index.base), "reader").await;
    assert_eq!(held().await, [false, false], "another address begins with first lists");
}

const KNOWN: &str = "SELECT count(*) FROM upstream_known_versions";

/// Gives an upstream another account that has so many lists beside that of `foo`: `p1` and further ones, each of so many bytes and
/// confirmed a microsecond after the one before.
async fn change_account_of(server: &TestServer, (lists, bytes): (i64, usize)) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 300);
    let (org, owner, client) = installer(server, &index).await;
    client.project("foo").await;
    let filled = server.server().parts().storage.db.write(move |tx| {
        Box::pin(async move {
            let sql = "INSERT INTO upstream_documents (upstream, package, etag, last_modified, serial, document, fetched_at)
                       WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
                       SELECT upstream, 'p' || i, '', '', 0, $2, fetched_at + i FROM n, upstream_documents WHERE package = 'foo'";
            let list = vec![0; bytes];
            tx.execute(sql, &[Value::Int(lists), Value::from(&list)]).await.map_err(bowline_core::Error::from)
        })
    });
    assert_eq!(filled.await.unwrap(), u64::try_from(lists).unwrap());
    let upstream = json!({
        "name": "pypi", "ecosystem": "PYTHON", "url": format!("{}/simple/", index.base), "username": "reader",
        "password": "secret",
    });
    let set = set_upstream(&owner, &org, upstream).await;
    assert_eq!(set.0, 200, "{}", set.1);
}

async fn another_account_knows_the_lists_that_were_confirmed_last(server: &TestServer) {
    change_account_of(server, (1000, 100)).await;
    assert_eq!(number(server, KNOWN).await, 1000);
    let first = "SELECT count(*) FROM upstream_known_versions WHERE package = 'foo'";
    assert_eq!(number(server, first).await, 0, "confirmed before the others");
}

async fn another_account_knows_lists_of_32_mebibytes(server: &TestServer) {
    change_account_of(server, (9, 4 << 20)).await;
    assert_eq!(number(server, KNOWN).await, 8);
    let first = "SELECT count(*) FROM upstream_known_versions WHERE package IN ('foo', 'p1')";
    assert_eq!(number(server, first).await, 0, "confirmed before the others");
}

async fn other_bytes_of_an_old_file_are_new(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 300);
    let (org, owner, client) = installer(server, &index).await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    set_source(&owner, &policy, NEW_VERSIONS, 200).await;
    assert_eq!(client.project("foo").await["files"][0]["yanked"], false);
    server.clock().advance(LATER);
    index.state().pages.clear();
    let bytes = wheel("foo", "1.0", "License-Expression: ISC\n");
    index.publish_bytes(server, "foo", "1.0", &bytes);
    let page = client.project("foo").await;
    assert_eq!((page["files"][0]["yanked"].is_string(), client.file(&page, 0).await.status), (true, 403), "{page}");
    set_source(&owner, &policy, "UPSTREAM", 200).await;
    assert_eq!(client.file(&page, 0).await.body, bytes);
}

async fn a_file_that_comes_to_an_old_version_is_new(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 300);
    let (org, owner, client) = installer(server, &index).await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    set_source(&owner, &policy, NEW_VERSIONS, 200).await;
    client.project("foo").await;
    server.clock().advance(LATER);
    let bytes = sdist("foo", "1.0");
    let mut source = index.state().pages["foo"][0].clone();
    source["filename"] = json!("foo-1.0.tar.gz");
    source["url"] = json!("../../files/foo-1.0.tar.gz");
    source["hashes"]["sha256"] = json!(sha256(&bytes));
    source["size"] = json!(bytes.len());
    source.as_object_mut().unwrap().remove("core-metadata");
    index.state().pages.get_mut("foo").unwrap().push(source);
    index.state().files.insert("foo-1.0.tar.gz".into(), bytes.clone());
    let page = client.project("foo").await;
    let named = |name: &str| {
        let files = page["files"].as_array().unwrap();
        files.iter().position(|file| file["filename"] == name).expect("a file")
    };
    let (old, new) = (named(&file_name("foo", "1.0")), named("foo-1.0.tar.gz"));
    let yanked = |at: usize| page["files"][at]["yanked"].is_string();
    assert_eq!((yanked(old), yanked(new)), (false, true), "{page}");
    assert_eq!((client.file(&page, old).await.status, client.file(&page, new).await.status), (200, 403));
    let why = why(&owner, &org, "pkg:pypi/foo@1.0").await;
    assert_eq!(why["allowed"], true, "explanations go by the oldest file: {why}");
    set_source(&owner, &policy, "UPSTREAM", 200).await;
    assert_eq!(client.file(&page, new).await.body, bytes);
}

async fn bytes_that_are_stored_are_not_new(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.publish(server, "foo", "1.0", 300);
    let (org, owner, client) = installer(server, &index).await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    set_source(&owner, &policy, NEW_VERSIONS, 200).await;
    let page = client.project("foo").await;
    assert_eq!(client.file(&page, 0).await.body, bytes);
    // The upstream shows other bytes, and then the first ones again.
    let first = index.state().pages["foo"].clone();
    server.clock().advance(LATER);
    index.state().pages.clear();
    index.publish_bytes(server, "foo", "1.0", &wheel("foo", "1.0", "License-Expression: ISC\n"));
    let page = client.project("foo").await;
    assert_eq!(client.file(&page, 0).await.body, bytes, "the first bytes are stored");
    server.clock().advance(LATER);
    index.state().pages.insert("foo".into(), first);
    index.state().files.insert(file_name("foo", "1.0"), bytes.clone());
    let page = client.project("foo").await;
    assert_eq!((&page["files"][0]["yanked"], client.file(&page, 0).await.body), (&json!(false), bytes.clone()));
    assert_eq!(why(&owner, &org, "pkg:pypi/foo@1.0").await["allowed"], true);

    // All lists are forgotten with another address.
    set_source(&owner, &policy, ALL, 200).await;
    server.clock().advance(DAY * 8);
    let owner = server.actor("owner", &org).await;
    let url = format!("{}/simple", index.base);
    let set = set_upstream(&owner, &org, json!({ "name": "pypi", "ecosystem": "PYTHON", "url": url })).await;
    assert_eq!(set.0, 200, "{}", set.1);
    index.publish(server, "foo", "1.1", 300);
    let client = renewed(server, &org).await;
    let page = client.project("foo").await;
    let yanked = |at: usize| page["files"][at]["yanked"].is_string();
    assert_eq!((yanked(0), yanked(1)), (false, true), "{page}");
    assert_eq!((client.file(&page, 0).await.body, client.file(&page, 1).await.status), (bytes, 403));
    assert_eq!(why(&owner, &org, "pkg:pypi/foo@1.0").await["allowed"], true);
}

each_engine!(
    another_account_knows_lists_of_32_mebibytes,
    another_account_knows_the_lists_that_were_confirmed_last,
    another_account_knows_the_versions_of_the_first,
    other_bytes_of_an_old_file_are_new,
    a_file_that_comes_to_an_old_version_is_new,
    bytes_that_are_stored_are_not_new,
);
