//! Entries as they come, over gRPC and as server-sent events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bowline_contract::bowline::audit::v1::rpc::audit::WatchEntries;
use bowline_contract::bowline::audit::v1::{Entry, WatchEntriesRequest};
use bowline_testkit::{Engine, TestServer, by_engine, each_engine};
use http::HeaderMap;
use serde_json::Value;

use crate::audit_log::numbered;
use crate::support::{execute, machine, ok};

fn request(organization: &str, after: Option<i64>) -> WatchEntriesRequest {
    WatchEntriesRequest { organization: organization.into(), after, ..WatchEntriesRequest::default() }
}

async fn entries_come_from_a_number_on_over_grpc(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    numbered(server).await;
    let mut stream = owner.watch_grpc::<WatchEntries>(request(&org, Some(0))).await;
    let mut last: Entry = stream.message().await.expect("the first entry");
    assert_eq!((last.sequence, last.resource.as_str()), (1, org.as_str()));
    assert!(last.after.as_ref().is_some_and(|image| image.content.is_some()), "with its image");
    for name in ["a", "b", "c"] {
        let repo = server.repo(&org, name).await;
        loop {
            let entry: Entry = stream.message().await.expect("an entry");
            assert_eq!(entry.sequence, last.sequence + 1, "no gap");
            last = entry;
            if last.resource == repo {
                break;
            }
        }
    }
    // From now on: nothing of what was before.
    let mut stream = owner.watch_grpc::<WatchEntries>(request(&org, None)).await;
    let repo = server.repo(&org, "new").await;
    let entry: Entry = stream.message().await.expect("an entry");
    assert_eq!((entry.resource, entry.sequence), (repo, last.sequence + 1));
}

async fn server_sent_events_go_on_where_they_were_interrupted(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    server.repo(&org, "a").await;
    numbered(server).await;
    let path = format!("/audit/v1/entries:watch?organization={org}&after=1");
    let mut stream = owner.watch_rest(&path, HeaderMap::new()).await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let first = stream.event().await.expect("an event");
    assert_eq!((first.id.as_str(), first.name.as_str()), ("2", "entry"));
    assert_eq!(first.data["sequence"], "2");
    let second = stream.event().await.expect("an event");
    drop(stream);
    let mut headers = HeaderMap::new();
    headers.insert("last-event-id", "2".parse().expect("a header"));
    let mut stream = owner.watch_rest(&path, headers.clone()).await;
    assert_eq!(stream.event().await.expect("an event"), second);
    let repo = server.repo(&org, "b").await;
    while stream.event().await.expect("an event").data["resource"] != repo.as_str() {}
    for (name, value) in [("last-event-id", "x"), ("last-event-id", "-1")] {
        headers.insert(name, value.parse().expect("a header"));
        assert_eq!(owner.watch_rest(&path, headers.clone()).await.status, 400, "{value}");
    }
    let anonymous = server.anonymous().watch_rest(&path, HeaderMap::new()).await;
    assert_eq!(anonymous.status, 401);
}

async fn a_stream_ends_when_the_binding_or_the_token_does(server: &TestServer) {
    let org = server.organization("acme").await;
    let reader = machine(server, &org, "reader").await;
    let binding = server.bind(&reader.uid, &server.role("owner"), &org).await;
    numbered(server).await;
    let mut grpc = reader.actor.watch_grpc::<WatchEntries>(request(&org, None)).await;
    let path = format!("/audit/v1/entries:watch?organization={org}");
    let mut rest = reader.actor.watch_rest(&path, HeaderMap::new()).await;
    ok(&server.operator().await, &format!("DELETE /iam/v2/roleBindings/{binding}"), Value::Null).await;
    let error = loop {
        if let Err(error) = grpc.message::<Entry>().await {
            break error;
        }
    };
    assert_eq!(error.code, 7, "{error:?}");
    let last = loop {
        let event = rest.event().await.expect("the stream says why it ends");
        if event.name == "error" {
            break event;
        }
    };
    assert_eq!(last.data["code"], 7, "{last:?}");
    assert_eq!(rest.event().await, None);
    // A token of an hour does not outlive it.
    let owner = server.actor("owner", &org).await;
    numbered(server).await;
    let mut grpc = owner.watch_grpc::<WatchEntries>(request(&org, None)).await;
    server.clock().advance(Duration::from_secs(3601));
    let error = grpc.message::<Entry>().await.expect_err("the token has ended");
    assert_eq!(error.code, 16, "{error:?}");
}

