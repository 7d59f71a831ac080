//! Who waits for what: the subscriptions by group, and their next events.
//!
//! A subscription is tried by one request at a time. Nothing here holds what is sent, only numbers.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_core::Micros;

use crate::backoff;
use crate::event::Notice;
use crate::lanes::{Lanes, SLOW};
use crate::log::{LogEvents, LogRange, News, PAGE, Stored};
use crate::saving::{Batch, CursorRow, DeadLetter, Redelivered};
use crate::subscription::{Redelivery, Subscription, Waiting, What};

/// Events by which a saved cursor may lag behind before it is moved past what was for others.
const LAG: i64 = 1000;

/// Pause of a subscription after a failure of this server, in microseconds.
const HOLD: Micros = 10_000_000;

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Delivered,
    Failed(String),
    /// This server failed to send: nothing is known of the sink, and the event stays in the queue.
    NotSent(&'static str),
    /// No attempt will ever succeed.
    Undeliverable(String),
}

/// A request to be made.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) uid: Arc<str>,
    pub(crate) group: Arc<str>,
    pub(crate) sink: Arc<str>,
    pub(crate) what: What,
    /// The number of the attempt in [`Lanes`].
    flight: u64,
}

#[derive(Default)]
pub(crate) struct State {
    subscriptions: HashMap<Arc<str>, Subscription>,
    by_group: HashMap<Arc<str>, Vec<Arc<str>>>,
    /// Everything up to here was handed to the subscriptions.
    pub(crate) newest: i64,
    lanes: Lanes,
    /// Who waits for a time.
    timers: BTreeSet<(Micros, Arc<str>)>,
    behind: BTreeSet<Arc<str>>,
    dirty: BTreeSet<Arc<str>>,
    unsaved: Batch,
}

impl State {
    pub(crate) fn new(newest: i64) -> State {
        State { newest, ..State::default() }
    }

    /// Takes up a subscription as it was saved; what it missed is read later.
    pub(crate) fn resume(&mut self, stored: Stored, cursor: i64, now: Micros) {
        let uid: Arc<str> = stored.uid.as_str().into();
        let row = CursorRow {
            cursor,
            attempts: stored.attempts,
            failing_since: stored.failing_since,
            next_at: stored.next_at,
            last_error: stored.last_error,
        };
        self.add(&uid, &stored.sink, row, now);
        if let Some(subscription) = self.subscriptions.get_mut(&uid) {
            subscription.is_paused = stored.is_paused;
            subscription.is_behind = cursor < self.newest;
            if subscription.is_behind {
                self.behind.insert(uid.clone());
            }
            if stored.cursor.is_none() {
                self.unsaved.begun.push((uid, cursor));
            }
        }
    }

    fn add(&mut self, uid: &Arc<str>, sink: &str, row: CursorRow, now: Micros) {
        let group: Arc<str> = uid.rsplit_once('/').map_or("", |(group, _)| group).into();
        self.by_group.entry(group.clone()).or_default().push(uid.clone());
        if let Some(at) = row.next_at {
            self.timers.insert((at, uid.clone()));
        }
        self.subscriptions.insert(uid.clone(), Subscription::new(group, sink, row, now));
    }

    fn remove(&mut self, uid: &str) {
        let Some(subscription) = self.subscriptions.remove(uid) else { return };
        if let Some(there) = self.by_group.get_mut(&subscription.group) {
            there.retain(|other| &**other != uid);
            if there.is_empty() {
                self.by_group.remove(&subscription.group);
            }
        }
        self.dirty.remove(uid);
        self.behind.remove(uid);
    }

    /// Takes the next row of the log.
    pub(crate) fn see(&mut self, event: &Notice, news: &News, now: Micros) {
        self.newest = event.seq;
        if event.is_for_customers {
            for group in self_and_ancestors(&event.group) {
                for uid in self.by_group.get(group).cloned().unwrap_or_default() {
                    self.push(&uid, Waiting { seq: event.seq, at: event.at }, now);
                }
            }
        }
        if event.ends_subscription() {
            self.remove(&event.subject);
        }
        if event.begins_subscription()
            && let Some(sink) = news.sinks.get(&event.subject)
            && !self.subscriptions.contains_key(event.subject.as_str())
        {
            let uid: Arc<str> = event.subject.as_str().into();
            self.add(&uid, sink, CursorRow { cursor: event.seq, ..CursorRow::default() }, now);
            self.unsaved.begun.push((uid, event.seq));
        }
        if event.pauses_or_resumes() || event.begins_subscription() {
            let is_paused = news.paused.get(&event.subject).copied().unwrap_or_default();
            self.pause(&event.subject, is_paused, now);
        }
    }

    /// Holds a subscription, or lets it continue where it stands.
    fn pause(&mut self, uid: &str, is_paused: bool, now: Micros) {
        let Some((uid, _)) = self.subscriptions.get_key_value(uid) else { return };
        let uid = uid.clone();
        let Some(subscription) = self.subscriptions.get_mut(&uid) else { return };
        if subscription.is_paused && !is_paused {
            // Failures before the pause are outdated, and must not turn events into dead letters.
            subscription.row = CursorRow { cursor: subscription.row.cursor, ..CursorRow::default() };
            self.dirty.insert(uid.clone());
        }
        subscription.is_paused = is_paused;
        self.queue_up(&uid, now);
    }

