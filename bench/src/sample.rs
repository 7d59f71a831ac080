//! Measured durations.

use std::time::Duration;

/// Sorted nanoseconds.
pub(crate) struct Sample(Vec<u64>);

impl Sample {
    pub(crate) fn new(mut nanoseconds: Vec<u64>) -> Sample {
        nanoseconds.sort_unstable();
        Sample(nanoseconds)
    }

    /// The value that this share of all values does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        let at = (self.0.len() as f64 * share).ceil() as usize;
        Duration::from_nanos(self.0.get(at.saturating_sub(1).min(last)).copied().unwrap_or(0))
    }

    pub(crate) fn milliseconds(&self, share: f64) -> f64 {
        self.quantile(share).as_secs_f64() * 1e3
    }

    pub(crate) fn microseconds(&self, share: f64) -> f64 {
        self.quantile(share).as_secs_f64() * 1e6
    }
}

/// The middle one of some figures.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let sample = Sample::new((1..=100).rev().collect());
        assert_eq!(sample.quantile(0.5).as_nanos(), 50);
        assert_eq!(sample.quantile(0.99).as_nanos(), 99);
        assert_eq!(sample.quantile(1.0).as_nanos(), 100);
        assert_eq!(Sample::new(Vec::new()).quantile(0.5).as_nanos(), 0);
    }
}
