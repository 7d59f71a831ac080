//! Public keys of other issuers, found by OIDC discovery and cached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use url::Url;

use crate::error::TokenError;
use crate::guarded::{FetchError, GuardedClient};
use crate::jwks::Jwks;

/// Seconds for which fetched keys are cached.
pub const KEEP: i64 = 600;
/// Seconds for which a failed fetch is cached.
pub const KEEP_FAILURE: i64 = 10;
/// Seconds between two refreshes of an issuer's keys that unknown key ids cause.
pub const REFRESH_EVERY: i64 = 30;
/// Maximum number of issuers in the cache; the least recently used one is evicted.
pub const MAX_ISSUERS: usize = 10_000;

/// Why an issuer's keys are not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum KeysError {
    /// The discovery document or the key set could not be fetched.
    #[error("the issuer's keys cannot be fetched: {0}")]
    Fetch(FetchError),
    /// The issuer is not a URL without query and fragment, as discovery requires.
    #[error("the issuer is not a URL without query and fragment")]
    Issuer,
    /// The discovery document names another issuer, or no `jwks_uri`.
    #[error("the issuer's discovery document is not valid")]
    Document,
    /// The key set does not parse, or the key id is not in it.
    #[error("{0}")]
    Token(TokenError),
}

impl KeysError {
    /// A stable word for logs and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Fetch(error) => error.reason(),
            Self::Issuer => "issuer_url",
            Self::Document => "discovery_document",
            Self::Token(error) => error.reason(),
        }
    }

    /// The message for the caller; the same as `Display`.
    pub fn public_message(self) -> String {
        self.to_string()
    }

    /// Whether trying again later may help (the issuer could not be reached, rather than: the token is wrong).
    pub fn is_temporary(self) -> bool {
        matches!(self, Self::Fetch(error) if error.is_temporary())
    }
}

impl From<FetchError> for KeysError {
    fn from(error: FetchError) -> Self {
        Self::Fetch(error)
    }
}

#[derive(Default)]
struct State {
    keys: Option<(Arc<Jwks>, i64)>,
    failure: Option<(KeysError, i64)>,
    refreshed_at: Option<i64>,
}

#[derive(Default)]
struct Issuer {
    state: Mutex<State>,
    /// Held during a fetch, so that one runs at a time.
    flight: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Cache {
    issuers: HashMap<String, (Arc<Issuer>, u64)>,
    clock: u64,
}

/// A cache of issuers' keys, fetched on first use. Pass trusted issuers only: a fetch sends requests to the
/// issuer.
pub struct IssuerKeys {
    client: GuardedClient,
    capacity: usize,
    cache: Mutex<Cache>,
}

impl std::fmt::Debug for IssuerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuerKeys").field("issuers", &self.len()).finish_non_exhaustive()
    }
}

/// Result of a cache lookup.
enum Cached {
    Keys(Arc<Jwks>),
    Refused(KeysError),
    Absent,
    /// Keys without that id, and a refresh is due.
    Stale,
}

