//! Scheduling of attempts: organizations take turns, and the subscriptions of each are tried in the order in
//! which they came.
//!
//! Failing or slow sinks use a separate queue (lane) with its own concurrency limit. An attempt that takes
//! longer than [`SLOW`] stops counting against the limit of fast ones while it runs, so that a sink that is
//! not yet known to be slow delays others no longer than that.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An attempt that takes longer than this is a slow one.
pub(crate) const SLOW: Duration = Duration::from_secs(1);
/// Maximum concurrent attempts to fast sinks, late ones not included.
const MAX_FAST: usize = 128;
/// Maximum concurrent attempts to sinks that failed or were slow.
const MAX_SLOW: usize = 128;
/// Maximum concurrent attempts in total, late ones included.
const MAX_TOTAL: usize = 512;
/// Maximum concurrent attempts of one organization in total.
const MAX_PER_ORGANIZATION: usize = 64;
/// Maximum concurrent attempts of one organization to slow sinks.
const MAX_SLOW_PER_ORGANIZATION: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Slots {
    fast: usize,
    slow: usize,
    /// Attempts that began as fast and take long.
    late: usize,
}

impl Slots {
    fn all(&self) -> usize {
        self.fast + self.slow + self.late
    }

    fn of(&mut self, pace: Pace) -> &mut usize {
        match pace {
            Pace::Fast => &mut self.fast,
            Pace::Slow => &mut self.slow,
            Pace::Late => &mut self.late,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Fast,
    Slow,
    Late,
}

/// The queue of waiting subscriptions, by organization.
#[derive(Debug, Default)]
struct Lane {
    /// Organizations with waiting subscriptions, each once.
    turn: VecDeque<Arc<str>>,
    waiting: HashMap<Arc<str>, VecDeque<Arc<str>>>,
}

impl Lane {
    fn push(&mut self, organization: Arc<str>, uid: Arc<str>) {
        let waiting = self.waiting.entry(organization.clone()).or_default();
        if waiting.is_empty() {
            self.turn.push_back(organization);
        }
        waiting.push_back(uid);
    }

    /// The next subscription of the first organization below its limits.
    fn pop(&mut self, has_room: impl Fn(&str) -> bool) -> Option<Arc<str>> {
        let at = self.turn.iter().position(|organization| has_room(organization))?;
        let organization = self.turn.remove(at)?;
        let waiting = self.waiting.get_mut(&organization)?;
        let uid = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&organization);
        } else {
            self.turn.push_back(organization);
        }
        uid
    }
}

struct RunningAttempt {
    organization: Arc<str>,
    pace: Pace,
    began: Instant,
}

/// Both lanes and the running attempts.
#[derive(Default)]
pub(crate) struct Lanes {
    fast: Lane,
    slow: Lane,
    running: BTreeMap<u64, RunningAttempt>,
    last_number: u64,
    slots: Slots,
    slots_of: HashMap<Arc<str>, Slots>,
}

impl Lanes {
    /// Appends a subscription to its organization's queue.
    pub(crate) fn push(&mut self, uid: &Arc<str>, is_slow: bool) {
        let lane = if is_slow { &mut self.slow } else { &mut self.fast };
        lane.push(organization(uid).into(), uid.clone());
    }

    /// Removes the next subscription whose attempt the limits allow.
    pub(crate) fn pop(&mut self) -> Option<Arc<str>> {
        if self.slots.all() >= MAX_TOTAL {
            return None;
        }
        let of = |organization: &str| self.slots_of.get(organization).copied().unwrap_or_default();
        if self.slots.slow < MAX_SLOW {
            let has_room = |organization: &str| {
                let slots = of(organization);
                slots.slow < MAX_SLOW_PER_ORGANIZATION && slots.all() < MAX_PER_ORGANIZATION
            };
            if let Some(uid) = self.slow.pop(has_room) {
                return Some(uid);
            }
        }
        if self.slots.fast < MAX_FAST {
            return self.fast.pop(|organization| of(organization).all() < MAX_PER_ORGANIZATION);
        }
        None
    }

    /// Counts an attempt that begins now; returns its number.
    pub(crate) fn begin(&mut self, uid: &str, is_slow: bool, began: Instant) -> u64 {
        let organization: Arc<str> = organization(uid).into();
        let pace = if is_slow { Pace::Slow } else { Pace::Fast };
        *self.slots.of(pace) += 1;
        *self.slots_of.entry(organization.clone()).or_default().of(pace) += 1;
        self.last_number += 1;
        self.running.insert(self.last_number, RunningAttempt { organization, pace, began });
        self.last_number
    }

