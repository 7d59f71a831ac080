use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts units in use, in all and by key, and refuses more than the limit of either.
#[derive(Debug)]
pub struct Quota<K> {
    most: usize,
    most_by_key: usize,
    used: Mutex<Used<K>>,
}

#[derive(Debug)]
struct Used<K> {
    total: usize,
    by_key: HashMap<K, usize>,
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Of all keys together.
    Total,
    Key,
}

impl<K: Eq + Hash + Clone> Quota<K> {
    /// Nothing in use yet.
    pub fn new(most: usize, most_by_key: usize) -> Arc<Quota<K>> {
        Arc::new(Quota { most, most_by_key, used: Mutex::new(Used { total: 0, by_key: HashMap::new() }) })
    }

    /// Takes units until the lease is dropped; without a key only the total counts.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub fn take(self: &Arc<Self>, key: Option<K>, units: usize) -> Result<Lease<K>, Full> {
        let mut lease = self.lease(key);
        lease.grow(units)?;
        Ok(lease)
    }

    /// A lease that has no units yet.
    pub fn lease(self: &Arc<Self>, key: Option<K>) -> Lease<K> {
        Lease { quota: self.clone(), key, units: 0 }
    }

    fn used(&self) -> MutexGuard<'_, Used<K>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Units in use, given back on drop.
#[derive(Debug)]
pub struct Lease<K: Eq + Hash + Clone> {
    quota: Arc<Quota<K>>,
    key: Option<K>,
    units: usize,
}

impl<K: Eq + Hash + Clone> Lease<K> {
    /// Takes more units, or none if that exceeds a limit.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub fn grow(&mut self, units: usize) -> Result<(), Full> {
        let mut used = self.quota.used();
        if units > self.quota.most.saturating_sub(used.total) {
            return Err(Full::Total);
        }
        if let Some(key) = &self.key {
            let by_key = used.by_key.get(key).copied().unwrap_or(0);
            if units > self.quota.most_by_key.saturating_sub(by_key) {
                return Err(Full::Key);
            }
            if units > 0 {
                used.by_key.insert(key.clone(), by_key + units);
            }
        }
        used.total += units;
        drop(used);
        self.units += units;
        Ok(())
    }
}

impl<K: Eq + Hash + Clone> Drop for Lease<K> {
    fn drop(&mut self) {
        if self.units == 0 {
            return;
        }
        let mut used = self.quota.used();
        used.total = used.total.saturating_sub(self.units);
        let Some(key) = &self.key else { return };
        let left = used.by_key.get(key).map_or(0, |units| units.saturating_sub(self.units));
        if left == 0 {
            used.by_key.remove(key);
        } else {
            used.by_key.insert(key.clone(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_exceeded_and_units_come_back() {
        let quota = Quota::new(5, 3);
        let mut first = quota.take(Some("a"), 2).unwrap();
        first.grow(1).unwrap();
        assert_eq!(first.grow(1), Err(Full::Key));
        assert_eq!(quota.take(Some("a"), 1).unwrap_err(), Full::Key);
        let second = quota.take(Some("b"), 2).unwrap();
        assert_eq!(quota.take(Some("c"), 1).unwrap_err(), Full::Total);
        assert_eq!(quota.take(None, 1).unwrap_err(), Full::Total);
        drop((first, second));
        assert!(quota.used().by_key.is_empty(), "keys without units are forgotten");
        drop(quota.take(None, 5).unwrap());
        assert_eq!(quota.used().total, 0);
    }
}
