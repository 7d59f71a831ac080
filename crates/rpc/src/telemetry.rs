use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline_contract::Contract;
use bowline_core::Code;
use metrics::{Counter, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

const CALLS: &str = "bowline_calls_total";
const SECONDS: &str = "bowline_call_seconds";

/// Upper bounds of the durations that [`CallTotals`] counts, in seconds.
pub const DURATION_BOUNDS: [f64; 13] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

/// Calls since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTotals {
    pub calls: u64,
    /// Calls that failed by a fault of the server.
    pub failures: u64,
    /// By the bounds of the durations, and one for what took longer.
    pub durations: [u64; DURATION_BOUNDS.len() + 1],
}

impl CallTotals {
    /// What came after the earlier totals.
    #[must_use]
    pub fn since(&self, earlier: &CallTotals) -> CallTotals {
        CallTotals {
            calls: self.calls.saturating_sub(earlier.calls),
            failures: self.failures.saturating_sub(earlier.failures),
            durations: std::array::from_fn(|at| self.durations[at].saturating_sub(earlier.durations[at])),
        }
    }
}

/// The same while calls are counted.
#[derive(Default)]
struct Totals {
    failures: AtomicU64,
    durations: [AtomicU64; DURATION_BOUNDS.len() + 1],
}

impl Totals {
    /// Codes of faults of the server: UNKNOWN, INTERNAL, UNAVAILABLE, DATA_LOSS.
    const FAULTS: [usize; 4] = [2, 13, 14, 15];

    fn add(&self, code: usize, seconds: f64) {
        if Totals::FAULTS.contains(&code) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        let at = DURATION_BOUNDS.partition_point(|bound| *bound < seconds);
        self.durations[at].fetch_add(1, Ordering::Relaxed);
    }
}

/// Codes 0 (OK) to 16.
const CODES: usize = 17;

/// Counts calls. Every handle is found by index, so that a call costs no look-up. Durations are measured by
/// domain: a histogram of each method would be most of the response of `/metrics`.
pub struct Telemetry {
    recorder: PrometheusRecorder,
    methods: Vec<String>,
    /// Position of each method's domain.
    domain_of: Vec<usize>,
    domains: Vec<String>,
    calls: Vec<OnceLock<Counter>>,
    durations: Vec<OnceLock<Histogram>>,
    totals: Totals,
}

impl Telemetry {
    /// Counters for every method of the contract.
    ///
    /// # Errors
    /// The metrics library refuses the buckets: a defect.
    pub fn new(contract: &Contract) -> Result<Telemetry, metrics_exporter_prometheus::BuildError> {
        let recorder = PrometheusBuilder::new().set_buckets(&DURATION_BOUNDS)?.build_recorder();
        let mut domains: Vec<String> = contract.methods().iter().map(|method| method.domain.clone()).collect();
        domains.sort();
        domains.dedup();
        let domain_of = |domain: &String| domains.binary_search(domain).unwrap_or_default();
        let domain_of = contract.methods().iter().map(|method| domain_of(&method.domain)).collect();
        let methods: Vec<String> = contract.methods().iter().map(|method| method.full_name.clone()).collect();
        let telemetry = Telemetry {
            calls: (0..methods.len() * CODES).map(|_| OnceLock::new()).collect(),
            durations: domains.iter().map(|_| OnceLock::new()).collect(),
            recorder,
            methods,
            domain_of,
            domains,
            totals: Totals::default(),
        };
        let recorder = &telemetry.recorder;
        recorder.describe_counter(CALLS.into(), None, "Calls by method and gRPC code, 0 for OK".into());
        recorder.describe_histogram(SECONDS.into(), None, "Durations of calls by domain, in seconds".into());
        Ok(telemetry)
    }

    pub(crate) fn count(&self, method: usize, code: i32, elapsed: Duration) {
        let code = usize::try_from(code).unwrap_or(2).min(CODES - 1);
        let calls = self.calls[method * CODES + code].get_or_init(|| {
            let labels = vec![Label::new("method", self.methods[method].clone()), Label::new("code", code.to_string())];
            self.recorder.register_counter(&Key::from_parts(CALLS, labels), &METADATA)
        });
        calls.increment(1);
        self.totals.add(code, elapsed.as_secs_f64());
        let domain = self.domain_of[method];
        let durations = self.durations[domain].get_or_init(|| {
            let labels = vec![Label::new("domain", self.domains[domain].clone())];
            self.recorder.register_histogram(&Key::from_parts(SECONDS, labels), &METADATA)
        });
        durations.record(elapsed.as_secs_f64());
    }

    /// Calls of methods since the start.
    pub fn totals(&self) -> CallTotals {
        let durations = std::array::from_fn(|at| self.totals.durations[at].load(Ordering::Relaxed));
        let failures = self.totals.failures.load(Ordering::Relaxed);
        CallTotals { calls: durations.iter().sum(), failures, durations }
    }

    /// Counts one call of something that is no method of the contract. `name` must be one of few.
    pub fn count_named(&self, name: &'static str, code: Option<Code>, elapsed: Duration) {
        let code = code.map_or(0, |code| code as i32);
        let labels = vec![Label::new("method", name), Label::new("code", code.to_string())];
        self.recorder.register_counter(&Key::from_parts(CALLS, labels), &METADATA).increment(1);
        let domain = name.split_once('.').map_or(name, |(domain, _)| domain);
        let labels = vec![Label::new("domain", domain)];
        let durations = self.recorder.register_histogram(&Key::from_parts(SECONDS, labels), &METADATA);
        durations.record(elapsed.as_secs_f64());
    }

    /// Says what a gauge is.
    pub fn describe(&self, name: &'static str, help: &'static str) {
        self.recorder.describe_gauge(name.into(), None, help.into());
    }

    /// Says what a counter is.
    pub fn describe_total(&self, name: &'static str, help: &'static str) {
        self.recorder.describe_counter(name.into(), None, help.into());
    }

    /// Sets a gauge. Values of labels must be few.
    pub fn set(&self, name: &'static str, labels: &[(&'static str, &'static str)], value: f64) {
        self.recorder.register_gauge(&key(name, labels), &METADATA).set(value);
    }

    /// Sets a counter, which only grows. Values of labels must be few.
    pub fn set_total(&self, name: &'static str, labels: &[(&'static str, &'static str)], value: u64) {
        self.recorder.register_counter(&key(name, labels), &METADATA).absolute(value);
    }

    /// The handle that renders `/metrics`.
    pub fn handle(&self) -> PrometheusHandle {
        self.recorder.handle()
    }
}

fn key(name: &'static str, labels: &[(&'static str, &'static str)]) -> Key {
    let labels: Vec<Label> = labels.iter().map(|(name, value)| Label::new(*name, *value)).collect();
    Key::from_parts(name, labels)
}

static METADATA: Metadata<'static> = Metadata::new("bowline", Level::INFO, Some(module_path!()));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_called_once_makes_less_than_60_kilobytes() {
        let contract = Contract::load();
        let telemetry = Telemetry::new(&contract).unwrap();
        for method in contract.methods() {
            telemetry.count(method.index, 0, Duration::from_millis(3));
        }
        telemetry.count_named("oci.manifest.get", None, Duration::from_millis(3));
        let text = telemetry.handle().render();
        assert!(text.len() < 60_000, "{} bytes", text.len());
        assert!(text.contains("# HELP bowline_call_seconds"), "{text}");
        assert!(text.contains("bowline_call_seconds_count{domain=\"oci\"} 1"), "{text}");
    }
}
