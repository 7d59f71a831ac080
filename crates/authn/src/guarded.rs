//! The one client for requests to hosts that others name: issuers, key sets, webhooks, upstreams.

use std::error::Error as StdError;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::LOCATION;
use http::{HeaderMap, Method, StatusCode};
use reqwest::redirect;
use serde_json::Value;
use url::{Host, Url};

use crate::addresses::AddressPolicy;
use crate::resolver::{GuardedResolver, Resolver, SystemResolver, Unusable};

/// Why a request failed. `Display` is public: it names no address, and has one text for a rejected address
/// and for no connection, so that callers cannot explore the operator's names and networks.
/// [`FetchError::reason`] distinguishes them in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FetchError {
    /// Not a URL that can be requested, or one with credentials in it.
    #[error("the URL is not valid")]
    InvalidUrl,
    /// Another scheme than https.
    #[error("only https URLs are requested")]
    NotHttps,
    /// The host is, or resolves to, an address that must not be reached.
    #[error("no connection to the host, or its address is not allowed")]
    RefusedAddress,
    /// No connection: unknown host, refused, TLS.
    #[error("no connection to the host, or its address is not allowed")]
    Connect,
    /// Not finished in time.
    #[error("the host did not answer in time")]
    Timeout,
    /// The body is longer than the limit.
    #[error("the answer is too large")]
    TooLarge,
    /// Another status than 2xx; redirects are not followed.
    #[error("the host answered with status {0}")]
    Status(u16),
    /// The body is not JSON.
    #[error("the answer is not JSON")]
    NotJson,
    /// The connection broke in the middle of the response.
    #[error("the answer was cut off")]
    Interrupted,
}

impl FetchError {
    /// A stable word for logs and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid_url",
            Self::NotHttps => "not_https",
            Self::RefusedAddress => "refused_address",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Status(_) => "status",
            Self::NotJson => "not_json",
            Self::Interrupted => "broken",
        }
    }

    /// The message for the caller; the same as `Display`.
    pub fn public_message(self) -> String {
        self.to_string()
    }

    /// Whether trying again later may help. A refused address counts as one that could not be reached: callers see the
    /// same code for both.
    pub fn is_temporary(self) -> bool {
        match self {
            Self::RefusedAddress | Self::Connect | Self::Timeout | Self::Interrupted => true,
            Self::Status(status) => status >= 500 || status == 429,
            Self::InvalidUrl | Self::NotHttps | Self::TooLarge | Self::NotJson => false,
        }
    }
}

/// The client could not be built (no usable root certificates).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the outbound HTTP client cannot be built: {0}")]
pub struct BuildError(String);

/// How long a body is read that no one wants.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// The limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first look-up to the last byte.
    pub total: Duration,
    /// Bytes of the response's body.
    pub body: usize,
}

impl Default for Limits {
    /// 10 seconds, 1 MiB.
    fn default() -> Self {
        Self { total: Duration::from_secs(10), body: 1024 * 1024 }
    }
}

/// A request to send.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// The URL, as someone wrote it.
    pub url: String,
    /// Headers; `Host` and lengths are set by the client.
    pub headers: HeaderMap,
    /// The body, empty for none.
    pub body: Bytes,
}

impl Request {
    /// A GET without headers.
    pub fn get(url: &str) -> Self {
        Self { method: Method::GET, url: url.to_owned(), headers: HeaderMap::new(), body: Bytes::new() }
    }
}

/// A response, complete and within the limits; any status.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A response whose body matters little.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub status: StatusCode,
    /// The first bytes of the body, as far as they came.
    pub start: Bytes,
}

/// A response whose body has not been read; any status.
#[derive(Debug)]
pub struct Opened {
    response: reqwest::Response,
    silence: Duration,
}

impl Opened {
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next part of the body; absent at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let part = tokio::time::timeout(self.silence, self.response.chunk()).await.map_err(|_| FetchError::Timeout)?;
        part.map_err(|error| classify(&error, FetchError::Interrupted))
    }

    /// The whole body, which may have this many bytes.
    pub async fn whole(mut self, most: usize) -> Result<Bytes, FetchError> {
        let mut body = BytesMut::new();
        while let Some(part) = self.chunk().await? {
            if body.len() + part.len() > most {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&part);
        }
        Ok(body.freeze())
    }
}

/// The `authorization` header of an account, by HTTP Basic.
pub fn basic_authorization(username: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
}

