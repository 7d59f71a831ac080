//! Upstreams that lie, stall or are gone: nothing wrong is stored or served, and what is here is served on.

use std::time::Duration;

use bowline_testkit::{Engine, Streamed, TestServer, each_engine};
use serde_json::json;

use crate::fake_index::{FakeIndex, Fault};
use crate::support::*;
use crate::upstreams::installer;

async fn no_wrong_file_is_stored(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.publish(server, "foo", "1.0", 30);
    let (_, _, client) = installer(server, &index).await;
    let page = client.project("foo").await;
    for (fault, wanted) in [
        (Fault::OtherBytes, "has another digest than the index says, so it is not served"),
        (Fault::More, "is longer than the index says, so it is not served"),
        (Fault::Less, "is shorter than the index says, so it is not served"),
        (Fault::BreaksOff, "cannot be fetched from the upstream pypi: "),
        (Fault::Refused, "cannot be fetched from the upstream pypi: the host answered with status 403"),
    ] {
        index.state().fault = Some(fault);
        let refused = sentence(&client.file(&page, 0).await, 502);
        assert!(refused.contains(wanted), "{fault:?}: {refused}");
        index.seen();
        assert_eq!(client.file(&page, 0).await.status, 502);
        assert_eq!(index.seen(), Vec::<String>::new(), "the failure is remembered");
        assert_eq!(stored_files(server), 0, "{fault:?}");
        assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0, "{fault:?}");
        server.clock().advance(Duration::from_secs(11));
    }
    // The digest is right, and the length that the index says is not.
    index.state().fault = Some(Fault::Less);
    index.state().pages.get_mut("foo").unwrap()[0]["hashes"]["sha256"] = json!(sha256(&bytes[1..]));
    server.clock().advance(Duration::from_secs(301));
    let refused = sentence(&client.file(&client.project("foo").await, 0).await, 502);
    assert!(refused.contains("is shorter than the index says"), "{refused}");
    index.state().fault = None;
    index.state().pages.get_mut("foo").unwrap()[0]["hashes"]["sha256"] = json!(sha256(&bytes));
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(client.file(&client.project("foo").await, 0).await.body, bytes);
}

async fn stored_files_keep_their_digests(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.publish(server, "foo", "1.0", 30);
    let (_, _, client) = installer(server, &index).await;
    let before = client.project("foo").await;
    assert_eq!(client.file(&before, 0).await.status, 200);
    index.state().pages.get_mut("foo").unwrap()[0]["hashes"]["sha256"] = json!("ab".repeat(32));
    server.clock().advance(Duration::from_secs(301));
    let after = client.project("foo").await;
    assert_eq!(after["files"][0]["hashes"]["sha256"], sha256(&bytes));
    // Locks name files that upstreams have deleted since; pages do not, for they may have been malicious.
    index.publish(server, "foo", "1.1", 30);
    index.state().pages.get_mut("foo").unwrap().remove(0);
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(client.project("foo").await["versions"], json!(["1.1"]));
    assert_eq!(client.file(&before, 0).await.body, bytes);
    index.state().pages.remove("foo");
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(client.get("simple/foo/").await.status, 404);
    assert_eq!(client.file(&before, 0).await.body, bytes);
    index.publish(server, "foo", "1.2", 30);
    server.clock().advance(Duration::from_secs(61));
    assert_eq!(client.project("foo").await["versions"], json!(["1.2"]), "it is there again");
}

async fn a_file_that_is_not_on_an_old_page_may_be_on_a_new_one(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    let (_, _, client) = installer(server, &index).await;
    client.project("foo").await;
    let later = index.publish(server, "foo", "1.1", 0);
    let address = format!("files/{}/{}", sha256(&later), file_name("foo", "1.1"));
    server.clock().advance(Duration::from_secs(301));
    index.state().status = Some(500);
    let unknown = sentence(&client.get(&address).await, 503);
    assert_eq!(unknown, "the upstream pypi does not answer: try again in a few seconds");
    index.state().status = None;
    server.clock().advance(Duration::from_secs(11));
    assert_eq!(client.get(&address).await.body, later);
}

async fn an_answer_that_nothing_changed_to_no_question_is_a_failure(server: &TestServer) {
    let index = FakeIndex::start().await;
    let (_, _, client) = installer(server, &index).await;
    index.state().status = Some(304);
    assert_eq!(client.get("simple/foo/").await.status, 503);
    assert_eq!(index.seen(), ["/simple/foo/"]);
}

