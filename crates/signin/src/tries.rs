//! How often one address may try something in a while.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use bowline_core::Micros;

/// Addresses that are remembered before those whose time is over are dropped.
const REMEMBERED: usize = 10_000;

/// Counts tries by address, in windows that begin with the first try.
pub(crate) struct Tries {
    most: u32,
    window: Micros,
    seen: Mutex<HashMap<IpAddr, (Micros, u32)>>,
}

impl Tries {
    /// At most so many in so many seconds.
    pub(crate) fn new(most: u32, seconds: i64) -> Tries {
        Tries { most, window: seconds * 1_000_000, seen: Mutex::new(HashMap::new()) }
    }

    /// Counts a try.
    ///
    /// # Errors
    /// The seconds to wait, when there were too many already.
    pub(crate) fn count(&self, address: IpAddr, now: Micros) -> Result<(), i64> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= REMEMBERED {
            seen.retain(|_, (since, _)| now < *since + self.window);
        }
        let (since, tries) = seen.entry(network(address)).or_insert((now, 0));
        if now >= *since + self.window {
            (*since, *tries) = (now, 0);
        }
        if *tries >= self.most {
            return Err((*since + self.window - now).div_euclid(1_000_000) + 1);
        }
        *tries += 1;
        Ok(())
    }

    /// Takes one try back: it was a good one.
    pub(crate) fn forgive(&self, address: IpAddr) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tries)) = seen.get_mut(&network(address)) {
            *tries = tries.saturating_sub(1);
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
        tries.forgive(address("2001:db8::1"));
        tries.count(address("2001:db8::1"), 59_000_000).unwrap();
        assert!(tries.count(address("2001:db8::1"), 59_999_999).is_err());
        tries.count(address("2001:db8::1"), 60_000_000).unwrap();
    }
}
