//! Turns of pages of all callers: one that comes back goes to the waiting tenant that has the fewest.
//!
//! Places of each tenant's own would not bound them, since one who may create organizations has as many tenants as needed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{self, error::RecvError};

/// Turns, of which so many are taken at a time, and so many of one tenant.
pub(crate) struct Turns {
    state: Mutex<State>,
    max: usize,
    max_of_tenant: usize,
}

#[derive(Default)]
struct State {
    taken: usize,
    /// By tenant, without those that have none.
    taken_by: HashMap<String, usize>,
    waiting: HashMap<String, VecDeque<Waiting>>,
    /// Number of the next one that waits.
    next: u64,
}

struct Waiting {
    number: u64,
    turn: oneshot::Sender<Turn>,
}

/// One turn. It comes back when it is dropped, wherever the work is that holds it.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    tenant: String,
}

impl Turns {
    pub(crate) fn new(max: usize, max_of_tenant: usize) -> Arc<Turns> {
        Arc::new(Turns { state: Mutex::default(), max, max_of_tenant })
    }

    /// Waits for a turn. Who no longer waits loses none.
    ///
    /// # Errors
    /// None while `self` is there.
    pub(crate) async fn take(self: &Arc<Turns>, tenant: &str) -> Result<Turn, RecvError> {
        let waits = {
            let mut state = self.lock();
            // Tenants that wait while there is room have their most, so that no one is overtaken.
            if self.has_room_for(&state, tenant) {
                return Ok(self.begin(&mut state, tenant));
            }
            let (turn, waits) = oneshot::channel();
            let number = state.next;
            state.next += 1;
            let queue = state.waiting.entry(tenant.to_owned()).or_default();
            // Pages that were given up take no room.
            queue.retain(|one| !one.turn.is_closed());
            queue.push_back(Waiting { number, turn });
            waits
        };
        waits.await
    }

    fn has_room_for(&self, state: &State, tenant: &str) -> bool {
        state.taken < self.max && state.taken_of(tenant) < self.max_of_tenant
    }

    fn begin(self: &Arc<Turns>, state: &mut State, tenant: &str) -> Turn {
        state.taken += 1;
        *state.taken_by.entry(tenant.to_owned()).or_default() += 1;
        Turn { turns: self.clone(), tenant: tenant.to_owned() }
    }

    /// Takes a turn back, and begins the next one if a page waits for it.
    fn give_back(self: &Arc<Turns>, tenant: &str) -> Option<(oneshot::Sender<Turn>, Turn)> {
        let mut state = self.lock();
        state.taken -= 1;
        match state.taken_by.get_mut(tenant) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(state.taken_by.remove(tenant)),
        }
        state.waiting.retain(|_, queue| {
            while queue.front().is_some_and(|one| one.turn.is_closed()) {
                queue.pop_front();
            }
            !queue.is_empty()
        });
        let fitting = state.waiting.iter().filter(|(tenant, _)| self.has_room_for(&state, tenant));
        let order = |(tenant, queue): &(&String, &VecDeque<Waiting>)| {
            (state.taken_of(tenant), queue.front().map_or(u64::MAX, |one| one.number))
        };
        let next = fitting.min_by_key(order).map(|(tenant, _)| tenant.clone())?;
        let waiting = state.waiting.get_mut(&next)?.pop_front()?;
        let turn = self.begin(&mut state, &next);
        Some((waiting.turn, turn))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn taken_of(&self, tenant: &str) -> usize {
        self.taken_by.get(tenant).copied().unwrap_or(0)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((waiting, turn)) = self.turns.give_back(&self.tenant) {
            // A page that was given up right now hands the turn back, which drops it: it comes back as this one did.
            drop(waiting.send(turn));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::FutureExt as _;

    use super::*;

    type Waits = Pin<Box<dyn Future<Output = Result<Turn, RecvError>>>>;

    /// Asks for turns, as pages that are polled once.
    fn ask(turns: &Arc<Turns>, tenant: &str, times: usize) -> (Vec<Turn>, Vec<Waits>) {
        let (mut taken, mut waiting) = (Vec::new(), Vec::new());
        for _ in 0..times {
            let (turns, tenant) = (turns.clone(), tenant.to_owned());
            let mut one: Waits = Box::pin(async move { turns.take(&tenant).await });
            match (&mut one).now_or_never() {
                Some(turn) => taken.push(turn.unwrap()),
                None => waiting.push(one),
            }
        }
        (taken, waiting)
    }

    fn served(waiting: &mut Vec<Waits>) -> Vec<Turn> {
        let (mut turns, mut left) = (Vec::new(), Vec::new());
        for mut one in waiting.drain(..) {
            match (&mut one).now_or_never() {
                Some(turn) => turns.push(turn.unwrap()),
                None => left.push(one),
            }
        }
        *waiting = left;
        turns
    }

    #[test]
    fn a_tenant_leaves_room_for_others() {
        let turns = Turns::new(64, 48);
        let (of_a, waiting) = ask(&turns, "a", 148);
        assert_eq!((of_a.len(), waiting.len()), (48, 100));
        let (of_b, none) = ask(&turns, "b", 1);
        assert_eq!((of_b.len(), none.len()), (1, 0), "one that comes later has its turn at once");
    }

    #[test]
    fn turns_that_come_back_go_to_the_tenant_with_the_fewest() {
        let turns = Turns::new(4, 4);
        let (mut of_a, mut a) = ask(&turns, "a", 14);
        let (_, mut b) = ask(&turns, "b", 10);
        assert_eq!((of_a.len(), a.len(), b.len()), (4, 10, 10));
        let mut of_b = Vec::new();
        for round in 0..8 {
            // Whoever has more gives one back.
            if of_a.len() >= of_b.len() {
                of_a.pop()
            } else {
                of_b.pop()
            };
            of_a.extend(served(&mut a));
            of_b.extend(served(&mut b));
            assert_eq!(of_a.len() + of_b.len(), 4, "{round}");
            assert!(round < 1 || of_a.len().abs_diff(of_b.len()) <= 2, "{round}: {} {}", of_a.len(), of_b.len());
        }
        assert!(a.len() < 10 && b.len() < 9, "both went on: {} {}", a.len(), b.len());
        let (_, mut c) = ask(&turns, "c", 1);
        drop(of_a.pop().or_else(|| of_b.pop()));
        assert_eq!(served(&mut c).len(), 1, "one that has none is next");
    }

    #[test]
    fn pages_that_are_given_up_lose_no_turn() {
        let turns = Turns::new(2, 2);
        let (taken, waiting) = ask(&turns, "a", 5000);
        let (_, mut last) = ask(&turns, "b", 1);
        drop(waiting);
        let (_, more) = ask(&turns, "a", 1);
        assert_eq!(turns.lock().waiting["a"].len(), 1, "they take no room");
        drop(more);
        drop(taken);
        let turn = served(&mut last);
        assert_eq!((turn.len(), turns.lock().taken), (1, 1));
        drop(turn);
        // A turn that was sent to a page that is given up before it looks.
        let (taken, waiting) = ask(&turns, "a", 3);
        drop(taken);
        drop(waiting);
        let state = turns.lock();
        assert_eq!((state.taken, state.taken_by.len(), state.waiting.len()), (0, 0, 0));
    }
}