/// Where a response of `from` redirects to; the client follows none by itself.
///
/// # Errors
/// `InvalidUrl` without an address.
pub fn redirect_target(headers: &HeaderMap, from: &Url) -> Result<Url, FetchError> {
    let text = headers.get(LOCATION).and_then(|value| value.to_str().ok()).ok_or(FetchError::InvalidUrl)?;
    from.join(text).map_err(|_| FetchError::InvalidUrl)
}

/// What a [`GuardedClient`] is built from.
#[derive(Clone)]
pub struct Options {
    /// Which addresses may be reached.
    pub policy: AddressPolicy,
    pub resolver: Arc<dyn Resolver>,
    /// Limit for establishing a connection.
    pub connect: Duration,
    /// Further root certificates (PEM, one or many), for private authorities.
    pub extra_roots: Vec<u8>,
}

impl Options {
    /// The system's resolver, 5 seconds to connect, the system's roots.
    pub fn new(policy: AddressPolicy) -> Self {
        Self { policy, resolver: Arc::new(SystemResolver), connect: Duration::from_secs(5), extra_roots: Vec::new() }
    }
}

/// The guarded client; cheap to clone. Https only, each host resolved once and connected to by the checked addresses,
/// no redirects, no proxies, no cookies, limits on time and size.
#[derive(Clone, Debug)]
pub struct GuardedClient {
    policy: Arc<AddressPolicy>,
    https: reqwest::Client,
    /// Plain http, to loopback alone; only under a policy that allows it.
    http: Option<reqwest::Client>,
}

impl GuardedClient {
    /// A client under that policy with everything else as usual.
    pub fn new(policy: AddressPolicy) -> Result<Self, BuildError> {
        Self::with(Options::new(policy))
    }

