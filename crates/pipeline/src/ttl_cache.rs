//! A TTL cache in bounded memory, such as for the number of attempts of an address.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use bowline_core::Micros;

/// Microseconds between two sweeps of the cache.
const SWEEP: Micros = 1_000_000;

/// Values by key, each until a time of its own. Of more than it may hold it forgets those that would end first.
pub struct TtlCache<K, V> {
    most: usize,
    table: Mutex<Table<K, V>>,
}

struct Table<K, V> {
    entries: HashMap<K, Entry<V>>,
    swept_at: Micros,
}

/// A value and when it means nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<V> {
    /// In microseconds of the caller's clock.
    pub until: Micros,
    pub value: V,
}

impl<K: Eq + Hash, V: Clone> TtlCache<K, V> {
    /// Nothing yet; never more than `most` keys.
    pub fn new(most: usize) -> TtlCache<K, V> {
        TtlCache { most, table: Mutex::new(Table { entries: HashMap::new(), swept_at: Micros::MIN }) }
    }

    /// Passes the entry of the key to `change`, unless it has expired, and stores the entry that `change`
    /// returns; without one the cache is unchanged.
    pub fn change<R>(&self, key: K, now: Micros, change: impl FnOnce(Option<Entry<V>>) -> (Option<Entry<V>>, R)) -> R {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table.entries.get(&key).filter(|entry| now < entry.until).cloned();
        let (next, answer) = change(known);
        if let Some(next) = next {
            if table.entries.len() >= self.most && !table.entries.contains_key(&key) {
                table.make_room(self.most, now);
            }
            table.entries.insert(key, next);
        }
        answer
    }

    /// Keys that are held.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).entries.len()
    }
}

impl<K: Eq + Hash, V: Clone> Table<K, V> {
    /// Drops what is over, and of what is not the half that ends first, so that the next look at everything is far.
    fn make_room(&mut self, most: usize, now: Micros) {
        if now >= self.swept_at.saturating_add(SWEEP) {
            self.swept_at = now;
            self.entries.retain(|_, entry| now < entry.until);
        }
        if self.entries.len() < most {
            return;
        }
        let mut ends: Vec<Micros> = self.entries.values().map(|entry| entry.until).collect();
        let middle = ends.len() / 2;
        let (_, &mut median, _) = ends.select_nth_unstable(middle);
        self.entries.retain(|_, entry| entry.until > median);
    }
}

/// Anyone who has one IPv6 address has its whole /64.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the key, for a hundred seconds from its first time.
    fn count(cache: &TtlCache<u32, u32>, key: u32, now: Micros) -> u32 {
        cache.change(key, now, |known| {
            let entry = known.unwrap_or(Entry { until: now + 100 * SWEEP, value: 0 });
            let value = entry.value + 1;
            (Some(Entry { value, ..entry }), value)
        })
    }

    #[test]
    fn what_is_over_begins_again() {
        let cache = TtlCache::new(10);
        assert_eq!((count(&cache, 1, 0), count(&cache, 1, 100 * SWEEP - 1)), (1, 2));
        assert_eq!(count(&cache, 1, 100 * SWEEP), 1);
        let shown = cache.change(2, 0, |known| (None, known));
        assert_eq!((shown, cache.len()), (None, 1), "looking leaves nothing behind");
    }

    #[test]
    fn many_keys_take_no_more_than_their_room_and_the_newest_stay() {
        let cache = TtlCache::new(1000);
        for key in 0..100_000 {
            count(&cache, key, Micros::from(key));
            assert!(cache.len() <= 1000);
        }
        assert_eq!(count(&cache, 99_999, 100_000), 2, "the newest is still known");
        assert_eq!(count(&cache, 0, 100_000), 1, "the oldest is not");
        // All at one moment: none ends before another, and still there is room.
        let cache = TtlCache::new(1000);
        for key in 0..5000 {
            count(&cache, key, 0);
        }
        assert!(cache.len() <= 1000);
    }

    #[test]
    fn an_ipv6_address_is_its_network() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
