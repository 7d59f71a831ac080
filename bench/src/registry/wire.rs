//! The distribution protocol as a client speaks it, to either registry.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use aws_lc_rs::digest::{Context as Hash, SHA256};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::Outcome;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Bytes that are not held: the same chunk some times, then an end of its own.
#[derive(Clone)]
pub(super) struct Content {
    pub(super) chunk: Bytes,
    pub(super) times: u64,
    pub(super) end: Bytes,
}

impl Content {
    pub(super) fn whole(bytes: Bytes) -> Content {
        Content { chunk: Bytes::new(), times: 0, end: bytes }
    }

    fn length(&self) -> u64 {
        self.chunk.len() as u64 * self.times + self.end.len() as u64
    }

    pub(super) fn digest(&self) -> String {
        self.digest_after(self.begun())
    }

    /// The hash of all but the end.
    fn begun(&self) -> Hash {
        let mut hash = Hash::new(&SHA256);
        (0..self.times).for_each(|_| hash.update(&self.chunk));
        hash
    }

    fn digest_after(&self, mut begun: Hash) -> String {
        begun.update(&self.end);
        begun.finish().as_ref().iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
    }
}

/// Contents of one length that no one has pushed before. All but their ends is hashed once: clients know the digest of
/// what they push.
#[derive(Clone)]
pub(super) struct Fresh {
    content: Content,
    begun: Hash,
}

impl Fresh {
    pub(super) fn new(length: usize) -> Fresh {
        let rest = length - size_of::<u64>();
        let chunk = Bytes::from(vec![0x5a; rest.min(1 << 20)]);
        let times = (rest / chunk.len()) as u64;
        let content = Content { end: Bytes::from(vec![0; rest % chunk.len()]), chunk, times };
        Fresh { begun: content.begun(), content }
    }

    /// The content with this number, and its digest.
    pub(super) fn numbered(&self, number: u64) -> (Content, String) {
        let end = [&self.content.end[..], &number.to_le_bytes()].concat().into();
        let content = Content { end, ..self.content.clone() };
        let digest = content.digest_after(self.begun.clone());
        (content, digest)
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.times > 0 {
            self.times -= 1;
            return Poll::Ready(Some(Ok(Frame::data(self.chunk.clone()))));
        }
        let end = std::mem::take(&mut self.end);
        Poll::Ready((!end.is_empty()).then(|| Ok(Frame::data(end))))
    }

    fn is_end_stream(&self) -> bool {
        self.times == 0 && self.end.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length())
    }
}

/// A registry, and a repository there that the caller may push to.
#[derive(Clone)]
pub(super) struct Side {
    pub(super) address: SocketAddr,
    /// Absent for a registry without authentication.
    pub(super) token: Option<HeaderValue>,
    /// Its path.
    pub(super) repo: String,
}

/// A kept connection to a registry.
pub(super) struct Wire {
    sender: http1::SendRequest<Content>,
    side: Side,
    host: HeaderValue,
}

impl Wire {
    pub(super) async fn open(side: &Side) -> Outcome<Wire> {
        let stream = TcpStream::connect(side.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Wire { sender, side: side.clone(), host: HeaderValue::from_str(&side.address.to_string())? })
    }

    /// Two requests: where to, and the bytes.
    pub(super) async fn push_blob(&mut self, digest: &str, content: Content) -> Outcome<()> {
        let begun = self.send(Method::POST, &self.path("blobs/uploads/"), Content::whole(Bytes::new())).await?;
        let to = begun.headers().get(LOCATION).ok_or("an upload without a place")?.to_str()?.to_owned();
        expect(begun, StatusCode::ACCEPTED).await?;
        let to = to.strip_prefix(&format!("http://{}", self.side.address)).unwrap_or(&to);
        let joint = if to.contains('?') { '&' } else { '?' };
        let stored = self.send(Method::PUT, &format!("{to}{joint}digest={digest}"), content).await?;
        expect(stored, StatusCode::CREATED).await
    }

    pub(super) async fn has_blob(&mut self, digest: &str) -> Outcome<bool> {
        let path = self.path(&format!("blobs/{digest}"));
        let answer = self.send(Method::HEAD, &path, Content::whole(Bytes::new())).await?;
        let found = answer.status() == StatusCode::OK;
        drain(answer.into_body()).await?;
        Ok(found)
    }

    pub(super) async fn push_manifest(&mut self, tag: &str, manifest: Bytes) -> Outcome<()> {
        let path = self.path(&format!("manifests/{tag}"));
        let stored = self.send(Method::PUT, &path, Content::whole(manifest)).await?;
        expect(stored, StatusCode::CREATED).await
    }

    /// Takes what is there, and lets it go: how many bytes it was.
    pub(super) async fn pull(&mut self, what: &str) -> Outcome<u64> {
        let answer = self.send(Method::GET, &self.path(what), Content::whole(Bytes::new())).await?;
        let status = answer.status();
        let length = drain(answer.into_body()).await?;
        if status == StatusCode::OK { Ok(length) } else { Err(format!("{what}: {status}").into()) }
    }

    fn path(&self, rest: &str) -> String {
        format!("/v2/{}/{rest}", self.side.repo)
    }

    async fn send(&mut self, method: Method, path: &str, content: Content) -> Outcome<Response<Incoming>> {
        let kind = if path.contains("/manifests/") { MANIFEST } else { "application/octet-stream" };
        let mut request = Request::builder().method(method).uri(path).header(HOST, &self.host);
        if let Some(token) = &self.side.token {
            request = request.header(AUTHORIZATION, token);
        }
        request = request.header(CONTENT_TYPE, kind).header("accept", MANIFEST);
        self.sender.ready().await?;
        Ok(self.sender.send_request(request.body(content)?).await?)
    }
}

async fn expect(answer: Response<Incoming>, wanted: StatusCode) -> Outcome<()> {
    let status = answer.status();
    let told = answer.into_body().collect().await?.to_bytes();
    if status == wanted {
        return Ok(());
    }
    Err(format!("wanted {wanted}, got {status}: {}", String::from_utf8_lossy(&told)).into())
}

async fn drain(mut body: Incoming) -> Outcome<u64> {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(length)
}