async fn an_outage_leaves_what_is_here(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.publish(server, "foo", "1.0", 30);
    let (_, _, client) = installer(server, &index).await;
    assert_eq!(client.file(&client.project("foo").await, 0).await.status, 200);
    for status in [500, 429, 401, 403, 302] {
        index.state().status = Some(status);
        server.clock().advance(Duration::from_secs(400));
        let stale = client.get("simple/foo/").await;
        assert_eq!(stale.status, 200, "{status}: {}", stale.text());
        let seconds: i64 = stale.header("x-bowline-stale").expect("a header").parse().unwrap();
        assert!(seconds >= 400, "{status}: {seconds}");
        assert_eq!(client.file(&stale.json(), 0).await.body, bytes);
    }
    assert_eq!(client.get("simple/other/").await.status, 503);
    index.state().status = None;
    server.clock().advance(Duration::from_secs(11));
    let fresh = client.get("simple/foo/").await;
    assert_eq!((fresh.status, fresh.header("x-bowline-stale")), (200, None));
}

async fn a_slow_upstream_is_not_waited_for_where_an_old_page_is_good(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    let (_, _, client) = installer(server, &index).await;
    client.project("foo").await;
    index.publish(server, "foo", "1.1", 0);
    index.state().delay = Duration::from_secs(4);
    server.clock().advance(Duration::from_secs(301));
    // Its answer takes longer than the client waits, and is there for the next one.
    let stale = client.get("simple/foo/").await;
    assert_eq!((stale.status, stale.header("x-bowline-stale")), (200, Some("301")));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(client.project("foo").await["versions"], json!(["1.0", "1.1"]));
    assert_eq!(index.seen(), ["/simple/foo/", "/simple/foo/"]);
}

async fn a_page_that_goes_back_is_not_believed(server: &TestServer) {
    let index = FakeIndex::start().await;
    for minor in 0..12 {
        index.publish(server, "foo", &format!("1.{minor}"), 30);
    }
    index.state().serial = Some(7);
    let (_, _, client) = installer(server, &index).await;
    let all = client.project("foo").await["versions"].clone();
    let half = index.state().pages["foo"][..5].to_vec();
    let whole = std::mem::replace(index.state().pages.get_mut("foo").unwrap(), half);
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(client.project("foo").await["versions"], all, "more than half are gone");
    *index.state().pages.get_mut("foo").unwrap() = whole[..11].to_vec();
    index.state().serial = Some(6);
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(client.project("foo").await["versions"], all, "it is older");
    index.state().serial = Some(8);
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(client.project("foo").await["versions"].as_array().unwrap().len(), 11);
}

async fn what_an_upstream_withholds_is_gone_at_once(server: &TestServer) {
    let index = FakeIndex::start().await;
    for minor in 0..12 {
        index.publish(server, "foo", &format!("1.{minor}"), 30);
    }
    let (_, _, client) = installer(server, &index).await;
    client.project("foo").await;
    index.state().pages.get_mut("foo").unwrap().clear();
    index.state().is_quarantined = true;
    server.clock().advance(Duration::from_secs(301));
    assert_eq!(client.get("simple/foo/").await.status, 404);
}

async fn many_clients_are_one_request(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.publish(server, "foo", "1.0", 30);
    let (_, _, client) = installer(server, &index).await;
    index.state().delay = Duration::from_millis(300);
    let pages = futures_util::future::join_all((0..40).map(|_| client.project("foo"))).await;
    let files = futures_util::future::join_all(pages.iter().map(|page| client.file(page, 0))).await;
    assert!(files.iter().all(|file| file.body == bytes));
    assert_eq!(index.seen(), ["/simple/foo/".to_owned(), format!("/files/{}", file_name("foo", "1.0"))]);
    index.state().fault = Some(Fault::OtherBytes);
    index.publish(server, "bar", "1.0", 30);
    let page = client.project("bar").await;
    index.seen();
    let refused = futures_util::future::join_all((0..40).map(|_| client.file(&page, 0))).await;
    assert!(refused.iter().all(|file| file.status == 502));
    assert_eq!(index.seen().len(), 1);
}

async fn more_packages_than_requests_at_once_wait(server: &TestServer) {
    let index = FakeIndex::start().await;
    let names: Vec<String> = (0..80).map(|n| format!("p{n}")).collect();
    for name in &names {
        index.publish(server, name, "1.0", 30);
    }
    let (_, _, client) = installer(server, &index).await;
    index.state().delay = Duration::from_millis(200);
    let pages = futures_util::future::join_all(names.iter().map(|name| client.project(name))).await;
    let files = futures_util::future::join_all(pages.iter().map(|page| client.file(page, 0))).await;
    assert!(files.iter().all(|file| file.status == 200));
}

