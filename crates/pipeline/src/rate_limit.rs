use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use bowline_core::{Detail, Error, Reason, Result};
use governor::clock::{Clock as _, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

type Limiter<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

/// Limits on how often a caller may call: token buckets that fill by the second.
#[derive(Default)]
pub struct RateLimits {
    by_principal: Option<Limiter<String>>,
    by_address: Option<Limiter<IpAddr>>,
}

/// Buckets that a limiter holds before full ones are dropped.
const KEPT_BUCKETS: usize = 50_000;

impl RateLimits {
    /// Limits in calls per second; 0 switches a limit off. A bucket holds ten seconds' worth.
    pub fn new(per_principal: u32, per_address: u32) -> RateLimits {
        RateLimits { by_principal: quota(per_principal).map(limiter), by_address: quota(per_address).map(limiter) }
    }

    /// Counts a call of an authenticated caller.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED with the time to wait.
    pub fn count_principal(&self, subject: &str) -> Result<()> {
        self.by_principal.as_ref().map_or(Ok(()), |limiter| count(limiter, &subject.to_owned()))
    }

    /// Counts a call that needs no token of ours, by the address it came from.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED with the time to wait.
    pub fn count_address(&self, address: Option<IpAddr>) -> Result<()> {
        match (&self.by_address, address) {
            (Some(limiter), Some(address)) => count(limiter, &network(address)),
            _ => Ok(()),
        }
    }
}

/// Whoever has one IPv6 address has its whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

fn quota(per_second: u32) -> Option<Quota> {
    let rate = NonZeroU32::new(per_second)?;
    Some(Quota::per_second(rate).allow_burst(rate.saturating_mul(NonZeroU32::new(10)?)))
}

fn limiter<K: Clone + Eq + std::hash::Hash>(quota: Quota) -> Limiter<K> {
    RateLimiter::hashmap_with_clock(quota, DefaultClock::default())
}

fn count<K: Clone + Eq + std::hash::Hash>(limiter: &Limiter<K>, key: &K) -> Result<()> {
    if limiter.len() > KEPT_BUCKETS {
        limiter.retain_recent();
    }
    limiter.check_key(key).map_err(|not_until| {
        let wait = not_until.wait_time_from(DefaultClock::default().now());
        let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
        Error::new(Reason::RateLimited, format!("Rate limit reached: try again in {seconds} s"))
            .with(Detail::RetryAfter(Duration::from_secs(seconds)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_call_waits() {
        let limits = RateLimits::new(1, 0);
        for _ in 0..10 {
            limits.count_principal("a").unwrap();
        }
        let refused = limits.count_principal("a").unwrap_err();
        assert_eq!(refused.reason(), Reason::RateLimited);
        assert!(refused.retry_after().is_some());
        limits.count_principal("b").unwrap();
        limits.count_address(Some([127, 0, 0, 1].into())).unwrap();
    }
}
