//! Who waits for what: the subscriptions by group, their next events, and the order in which they are tried.
//!
//! A subscription is tried by one request at a time. Those whose sinks failed or dawdled stand in a line of their
//! own, so that however many they are, the others go on.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bowline_core::Micros;

use crate::backoff;
use crate::event::Event;
use crate::log::{Found, PAGE, Stored, Wanted};
use crate::saving::{Batch, CursorRow, DeadLetter, Redelivered};

/// A sink that takes longer than this stands with the slow ones.
const SLOW: Duration = Duration::from_secs(1);
/// Events by which a saved cursor may lag behind before it is moved past what was for others.
const LAG: i64 = 1000;

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Delivered,
    /// Try again later.
    Failed(String),
    /// No attempt will ever succeed.
    Hopeless(String),
}

/// A request to be made.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) uid: Arc<str>,
    pub(crate) group: Arc<str>,
    pub(crate) sink: Arc<str>,
    pub(crate) event: Arc<Event>,
    /// Whether somebody asked for this one.
    pub(crate) is_redelivery: bool,
    pub(crate) is_slow: bool,
}

struct Subscription {
    group: Arc<str>,
    sink: Arc<str>,
    /// The next events, the one to be tried first in front.
    queue: VecDeque<Arc<Event>>,
    redeliveries: VecDeque<Arc<Event>>,
    /// Everything up to here is delivered, dead, in the queue, or for others.
    read_to: i64,
    /// Whether the log holds more that was not looked at.
    is_behind: bool,
    is_in_line: bool,
    is_in_flight: bool,
    is_slow: bool,
    /// Of these things the database knows a former state, to which `saved` belongs.
    row: CursorRow,
    saved: i64,
    saved_at: Micros,
}

impl Subscription {
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.is_behind && !self.is_in_flight
    }

    fn may_be_tried(&self, now: Micros) -> bool {
        let is_due = self.row.next_at.is_none_or(|at| at <= now);
        !self.is_in_flight && (!self.redeliveries.is_empty() || is_due && !self.queue.is_empty())
    }
}

/// All of it.
#[derive(Default)]
pub(crate) struct State {
    subscriptions: HashMap<Arc<str>, Subscription>,
    by_group: HashMap<Arc<str>, Vec<Arc<str>>>,
    /// Everything up to here was handed to the subscriptions.
    pub(crate) newest: i64,
    line: VecDeque<Arc<str>>,
    slow_line: VecDeque<Arc<str>>,
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
        let subscription = Subscription {
            group,
            sink: sink.into(),
            queue: VecDeque::new(),
            redeliveries: VecDeque::new(),
            read_to: row.cursor,
            is_behind: false,
            is_in_line: false,
            is_in_flight: false,
            is_slow: row.attempts > 0,
            saved: row.cursor,
            saved_at: now,
            row,
        };
        self.subscriptions.insert(uid.clone(), subscription);
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
    pub(crate) fn see(&mut self, event: &Arc<Event>, sinks: &HashMap<String, String>, now: Micros) {
        self.newest = event.seq;
        if event.is_for_customers {
            for group in self_and_ancestors(&event.group) {
                for uid in self.by_group.get(group).cloned().unwrap_or_default() {
                    self.push(&uid, event, now);
                }
            }
        }
        if event.ends_subscription() {
            self.remove(&event.subject);
        }
        if event.begins_subscription()
            && let Some(sink) = sinks.get(&event.subject)
            && !self.subscriptions.contains_key(event.subject.as_str())
        {
            let uid: Arc<str> = event.subject.as_str().into();
            self.add(&uid, sink, CursorRow { cursor: event.seq, ..CursorRow::default() }, now);
            self.unsaved.begun.push((uid, event.seq));
        }
    }

    fn push(&mut self, uid: &Arc<str>, event: &Arc<Event>, now: Micros) {
        let Some(subscription) = self.subscriptions.get_mut(uid) else { return };
        if subscription.is_behind {
            return;
        }
        if subscription.queue.len() >= PAGE {
            subscription.is_behind = true;
            subscription.read_to = event.seq - 1;
            self.behind.insert(uid.clone());
            return;
        }
        subscription.queue.push_back(event.clone());
        self.enter(uid, now);
    }

    /// Puts a subscription in its line if it can be tried.
    fn enter(&mut self, uid: &Arc<str>, now: Micros) {
        let Some(subscription) = self.subscriptions.get_mut(uid) else { return };
        if !subscription.is_in_line && subscription.may_be_tried(now) {
            subscription.is_in_line = true;
            let line = if subscription.is_slow { &mut self.slow_line } else { &mut self.line };
            line.push_back(uid.clone());
        }
    }

    /// Which parts of the log are wanted: those of subscriptions that are behind and have next to nothing left.
    pub(crate) fn wanted(&self, most: usize) -> Vec<Wanted> {
        let is_short = |uid: &&Arc<str>| self.subscriptions.get(*uid).is_some_and(|one| one.queue.len() < PAGE / 4);
        let wanted = self.behind.iter().filter(is_short).take(most).filter_map(|uid| {
            let subscription = self.subscriptions.get(uid)?;
            Some(Wanted { uid: uid.clone(), group: subscription.group.clone(), after: subscription.read_to })
        });
        wanted.collect()
    }

    /// Takes what was read for a subscription that is behind.
    pub(crate) fn fill(&mut self, found: Found, now: Micros) {
        let Some(subscription) = self.subscriptions.get_mut(&found.uid) else { return };
        subscription.queue.extend(found.events);
        subscription.read_to = found.read_to;
        if found.read_to >= self.newest {
            subscription.is_behind = false;
            self.behind.remove(&found.uid);
        }
        self.bury_overdue(&found.uid, now);
        self.enter(&found.uid, now);
    }

