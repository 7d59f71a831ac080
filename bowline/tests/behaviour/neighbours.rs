//! How long the calls of one organization wait while another's call is under way.

use std::cell::Cell;
use std::time::{Duration, Instant};

use bowline_testkit::{Actor, TestServer};
use serde_json::json;

use crate::support::{ok, send};

/// How many times longer a call may wait beside a hostile call than beside a harmless one. Work on the writer, or on the
/// threads that serve connections, makes thousands of it; two busy cores make ten, and thirty now and then.
const TOLERATED: u32 = 100;
/// Rounds whose median counts.
const ROUNDS: usize = 3;

/// An organization that has nothing to do with the one whose calls are measured.
pub(crate) struct Neighbour {
    actor: Actor,
    repo: String,
    written: Cell<usize>,
}

impl Neighbour {
    pub(crate) async fn of(server: &TestServer) -> Neighbour {
        let org = server.organization("quiet").await;
        let repo = server.repo(&org, "app").await;
        Neighbour { actor: server.actor("owner", &org).await, repo, written: Cell::new(0) }
    }

    async fn write_and_read(&self) {
        self.written.set(self.written.get() + 1);
        let body = json!({ "description": format!("number {}", self.written.get()) });
        ok(&self.actor, &format!("PATCH /registry/v2/repos/{}", self.repo), body).await;
        let reply = send(&self.actor, &format!("GET /registry/v2/repos/{}", self.repo), &[], "").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    /// The longest time that a write and a read took while `call` was under way, and what `call` gave. The first of them
    /// counts even if `call` has ended sooner: on a busy machine it may have ended before this future continues.
    pub(crate) async fn waits_beside<T>(&self, call: impl Future<Output = T>) -> (Duration, T) {
        let is_over = Cell::new(false);
        let call = async {
            let answer = call.await;
            is_over.set(true);
            answer
        };
        let calls = async {
            let mut longest = Duration::ZERO;
            loop {
                let began = Instant::now();
                self.write_and_read().await;
                longest = longest.max(began.elapsed());
                if is_over.get() {
                    return longest;
                }
            }
        };
        let (answer, longest) = tokio::join!(call, calls);
        (longest, answer)
    }

    /// Checks that the neighbour waits beside `hostile` not many times as long as beside `harmless`: the medians of some
    /// rounds, by turns.
    pub(crate) async fn is_not_held_up(&self, what: &str, harmless: impl AsyncFn(), hostile: impl AsyncFn()) {
        let (mut beside_harmless, mut beside_hostile) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            beside_harmless.push(self.waits_beside(harmless()).await.0);
            beside_hostile.push(self.waits_beside(hostile()).await.0);
        }
        let (usual, found) = (median(beside_harmless), median(beside_hostile));
        assert!(found < usual * TOLERATED, "{what}: the neighbour waits {found:?} instead of {usual:?}");
    }
}

/// Whether a wait is so much longer than the usual one that a call must have caused it.
pub(crate) fn is_caused(wait: Duration, usual: Duration) -> bool {
    wait > usual * TOLERATED
}

pub(crate) fn median(mut waits: Vec<Duration>) -> Duration {
    waits.sort();
    waits.get(waits.len() / 2).copied().unwrap_or_default()
}
