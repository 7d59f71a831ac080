//! Responses of refused calls.

use bowline_contract::{ApiVersion, Auth, MethodInfo};
use bowline_core::Code;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::COMPONENTS;

/// The message that every error response holds.
pub(super) const STATUS: &str = "google.rpc.Status";

/// Every refusal of a method.
pub(super) fn of(method: &MethodInfo, has_body: bool) -> Map<String, Value> {
    let needs_token = !matches!(method.auth, Auth::Public);
    let mut responses = Map::new();
    for refusal in refusals() {
        let occurs = match refusal.status {
            401 | 403 => needs_token,
            409 => method.is_mutation(),
            413 | 415 => has_body,
            _ => true,
        };
        if occurs {
            responses.insert(refusal.status.to_string(), component(refusal.name));
        }
    }
    responses.insert("default".into(), component("Error"));
    responses
}

/// The components that [`of`] refers to.
pub(super) fn responses(version: ApiVersion) -> Map<String, Value> {
    let mut responses = Map::new();
    for refusal in refusals() {
        let mut description = refusal.description.to_owned();
        if version == ApiVersion::V1 && matches!(refusal.status, 400 | 403 | 404) {
            description.push_str(match refusal.status {
                400 => " A precondition that does not hold comes without details.",
                _ => " It comes without details, unless terms have to be accepted first.",
            });
        }
        responses.insert(refusal.name.into(), response(&description, refusal.header));
    }
    responses.insert("Error".into(), response("Any other refusal.", None));
    responses
}

struct Refusal {
    status: u16,
    name: &'static str,
    description: &'static str,
    /// A header besides the request's id, and what it holds.
    header: Option<(&'static str, &'static str)>,
}

const RETRY: Option<(&str, &str)> = Some(("Retry-After", "Seconds to wait."));

fn refusals() -> Vec<Refusal> {
    let refusal = |status, name, description, header| Refusal { status, name, description, header };
    let coded = |code: Code, name, description, header| refusal(code.http_status(), name, description, header);
    let challenge = Some(("WWW-Authenticate", "The scheme of the token."));
    vec![
        coded(
            Code::InvalidArgument,
            "InvalidArgument",
            "The request is not valid, or a precondition does not hold.",
            None,
        ),
        coded(Code::Unauthenticated, "Unauthenticated", "No token, or one that is not valid.", challenge),
        coded(Code::PermissionDenied, "PermissionDenied", "The caller lacks a capability.", None),
        coded(Code::NotFound, "NotFound", "The resource does not exist.", None),
        coded(Code::AlreadyExists, "Conflict", "The resource exists already, or changed meanwhile.", None),
        refusal(StatusCode::PAYLOAD_TOO_LARGE.as_u16(), "TooLarge", "The body is too large.", None),
        refusal(
            StatusCode::UNSUPPORTED_MEDIA_TYPE.as_u16(),
            "UnsupportedMediaType",
            "The body has another type or encoding than those documented.",
            None,
        ),
        coded(Code::ResourceExhausted, "ResourceExhausted", "A quota or a rate limit is reached.", RETRY),
        coded(Code::Internal, "Internal", "A defect of the server.", None),
        coded(Code::Unimplemented, "Unimplemented", "This server does not offer the method.", None),
        coded(Code::Unavailable, "Unavailable", "The storage or another system does not respond.", RETRY),
        coded(Code::DeadlineExceeded, "DeadlineExceeded", "The call took too long.", RETRY),
    ]
}

fn response(description: &str, header: Option<(&str, &str)>) -> Value {
    let mut headers = Map::new();
    for (name, text) in [("x-request-id", "Names the call in the server's log.")].into_iter().chain(header) {
        headers.insert(name.into(), json!({ "description": text, "schema": { "type": "string" } }));
    }
    json!({
        "description": description,
        "headers": headers,
        "content": { "application/json": { "schema": status() } },
    })
}

/// The schema of the message that every error response holds.
pub(super) fn status() -> Value {
    json!({ "$ref": format!("{COMPONENTS}{STATUS}") })
}

fn component(name: &str) -> Value {
    json!({ "$ref": format!("#/components/responses/{name}") })
}
