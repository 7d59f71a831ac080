//! Responses and errors as HTTP responses with JSON.

use std::sync::Arc;

use bowline_contract::{ApiVersion, Auth, MethodInfo};
use bowline_core::{Code, Error, Reason, Result};
use bowline_fronts::encoding::{Compression, gzip};
use bowline_transcode::{JsonOptions, push_json_string};
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY,
    WWW_AUTHENTICATE,
};
use http::{HeaderMap, Response, StatusCode};
use prost_reflect::FieldDescriptor;

use crate::body::ReplyBody;
use crate::error_details::status_of;
use crate::front::Front;
use crate::rest_request::message_id;

/// Which names the members of the response have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Names {
    /// JSON names; paging members in both spellings.
    Both,
    /// camelCase names of JSON only.
    Json,
    /// snake_case names of the proto files only.
    Proto,
}

impl Names {
    pub(crate) fn of(query: &str, headers: &HeaderMap) -> Names {
        let accept = headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
        if accept.split(';').any(|part| part.trim().eq_ignore_ascii_case("names=proto3")) {
            return Names::Json;
        }
        if accept.split(';').any(|part| part.trim().eq_ignore_ascii_case("names=proto")) {
            return Names::Proto;
        }
        let camel = ["pageSize=", "pageToken=", "orderBy="];
        let is_camel = query.split('&').any(|part| camel.iter().any(|name| part.starts_with(name)));
        if is_camel { Names::Json } else { Names::Both }
    }
}

/// Smaller responses travel as they are.
const COMPRESSED_FROM: usize = 4 << 10;
/// Compressing more than this holds up others on the same thread.
const COMPRESSED_ASIDE_FROM: usize = 64 << 10;

