//! A client of other registries, over the guarded client: with the account of the policy, or as everyone may.
//!
//! The account's password is sent to two hosts: to the upstream's own origin, if that requires Basic
//! authentication, and to the token service that the upstream's own origin names. An operator of the one
//! could get the password from the other anyway. The target of a redirect to another origin gets neither the
//! password nor a token of it.

mod caches;
mod challenge;
mod checks;
mod problem;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use bowline_authn::guarded::{
    FetchError, GuardedClient, Limits, Opened, Request, basic_authorization, redirect_target,
};
use bowline_core::{Clock, Micros};
use bowline_fronts::SingleFlight;
use bowline_registry::content::{Credentials, UpstreamConfig};
use bytes::Bytes;
use serde_json::Value;
use url::Url;

use caches::{UpstreamCaches, UpstreamResource};
use challenge::{Challenge, challenges};
pub(crate) use problem::Problem;

/// Redirects that are followed; each address is checked again.
const HOPS: usize = 5;
/// How long an upstream may take to begin its response, and to continue with it.
const HEAD: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(30);
/// Seconds that a token lasts where its service does not say, which the protocol fixes, and at most.
const TOKEN: u64 = 60;
const LONGEST_TOKEN: u64 = 3600;
/// Seconds before its end in which a token is not used any more: a request takes time.
const MARGIN: u64 = 10;

/// Other registries, what is being fetched from them, and what they said not long ago.
pub struct Upstream {
    client: GuardedClient,
    clock: Arc<dyn Clock>,
    caches: UpstreamCaches,
    under_way: SingleFlight,
}

/// What an upstream was not good for.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) problem: Problem,
    /// Whether this request was sent to the upstream, rather than an earlier one.
    pub(crate) is_new: bool,
}

/// What lets a request in: the value of its `authorization` header, and for how many seconds.
struct Grant {
    header: String,
    seconds: u64,
}

impl Upstream {
    /// Nothing known of any of them yet.
    pub fn new(client: GuardedClient, clock: Arc<dyn Clock>) -> Upstream {
        Upstream { client, clock, caches: UpstreamCaches::new(), under_way: SingleFlight::default() }
    }

    /// A lock for what has this key, so that it is fetched once.
    pub(crate) fn single_flight(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        self.under_way.lock(key)
    }

    /// Requests a resource of a repository, such as `manifests/latest`; the result is a successful response.
    /// While a recent failure is cached, no request is sent.
    pub(crate) async fn ask(
        &self,
        method: Method,
        upstream: &UpstreamConfig,
        rest: &str,
        accept: &str,
    ) -> Result<Opened, Unanswered> {
        let resource = UpstreamResource { upstream, rest };
        let invalid = |error: FetchError| Unanswered { problem: error.into(), is_new: true };
        let url = address(&upstream.url, rest).map_err(invalid)?;
        if let Some(problem) = self.caches.problem(resource, &url, self.clock.now()) {
            return Err(Unanswered { problem, is_new: false });
        }
        let answered = self.followed(method, upstream, url.clone(), accept).await;
        answered.map_err(|problem| {
            self.caches.put_problem(resource, &url, problem, self.clock.now());
            Unanswered { problem, is_new: true }
        })
    }

    /// Caches the failure of a response that had begun well.
    pub(crate) fn note_problem(&self, upstream: &UpstreamConfig, rest: &str, problem: Problem) {
        if let Ok(url) = address(&upstream.url, rest) {
            self.caches.put_problem(UpstreamResource { upstream, rest }, &url, problem, self.clock.now());
        }
    }

