//! gRPC: framing by tonic, methods by the table, messages as bytes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_core::Error;
use bowline_fronts::request::bearer;
use bowline_pipeline::{Call, Caller, Transport};
use bytes::{Buf, BufMut, Bytes};
use futures_util::TryStreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use prost::Message;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, ServerStreamingService, UnaryService};
use tonic::{Code, Status};

use crate::body::ReplyBody;
use crate::error_details::status_of;
use crate::front::{self, Front};
use crate::in_flight::{Arriving, BodyError};
use crate::request_body::RequestBody;
use crate::streaming::ResponseStream;

/// Whether the request is gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(http::header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.is_some_and(|value| value.starts_with(b"application/grpc"))
}

/// Serves one gRPC request.
pub(crate) async fn serve(front: &Arc<Front>, request: Request<RequestBody>, connected: IpAddr) -> Response<ReplyBody> {
    let path = rewrite(request.uri().path());
    let Some(method) = front.contract().by_grpc_path(&path) else {
        let message = format!("there is no method {path}");
        return Status::unimplemented(message).into_http::<tonic::body::Body>().map(ReplyBody::Grpc);
    };
    let request_id = front::request_id(request.headers());
    let peer = front.peer(connected, request.headers());
    let caller = match front.pipeline.admit(method.index, bearer(request.headers()).map(String::from), Some(peer)) {
        Ok(caller) => caller,
        Err(error) => {
            let error = front.refused(method.index, error, "grpc", &request_id);
            let refusal = status(front, method.index, &error, &request_id);
            return refusal.into_http::<tonic::body::Body>().map(ReplyBody::Grpc);
        }
    };
    let request = request.map(|body| {
        let (front, request_id) = (front.clone(), request_id.clone());
        let index = method.index;
        Arriving::new(&front.clone(), index, &caller, body).map_err(move |error| match error.downcast::<Error>() {
            Ok(refusal) => {
                let refusal = front.refused(index, *refusal, "grpc", &request_id);
                Box::new(status(&front, index, &refusal, &request_id)) as BodyError
            }
            Err(other) => other,
        })
    });
    let service = UnaryCall {
        front: front.clone(),
        method: method.index,
        caller: Some(caller),
        request_id: request_id.clone(),
        timeout: timeout(request.headers()),
    };
    let limit = front.request_limit(method);
    let mut grpc = Grpc::new(BytesCodec)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip)
        .max_decoding_message_size(limit)
        .max_encoding_message_size(front.grpc_response_bytes);
    // The body arrives inside, so a client that stalls in its middle is covered too.
    let limit = front.request_time * 2;
    let reply = async {
        if front.pipeline.handlers.streams(method.index) {
            grpc.server_streaming(service, request).await
        } else {
            grpc.unary(service, request).await
        }
    };
    let mut response = if let Ok(response) = tokio::time::timeout(limit, reply).await {
        response.map(ReplyBody::Grpc)
    } else {
        let late = Status::deadline_exceeded("Deadline exceeded: the request did not arrive in time");
        late.into_http::<tonic::body::Body>().map(ReplyBody::Grpc)
    };
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert("x-request-id", value);
    }
    response
}

/// The pre-release packages are v2 under another name.
fn rewrite(path: &str) -> std::borrow::Cow<'_, str> {
    if path.contains(".v2beta1.") { path.replacen(".v2beta1.", ".v2.", 1).into() } else { path.into() }
}

/// `grpc-timeout`: up to eight digits and a unit. What cannot be read is no limit.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let amount: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    Some(match unit {
        "H" => Duration::from_secs(amount * 3600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    })
}

/// One method, called once.
struct UnaryCall {
    front: Arc<Front>,
    method: usize,
    caller: Option<Caller>,
    request_id: String,
    timeout: Option<Duration>,
}

impl UnaryCall {
    fn call(&mut self, payload: Bytes) -> Result<Call, Status> {
        let caller = self.caller.take().ok_or_else(|| Status::internal("a call was made twice"))?;
        Ok(Call {
            method: self.method,
            payload,
            caller,
            request_id: self.request_id.clone(),
            transport: Transport::Grpc,
            present: None,
            slice: None,
            resume: None,
        })
    }
}