    /// Stops counting an attempt.
    pub(crate) fn end(&mut self, number: u64) {
        let Some(RunningAttempt { organization, pace, .. }) = self.running.remove(&number) else { return };
        *self.slots.of(pace) -= 1;
        if let Some(slots) = self.slots_of.get_mut(&organization) {
            *slots.of(pace) -= 1;
            if slots.all() == 0 {
                self.slots_of.remove(&organization);
            }
        }
    }

    /// Moves attempts that have become slow from the fast count to the late one.
    pub(crate) fn mark_late(&mut self, now: Instant) {
        for attempt in self.running.values_mut() {
            if attempt.pace == Pace::Fast && now.saturating_duration_since(attempt.began) > SLOW {
                attempt.pace = Pace::Late;
                self.slots.fast -= 1;
                self.slots.late += 1;
                if let Some(slots) = self.slots_of.get_mut(&attempt.organization) {
                    slots.fast -= 1;
                    slots.late += 1;
                }
            }
        }
    }
}

fn organization(uid: &str) -> &str {
    uid.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(lanes: &mut Lanes, organization: &str, many: usize, is_slow: bool) {
        for n in 0..many {
            lanes.push(&format!("{organization}/{n}").into(), is_slow);
        }
    }

    /// Begins the attempts that have a slot; returns organization and number of each.
    fn begin(lanes: &mut Lanes, is_slow: bool, now: Instant) -> Vec<(String, u64)> {
        let next = || {
            let uid = lanes.pop()?;
            Some((organization(&uid).to_owned(), lanes.begin(&uid, is_slow, now)))
        };
        std::iter::from_fn(next).collect()
    }

    fn of(begun: &[(String, u64)], organization: &str) -> usize {
        begun.iter().filter(|(of, _)| of == organization).count()
    }

    #[test]
    fn one_organization_takes_no_more_than_its_slots() {
        let mut lanes = Lanes::default();
        let now = Instant::now();
        push(&mut lanes, "a", 10_000, false);
        push(&mut lanes, "b", 3, false);
        let begun = begin(&mut lanes, false, now);
        assert_eq!((of(&begun, "a"), of(&begun, "b")), (MAX_PER_ORGANIZATION, 3));
        lanes.end(begun[0].1);
        assert_eq!(begin(&mut lanes, false, now).len(), 1, "one that ended makes room for one");
    }

    #[test]
    fn organizations_take_turns() {
        let mut lanes = Lanes::default();
        for organization in ["a", "b", "c"] {
            push(&mut lanes, organization, 2, false);
        }
        let begun = begin(&mut lanes, false, Instant::now());
        let order: Vec<&str> = begun.iter().map(|(of, _)| of.as_str()).collect();
        assert_eq!(order, ["a", "b", "c", "a", "b", "c"]);
    }

    #[test]
    fn late_attempts_free_fast_slots() {
        let mut lanes = Lanes::default();
        let now = Instant::now();
        for n in 0..6 {
            push(&mut lanes, &format!("bad{n}"), 1000, false);
        }
        assert_eq!(begin(&mut lanes, false, now).len(), MAX_FAST);
        push(&mut lanes, "good", 1, false);
        assert!(lanes.pop().is_none(), "all slots are taken");
        let later = now + SLOW + Duration::from_millis(1);
        lanes.mark_late(later);
        let begun = begin(&mut lanes, false, later);
        assert_eq!((begun.len(), of(&begun, "good")), (MAX_FAST, 1));
        // Late attempts still count against the limit of their organization.
        for n in 2..100 {
            lanes.mark_late(now + n * 2 * SLOW);
            begin(&mut lanes, false, now + n * 2 * SLOW);
        }
        assert_eq!(
            (lanes.slots.all(), lanes.running.len()),
            (6 * MAX_PER_ORGANIZATION + 1, 6 * MAX_PER_ORGANIZATION + 1)
        );
    }

    #[test]
    fn slow_attempts_have_their_own_slots() {
        let mut lanes = Lanes::default();
        for n in 0..20 {
            push(&mut lanes, &format!("bad{n}"), 100, true);
        }
        assert_eq!(begin(&mut lanes, true, Instant::now()).len(), MAX_SLOW);
        push(&mut lanes, "bad0", 1, false);
        let begun = begin(&mut lanes, false, Instant::now());
        assert_eq!(begun.len(), 1, "an organization's own fast ones go on beside its slow ones");
    }
}
