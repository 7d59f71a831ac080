//! A caller over HTTP/1.1 who connects again when the server was killed.

use std::net::SocketAddr;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

pub(crate) struct Client {
    address: SocketAddr,
    token: String,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Client {
        Client { address, token: token.into(), connection: None }
    }

    /// The answer, which must be a success if there is one.
    pub(crate) async fn call(&mut self, verb: &str, path: &str, body: &Value) -> Option<Value> {
        let answer = self.send(verb, path, body).await;
        if answer.is_none() {
            self.connection = None;
        }
        answer
    }

    async fn send(&mut self, verb: &str, path: &str, body: &Value) -> Option<Value> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                let stream = TcpStream::connect(self.address).await.ok()?;
                let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
                tokio::spawn(connection);
                none.insert(sender)
            }
        };
        let request = Request::builder()
            .method(verb)
            .uri(path)
            .header("host", self.address.to_string())
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(Full::new(body.to_string().into()))
            .expect("a request");
        connection.ready().await.ok()?;
        let response = connection.send_request(request).await.ok()?;
        let status = response.status();
        let body = response.into_body().collect().await.ok()?.to_bytes();
        assert!(status.is_success(), "{verb} {path}: {status} {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).ok()
    }
}
