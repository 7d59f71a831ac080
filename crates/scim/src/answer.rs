//! Responses and errors in the form of RFC 7644.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use bowline_core::Error;
use bowline_identity::scim::{Refusal, ScimError};
use serde_json::{Value, json};

const ERROR: &str = "urn:ietf:params:scim:api:messages:2.0:Error";
const SCIM_JSON: HeaderValue = HeaderValue::from_static("application/scim+json");

pub(crate) type Answer = Response<Body>;

pub(crate) fn message(status: StatusCode, body: &Value) -> Answer {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, SCIM_JSON);
    response
}

/// A success without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// An error of HTTP, without a type of SCIM's own.
pub(crate) fn refused(status: StatusCode, detail: &str) -> Answer {
    error(status, None, detail)
}

fn error(status: StatusCode, scim_type: Option<&str>, detail: &str) -> Answer {
    let mut body = json!({ "schemas": [ERROR], "status": status.as_str(), "detail": detail });
    if let Some(scim_type) = scim_type {
        body["scimType"] = json!(scim_type);
    }
    let mut response = message(status, &body);
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// What a request failed with.
pub(crate) fn failure(error: ScimError) -> Answer {
    match error {
        ScimError::Refused(refusal, detail) => self::error(status_of(refusal), refusal.scim_type(), &detail),
        ScimError::Failed(error) => failed(&error),
    }
}

/// What the server failed with, or its rate limit.
pub(crate) fn failed(error: &Error) -> Answer {
    bowline_fronts::error_response(error, |status, error| self::error(status, None, error.message()))
}

fn status_of(refusal: Refusal) -> StatusCode {
    match refusal {
        Refusal::Unauthorized => StatusCode::UNAUTHORIZED,
        Refusal::InvalidFilter
        | Refusal::InvalidSyntax
        | Refusal::InvalidPath
        | Refusal::InvalidValue
        | Refusal::NoTarget
        | Refusal::Mutability => StatusCode::BAD_REQUEST,
        Refusal::Uniqueness | Refusal::LastOwner => StatusCode::CONFLICT,
        Refusal::NotFound => StatusCode::NOT_FOUND,
        Refusal::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::VersionMismatch => StatusCode::PRECONDITION_FAILED,
    }
}
