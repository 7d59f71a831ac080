//! The state of one subscription in the relay's memory: its position, and what comes next.

use std::collections::VecDeque;
use std::sync::Arc;

use bowline_core::Micros;

use crate::backoff;
use crate::saving::CursorRow;

/// Consecutive good attempts after which a slow sink counts as fast again.
const GOOD_ENOUGH: u32 = 3;

/// An event that waits for its delivery; its body is read when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) seq: i64,
    pub(crate) at: Micros,
}

/// A dead letter with a redelivery request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redelivery {
    pub(crate) seq: i64,
    pub(crate) event_id: String,
}

/// What an attempt sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The event of this number.
    Event(i64),
    /// The dead letter of this id.
    Redelivery(String),
}

pub(crate) struct Subscription {
    pub(crate) group: Arc<str>,
    pub(crate) sink: Arc<str>,
    /// The next events, the one to be tried first in front.
    pub(crate) queue: VecDeque<Waiting>,
    pub(crate) redeliveries: VecDeque<Redelivery>,
    /// Redeliveries whose outcome the database does not know yet.
    pub(crate) unsaved_redeliveries: usize,
    /// Whether the last attempt was one; they take turns with the queue.
    pub(crate) was_redelivery: bool,
    /// Everything up to here is delivered, dead, in the queue, or not for this subscription.
    pub(crate) read_to: i64,
    /// Whether the log has more rows that were not read.
    pub(crate) is_behind: bool,
    pub(crate) is_in_lane: bool,
    pub(crate) is_in_flight: bool,
    pub(crate) is_slow: bool,
    /// Whether its owners want nothing sent for now.
    pub(crate) is_paused: bool,
    /// No attempt is made before this time, because the last one could not be sent.
    pub(crate) held_until: Micros,
    good_in_a_row: u32,
    /// State that is saved later: the database has an older one, whose cursor is `saved`.
    pub(crate) row: CursorRow,
    pub(crate) saved: i64,
    pub(crate) saved_at: Micros,
}

impl Subscription {
    pub(crate) fn new(group: Arc<str>, sink: &str, row: CursorRow, now: Micros) -> Subscription {
        Subscription {
            group,
            sink: sink.into(),
            queue: VecDeque::new(),
            redeliveries: VecDeque::new(),
            unsaved_redeliveries: 0,
            was_redelivery: false,
            read_to: row.cursor,
            is_behind: false,
            is_in_lane: false,
            is_in_flight: false,
            is_slow: row.attempts > 0,
            is_paused: false,
            held_until: Micros::MIN,
            good_in_a_row: 0,
            saved: row.cursor,
            saved_at: now,
            row,
        }
    }

    /// Whether nothing is queued or under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.is_behind && !self.is_in_flight
    }

    /// What is to be tried now: events and redeliveries in turn.
    pub(crate) fn next(&self, now: Micros) -> Option<What> {
        if self.is_in_flight || self.is_paused || now < self.held_until {
            return None;
        }
        let is_due = self.row.next_at.is_none_or(|at| at <= now);
        let event = self.queue.front().filter(|_| is_due).map(|waiting| What::Event(waiting.seq));
        let redelivery = self.redeliveries.front().map(|redelivery| What::Redelivery(redelivery.event_id.clone()));
        if self.was_redelivery { event.or(redelivery) } else { redelivery.or(event) }
    }

    /// Records an attempt: a bad one makes the sink slow, and several good ones make it fast again.
    pub(crate) fn note(&mut self, is_good: bool) {
        self.good_in_a_row = if is_good { self.good_in_a_row.saturating_add(1) } else { 0 };
        self.is_slow = !is_good || self.is_slow && self.good_in_a_row < GOOD_ENOUGH;
    }

    /// Removes the first event if it has to be given up, and returns it with the error for its dead letter.
    /// An event is given up after a day in which it was tried or a failing sink held it back, and after a
    /// week in any case.
    pub(crate) fn overdue(&mut self, now: Micros) -> Option<(Waiting, String)> {
        // What is in flight may yet be delivered.
        if self.is_in_flight {
            return None;
        }
        let failing_since = self.row.failing_since.filter(|_| !self.is_paused);
        let is_over = |waiting: &mut Waiting| backoff::is_over(waiting.at, failing_since, now);
        let waiting = self.queue.pop_front_if(is_over)?;
        self.row.cursor = waiting.seq;
        let error = if failing_since.is_some() { self.row.last_error.as_str() } else { "it waited for a week" };
        Some((waiting, error.to_owned()))
    }
}
