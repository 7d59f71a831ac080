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
/// Maximum number of concurrent attempts: to fast sinks, to sinks that failed or were slow, and in total, with those that
/// became slow while they ran.
const FAST_PLACES: usize = 128;
const SLOW_PLACES: usize = 128;
const PLACES: usize = 512;
/// Maximum number of concurrent attempts of one organization: in total, and to slow sinks.
const PLACES_OF_ONE: usize = 64;
const SLOW_PLACES_OF_ONE: usize = 32;

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

struct Flight {
    organization: Arc<str>,
    pace: Pace,
    began: Instant,
}

/// Both lanes and the running attempts.
#[derive(Default)]
pub(crate) struct Lanes {
    fast: Lane,
    slow: Lane,
    flights: BTreeMap<u64, Flight>,
    last_flight: u64,
    places: Slots,
    places_of: HashMap<Arc<str>, Slots>,
}

impl Lanes {
    /// Appends a subscription to its organization's queue.
    pub(crate) fn push(&mut self, uid: &Arc<str>, is_slow: bool) {
        let lane = if is_slow { &mut self.slow } else { &mut self.fast };
        lane.push(organization(uid).into(), uid.clone());
    }

    /// Removes the next subscription whose attempt the limits allow.
    pub(crate) fn pop(&mut self) -> Option<Arc<str>> {
        if self.places.all() >= PLACES {
            return None;
        }
        let of = |organization: &str| self.places_of.get(organization).copied().unwrap_or_default();
        if self.places.slow < SLOW_PLACES {
            let has_room = |organization: &str| {
                let places = of(organization);
                places.slow < SLOW_PLACES_OF_ONE && places.all() < PLACES_OF_ONE
            };
            if let Some(uid) = self.slow.pop(has_room) {
                return Some(uid);
            }
        }
        if self.places.fast < FAST_PLACES {
            return self.fast.pop(|organization| of(organization).all() < PLACES_OF_ONE);
        }
        None
    }

    /// Counts an attempt that begins now; returns its number.
    pub(crate) fn begin(&mut self, uid: &str, is_slow: bool, began: Instant) -> u64 {
        let organization: Arc<str> = organization(uid).into();
        let pace = if is_slow { Pace::Slow } else { Pace::Fast };
        *self.places.of(pace) += 1;
        *self.places_of.entry(organization.clone()).or_default().of(pace) += 1;
        self.last_flight += 1;
        self.flights.insert(self.last_flight, Flight { organization, pace, began });
        self.last_flight
    }

    /// Stops counting an attempt.
    pub(crate) fn end(&mut self, flight: u64) {
        let Some(Flight { organization, pace, .. }) = self.flights.remove(&flight) else { return };
        *self.places.of(pace) -= 1;
        if let Some(places) = self.places_of.get_mut(&organization) {
            *places.of(pace) -= 1;
            if places.all() == 0 {
                self.places_of.remove(&organization);
            }
        }
    }

    /// Moves attempts that have become slow from the fast count to the late one.
    pub(crate) fn see_late(&mut self, now: Instant) {
        for flight in self.flights.values_mut() {
            if flight.pace == Pace::Fast && now.saturating_duration_since(flight.began) > SLOW {
                flight.pace = Pace::Late;
                self.places.fast -= 1;
                self.places.late += 1;
                if let Some(places) = self.places_of.get_mut(&flight.organization) {
                    places.fast -= 1;
                    places.late += 1;
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

    /// Begins whatever has a place; gives organization and number of each.
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
    fn one_organization_takes_no_more_than_its_places() {
        let mut lanes = Lanes::default();
        let now = Instant::now();
        push(&mut lanes, "a", 10_000, false);
        push(&mut lanes, "b", 3, false);
        let begun = begin(&mut lanes, false, now);
        assert_eq!((of(&begun, "a"), of(&begun, "b")), (PLACES_OF_ONE, 3));
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
    fn what_takes_long_leaves_the_places_of_the_fast() {
        let mut lanes = Lanes::default();
        let now = Instant::now();
        for n in 0..6 {
            push(&mut lanes, &format!("bad{n}"), 1000, false);
        }
        assert_eq!(begin(&mut lanes, false, now).len(), FAST_PLACES);
        push(&mut lanes, "good", 1, false);
        assert!(lanes.pop().is_none(), "all places are taken");
        let later = now + SLOW + Duration::from_millis(1);
        lanes.see_late(later);
        let begun = begin(&mut lanes, false, later);
        assert_eq!((begun.len(), of(&begun, "good")), (FAST_PLACES, 1));
        // Those that are late have no more place than all together.
        for n in 2..100 {
            lanes.see_late(now + n * 2 * SLOW);
            begin(&mut lanes, false, now + n * 2 * SLOW);
        }
        assert_eq!((lanes.places.all(), lanes.flights.len()), (6 * PLACES_OF_ONE + 1, 6 * PLACES_OF_ONE + 1));
    }

    #[test]
    fn slow_ones_have_places_of_their_own() {
        let mut lanes = Lanes::default();
        for n in 0..20 {
            push(&mut lanes, &format!("bad{n}"), 100, true);
        }
        assert_eq!(begin(&mut lanes, true, Instant::now()).len(), SLOW_PLACES);
        push(&mut lanes, "bad0", 1, false);
        let begun = begin(&mut lanes, false, Instant::now());
        assert_eq!(begun.len(), 1, "an organization's own fast ones go on beside its slow ones");
    }
}
