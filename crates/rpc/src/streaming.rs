//! Streamed responses in both transports.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_contract::MethodInfo;
use bowline_core::{Error, Result};
use bowline_pipeline::{Call, Stream};
use bowline_transcode::JsonOptions;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, once, unfold};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response};

use crate::access_log::{self, Entry};
use crate::answer::{Names, error_json};
use crate::body::ReplyBody;
use crate::csv;
use crate::front::{Front, deadline};
use crate::rest_request::message_id;

/// Interval of keep-alive comments: proxies close idle connections.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// An open stream, which is logged when it ends.
pub(crate) struct ResponseStream {
    front: Arc<Front>,
    stream: Stream,
    method: usize,
    principal: String,
    scope: String,
    transport: &'static str,
    request_id: String,
    started: Instant,
    /// Limit since the start of the stream.
    time_limit: Option<Duration>,
    is_logged: bool,
    /// Columns of a finite stream whose caller wants CSV over REST.
    columns: Option<Vec<Vec<String>>>,
}

/// How a finite stream over REST continues.
enum LineStream {
    Open(Box<ResponseStream>),
    Failed,
}

impl ResponseStream {
    /// Opens a stream. An error is logged and precedes the response.
    pub(crate) async fn open(
        front: &Arc<Front>,
        call: Call,
        transport: &'static str,
        time_limit: Option<Duration>,
    ) -> Result<ResponseStream> {
        let columns = wants_csv(front, &call).then(|| csv::columns(&front.contract().method(call.method).output));
        let (method, request_id) = (call.method, call.request_id.clone());
        let principal = call.caller.principal().subject().to_owned();
        let scope = front.pipeline.shown_scope(&call, front.contract().method(method));
        let opened = tokio::time::timeout(front.request_time, front.pipeline.open_stream(call)).await;
        match opened.unwrap_or_else(|_| Err(deadline(front.request_time))) {
            Ok(stream) => Ok(ResponseStream {
                front: front.clone(),
                stream,
                method,
                principal,
                scope,
                transport,
                request_id,
                started: Instant::now(),
                time_limit,
                is_logged: false,
                columns,
            }),
            Err(error) => Err(front.refused(method, error, transport, &request_id)),
        }
    }

    /// The next message; an error ends the stream, and so does the end of a finite one. Cancel-safe.
    async fn next(&mut self) -> Result<Option<(i64, Bytes)>> {
        let left = self.time_limit.map(|limit| limit.saturating_sub(self.started.elapsed()));
        let result = match (left, self.time_limit) {
            (Some(left), Some(limit)) => match tokio::time::timeout(left, self.stream.next()).await {
                Ok(result) => result,
                Err(_) => Err(deadline(limit)),
            },
            _ => self.stream.next().await,
        };
        if !matches!(result, Ok(Some(_))) {
            self.log(&result);
        }
        result
    }

    fn log<T>(&mut self, result: &Result<T>) {
        self.is_logged = true;
        let entry = Entry {
            method: self.front.contract().method(self.method),
            previewed: "",
            principal: &self.principal,
            scope: &self.scope,
            transport: self.transport,
            request_id: &self.request_id,
            elapsed: self.started.elapsed(),
        };
        access_log::write(&self.front, &entry, result);
    }

    fn method(&self) -> &MethodInfo {
        self.front.contract().method(self.method)
    }