    /// Gives up events that have waited too long for paused subscriptions, which no attempt comes to.
    pub(crate) fn bury_paused(&mut self, now: Micros) {
        let paused = self.subscriptions.iter().filter(|(_, subscription)| subscription.is_paused);
        for uid in paused.map(|(uid, _)| uid.clone()).collect::<Vec<_>>() {
            self.bury_overdue(&uid, now);
        }
    }

    fn push(&mut self, uid: &Arc<str>, waiting: Waiting, now: Micros) {
        let Some(subscription) = self.subscriptions.get_mut(uid) else { return };
        if subscription.is_behind {
            return;
        }
        if subscription.queue.len() >= PAGE {
            subscription.is_behind = true;
            subscription.read_to = waiting.seq - 1;
            self.behind.insert(uid.clone());
            return;
        }
        subscription.queue.push_back(waiting);
        self.queue_up(uid, now);
    }

    /// Puts a subscription in its line if it can be tried.
    fn queue_up(&mut self, uid: &Arc<str>, now: Micros) {
        let Some(subscription) = self.subscriptions.get_mut(uid) else { return };
        if !subscription.is_in_lane && subscription.next(now).is_some() {
            subscription.is_in_lane = true;
            self.lanes.push(uid, subscription.is_slow);
        }
    }

    /// Which parts of the log are wanted: those of subscriptions that are behind and have next to nothing left.
    pub(crate) fn ranges(&self, most: usize) -> Vec<LogRange> {
        // What is read may be overdue: one transaction must not have to bury too much.
        let most = if self.unsaved.dead.len() >= PAGE { 0 } else { most };
        let is_short = |uid: &&Arc<str>| self.subscriptions.get(*uid).is_some_and(|one| one.queue.len() < PAGE / 4);
        let ranges = self.behind.iter().filter(is_short).take(most).filter_map(|uid| {
            let subscription = self.subscriptions.get(uid)?;
            Some(LogRange { uid: uid.clone(), group: subscription.group.clone(), after: subscription.read_to })
        });
        ranges.collect()
    }

    /// Takes what was read for a subscription that is behind.
    pub(crate) fn fill(&mut self, found: LogEvents, now: Micros) {
        let Some(subscription) = self.subscriptions.get_mut(&found.uid) else { return };
        subscription.queue.extend(found.events);
        subscription.read_to = found.read_to;
        if found.read_to >= self.newest {
            subscription.is_behind = false;
            self.behind.remove(&found.uid);
        }
        self.bury_overdue(&found.uid, now);
        self.queue_up(&found.uid, now);
    }

    /// Takes dead letters that someone wants to have sent again: all that are known of, in their order.
    pub(crate) fn redeliver(&mut self, uid: &str, requests: Vec<Redelivery>, now: Micros) {
        let Some((uid, _)) = self.subscriptions.get_key_value(uid) else { return };
        let uid = uid.clone();
        let Some(subscription) = self.subscriptions.get_mut(&uid) else { return };
        // Until all outcomes are saved, the database lists letters that are settled; it is read again soon.
        if subscription.unsaved_redeliveries > 0 {
            return;
        }
        for request in requests {
            if !subscription.redeliveries.contains(&request) {
                subscription.redeliveries.push_back(request);
            }
        }
        self.queue_up(&uid, now);
    }

    /// Lets those in whose time has come.
    pub(crate) fn wake(&mut self, now: Micros) {
        while let Some((at, _)) = self.timers.first()
            && *at <= now
            && let Some((_, uid)) = self.timers.pop_first()
        {
            self.queue_up(&uid, now);
        }
    }

    /// The next attempt, if the limits allow one.
    pub(crate) fn next(&mut self, now: Micros, began: Instant) -> Option<Attempt> {
        loop {
            let uid = self.lanes.pop()?;
            let Some(subscription) = self.subscriptions.get_mut(&uid) else { continue };
            subscription.is_in_lane = false;
            let Some(what) = subscription.next(now) else { continue };
            subscription.is_in_flight = true;
            return Some(Attempt {
                group: subscription.group.clone(),
                sink: subscription.sink.clone(),
                what,
                flight: self.lanes.begin(&uid, subscription.is_slow, began),
                uid,
            });
        }
    }

    /// Sees which attempts take long by now.
    pub(crate) fn mark_late(&mut self, now: Instant) {
        self.lanes.mark_late(now);
    }

