//! A client of other package indexes, over the guarded client: with the account of the upstream, or as everyone may.
//!
//! The account is sent to the origin of the index alone, never to where that redirects or where it says that files lie.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use bowline_authn::guarded::{FetchError, GuardedClient, Opened, Request, basic_authorization, redirect_target};
use bowline_libraries::hosting::UpstreamAccess;
use bytes::Bytes;
use url::Url;

/// Redirects that are followed; each address is checked again.
const HOPS: usize = 5;
/// How long an upstream may take to begin its response, and to continue with it.
const HEAD: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(30);

/// Sends requests to upstreams.
pub(crate) struct UpstreamClient(GuardedClient);

impl UpstreamClient {
    pub(crate) fn new(client: GuardedClient) -> UpstreamClient {
        UpstreamClient(client)
    }

    /// Gets what lies at an address, as `send` does.
    ///
    /// # Errors
    /// Those of `send`.
    pub(crate) async fn get(
        &self,
        upstream: &UpstreamAccess,
        url: &Url,
        headers: &HeaderMap,
    ) -> Result<(Opened, Url), FetchError> {
        self.send(upstream, Method::GET, url, headers).await
    }

    /// Requests an address that the upstream, or its index, named; follows redirects. The response may have any other status.
    /// Also returns where it came from.
    ///
    /// # Errors
    /// No response, or an address that must not be requested.
    pub(crate) async fn send(
        &self,
        upstream: &UpstreamAccess,
        method: Method,
        url: &Url,
        headers: &HeaderMap,
    ) -> Result<(Opened, Url), FetchError> {
        let home = Url::parse(&upstream.url).map_err(|_| FetchError::InvalidUrl)?.origin();
        let mut url = url.clone();
        for _ in 0..=HOPS {
            let mut headers = headers.clone();
            if url.origin() == home
                && let Some(account) = &upstream.account
            {
                headers.insert(header::AUTHORIZATION, basic(account)?);
            }
            let (method, body) = (method.clone(), Bytes::new());
            let request = Request { method, url: url.as_str().to_owned(), headers, body };
            let opened = self.0.open(request, HEAD, SILENCE).await?;
            let is_moved = opened.status().is_redirection() && opened.status() != StatusCode::NOT_MODIFIED;
            if !is_moved {
                return Ok((opened, url));
            }
            url = redirect_target(opened.headers(), &url)?;
        }
        Err(FetchError::Status(StatusCode::LOOP_DETECTED.as_u16()))
    }
}

fn basic((username, password): &(String, String)) -> Result<HeaderValue, FetchError> {
    let mut value =
        HeaderValue::from_str(&basic_authorization(username, password)).map_err(|_| FetchError::InvalidUrl)?;
    value.set_sensitive(true);
    Ok(value)
}
