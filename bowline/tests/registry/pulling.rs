//! Pulls: parts, conditions, and what is told of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_testkit::{Engine, TestServer, by_engine, each_engine};
use tokio::task::JoinHandle;

use crate::support::*;

/// Pulls and pushes of repositories that the days count, or will.
const PULLS_BY_DAY: &str = "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM (
    SELECT n FROM activity_deltas WHERE kind = 1 UNION ALL
    SELECT d.n FROM activity_days d JOIN repos r ON r.uid = d.scope WHERE d.kind = 1 AND d.identity = '') counted";
const PUSHES_BY_DAY: &str = "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM (
    SELECT n FROM activity_deltas WHERE kind = 2 UNION ALL
    SELECT d.n FROM activity_days d JOIN repos r ON r.uid = d.scope WHERE d.kind = 2 AND d.identity = '') counted";

async fn blobs_come_in_parts(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let content: Vec<u8> = (0..700_000_u32).map(|n| n as u8).collect();
    let digest = client.blob(&name, &content).await;
    let path = format!("GET /v2/{name}/blobs/{digest}");
    let reply = client.send(&path, &[], b"").await;
    assert_eq!((reply.status, reply.body == content), (200, true));
    assert_eq!(header(&reply, "accept-ranges"), "bytes");
    assert_eq!(header(&reply, "x-content-type-options"), "nosniff");
    let reply = client.send(&path, &[("range", "bytes=5-400000")], b"").await;
    assert_eq!((reply.status, reply.body == content[5..=400_000]), (206, true));
    assert_eq!(header(&reply, "content-range"), "bytes 5-400000/700000");
    let reply = client.send(&path, &[("range", "bytes=-3")], b"").await;
    assert_eq!((reply.status, reply.body.as_slice()), (206, &content[699_997..]));
    let reply = client.send(&path, &[("range", "bytes=700000-")], b"").await;
    assert_eq!((reply.status, header(&reply, "content-range").as_str()), (416, "bytes */700000"));
    let etag = format!("\"{digest}\"");
    let reply = client.send(&path, &[("if-none-match", &etag)], b"").await;
    assert_eq!((reply.status, reply.body.len()), (304, 0));
    let reply = client.send(&path, &[("range", "bytes=0-1"), ("if-range", "\"other\"")], b"").await;
    assert_eq!(reply.status, 200);
    let reply = client.send(&path.replace("GET", "HEAD"), &[], b"").await;
    assert_eq!((reply.status, header(&reply, "content-length").as_str(), reply.body.len()), (200, "700000", 0));
}

async fn browsers_show_nothing_that_was_pushed(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let digest = client.blob(&name, b"<script>alert(1)</script>").await;
    client.image(&name, "1", b"a layer").await;
    let blob = format!("/v2/{name}/blobs/{digest}");
    let nothing = format!("/v2/{name}/manifests/none");
    let manifest = format!("/v2/{name}/manifests/1");
    for path in [blob.as_str(), &manifest, &nothing, "/v2/", "/v2/_catalog", "/v2/?/"] {
        for destination in ["document", "iframe", "embed", "object", "script", "style", "image", "serviceworker"] {
            let reply = client.send(&format!("GET {path}"), &[("sec-fetch-dest", destination)], b"").await;
            assert_eq!(reply.status, 403, "{path}, {destination}: {}", reply.text());
            assert_eq!(reply.json()["errors"][0]["code"], "DENIED");
            assert!(header(&reply, "content-security-policy").ends_with("; sandbox"));
        }
    }
    // Scripts of other pages fetch; programs say nothing.
    for headers in [&[("sec-fetch-dest", "empty")][..], &[]] {
        let reply = client.send(&format!("GET {blob}"), headers, b"").await;
        assert_eq!((reply.status, reply.body.as_slice()), (200, &b"<script>alert(1)</script>"[..]));
        assert!(header(&reply, "content-security-policy").ends_with("; sandbox"));
    }
}

