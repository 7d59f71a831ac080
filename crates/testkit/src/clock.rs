use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bowline_core::{Clock, Micros, SystemClock};

/// A clock that starts at the real time and stands still until it is moved.
#[derive(Clone, Debug)]
pub struct TestClock(Arc<AtomicI64>);

impl Default for TestClock {
    fn default() -> TestClock {
        TestClock(Arc::new(AtomicI64::new(SystemClock.now())))
    }
}

impl TestClock {
    /// A clock that stands at that time, in seconds since the Unix epoch.
    pub fn at(seconds: i64) -> TestClock {
        TestClock(Arc::new(AtomicI64::new(seconds * 1_000_000)))
    }

    /// Moves the time on.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).expect("a test's duration fits"), Ordering::SeqCst);
    }

    /// Moves the time on to the real one, which commands beside the server go by.
    pub fn catch_up(&self) {
        self.0.fetch_max(SystemClock.now(), Ordering::SeqCst);
    }

    /// The time now, in whole seconds since the Unix epoch.
    pub fn seconds(&self) -> i64 {
        self.now().div_euclid(1_000_000)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Micros {
        self.0.load(Ordering::SeqCst)
    }
}