async fn a_large_file_arrives_while_it_is_fetched(server: &TestServer) {
    let index = FakeIndex::start().await;
    let bytes = index.publish_large(server, "big", "1.0", 300_000);
    let (org, owner, client) = installer(server, &index).await;
    bind(&owner, &org, "LOG", json!({ "name": "later", "blockList": [{ "purl": "pkg:pypi/big" }] })).await;
    let page = client.project("big").await;
    index.state().stalls = true;
    // The first half is here, and the rest does not come: a client that waits for all of it would see nothing.
    let mut arriving = client.open(&page, 0).await;
    let mut first = Vec::new();
    while first.len() < bytes.len() / 2 {
        first.extend_from_slice(&arriving.part().await.expect("a part").expect("no error"));
    }
    assert_eq!(first, bytes[..first.len()]);
    assert!(server.metrics().await.contains("\nbowline_package_fetches 1\n"), "it is counted");
    index.state().stalls = false;
    while let Some(part) = arriving.part().await {
        first.extend_from_slice(&part.expect("no error"));
    }
    assert_eq!(first, bytes);
    assert_eq!(client.file(&page, 0).await.body, bytes);
    assert_eq!(index.seen().len(), 2);
    let logged = blocked(&owner, server, &org, "LOG").await;
    assert_eq!(logged, [("pkg:pypi/big@1.0".to_owned(), "BLOCK_LIST".to_owned(), 2)]);

    // Wrong bytes are not completed, of which the last ones come once the client has the first.
    let bytes = index.publish_large(server, "bad", "1.0", 300_000);
    let other = bytes.iter().map(|byte| byte ^ 1).collect();
    index.state().files.insert(file_name("bad", "1.0"), other);
    let page = client.project("bad").await;
    index.state().stalls = true;
    let mut arriving = client.open(&page, 0).await;
    index.state().stalls = false;
    let (mut size, mut is_cut) = (0, false);
    while let Some(part) = arriving.part().await {
        match part {
            Ok(part) => size += part.len(),
            Err(_) => is_cut = true,
        }
    }
    assert!(is_cut && size <= bytes.len() - 65_536, "{size}");
    assert_eq!(client.file(&page, 0).await.status, 502);
}

/// All that is sent, at once when it is.
async fn whole(mut arriving: Streamed) -> Vec<u8> {
    let mut sent = Vec::new();
    while let Some(part) = arriving.part().await {
        sent.extend_from_slice(&part.expect("no error"));
    }
    sent
}

async fn a_file_is_requested_once_also_while_its_fetch_ends(server: &TestServer) {
    const FILES: usize = 40;
    let index = FakeIndex::start().await;
    let files: Vec<_> = (0..FILES).map(|minor| index.publish(server, "foo", &format!("1.{minor}"), 30)).collect();
    let (_, _, client) = installer(server, &index).await;
    let page = client.project("foo").await;
    index.seen();
    for (at, bytes) in files.iter().enumerate() {
        for _ in 0..3 {
            assert!(whole(client.open(&page, at).await).await == *bytes, "{at}");
        }
    }
    assert_eq!(index.seen().len(), FILES);
}

async fn what_decides_while_a_file_arrives_counts(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 30);
    let (org, owner, client) = installer(server, &index).await;
    let page = client.project("foo").await;
    index.state().stalls = true;
    let blocks = async {
        while number(server, "SELECT count(*) FROM uploads").await < 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        bind(&owner, &org, "ENFORCED", json!({ "name": "now", "blockList": [{ "purl": "pkg:pypi/foo" }] })).await;
        index.state().stalls = false;
    };
    let (reply, ()) = tokio::join!(client.file(&page, 0), blocks);
    let refused = sentence(&reply, 403);
    assert!(refused.contains("Blocked by policy now"), "{refused}");
}

