//! Requests whose bodies take their time.

use std::time::Duration;

use bowline_testkit::{TestServer, each_engine, engines};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::open_uploads::until;
use crate::support::*;

/// A request under way, of whose body parts are still to come.
pub(crate) struct Slow {
    stream: TcpStream,
}

impl Slow {
    /// Sends the head of `"VERB /path"` with a body of so many bytes.
    pub(crate) async fn begin(
        server: &TestServer,
        client: &Client,
        what: &str,
        content_type: &str,
        length: usize,
    ) -> Slow {
        let mut stream = TcpStream::connect(server.server().address()).await.unwrap();
        let (host, token) = (server.base().split_once("://").unwrap().1, client.token());
        let head = format!(
            "{what} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: {content_type}\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        Slow { stream }
    }

    /// Like `begin`, and waits until the server reads the body: it has admitted the request by then.
    async fn admitted(server: &TestServer, client: &Client, what: &str, content_type: &str, length: usize) -> Slow {
        let asks = format!("{content_type}\r\nexpect: 100-continue");
        let mut slow = Slow::begin(server, client, what, &asks, length).await;
        let mut answer = vec![0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
        slow.stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"HTTP/1.1 100 Continue\r\n\r\n");
        slow
    }

    pub(crate) async fn send(&mut self, part: &[u8]) {
        self.stream.write_all(part).await.unwrap();
    }

    pub(crate) async fn answer(mut self) -> String {
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), self.stream.read_to_end(&mut answer)).await;
        read.expect("an answer in time").unwrap();
        String::from_utf8(answer).unwrap()
    }
}

async fn the_body_of_a_forbidden_push_is_not_read(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    client.image(&format!("{org}/app"), "1", b"a layer").await;
    let reader = crate::support::client(server, "registry.pull", &org).await;
    for name in ["app", "absent", "a/b"] {
        let slow = Slow::begin(server, &reader, &format!("PUT /v2/{org}/{name}/manifests/1"), IMAGE, 1000).await;
        let answer = slow.answer().await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
}

async fn a_token_that_ends_before_the_body_does_pushes_nothing(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let manifest = client.image(&name, "1", b"a layer").await.to_string();
    let at = client.begin(&name).await;
    let digest = digest(b"hello");
    let begin = async |what: &str, length| Slow::admitted(server, &client, what, IMAGE, length).await;
    let mut slow = [
        (begin(&format!("PUT /v2/{name}/manifests/2"), manifest.len()).await, manifest.as_bytes()),
        (begin(&format!("PUT {at}?digest={digest}"), 5).await, b"hello"),
        (begin(&format!("POST /v2/{name}/blobs/uploads/?digest={digest}"), 5).await, b"hello"),
    ];
    for (request, body) in &mut slow {
        request.send(&body[..2]).await;
    }
    server.clock().advance(Duration::from_secs(2 * 3600));
    for (mut request, body) in slow {
        request.send(&body[2..]).await;
        let answer = request.answer().await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    assert_eq!(number(server, "SELECT count(*) FROM tags").await, 1);
    assert_eq!(number(server, "SELECT count(*) FROM blobs").await, 2);
}

async fn what_a_slow_body_changes_happens_when_it_has_come(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let manifest = client.image(&name, "1", b"a layer").await.to_string();
    let what = format!("PUT /v2/{name}/manifests/2");
    let mut slow = Slow::admitted(server, &client, &what, IMAGE, manifest.len()).await;
    slow.send(&manifest.as_bytes()[..10]).await;
    server.clock().advance(Duration::from_secs(60));
    slow.send(&manifest.as_bytes()[10..]).await;
    let answer = slow.answer().await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let apart =
        "SELECT (SELECT created_at FROM tags WHERE name = '2') - (SELECT created_at FROM tags WHERE name = '1')";
    assert_eq!(number(server, apart).await, 60_000_000);
    let audited = "SELECT (SELECT max(at) FROM audit) - (SELECT max(created_at) FROM tags)";
    assert_eq!(number(server, audited).await, 0);
}

/// Connections of clients that are open.
async fn open_connections(server: &TestServer) -> String {
    let mut stream = TcpStream::connect(server.server().admin_address()).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    let series = "bowline_connections_open{listener=\"public\"} ";
    page.lines().find_map(|line| line.strip_prefix(series)).expect("the series").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_disconnected_and_a_slow_one_is_not() {
    const BYTES: usize = 32 << 20;
    let server = TestServer::start_with(engines()[0], |options| options.idle_timeout = Some("2s".into())).await;
    let (org, client) = pusher(&server, "acme").await;
    let name = format!("{org}/app");
    let digest = client.blob(&name, &vec![7; BYTES]).await;
    let get = format!("GET /v2/{name}/blobs/{digest}");

    let mut slow = Slow::begin(&server, &client, &get, "", 0).await.stream;
    let (mut read, mut part) = (0, vec![0; 1 << 19]);
    loop {
        match slow.read(&mut part).await.unwrap() {
            0 => break,
            bytes => read += bytes,
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert!(read > BYTES, "only {read} bytes came");

    let mut silent = Slow::begin(&server, &client, &get, "", 0).await.stream;
    until("the connections end", async || open_connections(&server).await == "0").await;
    let mut rest = Vec::new();
    let _ = silent.read_to_end(&mut rest).await;
    assert!((1..BYTES).contains(&rest.len()), "{} bytes came", rest.len());
    server.stop().await;
}

each_engine!(
    multi_thread:
    the_body_of_a_forbidden_push_is_not_read,
    a_token_that_ends_before_the_body_does_pushes_nothing,
    what_a_slow_body_changes_happens_when_it_has_come
);
