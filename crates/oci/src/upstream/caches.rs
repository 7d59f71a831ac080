//! Caches about upstreams: accepted `authorization` headers and recent failures.

use std::sync::Arc;

use bowline_authn::crypto::sha256;
use bowline_core::Micros;
use bowline_pipeline::{Entry, TtlCache};
use bowline_registry::content::UpstreamConfig;
use url::Url;

use super::problem::{Extent, Problem};

/// Maximum number of entries of each cache.
const MAX_ENTRIES: usize = 10_000;

/// A digest of everything that a response depends on, including the account's password.
type Key = [u8; 32];

/// A resource of a repository at an upstream.
#[derive(Clone, Copy)]
pub(super) struct UpstreamResource<'a> {
    pub(super) upstream: &'a UpstreamConfig,
    /// The path after the repository's name, such as `manifests/latest`.
    pub(super) rest: &'a str,
}

/// Both caches, in bounded memory.
pub(super) struct UpstreamCaches {
    authorizations: TtlCache<Key, Arc<str>>,
    problems: TtlCache<Key, Problem>,
}

impl UpstreamCaches {
    pub(super) fn new() -> UpstreamCaches {
        UpstreamCaches { authorizations: TtlCache::new(MAX_ENTRIES), problems: TtlCache::new(MAX_ENTRIES) }
    }

    /// The cached `authorization` header for requests to the repository.
    pub(super) fn authorization(&self, upstream: &UpstreamConfig, now: Micros) -> Option<Arc<str>> {
        self.authorizations
            .change(key(Extent::Repository, upstream, ""), now, |known| (None, known.map(|entry| entry.value)))
    }

    /// Caches the header for `lifetime` microseconds.
    pub(super) fn put_authorization(
        &self,
        upstream: &UpstreamConfig,
        header: &Arc<str>,
        lifetime: Micros,
        now: Micros,
    ) {
        let entry = Entry { until: now.saturating_add(lifetime), value: header.clone() };
        self.authorizations.change(key(Extent::Repository, upstream, ""), now, |_| (Some(entry), ()));
    }

    /// The cached failure because of which the resource is not requested now.
    pub(super) fn problem(&self, resource: UpstreamResource<'_>, url: &Url, now: Micros) -> Option<Problem> {
        [Extent::Origin, Extent::Repository, Extent::Resource].into_iter().find_map(|extent| {
            let key = resource.key(extent, url);
            self.problems.change(key, now, |known| (None, known.map(|entry| entry.value)))
        })
    }

    /// Caches the failure of a request for the resource at this address.
    pub(super) fn put_problem(&self, resource: UpstreamResource<'_>, url: &Url, problem: Problem, now: Micros) {
        let (extent, ttl) = problem.extent_and_ttl();
        let entry = Entry { until: now.saturating_add(ttl), value: problem };
        self.problems.change(resource.key(extent, url), now, |_| (Some(entry), ()));
    }
}

impl UpstreamResource<'_> {
    fn key(&self, extent: Extent, url: &Url) -> Key {
        match extent {
            Extent::Origin => digest(&["origin", &url.origin().ascii_serialization()]),
            extent => key(extent, self.upstream, self.rest),
        }
    }
}

fn key(extent: Extent, upstream: &UpstreamConfig, rest: &str) -> Key {
    let account = upstream.credentials.as_ref();
    let (username, password) = account.map_or(("", ""), |account| (&account.username, &account.password));
    match extent {
        Extent::Resource => digest(&["resource", &upstream.url, rest, username, password]),
        Extent::Repository | Extent::Origin => digest(&["repository", &upstream.url, username, password]),
    }
}

/// A digest of a list of texts. Their lengths are part of it, so that different lists differ.
fn digest(parts: &[&str]) -> Key {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part.as_bytes());
    }
    sha256(&bytes)
}
