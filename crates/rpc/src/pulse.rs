use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use crate::body::ReplyBody;

/// Whether a connection has a request under way, and since when it has none. Pings and half requests do not count.
#[derive(Debug)]
pub(crate) struct Pulse {
    opened: Instant,
    running: AtomicUsize,
    /// Microseconds from `opened` to the end of the last request; 0 before the first has ended.
    ended: AtomicU64,
}

impl Pulse {
    pub(crate) fn new() -> Arc<Pulse> {
        Arc::new(Pulse { opened: Instant::now(), running: AtomicUsize::new(0), ended: AtomicU64::new(0) })
    }

    /// A request has come; it ends with the last byte of its response.
    pub(crate) fn begin(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::SeqCst);
        Running(self.clone())
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

    /// Waits until no request has run for `quiet`, counted from now at the earliest.
    pub(crate) async fn quiet(&self, quiet: Duration) {
        tokio::time::sleep(quiet).await;
        self.silence(Duration::ZERO, quiet).await;
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Running(Arc<Pulse>);

impl Drop for Running {
    fn drop(&mut self) {
        let micros = u64::try_from(self.0.opened.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.0.ended.store(micros.max(1), Ordering::SeqCst);
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A response's body, which keeps its request running until it was sent.
pub(crate) struct RunningBody {
    pub(crate) body: ReplyBody,
    pub(crate) _running: Running,
}

impl Body for RunningBody {
    type Data = Bytes;
    type Error = <ReplyBody as Body>::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
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
}
