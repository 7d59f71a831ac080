//! Responses that continue: gRPC messages, or server-sent events.

use bowline_contract::MethodInfo;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;

use crate::api::MAX_RESPONSE;
use crate::error::ClientError;
use crate::{grpc, rest};

/// The messages of a response that continues, encoded.
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
            let message =
                if self.is_rest { self.event()? } else { grpc::take_message(&mut self.arrived, MAX_RESPONSE)? };
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
        if self.arrived.len() > MAX_RESPONSE {
            return Err(ClientError::Transport("an event of the response is too large".into()));
        }
        Ok(None)
    }
}

/// The value of a field of a server-sent event.
fn field<'e>(event: &'e [u8], name: &[u8]) -> Option<&'e [u8]> {
    event.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))
}
