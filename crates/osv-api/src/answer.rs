//! Answers, and errors in the form that clients of this API know: a code of gRPC and a message.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Code, Error};
use bowline_vulnerabilities::records::{RecordMatch, Results};
use serde::Serialize;
use serde_json::{Value, json};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(crate) type Answer = Response<Body>;

/// A document that is there as bytes.
pub(crate) fn document(bytes: Vec<u8>) -> Answer {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// Whole records, as they are stored.
pub(crate) fn records(results: Results<Vec<u8>>) -> Answer {
    let mut out = Vec::with_capacity(results.matches.iter().map(|record| record.len() + 1).sum::<usize>() + 64);
    out.push(b'{');
    if !results.matches.is_empty() {
        out.extend(b"\"vulns\":[");
        for (i, record) in results.matches.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend(record);
        }
        out.push(b']');
    }
    if let Some(next) = &results.next {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend(format!("\"next_page_token\":{}", Value::from(token(next))).into_bytes());
    }
    out.push(b'}');
    document(out)
}

/// The response to a batch: a result for each query, in their order.
#[derive(Serialize)]
struct Batch<'a> {
    results: Vec<Answered<'a>>,
}

#[derive(Serialize)]
struct Answered<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vulns: Vec<Vuln<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

#[derive(Serialize)]
struct Vuln<'a> {
    id: &'a str,
    modified: String,
}

/// Ids with the times of their last change.
pub(crate) fn ids(all: &[Results<RecordMatch>]) -> Result<Answer, Error> {
    let results = all.iter().map(|results| Answered {
        vulns: results.matches.iter().map(Vuln::of).collect(),
        next_page_token: results.next.as_deref().map(token),
    });
    serde_json::to_vec(&Batch { results: results.collect() }).map(document).map_err(Error::internal)
}

impl Vuln<'_> {
    fn of(found: &RecordMatch) -> Vuln<'_> {
        Vuln { id: &found.id, modified: rfc3339::text(found.modified, Digits::SixOrNone) }
    }
}

/// Position of the next page. It reveals nothing beyond the page.
fn token(after: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("1{after}"))
}

/// Reads a token of [`token`].
pub(crate) fn read_token(token: &str) -> Option<String> {
    if token.is_empty() {
        return Some(String::new());
    }
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    text.strip_prefix('1').filter(|id| id.is_empty() || bowline_osv::is_id(id)).map(String::from)
}

pub(crate) fn refused(status: StatusCode, code: Code, message: &str) -> Answer {
    let mut response = document(json!({ "code": code as i32, "message": message }).to_string().into_bytes());
    *response.status_mut() = status;
    response
}

/// A request that makes no sense.
pub(crate) fn invalid(message: &str) -> Answer {
    refused(StatusCode::BAD_REQUEST, Code::InvalidArgument, message)
}

/// What the server failed with, or its rate limit.
pub(crate) fn failed(error: &Error) -> Answer {
    bowline_fronts::error_response(error, |status, error| refused(status, error.code(), error.message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_and_noise_is_none() {
        for id in ["", "GHSA-aaaa-bbbb-cccc"] {
            assert_eq!(read_token(&token(id)).as_deref(), Some(id));
        }
        for wrong in ["!", "QUJD", "1", "MS4uLw"] {
            assert_eq!(read_token(wrong), None, "{wrong}");
        }
    }
}
