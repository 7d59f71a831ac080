//! What is remembered of upstreams: what let requests in, and what failed.

use std::sync::Arc;

use bowline_authn::wrap::sha256;
use bowline_core::Micros;
use bowline_pipeline::{Entry, TtlCache};
use bowline_registry::content::UpstreamConfig;
use url::Url;

use super::problem::{Extent, Problem};

/// Grants, and problems, that are remembered at most.
const MOST: usize = 10_000;

/// A digest of everything that an answer depended on, the password of the account included.
type Key = [u8; 32];

/// One thing of a repository at an upstream.
#[derive(Clone, Copy)]
pub(super) struct Thing<'a> {
    pub(super) upstream: &'a UpstreamConfig,
    /// What comes behind the repository's name, such as `manifests/latest`.
    pub(super) rest: &'a str,
}

/// What is remembered, in bounded memory.
pub(super) struct Known {
    grants: TtlCache<Key, Arc<str>>,
    problems: TtlCache<Key, Problem>,
}

impl Known {
    pub(super) fn new() -> Known {
        Known { grants: TtlCache::new(MOST), problems: TtlCache::new(MOST) }
    }

    /// The `authorization` header that let requests to the repository in.
    pub(super) fn grant(&self, upstream: &UpstreamConfig, now: Micros) -> Option<Arc<str>> {
        self.grants.change(key(Extent::Repository, upstream, ""), now, |known| (None, known.map(|entry| entry.value)))
    }

    /// Remembers the header for this many microseconds.
    pub(super) fn put_grant(&self, upstream: &UpstreamConfig, grant: &Arc<str>, lifetime: Micros, now: Micros) {
        let entry = Entry { until: now.saturating_add(lifetime), value: grant.clone() };
        self.grants.change(key(Extent::Repository, upstream, ""), now, |_| (Some(entry), ()));
    }

    /// Why the thing is not asked for now.
    pub(super) fn problem(&self, thing: Thing<'_>, url: &Url, now: Micros) -> Option<Problem> {
        [Extent::Origin, Extent::Repository, Extent::Thing].into_iter().find_map(|extent| {
            let key = thing.key(extent, url);
            self.problems.change(key, now, |known| (None, known.map(|entry| entry.value)))
        })
    }

    /// Remembers what came of asking for the thing at this address.
    pub(super) fn put_problem(&self, thing: Thing<'_>, url: &Url, problem: Problem, now: Micros) {
        let (extent, lifetime) = problem.reach();
        let entry = Entry { until: now.saturating_add(lifetime), value: problem };
        self.problems.change(thing.key(extent, url), now, |_| (Some(entry), ()));
    }
}

impl Thing<'_> {
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
        Extent::Thing => digest(&["thing", &upstream.url, rest, username, password]),
        Extent::Repository | Extent::Origin => digest(&["repository", &upstream.url, username, password]),
    }
}

/// A digest that no other list of texts has.
fn digest(parts: &[&str]) -> Key {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part.as_bytes());
    }
    sha256(&bytes)
}
