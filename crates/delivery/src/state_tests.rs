use std::sync::OnceLock;

use super::*;

const SECOND: Micros = 1_000_000;
const DAY: Micros = 24 * 3600 * SECOND;

fn event(seq: i64, group: &str) -> Arc<Event> {
    Arc::new(Event {
        seq,
        at: seq,
        id: format!("event {seq}"),
        event_type: String::new(),
        group: group.into(),
        subject: format!("{group}/x"),
        method: String::new(),
        actor: "{}".into(),
        extensions: "{}".into(),
        body_type: String::new(),
        body: Vec::new(),
        is_for_customers: true,
        content: OnceLock::new(),
    })
}

fn stored(uid: &str) -> Stored {
    Stored {
        uid: uid.into(),
        sink: "https://a.example".into(),
        created_at: 0,
        cursor: Some(0),
        attempts: 0,
        failing_since: None,
        next_at: None,
        last_error: String::new(),
    }
}

fn state(uids: &[&str]) -> State {
    let mut state = State::new(0);
    for uid in uids {
        state.resume(stored(uid), 0, 0);
    }
    state
}

fn see(state: &mut State, seq: i64, group: &str) {
    state.see(&event(seq, group), &HashMap::new(), 0);
}

fn settle(state: &mut State, attempt: &Attempt, outcome: Outcome, now: Micros) {
    state.settle(attempt, outcome, Duration::ZERO, now, 0);
}

fn failed() -> Outcome {
    Outcome::Failed("no".into())
}

/// Everything that can be tried now, as subscription and number.
fn due(state: &mut State, now: Micros) -> Vec<(String, i64)> {
    std::iter::from_fn(|| state.next(true, now)).map(|one| (one.uid.to_string(), one.event.seq)).collect()
}

#[test]
fn an_event_goes_to_its_group_and_all_above() {
    let mut state = state(&["a/s", "a/b/s", "a/b/c/s", "a/bb/s", "d/s"]);
    see(&mut state, 1, "a/b");
    let mut uids: Vec<String> = due(&mut state, 0).into_iter().map(|(uid, _)| uid).collect();
    uids.sort();
    assert_eq!(uids, ["a/b/s", "a/s"]);
}

#[test]
fn one_at_a_time_and_in_order() {
    let mut state = state(&["a/s"]);
    (1..=3).for_each(|seq| see(&mut state, seq, "a"));
    for seq in 1..=3 {
        let attempt = state.next(true, 0).unwrap();
        assert_eq!(attempt.event.seq, seq);
        assert!(state.next(true, 0).is_none(), "one is in flight");
        // A failure keeps its place.
        settle(&mut state, &attempt, failed(), 0);
        assert!(state.next(true, 0).is_none(), "it waits");
        state.wake(20 * SECOND);
        let again = state.next(true, 20 * SECOND).unwrap();
        assert_eq!(again.event.seq, seq);
        settle(&mut state, &again, Outcome::Delivered, 20 * SECOND);
        let batch = state.unsaved();
        assert_eq!(batch.cursors[0].1, CursorRow { cursor: seq, ..CursorRow::default() });
    }
    assert!(state.next(true, DAY).is_none());
}

#[test]
fn what_does_not_fit_is_read_from_the_log_without_gap_or_repetition() {
    let mut state = state(&["a/s"]);
    let last = PAGE as i64 * 3;
    (1..=last).for_each(|seq| see(&mut state, seq, "a"));
    let mut seen = Vec::new();
    while let Some(attempt) = state.next(true, 0) {
        seen.push(attempt.event.seq);
        settle(&mut state, &attempt, Outcome::Delivered, 0);
        for wanted in state.wanted(10) {
            let end = last.min(wanted.after + PAGE as i64);
            let events: Vec<_> = (wanted.after + 1..=end).map(|seq| event(seq, "a")).collect();
            state.fill(Found { uid: wanted.uid, events, read_to: end }, 0);
        }
    }
    assert_eq!(seen, (1..=last).collect::<Vec<_>>());
    see(&mut state, last + 1, "a");
    assert_eq!(due(&mut state, 0), [("a/s".into(), last + 1)]);
}

