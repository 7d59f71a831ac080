//! Streaming responses: gRPC messages; over REST server-sent events, or lines of JSON where the stream is finite.

use bowline_contract::MethodInfo;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api::MAX_RESPONSE;
use crate::error::ClientError;
use crate::{grpc, rest};

/// The encoded messages of a streaming response.
pub struct Messages<'m> {
    method: &'m MethodInfo,
    body: reqwest::Body,
    arrived: BytesMut,
    is_rest: bool,
}

impl<'m> Messages<'m> {
    pub(crate) fn new(method: &'m MethodInfo, body: reqwest::Body, is_rest: bool) -> Messages<'m> {
        Messages { method, body, arrived: BytesMut::new(), is_rest }
    }

    /// The next message; absent at the end of the stream.
    ///
    /// # Errors
    /// The server ends the stream with an error, or the connection breaks.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let message = match (self.is_rest, self.method.finite_stream) {
                (false, _) => grpc::take_message(&mut self.arrived, MAX_RESPONSE)?,
                (true, true) => self.line()?,
                (true, false) => self.event()?,
            };
            if message.is_some() {
                return Ok(message);
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| ClientError::Transport(error.to_string()))?;
            match frame.into_data() {
                Ok(data) => self.arrived.extend_from_slice(&data),
                Err(frame) => match frame.trailers_ref().and_then(grpc::refusal) {
                    Some(refused) => return Err(refused),
                    None => return Ok(None),
                },
            }
        }
    }

    /// The message of the first line that has arrived.
    fn line(&mut self) -> Result<Option<Bytes>, ClientError> {
        let Some(end) = self.arrived.iter().position(|byte| *byte == b'\n') else {
            return self.require_bounded().map(|()| None);
        };
        let line = self.arrived.split_to(end + 1).freeze();
        if let Ok(LastLine { error }) = serde_json::from_slice(&line) {
            return Err(rest::refusal(http::StatusCode::OK, Value::from(error).to_string().as_bytes()));
        }
        rest::response(self.method, &line).map(Some)
    }

    /// The message of the first server-sent event that has arrived, comments left out.
    fn event(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(end) = self.arrived.windows(2).position(|pair| pair == b"\n\n") {
            let event = self.arrived.split_to(end + 2).freeze();
            let Some(data) = field(&event, b"data: ") else { continue };
            if field(&event, b"event: ") == Some(b"error") {
                return Err(rest::refusal(http::StatusCode::OK, data));
            }
            return rest::response(self.method, data).map(Some);
        }
        self.require_bounded().map(|()| None)
    }

    fn require_bounded(&self) -> Result<(), ClientError> {
        if self.arrived.len() > MAX_RESPONSE {
            return Err(ClientError::Transport("an event of the response is too large".into()));
        }
        Ok(())
    }
}

/// The last line of a stream that failed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LastLine {
    error: Map<String, Value>,
}

/// The value of a field of a server-sent event.
fn field<'e>(event: &'e [u8], name: &[u8]) -> Option<&'e [u8]> {
    event.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))
}