async fn a_caller_has_sixteen_streams_and_a_stop_ends_them(engine: Engine) {
    let server = TestServer::start(engine).await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(owner.watch_grpc::<WatchEntries>(request(&org, None)).await);
    }
    let mut further = owner.watch_grpc::<WatchEntries>(request(&org, None)).await;
    assert_eq!(further.message::<Entry>().await.expect_err("one too many").code, 8);
    let path = format!("/audit/v1/entries:watch?organization={org}");
    assert_eq!(owner.watch_rest(&path, HeaderMap::new()).await.status, 429);
    // One that is closed makes room.
    drop(streams.pop());
    for _ in 0..200 {
        if server.server().parts().pipeline.streams.open_of(&owner.identity) < 16 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    streams.push(owner.watch_grpc::<WatchEntries>(request(&org, None)).await);
    let ended = tokio::spawn(async move {
        let mut codes = Vec::new();
        for stream in &mut streams {
            codes.push(loop {
                if let Err(error) = stream.message::<Entry>().await {
                    break error.code;
                }
            });
        }
        codes
    });
    tokio::time::timeout(Duration::from_secs(10), server.stop()).await.expect("streams hold no stop up");
    assert_eq!(ended.await.expect("every stream ends with a status"), vec![14; 16]);
}

/// Rows that no filter of the test admits: they have numbers, and the log continues after them.
const FILLING: [&str; 2] = [
    "INSERT INTO audit (seq, org_seq, at, org, actor, method, request_id, kind, resource, org_hash, hash)
     SELECT n, n, at, 'filling', actor, method, request_id, 'filling', 'filling/x', org_hash, hash
     FROM (WITH RECURSIVE numbers (n) AS (SELECT 1001 UNION ALL SELECT n + 1 FROM numbers WHERE n < 31000)
           SELECT n FROM numbers) AS numbers
     CROSS JOIN (SELECT * FROM audit WHERE resource = $1 AND seq IS NOT NULL ORDER BY seq LIMIT 1) AS one",
    "UPDATE audit_chains SET seq = 31000 WHERE org = '' AND $1 <> ''",
];

async fn a_filter_that_matches_nothing_lets_others_go_on(server: &TestServer) {
    let org = server.organization("acme").await;
    numbered(server).await;
    for sql in FILLING {
        execute(server, sql, &[&org]).await;
    }
    let repo = server.repo(&org, "last").await;
    numbered(server).await;
    // Everything here runs on one thread: how long is it gone?
    let longest = Arc::new(AtomicU64::new(0));
    let noted = longest.clone();
    let ticks = tokio::spawn(async move {
        loop {
            let before = Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
            noted.fetch_max(before.elapsed().as_millis() as u64, Ordering::Relaxed);
        }
    });
    let operator = server.operator().await;
    let started = Instant::now();
    let path = "/audit/v1/entries:watch?after=1000&kind=registry.chainguard.dev/Repo";
    let mut stream = operator.watch_rest(path, HeaderMap::new()).await;
    assert_eq!(stream.event().await.expect("an event").data["resource"], repo.as_str());
    let (took, longest) = (started.elapsed().as_millis() as u64, longest.load(Ordering::Relaxed));
    ticks.abort();
    assert!(longest < took / 4, "the thread was gone for {longest} of {took} ms");
}

each_engine!(
    entries_come_from_a_number_on_over_grpc,
    server_sent_events_go_on_where_they_were_interrupted,
    a_stream_ends_when_the_binding_or_the_token_does,
    a_filter_that_matches_nothing_lets_others_go_on
);

by_engine!(a_caller_has_sixteen_streams_and_a_stop_ends_them);