/// A success, compressed where the caller accepts gzip and the response is large.
pub(crate) async fn success(
    front: &Arc<Front>,
    method: &MethodInfo,
    payload: Bytes,
    names: Names,
    accepts_gzip: bool,
    request_id: &str,
) -> Response<ReplyBody> {
    if method.output.full_name() == "google.protobuf.Empty" {
        let body: &'static [u8] = if method.version == ApiVersion::V2 { b"" } else { b"{}" };
        let mut response = Response::new(ReplyBody::from(Bytes::from_static(body)));
        if !body.is_empty() {
            response.headers_mut().insert(CONTENT_TYPE, JSON);
        }
        return response;
    }
    // What issues tokens is never compressed: the length of a response must not depend on the secret in it.
    let may_compress = accepts_gzip && !matches!(method.auth, Auth::Own);
    let packed = if may_compress && payload.len() >= COMPRESSED_ASIDE_FROM {
        let (there, index) = (front.clone(), method.index);
        let work = move || pack(&there, there.contract().method(index), &payload, names, true);
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Error::internal(error)))
    } else {
        pack(front, method, &payload, names, may_compress)
    };
    let packed = match packed {
        Ok(packed) => packed,
        Err(error) => return failure(front, &error, Some(method), request_id),
    };
    let mut response = Response::new(ReplyBody::from(packed.bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    if packed.is_large {
        headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    }
    if packed.is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// A response as it is sent.
struct Packed {
    bytes: Bytes,
    is_large: bool,
    is_compressed: bool,
}

fn pack(front: &Front, method: &MethodInfo, payload: &[u8], names: Names, compress: bool) -> Result<Packed> {
    let json = json_of(front, method, payload, names)?;
    let is_large = json.len() >= COMPRESSED_FROM;
    let is_compressed = compress && is_large;
    // The fast level: this is done again for every call.
    let bytes = if is_compressed { gzip(&json, Compression::fast())? } else { json.into() };
    Ok(Packed { bytes, is_large, is_compressed })
}

/// The response to HEAD: what GET has but for the body.
pub(crate) fn without_body(response: Response<ReplyBody>) -> Response<ReplyBody> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = http_body::Body::size_hint(&body).exact() {
        head.headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
    Response::from_parts(head, ReplyBody::from(Bytes::new()))
}

/// The response as JSON.
pub(crate) fn json_of(front: &Front, method: &MethodInfo, payload: &[u8], names: Names) -> Result<Vec<u8>> {
    let mut json = Vec::with_capacity(payload.len() * 2 + 64);
    let options = JsonOptions { proto_names: names == Names::Proto, emit_defaults: true };
    let id = message_id(front, method.output.full_name())?;
    front.tables().to_json(id, payload, &options, &mut json).map_err(|error| Error::internal(error.to_string()))?;
    if let Some(paging) = Paging::of(method) {
        paging.finish(&mut json, payload, names);
    }
    Ok(json)
}

/// The content type of every response.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The paging members of a list response of v2.
struct Paging {
    token: FieldDescriptor,
    total: FieldDescriptor,
}

impl Paging {
    fn of(method: &MethodInfo) -> Option<Paging> {
        if method.version != ApiVersion::V2 {
            return None;
        }
        let token = method.output.get_field_by_name("next_page_token")?;
        let total = method.output.get_field_by_name("total_count")?;
        Some(Paging { token, total })
    }

    /// Takes the empty token of the last page out, and adds the second spelling of the paging members.
    fn finish(&self, json: &mut Vec<u8>, payload: &[u8], names: Names) {
        let (token, total) = self.read(payload);
        if token.is_empty() {
            let name = if names == Names::Proto { self.token.name() } else { self.token.json_name() };
            remove_last(json, format!("\"{name}\":\"\",").as_bytes());
        }
        if names != Names::Both || json.pop() != Some(b'}') {
            return;
        }
        if !token.is_empty() {
            json.extend(b",\"next_page_token\":");
            push_json_string(json, &token);
        }
        // Lists that do not count what matches leave it out in both spellings.
        if let Some(total) = total {
            json.extend(format!(",\"total_count\":{total}").bytes());
        }
        json.push(b'}');
    }

    /// The two members, from the wire: they are scalars of the response itself.
    fn read(&self, payload: &[u8]) -> (String, Option<i64>) {
        // Without presence, a total that is not on the wire is 0.
        let (mut token, mut total) = (String::new(), (!self.total.supports_presence()).then_some(0));
        let mut rest = payload;
        while let Ok((number, wire_type)) = prost::encoding::decode_key(&mut rest) {
            let context = prost::encoding::DecodeContext::default();
            let step = if number == self.token.number() {
                prost::encoding::string::merge(wire_type, &mut token, &mut rest, context)
            } else if number == self.total.number() {
                prost::encoding::int64::merge(wire_type, total.get_or_insert(0), &mut rest, context)
            } else {
                prost::encoding::skip_field(wire_type, number, &mut rest, context)
            };
            if step.is_err() {
                break;
            }
        }
        (token, total)
    }
}

/// Removes the last occurrence: paging members come after the items, so the last is never an item's own.
fn remove_last(json: &mut Vec<u8>, needle: &[u8]) {
    if let Some(at) = json.windows(needle.len()).rposition(|window| window == needle) {
        json.drain(at..at + needle.len());
    }
}

/// The body of an error.
pub(crate) fn error_json(front: &Front, error: &Error, method: Option<&MethodInfo>, request_id: &str) -> Vec<u8> {
    let status = status_of(error, method, request_id, front.base_url());
    let mut json = format!("{{\"code\":{},\"message\":", status.code).into_bytes();
    push_json_string(&mut json, &status.message);
    json.extend(b",\"details\":[");
    let options = JsonOptions { proto_names: false, emit_defaults: false };
    for (i, detail) in status.details.iter().enumerate() {
        if i > 0 {
            json.push(b',');
        }
        let any = front.tables().message("google.protobuf.Any");
        let wire = prost::Message::encode_to_vec(detail);
        if any.is_none_or(|any| front.tables().to_json(any, &wire, &options, &mut json).is_err()) {
            json.extend(b"{}");
        }
    }
    json.extend(b"]}");
    json
}

/// An error as JSON.
pub(crate) fn failure(
    front: &Front,
    error: &Error,
    method: Option<&MethodInfo>,
    request_id: &str,
) -> Response<ReplyBody> {
    let json = error_json(front, error, method, request_id);
    let mut response = Response::new(ReplyBody::from(json));
    *response.status_mut() = http_status(error);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    if error.code() == Code::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    match error.reason() {
        Reason::UnsupportedMediaType => _ = headers.insert(ACCEPT, JSON),
        Reason::UnsupportedEncoding => _ = headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity")),
        _ => {}
    }
    if let Some(delay) = error.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(delay.as_secs().max(1)));
    }
    response
}

fn http_status(error: &Error) -> StatusCode {
    match error.reason() {
        Reason::RequestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Reason::UnsupportedMediaType | Reason::UnsupportedEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        _ => StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_occurrence_goes() {
        let mut json = b"{\"a\":\"\",\"b\":1,\"a\":\"\",}".to_vec();
        remove_last(&mut json, b"\"a\":\"\",");
        assert_eq!(json, b"{\"a\":\"\",\"b\":1,}");
    }
}
