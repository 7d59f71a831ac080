//! HTTP clients: HTTP/1.1 with keep-alive for REST, HTTP/2 with prior knowledge for gRPC.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// The way to one server, shared by everyone who calls it.
pub(crate) struct Wire {
    authority: String,
    rest: Client<Direct, Full<Bytes>>,
    grpc: Client<Direct, Full<Bytes>>,
}

/// A response as it came.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

impl Wire {
    /// Calls `address`, whatever host the requests name.
    pub(crate) fn new(address: SocketAddr, base: &str) -> Wire {
        let authority = base.split_once("://").map_or(base, |(_, rest)| rest).split('/').next().unwrap_or_default();
        Wire {
            authority: authority.into(),
            rest: Client::builder(TokioExecutor::new()).build(Direct(address)),
            grpc: Client::builder(TokioExecutor::new()).http2_only(true).build(Direct(address)),
        }
    }

    pub(crate) async fn rest(&self, verb: &str, path: &str, headers: HeaderMap, body: Vec<u8>) -> Answer {
        self.call(&self.rest, verb, path, headers, body).await
    }

    pub(crate) async fn grpc(&self, path: &str, headers: HeaderMap, body: Vec<u8>) -> Answer {
        self.call(&self.grpc, "POST", path, headers, body).await
    }

    async fn call(
        &self,
        client: &Client<Direct, Full<Bytes>>,
        verb: &str,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Answer {
        let response = self.open(client, verb, path, headers, body).await;
        let (head, body) = response.into_parts();
        let collected = body.collect().await.unwrap_or_else(|error| panic!("{verb} {path}: {error:?}"));
        let trailers = collected.trailers().cloned().unwrap_or_default();
        Answer { status: head.status.as_u16(), headers: head.headers, body: collected.to_bytes(), trailers }
    }

    /// Sends a request whose response continues.
    pub(crate) async fn watch(
        &self,
        is_grpc: bool,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Response<Incoming> {
        let (client, verb) = if is_grpc { (&self.grpc, "POST") } else { (&self.rest, "GET") };
        self.open(client, verb, path, headers, body).await
    }

    async fn open(
        &self,
        client: &Client<Direct, Full<Bytes>>,
        verb: &str,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Response<Incoming> {
        let uri: Uri = format!("http://{}{path}", self.authority)
            .parse()
            .unwrap_or_else(|error| panic!("{path:?} makes no address: {error}"));
        let mut request = Request::builder().method(verb).uri(uri).body(Full::from(body)).expect("the request is one");
        *request.headers_mut() = headers;
        client.request(request).await.unwrap_or_else(|error| panic!("{verb} {path}: {error:?}"))
    }
}

/// Connects to one address always: public names of a server under test lead nowhere.
#[derive(Clone)]
struct Direct(SocketAddr);

impl tower_service::Service<Uri> for Direct {
    type Response = TokioIo<TcpStream>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<TokioIo<TcpStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let address = self.0;
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        })
    }
}
