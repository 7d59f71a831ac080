//! Streamed responses: a handler runs repeatedly, and the caller is authorized again each time.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_core::{Detail, Error, Reason, Result};
use bytes::Bytes;
use tokio::sync::watch;

use crate::call::{Call, Caller};
use crate::dispatch::Pipeline;
use crate::handlers::{Handler, WatchFn, Watched};
use crate::quota::{Lease, Quota};
use crate::validate::Validated;

/// Streams that may be open at once.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    pub per_caller: usize,
    /// Of one organization's callers together.
    pub per_organization: usize,
    pub in_all: usize,
}

impl Default for StreamLimits {
    fn default() -> StreamLimits {
        StreamLimits { per_caller: 16, per_organization: 256, in_all: 2048 }
    }
}

/// Longest time between two looks; news shorten it.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Shortest time between two looks that found nothing, whatever news there are and however much is left to look at.
const REST: Duration = Duration::from_millis(10);

/// When to try again where a finite stream waits for its turn.
const TURN: Duration = Duration::from_secs(5);

/// All open streams of a server.
pub struct Streams {
    limits: StreamLimits,
    open: Mutex<Open>,
    news: watch::Sender<u64>,
    stopped: watch::Sender<bool>,
    /// Finite streams under way: by method, and by scope or caller.
    turns: Arc<Quota<(usize, String)>>,
}

/// How many there are.
#[derive(Default)]
struct Open {
    of_caller: HashMap<String, usize>,
    of_organization: HashMap<String, usize>,
    all: usize,
}

impl Streams {
    /// No streams yet, and never more than these.
    pub(crate) fn new(limits: StreamLimits) -> Streams {
        Streams {
            limits,
            open: Mutex::default(),
            news: watch::Sender::new(0),
            stopped: watch::Sender::new(false),
            turns: Quota::new(usize::MAX, 1),
        }
    }

    /// Says that there may be something new to see.
    pub fn tell(&self) {
        self.news.send_modify(|n| *n += 1);
    }

    /// Ends all streams, and those that still begin.
    pub fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// How many streams the caller has open.
    pub fn open_of(&self, subject: &str) -> usize {
        count(&self.lock().of_caller, subject)
    }

    fn begin(self: &Arc<Self>, subject: &str) -> Result<OpenStream> {
        let organization = organization(subject);
        let StreamLimits { per_caller, per_organization, in_all } = self.limits;
        let mut open = self.lock();
        let refused = |why: String| Err(Error::new(Reason::QuotaExceeded, format!("Resource exhausted: {why}")));
        if count(&open.of_caller, subject) >= per_caller {
            return refused(format!("the caller has {per_caller} streams open; close one first"));
        }
        if count(&open.of_organization, organization) >= per_organization {
            return refused(format!("the caller's organization has {per_organization} streams open; close some first"));
        }
        if open.all >= in_all {
            return refused(format!("the server has {in_all} streams open; list entries instead, or try again later"));
        }
        *open.of_caller.entry(subject.to_owned()).or_default() += 1;
        *open.of_organization.entry(organization.to_owned()).or_default() += 1;
        open.all += 1;
        drop(open);
        Ok(OpenStream { streams: self.clone(), subject: subject.into() })
    }

