//! What upstreams did not have, or did not answer, a moment ago: they are not asked again at once.

use bowline_core::{Micros, Uidp};
use bowline_pipeline::{Entry, TtlCache};

use super::documents::{Ask, UpstreamAccess};

const SECOND: Micros = 1_000_000;
/// How long it is remembered that an upstream has no such package, and that it did not answer.
pub(super) const ABSENT: Micros = 60 * SECOND;
const FAILED: Micros = 10 * SECOND;
/// Answers that are remembered.
const ANSWERS: usize = 20_000;

/// What an upstream did not have, or did not answer, a moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Absent,
    Failed,
}

/// The outcomes of a moment ago, in bounded memory.
pub(super) struct Memory(TtlCache<(String, String), Outcome>);

impl Default for Memory {
    fn default() -> Memory {
        Memory(TtlCache::new(ANSWERS))
    }
}

impl Memory {
    pub(super) fn outcome(&self, upstream: &Uidp, package: &str, now: Micros) -> Option<Outcome> {
        let key = (upstream.as_str().to_owned(), package.to_owned());
        self.0.change(key, now, |known| (None, known.map(|entry| entry.value)))
    }

    pub(super) fn put(&self, ask: &Ask, outcome: Outcome, now: Micros) {
        self.put_of(&ask.upstream, ask.package.clone(), outcome, now);
    }

    pub(super) fn put_of(&self, upstream: &UpstreamAccess, package: String, outcome: Outcome, now: Micros) {
        let key = (upstream.key().to_owned(), package);
        let ttl = if outcome == Outcome::Absent { ABSENT } else { FAILED };
        self.0.change(key, now, |_| (Some(Entry { until: now.saturating_add(ttl), value: outcome }), ()));
    }
}