async fn parts_and_heads_of_files_that_are_not_here(server: &TestServer) {
    let index = FakeIndex::start().await;
    let small = index.publish(server, "small", "1.0", 30);
    let large = index.publish_large(server, "large", "1.0", 300_000);
    let small_too = index.publish(server, "small-too", "1.0", 30);
    let (_, _, client) = installer(server, &index).await;
    for (name, bytes, verb) in [("small", small, "GET"), ("large", large, "GET"), ("small-too", small_too, "HEAD")] {
        let page = client.project(name).await;
        let address = page["files"][0]["url"].as_str().unwrap().strip_prefix("../../").unwrap();
        let ranges: &[_] = if verb == "GET" { &[("range", "bytes=2-5")] } else { &[] };
        let reply = client.send(&format!("{verb} {address}"), ranges, &[]).await;
        let (status, body) = if verb == "GET" { (206, &bytes[2..6]) } else { (200, &[][..]) };
        assert_eq!((reply.status, &reply.body[..]), (status, body), "{name}");
        let length = if verb == "GET" { 4 } else { bytes.len() };
        assert_eq!(reply.header("content-length"), Some(length.to_string().as_str()), "{name}");
        index.seen();
        assert_eq!(client.file(&page, 0).await.body, bytes);
        assert_eq!(index.seen(), Vec::<String>::new(), "{name} was stored");
    }
}

/// What is verified does not wait for the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verified_files_do_not_wait_until_they_are_kept() {
    let server = TestServer::start(Engine::Sqlite).await;
    let index = FakeIndex::start().await;
    let files = [index.publish(&server, "small", "1.0", 30), index.publish_large(&server, "large", "1.0", 300_000)];
    let (_, _, client) = installer(&server, &index).await;
    let pages = [client.project("small").await, client.project("large").await];
    for (page, bytes) in pages.iter().zip(&files) {
        index.state().stalls = true;
        let arrives = async { whole(client.open(page, 0).await).await };
        // What the last part waits for begins once nothing can be written to the database.
        let holds = async {
            while number(&server, "SELECT count(*) FROM uploads").await < 1 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let release = server.hold_writer().await;
            index.state().stalls = false;
            release
        };
        let both = tokio::time::timeout(PATIENCE, async { tokio::join!(arrives, holds) });
        let (sent, release) = both.await.expect("it is sent while nothing can be written");
        assert!(sent == *bytes);
        assert_eq!(number(&server, "SELECT count(*) FROM uploads").await, 1, "it is not kept yet");
        drop(release);
        index.seen();
        assert_eq!(client.file(page, 0).await.body, *bytes);
        assert_eq!(number(&server, "SELECT count(*) FROM uploads").await, 0);
        assert_eq!(index.seen(), Vec::<String>::new(), "it was kept");
    }
    server.stop().await;
}

async fn accounts_stay_with_their_upstream(server: &TestServer) {
    let (index, elsewhere) = (FakeIndex::start().await, FakeIndex::start().await);
    let bytes = index.publish(server, "foo", "1.0", 30);
    elsewhere.publish(server, "foo", "1.0", 30);
    let (org, owner, client) = installer(server, &index).await;
    let upstream = json!({
        "name": "pypi", "ecosystem": "PYTHON", "url": format!("{}/simple", index.base), "username": "me",
        "password": "hush",
    });
    assert_eq!(crate::fake_index::set_upstream(&owner, &org, upstream).await.0, 200);
    index.state().elsewhere = Some(elsewhere.base.clone());
    let page = client.project("foo").await;
    assert_eq!(client.file(&page, 0).await.body, bytes);
    let proofs = |index: &FakeIndex| index.requests().into_iter().map(|seen| seen.proof).collect::<Vec<_>>();
    assert_eq!(proofs(&index), ["Basic bWU6aHVzaA==", "Basic bWU6aHVzaA=="]);
    assert_eq!(proofs(&elsewhere), [""]);
    // Nor are addresses requested that the operator does not allow.
    index.publish(server, "bar", "1.0", 30);
    index.state().elsewhere = Some("http://10.0.0.1".into());
    let page = client.project("bar").await;
    let refused = sentence(&client.file(&page, 0).await, 502);
    assert!(refused.contains("no connection to the host, or its address is not allowed"), "{refused}");
}

each_engine!(
    no_wrong_file_is_stored,
    stored_files_keep_their_digests,
    a_file_that_is_not_on_an_old_page_may_be_on_a_new_one,
    an_answer_that_nothing_changed_to_no_question_is_a_failure,
    what_an_upstream_withholds_is_gone_at_once,
    an_outage_leaves_what_is_here,
    a_slow_upstream_is_not_waited_for_where_an_old_page_is_good,
    a_page_that_goes_back_is_not_believed,
    many_clients_are_one_request,
    a_file_is_requested_once_also_while_its_fetch_ends,
    more_packages_than_requests_at_once_wait,
    a_large_file_arrives_while_it_is_fetched,
    what_decides_while_a_file_arrives_counts,
    parts_and_heads_of_files_that_are_not_here,
    accounts_stay_with_their_upstream,
);
