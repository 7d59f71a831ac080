//! Connections that say nothing, and more of them than there shall be.

use std::net::SocketAddr;
use std::time::Duration;

use bowline_contract::bowline::audit::v1::rpc::audit::WatchEntries;
use bowline_contract::bowline::audit::v1::{Entry, WatchEntriesRequest};
use bowline_testkit::{TestServer, engines};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Longest wait for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(30);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection from another address of this machine than the one that the test's other calls come from.
async fn elsewhere(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 2], 0).into()).expect("another loopback address");
    socket.connect(address).await.expect("a connection")
}

/// Waits for the server to end a connection.
pub(crate) async fn ended(stream: &mut TcpStream) {
    let mut buffer = [0; 4096];
    let end = async { while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {} };
    tokio::time::timeout(PATIENCE, end).await.expect("the server ends the connection");
}

/// The status line of a response to a GET over HTTP/1.1.
async fn get(stream: &mut TcpStream, path: &str) -> std::io::Result<String> {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await?;
    let mut buffer = [0; 4096];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.expect("a response or an end")?;
    let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

async fn is_ready(server: &TestServer) {
    let mut stream = TcpStream::connect(server.server().admin_address()).await.expect("a connection");
    assert_eq!(get(&mut stream, "/readyz").await.expect("a response"), "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn hundreds_of_silent_connections_stop_neither_service_nor_readiness() {
    let server = TestServer::start_with(engines()[0], |options| {
        options.max_connections_per_address = Some(50);
        options.max_connections = Some(60);
        options.first_request_timeout = Some("2s".into());
    })
    .await;
    for address in [server.server().address(), server.server().admin_address()] {
        let mut silent = Vec::new();
        for number in 0..400_usize {
            let mut stream = elsewhere(address).await;
            // Nothing, half a preface, a whole one, half a head.
            let said = [&b""[..], &PREFACE[..14], PREFACE, b"GET / HTTP/1.1\r\nhost: a\r\n"][number % 4];
            // A refused connection may be gone already.
            let _ = stream.write_all(said).await;
            silent.push(stream);
        }
        server.organization("acme").await;
        is_ready(&server).await;
        join_all(silent.iter_mut().map(ended)).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_a_response_is_disconnected() {
    let server = TestServer::start_with(engines()[0], |options| options.idle_timeout = Some("1s".into())).await;
    let mut stream = elsewhere(server.server().address()).await;
    // GET / over HTTP/2 of a client whose window has no room.
    let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];
    let headers = [0, 0, 3, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84];
    stream.write_all(&[PREFACE, &settings, &headers].concat()).await.expect("a request");
    ended(&mut stream).await;
    server.stop().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused_until_others_end() {
    let server = TestServer::start_with(engines()[0], |options| {
        options.max_connections = Some(20);
        options.max_connections_per_address = Some(0);
    })
    .await;
    let address = server.server().address();
    let mut open = Vec::new();
    for _ in 0..20 {
        let mut stream = elsewhere(address).await;
        assert_eq!(get(&mut stream, "/nothing").await.expect("a response"), "HTTP/1.1 404 Not Found");
        open.push(stream);
    }
    ended(&mut elsewhere(address).await).await;
    is_ready(&server).await;
    drop(open);
    let again = async {
        while get(&mut elsewhere(address).await, "/nothing").await.unwrap_or_default().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("connections are taken again");
    server.stop().await;
}

#[tokio::test]
async fn the_limit_by_address_does_not_count_trusted_proxies() {
    for (proxies, limited) in [(vec![], true), (vec!["127.0.0.2/32".parse().expect("a network")], false)] {
        let server = TestServer::start_with(engines()[0], |options| {
            options.max_connections_per_address = Some(3);
            options.trusted_proxies = proxies;
        })
        .await;
        let mut open = Vec::new();
        for _ in 0..3 {
            let mut stream = elsewhere(server.server().address()).await;
            get(&mut stream, "/nothing").await.expect("a response");
            open.push(stream);
        }
        let fourth = get(&mut elsewhere(server.server().address()).await, "/nothing").await.unwrap_or_default();
        assert_eq!(fourth.is_empty(), limited, "{fourth}");
        drop(open);
        server.stop().await;
    }
}

#[tokio::test]
async fn idle_connections_end_and_open_streams_do_not() {
    let server = TestServer::start_with(engines()[0], |options| options.idle_timeout = Some("1s".into())).await;
    let address = server.server().address();
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let request = WatchEntriesRequest { organization: org.clone(), ..WatchEntriesRequest::default() };
    let mut watched = owner.watch_grpc::<WatchEntries>(request).await;

    let mut first = elsewhere(address).await;
    get(&mut first, "/nothing").await.expect("a response");
    ended(&mut first).await;

    // GET / over HTTP/2, and then pings for as long as the server takes them.
    let mut second = elsewhere(address).await;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let headers = [0, 0, 3, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84];
    second.write_all(&[PREFACE, &settings, &headers].concat()).await.expect("a request");
    let (mut reader, mut writer) = second.split();
    let pings = async {
        let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        while writer.write_all(&ping).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let end = async {
        let mut buffer = [0; 4096];
        while !matches!(reader.read(&mut buffer).await, Ok(0) | Err(_)) {}
    };
    let both = async {
        tokio::select! {
            () = pings => {}
            () = end => {}
        }
    };
    tokio::time::timeout(PATIENCE, both).await.expect("pings hold no connection without streams");

    let repo = server.repo(&org, "late").await;
    let seen = async {
        loop {
            let entry: Entry = watched.message().await.expect("the stream goes on");
            if entry.resource == repo {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("an entry on a stream that was idle for longer");
    drop(watched);
    server.stop().await;
}
