//! Limits that the operator chooses take effect.

use std::time::Duration;

use bowline_contract::bowline::audit::v1::WatchEntriesRequest;
use bowline_contract::bowline::audit::v1::rpc::audit::WatchEntries;
use bowline_core::Error;
use bowline_testkit::{Engine, TestServer, engines};
use futures_util::future::join_all;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::advisories::{advisory, event};
use crate::deliveries::until;
use crate::metrics::value;
use crate::support::{call, ok};

/// How long a body has to arrive where nothing is chosen.
const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_caller_has_as_many_streams_as_were_chosen() {
    let server = TestServer::start_with(engines()[0], |options| options.streams_per_caller = Some(2)).await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let request = || WatchEntriesRequest { organization: org.clone(), ..WatchEntriesRequest::default() };
    let _open = [owner.watch_grpc::<WatchEntries>(request()).await, owner.watch_grpc::<WatchEntries>(request()).await];
    let path = format!("/audit/v1/entries:watch?organization={org}");
    assert_eq!(owner.watch_rest(&path, HeaderMap::new()).await.status, 429);
    server.stop().await;
}

#[tokio::test]
async fn a_body_has_as_long_to_arrive_as_was_chosen() {
    let server = TestServer::start_with(engines()[0], |options| options.request_timeout = Some("1s".into())).await;
    let mut stream = TcpStream::connect(server.server().address()).await.expect("a connection");
    let half = b"POST /sts/exchange HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\naud=";
    stream.write_all(half).await.expect("half a request");
    let mut head = [0; 12];
    let read = tokio::time::timeout(DEFAULT_REQUEST_TIMEOUT / 3, stream.read_exact(&mut head)).await;
    read.expect("the default does not hold").expect("a response");
    assert_eq!(&head, b"HTTP/1.1 504");
    server.stop().await;
}

#[tokio::test]
async fn a_process_opens_as_many_connections_to_its_database_as_were_chosen() {
    if !engines().contains(&Engine::Postgres) {
        return;
    }
    let server = TestServer::start_with(Engine::Postgres, |options| options.database_connections = Some(4)).await;
    let operator = server.operator().await;
    let lists = (0..24).map(|_| ok(&operator, "GET /iam/v2/roles", Value::Null));
    join_all(lists).await;
    let page = server.metrics().await;
    let open: i64 = ["used", "idle"]
        .map(|state| value(&page, &format!("bowline_database_connections{{state=\"{state}\"}}")))
        .iter()
        .sum();
    assert!((1..=4).contains(&open), "{open} connections");
    server.stop().await;
}

#[tokio::test]
async fn readers_map_as_much_of_the_embedded_database_as_was_chosen() {
    let server = TestServer::start_with(Engine::Sqlite, |options| options.database_map = Some(8)).await;
    let mapped = server.server().parts().storage.db.read(|tx| {
        Box::pin(async move { tx.query_opt("PRAGMA mmap_size", &[], |row| row.int(0).map_err(Error::from)).await })
    });
    assert_eq!(mapped.await.expect("a reader"), Some(8 << 20));
    server.stop().await;
}

#[tokio::test]
async fn public_advisories_beyond_their_memory_are_read_from_the_database() {
    let server = TestServer::start_with(engines()[0], |options| options.advisory_memory = Some(0)).await;
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let uid = advisory(&operator, &org, "curl", &["CVE-2026-1"]).await;
    let scan = json!({ "scanner": "grype", "subpackageName": "libcurl", "grypeDbChecksum": "sum" });
    let approved = json!({
        "timestamp": "2020-01-01T00:00:01Z", "detection": { "scanv1": scan },
        "status": "APPROVED", "findings": "e30=", "issue": "secret",
    });
    event(&operator, &uid, approved).await;
    let settings = format!("PATCH /advisorysettings/v1/groups/{org}?updateMask=public");
    ok(&operator, &settings, json!({ "public": true })).await;
    let read = async |query: &str| {
        let reply = call(&server.anonymous(), &format!("GET /advisory/v2/documents{query}"), Value::Null).await;
        reply.text()
    };
    until("the document is public", async || read("?id=curl").await.contains("CVE-2026-1")).await;
    let whole = read("").await;
    assert!(whole.contains("larger than one answer"), "nothing is in memory: {whole}");
    server.stop().await;
}
