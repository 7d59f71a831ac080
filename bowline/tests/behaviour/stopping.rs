//! A stop that someone holds up, and a server that no one asks anything.

use std::time::Duration;

use bowline_testkit::{TestServer, each_engine, engines};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_call_of_the_admin_listener_that_does_not_end_is_cut_off() {
    let server = TestServer::start(engines()[0]).await;
    let mut stream = TcpStream::connect(server.server().admin_address()).await.expect("a connection");
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: admin\r\n").await.expect("half a request is sent");
    // Connections are accepted in order: one that gets an answer comes after.
    let mut next = TcpStream::connect(server.server().admin_address()).await.expect("a connection");
    next.write_all(b"GET /livez HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n")
        .await
        .expect("a request is sent");
    next.read_to_end(&mut Vec::new()).await.expect("an answer");
    tokio::time::timeout(Duration::from_secs(15), server.stop()).await.expect("the server stops");
}

/// Disks wear out, and laptops sleep: who has nothing to do leaves them alone.
#[tokio::test]
async fn an_idle_server_on_the_embedded_engine_writes_nothing() {
    let server = TestServer::start(engines()[0]).await;
    let log = server.data_dir().join("bowline.db-wal");
    let written = || {
        let metadata = std::fs::metadata(&log).expect("the log of the database");
        (metadata.len(), metadata.modified().expect("a time"))
    };
    // What a start has to write.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = written();
    // Longer than anything waits that looks for work every few seconds.
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.clock().advance(Duration::from_millis(100));
    }
    assert_eq!(written(), before);
    server.organization("acme").await;
    assert_ne!(written(), before, "the log is where writes are seen");
    server.stop().await;
}

/// Status of a page of the admin listener.
async fn status(server: &TestServer, path: &str) -> String {
    let mut stream = TcpStream::connect(server.server().admin_address()).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

async fn a_server_that_can_write_no_more_is_not_alive(server: &TestServer) {
    for path in ["/livez", "/readyz"] {
        assert_eq!(status(server, path).await, "200", "{path}");
    }
    server.server().parts().storage.db.close().await;
    for path in ["/livez", "/readyz"] {
        assert_eq!(status(server, path).await, "503", "{path}");
    }
}

each_engine!(a_server_that_can_write_no_more_is_not_alive);
