use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_calls::RestRequest;
use bowline_contract::{Contract, Method, MethodInfo};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, TE};
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use prost::Message as _;

use crate::error::ClientError;
use crate::stream::Messages;
use crate::{grpc, rest};

/// Largest response, in bytes.
pub(crate) const MAX_RESPONSE: usize = 100 << 20;

/// Longest time of a response that continues.
const WATCHED: Duration = Duration::from_hours(24 * 365);

/// The API of one server, called over gRPC, or over REST where HTTP/2 does not pass.
#[derive(Clone, Debug)]
pub struct Api {
    base: String,
    token: Option<String>,
    http2: reqwest::Client,
    /// The client of REST, made when it is needed: each reads the machine's certificates.
    http1: Arc<OnceLock<reqwest::Client>>,
    is_rest: Arc<AtomicBool>,
    observer: Option<fn(&str)>,
}

impl Api {
    /// The API at this address, called with that token.
    ///
    /// # Errors
    /// The address is not a URL, or the system's certificates cannot be read.
    pub fn new(base: &str, token: Option<String>) -> Result<Api, ClientError> {
        let base = base.trim_end_matches('/').to_owned();
        let address = url::Url::parse(&base).map_err(|error| ClientError::Usage(format!("--api {base}: {error}")))?;
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        // HTTP/2 or nothing: a gRPC call over HTTP/1.1 could be carried out while its response is lost.
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .timeout(Duration::from_secs(120))
            .http2_max_header_list_size(64 * 1024)
            .http2_prior_knowledge()
            .user_agent(concat!("bowline/", env!("CARGO_PKG_VERSION")));
        if is_plain_loopback(&address) {
            // No certificate is ever checked here, and reading those of the machine takes a quarter of a short command.
            builder = builder.no_proxy().tls_certs_only([]);
        }
        let http2 = builder.build().map_err(|error| ClientError::Transport(error.to_string()))?;
        Ok(Api { base, token, http2, http1: Arc::default(), is_rest: Arc::default(), observer: None })
    }

    /// The same, called over REST alone.
    #[must_use]
    pub fn over_rest(self) -> Api {
        self.is_rest.store(true, Ordering::Relaxed);
        self
    }

    /// The same, with a function that is given a line for every call.
    #[must_use]
    pub fn observed(self, observer: fn(&str)) -> Api {
        Api { observer: Some(observer), ..self }
    }

    /// Whether calls go over REST.
    pub fn is_rest(&self) -> bool {
        self.is_rest.load(Ordering::Relaxed)
    }

    /// Calls a method.
    ///
    /// # Errors
    /// The server refuses, or no response comes.
    pub async fn call<M: Method>(&self, request: &M::Request) -> Result<M::Response, ClientError> {
        let contract = Contract::of(M::FULL_NAME);
        let message = self.call_encoded(require(&contract, M::FULL_NAME)?, &request.encode_to_vec()).await?;
        let damaged = |error| ClientError::Transport(format!("the response is damaged: {error}"));
        M::Response::decode(message).map_err(damaged)
    }

    /// Calls a method with an encoded request; the encoded response.
    ///
    /// # Errors
    /// The server refuses, or no response comes.
    pub async fn call_encoded(&self, method: &MethodInfo, request: &[u8]) -> Result<Bytes, ClientError> {
        let result = self.call_either(method, request).await;
        if let Some(observer) = self.observer {
            let transport = if self.is_rest() { "REST" } else { "gRPC" };
            let outcome = match &result {
                Ok(response) => format!("{} bytes", response.len()),
                Err(error) => error.to_string(),
            };
            observer(&format!("{} over {transport}: {outcome}", method.full_name));
        }
        result
    }

    async fn call_either(&self, method: &MethodInfo, request: &[u8]) -> Result<Bytes, ClientError> {
        if !self.is_rest() {
            match self.call_grpc(method, request).await {
                Err(ClientError::NoHttp2) => self.is_rest.store(true, Ordering::Relaxed),
                result => return result,
            }
        }
        let sent = self.send_rest(method, request, None).await?;
        let status = sent.status();
        let body = collected(Response::from(sent).into_body()).await?.to_bytes();
        if status.is_success() { rest::response(method, &body) } else { Err(rest::refusal(status, &body)) }
    }

