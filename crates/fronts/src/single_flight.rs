//! One request for all who want the same from another server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Keys of what is under way that are looked through for finished ones.
const KEYS: usize = 1000;

/// A lock for each key of what is being fetched.
#[derive(Debug, Default)]
pub struct SingleFlight(Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl SingleFlight {
    /// The lock of what has this key, the same one for all while any holds it.
    pub fn lock(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if under_way.len() >= KEYS {
            under_way.retain(|_, lock| lock.strong_count() > 0);
        }
        if let Some(lock) = under_way.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        under_way.insert(key.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_lock_for_one_key_while_it_is_held() {
        let flights = SingleFlight::default();
        let held = flights.lock("a");
        let guard = held.lock().await;
        assert!(flights.lock("a").try_lock().is_err());
        assert!(flights.lock("b").try_lock().is_ok());
        drop(guard);
        assert!(flights.lock("a").try_lock().is_ok());
    }
}
