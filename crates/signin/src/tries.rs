//! How often one address may try something in a while.

use std::net::IpAddr;

use bowline_core::Micros;
use bowline_pipeline::{Entry, TtlCache, network};

/// Maximum number of addresses in the cache.
const REMEMBERED: usize = 10_000;

/// Counts tries by address, in windows that begin with the first try.
pub(crate) struct Tries {
    most: u32,
    window: Micros,
    seen: TtlCache<IpAddr, u32>,
}

impl Tries {
    /// At most so many in so many seconds.
    pub(crate) fn new(most: u32, seconds: i64) -> Tries {
        Tries { most, window: seconds * 1_000_000, seen: TtlCache::new(REMEMBERED) }
    }

    /// Counts a try.
    ///
    /// # Errors
    /// The seconds to wait, when there were too many already.
    pub(crate) fn count(&self, address: IpAddr, now: Micros) -> Result<(), i64> {
        self.seen.change(network(address), now, |known| {
            let Entry { until, value: tries } = known.unwrap_or(Entry { until: now + self.window, value: 0 });
            if tries >= self.most {
                return (None, Err((until - now).div_euclid(1_000_000) + 1));
            }
            (Some(Entry { until, value: tries + 1 }), Ok(()))
        })
    }

    /// Takes one try back: it was a good one.
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
    fn the_sixth_try_waits_until_the_window_is_over() {
        let tries = Tries::new(5, 60);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for _ in 0..5 {
            tries.count(address("2001:db8::1"), 0).unwrap();
        }
        assert_eq!(tries.count(address("2001:db8::2"), 0), Err(61), "the same /64");
        tries.count(address("2001:db8:0:1::1"), 0).unwrap();
        tries.forgive(address("2001:db8::1"), 1);
        tries.count(address("2001:db8::1"), 59_000_000).unwrap();
        assert!(tries.count(address("2001:db8::1"), 59_999_999).is_err());
        tries.count(address("2001:db8::1"), 60_000_000).unwrap();
    }
}
