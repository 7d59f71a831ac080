//! What every front reads of a request: credentials, ids, forms.

use axum::http::{HeaderMap, header};
use bowline_formats::percent;

/// The media type of forms.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// The bearer token of the `authorization` header; absent without one.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether a browser asks for something to show, frame or run. Scripts that fetch (`empty`) get bytes, and programs do not
/// send this header.
pub fn is_shown(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-dest").is_some_and(|destination| destination != "empty")
}

/// The caller's request id, if it is fit for a log line; otherwise a new one.
pub fn request_id(headers: &HeaderMap, draw: fn() -> [u8; 16]) -> String {
    let given = ["x-request-id", "cgrequestid"].iter().find_map(|name| headers.get(*name)?.to_str().ok());
    match given {
        Some(id) if !id.is_empty() && id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_graphic()) => id.into(),
        _ => bowline_core::hex(&draw()),
    }
}

/// Whether the content type is that of a form.
pub fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    content_type.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case(FORM)
}

/// Parses the pairs of a query or a form, in order: `name=value`, percent-encoded, with `+` for a space.
///
/// # Errors
/// The name of the parameter whose escape is broken or whose bytes are not UTF-8, never its value: forms carry passwords.
pub fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = decode(name).ok_or("the name of a parameter has a broken escape; write % as %25")?;
        let value = decode(value).ok_or_else(|| {
            format!("the value of the parameter {name:?} has a broken escape or is not UTF-8; write % as %25")
        })?;
        Ok((name, value))
    };
    parts.map(pair).collect()
}

fn decode(text: &str) -> Option<String> {
    percent::decode(&text.replace('+', " ")).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_strictly() {
        let expected = [("a", "1"), ("b.c", "x/y z"), ("d", ""), ("e", "é")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(pairs("a=1&b.c=x%2Fy+z&d&&e=%C3%A9").unwrap(), expected);
        for broken in ["a=%", "a=%zz", "a=%ff"] {
            assert!(pairs(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_broken_escape_is_reported_without_the_value() {
        let error = pairs("grant_type=password&password=hunter2%").unwrap_err();
        assert!(error.contains("\"password\"") && error.contains("%25"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        let error = pairs("hunter2%=x").unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn ids_that_break_a_line_are_replaced() {
        let id = |given: &'static str| {
            let headers = HeaderMap::from_iter([("x-request-id".parse().unwrap(), given.parse().unwrap())]);
            request_id(&headers, || [0xab; 16])
        };
        assert_eq!(id("mine-1"), "mine-1");
        assert_eq!(id("two words"), "ab".repeat(16));
        assert_eq!(id(""), "ab".repeat(16));
    }
}
