//! The frame of every page, and the headers that keep others out of it.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use bowline_core::Error;
use maud::{DOCTYPE, Markup, html};

use crate::problem::Problem;

/// Where the style sheet is.
pub(crate) const STYLE_PATH: &str = "/oauth/assets/style.css";
const STYLE: &str = include_str!("../assets/style.css");

/// Nothing is loaded but this server's style sheet, nothing runs, no site frames a page, and forms go to this
/// server alone.
///
/// Chromium holds redirects after a form to `form-action` as well. No form here is answered with a redirect to
/// another origin: [`moving_on`] answers with a page that moves on by itself, so that `'self'` is enough.
/// (A list of origins would not do: `http://[::1]:1234` cannot be written in one.)
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// A page with a heading.
pub(crate) fn page(title: &str, body: Markup) -> Response {
    frame(title, &html! {}, &body)
}

/// A page that moves on to an address by itself, and has a link for browsers that do not.
pub(crate) fn moving_on(title: &str, url: &str, text: &str) -> Response {
    let head = html! { meta http-equiv="refresh" content=(format!("0; url={url}")); };
    let body = html! {
        p { (text) }
        p { a.button href=(url) { "Continue" } }
    };
    frame(title, &head, &body)
}

/// A redirect to a page of this server.
///
/// # Errors
/// INTERNAL: the path does not fit into a header.
pub(crate) fn see_other(path: &str) -> bowline_core::Result<Response> {
    let location = HeaderValue::from_str(path).map_err(Error::internal)?;
    let mut response = StatusCode::SEE_OTHER.into_response();
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// The page of a problem.
pub(crate) fn problem(problem: &Problem, request_id: &str) -> Response {
    let title = match problem.status.as_u16() {
        404 => "Not found",
        429 => "Please wait",
        500.. => "Something went wrong here",
        _ => "This did not work",
    };
    let mut response = page(
        title,
        html! {
            p.notice role="alert" { (problem.text) }
            @if problem.status.is_server_error() {
                p.small { "Request id: " code { (request_id) } }
            }
        },
    );
    *response.status_mut() = problem.status;
    if let Some(seconds) = problem.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn frame(title: &str, head: &Markup, body: &Markup) -> Response {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Bowline" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(STYLE_PATH);
                (head)
            }
            body {
                header.brand { span.mark aria-hidden="true" {} span { "Bowline" } }
                main.card {
                    h1 { (title) }
                    (body)
                }
            }
        }
    };
    Html(markup.into_string()).into_response()
}

/// The style sheet, which browsers may keep for an hour.
pub(crate) async fn style() -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600")),
    ];
    (StatusCode::OK, headers, STYLE).into_response()
}

/// Sets headers on every response against framing, sniffing, storing and referrers.
pub(crate) fn guard(headers: &mut HeaderMap, over_tls: bool) {
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if over_tls {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_remember_tls_where_there_is_any() {
        for over_tls in [true, false] {
            let mut headers = HeaderMap::new();
            guard(&mut headers, over_tls);
            assert_eq!(headers.contains_key(header::STRICT_TRANSPORT_SECURITY), over_tls);
        }
    }

    #[test]
    fn whatever_is_put_into_a_page_stays_text() {
        let nasty = "</p><script>alert(1)</script>\"'&";
        let text = html! { p title=(nasty) { (nasty) } input value=(nasty); }.into_string();
        assert!(!text.contains("<script>") && !text.contains("\"'"), "{text}");
        assert_eq!(text.matches("&lt;/p&gt;&lt;script&gt;").count(), 3, "{text}");
        assert_eq!(text.matches("&quot;").count(), 3, "{text}");
    }
}
