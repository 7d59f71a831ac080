//! A connection to the server: REST over HTTP/1.1 or gRPC over HTTP/2.

use std::net::SocketAddr;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;

use crate::mutation::Mutation;

/// How a request went, as far as the client knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Acknowledged; a creation returns the new UIDP.
    Done(String),
    /// The server said no.
    Refused(String),
    /// No answer came.
    Lost,
}

pub(crate) struct Client {
    connection: Connection,
    token: String,
    address: SocketAddr,
}

enum Connection {
    Rest(http1::SendRequest<Full<Bytes>>),
    Grpc(http2::SendRequest<Full<Bytes>>),
}

/// The one field that every created resource begins with.
#[derive(Clone, PartialEq, Message)]
struct Created {
    #[prost(string, tag = "1")]
    uid: String,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr, is_grpc: bool, token: &str) -> std::io::Result<Client> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let io = TokioIo::new(stream);
        let connection = if is_grpc {
            let shaken = http2::handshake(TokioExecutor::new(), io).await;
            let (sender, connection) = shaken.map_err(std::io::Error::other)?;
            tokio::spawn(connection);
            Connection::Grpc(sender)
        } else {
            let (sender, connection) = http1::handshake(io).await.map_err(std::io::Error::other)?;
            tokio::spawn(connection);
            Connection::Rest(sender)
        };
        Ok(Client { connection, token: token.into(), address })
    }

    pub(crate) async fn send(&mut self, request_id: &str, mutation: &Mutation) -> Reply {
        let answer = match self.connection {
            Connection::Rest(_) => self.rest(request_id, mutation).await,
            Connection::Grpc(_) => self.grpc(request_id, mutation).await,
        };
        answer.unwrap_or(Reply::Lost)
    }

    async fn rest(&mut self, request_id: &str, mutation: &Mutation) -> Option<Reply> {
        let (verb, path, body) = mutation.rest();
        let request = self.request(request_id).method(verb).uri(path);
        let request = request.header("content-type", "application/json").body(Full::new(body.into())).ok()?;
        let Connection::Rest(sender) = &mut self.connection else {
            return None;
        };
        sender.ready().await.ok()?;
        let response = sender.send_request(request).await.ok()?;
        let status = response.status();
        let body = response.into_body().collect().await.ok()?.to_bytes();
        if !status.is_success() {
            return Some(Reply::Refused(format!("{status}: {}", String::from_utf8_lossy(&body))));
        }
        let body: serde_json::Value = serde_json::from_slice(&body).ok()?;
        Some(Reply::Done(body["uid"].as_str().unwrap_or_default().to_owned()))
    }

    async fn grpc(&mut self, request_id: &str, mutation: &Mutation) -> Option<Reply> {
        let (path, message) = mutation.grpc();
        let uri = format!("http://{}{path}", self.address);
        let request = self.request(request_id).method("POST").uri(uri).header("te", "trailers");
        let request = request.header("content-type", "application/grpc").body(Full::new(frame(&message))).ok()?;
        let Connection::Grpc(sender) = &mut self.connection else {
            return None;
        };
        sender.ready().await.ok()?;
        let response = sender.send_request(request).await.ok()?;
        let headers = response.headers().clone();
        let collected = response.into_body().collect().await.ok()?;
        let status = status(&headers).or_else(|| collected.trailers().and_then(status))?;
        if status.0 != "0" {
            return Some(Reply::Refused(format!("{}: {}", status.0, status.1)));
        }
        let body = collected.to_bytes();
        Some(Reply::Done(Created::decode(body.get(5..)?).ok()?.uid))
    }

    fn request(&self, request_id: &str) -> http::request::Builder {
        Request::builder()
            .header("host", self.address.to_string())
            .header("authorization", format!("Bearer {}", self.token))
            .header("x-request-id", request_id)
    }
}

fn frame(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(message.len() + 5);
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.put_slice(message);
    framed.freeze()
}

fn status(headers: &HeaderMap) -> Option<(String, String)> {
    let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Some((text("grpc-status")?, text("grpc-message").unwrap_or_default()))
}
