//! The loop that delivers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_authn::guarded::{GuardedClient, Limits, Request};
use bowline_contract::Contract;
use bowline_core::{Clock, Error, Micros, Result};
use bowline_pipeline::{Authenticator, Settings};
use bowline_store::{Db, Engine};
use bowline_transcode::Tables;
use bytes::Bytes;
use tokio::task::{JoinHandle, JoinSet};

use crate::attempts::{AttemptKind, AttemptLog, AttemptRecord, RESPONSE, SinkResponse, text};
use crate::bodies::Bodies;
use crate::event::Event;
use crate::message::{RequestError, RequestRenderer};
use crate::saving::Batch;
use crate::state::{Attempt, Outcome, State};
use crate::subscription::What;
use crate::{lease, log, redelivery, saving};

/// Attempts whose events are read together.
const BEGUN_AT_ONCE: usize = 32;
/// Subscriptions that one look into the log catches up.
const CAUGHT_UP_AT_ONCE: usize = 64;
/// Time for one attempt, and bytes that are read of the response's body.
const LIMITS: Limits = Limits { total: Duration::from_secs(10), body: 64 * 1024 };

/// How often the log is looked at: the embedded engine answers within microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_EVERY_ON_POSTGRES: Duration = Duration::from_millis(200);
const SAVE_EVERY: Duration = Duration::from_millis(50);
const READ_REDELIVERIES_EVERY: Duration = Duration::from_millis(500);
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const RENEW_LEASE_EVERY: Duration = Duration::from_secs(2);
/// Without a renewal for this long nothing new is sent: another holder is about to begin.
const TRUST_LEASE_FOR: Duration = Duration::from_secs(5);
const ASK_FOR_LEASE_EVERY: Duration = Duration::from_secs(1);
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);

const MINUTE: Micros = 60_000_000;
const DAY: Micros = 24 * 60 * MINUTE;
/// How long events stay that no one waits for.
const KEEP_EVENTS: Micros = 7 * DAY;
/// How long dead letters stay.
const KEEP_DEAD_LETTERS: Micros = 30 * DAY;
const FORGET_EVERY: Micros = MINUTE;
const CATCH_UP_EVERY: Micros = 10 * MINUTE;
/// A subscription whose beginning is not in the log by then has lost it.
const BEGINNING_COMES_WITHIN: Micros = MINUTE;

/// What a relay is made of.
pub struct Parts {
    pub db: Db,
    pub contract: Arc<Contract>,
    /// Writes bodies as JSON.
    pub tables: Arc<Tables>,
    pub settings: Arc<Settings>,
    /// Has the keys that sign.
    pub authenticator: Arc<Authenticator>,
    /// The only way out.
    pub client: GuardedClient,
    pub clock: Arc<dyn Clock>,
    pub random: fn() -> u64,
    /// A name that no other relay has.
    pub holder: String,
}

/// Delivers events while it has the lease, and waits for it otherwise.
pub struct Relay {
    db: Db,
    client: GuardedClient,
    clock: Arc<dyn Clock>,
    random: fn() -> u64,
    holder: String,
    renderer: Arc<RequestRenderer>,
}

/// An attempt that ended.
struct Done {
    attempt: Attempt,
    outcome: Outcome,
    took: Duration,
    /// Its entry in the log, if something was sent.
    record: Option<AttemptRecord>,
}

/// What lives as long as the lease.
struct Session {
    state: State,
    in_flight: JoinSet<Done>,
    bodies: Bodies,
    saving: Option<(Arc<Batch>, JoinHandle<Result<bool>>)>,
    /// A batch that could not be saved yet.
    unsaved: Option<Arc<Batch>>,
    log: AttemptLog,
    saved_at: Instant,
    redeliveries_read_at: Instant,
    /// The subscription after which the next look for redeliveries begins.
    redeliveries_after: String,
    swept_at: Instant,
    lease_renewed_at: Instant,
    forgot_at: Micros,
}

impl Relay {
    /// A relay that does nothing until it is run.
    pub fn new(parts: Parts) -> Relay {
        let Parts { db, contract, tables, settings, authenticator, client, clock, random, holder } = parts;
        let renderer = Arc::new(RequestRenderer { contract, tables, settings, authenticator });
        Relay { db, client, clock, random, holder, renderer }
    }