    /// Takes what became of an attempt.
    pub(crate) fn settle(&mut self, attempt: &Attempt, outcome: Outcome, took: Duration, now: Micros, random: u64) {
        self.lanes.end(attempt.flight);
        let Some(subscription) = self.subscriptions.get_mut(&attempt.uid) else { return };
        subscription.is_in_flight = false;
        if let Outcome::NotSent(_) = outcome {
            subscription.held_until = now + HOLD;
            self.timers.insert((now + HOLD, attempt.uid.clone()));
        } else {
            subscription.note(outcome == Outcome::Delivered && took <= SLOW);
            subscription.was_redelivery = matches!(attempt.what, What::Redelivery(_));
        }
        match &attempt.what {
            What::Event(seq) => self.settle_event(&attempt.uid, *seq, outcome, now, random),
            What::Redelivery(event_id) => self.settle_redelivery(&attempt.uid, event_id, outcome, now),
        }
        self.bury_overdue(&attempt.uid, now);
        self.queue_up(&attempt.uid, now);
    }

    fn settle_event(&mut self, uid: &Arc<str>, seq: i64, outcome: Outcome, now: Micros, random: u64) {
        let Some(subscription) = self.subscriptions.get_mut(uid) else { return };
        let row = &mut subscription.row;
        match outcome {
            Outcome::NotSent(_) => return,
            Outcome::Delivered => {
                subscription.queue.pop_front();
                *row = CursorRow { cursor: seq, ..CursorRow::default() };
            }
            Outcome::Failed(error) => {
                row.attempts += 1;
                row.failing_since = row.failing_since.or(Some(now));
                row.last_error = error;
                let at = now + backoff::wait(row.attempts, random);
                row.next_at = Some(at);
                self.timers.insert((at, uid.clone()));
            }
            Outcome::Undeliverable(error) => {
                subscription.queue.pop_front();
                row.cursor = seq;
                self.unsaved.dead.push(DeadLetter { uid: uid.clone(), seq, at: now, error });
            }
        }
        self.dirty.insert(uid.clone());
    }

    fn settle_redelivery(&mut self, uid: &Arc<str>, event_id: &str, outcome: Outcome, now: Micros) {
        let Some(subscription) = self.subscriptions.get_mut(uid) else { return };
        let mut ends_all = false;
        let error = match outcome {
            Outcome::NotSent(_) => return,
            Outcome::Delivered => {
                // The sink is well again: what waits for it need not wait for its time.
                subscription.row.next_at = None;
                self.dirty.insert(uid.clone());
                None
            }
            Outcome::Failed(error) => {
                // It would fail for the rest of them too.
                subscription.redeliveries.clear();
                ends_all = true;
                Some(error)
            }
            Outcome::Undeliverable(error) => Some(error),
        };
        subscription.redeliveries.pop_front();
        subscription.unsaved_redeliveries += 1;
        let settled = Redelivered { uid: uid.clone(), event_id: event_id.to_owned(), error, ends_all, at: now };
        self.unsaved.redelivered.push(settled);
    }

    fn bury_overdue(&mut self, uid: &Arc<str>, now: Micros) {
        let Some(subscription) = self.subscriptions.get_mut(uid) else { return };
        while let Some((waiting, error)) = subscription.overdue(now) {
            self.unsaved.dead.push(DeadLetter { uid: uid.clone(), seq: waiting.seq, at: now, error });
            self.dirty.insert(uid.clone());
        }
    }

    /// Moves cursors of those who wait for nothing past what was for others, now and then: where they begin after
    /// a restart, and what may be forgotten, hang on it. True if there was something to move.
    pub(crate) fn catch_up(&mut self, often: Micros, now: Micros) -> bool {
        let mut has_moved = false;
        for (uid, subscription) in &mut self.subscriptions {
            let lag = self.newest - subscription.saved;
            if subscription.is_idle() && (lag > LAG || lag > 0 && now - subscription.saved_at > often) {
                subscription.row.cursor = self.newest;
                self.dirty.insert(uid.clone());
                has_moved = true;
            }
        }
        has_moved
    }

    /// The state to be saved; it counts as saved once [`State::saved`] is called.
    pub(crate) fn unsaved(&mut self) -> Batch {
        let mut batch = std::mem::take(&mut self.unsaved);
        for uid in std::mem::take(&mut self.dirty) {
            if let Some(subscription) = self.subscriptions.get(&uid) {
                batch.cursors.push((uid, subscription.row.clone()));
            }
        }
        batch
    }

    /// Says that these are in the database.
    pub(crate) fn saved(&mut self, batch: &Batch, now: Micros) {
        for (uid, row) in &batch.cursors {
            if let Some(subscription) = self.subscriptions.get_mut(uid) {
                subscription.saved = row.cursor;
                subscription.saved_at = now;
            }
        }
        for settled in &batch.redelivered {
            if let Some(subscription) = self.subscriptions.get_mut(&settled.uid) {
                subscription.unsaved_redeliveries -= 1;
            }
        }
    }

    /// Up to where no one needs the log any more; its newest row always stays.
    pub(crate) fn floor(&self) -> i64 {
        let needed = self.subscriptions.values().map(|subscription| subscription.saved).min();
        needed.unwrap_or(self.newest).min(self.newest - 1)
    }
}

/// The group and those above it: of `a/b/c` also `a/b` and `a`.
fn self_and_ancestors(group: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(group), |group| group.rsplit_once('/').map(|(above, _)| above))
}

#[cfg(test)]
#[path = "state_tests.rs"]
pub(crate) mod tests;
