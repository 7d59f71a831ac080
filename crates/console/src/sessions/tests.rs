use super::*;

const SECOND: Micros = 1_000_000;

fn session(subject: &str, ends_at: Micros) -> Session {
    let (pages, queue) = Session::permits();
    Session {
        token: HeldToken::new("t".into()),
        subject: subject.into(),
        label: subject.into(),
        is_operator: false,
        provider: None,
        ends_at,
        pages,
        queue,
        streams: Arc::new(Semaphore::new(STREAMS_AT_ONCE)),
        unlocked_until: Session::locked(),
        sent: SentForms::default(),
    }
}

/// A session of someone who signed in with a provider of an organization.
fn of_provider(provider: &str, subject: &str, token: usize) -> Session {
    let token = HeldToken::new("t".repeat(token));
    Session { token, provider: Some(provider.into()), ..session(subject, 3600 * SECOND) }
}

fn key(number: usize) -> Key {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

#[test]
fn sessions_end_unused_and_with_their_token() {
    let sessions = Sessions::default();
    sessions.begin(key(1), session("a", 3600 * SECOND), 0);
    assert!(sessions.find(&key(1), IDLE - 1).is_some(), "used in time");
    assert!(sessions.find(&key(1), 2 * IDLE - 2).is_some(), "and again");
    assert!(sessions.find(&key(1), 3600 * SECOND).is_none(), "the token has ended");
    sessions.begin(key(2), session("a", 3600 * SECOND), 0);
    assert!(sessions.find(&key(2), IDLE).is_none(), "unused for too long");
    assert!(sessions.find(&key(2), 1).is_none(), "and gone for good");
    sessions.begin(key(3), session("a", 3600 * SECOND), 0);
    assert!(sessions.end(&key(3)).is_some() && sessions.find(&key(3), 1).is_none());
}

#[test]
fn what_only_looks_at_a_session_does_not_use_it() {
    let sessions = Sessions::default();
    sessions.begin(key(1), session("a", 3600 * SECOND), 0);
    assert!(sessions.peek(&key(1), IDLE - 1).is_some() && sessions.peek(&key(2), 1).is_none());
    assert!(sessions.peek(&key(1), IDLE).is_none() && sessions.find(&key(1), IDLE).is_none());
}

#[test]
fn the_longest_unused_makes_room_for_the_same_caller() {
    let sessions = Sessions::default();
    let end = 3600 * SECOND;
    sessions.begin(key(100), session("b", end), 0);
    for number in 0..MAX_OF_ONE {
        sessions.begin(key(number), session("a", end), number as Micros);
    }
    assert!(sessions.find(&key(0), 50).is_some());
    sessions.begin(key(50), session("a", end), 60);
    assert!(sessions.find(&key(1), 61).is_none(), "the longest unused of this caller");
    assert!(sessions.find(&key(0), 61).is_some() && sessions.find(&key(100), 61).is_some());
}

#[test]
fn there_are_never_more_than_fit() {
    let sessions = Sessions::bounded(20, MAX_BYTES);
    for number in 0..30 {
        sessions.begin(key(number), session(&number.to_string(), 3600 * SECOND), number as Micros);
    }
    assert_eq!(sessions.lock().len(), 20);
    assert!(sessions.find(&key(9), 40).is_none() && sessions.find(&key(10), 40).is_some());
}

#[test]
fn an_organization_pushes_out_only_its_own_people() {
    let sessions = Sessions::default();
    let operator = Session { is_operator: true, ..session("operator", 3600 * SECOND) };
    sessions.begin(key(90_000), operator, 0);
    sessions.begin(key(90_001), session("person", 3600 * SECOND), 0);
    sessions.begin(key(90_002), of_provider("b/2", "other", 1), 0);
    for number in 0..=MAX_OF_ORGANIZATION {
        let provider = format!("a/{}", number % 3);
        sessions.begin(key(number), of_provider(&provider, &number.to_string(), 1), number as Micros);
    }
    assert!(sessions.find(&key(0), 1).is_none(), "the oldest of the organization, whatever provider it has");
    for kept in [1, MAX_OF_ORGANIZATION, 90_000, 90_001, 90_002] {
        assert!(sessions.find(&key(kept), 1).is_some(), "{kept}");
    }
    let half = MAX_BYTES_OF_ORGANIZATION / 2;
    for number in 0..3 {
        sessions.begin(key(70_000 + number), of_provider("c/1", &format!("c{number}"), half - 100), number as Micros);
    }
    assert!(sessions.find(&key(70_000), 4).is_none(), "the bytes of an organization are bounded");
    assert!(sessions.find(&key(70_002), 4).is_some());
}

#[test]
fn bytes_are_bounded_and_operators_stay() {
    let sessions = Sessions::bounded(100, 5000);
    let operator = Session { is_operator: true, ..session("operator", 3600 * SECOND) };
    sessions.begin(key(500), operator, 0);
    sessions.begin(key(501), of_provider("small/1", "s", 900), 1);
    for number in 0..20 {
        let token = HeldToken::new("t".repeat(900));
        let person = Session { token, ..session(&format!("p{number}"), 3600 * SECOND) };
        sessions.begin(key(number), person, 2 + number as Micros);
        assert!(usage(&sessions.lock(), |_| true).1 <= 5000);
    }
    assert!(sessions.find(&key(500), 30).is_some(), "the operator's session");
    assert!(sessions.find(&key(501), 30).is_some(), "that of a small share");
    assert!(sessions.find(&key(15), 30).is_none() && sessions.find(&key(19), 30).is_some());
}

#[test]
fn many_small_sessions_do_not_push_out_a_few_large_ones() {
    let sessions = Sessions::bounded(20, MAX_BYTES);
    sessions.begin(key(500), of_provider("large/1", "l", 9000), 0);
    for number in 0..40 {
        let provider = format!("small{}/1", number % 2);
        sessions.begin(key(number), of_provider(&provider, &number.to_string(), 1), 1 + number as Micros);
    }
    assert!(sessions.find(&key(500), 50).is_some() && sessions.lock().len() == 20);
}

#[test]
fn a_session_that_has_ended_is_not_unlocked_again() {
    let sessions = Sessions::default();
    sessions.begin(key(1), session("a", 3600 * SECOND), 0);
    let waiting = sessions.find(&key(1), 1).unwrap();
    assert!(waiting.unlock(1) && waiting.unlocked_until(2).is_some());
    waiting.lock();
    assert!(!waiting.has_ended() && waiting.unlocked_until(2).is_none());
    assert!(waiting.unlock(2), "what is locked can be unlocked");
    assert_eq!(waiting.unlocked_until(3), Some(2 + UNLOCKED));
    assert!(waiting.unlock(5) && waiting.unlocked_until(6) == Some(2 + UNLOCKED), "which prolongs nothing");
    sessions.end(&key(1));
    assert!(waiting.has_ended() && waiting.unlocked_until(6).is_none());
    waiting.lock();
    assert!(!waiting.unlock(7) && waiting.has_ended() && waiting.unlocked_until(8).is_none());
}

#[test]
fn operators_are_signed_out_sooner() {
    let sessions = Sessions::default();
    sessions.begin(key(1), Session { is_operator: true, ..session("operator", 3600 * SECOND) }, 0);
    assert!(sessions.find(&key(1), OPERATOR_IDLE - 1).is_some());
    assert!(sessions.find(&key(1), 2 * OPERATOR_IDLE).is_none());
}
