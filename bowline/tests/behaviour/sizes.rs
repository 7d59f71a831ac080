//! Requests that are too large, and too many large ones at once.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bowline_contract::v2::registry;
use bowline_contract::v2::registry::rpc::repos_service::CreateRepo;
use bowline_core::Error;
use bowline_testkit::{TestServer, each_engine, engines};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::HeaderMap;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const CREATE: &str = "/chainguard.platform.registry.v2.ReposService/CreateRepo";
const MIB: usize = 1 << 20;
/// Longest wait for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(30);
const DENIED: i32 = 7;
const EXHAUSTED: i32 = 8;

/// A request for a repository, with so many bytes in a field that the message does not have.
fn padded(parent: &str, name: &str, padding: usize) -> Vec<u8> {
    let repo = registry::Repo { name: name.into(), ..registry::Repo::default() };
    let mut request = registry::CreateRepoRequest { parent: parent.into(), repo: Some(repo) }.encode_to_vec();
    prost::encoding::encode_key(1000, prost::encoding::WireType::LengthDelimited, &mut request);
    prost::encoding::encode_varint(padding as u64, &mut request);
    request.resize(request.len() + padding, 0);
    request
}

async fn an_ordinary_method_takes_four_mebibytes(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    owner.grpc_raw(CREATE, padded(&org, "a", 4 * MIB - 1024)).await.expect("just small enough");
    for size in [4 * MIB, 100 * MIB - 1024] {
        let error = owner.grpc_raw(CREATE, padded(&org, "b", size)).await.expect_err("too large");
        assert!(matches!(error.code, 8 | 11), "{error:?}");
    }
    let json = serde_json::json!({"name": "b", "description": "d".repeat(4 * MIB)});
    let reply = owner.rest("POST", &format!("/registry/v2/repos?parent={org}"), Some(json)).await;
    assert_eq!(reply.status, 413, "{}", reply.text());
}

async fn a_message_is_inflated_up_to_the_limit_only(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    for (name, size, expected) in [("a", 3 * MIB, None), ("b", 64 * MIB, Some(()))] {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&padded(&org, name, size)).expect("memory is written to");
        let gzip = gzip.finish().expect("a whole stream");
        let length = u32::try_from(gzip.len()).expect("a small message").to_be_bytes();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/grpc".parse().expect("a header"));
        headers.insert("grpc-encoding", "gzip".parse().expect("a header"));
        let reply = owner.rest_with("POST", CREATE, headers, [&[1][..], &length, &gzip].concat()).await;
        // A refusal stands in the headers, the status of a success in the trailers.
        let refused = reply.header("grpc-status").filter(|status| *status != "0");
        assert_eq!(refused.map(|_| ()), expected, "{name}: {refused:?}");
    }
}

#[tokio::test]
async fn bytes_that_wait_for_the_writer_are_bounded() {
    let server = TestServer::start(engines()[0]).await;
    let org = server.organization("acme").await;
    let (owner, other) = (server.actor("owner", &org).await, server.actor("owner", &org).await);
    let stranger = server.stranger().await;
    let (release, held) = channel::<()>();
    let (began, holds) = tokio::sync::oneshot::channel();
    let db = server.server().parts().storage.db.clone();
    let writer = tokio::spawn(hold(db, held, began));
    holds.await.expect("the writer is held");

    let mut calls: FuturesUnordered<_> = (0..30)
        .map(|number| {
            let request = padded(&org, &format!("r{number}"), 3 * MIB);
            let owner = &owner;
            async move { owner.grpc_raw(CREATE, request).await }
        })
        .collect();
    // 64 MiB of one caller are 21 such requests at most: those wait, the others are refused.
    for _ in 0..9 {
        let error = calls.next().await.expect("a result").expect_err("the writer is held");
        assert_eq!(error.code, EXHAUSTED, "{error:?}");
        assert!(error.message.contains("64 MiB at most"), "{error:?}");
    }
    // Who may not call does not wait.
    let error = stranger.grpc_raw(CREATE, padded(&org, "x", 3 * MIB)).await.expect_err("a stranger");
    assert_eq!(error.code, DENIED, "{error:?}");
    let others = other.grpc_raw(CREATE, padded(&org, "other", 3 * MIB));
    release.send(()).expect("the writer waits");
    others.await.expect("another caller has bytes of their own");
    let rest: Vec<_> = calls.collect().await;
    let accepted = rest.iter().filter(|result| result.is_ok()).count();
    assert!((1..=21).contains(&accepted), "{rest:?}");
    assert!(rest.iter().filter_map(|result| result.as_ref().err()).all(|error| error.code == EXHAUSTED), "{rest:?}");
    writer.await.expect("the writer goes on");
    // All bytes are given back.
    owner.grpc_raw(CREATE, padded(&org, "later", 3 * MIB)).await.expect("room again");
    let small = registry::Repo { name: "small".into(), ..registry::Repo::default() };
    let small = registry::CreateRepoRequest { parent: org, repo: Some(small) };
    owner.grpc::<CreateRepo>(small).await.expect("a small one");
    server.stop().await;
}

