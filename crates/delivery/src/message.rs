//! An event as a request: CloudEvents 1.0 in binary mode, signed with a token of the class for webhooks.
//!
//! The token covers the whole delivery by three digests: of the body, of the `Ce-*` headers, and of the sink's address. A
//! receiver that verifies all three takes neither an event under another's type or subject, nor one that was delivered to
//! another sink of the same group.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_authn::claims::{TokenClass, mint_value};
use bowline_authn::crypto::{random_bytes, sha256};
use bowline_authn::guarded::Request;
use bowline_contract::Contract;
use bowline_core::Micros;
use bowline_core::rfc3339::{self, Digits};
use bowline_formats::percent::{self, AsciiSet, CONTROLS};
use bowline_pipeline::{Authenticator, Settings};
use bowline_transcode::{JsonOptions, Tables};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use crate::event::Event;

/// Who the token of a delivery is for.
const AUDIENCE: &str = "customer";
/// Seconds that it is good for.
const TOKEN_LIFE: i64 = 600;

/// What all deliveries of an event share.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    headers: HeaderMap,
    body: Bytes,
    body_digest: String,
    headers_digest: String,
}

/// Renders events as requests.
pub(crate) struct RequestRenderer {
    pub(crate) contract: Arc<Contract>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) authenticator: Arc<Authenticator>,
}

impl RequestRenderer {
    /// The request that delivers an event to a subscription of `group`.
    ///
    /// # Errors
    /// The stored event is damaged, or no key can sign at this time.
    pub(crate) fn request(&self, event: &Event, group: &str, sink: &str, now: Micros) -> Result<Request, RequestError> {
        let content = event.content.get_or_init(|| self.content(event));
        let content = content.as_ref().map_err(|reason| RequestError::DamagedEvent(reason.clone()))?;
        let token = self.token(group, content, sink, now).ok_or(RequestError::NoSigningKey)?;
        let mut headers = content.headers.clone();
        // A token is ASCII, so this does not fail.
        let bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| RequestError::NoSigningKey)?;
        headers.insert(AUTHORIZATION, bearer);
        Ok(Request { method: http::Method::POST, url: sink.to_owned(), headers, body: content.body.clone() })
    }

    /// The body of an event's deliveries, as JSON.
    ///
    /// # Errors
    /// The stored event is damaged.
    pub(crate) fn payload(&self, event: &Event) -> Result<String, String> {
        String::from_utf8(self.body(event)?).map_err(|_| "the event's body is damaged".into())
    }

    fn content(&self, event: &Event) -> Result<Content, String> {
        let body = self.body(event)?;
        let headers = self.headers(event)?;
        let (body_digest, headers_digest) = (digest(&body), digest(&canonical(&headers)));
        Ok(Content { headers, body: body.into(), body_digest, headers_digest })
    }

    /// `{"actor": .., "body": ..}` with the body in proto names.
    fn body(&self, event: &Event) -> Result<Vec<u8>, String> {
        let message = self.tables.message(&event.body_type).ok_or("the event's body is of an unknown type")?;
        let options = JsonOptions { proto_names: true, emit_defaults: false };
        let mut text = format!("{{\"actor\":{},\"body\":", event.actor).into_bytes();
        let written = self.tables.to_json(message, &event.body, &options, &mut text);
        written.map_err(|_| "the event's body is damaged")?;
        text.push(b'}');
        Ok(text)
    }

    fn headers(&self, event: &Event) -> Result<HeaderMap, String> {
        let source = self.source(&event.method);
        let time = rfc3339::text(event.at, Digits::Nine);
        let mut attributes: BTreeMap<String, String> =
            serde_json::from_str(&event.extensions).map_err(|_| "the event's extensions are damaged")?;
        for (name, value) in [
            ("id", event.id.as_str()),
            ("specversion", "1.0"),
            ("type", &event.event_type),
            ("source", &source),
            ("subject", &event.subject),
            ("time", &time),
            ("group", &event.group),
            ("audience", AUDIENCE),
            ("bodytype", &event.body_type),
        ] {
            attributes.insert(name.into(), value.into());
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in attributes.iter().filter(|(_, value)| !value.is_empty()) {
            let header = HeaderName::try_from(format!("ce-{}", name.to_ascii_lowercase()));
            let value = HeaderValue::from_str(&encoded(value));
            let (Ok(header), Ok(value)) = (header, value) else {
                return Err(format!("the event's extension {name} has no form as a header"));
            };
            headers.insert(header, value);
        }
        Ok(headers)
    }

    /// Where the event comes from: the collection's URL, which is that of the called method up to what varies.
    fn source(&self, method: &str) -> String {
        let info = self.contract.by_full_name(method);
        let template = info.and_then(|info| info.bindings.first()).map(|binding| binding.template.to_string());
        let path = template.as_deref().unwrap_or_default().split(['{', ':']).next().unwrap_or_default();
        format!("{}{}", self.settings.base_url, path.trim_end_matches('/'))
    }

    /// `webhook.digest` is what the public SDK's receiver verifies; it ignores the members beside it.
    fn token(&self, group: &str, content: &Content, sink: &str, now: Micros) -> Option<String> {
        let seconds = now.div_euclid(1_000_000);
        let keys = self.authenticator.keys();
        let key = keys.ring.signing_key(seconds)?;
        let claims = json!({
            "iss": self.settings.auth_url,
            "sub": format!("webhook:{group}"),
            "aud": AUDIENCE,
            "iat": seconds,
            "exp": seconds + TOKEN_LIFE,
            "jti": bowline_core::hex(&random_bytes::<16>()),
            "webhook": {
                "digest": content.body_digest,
                "headers": content.headers_digest,
                "sink": digest(sink.as_bytes()),
            },
        });
        Some(mint_value(TokenClass::Webhook, &claims, key))
    }
}

/// Why an event cannot be rendered as a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestError {
    /// No key can sign at this time.
    NoSigningKey,
    /// The stored event cannot be read, with the reason.
    DamagedEvent(String),
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", bowline_core::hex(&sha256(bytes)))
}

/// The `Ce-*` headers as their digest covers them: a line `name:value` for each, names in lower case and in order, each
/// line ended by a line feed, which no value has.
fn canonical(headers: &HeaderMap) -> Vec<u8> {
    let mut attributes: Vec<_> = headers.iter().filter(|(name, _)| name.as_str().starts_with("ce-")).collect();
    attributes.sort_by_key(|(name, _)| name.as_str());
    let mut text = Vec::new();
    for (name, value) in attributes {
        text.extend_from_slice(name.as_str().as_bytes());
        text.push(b':');
        text.extend_from_slice(value.as_bytes());
        text.push(b'\n');
    }
    text
}

/// What is no visible ASCII in a header, and the quote and the percent sign (CloudEvents, HTTP binding, 3.1.3.2).
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// A value of an attribute as a header carries it.
fn encoded(value: &str) -> String {
    percent::encode(value, ESCAPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_headers_covers_cloud_event_headers_in_the_order_of_their_names() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("ce-type", "t"), ("content-type", "application/json"), ("ce-id", "1"), ("ce-a", "x:y")] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        assert_eq!(canonical(&headers), b"ce-a:x:y\nce-id:1\nce-type:t\n");
    }

    #[test]
    fn header_values_are_escaped() {
        assert_eq!(encoded("a/b:c"), "a/b:c");
        assert_eq!(encoded("Ü \"%\r\n"), "%C3%9C%20%22%25%0D%0A");
    }
}
