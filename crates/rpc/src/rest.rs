//! REST: paths and verbs by the bindings of the contract, JSON by the transcoder.

use std::net::IpAddr;
use std::sync::Arc;

use bowline_contract::{Auth, Body, Match, MethodInfo, Miss, Verb};
use bowline_core::{Error, Reason, Result};
use bowline_fronts::request::{bearer, is_form};
use bowline_pipeline::{Answer, Call, RequestOrigin, Transport};
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};

use crate::answer::{JSON, Names, failure, success, without_body};
use crate::body::ReplyBody;
use crate::front::{self, Front};
use crate::in_flight::Arriving;
use crate::query::{self, Parameter};
use crate::request_body::RequestBody;
use crate::response_cache::{self, CacheHeaders};
use crate::rest_request::{Parts, encode_request, malformed};
use crate::slice::slice;
use crate::streaming::{ResponseStream, last_event_id};

/// Serves one request that is not gRPC.
pub(crate) async fn serve(front: &Arc<Front>, request: Request<RequestBody>, connected: IpAddr) -> Response<ReplyBody> {
    let allowed = front.cors.allowed(request.headers());
    let mut response = match front.cors.preflight(request.method(), request.headers()) {
        Some(preflight) => preflight,
        None => respond(front, request, connected).await,
    };
    front.cors.mark(allowed, &mut response);
    response
}

async fn respond(front: &Arc<Front>, request: Request<RequestBody>, connected: IpAddr) -> Response<ReplyBody> {
    let path = rewrite(request.uri().path()).into_owned();
    let form = is_form(request.headers());
    let is_head = *request.method() == Method::HEAD;
    let verb = verb_of(request.method());
    let routes = front.contract().routes();
    // Clients also send reads as POST with a form, so a form POST may match the GET route of its path.
    let read_by_form = if form && verb == Some(Verb::Post) { routes.find(Some(Verb::Get), &path).ok() } else { None };
    let (route, read_by_form) = match (routes.find(verb, &path), read_by_form) {
        (Ok(route), read_by_form) => (Ok(route), read_by_form),
        (Err(_), Some(read)) => (Ok(read), None),
        (Err(miss), None) => (Err(miss), None),
    };
    match route {
        Ok(route) if is_head && !has_head(front, route.method) => wrong_verb(front, &path),
        Ok(route) => {
            let request_id = front::request_id(request.headers());
            let names = Names::of(request.uri().query().unwrap_or(""), request.headers());
            let cache_headers = CacheHeaders::of(request.headers());
            let mut method = front.contract().method(route.method);
            let result = answer(front, request, route, read_by_form, &mut method, connected, &request_id).await;
            let mut response = match result {
                Ok(Reply::One(answer)) => match answer.tag {
                    None => success(front, method, answer.payload, names, cache_headers.gzip, &request_id).await,
                    Some(tag) => {
                        response_cache::respond(
                            front,
                            (method, names),
                            answer.payload,
                            &tag,
                            &cache_headers,
                            &request_id,
                        )
                        .await
                    }
                },
                Ok(Reply::Stream(stream)) if method.finite_stream => stream.lines(names),
                Ok(Reply::Stream(stream)) => stream.events(names),
                Err(error) => failure(front, &error, Some(method), &request_id),
            };
            if let Ok(value) = HeaderValue::from_str(&request_id) {
                response.headers_mut().insert("x-request-id", value);
            }
            if is_head { without_body(response) } else { response }
        }
        Err(Miss::WrongVerb(_)) => wrong_verb(front, &path),
        Err(Miss::NotFound) => elsewhere(front, request, connected).await,
    }
}

