//! REST: paths and verbs by the bindings of the contract, JSON by the transcoder.

use std::net::IpAddr;
use std::sync::Arc;

use bowline_contract::{ApiVersion, Body, HttpBinding, Match, MethodInfo, Miss, Verb};
use bowline_core::{Error, FieldViolation, Reason, Result};
use bowline_pipeline::{Answer, Arrival, Call, Transport};
use bowline_transcode::{MessageId, TranscodeError};
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;

use crate::answer::{JSON, Names, failure, success};
use crate::body::ReplyBody;
use crate::front::{self, Front};
use crate::kept::{self, Asked};
use crate::query;
use crate::streaming::{Watching, last_event_id};

const FORM: &str = "application/x-www-form-urlencoded";

/// What of a request is needed after its body was taken.
struct Parts<'r> {
    method: &'r MethodInfo,
    binding: &'r HttpBinding,
    variables: Vec<(&'r str, String)>,
    parameters: Vec<(String, String)>,
    body: Bytes,
}

/// Answers one request that is not gRPC.
pub(crate) async fn serve(front: &Arc<Front>, request: Request<Incoming>, connected: IpAddr) -> Response<ReplyBody> {
    let path = rewrite(request.uri().path()).into_owned();
    let form = is_form(request.headers());
    let verb = verb_of(request.method());
    let routes = front.contract().routes();
    // Published scripts read with forms: any GET route takes one.
    let read_by_form = if form && verb == Some(Verb::Post) { routes.find(Some(Verb::Get), &path).ok() } else { None };
    let (route, read_by_form) = match (routes.find(verb, &path), read_by_form) {
        (Ok(route), read_by_form) => (Ok(route), read_by_form),
        (Err(_), Some(read)) => (Ok(read), None),
        (Err(miss), None) => (Err(miss), None),
    };
    match route {
        Ok(route) => {
            let request_id = front::request_id(request.headers());
            let names = Names::of(request.uri().query().unwrap_or(""), request.headers());
            let asked = Asked::of(request.headers());
            let mut method = front.contract().method(route.method);
            let result = answer(front, request, route, read_by_form, &mut method, connected, &request_id).await;
            let mut response = match result {
                Ok(Reply::One(answer)) => match answer.tag {
                    None => success(front, method, &answer.payload, names, &request_id),
                    Some(tag) => kept::respond(front, (method, names), answer.payload, &tag, &asked, &request_id).await,
                },
                Ok(Reply::Stream(watching)) => watching.events(names),
                Err(error) => failure(front, &error, Some(method), &request_id),
            };
            if let Ok(value) = HeaderValue::from_str(&request_id) {
                response.headers_mut().insert("x-request-id", value);
            }
            response
        }
        Err(Miss::WrongVerb(verbs)) => wrong_verb(&verbs.into_iter().collect::<Vec<_>>()),
        Err(Miss::NotFound) => elsewhere(front, request, connected).await,
    }
}

/// Answers on the first route, or on the second if there is one and the body is a form after all.
async fn answer<'f>(
    front: &'f Arc<Front>,
    request: Request<Incoming>,
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
    let bearer = front::bearer(&head.headers);
    let caller = front.pipeline.admit(first, bearer, Some(peer)).map_err(refused)?;
    let body = read_body(front, method, body).await.map_err(refused)?;
    // Command-line clients call JSON a form when nobody tells them what it is.
    // An empty form is one where the other route would need a resource.
    let is_json = match body.trim_ascii_start().first() {
        Some(first) => matches!(first, b'{' | b'['),
        None => !matches!(route.binding.body, Body::Field(_)),
    };
    let route = if is_json { route } else { read_by_form.unwrap_or(route) };
    *method = front.contract().method(route.method);
    let method = *method;
    let mut parameters = query::pairs(head.uri.query().unwrap_or("")).map_err(|text| refused(malformed(text)))?;
    if is_form(&head.headers) && route.binding.body == Body::None {
        let text = std::str::from_utf8(&body).map_err(|_| refused(malformed("the form is not UTF-8".into())))?;
        parameters.extend(query::pairs(text).map_err(|text| refused(malformed(text)))?);
    }
    let slice = slice(method, &mut parameters).map_err(refused)?;
    let parts = Parts { method, binding: route.binding, variables: route.variables, parameters, body };
    let (payload, present) = encode(front, &parts).map_err(refused)?;
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
        return Ok(Reply::Stream(Box::new(Watching::open(front, call, "rest", None).await?)));
    }
    Ok(Reply::One(front.call(call, "rest", None).await?))
}

/// What a method answers with.
enum Reply {
    One(Answer),
    Stream(Box<Watching>),
}

/// The body, whole. A GET has none that counts.
async fn read_body(front: &Front, method: &MethodInfo, body: Incoming) -> Result<Bytes> {
    let limit = front::request_limit(method, front.rest_body_bytes);
    if http_body::Body::is_end_stream(&body) {
        return Ok(Bytes::new());
    }
    let collected = tokio::time::timeout(front.request_time, Limited::new(body, limit).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(Error::new(
            Reason::RequestTooLarge,
            format!("The body is larger than {limit} bytes: send less at a time"),
        )),
        Ok(Err(_)) => Err(malformed("the body ended before its promised length".into())),
        Err(_) => Err(Error::new(Reason::DeadlineExceeded, "Deadline exceeded: the body did not arrive in time")),
    }
}

