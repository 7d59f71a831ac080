//! An upstream with one image that counts its requests and can lie, and clients that see where a response is cut.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bowline_testkit::TestServer;
use bytes::Bytes;
use futures_util::{Stream, stream};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::mirrors::mirror;
use crate::support::*;

pub(crate) const LAYER_BYTES: usize = 3 << 20;
const PART: usize = 48 * 1024;

/// How the upstream sends the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    Honest,
    /// Without its length.
    Unannounced,
    /// With another byte in the middle, or at the end.
    WrongByte(usize),
    /// Well-formed, with so many bytes.
    Length(usize),
    /// Says so many bytes, and sends them.
    Announces(usize),
    /// Closes the connection after so many bytes.
    BreaksOff(usize),
    /// Answers with this status, and a time to wait.
    Status(u16, Option<u32>),
    /// Sends on to a private address.
    Redirects,
}

#[derive(Clone)]
pub(crate) struct Hostile {
    pub(crate) base: String,
    pub(crate) layer: Bytes,
    conduct: Arc<Mutex<Conduct>>,
    seen: Arc<Mutex<HashMap<String, usize>>>,
    /// Bytes of the layer that may be sent so far.
    gate: Arc<watch::Sender<usize>>,
}

impl Hostile {
    pub(crate) async fn start() -> Hostile {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = Hostile {
            base: format!("http://{}", listener.local_addr().unwrap()),
            layer: (0..LAYER_BYTES).map(|at| (at % 251) as u8 ^ (at >> 12) as u8).collect::<Vec<_>>().into(),
            conduct: Arc::new(Mutex::new(Conduct::Honest)),
            seen: Arc::default(),
            gate: Arc::new(watch::Sender::new(usize::MAX)),
        };
        let answering = upstream.clone();
        let router = axum::Router::new().fallback(async move |request: Request| answering.answer(&request));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        upstream
    }

    pub(crate) fn behaves(&self, conduct: Conduct) {
        *self.conduct.lock().unwrap() = conduct;
    }

    /// Sends the layer up to this byte, and the rest when the gate opens further.
    pub(crate) fn opens_to(&self, bytes: usize) {
        self.gate.send_replace(bytes);
    }

    /// Requests for the layer so far.
    pub(crate) fn asked(&self) -> usize {
        self.seen.lock().unwrap().get(&self.layer_digest()).copied().unwrap_or(0)
    }

    pub(crate) fn layer_digest(&self) -> String {
        digest(&self.layer)
    }

    fn answer(&self, request: &Request) -> Response {
        let last = request.uri().path().rsplit('/').next().unwrap().to_owned();
        *self.seen.lock().unwrap().entry(last.clone()).or_default() += 1;
        let manifest: Value = image(&self.layer);
        match last {
            last if last == self.layer_digest() => self.send_layer(),
            last if last == digest(CONFIG_BYTES) => CONFIG_BYTES.into_response(),
            _ if request.uri().path().contains("/manifests/") => {
                ([("content-type", IMAGE)], manifest.to_string()).into_response()
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    fn send_layer(&self) -> Response {
        let conduct = *self.conduct.lock().unwrap();
        let mut bytes = self.layer.to_vec();
        let announced = match conduct {
            Conduct::Status(status, wait) => {
                let mut response = StatusCode::from_u16(status).unwrap().into_response();
                if let Some(wait) = wait {
                    response.headers_mut().insert("retry-after", wait.into());
                }
                return response;
            }
            Conduct::Redirects => {
                return (StatusCode::TEMPORARY_REDIRECT, [("location", "http://10.1.2.3/layer")]).into_response();
            }
            Conduct::Honest | Conduct::BreaksOff(_) => Some(bytes.len()),
            Conduct::Unannounced => None,
            Conduct::WrongByte(at) => {
                bytes[at] ^= 1;
                None
            }
            Conduct::Length(length) => {
                bytes.resize(length, 7);
                None
            }
            Conduct::Announces(length) => {
                bytes.resize(length, 7);
                Some(length)
            }
        };
        let until = if let Conduct::BreaksOff(at) = conduct { at } else { usize::MAX };
        let mut response = Body::from_stream(self.gated(bytes.into(), until)).into_response();
        if let Some(announced) = announced {
            response.headers_mut().insert("content-length", announced.into());
        }
        response
    }

    /// The bytes as far as the gate is open; an error after `until`.
    fn gated(&self, bytes: Bytes, until: usize) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
        stream::unfold((self.gate.subscribe(), bytes, 0), move |(mut gate, bytes, at)| async move {
            if at == bytes.len() {
                return None;
            }
            if at >= until {
                return Some((Err(std::io::Error::other("broken off")), (gate, bytes.clone(), bytes.len())));
            }
            let open = *gate.wait_for(|open| *open > at).await.ok()?;
            let end = (at + PART).min(bytes.len()).min(open).min(until);
            Some((Ok(bytes.slice(at..end)), (gate, bytes, end)))
        })
    }
}

/// A group here that mirrors the upstream, whose image has been pulled; path of the layer, and a client that pulls.
pub(crate) async fn mirrored(server: &TestServer, upstream: &Hostile, org: &str) -> (String, Client) {
    let group = server.group(org, "mirrored").await;
    mirror(server, &group, upstream.base.clone(), &[]).await;
    let name = format!("{org}/mirrored/app");
    let pusher = client(server, "registry.push", org).await;
    let pulled = pusher.get(&format!("/v2/{name}/manifests/1")).await;
    assert_eq!(pulled.status, 200, "{}", pulled.text());
    (format!("/v2/{name}/blobs/{}", upstream.layer_digest()), client(server, "registry.pull", org).await)
}

/// A response that is read as it comes.
pub(crate) struct Pull {
    stream: TcpStream,
    /// Status line and headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Pull {
    /// Sends `"VERB /path"` to a server that listens at `address`, and reads the head of the response; it may be cut before
    /// that.
    pub(crate) async fn begin(
        server: &TestServer,
        address: SocketAddr,
        client: &Client,
        what: &str,
        headers: &str,
    ) -> Pull {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let (host, token) = (server.base().split_once("://").unwrap().1, client.token());
        let request = format!(
            "{what} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut pull = Pull { stream, head: String::new(), body: Vec::new() };
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if !pull.more(&mut bytes).await {
                return pull;
            }
        };
        pull.head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        pull.body = bytes.split_off(end);
        pull
    }

    async fn more(&mut self, bytes: &mut Vec<u8>) -> bool {
        let read = tokio::time::timeout(Duration::from_secs(30), self.stream.read_buf(bytes)).await;
        read.expect("bytes in time").unwrap_or(0) > 0
    }

    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).map_or(0, |status| status.parse().unwrap())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }

    /// Reads until the body has so many bytes.
    pub(crate) async fn reach(&mut self, bytes: usize) {
        let mut body = std::mem::take(&mut self.body);
        while body.len() < bytes {
            assert!(self.more(&mut body).await, "the response was cut after {} bytes", body.len());
        }
        self.body = body;
    }

    /// Reads to the end; whether all bytes that were promised have come.
    pub(crate) async fn is_complete(&mut self) -> bool {
        let mut body = std::mem::take(&mut self.body);
        while self.more(&mut body).await {}
        self.body = body;
        self.header("content-length").is_some_and(|length| length.parse() == Ok(self.body.len()))
    }
}