    /// The messages, until an error.
    pub(crate) fn messages(self) -> BoxStream<'static, Result<Bytes>> {
        Box::pin(unfold(Some(self), |stream| async {
            let mut stream = stream?;
            match stream.next().await {
                Ok(Some((_, message))) => Some((Ok(message), Some(stream))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    /// The messages as server-sent events. A failed stream ends with an `error` event.
    pub(crate) fn events(self, names: Names) -> Response<ReplyBody> {
        let events = unfold(Some(self), move |stream| async move {
            let mut stream = stream?;
            match tokio::time::timeout(HEARTBEAT, stream.next()).await {
                Err(_) => Some((Ok::<_, Infallible>(Bytes::from_static(b":\n\n")), Some(stream))),
                Ok(Ok(None)) => None,
                Ok(Ok(Some((id, message)))) => match stream.event(id, &message, names) {
                    Ok(event) => Some((Ok(event), Some(stream))),
                    Err(error) => Some((Ok(stream.last_event(&error)), None)),
                },
                Ok(Err(error)) => Some((Ok(stream.last_event(&error)), None)),
            }
        });
        let mut response = Response::new(ReplyBody::Other(axum::body::Body::from_stream(events)));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// The messages of a finite stream as lines of JSON, or as CSV. A stream that fails breaks the connection, so that
    /// no client mistakes a part for the whole; lines of JSON then end with the error.
    pub(crate) fn lines(self, names: Names) -> Response<ReplyBody> {
        let (form, head) = match &self.columns {
            Some(columns) => ("text/csv; charset=utf-8; header=present", csv::header(columns)),
            None => ("application/x-ndjson", Vec::new()),
        };
        let lines = unfold(Some(LineStream::Open(Box::new(self))), move |lines| async move {
            let mut stream = match lines? {
                LineStream::Open(stream) => stream,
                LineStream::Failed => return Some((Err(std::io::Error::other("the stream ended early")), None)),
            };
            let line = match stream.next().await {
                Ok(Some((_, message))) => stream.line(&message, names),
                Ok(None) => return None,
                Err(error) => Err(error),
            };
            match line {
                Ok(line) => Some((Ok(line), Some(LineStream::Open(stream)))),
                Err(error) => Some((Ok(stream.last_line(&error)), Some(LineStream::Failed))),
            }
        });
        let head = once(async move { Ok::<_, std::io::Error>(Bytes::from(head)) });
        let mut response = Response::new(ReplyBody::Other(axum::body::Body::from_stream(head.chain(lines))));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(form));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    fn line(&mut self, message: &[u8], names: Names) -> Result<Bytes> {
        let mut line = Vec::new();
        let proto_names = names == Names::Proto || self.columns.is_some();
        self.write_json(message, proto_names, &mut line)?;
        let Some(columns) = &self.columns else {
            line.push(b'\n');
            return Ok(line.into());
        };
        let message = serde_json::from_slice(&line).map_err(Error::internal)?;
        Ok(csv::row(columns, &message).into())
    }

    fn last_line(&self, error: &Error) -> Bytes {
        if self.columns.is_some() {
            return Bytes::new();
        }
        let mut line = b"{\"error\":".to_vec();
        line.extend(error_json(&self.front, error, Some(self.method()), &self.request_id));
        line.extend(b"}\n");
        line.into()
    }

    /// Writes a message as JSON; a failure ends the stream.
    fn write_json(&mut self, message: &[u8], proto_names: bool, out: &mut Vec<u8>) -> Result<()> {
        let options = JsonOptions { proto_names, emit_defaults: true };
        let written = message_id(&self.front, self.method().output.full_name()).and_then(|table| {
            let json = self.front.tables().to_json(table, message, &options, out);
            json.map_err(|error| Error::internal(error.to_string()))
        });
        if written.is_err() {
            self.log(&written);
        }
        written
    }

    fn event(&mut self, id: i64, message: &[u8], names: Names) -> Result<Bytes> {
        let name = self.method().output.name().to_lowercase();
        let mut event = format!("id: {id}\nevent: {name}\ndata: ").into_bytes();
        self.write_json(message, names == Names::Proto, &mut event)?;
        event.extend(b"\n\n");
        Ok(event.into())
    }

    fn last_event(&self, error: &Error) -> Bytes {
        let mut event = b"event: error\ndata: ".to_vec();
        event.extend(error_json(&self.front, error, Some(self.method()), &self.request_id));
        event.extend(b"\n\n");
        event.into()
    }
}

/// Whether the request asks for CSV, which finite streams can be.
fn wants_csv(front: &Front, call: &Call) -> bool {
    let method = front.contract().method(call.method);
    let format = front.tables().message(method.input.full_name()).filter(|_| method.finite_stream);
    let format = format.and_then(|table| front.tables().read_string(table, &call.payload, "format").ok().flatten());
    format.is_some_and(|format| format == "csv")
}

impl Drop for ResponseStream {
    fn drop(&mut self) {
        if !self.is_logged {
            // The client disconnected, which is how most streams end.
            self.log(&Ok(()));
        }
    }
}

/// Where interrupted server-sent events continue.
///
/// # Errors
/// INVALID_ARGUMENT if the header is not a number.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok()).filter(|number| *number >= 0);
    number.map(Some).ok_or_else(|| Error::invalid_field("Last-Event-ID", "must be the number of an event"))
}
