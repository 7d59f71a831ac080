//! What is read out of a request: token, parameters, entity tags, body.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bowline_fronts::request::pairs;
use bowline_identity::scim::{MAX_COUNT, Query};
use serde_json::Value;

use crate::answer::{Answer, refused};

/// Maximum bytes of a body.
pub(crate) const MAX_BODY: usize = 256 << 10;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Entity tags of a condition, absent if there is none or any will do.
pub(crate) fn tags(headers: &HeaderMap, name: header::HeaderName) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for value in headers.get_all(name) {
        let text = value.to_str().unwrap_or_default();
        for tag in text.split(',').map(str::trim) {
            if tag == "*" {
                return None;
            }
            // Ours are weak; clients drop the mark when they send one back.
            let tag = if tag.starts_with("W/") { tag.to_owned() } else { format!("W/{tag}") };
            found.push(tag);
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The body as JSON.
pub(crate) async fn json(body: Body) -> Result<Value, Answer> {
    let too_large = || refused(StatusCode::PAYLOAD_TOO_LARGE, "a body has at most 262144 bytes");
    let collected = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, MAX_BODY)).await;
    let late = |_| refused(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    let bytes = collected.map_err(late)?.map_err(|error| {
        // Any error but the limit is a broken connection, where no one reads the response.
        tracing::debug!(%error, "a SCIM body was not read");
        too_large()
    })?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let detail = format!("the body is no JSON that is understood: {error}");
        let mut answer = serde_json::json!({ "scimType": "invalidSyntax", "status": "400", "detail": detail });
        answer["schemas"] = serde_json::json!(["urn:ietf:params:scim:api:messages:2.0:Error"]);
        crate::answer::message(StatusCode::BAD_REQUEST, &answer)
    })
}

/// Parameters of the address.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    filter: Option<String>,
    start: Option<i64>,
    count: Option<i64>,
    /// Top-level attributes that are wanted, absent for all.
    pub(crate) attributes: Option<Vec<String>>,
    /// Top-level attributes that are not wanted.
    pub(crate) excluded: Vec<String>,
}

impl Parameters {
    /// Reads the query part of an address.
    ///
    /// # Errors
    /// What is wrong with an escape or a number.
    pub(crate) fn read(query: &str) -> Result<Parameters, String> {
        let mut parameters = Parameters::default();
        let number = |name: &str, text: &str| text.parse().map_err(|_| format!("{name} must be a whole number"));
        let names = |text: &str| -> Vec<String> {
            text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(String::from).collect()
        };
        for (name, value) in pairs(query)? {
            match name.as_str() {
                "filter" if !value.is_empty() => parameters.filter = Some(value),
                "startIndex" => parameters.start = Some(number("startIndex", &value)?),
                "count" => parameters.count = Some(number("count", &value)?),
                "attributes" if !value.is_empty() => parameters.attributes = Some(names(&value)),
                "excludedAttributes" => parameters.excluded = names(&value),
                _ => {}
            }
        }
        Ok(parameters)
    }

    /// Position of the first wanted user, from 1.
    pub(crate) fn start(&self) -> usize {
        usize::try_from(self.start.unwrap_or(1).max(1)).unwrap_or(usize::MAX)
    }

    /// What of a list is wanted.
    pub(crate) fn query(&self) -> Query {
        let count = self.count.map_or(MAX_COUNT, |count| usize::try_from(count.max(0)).unwrap_or(MAX_COUNT));
        Query { filter: self.filter.clone(), offset: self.start() - 1, count: count.min(MAX_COUNT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_from_one() {
        let query = |text: &str| {
            let query = Parameters::read(text).unwrap().query();
            (query.offset, query.count)
        };
        assert_eq!(query(""), (0, 100));
        assert_eq!(query("startIndex=0&count=-1"), (0, 0));
        assert_eq!(query("startIndex=11&count=1000"), (10, 100));
        assert!(Parameters::read("count=x").is_err());
    }

    #[test]
    fn tags_are_compared_weakly() {
        let mut headers = HeaderMap::new();
        assert_eq!(tags(&headers, header::IF_MATCH), None);
        headers.insert(header::IF_MATCH, "\"a\", W/\"b\"".parse().unwrap());
        assert_eq!(tags(&headers, header::IF_MATCH).unwrap(), ["W/\"a\"", "W/\"b\""]);
        headers.insert(header::IF_MATCH, "*".parse().unwrap());
        assert_eq!(tags(&headers, header::IF_MATCH), None);
    }
}
