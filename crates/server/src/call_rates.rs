//! Rates and durations of calls, a point for each minute of the last 24 hours, in fixed memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_contract::bowline::operator::v1;
use bowline_core::{Clock, Micros};
use bowline_rpc::{CallTotals, DURATION_BOUNDS, Telemetry};

use crate::task_board::timestamp;

const POINT_EVERY: Duration = Duration::from_secs(60);
const POINTS: usize = 24 * 60;

/// The points of this process.
#[derive(Debug, Default)]
pub(crate) struct CallRates(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    totals: CallTotals,
    points: VecDeque<(Micros, CallTotals)>,
}

impl CallRates {
    /// Adds what came since the last point.
    fn add(&self, totals: CallTotals, now: Micros) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ring.points.len() == POINTS {
            ring.points.pop_front();
        }
        let point = totals.since(&ring.totals);
        ring.points.push_back((now, point));
        ring.totals = totals;
    }

    /// The points, as the operator reads them.
    pub(crate) fn metrics(&self) -> v1::Metrics {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let point = |(at, totals): &(Micros, CallTotals)| v1::MetricsPoint {
            time: Some(timestamp(*at)),
            calls: totals.calls as i64,
            failures: totals.failures as i64,
            durations: totals.durations.iter().map(|count| *count as i64).collect(),
        };
        v1::Metrics {
            bounds: DURATION_BOUNDS.iter().map(|seconds| seconds * 1000.0).collect(),
            points: ring.points.iter().map(point).collect(),
        }
    }
}

/// Adds a point every minute.
pub(crate) async fn follow(rates: Arc<CallRates>, telemetry: Arc<Telemetry>, clock: Arc<dyn Clock>) {
    loop {
        tokio::time::sleep(POINT_EVERY).await;
        rates.add(telemetry.totals(), clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_points_is_all_that_is_stored() {
        let rates = CallRates::default();
        for n in 1..=POINTS as u64 + 5 {
            rates.add(CallTotals { calls: n * 2, ..CallTotals::default() }, n as Micros);
        }
        let points = rates.metrics().points;
        assert_eq!(points.len(), POINTS);
        assert!(points.iter().all(|point| point.calls == 2));
    }
}