    /// Takes a dead letter that somebody wants to have sent again.
    pub(crate) fn redeliver(&mut self, uid: &str, event: Arc<Event>, now: Micros) {
        let Some((uid, _)) = self.subscriptions.get_key_value(uid) else { return };
        let uid = uid.clone();
        let is_reported =
            |event: &Event| self.unsaved.redelivered.iter().any(|done| done.uid == uid && done.event_id == event.id);
        if is_reported(&event) {
            return;
        }
        if let Some(subscription) = self.subscriptions.get_mut(&uid)
            && !subscription.redeliveries.iter().any(|known| known.id == event.id)
        {
            subscription.redeliveries.push_back(event);
            self.enter(&uid, now);
        }
    }

    /// Lets those in whose time has come.
    pub(crate) fn wake(&mut self, now: Micros) {
        while let Some((at, _)) = self.timers.first()
            && *at <= now
            && let Some((_, uid)) = self.timers.pop_first()
        {
            self.enter(&uid, now);
        }
    }

    /// The next attempt; of the slow ones only if `slow_too`.
    pub(crate) fn next(&mut self, slow_too: bool, now: Micros) -> Option<Attempt> {
        loop {
            let slow = if slow_too { self.slow_line.pop_front() } else { None };
            let uid = slow.or_else(|| self.line.pop_front())?;
            let Some(subscription) = self.subscriptions.get_mut(&uid) else { continue };
            subscription.is_in_line = false;
            if !subscription.may_be_tried(now) {
                continue;
            }
            let is_redelivery = !subscription.redeliveries.is_empty();
            let queue = if is_redelivery { &subscription.redeliveries } else { &subscription.queue };
            let Some(event) = queue.front().cloned() else { continue };
            subscription.is_in_flight = true;
            return Some(Attempt {
                group: subscription.group.clone(),
                sink: subscription.sink.clone(),
                event,
                is_redelivery,
                is_slow: subscription.is_slow,
                uid,
            });
        }
    }

    /// Takes what became of an attempt.
    pub(crate) fn settle(&mut self, attempt: &Attempt, outcome: Outcome, took: Duration, now: Micros, random: u64) {
        let Some(subscription) = self.subscriptions.get_mut(&attempt.uid) else { return };
        subscription.is_in_flight = false;
        subscription.is_slow = outcome != Outcome::Delivered || took > SLOW;
        if attempt.is_redelivery {
            subscription.redeliveries.pop_front();
            let error = match outcome {
                Outcome::Delivered => {
                    // The sink is well again: what waits for it need not wait for its time.
                    subscription.row.next_at = None;
                    self.dirty.insert(attempt.uid.clone());
                    None
                }
                Outcome::Failed(error) | Outcome::Hopeless(error) => Some(error),
            };
            let event_id = attempt.event.id.clone();
            self.unsaved.redelivered.push(Redelivered { uid: attempt.uid.clone(), event_id, error });
        } else {
            match outcome {
                Outcome::Delivered => {
                    subscription.queue.pop_front();
                    subscription.row = CursorRow { cursor: attempt.event.seq, ..CursorRow::default() };
                }
                Outcome::Failed(error) => self.fail(&attempt.uid, error, now, random),
                Outcome::Hopeless(error) => {
                    if let Some(event) = subscription.queue.pop_front() {
                        subscription.row.cursor = event.seq;
                        self.unsaved.dead.push(DeadLetter { uid: attempt.uid.clone(), event, at: now, error });
                    }
                }
            }
            self.dirty.insert(attempt.uid.clone());
        }
        self.enter(&attempt.uid, now);
    }

    fn fail(&mut self, uid: &Arc<str>, error: String, now: Micros, random: u64) {
        let Some(subscription) = self.subscriptions.get_mut(uid) else { return };
        let row = &mut subscription.row;
        row.attempts += 1;
        row.failing_since = row.failing_since.or(Some(now));
        row.last_error = error;
        let at = now + backoff::wait(row.attempts, random);
        row.next_at = Some(at);
        self.timers.insert((at, uid.clone()));
        self.bury_overdue(uid, now);
    }

    /// Gives up the events at the front that were tried, or that a failing sink kept waiting, for a day.
    fn bury_overdue(&mut self, uid: &Arc<str>, now: Micros) {
        let Some(subscription) = self.subscriptions.get_mut(uid) else { return };
        let Some(failing_since) = subscription.row.failing_since else { return };
        // What is in flight may yet be delivered.
        let is_free = !subscription.is_in_flight;
        while is_free
            && let Some(event) = subscription.queue.pop_front_if(|event| backoff::is_over(event.at, failing_since, now))
        {
            subscription.row.cursor = event.seq;
            let error = subscription.row.last_error.clone();
            self.unsaved.dead.push(DeadLetter { uid: uid.clone(), event, at: now, error });
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

    /// What is to be saved, which counts as saved once [`State::saved`] was told so.
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
    }

    /// Up to where nobody needs the log any more; its newest row always stays.
    pub(crate) fn floor(&self) -> i64 {
        let needed = self.subscriptions.values().map(|subscription| subscription.saved).min();
        needed.unwrap_or(self.newest).min(self.newest - 1)
    }
}

/// `a/b/c`, `a/b`, `a`.
fn self_and_ancestors(group: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(group), |group| group.rsplit_once('/').map(|(above, _)| above))
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
