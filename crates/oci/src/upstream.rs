//! A client of other registries: it pulls as everybody may, over the guarded client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use bowline_authn::guarded::{FetchError, GuardedClient, Limits, Opened, Request};
use bytes::Bytes;
use serde_json::Value;
use url::Url;

/// Redirects that are followed; each address is judged anew.
const HOPS: usize = 5;
/// How long an upstream may take to begin its answer, and to go on with it.
const HEAD: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(30);
/// Keys of what is under way that are looked through for finished ones.
const KEYS: usize = 1000;

/// Other registries, and what is being fetched from them.
pub(crate) struct Upstream {
    client: GuardedClient,
    under_way: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl Upstream {
    pub(crate) fn new(client: GuardedClient) -> Upstream {
        Upstream { client, under_way: Mutex::default() }
    }

    /// A lock for what has this key, so that it is fetched once.
    pub(crate) fn once(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if under_way.len() >= KEYS {
            under_way.retain(|_, lock| lock.strong_count() > 0);
        }
        if let Some(lock) = under_way.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        under_way.insert(key.to_owned(), Arc::downgrade(&lock));
        lock
    }

    /// Asks for something of a repository, whose address is `https://host/name`.
    pub(crate) async fn ask(
        &self,
        method: Method,
        repository: &str,
        rest: &str,
        accept: &str,
    ) -> Result<Opened, FetchError> {
        let mut url = address(repository, rest)?;
        let mut token: Option<String> = None;
        for _ in 0..=HOPS {
            let request = request(method.clone(), &url, accept, token.as_deref())?;
            let opened = self.client.open(request, HEAD, SILENCE).await?;
            let status = opened.status();
            if status == StatusCode::UNAUTHORIZED && token.is_none() {
                token = Some(self.token(opened.headers()).await?);
            } else if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
                let next = location(opened.headers(), &url)?;
                if next.origin() != url.origin() {
                    // What is good for one host is not told to another.
                    token = None;
                }
                url = next;
            } else {
                return Ok(opened);
            }
        }
        Err(FetchError::Status(StatusCode::LOOP_DETECTED.as_u16()))
    }

    /// A token that everybody gets, from where the challenge says.
    async fn token(&self, headers: &HeaderMap) -> Result<String, FetchError> {
        let refused = FetchError::Status(StatusCode::UNAUTHORIZED.as_u16());
        let challenge = headers.get(header::WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let parameters = challenge.and_then(bearer).ok_or(refused)?;
        let realm = parameters.iter().find(|(name, _)| name == "realm").ok_or(refused)?;
        let mut url = Url::parse(&realm.1).map_err(|_| FetchError::InvalidUrl)?;
        for (name, value) in parameters.iter().filter(|(name, _)| name == "service" || name == "scope") {
            url.query_pairs_mut().append_pair(name, value);
        }
        let answer = self.client.get_json_within(url.as_str(), Limits::default()).await?;
        let token = ["token", "access_token"].into_iter().find_map(|name| answer.get(name).and_then(Value::as_str));
        token.map(String::from).ok_or(refused)
    }
}

/// `https://host/name` and `manifests/1` make `https://host/v2/name/manifests/1`.
fn address(repository: &str, rest: &str) -> Result<Url, FetchError> {
    let mut url = Url::parse(repository).map_err(|_| FetchError::InvalidUrl)?;
    let path = format!("/v2{}/{rest}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn request(method: Method, url: &Url, accept: &str, token: Option<&str>) -> Result<Request, FetchError> {
    let mut headers = HeaderMap::new();
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| FetchError::InvalidUrl);
    headers.insert(header::ACCEPT, value(accept)?);
    if let Some(token) = token {
        headers.insert(header::AUTHORIZATION, value(&format!("Bearer {token}"))?);
    }
    Ok(Request { method, url: url.as_str().to_owned(), headers, body: Bytes::new() })
}

fn location(headers: &HeaderMap, from: &Url) -> Result<Url, FetchError> {
    let text = headers.get(header::LOCATION).and_then(|value| value.to_str().ok()).ok_or(FetchError::InvalidUrl)?;
    from.join(text).map_err(|_| FetchError::InvalidUrl)
}

/// The parameters of a challenge for a bearer token; absent if it is another.
fn bearer(challenge: &str) -> Option<Vec<(String, String)>> {
    let (scheme, mut rest) = challenge.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut parameters = Vec::new();
    while let Some((name, quoted)) = rest.split_once("=\"") {
        let (value, after) = quoted.split_once('"')?;
        parameters.push((name.trim_matches([' ', ',']).to_ascii_lowercase(), value.to_owned()));
        rest = after;
    }
    Some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let is = |repository: &str, wanted: &str| {
            assert_eq!(address(repository, "manifests/1").unwrap().as_str(), wanted);
        };
        is("https://a.example/library/nginx", "https://a.example/v2/library/nginx/manifests/1");
        is("https://a.example:5000/x/", "https://a.example:5000/v2/x/manifests/1");
    }

    #[test]
    fn challenges() {
        let wanted = [("realm", "https://a/token"), ("service", "a, b"), ("scope", "repository:x:pull")];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let text = r#"Bearer realm="https://a/token",service="a, b", scope="repository:x:pull""#;
        assert_eq!(bearer(text).unwrap(), wanted);
        assert_eq!(bearer("Basic realm=\"x\""), None);
        assert_eq!(bearer("Bearer realm=\"x"), None);
    }

    #[tokio::test]
    async fn one_lock_for_one_key_while_it_is_held() {
        let upstream = Upstream::new(GuardedClient::new(bowline_authn::addresses::AddressPolicy::default()).unwrap());
        let held = upstream.once("a");
        let guard = held.lock().await;
        assert!(upstream.once("a").try_lock().is_err());
        assert!(upstream.once("b").try_lock().is_ok());
        drop(guard);
        assert!(upstream.once("a").try_lock().is_ok());
    }
}