impl UnaryService<Bytes> for UnaryCall {
    type Response = Bytes;
    type Future = BoxFuture<'static, Result<tonic::Response<Bytes>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (front, method) = (self.front.clone(), self.method);
        let (timeout, request_id) = (self.timeout, self.request_id.clone());
        let call = UnaryCall::call(self, request.into_inner());
        Box::pin(async move {
            let result = front.call(call?, "grpc", timeout).await;
            result
                .map(|reply| tonic::Response::new(reply.payload))
                .map_err(|error| status(&front, method, &error, &request_id))
        })
    }
}

impl ServerStreamingService<Bytes> for UnaryCall {
    type Response = Bytes;
    type ResponseStream = BoxStream<'static, Result<Bytes, Status>>;
    type Future = BoxFuture<'static, Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (front, method) = (self.front.clone(), self.method);
        let (timeout, request_id) = (self.timeout, self.request_id.clone());
        let call = UnaryCall::call(self, request.into_inner());
        Box::pin(async move {
            let opened = ResponseStream::open(&front, call?, "grpc", timeout).await;
            let stream = opened.map_err(|error| status(&front, method, &error, &request_id))?;
            let messages = stream.messages();
            let stream = messages.map_err(move |error| status(&front, method, &error, &request_id));
            Ok(tonic::Response::new(Box::pin(stream) as Self::ResponseStream))
        })
    }
}

fn status(front: &Front, method: usize, error: &Error, request_id: &str) -> Status {
    let full = fitting(status_of(error, Some(front.contract().method(method)), request_id, front.base_url()));
    let details = full.encode_to_vec().into();
    let mut status = Status::with_details(Code::from_i32(full.code), full.message, details);
    if let Some(delay) = error.retry_after()
        && let Ok(value) = delay.as_secs().to_string().parse()
    {
        status.metadata_mut().insert("retry-after", value);
    }
    status
}

/// Maximum bytes of a status in trailers. Clients take 16 KiB of them; of larger ones they get no status at all.
const MAX_TRAILERS: usize = 12 << 10;
/// Maximum bytes of the message of a status that is too large.
const MAX_MESSAGE: usize = 512;

/// The status with as much of its message and details as trailers hold. Texts of callers may be in it, of any length.
fn fitting(mut status: bowline_contract::google::rpc::Status) -> bowline_contract::google::rpc::Status {
    // A byte of the message is three where it is escaped; details are written as base64.
    let bytes = |status: &bowline_contract::google::rpc::Status| {
        let escaped = status.message.bytes().map(|byte| if matches!(byte, b' '..=b'~') { 1 } else { 3 });
        escaped.sum::<usize>() + status.encoded_len() * 4 / 3
    };
    if bytes(&status) > MAX_TRAILERS && status.message.len() > MAX_MESSAGE {
        status.message.truncate(status.message.floor_char_boundary(MAX_MESSAGE));
        status.message.push_str(" (cut)");
    }
    while bytes(&status) > MAX_TRAILERS && status.details.pop().is_some() {}
    status
}

struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = BytesCodec;
    type Decoder = BytesCodec;

    fn encoder(&mut self) -> BytesCodec {
        BytesCodec
    }

    fn decoder(&mut self) -> BytesCodec {
        BytesCodec
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(item.len());
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts() {
        let read = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", HeaderValue::from_static(value));
            timeout(&headers)
        };
        assert_eq!(read("5S"), Some(Duration::from_secs(5)));
        assert_eq!(read("250m"), Some(Duration::from_millis(250)));
        for unread in ["", "S", "5", "123456789S", "-1S", "5x"] {
            assert_eq!(read(unread), None, "{unread}");
        }
    }

    #[test]
    fn a_status_fits_into_trailers() {
        use bowline_contract::google::rpc::Status;

        let detail = |bytes: usize| prost_types::Any { type_url: String::new(), value: vec![0; bytes] };
        let small = Status { code: 3, message: "no".into(), details: vec![detail(4000), detail(4000)] };
        assert_eq!(fitting(small.clone()), small);
        let long = Status { message: "é".repeat(9000), details: vec![detail(10), detail(9000)], ..small };
        let cut = fitting(long);
        assert!(cut.message.ends_with("é (cut)") && cut.message.len() <= MAX_MESSAGE + 6, "{}", cut.message);
        assert_eq!(cut.details, [detail(10)]);
    }

    #[test]
    fn the_pre_release_packages_are_v2() {
        assert_eq!(rewrite("/chainguard.platform.iam.v2beta1.Groups/X"), "/chainguard.platform.iam.v2.Groups/X");
        assert_eq!(rewrite("/chainguard.platform.iam.Groups/X"), "/chainguard.platform.iam.Groups/X");
    }
}