/// Calls the method of `route`, or that of `read_by_form` if the form is empty and `route` needs a resource.
async fn answer<'f>(
    front: &'f Arc<Front>,
    request: Request<RequestBody>,
    route: Match<'f>,
    read_by_form: Option<Match<'f>>,
    method: &mut &'f MethodInfo,
    connected: IpAddr,
    request_id: &str,
) -> Result<Reply> {
    let (head, body) = request.into_parts();
    let first = method.index;
    let refused = |error| front.refused(first, error, "rest", request_id);
    let peer = front.peer(connected, &head.headers);
    let bearer = bearer(&head.headers).map(String::from);
    let caller = front.pipeline.admit(first, bearer, Some(peer)).map_err(refused)?;
    if !http_body::Body::is_end_stream(&body) {
        require_no_content_encoding(&head.headers).map_err(refused)?;
    }
    let body = Arriving::new(front, first, &caller, body);
    let body = read_body(front, method, body).await.map_err(refused)?;
    let is_form = is_form(&head.headers);
    let content = body.trim_ascii();
    // An empty form carries no resource, so it is the read.
    let route = match read_by_form {
        Some(read) if content.is_empty() && matches!(route.binding.body, Body::Field(_)) => read,
        _ => route,
    };
    *method = front.contract().method(route.method);
    let method = *method;
    // Command-line clients label JSON as a form by default.
    let is_json = content.first().is_none_or(|first| matches!(first, b'{' | b'['));
    if is_form && !is_json && route.binding.body != Body::None {
        let message = "Invalid argument: this call takes JSON, not a form: send Content-Type: application/json";
        return Err(refused(Error::new(Reason::UnsupportedMediaType, message)));
    }
    let query = head.uri.query().unwrap_or("");
    let mut parameters = query::parameters(query, false).map_err(|text| refused(malformed(text)))?;
    if is_form && route.binding.body == Body::None {
        parameters.extend(form(content).map_err(refused)?);
    }
    let slice = slice(method, &mut parameters).map_err(refused)?;
    let parts = Parts { method, binding: route.binding, variables: route.variables, parameters, body };
    let (payload, present) = encode_request(front, parts, &caller).await.map_err(refused)?;
    let is_stream = front.pipeline.handlers.streams(method.index);
    // Programs that read a stream send the header along with other calls as well.
    let resume = if is_stream { last_event_id(&head.headers).map_err(refused)? } else { None };
    let call = Call {
        method: method.index,
        payload: payload.into(),
        caller,
        request_id: request_id.into(),
        transport: Transport::Rest,
        present,
        slice,
        resume,
    };
    if is_stream {
        return Ok(Reply::Stream(Box::new(ResponseStream::open(front, call, "rest", None).await?)));
    }
    Ok(Reply::One(front.call(call, "rest", None).await?))
}

/// The response of a method.
enum Reply {
    One(Answer),
    Stream(Box<ResponseStream>),
}

/// The body, whole. A GET has none that counts.
async fn read_body(front: &Front, method: &MethodInfo, body: Arriving) -> Result<Bytes> {
    let limit = front.request_limit(method);
    if http_body::Body::is_end_stream(&body) {
        return Ok(Bytes::new());
    }
    if http_body::Body::size_hint(&body).lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let collected = tokio::time::timeout(front.request_time, Limited::new(body, limit).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large(limit)),
        Ok(Err(error)) => Err(match error.downcast::<Error>() {
            Ok(refusal) => *refusal,
            Err(_) => malformed("the body ended before its promised length".into()),
        }),
        Err(_) => Err(Error::new(Reason::DeadlineExceeded, "Deadline exceeded: the body did not arrive in time")),
    }
}

fn too_large(limit: usize) -> Error {
    Error::new(Reason::RequestTooLarge, format!("The body is larger than {limit} bytes: send less at a time"))
}

/// The parameters of a form.
fn form(bytes: &[u8]) -> Result<Vec<Parameter>> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("the form is not UTF-8".into()))?;
    if text.starts_with(['{', '[']) {
        return Err(malformed("the body is JSON, and this call takes a form, or parameters in the address".into()));
    }
    query::parameters(text, true).map_err(malformed)
}

