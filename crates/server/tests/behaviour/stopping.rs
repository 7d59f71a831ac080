//! A stop that somebody holds up.

use std::time::Duration;

use bowline_testkit::{TestServer, engines};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

#[tokio::test]
async fn a_call_of_the_admin_listener_that_does_not_end_is_cut_off() {
    let server = TestServer::start(engines()[0]).await;
    let mut stream = TcpStream::connect(server.server().admin_address()).await.expect("a connection");
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: admin\r\n").await.expect("half a request is sent");
    tokio::time::sleep(Duration::from_millis(200)).await;
    tokio::time::timeout(Duration::from_secs(15), server.stop()).await.expect("the server stops");
}
