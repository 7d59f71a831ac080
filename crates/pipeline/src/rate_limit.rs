use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bowline_core::{Detail, Error, Micros, Reason, Result};

use crate::ttl_cache::{Entry, TtlCache, network};

/// Limits on how often a caller may call: buckets that fill by the second. Time is measured from their making, by a
/// clock that no one sets.
pub struct RateLimits {
    by_principal: Option<Buckets<String>>,
    by_address: Option<Buckets<IpAddr>>,
    made_at: Instant,
    refusals: Arc<Refusals>,
}

/// The part of the server that a limited call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// Methods of the contract.
    Api,
    Registry,
    Packages,
    /// The pages of sign-in.
    SignIn,
    Scim,
    /// The OSV query API.
    Osv,
    /// gRPC health and reflection.
    Health,
}

impl Surface {
    pub const ALL: [Surface; 7] = [
        Surface::Api,
        Surface::Registry,
        Surface::Packages,
        Surface::SignIn,
        Surface::Scim,
        Surface::Osv,
        Surface::Health,
    ];

    /// The surface as the value of a label.
    pub fn label(self) -> &'static str {
        match self {
            Surface::Api => "api",
            Surface::Registry => "registry",
            Surface::Packages => "packages",
            Surface::SignIn => "sign_in",
            Surface::Scim => "scim",
            Surface::Osv => "osv",
            Surface::Health => "health",
        }
    }
}

/// Calls that limits refused, by surface.
#[derive(Debug, Default)]
pub struct Refusals([AtomicU64; Surface::ALL.len()]);

impl Refusals {
    /// Refused calls of that surface.
    pub fn of(&self, surface: Surface) -> u64 {
        self.0[surface as usize].load(Ordering::Relaxed)
    }

    fn counted<T>(&self, surface: Surface, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.0[surface as usize].fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

/// Buckets that are held, of those that are not full.
const MAX_BUCKETS: usize = 50_000;
/// What a bucket holds, as the time that fills it.
const DEPTH: Micros = 10_000_000;

/// A bucket by key. All that there is to know of one is when it will be full.
struct Buckets<K> {
    /// Microseconds that one call takes to fill in again.
    interval: Micros,
    full_at: TtlCache<K, ()>,
}

impl Default for RateLimits {
    fn default() -> RateLimits {
        RateLimits::new(0, 0)
    }
}

impl RateLimits {
    /// Limits in calls per second; 0 switches a limit off. A bucket holds ten seconds' worth.
    pub fn new(per_principal: u32, per_address: u32) -> RateLimits {
        RateLimits {
            by_principal: Buckets::new(per_principal),
            by_address: Buckets::new(per_address),
            made_at: Instant::now(),
            refusals: Arc::default(),
        }
    }

    /// The same limits, whose refusals count together with those of others.
    pub fn counted_with(self, other: &RateLimits) -> RateLimits {
        RateLimits { refusals: other.refusals.clone(), ..self }
    }

    /// The calls that were refused.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Counts a call of an authenticated caller.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED with the time to wait.
    pub fn count_principal(&self, surface: Surface, subject: &str) -> Result<()> {
        let counted =
            self.by_principal.as_ref().map_or(Ok(()), |buckets| buckets.count(subject.to_owned(), self.now()));
        self.refusals.counted(surface, counted)
    }

    /// Counts a call that needs no token of this server, by the address it came from.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED with the time to wait.
    pub fn count_address(&self, surface: Surface, address: Option<IpAddr>) -> Result<()> {
        let counted = match (&self.by_address, address) {
            (Some(buckets), Some(address)) => buckets.count(network(address), self.now()),
            _ => Ok(()),
        };
        self.refusals.counted(surface, counted)
    }

    fn now(&self) -> Micros {
        Micros::try_from(self.made_at.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }
}

impl<K: Eq + Hash> Buckets<K> {
    fn new(per_second: u32) -> Option<Buckets<K>> {
        let interval = 1_000_000_i64.checked_div(per_second.into())?.max(1);
        Some(Buckets { interval, full_at: TtlCache::new(MAX_BUCKETS) })
    }

    fn count(&self, key: K, now: Micros) -> Result<()> {
        self.full_at.change(key, now, |known| {
            let full_at = known.map_or(now, |entry| entry.until).saturating_add(self.interval);
            match full_at.saturating_sub(now).saturating_sub(DEPTH) {
                ..=0 => (Some(Entry { until: full_at, value: () }), Ok(())),
                wait => (None, Err(exhausted(wait))),
            }
        })
    }
}

fn exhausted(wait: Micros) -> Error {
    let seconds = wait.unsigned_abs().div_ceil(1_000_000);
    Error::new(Reason::RateLimited, format!("Rate limit reached: try again in {seconds} s"))
        .with(Detail::RetryAfter(Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Micros = 1_000_000;

    #[test]
    fn the_eleventh_call_waits() {
        let buckets = Buckets::new(1).unwrap();
        for _ in 0..10 {
            buckets.count("a", 0).unwrap();
        }
        let refused = buckets.count("a", 0).unwrap_err();
        assert_eq!((refused.reason(), refused.retry_after()), (Reason::RateLimited, Some(Duration::from_secs(1))));
        buckets.count("b", 0).unwrap();
        // Being refused costs nothing, and each second fills one in.
        buckets.count("a", SECOND - 1).unwrap_err();
        buckets.count("a", SECOND).unwrap();
        buckets.count("a", SECOND).unwrap_err();
        for _ in 0..10 {
            buckets.count("a", 100 * SECOND).unwrap();
        }
        buckets.count("a", 100 * SECOND).unwrap_err();
    }

    #[test]
    fn each_limit_is_of_its_own() {
        let limits = RateLimits::new(1, 0);
        for _ in 0..10 {
            limits.count_principal(Surface::Api, "a").unwrap();
        }
        limits.count_principal(Surface::Api, "a").unwrap_err();
        limits.count_principal(Surface::Api, "b").unwrap();
        for _ in 0..100 {
            limits.count_address(Surface::Osv, Some([127, 0, 0, 1].into())).unwrap();
        }
        let others = RateLimits::new(0, 1).counted_with(&limits);
        let refused = (0..13).filter(|_| others.count_address(Surface::Scim, Some([127, 0, 0, 1].into())).is_err());
        assert_eq!(refused.count(), 3);
        let refusals = Surface::ALL.map(|surface| limits.refusals().of(surface));
        assert_eq!(refusals, [1, 0, 0, 0, 3, 0, 0], "each surface has a count of its own");
        assert!(Buckets::<u8>::new(0).is_none());
        assert_eq!(Buckets::<u8>::new(u32::MAX).unwrap().interval, 1);
    }
}