impl State {
    fn lookup(&self, kid: Option<&str>, now: i64) -> Cached {
        if let Some((keys, at)) = &self.keys
            && now < at.saturating_add(KEEP)
        {
            if kid.is_none_or(|kid| keys.has_kid(kid)) {
                return Cached::Keys(Arc::clone(keys));
            }
            // The keys were fetched for this call, or refreshed less than `REFRESH_EVERY` ago.
            let lately = self.refreshed_at.is_some_and(|at| now < at.saturating_add(REFRESH_EVERY));
            return if now <= *at || lately {
                Cached::Refused(KeysError::Token(TokenError::UnknownKid))
            } else {
                Cached::Stale
            };
        }
        match self.failure {
            Some((error, at)) if now < at.saturating_add(KEEP_FAILURE) => Cached::Refused(error),
            _ => Cached::Absent,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can leave a half-made state behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IssuerKeys {
    /// An empty cache with the default capacity.
    pub fn new(client: GuardedClient) -> Self {
        Self::with_capacity(client, MAX_ISSUERS)
    }

    /// An empty cache of at most `capacity` issuers.
    pub fn with_capacity(client: GuardedClient, capacity: usize) -> Self {
        Self { client, capacity: capacity.max(1), cache: Mutex::default() }
    }

    /// Number of issuers in the cache.
    pub fn len(&self) -> usize {
        lock(&self.cache).issuers.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes an issuer from the cache, so that the next call fetches its keys.
    pub fn forget(&self, issuer: &str) {
        lock(&self.cache).issuers.remove(issuer);
    }

    /// Whether [`IssuerKeys::keys_for`] without a key id would return without a request, because the cache has the keys or
    /// the failure.
    pub fn is_cached(&self, issuer: &str, now: i64) -> bool {
        let known = lock(&self.cache).issuers.get(issuer).map(|(entry, _)| Arc::clone(entry));
        let lookup = known.map(|entry| lock(&entry.state).lookup(None, now));
        matches!(lookup, Some(Cached::Keys(_) | Cached::Refused(_)))
    }

    /// Returns the issuer's keys; if `kid` is given, they include it. `now` is in unix seconds. One fetch per
    /// issuer runs at a time; an id that the cached keys lack causes one refresh per [`REFRESH_EVERY`] at
    /// most.
    pub async fn keys_for(&self, issuer: &str, kid: Option<&str>, now: i64) -> Result<Arc<Jwks>, KeysError> {
        let url = discovery_url(issuer)?;
        let entry = self.entry(issuer);
        for may_fetch in [false, true] {
            let _flight = if may_fetch { Some(entry.flight.lock().await) } else { None };
            let stale = match lock(&entry.state).lookup(kid, now) {
                Cached::Keys(keys) => return Ok(keys),
                Cached::Refused(error) => return Err(error),
                Cached::Absent => false,
                Cached::Stale => true,
            };
            if !may_fetch {
                continue;
            }
            if stale {
                lock(&entry.state).refreshed_at = Some(now);
            }
            let fetched = self.fetch(issuer, &url).await;
            let mut state = lock(&entry.state);
            match fetched {
                Ok(keys) => {
                    state.keys = Some((Arc::new(keys), now));
                    state.failure = None;
                }
                Err(error) => {
                    // Cached keys stay valid until they expire.
                    state.failure = Some((error, now));
                    return Err(error);
                }
            }
            return match state.lookup(kid, now) {
                Cached::Keys(keys) => Ok(keys),
                Cached::Refused(error) => Err(error),
                Cached::Absent | Cached::Stale => Err(KeysError::Token(TokenError::UnknownKid)),
            };
        }
        Err(KeysError::Token(TokenError::UnknownKid))
    }

    fn entry(&self, issuer: &str) -> Arc<Issuer> {
        let mut cache = lock(&self.cache);
        cache.clock += 1;
        let clock = cache.clock;
        if let Some((entry, used)) = cache.issuers.get_mut(issuer) {
            *used = clock;
            return Arc::clone(entry);
        }
        if cache.issuers.len() >= self.capacity
            && let Some(oldest) = cache.issuers.iter().min_by_key(|(_, (_, used))| *used).map(|(name, _)| name.clone())
        {
            cache.issuers.remove(&oldest);
        }
        let entry = Arc::<Issuer>::default();
        cache.issuers.insert(issuer.to_owned(), (Arc::clone(&entry), clock));
        entry
    }

    async fn fetch(&self, issuer: &str, url: &str) -> Result<Jwks, KeysError> {
        let document = self.client.get_json(url).await?;
        if document.get("issuer").and_then(Value::as_str) != Some(issuer) {
            return Err(KeysError::Document);
        }
        let keys = document.get("jwks_uri").and_then(Value::as_str).ok_or(KeysError::Document)?;
        let keys = self.client.get_json(keys).await?;
        Jwks::parse(&keys).map_err(KeysError::Token)
    }
}

/// URL of an issuer's discovery document.
pub(crate) fn discovery_url(issuer: &str) -> Result<String, KeysError> {
    let url = Url::parse(issuer).map_err(|_| KeysError::Issuer)?;
    // The parser forgives some of these; an issuer is compared as text, so it has to be written properly.
    let sloppy = issuer.contains(['?', '#', '\\']) || issuer.chars().any(|c| !c.is_ascii_graphic());
    if sloppy || !url.has_host() || !url.username().is_empty() || url.password().is_some() {
        return Err(KeysError::Issuer);
    }
    Ok(format!("{}/.well-known/openid-configuration", issuer.strip_suffix('/').unwrap_or(issuer)))
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