    /// A client of these options. Installs the aws-lc-rs provider of rustls for the process when there is none.
    pub fn with(options: Options) -> Result<Self, BuildError> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let policy = Arc::new(options.policy.clone());
        let build = |http: bool| {
            let resolver = GuardedResolver { inner: Arc::clone(&options.resolver), policy: Arc::clone(&policy), http };
            let failed = |error: reqwest::Error| BuildError(error.to_string());
            let mut builder = reqwest::Client::builder()
                .dns_resolver(Arc::new(resolver))
                .https_only(!http)
                .redirect(redirect::Policy::none())
                .no_proxy()
                .referer(false)
                .retry(reqwest::retry::never())
                .connect_timeout(options.connect)
                .pool_max_idle_per_host(4)
                .pool_idle_timeout(Duration::from_secs(30))
                .http2_max_header_list_size(64 * 1024)
                .user_agent(concat!("bowline/", env!("CARGO_PKG_VERSION")));
            if !options.extra_roots.is_empty() {
                let roots = reqwest::Certificate::from_pem_bundle(&options.extra_roots).map_err(failed)?;
                builder = builder.tls_certs_merge(roots);
            }
            builder.build().map_err(failed)
        };
        Ok(Self {
            https: build(false)?,
            http: if policy.allow_loopback_and_http { Some(build(true)?) } else { None },
            policy,
        })
    }

    /// Checks a URL without sending anything: form, scheme, address literals. Names are checked when they resolve.
    pub fn check_url(&self, url: &str) -> Result<Url, FetchError> {
        self.pick(url).map(|(url, _)| url)
    }

    fn pick(&self, url: &str) -> Result<(Url, &reqwest::Client), FetchError> {
        let url = Url::parse(url).map_err(|_| FetchError::InvalidUrl)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::InvalidUrl);
        }
        let client = match (url.scheme(), &self.http) {
            ("https", _) => &self.https,
            ("http", Some(client)) => client,
            _ => return Err(FetchError::NotHttps),
        };
        let literal = match url.host().ok_or(FetchError::InvalidUrl)? {
            Host::Ipv4(v4) => Some(IpAddr::V4(v4)),
            Host::Ipv6(v6) => Some(IpAddr::V6(v6)),
            Host::Domain(_) => None,
        };
        // A literal never reaches the resolver, so it is checked here.
        let http = url.scheme() == "http";
        if let Some(ip) = literal
            && !(if http { self.policy.allows_http(ip) } else { self.policy.allows(ip) })
        {
            return Err(refused(&url));
        }
        Ok((url, client))
    }

    /// Sends a request and reads the whole response within the limits.
    pub async fn fetch(&self, request: Request, limits: Limits) -> Result<Response, FetchError> {
        let (url, client) = self.pick(&request.url)?;
        let send = async {
            let mut response = client
                .request(request.method, url)
                .headers(request.headers)
                .body(request.body)
                .send()
                .await
                .map_err(|error| classify(&error, FetchError::Connect))?;
            if response.content_length().is_some_and(|length| length > limits.body as u64) {
                return Err(FetchError::TooLarge);
            }
            let mut body = BytesMut::new();
            while let Some(chunk) = response.chunk().await.map_err(|error| classify(&error, FetchError::Interrupted))? {
                if body.len() + chunk.len() > limits.body {
                    return Err(FetchError::TooLarge);
                }
                body.extend_from_slice(&chunk);
            }
            Ok(Response { status: response.status(), headers: response.headers().clone(), body: body.freeze() })
        };
        tokio::time::timeout(limits.total, send).await.map_err(|_| FetchError::Timeout)?
    }

    /// Sends a request whose body is read in parts, however long it is. The head must come within `head`, each part
    /// within `silence` of the one before.
    pub async fn open(&self, request: Request, head: Duration, silence: Duration) -> Result<Opened, FetchError> {
        let (url, client) = self.pick(&request.url)?;
        let sent = client.request(request.method, url).headers(request.headers).body(request.body).send();
        let answered = tokio::time::timeout(head, sent).await.map_err(|_| FetchError::Timeout)?;
        let response = answered.map_err(|error| classify(&error, FetchError::Connect))?;
        Ok(Opened { response, silence })
    }

    /// Sends a request for its status, which must come within the total time. Of the body at most `limits.body` bytes
    /// are read, for a second, so that the connection can be used again; the first `wanted` of them are returned.
    pub async fn send(&self, request: Request, limits: Limits, wanted: usize) -> Result<Sent, FetchError> {
        let (url, client) = self.pick(&request.url)?;
        let sent = client.request(request.method, url).headers(request.headers).body(request.body).send();
        let answered = tokio::time::timeout(limits.total, sent).await.map_err(|_| FetchError::Timeout)?;
        let mut response = answered.map_err(|error| classify(&error, FetchError::Connect))?;
        let status = response.status();
        let mut start = BytesMut::new();
        let drain = async {
            let mut left = limits.body;
            while let Ok(Some(chunk)) = response.chunk().await {
                start.extend_from_slice(&chunk[..chunk.len().min(wanted - start.len())]);
                let Some(rest) = left.checked_sub(chunk.len()) else {
                    return;
                };
                left = rest;
            }
        };
        // The status is known; a body that does not end costs the connection and nothing else.
        let _ = tokio::time::timeout(DRAIN_TIME, drain).await;
        Ok(Sent { status, start: start.freeze() })
    }

    /// GETs a JSON document of at most 1 MiB within 10 seconds; any status but 2xx is an error.
    pub async fn get_json(&self, url: &str) -> Result<Value, FetchError> {
        self.get_json_within(url, Limits::default()).await
    }

    /// The same under other limits.
    pub async fn get_json_within(&self, url: &str, limits: Limits) -> Result<Value, FetchError> {
        let mut request = Request::get(url);
        request.headers.insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
        let response = self.fetch(request, limits).await?;
        if !response.status.is_success() {
            return Err(FetchError::Status(response.status.as_u16()));
        }
        serde_json::from_slice(&response.body).map_err(|_| FetchError::NotJson)
    }
}

/// The error for a host at an address that is not allowed. Only the log distinguishes it: the caller reads
/// the same text as for a host that does not exist.
fn refused(url: &Url) -> FetchError {
    let host = url.host_str().unwrap_or_default();
    tracing::info!(host, "outbound request refused: address not allowed; --allow-private-addresses allows networks");
    FetchError::RefusedAddress
}

/// The class of a failure, found along the chain of causes.
fn classify(error: &reqwest::Error, otherwise: FetchError) -> FetchError {
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(inner) = cause {
        match inner.downcast_ref::<Unusable>() {
            Some(Unusable::Refused) => return error.url().map_or(FetchError::RefusedAddress, refused),
            Some(Unusable::Unknown) => return FetchError::Connect,
            None => cause = inner.source(),
        }
    }
    if error.is_timeout() { FetchError::Timeout } else { otherwise }
}

#[cfg(test)]
#[path = "guarded_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "guarded_tls_tests.rs"]
mod tls_tests;