    /// Sends a request, responds to challenges and follows redirects.
    async fn followed(
        &self,
        method: Method,
        upstream: &UpstreamConfig,
        first: Url,
        accept: &str,
    ) -> Result<Opened, Problem> {
        let mut url = first;
        // Whether no redirect has led to another origin yet, and whether the proof is of this very request.
        let (mut is_home, mut is_fresh) = (true, false);
        let mut proof = self.caches.authorization(upstream, self.clock.now());
        for _ in 0..=HOPS {
            let request = request(method.clone(), &url, accept, proof.as_deref())?;
            let sent = self.client.open(request, HEAD, SILENCE).await;
            let opened = sent.map_err(|error| if is_home { away(error) } else { error.into() })?;
            let status = opened.status();
            let account = upstream.credentials.as_ref().filter(|_| is_home);
            if status == StatusCode::UNAUTHORIZED && !is_fresh {
                let granted = self.granted(&challenges(opened.headers()), account, &url).await;
                let grant = granted.map_err(|problem| if is_home { problem } else { problem.elsewhere() })?;
                let header: Arc<str> = grant.header.into();
                if is_home {
                    let lifetime = (grant.seconds.saturating_sub(MARGIN) * 1_000_000) as Micros;
                    self.caches.put_authorization(upstream, &header, lifetime, self.clock.now());
                }
                (proof, is_fresh) = (Some(header), true);
            } else if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
                let next = redirect_target(opened.headers(), &url)?;
                if next.origin() != url.origin() {
                    // Credentials for one host are not sent to another.
                    (proof, is_fresh, is_home) = (None, false, false);
                }
                url = next;
            } else if status.is_success() {
                return Ok(opened);
            } else {
                return Err(refusal(&opened, upstream, is_home, proof.as_deref()));
            }
        }
        Err(FetchError::Status(StatusCode::LOOP_DETECTED.as_u16()).into())
    }

    /// The `authorization` header that answers the challenge of `from`.
    async fn granted(
        &self,
        offered: &[Challenge],
        account: Option<&Credentials>,
        from: &Url,
    ) -> Result<Grant, Problem> {
        if let Some(bearer) = offered.iter().find(|challenge| challenge.is("bearer")) {
            return self.token(bearer, account, from).await;
        }
        let Some(account) = account else { return Err(Problem::Unidentified) };
        if !offered.iter().any(|challenge| challenge.is("basic")) {
            return Err(Problem::Unknown(StatusCode::UNAUTHORIZED.as_u16()));
        }
        Ok(Grant { header: basic(account), seconds: TOKEN })
    }

    /// A token from where the challenge says: for the account, or the one that everyone gets.
    async fn token(&self, challenge: &Challenge, account: Option<&Credentials>, from: &Url) -> Result<Grant, Problem> {
        let realm = challenge.parameter("realm").ok_or(FetchError::Status(StatusCode::UNAUTHORIZED.as_u16()))?;
        let mut url = Url::parse(realm).map_err(|_| FetchError::InvalidUrl)?;
        for name in ["service", "scope"] {
            if let Some(value) = challenge.parameter(name) {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        if let Some(account) = account {
            // The guarded client speaks plain http to loopback alone, and only where the operator allows it; a
            // password that is meant for https does not go there either.
            if url.scheme() != "https" && from.scheme() == "https" {
                return Err(FetchError::NotHttps.into());
            }
            url.query_pairs_mut().append_pair("account", &account.username);
        }
        let proof = account.map(basic);
        let request = request(Method::GET, &url, "application/json", proof.as_deref())?;
        let response = self.client.fetch(request, Limits::default()).await?;
        match response.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if account.is_some() => {
                return Err(Problem::Unknown(response.status.as_u16()));
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Problem::Unidentified),
            StatusCode::NOT_FOUND => return Err(FetchError::Status(response.status.as_u16()).into()),
            status if !status.is_success() => return Err(Problem::of(status, &response.headers)),
            _ => {}
        }
        token_of(&response.body)
    }
}

/// The token in the response of a token service.
fn token_of(body: &[u8]) -> Result<Grant, Problem> {
    let response: Value = serde_json::from_slice(body).map_err(|_| FetchError::NotJson)?;
    let token = ["token", "access_token"].into_iter().find_map(|name| response.get(name).and_then(Value::as_str));
    let token = token.ok_or(FetchError::Status(StatusCode::UNAUTHORIZED.as_u16()))?;
    let seconds = response.get("expires_in").and_then(Value::as_u64).unwrap_or(TOKEN).min(LONGEST_TOKEN);
    Ok(Grant { header: format!("Bearer {token}"), seconds })
}

