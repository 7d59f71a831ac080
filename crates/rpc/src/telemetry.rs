use std::sync::OnceLock;
use std::time::Duration;

use bowline_contract::Contract;
use bowline_core::Code;
use metrics::{Counter, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// Codes 0 (OK) to 16.
const CODES: usize = 17;

/// Counts calls. Every handle is found by position, so that a call costs no look-up.
pub struct Telemetry {
    recorder: PrometheusRecorder,
    methods: Vec<String>,
    calls: Vec<OnceLock<Counter>>,
    durations: Vec<OnceLock<Histogram>>,
}

impl Telemetry {
    /// Counters for every method of the contract.
    ///
    /// # Errors
    /// The metrics library refuses the buckets: a defect.
    pub fn new(contract: &Contract) -> Result<Telemetry, metrics_exporter_prometheus::BuildError> {
        let buckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
        let recorder = PrometheusBuilder::new().set_buckets(&buckets)?.build_recorder();
        let methods: Vec<String> = contract.methods().iter().map(|method| method.full_name.clone()).collect();
        Ok(Telemetry {
            calls: (0..methods.len() * CODES).map(|_| OnceLock::new()).collect(),
            durations: methods.iter().map(|_| OnceLock::new()).collect(),
            recorder,
            methods,
        })
    }

    /// Counts one call.
    pub(crate) fn count(&self, method: usize, code: i32, elapsed: Duration) {
        let code = usize::try_from(code).unwrap_or(2).min(CODES - 1);
        let calls = self.calls[method * CODES + code].get_or_init(|| {
            let labels = vec![Label::new("method", self.methods[method].clone()), Label::new("code", code.to_string())];
            self.recorder.register_counter(&Key::from_parts("bowline_calls_total", labels), &METADATA)
        });
        calls.increment(1);
        let durations = self.durations[method].get_or_init(|| {
            let labels = vec![Label::new("method", self.methods[method].clone())];
            self.recorder.register_histogram(&Key::from_parts("bowline_call_seconds", labels), &METADATA)
        });
        durations.record(elapsed.as_secs_f64());
    }

    /// Counts one call of something that is no method of the contract. `name` must be one of few.
    pub fn count_named(&self, name: &'static str, code: Option<Code>, elapsed: Duration) {
        let code = code.map_or(0, |code| code as i32);
        let labels = vec![Label::new("method", name), Label::new("code", code.to_string())];
        self.recorder.register_counter(&Key::from_parts("bowline_calls_total", labels), &METADATA).increment(1);
        let labels = vec![Label::new("method", name)];
        let durations = self.recorder.register_histogram(&Key::from_parts("bowline_call_seconds", labels), &METADATA);
        durations.record(elapsed.as_secs_f64());
    }

    /// What `/metrics` answers from.
    pub fn handle(&self) -> PrometheusHandle {
        self.recorder.handle()
    }
}

static METADATA: Metadata<'static> = Metadata::new("bowline", Level::INFO, Some(module_path!()));
