//! Cross-origin requests: which sites a browser lets read responses.
//!
//! Off unless the operator names origins. Credentials of the browser (cookies) are never allowed: a page of another
//! site holds a token of its own, or is anonymous.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use http::{HeaderMap, Method, Response, StatusCode, Uri};

use crate::body::ReplyBody;

const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const REQUEST_HEADERS: &str = "authorization, content-type, accept, if-none-match, last-event-id, x-request-id";
const RESPONSE_HEADERS: &str = "allow, etag, retry-after, www-authenticate, x-request-id";
/// Seconds for which a browser may cache the response to a preflight.
const MAX_AGE: &str = "600";

/// The sites whose pages may read responses.
#[derive(Debug, Default)]
pub enum Cors {
    #[default]
    Off,
    Any,
    Origins(Vec<String>),
}

impl Cors {
    /// From origins such as `https://console.example.com`, or from `*` alone.
    ///
    /// # Errors
    /// What is wrong with which of them.
    pub fn new(origins: &[String]) -> Result<Cors, String> {
        match origins {
            [] => Ok(Cors::Off),
            [any] if any == "*" => Ok(Cors::Any),
            origins => match origins.iter().find(|origin| !is_origin(origin)) {
                None => Ok(Cors::Origins(origins.to_vec())),
                Some(wrong) if wrong == "*" => Err("*: stands alone, without other origins".into()),
                Some(wrong) => Err(format!(
                    "{wrong}: must be an origin in lower case without a path, such as https://console.example.com"
                )),
            },
        }
    }

    /// The response to a preflight of an allowed site.
    pub(crate) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response<ReplyBody>> {
        let is_preflight = *method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !is_preflight || self.allowed(headers).is_none() {
            return None;
        }
        let mut response = Response::new(ReplyBody::from(""));
        *response.status_mut() = StatusCode::NO_CONTENT;
        for (name, value) in [
            (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
            (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        Some(response)
    }

    /// Lets an allowed site read the response.
    pub(crate) fn mark(&self, allowed: Option<HeaderValue>, response: &mut Response<ReplyBody>) {
        let headers = response.headers_mut();
        if matches!(self, Cors::Origins(_)) {
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
        if let Some(origin) = allowed {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(RESPONSE_HEADERS));
        }
    }

    /// The site of the request as the response names it, if it is allowed.
    pub(crate) fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        match self {
            Cors::Off => None,
            Cors::Any => Some(HeaderValue::from_static("*")),
            Cors::Origins(origins) => {
                origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()).then(|| origin.clone())
            }
        }
    }
}

/// `scheme://host[:port]`, as browsers write it.
fn is_origin(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else { return false };
    let (Some(scheme @ ("http" | "https")), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return false;
    };
    let default_port = if scheme == "https" { 443 } else { 80 };
    let is_plain = !authority.as_str().contains('@') && authority.port_u16() != Some(default_port);
    is_plain && text == format!("{scheme}://{authority}").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        for good in ["https://a.example", "http://localhost:3000", "https://[::1]:8443"] {
            assert!(is_origin(good), "{good}");
        }
        for bad in [
            "a.example",
            "https://a.example/",
            "https://A.example",
            "https://a.example:443",
            "http://a.example:80",
            "https://u@a.example",
            "ftp://a.example",
            "null",
            "",
        ] {
            assert!(!is_origin(bad), "{bad}");
        }
        assert!(Cors::new(&["*".into(), "https://a.example".into()]).is_err());
        assert!(matches!(Cors::new(&["*".into()]), Ok(Cors::Any)));
        assert!(matches!(Cors::new(&[]), Ok(Cors::Off)));
    }
}
