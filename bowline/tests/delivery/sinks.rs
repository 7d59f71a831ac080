//! The sinks of all subscriptions: one server, a path for each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};

const UNSHARED: &str = "no thread panics with the lock";

/// SplitMix64 of two numbers: the same course every time.
pub(crate) fn mixed(seed: u64, n: u64) -> u64 {
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(n.wrapping_mul(0xd134_2543_de82_ef95));
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[derive(Clone, Debug, Default)]
struct One {
    /// UIDP of the subscription.
    subscription: String,
    /// Subjects of accepted events as they came, the same one twice if it came twice.
    accepted: Vec<String>,
    attempts: u64,
    failures: u64,
}

struct Shared {
    seed: u64,
    all: Mutex<BTreeMap<usize, One>>,
}

pub(crate) struct Sinks {
    base: String,
    shared: Arc<Shared>,
}

impl Sinks {
    pub(crate) async fn start(seed: u64) -> Sinks {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Arc::new(Shared { seed, all: Mutex::default() });
        let router =
            axum::Router::new().route("/{sink}/{failing}", axum::routing::post(take)).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Sinks { base, shared }
    }

    /// A sink that is to get so many events and fails about twenty times, or one time in ten.
    pub(crate) fn url(&self, sink: usize, events: usize) -> String {
        let failing_in_10_000 = (200_000 / events.max(1)).min(1000);
        format!("{}/{sink}/{failing_in_10_000}", self.base)
    }

    pub(crate) fn name(&self, sink: usize, subscription: &str) {
        self.shared.all.lock().expect(UNSHARED).entry(sink).or_default().subscription = subscription.into();
    }

    /// Subscriptions with the subjects that each accepted.
    pub(crate) fn accepted(&self) -> Vec<(String, Vec<String>)> {
        let all = self.shared.all.lock().expect(UNSHARED);
        all.values().map(|one| (one.subscription.clone(), one.accepted.clone())).collect()
    }

    /// Waits until so many attempts were made.
    pub(crate) async fn wait_for(&self, attempts: u64, patience: Duration) {
        let started = std::time::Instant::now();
        while self.attempts().0 < attempts {
            assert!(started.elapsed() < patience, "{} of {attempts} attempts came", self.attempts().0);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Attempts and failures of all.
    pub(crate) fn attempts(&self) -> (u64, u64) {
        let all = self.shared.all.lock().expect(UNSHARED);
        (all.values().map(|one| one.attempts).sum(), all.values().map(|one| one.failures).sum())
    }
}

async fn take(
    State(shared): State<Arc<Shared>>,
    Path((sink, failing)): Path<(usize, u64)>,
    headers: HeaderMap,
) -> StatusCode {
    let subject = headers.get("ce-subject").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let (fails, dawdles) = {
        let mut all = shared.all.lock().expect(UNSHARED);
        let one = all.entry(sink).or_default();
        one.attempts += 1;
        let drawn = mixed(shared.seed ^ sink as u64, one.attempts);
        let fails = drawn % 10_000 < failing;
        one.failures += u64::from(fails);
        if !fails {
            one.accepted.push(subject);
        }
        (fails, (drawn >> 32).is_multiple_of(200))
    };
    if dawdles {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    if fails { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}