#[test]
fn slow_ones_do_not_hold_up_the_others() {
    let mut state = state(&["a/s", "b/s"]);
    see(&mut state, 1, "a");
    let attempt = state.next(true, 0).unwrap();
    state.settle(&attempt, Outcome::Delivered, Duration::from_secs(2), 0, 0);
    see(&mut state, 2, "a");
    see(&mut state, 3, "b");
    let next = state.next(false, 0).unwrap();
    assert_eq!((&*next.uid, next.is_slow), ("b/s", false));
    assert!(state.next(false, 0).is_none());
    assert!(state.next(true, 0).unwrap().is_slow);
}

#[test]
fn after_a_day_an_event_is_dead_and_so_is_what_waited_as_long() {
    let mut state = state(&["a/s"]);
    (1..=2).for_each(|seq| see(&mut state, seq, "a"));
    let mut late = Arc::into_inner(event(3, "a")).unwrap();
    late.at = DAY / 2;
    state.see(&Arc::new(late), &HashMap::new(), 0);
    let first = state.next(true, 0).unwrap();
    settle(&mut state, &first, failed(), 100);
    assert!(state.unsaved().dead.is_empty());
    let now = DAY + 200;
    state.wake(now);
    let again = state.next(true, now).unwrap();
    assert_eq!(again.event.seq, 1);
    settle(&mut state, &again, failed(), now);
    let batch = state.unsaved();
    assert_eq!(batch.dead.iter().map(|dead| dead.event.seq).collect::<Vec<_>>(), [1, 2]);
    let row = &batch.cursors[0].1;
    assert_eq!((row.cursor, row.attempts, row.failing_since), (2, 2, Some(100)));
    state.wake(now + 900 * SECOND);
    let third = state.next(true, now + 900 * SECOND).unwrap();
    assert_eq!(third.event.seq, 3);
    settle(&mut state, &third, Outcome::Delivered, now + 900 * SECOND);
    assert_eq!(state.unsaved().cursors[0].1, CursorRow { cursor: 3, ..CursorRow::default() });
}

#[test]
fn a_redelivery_is_tried_once_and_moves_no_cursor() {
    let mut state = state(&["a/s"]);
    see(&mut state, 5, "a");
    let head = state.next(true, 0).unwrap();
    settle(&mut state, &head, failed(), 0);
    state.unsaved();
    state.redeliver("a/s", event(2, "a"), 0);
    state.redeliver("a/s", event(2, "a"), 0);
    let attempt = state.next(true, 0).unwrap();
    assert!(attempt.is_redelivery && attempt.event.seq == 2);
    settle(&mut state, &attempt, Outcome::Delivered, 0);
    let batch = state.unsaved();
    assert!(batch.redelivered.len() == 1 && batch.redelivered[0].error.is_none());
    assert_eq!((batch.cursors[0].1.cursor, batch.cursors[0].1.failing_since), (0, Some(0)));
    assert_eq!(due(&mut state, 0), [("a/s".into(), 5)], "a sink that is well again is tried at once");
}

#[test]
fn the_floor_is_what_everybody_has_saved() {
    let mut state = state(&["a/s", "b/s"]);
    (1..=10).for_each(|seq| see(&mut state, seq, "a"));
    assert_eq!(state.floor(), 0);
    while let Some(attempt) = state.next(true, 0) {
        settle(&mut state, &attempt, Outcome::Delivered, 0);
    }
    assert!(state.catch_up(DAY, 2 * DAY));
    let batch = state.unsaved();
    assert_eq!(state.floor(), 0, "saved is only what the database has");
    state.saved(&batch, 2 * DAY);
    assert_eq!(state.floor(), 9, "the newest row stays");
    assert!(!state.catch_up(DAY, 2 * DAY));
}
