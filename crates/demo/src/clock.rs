use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bowline_core::{Clock, Micros};

pub(crate) const SECOND: Micros = 1_000_000;
pub(crate) const HOUR: Micros = 3600 * SECOND;
pub(crate) const DAY: Micros = 24 * HOUR;

/// A clock that stands still until it is moved forward, so that months of history take seconds.
#[derive(Clone, Debug)]
pub(crate) struct DemoClock(Arc<AtomicI64>);

impl DemoClock {
    pub(crate) fn at(time: Micros) -> DemoClock {
        DemoClock(Arc::new(AtomicI64::new(time)))
    }

    /// Moves the time to that one; never back.
    pub(crate) fn move_to(&self, time: Micros) {
        self.0.fetch_max(time, Ordering::SeqCst);
    }

    pub(crate) fn advance(&self, by: Micros) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for DemoClock {
    fn now(&self) -> Micros {
        self.0.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_moves_forward_only() {
        let clock = DemoClock::at(5);
        clock.advance(2);
        clock.move_to(3);
        assert_eq!(clock.now(), 7);
        clock.move_to(9);
        assert_eq!(clock.now(), 9);
    }
}