    /// Runs for ever. Dropping the future drops what is under way; it is sent again.
    pub async fn run(self) {
        loop {
            let pause = match lease::take(&self.db, &self.holder, self.clock.now()).await {
                Ok(false) => ASK_FOR_LEASE_EVERY,
                Ok(true) => match self.hold().await {
                    Ok(()) => ASK_FOR_LEASE_EVERY,
                    Err(error) => {
                        tracing::warn!(cause = %cause(&error), "events are not delivered at the moment; the relay begins again");
                        PAUSE_AFTER_ERROR
                    }
                },
                Err(error) => {
                    tracing::warn!(cause = %cause(&error), "the lease for delivering events could not be asked for");
                    PAUSE_AFTER_ERROR
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Lets another replica begin at once, after this one has been dropped.
    ///
    /// # Errors
    /// The database is not available.
    pub async fn give_back(db: &Db, holder: &str) -> Result<()> {
        lease::give_back(db, holder).await
    }

    /// Delivers until the lease is lost.
    async fn hold(&self) -> Result<()> {
        let mut session = self.begin().await?;
        let look_every = if self.db.engine() == Engine::Sqlite { LOOK_EVERY } else { LOOK_EVERY_ON_POSTGRES };
        let mut looked_at = Instant::now();
        let mut has_more = true;
        loop {
            if session.lease_renewed_at.elapsed() >= RENEW_LEASE_EVERY {
                if !lease::take(&self.db, &self.holder, self.clock.now()).await? {
                    return Ok(());
                }
                session.lease_renewed_at = Instant::now();
            }
            if has_more || looked_at.elapsed() >= look_every {
                looked_at = Instant::now();
                has_more = self.look(&mut session).await?;
            }
            if !self.start_attempts(&mut session).await? {
                return Ok(());
            }
            if !self.save(&mut session).await? {
                return Ok(());
            }
            session.log.save(&self.db);
            let pause = if has_more { Duration::ZERO } else { look_every.saturating_sub(looked_at.elapsed()) };
            self.wait(&mut session, pause.min(SAVE_EVERY)).await?;
        }
    }

    /// Waits until attempts end, or for that long.
    async fn wait(&self, session: &mut Session, pause: Duration) -> Result<()> {
        if session.in_flight.is_empty() {
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        // Nothing is lost when the time wins: what has ended stays in the set.
        let mut ended = tokio::time::timeout(pause, session.in_flight.join_next()).await.unwrap_or_default();
        while let Some(done) = ended {
            self.settle(session, done.map_err(Error::internal)?);
            ended = session.in_flight.try_join_next();
        }
        Ok(())
    }

    async fn begin(&self) -> Result<Session> {
        let lease_renewed_at = Instant::now();
        let now = self.clock.now();
        let newest = log::newest(&self.db).await?;
        let mut state = State::new(newest);
        for stored in log::subscriptions(&self.db).await? {
            let cursor = match stored.cursor {
                Some(cursor) => Some(cursor),
                None => log::beginning(&self.db, &stored.uid).await?.filter(|seq| *seq <= newest),
            };
            let lost_its_beginning = now - stored.created_at > BEGINNING_COMES_WITHIN;
            if let Some(cursor) = cursor.or(lost_its_beginning.then_some(newest)) {
                state.resume(stored, cursor, now);
            }
        }
        let long_ago = Instant::now().checked_sub(READ_REDELIVERIES_EVERY);
        Ok(Session {
            state,
            in_flight: JoinSet::new(),
            bodies: Bodies::default(),
            saving: None,
            unsaved: None,
            log: AttemptLog::default(),
            saved_at: Instant::now(),
            redeliveries_read_at: long_ago.unwrap_or_else(Instant::now),
            redeliveries_after: String::new(),
            swept_at: Instant::now(),
            lease_renewed_at,
            forgot_at: now,
        })
    }

    /// Looks at what is new in the database. True if there is more than was looked at.
    async fn look(&self, session: &mut Session) -> Result<bool> {
        let now = self.clock.now();
        let state = &mut session.state;
        let news = log::after(&self.db, state.newest).await?;
        for event in &news.events {
            state.see(event, &news, now);
        }
        if news.has_unnumbered {
            log::number(&self.db, &self.holder).await?;
        }
        let wanted = state.ranges(CAUGHT_UP_AT_ONCE);
        let is_busy = wanted.len() == CAUGHT_UP_AT_ONCE || news.events.len() == log::BATCH;
        if !wanted.is_empty() {
            for found in log::matching(&self.db, wanted, state.newest).await? {
                state.fill(found, now);
            }
        }
        state.wake(now);
        if session.redeliveries_read_at.elapsed() >= READ_REDELIVERIES_EVERY {
            session.redeliveries_read_at = Instant::now();
            let after = std::mem::take(&mut session.redeliveries_after);
            let (requests, after) = redelivery::requests(&self.db, after).await?;
            session.redeliveries_after = after;
            for (uid, of_subscription) in requests {
                state.redeliver(&uid, of_subscription, now);
            }
        }
        self.forget(session, now).await?;
        Ok(is_busy)
    }

    /// Deletes what no one needs any more, a little at a time.
    async fn forget(&self, session: &mut Session, now: Micros) -> Result<()> {
        if session.swept_at.elapsed() >= SWEEP_EVERY && !redelivery::sweep(&self.db, &self.holder).await? {
            session.swept_at = Instant::now();
        }
        let state = &mut session.state;
        // Cursors first: what is to be forgotten hangs on those that are saved.
        if now - session.forgot_at >= FORGET_EVERY && !state.catch_up(CATCH_UP_EVERY, now) {
            session.forgot_at = now;
            state.bury_paused(now);
            if saving::forget(&self.db, state.floor(), now - KEEP_EVENTS, now - KEEP_DEAD_LETTERS).await? {
                session.forgot_at = now - FORGET_EVERY;
            }
        }
        Ok(())
    }

    /// Begins every attempt that the limits allow. False if bodies were read and the lease became too old meanwhile to send
    /// them: another replica may hold it by now.
    async fn start_attempts(&self, session: &mut Session) -> Result<bool> {
        session.state.mark_late(Instant::now());
        loop {
            let is_trusted = |session: &Session| session.lease_renewed_at.elapsed() <= TRUST_LEASE_FOR;
            if !is_trusted(session) {
                // Nothing has begun: the next renewal shows whether the lease holds.
                return Ok(true);
            }
            let (now, began) = (self.clock.now(), Instant::now());
            let next = std::iter::from_fn(|| session.state.next(now, began));
            let attempts: Vec<Attempt> = next.take(BEGUN_AT_ONCE).collect();
            if attempts.is_empty() {
                return Ok(true);
            }
            let events = session.bodies.of(&self.db, &attempts).await?;
            if !is_trusted(session) {
                return Ok(false);
            }
            for (attempt, event) in attempts.into_iter().zip(events) {
                let (client, renderer) = (self.client.clone(), self.renderer.clone());
                session
                    .in_flight
                    .spawn(async move { try_once(&client, &renderer, attempt, event.as_deref(), now).await });
            }
        }
    }

    fn settle(&self, session: &mut Session, done: Done) {
        let Done { attempt, outcome, took, record } = done;
        if let Some(record) = record {
            session.log.push(record);
        }
        if let Outcome::Failed(error) | Outcome::Undeliverable(error) = &outcome {
            tracing::info!(subscription = %attempt.uid, what = ?attempt.what, error, "an event was not delivered");
        }
        if let Outcome::NotSent(error) = &outcome {
            tracing::warn!(subscription = %attempt.uid, error, "an event could not be sent; tried again");
        }
        session.state.settle(&attempt, outcome, took, self.clock.now(), (self.random)());
    }

    /// Saves what has changed, beside everything else; one batch at a time. False if the lease is lost.
    async fn save(&self, session: &mut Session) -> Result<bool> {
        if let Some((_, task)) = &session.saving
            && !task.is_finished()
        {
            return Ok(true);
        }
        if let Some((batch, task)) = session.saving.take() {
            match task.await {
                Ok(Ok(true)) => session.state.saved(&batch, self.clock.now()),
                Ok(Ok(false)) => return Ok(false),
                Ok(Err(error)) => {
                    tracing::warn!(cause = %cause(&error), "it could not be saved which events were delivered; tried again");
                    session.unsaved = Some(batch);
                    session.saved_at = Instant::now() + PAUSE_AFTER_ERROR;
                }
                Err(error) => return Err(Error::internal(error)),
            }
        }
        if session.saved_at.elapsed() < SAVE_EVERY {
            return Ok(true);
        }
        let batch = session.unsaved.take().unwrap_or_else(|| Arc::new(session.state.unsaved()));
        if !batch.is_empty() {
            session.saved_at = Instant::now();
            let (db, holder, saved) = (self.db.clone(), self.holder.clone(), batch.clone());
            let task = tokio::spawn(async move { saving::save(&db, &holder, saved).await });
            session.saving = Some((batch, task));
        }
        Ok(true)
    }
}

/// Outcome of one attempt, and the time that the sink took; the time of this server before is not counted.
async fn try_once(
    client: &GuardedClient,
    renderer: &RequestRenderer,
    attempt: Attempt,
    event: Option<&Event>,
    now: Micros,
) -> Done {
    let unsent = |attempt, outcome| Done { attempt, outcome, took: Duration::ZERO, record: None };
    let Some(event) = event else {
        return unsent(attempt, Outcome::Undeliverable("the event is not stored any more".into()));
    };
    let request = match renderer.request(event, &attempt.group, &attempt.sink, now) {
        Ok(request) => request,
        Err(RequestError::NoSigningKey) => return unsent(attempt, Outcome::NotSent("no key signs at this time")),
        Err(RequestError::DamagedEvent(reason)) => return unsent(attempt, Outcome::Undeliverable(reason)),
    };
    let went = send(client, request).await;
    let kind = match attempt.what {
        What::Event(_) => AttemptKind::Event,
        What::Redelivery(_) => AttemptKind::Redelivery,
    };
    let outcome = if went.error.is_empty() { Outcome::Delivered } else { Outcome::Failed(went.error.clone()) };
    let took = went.took;
    let record = Some(AttemptRecord::of(&attempt.uid, kind, event, now, went));
    Done { attempt, outcome, took, record }
}

/// Sends one request to a sink, within its time.
pub(crate) async fn send(client: &GuardedClient, request: Request) -> SinkResponse {
    let began = Instant::now();
    let (status, error, response) = match client.send(request, LIMITS, RESPONSE).await {
        Ok(sent) if sent.status.is_success() => (Some(sent.status), String::new(), sent.start),
        Ok(sent) => (Some(sent.status), format!("the host answered with status {}", sent.status.as_u16()), sent.start),
        Err(error) => (None, error.public_message(), Bytes::new()),
    };
    SinkResponse {
        took: began.elapsed(),
        status: status.map(|status| status.as_u16()),
        error,
        response: text(&response),
    }
}

fn cause(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
