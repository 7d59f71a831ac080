//! Limits how often one address may attempt something.

use std::net::IpAddr;

use bowline_core::Micros;
use bowline_pipeline::{Entry, TtlCache, network};

/// Maximum number of addresses and networks in the cache.
const MAX_NETWORKS: usize = 10_000;

/// Counts attempts by IPv4 address or IPv6 /64, in windows that begin with the first attempt.
pub(crate) struct AttemptLimiter {
    max_attempts: u32,
    window: Micros,
    seen: TtlCache<IpAddr, u32>,
}

impl AttemptLimiter {
    /// Allows `max_attempts` per window of `seconds`.
    pub(crate) fn new(max_attempts: u32, seconds: i64) -> AttemptLimiter {
        AttemptLimiter { max_attempts, window: seconds * 1_000_000, seen: TtlCache::new(MAX_NETWORKS) }
    }

    /// Counts one attempt.
    ///
    /// # Errors
    /// The seconds to wait, if there were too many already.
    pub(crate) fn count(&self, address: IpAddr, now: Micros) -> Result<(), i64> {
        self.seen.change(network(address), now, |known| {
            let Entry { until, value: attempts } = known.unwrap_or(Entry { until: now + self.window, value: 0 });
            if attempts >= self.max_attempts {
                return (None, Err((until - now).div_euclid(1_000_000) + 1));
            }
            (Some(Entry { until, value: attempts + 1 }), Ok(()))
        })
    }

    /// Uncounts an attempt that succeeded.
    pub(crate) fn forgive(&self, address: IpAddr, now: Micros) {
        self.seen.change(network(address), now, |known| {
            (known.map(|entry| Entry { value: entry.value.saturating_sub(1), ..entry }), ())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixth_attempt_waits_until_the_window_is_over() {
        let limiter = AttemptLimiter::new(5, 60);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for _ in 0..5 {
            limiter.count(address("2001:db8::1"), 0).unwrap();
        }
        assert_eq!(limiter.count(address("2001:db8::2"), 0), Err(61), "the same /64");
        limiter.count(address("2001:db8:0:1::1"), 0).unwrap();
        limiter.forgive(address("2001:db8::1"), 1);
        limiter.count(address("2001:db8::1"), 59_000_000).unwrap();
        assert!(limiter.count(address("2001:db8::1"), 59_999_999).is_err());
        limiter.count(address("2001:db8::1"), 60_000_000).unwrap();
    }
}