async fn a_pull_is_recorded_and_a_head_request_is_not(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let digest = digest_of(&client.image(&name, "1", b"a layer").await);
    let path = format!("/v2/{name}/manifests/1");
    let head = client.send(&format!("HEAD {path}"), &[], b"").await;
    assert_eq!((head.status, header(&head, "docker-content-digest")), (200, digest.clone()));
    let etag = format!("\"{digest}\"");
    client.send(&format!("GET {path}"), &[("user-agent", "tester/1")], b"").await;
    let reply = client.send(&format!("GET {path}"), &[("if-none-match", &etag)], b"").await;
    assert_eq!((reply.status, reply.body.len()), (304, 0));
    server.server().parts().registry.flush_pulls().await;
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.registry.pull.v1'";
    assert_eq!(number(server, told).await, 2);
    for (kind, counted) in [(PULLS_BY_DAY, 2), (PUSHES_BY_DAY, 1)] {
        assert_eq!(number(server, kind).await, counted, "{kind}");
    }
    assert_eq!(number(server, "SELECT count(*) FROM repo_manifests WHERE last_pulled_at IS NOT NULL").await, 1);
    assert_eq!(number(server, "SELECT max(last_pulled_at) % 60000000 FROM repo_manifests").await, 0);
    assert_eq!(code(&client.get(&format!("/v2/{name}/manifests/2")).await, 404), "MANIFEST_UNKNOWN");
    assert_eq!(code(&client.send(&format!("POST {path}"), &[], b"").await, 405), "UNSUPPORTED");
}

async fn a_flush_waits_for_the_one_that_took_its_pulls(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    client.image(&name, "1", b"a layer").await;
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.registry.pull.v1'";
    for pulls in 1..=20 {
        client.send(&format!("GET /v2/{name}/manifests/1"), &[], b"").await;
        let registry = &server.server().parts().registry;
        let second = async {
            registry.flush_pulls().await;
            number(server, told).await
        };
        let (_, there) = tokio::join!(registry.flush_pulls(), second);
        assert_eq!(there, pulls);
    }
}

async fn a_stop_loses_no_pull(engine: Engine) {
    let server = TestServer::start(engine).await;
    let (org, client) = pusher(&server, "acme").await;
    let name = format!("{org}/app");
    client.image(&name, "1", b"a layer").await;
    // So many that several transactions write them, of which the second waits when the server stops.
    let (busy, end) = keep_busy(&server);
    for _ in 0..450 {
        let reply = client.send(&format!("GET /v2/{name}/manifests/1"), &[], b"").await;
        assert_eq!(reply.status, 200);
    }
    end.store(true, Ordering::Relaxed);
    busy.await.expect("the transaction ends well");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (busy, end) = keep_busy(&server);
    tokio::time::sleep(Duration::from_millis(1200)).await;
    drop(client);
    let stopping = tokio::spawn(server.restarted());
    tokio::time::sleep(Duration::from_secs(2)).await;
    end.store(true, Ordering::Relaxed);
    busy.await.expect("the transaction ends well");
    let server = stopping.await.expect("the server starts again");
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.registry.pull.v1'";
    assert_eq!(number(&server, told).await, 450);
    server.stop().await;
}

/// A transaction that others wait for until it is told to end.
fn keep_busy(server: &TestServer) -> (JoinHandle<()>, Arc<AtomicBool>) {
    let db = server.server().parts().storage.db.clone();
    let end = Arc::new(AtomicBool::new(false));
    let told = end.clone();
    let busy = tokio::spawn(async move {
        let written = db.write(move |tx| {
            let told = told.clone();
            Box::pin(async move {
                tx.execute("UPDATE repo_manifests SET last_pulled_at = 0", &[]).await?;
                while !told.load(Ordering::Relaxed) {
                    if tx.engine() == bowline_store::Engine::Sqlite {
                        // One writer at a time, on a thread of its own.
                        std::thread::sleep(Duration::from_millis(10));
                    } else {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                }
                Ok::<_, bowline_core::Error>(())
            })
        });
        written.await.expect("the transaction ends well");
    });
    (busy, end)
}

each_engine!(
    multi_thread:
    blobs_come_in_parts,
    browsers_show_nothing_that_was_pushed,
    a_pull_is_recorded_and_a_head_request_is_not,
    a_flush_waits_for_the_one_that_took_its_pulls
);

by_engine!(multi_thread: a_stop_loses_no_pull);