/// Rejects bodies with a content encoding other than `identity`.
fn require_no_content_encoding(headers: &HeaderMap) -> Result<()> {
    let encodings = headers.get_all(CONTENT_ENCODING).iter().flat_map(|value| value.as_bytes().split(|b| *b == b','));
    let mut encodings = encodings.map(<[u8]>::trim_ascii).filter(|encoding| !encoding.is_empty());
    if encodings.all(|encoding| encoding.eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let message = "Invalid argument: bodies are read without a content encoding: send the body uncompressed";
    Err(Error::new(Reason::UnsupportedEncoding, message))
}

/// Whether HEAD is the method's GET without the body: not where a call issues tokens, or its response continues.
fn has_head(front: &Front, method: usize) -> bool {
    let info = front.contract().method(method);
    !info.is_mutation() && !matches!(info.auth, Auth::Own) && !front.pipeline.handlers.streams(method)
}

fn wrong_verb(front: &Front, path: &str) -> Response<ReplyBody> {
    let routes = front.contract().routes();
    let mut verbs: Vec<&str> = match routes.find(None, path) {
        Err(Miss::WrongVerb(verbs)) => verbs.into_iter().collect(),
        _ => Vec::new(),
    };
    if routes.find(Some(Verb::Get), path).is_ok_and(|read| has_head(front, read.method)) {
        verbs.push("HEAD");
    }
    let body = "{\"code\":12,\"message\":\"Method Not Allowed\",\"details\":[]}";
    let mut response = Response::new(ReplyBody::from(body));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    if let Ok(allow) = HeaderValue::from_str(&verbs.join(", ")) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}

/// Paths outside the contract; what the router does not know either is not found.
async fn elsewhere(front: &Front, request: Request<RequestBody>, connected: IpAddr) -> Response<ReplyBody> {
    use tower_service::Service as _;
    let mut request = request.map(axum::body::Body::new);
    let address = front.peer(connected, request.headers());
    let request_id = front::request_id(request.headers());
    if !http_body::Body::is_end_stream(request.body())
        && !front.hosts.is_of_packages(request.uri().path())
        && let Err(error) = require_no_content_encoding(request.headers())
    {
        return failure(front, &error, None, &request_id);
    }
    request.extensions_mut().insert(RequestOrigin { address, request_id: request_id.as_str().into() });
    let mut router = front.router.clone();
    let mut response = match router.call(request).await {
        Ok(response) => response.map(ReplyBody::Other),
        Err(never) => match never {},
    };
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert("x-request-id", value);
    }
    response
}

/// `/<domain>/v2beta1/` is `/<domain>/v2/` under its pre-release name.
fn rewrite(path: &str) -> std::borrow::Cow<'_, str> {
    const DOMAINS: &[&str] = &["iam", "registry", "vulnerabilities", "libraries", "advisory", "events", "ping"];
    let mut segments = path.splitn(4, '/');
    let (Some(""), Some(domain), Some("v2beta1")) = (segments.next(), segments.next(), segments.next()) else {
        return path.into();
    };
    if !DOMAINS.contains(&domain) {
        return path.into();
    }
    match segments.next() {
        Some(rest) => format!("/{domain}/v2/{rest}").into(),
        None => format!("/{domain}/v2").into(),
    }
}

fn verb_of(method: &Method) -> Option<Verb> {
    match *method {
        Method::GET | Method::HEAD => Some(Verb::Get),
        Method::PUT => Some(Verb::Put),
        Method::POST => Some(Verb::Post),
        Method::DELETE => Some(Verb::Delete),
        Method::PATCH => Some(Verb::Patch),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pre_release_segment_is_rewritten_behind_a_domain_only() {
        assert_eq!(rewrite("/iam/v2beta1/groups/a"), "/iam/v2/groups/a");
        assert_eq!(rewrite("/iam/v2beta1"), "/iam/v2");
        assert_eq!(rewrite("/other/v2beta1/x"), "/other/v2beta1/x");
        assert_eq!(rewrite("/iam/v2/groups/v2beta1/x"), "/iam/v2/groups/v2beta1/x");
    }
}
