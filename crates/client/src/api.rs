use bowline_contract::Method;
use bowline_formats::percent;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, TE};
use http_body_util::BodyExt as _;
use prost::Message as _;

use crate::error::ClientError;

/// Largest response, in bytes.
const MAX_ANSWER: usize = 100 << 20;

/// The API of one server, called over gRPC.
#[derive(Clone, Debug)]
pub struct Api {
    base: String,
    token: Option<String>,
    http: reqwest::Client,
}

impl Api {
    /// The API at this address, called with that token.
    ///
    /// # Errors
    /// The address is not a URL, or the system's certificates cannot be read.
    pub fn new(base: &str, token: Option<String>) -> Result<Api, ClientError> {
        let base = base.trim_end_matches('/').to_owned();
        let url = url::Url::parse(&base).map_err(|error| ClientError::Usage(format!("--api {base}: {error}")))?;
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(std::time::Duration::from_secs(10))
            .timeout(std::time::Duration::from_secs(120))
            .http2_max_header_list_size(64 * 1024)
            .user_agent(concat!("bowline/", env!("CARGO_PKG_VERSION")));
        if url.scheme() == "http" {
            builder = builder.http2_prior_knowledge();
        }
        let http = builder.build().map_err(|error| ClientError::Transport(error.to_string()))?;
        Ok(Api { base, token, http })
    }

    /// Calls a method.
    ///
    /// # Errors
    /// The server refuses, or the request fails.
    pub async fn call<M: Method>(&self, request: &M::Request) -> Result<M::Response, ClientError> {
        let (service, method) = M::FULL_NAME.rsplit_once('.').unwrap_or((M::FULL_NAME, ""));
        let sent = self
            .http
            .post(format!("{}/{service}/{method}", self.origin()))
            .headers(self.headers()?)
            .body(frame(&request.encode_to_vec()))
            .send()
            .await
            .map_err(ClientError::transport)?;
        let status = sent.status();
        let (parts, body) = http::Response::from(sent).into_parts();
        if let Some(refused) = refusal(&parts.headers) {
            return Err(refused);
        }
        if !status.is_success() {
            return Err(ClientError::Transport(format!("it answered with HTTP status {status}; is this the API?")));
        }
        let collected = http_body_util::Limited::new(body, MAX_ANSWER).collect().await;
        let collected = collected.map_err(|error| ClientError::Transport(error.to_string()))?;
        match collected.trailers().map(refusal) {
            Some(Some(refused)) => return Err(refused),
            Some(None) => {}
            None => return Err(ClientError::Transport("the answer broke off".into())),
        }
        let message = unframe(collected.to_bytes())?;
        M::Response::decode(message).map_err(|error| ClientError::Transport(format!("the answer is damaged: {error}")))
    }

    /// gRPC knows no path prefix.
    fn origin(&self) -> String {
        url::Url::parse(&self.base).map_or_else(|_| self.base.clone(), |url| url.origin().ascii_serialization())
    }

    fn headers(&self) -> Result<HeaderMap, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(HeaderName::from_static("cgclientid"), HeaderValue::from_static("bowline"));
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value =
                value.map_err(|_| ClientError::NotSignedIn("the token holds characters of no token".into()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

/// One uncompressed message with its length.
fn frame(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(message.len() + 5);
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame.freeze()
}

fn unframe(mut body: Bytes) -> Result<Bytes, ClientError> {
    let damaged = || ClientError::Transport("the answer is damaged".into());
    if body.len() < 5 || body.get_u8() != 0 || body.get_u32() as usize != body.len() {
        return Err(damaged());
    }
    Ok(body)
}

/// The error that a gRPC status says, if it says one.
fn refusal(headers: &HeaderMap) -> Option<ClientError> {
    let code: i32 = headers.get("grpc-status")?.to_str().ok()?.parse().ok()?;
    if code == 0 {
        return None;
    }
    let message = headers.get("grpc-message").and_then(|value| value.to_str().ok()).unwrap_or_default();
    Some(ClientError::Refused { code, message: percent::decode_lossy(message.as_bytes()).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_and_damage_is_seen() {
        assert_eq!(unframe(frame(b"abc")).unwrap(), Bytes::from_static(b"abc"));
        for damaged in [&b""[..], &[0, 0, 0, 0], &[1, 0, 0, 0, 0], &[0, 0, 0, 0, 1], &[0, 0, 0, 0, 0, 9]] {
            assert!(unframe(Bytes::copy_from_slice(damaged)).is_err(), "{damaged:?}");
        }
    }
}
