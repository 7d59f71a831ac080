use super::*;

const SECOND: Micros = 1_000_000;
const DAY: Micros = 24 * 3600 * SECOND;

fn event(seq: i64, group: &str) -> Notice {
    Notice {
        seq,
        at: seq,
        group: group.into(),
        subject: format!("{group}/x"),
        method: String::new(),
        is_for_customers: true,
    }
}

fn waiting(seq: i64) -> Waiting {
    Waiting { seq, at: seq }
}

fn redelivery(seq: i64) -> Redelivery {
    Redelivery { seq, event_id: format!("event {seq}") }
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
        is_paused: false,
    }
}

pub(crate) fn state(uids: &[&str]) -> State {
    let mut state = State::new(0);
    for uid in uids {
        state.resume(stored(uid), 0, 0);
    }
    state
}

pub(crate) fn see(state: &mut State, seq: i64, group: &str) {
    state.see(&event(seq, group), &News::default(), 0);
}

fn settle(state: &mut State, attempt: &Attempt, outcome: Outcome, now: Micros) {
    state.settle(attempt, outcome, Duration::ZERO, now, 0);
}

fn failed() -> Outcome {
    Outcome::Failed("no".into())
}

pub(crate) fn next(state: &mut State, now: Micros) -> Option<Attempt> {
    state.next(now, Instant::now())
}

/// The number of the attempt's event.
fn seq(attempt: &Attempt) -> i64 {
    match &attempt.what {
        What::Event(seq) => *seq,
        What::Redelivery(id) => panic!("{id} is a letter"),
    }
}

/// Everything that can be tried now, as subscription and number.
fn due(state: &mut State, now: Micros) -> Vec<(String, i64)> {
    std::iter::from_fn(|| next(state, now)).map(|one| (one.uid.to_string(), seq(&one))).collect()
}

/// What is sent when everything is delivered.
fn all_delivered(state: &mut State, now: Micros) -> Vec<What> {
    let one = || {
        let attempt = next(state, now)?;
        settle(state, &attempt, Outcome::Delivered, now);
        Some(attempt.what)
    };
    std::iter::from_fn(one).collect()
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
    for number in 1..=3 {
        let attempt = next(&mut state, 0).unwrap();
        assert_eq!(seq(&attempt), number);
        assert!(next(&mut state, 0).is_none(), "one is in flight");
        // A failure keeps its place.
        settle(&mut state, &attempt, failed(), 0);
        assert!(next(&mut state, 0).is_none(), "it waits");
        state.wake(20 * SECOND);
        let again = next(&mut state, 20 * SECOND).unwrap();
        assert_eq!(seq(&again), number);
        settle(&mut state, &again, Outcome::Delivered, 20 * SECOND);
        let batch = state.unsaved();
        assert_eq!(batch.cursors[0].1, CursorRow { cursor: number, ..CursorRow::default() });
    }
    assert!(next(&mut state, DAY).is_none());
}

#[test]
fn what_does_not_fit_is_read_from_the_log_without_gap_or_repetition() {
    let mut state = state(&["a/s"]);
    let last = PAGE as i64 * 3;
    (1..=last).for_each(|seq| see(&mut state, seq, "a"));
    let mut seen = Vec::new();
    while let Some(attempt) = next(&mut state, 0) {
        seen.push(seq(&attempt));
        settle(&mut state, &attempt, Outcome::Delivered, 0);
        for wanted in state.ranges(10) {
            let end = last.min(wanted.after + PAGE as i64);
            let events: Vec<_> = (wanted.after + 1..=end).map(waiting).collect();
            state.fill(LogEvents { uid: wanted.uid, events, read_to: end }, 0);
        }
    }
    assert_eq!(seen, (1..=last).collect::<Vec<_>>());
    see(&mut state, last + 1, "a");
    assert_eq!(due(&mut state, 0), [("a/s".into(), last + 1)]);
}

#[test]
fn one_slow_attempt_makes_a_sink_slow_and_three_fast_ones_make_it_fast_again() {
    let mut state = state(&["a/s"]);
    let mut attempt = |took: Duration, outcome: Outcome| {
        let newest = state.newest;
        see(&mut state, newest + 1, "a");
        let attempt = next(&mut state, newest).unwrap();
        state.settle(&attempt, outcome, took, newest, 0);
        state.subscriptions["a/s"].is_slow
    };
    let (fast, slow) = (Duration::ZERO, Duration::from_secs(2));
    assert!(!attempt(fast, Outcome::Delivered));
    assert!(attempt(slow, Outcome::Delivered));
    assert!(attempt(fast, Outcome::Delivered) && attempt(fast, Outcome::Delivered));
    assert!(attempt(slow, Outcome::Delivered), "they count from the beginning");
    assert!(attempt(fast, Outcome::Delivered) && attempt(fast, Outcome::Delivered));
    assert!(!attempt(fast, Outcome::Delivered));
    assert!(attempt(fast, failed()), "so does a failure");
}