    /// Calls a method whose response continues.
    ///
    /// # Errors
    /// The server refuses, or no response comes.
    pub async fn watch<'m>(&self, method: &'m MethodInfo, request: &[u8]) -> Result<Messages<'m>, ClientError> {
        if !self.is_rest() {
            match self.send_grpc(method, request, Some(WATCHED)).await {
                Err(ClientError::NoHttp2) => self.is_rest.store(true, Ordering::Relaxed),
                result => return Ok(Messages::new(method, result?.into_body(), false)),
            }
        }
        let sent = self.send_rest(method, request, Some(WATCHED)).await?;
        let status = sent.status();
        let body = Response::from(sent).into_body();
        if !status.is_success() {
            return Err(rest::refusal(status, &collected(body).await?.to_bytes()));
        }
        Ok(Messages::new(method, body, true))
    }

    async fn call_grpc(&self, method: &MethodInfo, request: &[u8]) -> Result<Bytes, ClientError> {
        let body = self.send_grpc(method, request, None).await?.into_body();
        let body = collected(body).await?;
        match body.trailers().map(grpc::refusal) {
            Some(Some(refused)) => Err(refused),
            Some(None) => grpc::unframe(body.to_bytes()),
            None => Err(ClientError::Transport("the response broke off".into())),
        }
    }

    async fn send_grpc(
        &self,
        method: &MethodInfo,
        request: &[u8],
        time: Option<Duration>,
    ) -> Result<Response<reqwest::Body>, ClientError> {
        let mut headers = self.headers()?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        let url = format!("{}{}", self.origin(), method.grpc_path);
        let mut sent = self.http2.post(url).headers(headers).body(grpc::frame(request));
        if let Some(time) = time {
            sent = sent.timeout(time);
        }
        let response = Response::from(sent.send().await.map_err(ClientError::transport)?);
        if let Some(refused) = grpc::refusal(response.headers()) {
            return Err(refused);
        }
        let status = response.status();
        if status.is_success() { Ok(response) } else { Err(ClientError::NotTheApi(status.as_u16())) }
    }

    async fn send_rest(
        &self,
        method: &MethodInfo,
        request: &[u8],
        time: Option<Duration>,
    ) -> Result<reqwest::Response, ClientError> {
        let tables = rest::tables(&method.input);
        let request = RestRequest::new(&tables, method, request).map_err(|why| ClientError::Usage(why.to_string()))?;
        let verb = http::Method::from_bytes(request.verb.name().as_bytes());
        let verb = verb.map_err(|error| ClientError::Usage(error.to_string()))?;
        let mut headers = self.headers()?;
        // Each field once: the transcoder refuses a second spelling of the same field.
        headers.insert(ACCEPT, HeaderValue::from_static("application/json;names=proto3"));
        let mut sent = self.http1()?.request(verb, format!("{}{}", self.base, request.path));
        if let Some(body) = request.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            sent = sent.body(body);
        }
        if let Some(time) = time {
            sent = sent.timeout(time);
        }
        sent.headers(headers).send().await.map_err(ClientError::transport)
    }

    fn http1(&self) -> Result<&reqwest::Client, ClientError> {
        if let Some(client) = self.http1.get() {
            return Ok(client);
        }
        let client = crate::http_client()?;
        Ok(self.http1.get_or_init(|| client))
    }

    /// gRPC knows no path prefix.
    fn origin(&self) -> String {
        url::Url::parse(&self.base).map_or_else(|_| self.base.clone(), |url| url.origin().ascii_serialization())
    }

    fn headers(&self) -> Result<HeaderMap, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("cgclientid"), HeaderValue::from_static("bowline"));
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value =
                value.map_err(|_| ClientError::UnusableToken("the token has characters that no token has".into()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

/// Whether it is this machine, without TLS.
fn is_plain_loopback(address: &url::Url) -> bool {
    let is_loopback = match address.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    is_loopback && address.scheme() == "http"
}

/// The method of this full name.
///
/// # Errors
/// A defect: the contract has no such method.
fn require<'c>(contract: &'c Contract, full_name: &str) -> Result<&'c MethodInfo, ClientError> {
    let unknown = || ClientError::Usage(format!("{full_name} is not a method of the contract"));
    contract.by_full_name(full_name).ok_or_else(unknown)
}

async fn collected(body: reqwest::Body) -> Result<http_body_util::Collected<Bytes>, ClientError> {
    let collected = http_body_util::Limited::new(body, MAX_RESPONSE).collect().await;
    collected.map_err(|error| ClientError::Transport(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::is_plain_loopback;

    #[test]
    fn plain_loopback_is_this_machine_without_tls() {
        for (address, is_plain) in [
            ("http://127.0.0.1:8080", true),
            ("http://[::1]:8080", true),
            ("http://localhost", true),
            ("https://127.0.0.1:8080", false),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_plain_loopback(&address.parse().expect("a URL")), is_plain, "{address}");
        }
    }
}
