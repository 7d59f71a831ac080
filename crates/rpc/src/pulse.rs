use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use crate::body::ReplyBody;

/// Whether a connection has a request under way, and since when it has none; and since when its client has taken nothing
/// of a response. Pings and half requests do not count.
#[derive(Debug)]
pub(crate) struct Pulse {
    opened: Instant,
    begun: AtomicU64,
    /// Requests whose response has bytes for the client, and the time since which it has taken none.
    offered: Mutex<HashMap<u64, Instant>>,
    running: AtomicUsize,
    /// Microseconds from `opened` to the end of the last request; 0 before the first has ended.
    ended: AtomicU64,
}

impl Pulse {
    pub(crate) fn new() -> Arc<Pulse> {
        Arc::new(Pulse {
            opened: Instant::now(),
            begun: AtomicU64::new(0),
            offered: Mutex::default(),
            running: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
        })
    }

    /// A request has come; it ends with the last byte of its response.
    pub(crate) fn begin(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::SeqCst);
        Running { pulse: self.clone(), number: self.begun.fetch_add(1, Ordering::SeqCst) }
    }

    fn offered(&self) -> MutexGuard<'_, HashMap<u64, Instant>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request has come.
    pub(crate) fn has_served(&self) -> bool {
        self.running.load(Ordering::SeqCst) > 0 || self.ended.load(Ordering::SeqCst) > 0
    }

    /// Waits until the first request has not come within `first`, or no request has run for `idle`.
    pub(crate) async fn silence(&self, first: Duration, idle: Duration) {
        loop {
            let now = Instant::now();
            let is_running = self.running.load(Ordering::SeqCst) > 0;
            let until = match self.ended.load(Ordering::SeqCst) {
                _ if is_running => now + idle,
                0 => self.opened + first,
                ended => self.opened + Duration::from_micros(ended) + idle,
            };
            if until <= now {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Waits until the client has taken nothing of some response for `limit`, while there was something to take.
    pub(crate) async fn stalled(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let oldest = self.offered().values().min().copied();
            let until = oldest.unwrap_or(now) + limit;
            if until <= now {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Waits until no request has run for `quiet`, counted from now at the earliest.
    pub(crate) async fn quiet(&self, quiet: Duration) {
        tokio::time::sleep(quiet).await;
        self.silence(Duration::ZERO, quiet).await;
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Running {
    pulse: Arc<Pulse>,
    number: u64,
}

impl Running {
    /// The response has bytes; it is polled for more once the client has room for them.
    fn offer(&self) {
        self.pulse.offered().insert(self.number, Instant::now());
    }

    /// The response waits for the server, not for the client.
    fn wait(&self) {
        self.pulse.offered().remove(&self.number);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.wait();
        let micros = u64::try_from(self.pulse.opened.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.pulse.ended.store(micros.max(1), Ordering::SeqCst);
        self.pulse.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A response's body, which keeps its request running until it was sent.
pub(crate) struct RunningBody {
    body: ReplyBody,
    running: Running,
}

impl RunningBody {
    /// The body of a response that is about to be sent.
    pub(crate) fn new(body: ReplyBody, running: Running) -> RunningBody {
        running.offer();
        RunningBody { body, running }
    }
}

impl Body for RunningBody {
    type Data = Bytes;
    type Error = <ReplyBody as Body>::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let RunningBody { body, running } = self.get_mut();
        let frame = Pin::new(body).poll_frame(context);
        if frame.is_ready() {
            running.offer();
        } else {
            running.wait();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(20);
    const IDLE: Duration = Duration::from_millis(40);

    #[tokio::test]
    async fn a_connection_is_silent_before_its_first_request_and_between_requests_only() {
        let pulse = Pulse::new();
        pulse.silence(FIRST, Duration::from_hours(1)).await;
        assert!(!pulse.has_served());
        let running = pulse.begin();
        assert!(pulse.has_served());
        let during = tokio::time::timeout(IDLE * 3, pulse.silence(FIRST, IDLE)).await;
        assert!(during.is_err(), "a request under way is no silence, however long it takes");
        drop(running);
        pulse.silence(Duration::from_hours(1), IDLE).await;
    }

    #[tokio::test]
    async fn a_connection_is_stalled_while_a_response_has_something_that_the_client_does_not_take() {
        let pulse = Pulse::new();
        let (waiting, moving, stalled) = (pulse.begin(), pulse.begin(), pulse.begin());
        waiting.offer();
        waiting.wait();
        let is_stalled = async || tokio::time::timeout(IDLE * 4, pulse.stalled(IDLE)).await.is_ok();
        assert!(!is_stalled().await, "the server has nothing for the client");
        let moves = async {
            loop {
                moving.offer();
                tokio::time::sleep(IDLE / 8).await;
            }
        };
        tokio::select! {
            _ = moves => {}
            is_stalled = is_stalled() => assert!(!is_stalled, "the client takes what there is"),
        }
        moving.wait();
        stalled.offer();
        assert!(is_stalled().await);
        drop(stalled);
        assert!(!is_stalled().await, "it was given up");
    }
}
