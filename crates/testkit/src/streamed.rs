//! Streaming responses, read piece by piece.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::actor::GrpcError;
use crate::wire::Answer;

/// Longest wait for a piece.
const PATIENCE: Duration = Duration::from_secs(20);

/// A response that continues.
pub struct Streamed {
    pub status: u16,
    pub headers: HeaderMap,
    trailers: HeaderMap,
    body: Incoming,
    read: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its id, empty if it has none.
    pub id: String,
    pub name: String,
    pub data: serde_json::Value,
}

impl Streamed {
    pub(crate) fn new(response: Response<Incoming>) -> Streamed {
        let (head, body) = response.into_parts();
        let (status, headers) = (head.status.as_u16(), head.headers);
        Streamed { status, headers, trailers: HeaderMap::new(), body, read: Vec::new() }
    }

    /// The next part of the body as it came; absent at its end.
    ///
    /// # Errors
    /// The connection was cut.
    pub async fn part(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("a stream says something in time");
        frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    /// Reads on; false at the end.
    async fn more(&mut self) -> bool {
        let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("a stream says something in time");
        let Some(frame) = frame else { return false };
        match frame.expect("the connection stays").into_data() {
            Ok(data) => self.read.extend(data),
            Err(other) => self.trailers = other.into_trailers().unwrap_or_default(),
        }
        true
    }

    /// The next server-sent event, absent at the end.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.read.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.read.drain(..end + 2).collect();
                let block = String::from_utf8(block).expect("events are text");
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
                if field("data: ").is_empty() {
                    continue;
                }
                let data = serde_json::from_str(field("data: ")).expect("data is JSON");
                return Some(Event { id: field("id: ").into(), name: field("event: ").into(), data });
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// The next gRPC message.
    ///
    /// # Errors
    /// The status that the stream ended with.
    pub async fn message<M: prost::Message + Default>(&mut self) -> Result<M, GrpcError> {
        loop {
            let length = self.read.get(1..5).map(|mut length| length.get_u32() as usize);
            if let Some(message) = length.and_then(|length| self.read.get(5..5 + length)) {
                let decoded = M::decode(message).expect("an encoded message");
                let taken = 5 + message.len();
                self.read.drain(..taken);
                return Ok(decoded);
            }
            if !self.more().await {
                let (headers, trailers) = (self.headers.clone(), self.trailers.clone());
                let answer = Answer { status: self.status, headers, body: Bytes::new(), trailers };
                return Err(GrpcError::read(&answer).expect("a stream ends with an error here"));
            }
        }
    }
}