    /// One finite stream of a method runs at a time by a caller at a scope. Of all callers together it would let one who
    /// reads slowly keep the others out.
    fn turn(&self, call: &Call, scope: &str) -> Result<Lease<(usize, String)>> {
        let key = format!("{} {scope}", call.caller.principal.subject());
        self.turns.take(Some((call.method, key)), 1).map_err(|_| {
            let text = "Rate limit reached: such a call of yours runs already; wait for its end";
            Error::new(Reason::RateLimited, text).with(Detail::RetryAfter(TURN))
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(open: &HashMap<String, usize>, key: &str) -> usize {
    open.get(key).copied().unwrap_or(0)
}

fn take_off(open: &mut HashMap<String, usize>, key: &str) {
    if let Some(count) = open.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            open.remove(key);
        }
    }
}

/// People are in no organization and stand for themselves.
fn organization(subject: &str) -> &str {
    subject.split('/').next().unwrap_or(subject)
}

/// One open stream, counted until it is dropped.
struct OpenStream {
    streams: Arc<Streams>,
    subject: String,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        take_off(&mut open.of_caller, &self.subject);
        take_off(&mut open.of_organization, organization(&self.subject));
        open.all -= 1;
    }
}

/// A streamed response. Nothing is read ahead of what was taken.
pub struct Stream {
    pipeline: Arc<Pipeline>,
    handler: Arc<WatchFn>,
    call: Call,
    cursor: Option<i64>,
    validated: Validated,
    /// Items that were read and not taken yet.
    pending: VecDeque<(i64, Bytes)>,
    more: bool,
    /// Whether the stream ends when there is no more.
    is_finite: bool,
    news: watch::Receiver<u64>,
    stopped: watch::Receiver<bool>,
    _open: OpenStream,
    /// The turn of a finite stream.
    turn: Option<Lease<(usize, String)>>,
}

impl Pipeline {
    /// Opens a stream: checks the caller and looks once, so that a refusal comes before anything else.
    ///
    /// # Errors
    /// Whatever a call is refused with, and RESOURCE_EXHAUSTED for too many streams.
    pub async fn open_stream(self: &Arc<Self>, call: Call) -> Result<Stream> {
        let Some(Handler::Watch(handler)) = self.handlers.get(call.method).cloned() else {
            return Err(Error::internal("a method that gives one answer was called for a stream"));
        };
        let info = self.contract.method(call.method);
        let permit = self.streams.begin(call.caller.principal.subject())?;
        let validated = self.validate(&Arc::new(self.gate(call.clone()))).await?;
        let mut stream = Stream {
            pipeline: self.clone(),
            handler,
            cursor: call.resume,
            validated,
            call,
            pending: VecDeque::new(),
            more: true,
            is_finite: info.finite_stream,
            news: self.streams.news.subscribe(),
            stopped: self.streams.stopped.subscribe(),
            _open: permit,
            turn: None,
        };
        if info.finite_stream {
            // Others do not learn what runs, and only one of a caller's reads.
            self.authorize(&Arc::new(self.gate(stream.call.clone()))).await?;
            stream.turn = Some(self.streams.turn(&stream.call, &self.shown_scope(&stream.call, info))?);
        }
        stream.look().await?;
        Ok(stream)
    }
}

impl Stream {
    /// The next message with its number; waits until there is one. Absent at the end of a finite stream. Dropping the
    /// future loses nothing.
    ///
    /// # Errors
    /// Why the stream ends: the token ended, a permission was taken away, the server stops.
    pub async fn next(&mut self) -> Result<Option<(i64, Bytes)>> {
        loop {
            if *self.stopped.borrow() {
                return Err(Error::new(
                    Reason::Unavailable,
                    "Unavailable: the server stops; go on from the last number that came",
                ));
            }
            if let Some(item) = self.pending.pop_front() {
                return Ok(Some(item));
            }
            if !self.more && self.is_finite {
                return Ok(None);
            }
            if !self.more {
                self.wait().await;
                self.more = true;
                continue;
            }
            self.look().await?;
            // A filter that matches nothing must not keep a thread busy for as long as there are rows to look at.
            if self.pending.is_empty() && self.more {
                self.rest().await;
            }
        }
    }

    /// Items that were read with the one that [`Stream::next`] returned last.
    pub(crate) fn take_ready(&mut self) -> VecDeque<(i64, Bytes)> {
        std::mem::take(&mut self.pending)
    }

    async fn rest(&mut self) {
        tokio::select! {
            () = tokio::time::sleep(REST) => {}
            _ = self.stopped.wait_for(|stopped| *stopped) => {}
        }
    }

    async fn wait(&mut self) {
        let (news, stopped) = (&mut self.news, &mut self.stopped);
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            // A sender that is gone is one that stopped.
            _ = stopped.wait_for(|stopped| *stopped) => {}
            () = async {
                tokio::time::sleep(REST).await;
                if news.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            } => {}
        }
    }

    /// One look, by a caller whose token and permissions are checked as if the call came now.
    async fn look(&mut self) -> Result<()> {
        let pipeline = &self.pipeline;
        let audiences = [pipeline.settings.api_audience.as_str()];
        let bearer = self.call.caller.bearer.as_deref();
        let principal = pipeline.authenticator.authenticate(bearer, &audiences, pipeline.clock.now())?;
        self.news.mark_unchanged();
        let caller = Caller { principal, ..self.call.caller.clone() };
        let gate = pipeline.gate(Call { caller, ..self.call.clone() });
        let (handler, cursor, validated) = (self.handler.clone(), self.cursor, self.validated.clone());
        let look = pipeline.db.read(move |tx| {
            Box::pin(async move {
                let authorized = gate.pass(tx, &validated).await?;
                handler(tx, &authorized, cursor).await
            })
        });
        let Watched { items, cursor, more } = look.await?;
        self.pending.extend(items);
        self.cursor = Some(cursor);
        self.more = more;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_organizations_and_the_server_have_so_many_streams_and_no_more() {
        let streams = Arc::new(Streams::new(StreamLimits { per_caller: 3, per_organization: 10, in_all: 25 }));
        let mut permits = Vec::new();
        let mut fill = |subject: &str| loop {
            match streams.begin(subject) {
                Ok(permit) => permits.push(permit),
                Err(error) => return (permits.len(), error.message().to_owned()),
            }
        };
        let (open, why) = fill("a/0");
        assert_eq!((open, why.contains("the caller has 3 streams open")), (3, true), "{why}");
        let (open, why) = (1..20).map(|n| fill(&format!("a/{n}"))).last().unwrap_or_default();
        assert_eq!((open, why.contains("organization has 10 streams open")), (10, true), "{why}");
        let (open, why) = (0..200).map(|n| fill(&format!("b{n}"))).last().unwrap_or_default();
        assert_eq!((open, why.contains("the server has 25 streams open")), (25, true), "{why}");
        permits.clear();
        let open = streams.lock();
        assert!(open.all == 0 && open.of_caller.is_empty() && open.of_organization.is_empty());
    }
}
