//! The headers of every response, and the check of every form.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use bowline_core::{Error, Result};
use bowline_fronts::request::is_form;

use crate::app::App;
use crate::assets;
use crate::query::Query;

/// `https://host:port` of an address.
pub(crate) fn origin_of(url: &str) -> &str {
    let scheme = url.find("://").map_or(0, |at| at + 3);
    url[scheme..].find('/').map_or(url, |at| &url[..scheme + at])
}

/// Nothing is loaded but the files of this console, no text becomes markup or code, no site frames a page, and forms go to
/// this server alone.
///
/// Scripts are named with their path: the registry may share the host, and serves what its users pushed. An address with
/// an IPv6 literal cannot be written in a policy.
pub(crate) fn policy(origin: &str) -> HeaderValue {
    let scripts = if origin.contains('[') { "'self'".to_owned() } else { format!("{origin}{}", assets::PREFIX) };
    let text = format!(
        "default-src 'none'; script-src {scripts}; style-src 'self'; img-src data:; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    // An address that does not fit into a header has no scripts.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"))
}

const HEADERS: [(HeaderName, &str); 7] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // With `no-referrer`, browsers send no usable `Origin` with forms.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-write=(self)",
    ),
    (HeaderName::from_static("x-robots-tag"), "noindex"),
];

/// Sets the headers of every response.
pub(crate) async fn guarded(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, app.policy.clone());
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if app.cookies.secure {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    response
}

/// Reads a form that a page of this server sent.
///
/// # Errors
/// PERMISSION_DENIED: another site sent it, or the browser does not say who did. INVALID_ARGUMENT: it is no form.
pub(crate) fn own_form(app: &App, headers: &HeaderMap, body: &[u8]) -> Result<Query> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let is_own = match (text("sec-fetch-site"), text("origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => origin == app.origin,
        (None, None) => false,
    };
    if !is_own {
        return Err(foreign());
    }
    if !is_form(headers) {
        return Err(Error::invalid_field("body", "must be a form (application/x-www-form-urlencoded)"));
    }
    Query::read(std::str::from_utf8(body).map_err(|_| Error::invalid_field("body", "must be UTF-8"))?)
}

/// A form that is not from a page of this session.
pub(crate) fn foreign() -> Error {
    Error::permission_denied("Permission denied: this form was not sent by a page of your session; open the page again")
}

/// Whether two texts are equal, in time that does not depend on where they differ.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_name_the_path_of_scripts() {
        assert_eq!(origin_of("https://a.example/x/y"), "https://a.example");
        assert_eq!(origin_of("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
        let policy = policy("https://a.example");
        let policy = policy.to_str().unwrap();
        assert!(policy.contains("script-src https://a.example/console/assets/;"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        let literal = super::policy("http://[::1]:80");
        assert!(literal.to_str().unwrap().contains("script-src 'self';"));
    }

    #[test]
    fn texts_are_compared_whole() {
        assert!(same("", "") && same("ab", "ab"));
        assert!(!same("ab", "aB") && !same("ab", "abc") && !same("", "a"));
    }
}