#[test]
fn ten_thousand_new_subscriptions_to_a_host_that_hangs_do_not_delay_others() {
    let uids: Vec<String> = (0..10_000).map(|n| format!("bad/{n}")).collect();
    let mut all: Vec<&str> = uids.iter().map(String::as_str).collect();
    all.push("good/s");
    let mut state = state(&all);
    see(&mut state, 1, "bad");
    see(&mut state, 2, "good");
    let began = due(&mut state, 0);
    assert!(began.contains(&("good/s".into(), 2)));
    assert!(began.len() < 100, "{} of one organization", began.len());
}

#[test]
fn after_a_day_an_event_is_dead_and_so_is_what_waited_as_long() {
    let mut state = state(&["a/s"]);
    (1..=2).for_each(|seq| see(&mut state, seq, "a"));
    let late = Notice { at: DAY / 2, ..event(3, "a") };
    state.see(&late, &News::default(), 0);
    let first = next(&mut state, 0).unwrap();
    settle(&mut state, &first, failed(), 100);
    assert!(state.unsaved().dead.is_empty());
    let now = DAY + 200;
    state.wake(now);
    let again = next(&mut state, now).unwrap();
    assert_eq!(seq(&again), 1);
    settle(&mut state, &again, failed(), now);
    let batch = state.unsaved();
    assert_eq!(batch.dead.iter().map(|dead| dead.seq).collect::<Vec<_>>(), [1, 2]);
    let row = &batch.cursors[0].1;
    assert_eq!((row.cursor, row.attempts, row.failing_since), (2, 2, Some(100)));
    state.wake(now + 900 * SECOND);
    let third = next(&mut state, now + 900 * SECOND).unwrap();
    assert_eq!(seq(&third), 3);
    settle(&mut state, &third, Outcome::Delivered, now + 900 * SECOND);
    assert_eq!(state.unsaved().cursors[0].1, CursorRow { cursor: 3, ..CursorRow::default() });
}

#[test]
fn what_waited_for_a_week_is_dead_however_the_sink_does() {
    let mut state = state(&["a/s"]);
    (1..=3).for_each(|seq| see(&mut state, seq, "a"));
    let first = next(&mut state, 0).unwrap();
    settle(&mut state, &first, Outcome::Delivered, 7 * DAY + 2);
    let batch = state.unsaved();
    assert_eq!(
        batch.dead.iter().map(|dead| (dead.seq, &*dead.error)).collect::<Vec<_>>(),
        [(2, "it waited for a week")]
    );
    assert_eq!(batch.cursors[0].1.cursor, 2);
    assert_eq!(due(&mut state, 7 * DAY + 2), [("a/s".into(), 3)]);
}

#[test]
fn a_redelivery_is_tried_once_and_moves_no_cursor() {
    let mut state = state(&["a/s"]);
    see(&mut state, 5, "a");
    let head = next(&mut state, 0).unwrap();
    settle(&mut state, &head, failed(), 0);
    state.unsaved();
    state.redeliver("a/s", vec![redelivery(2)], 0);
    state.redeliver("a/s", vec![redelivery(2)], 0);
    let attempt = next(&mut state, 0).unwrap();
    assert_eq!(attempt.what, What::Redelivery("event 2".into()));
    settle(&mut state, &attempt, Outcome::Delivered, 0);
    let batch = state.unsaved();
    assert!(batch.redelivered.len() == 1 && batch.redelivered[0].error.is_none());
    assert_eq!((batch.cursors[0].1.cursor, batch.cursors[0].1.failing_since), (0, Some(0)));
    state.redeliver("a/s", vec![redelivery(2)], 0);
    assert_eq!(due(&mut state, 0), [("a/s".into(), 5)], "a sink that is well again is tried at once");
}

#[test]
fn redeliveries_and_new_events_take_turns() {
    let mut state = state(&["a/s"]);
    (10..=11).for_each(|seq| see(&mut state, seq, "a"));
    state.redeliver("a/s", vec![redelivery(1), redelivery(2), redelivery(3)], 0);
    let [one, two, three] = [1, 2, 3].map(|seq| What::Redelivery(format!("event {seq}")));
    assert_eq!(all_delivered(&mut state, 0), [one, What::Event(10), two, What::Event(11), three]);
}