/// Keeps the writer in a transaction until the channel says so.
async fn hold(db: bowline_store::Db, held: Receiver<()>, began: tokio::sync::oneshot::Sender<()>) {
    let held = Arc::new(std::sync::Mutex::new(held));
    let mut began = Some(began);
    let write = db.write(move |_| {
        let held = held.clone();
        if let Some(began) = began.take() {
            let _ = began.send(());
        }
        Box::pin(async move {
            let _ = held.lock().map(|held| held.recv());
            Ok::<_, Error>(())
        })
    });
    write.await.expect("the transaction ends");
}

/// Sends the head of a request and so many bytes of its body, and reads the head of the response.
async fn begun(stream: &mut TcpStream, head: &str, sent: usize) -> String {
    stream.write_all(head.as_bytes()).await.expect("the head is sent");
    // A response may come before everything was sent.
    let _ = stream.write_all(&vec![b' '; sent]).await;
    let mut buffer = [0; 4096];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.expect("a response");
    String::from_utf8_lossy(&buffer[..read.expect("bytes")]).into_owned()
}

async fn a_large_body_of_an_unauthorized_caller_is_not_read(server: &TestServer) {
    let org = server.organization("acme").await;
    for (role, expected) in [("owner", None), ("viewer", Some("403"))] {
        let actor = server.actor(role, &org).await;
        let mut stream = TcpStream::connect(server.server().address()).await.expect("a connection");
        let head = format!(
            "POST /registry/v2/repos?parent={org} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\n\
             content-length: {}\r\n\r\n",
            actor.token.as_deref().expect("a token"),
            3 * MIB
        );
        let answer = tokio::time::timeout(Duration::from_millis(500), begun(&mut stream, &head, 128 << 10)).await;
        match (expected, answer) {
            (None, Err(_)) => {}
            (Some(status), Ok(answer)) => assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}"),
            (_, answer) => panic!("{role}: {answer:?}"),
        }
    }
}

async fn a_body_that_says_it_is_too_large_is_refused_unread(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let mut stream = TcpStream::connect(server.server().address()).await.expect("a connection");
    let head = format!(
        "POST /registry/v2/repos?parent={org} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\n\
         content-length: {}\r\n\r\n",
        owner.token.as_deref().expect("a token"),
        5 * MIB
    );
    let answer = begun(&mut stream, &head, 0).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn bodies_of_queries_without_a_token_that_do_not_arrive_are_bounded_by_address() {
    let server = TestServer::start(engines()[0]).await;
    let address = server.server().address();
    let head = format!("POST /osv/v1/query HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", 4 * MIB);
    let mut waiting = Vec::new();
    // An address may have 16 MiB under way.
    for _ in 0..4 {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(head.as_bytes()).await.expect("the head is sent");
        waiting.push(stream);
    }
    let mut refused = String::new();
    let until = tokio::time::Instant::now() + PATIENCE;
    while !refused.starts_with("HTTP/1.1 429") && tokio::time::Instant::now() < until {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(head.as_bytes()).await.expect("the head is sent");
        let mut buffer = [0; 4096];
        let read = tokio::time::timeout(Duration::from_millis(200), stream.read(&mut buffer)).await;
        refused = read.map_or(String::new(), |read| String::from_utf8_lossy(&buffer[..read.unwrap_or(0)]).into_owned());
    }
    assert!(refused.to_ascii_lowercase().contains("retry-after: 1"), "{refused}");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let body = r#"{"package":{"name":"a","ecosystem":"PyPI"}}"#;
    let small = format!("POST /osv/v1/query HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let answer = begun(&mut stream, &small, 0).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.stop().await;
}

each_engine!(
    an_ordinary_method_takes_four_mebibytes,
    a_message_is_inflated_up_to_the_limit_only,
    a_large_body_of_an_unauthorized_caller_is_not_read,
    a_body_that_says_it_is_too_large_is_refused_unread
);