/// Path, query and body as one encoded request, and the fields that the body names.
fn encode(front: &Front, parts: &Parts<'_>) -> Result<(Vec<u8>, Option<Vec<String>>)> {
    let tables = front.tables();
    let id = message_id(front, parts.method.input.full_name())?;
    let mut wire = Vec::with_capacity(parts.body.len() + 128);
    let mut violations = Vec::new();
    let mut present = None;
    if parts.binding.body != Body::Whole {
        for (name, value) in &parts.parameters {
            if let Err(error) = tables.set_parameter(id, name, value, &mut wire) {
                violations.push(violation(name, error));
            }
        }
    }
    match &parts.binding.body {
        Body::None => {}
        Body::Whole => {
            let paths = read_json(front, id, &parts.body, &mut wire)?;
            present = parts.method.resource_field().map(|field| below(field.name(), paths));
        }
        Body::Field(field) => {
            // A list of messages is no resource: it stands in the body as the field's value.
            let is_list = parts.method.input.get_field_by_name(field).is_some_and(|field| field.is_list());
            if let Some(inner) = tables.message_at(id, field).filter(|_| !is_list) {
                let mut resource = Vec::new();
                present = Some(read_json(front, inner, &parts.body, &mut resource)?);
                tables.embed(id, field, &resource, &mut wire);
            } else {
                // A field that is no single message: its value stands alone in the body, and nothing beside it.
                if let Err(error) = serde_json::from_slice::<serde_json::Value>(&parts.body) {
                    return Err(malformed(format!("malformed JSON: {error}")));
                }
                let json = [b"{\"", field.as_bytes(), b"\":", &*parts.body, b"}"].concat();
                read_json(front, id, &json, &mut wire)?;
            }
        }
    }
    for (field, value) in &parts.variables {
        if let Err(error) = tables.set_parameter(id, field, value, &mut wire) {
            violations.push(violation(field, error));
        }
    }
    if violations.is_empty() { Ok((wire, present)) } else { Err(Error::invalid(violations)) }
}

/// What of the paths lies in the field, seen from there.
fn below(field: &str, paths: Vec<String>) -> Vec<String> {
    let inside = |path: String| Some(path.strip_prefix(field)?.strip_prefix('.')?.to_owned());
    paths.into_iter().filter_map(inside).collect()
}

fn read_json(front: &Front, id: MessageId, body: &[u8], wire: &mut Vec<u8>) -> Result<Vec<String>> {
    let body = if body.iter().all(u8::is_ascii_whitespace) { b"{}" } else { body };
    match front.tables().from_json(id, body, wire) {
        Ok(presence) => Ok(presence.paths().to_vec()),
        Err(errors) => {
            let (fields, syntax): (Vec<_>, Vec<_>) = errors.into_iter().partition(|error| !error.field.is_empty());
            if let Some(error) = syntax.into_iter().next() {
                return Err(malformed(error.message));
            }
            let violations = fields.into_iter().map(|e| FieldViolation { field: e.field, description: e.message });
            Err(Error::invalid(violations.collect()))
        }
    }
}

fn violation(name: &str, error: TranscodeError) -> FieldViolation {
    let field = if error.field.is_empty() { name.to_owned() } else { error.field };
    FieldViolation { field, description: error.message }
}

fn malformed(message: String) -> Error {
    Error::new(Reason::InvalidArgument, format!("Invalid argument: {message}"))
}

pub(crate) fn message_id(front: &Front, name: &str) -> Result<MessageId> {
    front.tables().message(name).ok_or_else(|| Error::internal(format!("{name} has no table")))
}

/// Whole lists of the first version also come in parts: `offset` and `limit`, or `page` and `page_size`.
fn slice(method: &MethodInfo, parameters: &mut Vec<(String, String)>) -> Result<Option<(usize, usize)>> {
    let is_whole_list = method.version == ApiVersion::V1
        && method.output.get_field_by_name("items").is_some()
        && method.input.get_field_by_name("page_size").is_none();
    if !is_whole_list {
        return Ok(None);
    }
    let mut take = |names: &[&str]| -> Result<Option<usize>> {
        let Some(at) = parameters.iter().position(|(name, _)| names.contains(&name.as_str())) else {
            return Ok(None);
        };
        let (name, value) = parameters.remove(at);
        let number = value.parse().map_err(|_| Error::invalid_field(name, "must be a whole number, 0 or more"))?;
        Ok(Some(number))
    };
    let (offset, limit) = (take(&["offset"])?, take(&["limit"])?);
    let (page, size) = (take(&["page"])?, take(&["page_size", "pageSize"])?);
    if offset.is_some() || limit.is_some() {
        return Ok(Some((offset.unwrap_or(0), limit.unwrap_or(usize::MAX))));
    }
    let Some(size) = size.or(page.map(|_| DEFAULT_SLICE)) else {
        return Ok(None);
    };
    let page = page.unwrap_or(1);
    if page == 0 {
        return Err(Error::invalid_field("page", "the first page is 1"));
    }
    Ok(Some((size.saturating_mul(page - 1), size)))
}

/// Length of a page of the first version when only its number is given.
const DEFAULT_SLICE: usize = 50;

fn wrong_verb(verbs: &[&str]) -> Response<ReplyBody> {
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
async fn elsewhere(front: &Front, request: Request<Incoming>, connected: IpAddr) -> Response<ReplyBody> {
    use tower_service::Service as _;
    let mut request = request.map(axum::body::Body::new);
    let address = front.peer(connected, request.headers());
    let request_id = front::request_id(request.headers());
    request.extensions_mut().insert(Arrival { address, request_id: request_id.as_str().into() });
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
        Method::GET => Some(Verb::Get),
        Method::PUT => Some(Verb::Put),
        Method::POST => Some(Verb::Post),
        Method::DELETE => Some(Verb::Delete),
        Method::PATCH => Some(Verb::Patch),
        _ => None,
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    content_type.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case(FORM)
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