#[test]
fn a_redelivery_that_fails_ends_those_behind_it() {
    let mut state = state(&["a/s"]);
    state.redeliver("a/s", vec![redelivery(1), redelivery(2), redelivery(3)], 0);
    let first = next(&mut state, 0).unwrap();
    settle(&mut state, &first, Outcome::Undeliverable("damaged".into()), 0);
    let second = next(&mut state, 0).unwrap();
    settle(&mut state, &second, failed(), 7);
    assert!(next(&mut state, DAY).is_none());
    let batch = state.unsaved();
    let told: Vec<(&str, bool)> = batch.redelivered.iter().map(|one| (&*one.event_id, one.ends_all)).collect();
    assert_eq!(told, [("event 1", false), ("event 2", true)]);
    // What the database says before it knows that is old.
    state.redeliver("a/s", vec![redelivery(2), redelivery(3)], 8);
    assert!(next(&mut state, 8).is_none());
    state.saved(&batch, 9);
    state.redeliver("a/s", vec![redelivery(3)], 9);
    assert_eq!(all_delivered(&mut state, 9), [What::Redelivery("event 3".into())]);
}

#[test]
fn the_floor_is_what_everybody_has_saved() {
    let mut state = state(&["a/s", "b/s"]);
    (1..=10).for_each(|seq| see(&mut state, seq, "a"));
    assert_eq!(state.floor(), 0);
    all_delivered(&mut state, 0);
    assert!(state.catch_up(DAY, 2 * DAY));
    let batch = state.unsaved();
    assert_eq!(state.floor(), 0, "saved is only what the database has");
    state.saved(&batch, 2 * DAY);
    assert_eq!(state.floor(), 9, "the newest row stays");
    assert!(!state.catch_up(DAY, 2 * DAY));
}

#[test]
fn what_we_could_not_send_is_no_fault_of_the_sink() {
    let mut state = state(&["a/s"]);
    see(&mut state, 4, "a");
    state.redeliver("a/s", (1..=3).map(redelivery).collect(), 0);
    for at in [0, 10 * SECOND] {
        state.wake(at);
        let attempt = next(&mut state, at).unwrap();
        assert_eq!(attempt.what, What::Redelivery("event 1".into()));
        settle(&mut state, &attempt, Outcome::NotSent("no key"), at);
        assert!(next(&mut state, at).is_none(), "it is not tried at once again");
        state.redeliver("a/s", (1..=3).map(redelivery).collect(), at);
        assert!(next(&mut state, at).is_none(), "nor when somebody asks");
    }
    assert!(state.unsaved().is_empty(), "nothing has happened");
    let later = 20 * SECOND;
    state.wake(later);
    let sent = all_delivered(&mut state, later);
    let expected = [What::Redelivery("event 1".into()), What::Event(4)];
    assert_eq!((sent.len(), &sent[..2]), (4, &expected[..]));

    // An event is not counted as tried either.
    state.see(&event(5, "a"), &News::default(), later);
    let attempt = next(&mut state, later).unwrap();
    let before = state.unsaved();
    settle(&mut state, &attempt, Outcome::NotSent("no key"), later);
    assert_eq!(before.cursors[0].1.attempts, 0);
    assert!(state.unsaved().is_empty());
    state.wake(later + 10 * SECOND);
    assert_eq!(seq(&next(&mut state, later + 10 * SECOND).unwrap()), 5);
}

#[test]
fn a_paused_subscription_sends_nothing_and_continues_where_it_stood() {
    let mut state = state(&["a/s"]);
    see(&mut state, 1, "a");
    let attempt = next(&mut state, 0).unwrap();
    settle(&mut state, &attempt, failed(), 0);
    state.pause("a/s", true, DAY);
    see(&mut state, 2, "a");
    assert_eq!(due(&mut state, 6 * DAY), []);
    state.bury_paused(6 * DAY);
    assert_eq!(state.unsaved().dead.len(), 0, "a failure of before the pause lets no event die");
    state.pause("a/s", false, 6 * DAY);
    assert_eq!(due(&mut state, 6 * DAY), [("a/s".to_owned(), 1)], "it is tried at once");
}

#[test]
fn events_of_a_paused_subscription_wait_for_a_week() {
    let mut state = state(&["a/s"]);
    state.pause("a/s", true, 0);
    see(&mut state, 1, "a");
    state.bury_paused(7 * DAY);
    assert_eq!(state.unsaved().dead.len(), 0);
    state.bury_paused(7 * DAY + 1);
    assert_eq!(state.unsaved().dead.len(), 1);
}
