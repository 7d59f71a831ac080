//! The headers of every response, and the check of every form.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use bowline_core::{Error, Result};
use bowline_fronts::request::is_form;
use bowline_pipeline::{RequestOrigin, Surface};

use crate::app::App;
use crate::assets;
use crate::live;
use crate::query::Query;
use crate::shell;
use crate::sign_in::SIGN_OUT;

/// `https://host:port` of an address, as browsers write it: in small letters, and without the scheme's own port.
pub(crate) fn origin_of(url: &str) -> String {
    // The options were validated; an address that is none is no origin of any request.
    url::Url::parse(url).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

/// Whether browsers reach an origin in the clear over a network.
pub(crate) fn is_exposed(origin: &str) -> bool {
    let Ok(url) = url::Url::parse(origin) else { return false };
    let is_loopback = match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    };
    url.scheme() == "http" && !is_loopback
}

/// Nothing is loaded but the files of this console, no text becomes markup or code, no site frames a page, and forms go to
/// this server alone.
///
/// Both files, and the stream, are named with their path: the registry may share the host, and serves what its users pushed. An address with
/// an IPv6 literal cannot be written in a policy.
pub(crate) fn policy(origin: &str) -> HeaderValue {
    let at = |path: &str| if origin.contains('[') { "'self'".to_owned() } else { format!("{origin}{path}") };
    let (files, streams) = (at(assets::PREFIX), at(live::LIVE));
    let text = format!(
        "default-src 'none'; script-src {files}; style-src {files}; connect-src {streams}; img-src data:; form-action 'self'; \
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

/// Whether another site loads a page in the background, with the cookie of the browser. It could not read the response,
/// but use up limits, keep a session from ending, and measure time. A person who follows a link is welcome.
fn is_loaded_by_another_site(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    match text("sec-fetch-site") {
        // Programs and old browsers do not say.
        None | Some("same-origin" | "none") => false,
        Some(_) => text("sec-fetch-mode") != Some("navigate") || text("sec-fetch-dest") != Some("document"),
    }
}

/// Whether this console or the person asks for a page, and not a page of another site. Programs and old browsers do not say.
pub(crate) fn is_from_here(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none")
}

/// Whether a page of this console has the link or the form, and not a mail, a chat or the person. Programs and old browsers
/// do not say.
pub(crate) fn is_of_a_page(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin")
}

/// Lets requests through that a person or this console makes, within the limits: a page of a session counts for its caller,
/// any other for the address that it came from. Signing out is never limited.
pub(crate) async fn admitted(
    State(app): State<Arc<App>>,
    Extension(origin): Extension<RequestOrigin>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    if request.uri().path().starts_with(assets::PREFIX) {
        return next.run(request).await;
    }
    let is_foreign = is_loaded_by_another_site(headers);
    let is_sign_out = request.method() == Method::POST && request.uri().path() == SIGN_OUT;
    // What another site asks for is none of the caller's, and does not keep a session from ending.
    let session = match request.uri().path() {
        _ if is_foreign => None,
        // A browser opens a stream again by itself.
        live::LIVE => app.watching(headers),
        _ => app.session(headers),
    };
    let admitted = match session {
        Some(_) if is_sign_out => Ok(()),
        Some((_, session)) => app.api.count_principal(Surface::Api, &session.subject),
        None => app.api.count_address(Surface::SignIn, origin.address),
    };
    let foreign = || Error::permission_denied("Permission denied: another site asked for this page; open it yourself");
    match admitted.and_then(|()| if is_foreign { Err(foreign()) } else { Ok(()) }) {
        Ok(()) => next.run(request).await,
        Err(error) => shell::problem(None, &error, &origin.request_id, None),
    }
}

/// A form that a page of this server sent, with `POST`. Only [`own_form`] makes one.
pub(crate) struct Form(Query);

impl Form {
    /// What the form has.
    pub(crate) fn fields(&self) -> &Query {
        &self.0
    }
}

/// Reads a form that a page of this server sent, of at most so many bytes.
///
/// # Errors
/// PERMISSION_DENIED: another site sent it, or the browser does not say who did. INVALID_ARGUMENT: it is no form, or too
/// large.
pub(crate) fn own_form(app: &App, headers: &HeaderMap, body: &[u8], max: usize) -> Result<Form> {
    require_own(app, headers)?;
    let body = std::str::from_utf8(body).map_err(|_| Error::invalid_field("body", "must be UTF-8"))?;
    Query::read_up_to(body, max).map(Form)
}

/// What the headers of such a form say.
///
/// # Errors
/// Those of [`own_form`] but for the size.
pub(crate) fn require_own(app: &App, headers: &HeaderMap) -> Result<()> {
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
    Ok(())
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
        for (url, origin) in [
            ("https://a.example/x/y", "https://a.example"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("HTTPS://A.example:443/x", "https://a.example"),
            ("http://[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(origin_of(url), origin, "{url}");
        }
        let policy = policy("https://a.example");
        let policy = policy.to_str().unwrap();
        for directive in ["script-src", "style-src"] {
            assert!(policy.contains(&format!("{directive} https://a.example/console/assets/;")), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("connect-src https://a.example/console/audit-live;"), "{policy}");
        let literal = super::policy("http://[::1]:80");
        assert!(literal.to_str().unwrap().contains("script-src 'self';"));
    }

    #[test]
    fn addresses_in_the_clear_are_known() {
        for origin in ["http://a.example", "http://10.0.0.1:8080", "http://localhost.example"] {
            assert!(is_exposed(origin), "{origin}");
        }
        for origin in
            ["https://a.example", "http://127.0.0.2:80", "http://[::1]", "http://localhost:8080", "http://x.localhost"]
        {
            assert!(!is_exposed(origin), "{origin}");
        }
    }

    #[test]
    fn other_sites_may_link_and_not_load() {
        let headers = |site: &str, mode: &str, target: &str| {
            let pairs = [("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", target)];
            let set = pairs.into_iter().filter(|(_, value)| !value.is_empty());
            set.map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
                .collect::<HeaderMap>()
        };
        for (site, mode, target) in [
            ("", "", ""),
            ("same-origin", "no-cors", "image"),
            ("none", "navigate", "document"),
            ("cross-site", "navigate", "document"),
            ("same-site", "navigate", "document"),
        ] {
            assert!(!is_loaded_by_another_site(&headers(site, mode, target)), "{site} {mode} {target}");
        }
        for (site, mode, target) in [
            ("cross-site", "no-cors", "image"),
            ("same-site", "cors", "empty"),
            ("cross-site", "navigate", "iframe"),
            ("same-site", "", ""),
        ] {
            assert!(is_loaded_by_another_site(&headers(site, mode, target)), "{site} {mode} {target}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_not_from_here() {
        let is_here = |site: &'static str| {
            let site = (HeaderName::from_static("sec-fetch-site"), HeaderValue::from_static(site));
            is_from_here(&HeaderMap::from_iter([site]))
        };
        assert!(is_from_here(&HeaderMap::new()) && is_here("same-origin") && is_here("none"));
        assert!(!is_here("cross-site") && !is_here("same-site") && !is_here(""));
    }

    #[test]
    fn texts_are_compared_whole() {
        assert!(same("", "") && same("ab", "ab"));
        assert!(!same("ab", "aB") && !same("ab", "abc") && !same("", "a"));
    }
}