/// Why a response is an error. Without an account, a resource that is absent and one that may not be read are
/// the same: registries return one status for both.
fn refusal(opened: &Opened, upstream: &UpstreamConfig, is_home: bool, proof: Option<&str>) -> Problem {
    let status = opened.status();
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if upstream.credentials.is_none() => Problem::Absent,
        StatusCode::UNAUTHORIZED if is_home && proof.is_some_and(|proof| proof.starts_with("Basic ")) => {
            Problem::Unknown(status.as_u16())
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if is_home => Problem::Forbidden(status.as_u16()),
        status if is_home => Problem::of(status, opened.headers()),
        status => Problem::of(status, opened.headers()).elsewhere(),
    }
}

/// A failure of the upstream's own host: if it did not respond at all, the next request need not wait for it
/// so soon.
fn away(error: FetchError) -> Problem {
    // A rejected address is cached like a failed connection, so that the number of requests does not reveal
    // which it was.
    let is_away = matches!(error, FetchError::RefusedAddress | FetchError::Connect | FetchError::Timeout);
    if is_away { Problem::Away(error) } else { error.into() }
}

fn basic(account: &Credentials) -> String {
    basic_authorization(&account.username, &account.password)
}

/// `https://host/name` and `manifests/1` make `https://host/v2/name/manifests/1`.
fn address(repository: &str, rest: &str) -> Result<Url, FetchError> {
    let mut url = Url::parse(repository).map_err(|_| FetchError::InvalidUrl)?;
    let path = format!("/v2{}/{rest}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

/// A request, with this `authorization` header if there is one.
fn request(method: Method, url: &Url, accept: &str, proof: Option<&str>) -> Result<Request, FetchError> {
    let mut headers = HeaderMap::new();
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| FetchError::InvalidUrl);
    headers.insert(header::ACCEPT, value(accept)?);
    if let Some(proof) = proof {
        let mut proof = value(proof)?;
        proof.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, proof);
    }
    Ok(Request { method, url: url.as_str().to_owned(), headers, body: Bytes::new() })
}

#[cfg(test)]
mod tests {
    use bowline_authn::addresses::AddressPolicy;
    use bowline_core::SystemClock;

    use super::*;

    #[test]
    fn addresses() {
        let is = |repository: &str, wanted: &str| {
            assert_eq!(address(repository, "manifests/1").unwrap().as_str(), wanted);
        };
        is("https://a.example/library/nginx", "https://a.example/v2/library/nginx/manifests/1");
        is("https://a.example:5000/x/", "https://a.example:5000/v2/x/manifests/1");
    }

    #[tokio::test]
    async fn a_password_that_is_meant_for_https_goes_nowhere_else() {
        let policy = AddressPolicy { allow_loopback_and_http: true, ..AddressPolicy::default() };
        let upstream = Upstream::new(GuardedClient::new(policy).unwrap(), Arc::new(SystemClock));
        let account = Credentials { username: "me".into(), password: "hush".into() };
        // No one listens at the discard port: a connection would give another error.
        let challenge = "Bearer realm=\"http://127.0.0.1:9/token\"".parse().unwrap();
        let offered = challenges(&[(header::WWW_AUTHENTICATE, challenge)].into_iter().collect());
        let problem = async |from: &str| {
            let granted = upstream.granted(&offered, Some(&account), &Url::parse(from).unwrap()).await;
            granted.err().unwrap().to_string()
        };
        assert_eq!(problem("https://a.example/v2/x").await, FetchError::NotHttps.to_string());
        assert_eq!(problem("http://127.0.0.1:1/v2/x").await, FetchError::Connect.to_string());
    }

    #[test]
    fn tokens_last_as_long_as_their_service_says() {
        let read = |text: &str| token_of(text.as_bytes()).map(|grant| (grant.header, grant.seconds)).ok();
        assert_eq!(read(r#"{"token":"a","expires_in":300}"#), Some(("Bearer a".into(), 300)));
        assert_eq!(read(r#"{"access_token":"b"}"#), Some(("Bearer b".into(), 60)));
        assert_eq!(read(r#"{"token":"a","expires_in":99999999}"#), Some(("Bearer a".into(), 3600)));
        assert_eq!(read(r#"{"expires_in":300}"#), None);
        assert_eq!(read("<html>"), None);
    }
}
