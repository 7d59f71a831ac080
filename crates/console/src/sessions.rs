//! The sessions of browsers, in memory: what a cookie stands for, and when that ends.
//!
//! A session ends with its token, after a time without a page, at sign-out, and with the process. A key is a keyed digest
//! of the cookie, so that neither the table nor a memory dump of it has cookies in it.
//!
//! The table is bounded by number and by bytes. Who makes room is decided by shares: an organization, whose administrators
//! may let in any number of people through a provider of their own, pushes out only its own people, and no one pushes out
//! an operator but another one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_core::Micros;
use bowline_pipeline::{HeldToken, OPERATOR, TokenFacts};
use tokio::sync::Semaphore;

use crate::forms::SentForms;

/// Key of a session: a keyed digest of its cookie.
pub(crate) type Key = [u8; 32];

/// Time without a page after which a session ends.
pub(crate) const IDLE: Micros = 30 * 60 * 1_000_000;
/// The same for an operator, who may do everything.
pub(crate) const OPERATOR_IDLE: Micros = 10 * 60 * 1_000_000;
/// Time for which a session may change something after it was unlocked.
pub(crate) const UNLOCKED: Micros = 15 * 60 * 1_000_000;
/// Pages of one session that are made at a time; others wait.
const PAGES_AT_ONCE: usize = 4;
/// Pages of one session that are made or wait.
const MAX_PAGES: usize = 32;
/// Streams of one session that are open at a time.
const STREAMS_AT_ONCE: usize = 2;
/// Sessions of one caller; the longest unused one makes room.
const MAX_OF_ONE: usize = 8;
/// Sessions of people of one organization's providers.
const MAX_OF_ORGANIZATION: usize = 500;
/// Memory for tokens and names of the same.
const MAX_BYTES_OF_ORGANIZATION: usize = 4 << 20;
/// Sessions of all callers.
const MAX_SESSIONS: usize = 10_000;
/// Memory for tokens and names of all sessions.
const MAX_BYTES: usize = 16 << 20;

/// A signed-in browser. Not printable: it has the token.
pub(crate) struct Session {
    pub(crate) token: HeldToken,
    /// UIDP of the caller.
    pub(crate) subject: String,
    /// What the pages call the caller, such as an e-mail address.
    pub(crate) label: String,
    pub(crate) is_operator: bool,
    /// UIDP of the organization's identity provider that the caller signed in with; absent for those of the operator.
    pub(crate) provider: Option<String>,
    /// When the token ends, in microseconds.
    pub(crate) ends_at: Micros,
    /// Permits for pages that are made.
    pub(crate) pages: Semaphore,
    /// Permits for pages that are made or wait.
    pub(crate) queue: Semaphore,
    /// Permits for streams that are open.
    pub(crate) streams: Arc<Semaphore>,
    /// Until when the session may change something, in microseconds; in the past while it only reads.
    unlocked_until: AtomicI64,
    /// Which forms were sent.
    pub(crate) sent: SentForms,
}

impl Session {
    /// The session of a token, which only reads.
    pub(crate) fn new(token: HeldToken, facts: &TokenFacts, label: &str) -> Session {
        let (pages, queue) = Session::permits();
        Session {
            subject: facts.subject.as_str().to_owned(),
            label: label.to_owned(),
            is_operator: facts.subject.as_str() == OPERATOR,
            provider: facts.provider.clone(),
            pages,
            queue,
            streams: Arc::new(Semaphore::new(STREAMS_AT_ONCE)),
            ends_at: facts.expires_at,
            unlocked_until: Session::locked(),
            sent: SentForms::default(),
            token,
        }
    }

    /// Lets the session change something for a time. While it does, this prolongs nothing.
    pub(crate) fn unlock(&self, now: Micros) {
        if self.unlocked_until(now).is_some() {
            return;
        }
        self.unlocked_until.store((now + UNLOCKED).min(self.ends_at), Ordering::Relaxed);
    }

    /// Lets the session only read again.
    pub(crate) fn lock(&self) {
        self.unlocked_until.store(Micros::MIN, Ordering::Relaxed);
    }

    /// Until when the session may change something; absent while it only reads.
    pub(crate) fn unlocked_until(&self, now: Micros) -> Option<Micros> {
        Some(self.unlocked_until.load(Ordering::Relaxed)).filter(|until| now < *until)
    }

    fn locked() -> AtomicI64 {
        AtomicI64::new(Micros::MIN)
    }

    /// Permits for the pages of a new session: for those that are made, and for all.
    pub(crate) fn permits() -> (Semaphore, Semaphore) {
        (Semaphore::new(PAGES_AT_ONCE), Semaphore::new(MAX_PAGES))
    }

    fn share(&self) -> Share {
        match &self.provider {
            _ if self.is_operator => Share::Operator,
            Some(provider) => Share::Organization(provider.split('/').next().unwrap_or_default().to_owned()),
            None => Share::Server,
        }
    }

    fn bytes(&self) -> usize {
        self.token.bytes() + self.label.len() + self.subject.len()
    }

    fn idle(&self) -> Micros {
        if self.is_operator { OPERATOR_IDLE } else { IDLE }
    }
}

/// Callers that make room for each other.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Share {
    Operator,
    /// People who signed in with a provider of the operator.
    Server,
    /// People who signed in with a provider of this organization.
    Organization(String),
}

struct Entry {
    session: Arc<Session>,
    share: Share,
    used_at: Micros,
}

impl Entry {
    /// The session, once it is in the table no more: a form that still waits for its turn changes nothing.
    fn ended(self) -> Arc<Session> {
        self.session.lock();
        self.session
    }

    fn is_over(&self, now: Micros) -> bool {
        now >= self.session.ends_at || now >= self.used_at + self.session.idle()
    }
}

/// All sessions of this process.
pub(crate) struct Sessions {
    entries: Mutex<HashMap<Key, Entry>>,
    max: usize,
    max_bytes: usize,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions::bounded(MAX_SESSIONS, MAX_BYTES)
    }
}

impl Sessions {
    fn bounded(max: usize, max_bytes: usize) -> Sessions {
        Sessions { entries: Mutex::default(), max, max_bytes }
    }

    pub(crate) fn begin(&self, key: Key, session: Session, now: Micros) {
        let mut entries = self.lock();
        entries.extract_if(|_, entry| entry.is_over(now)).for_each(|(_, entry)| drop(entry.ended()));
        let (share, new) = (session.share(), session.bytes());
        let is_own = |one: &Entry| one.session.subject == session.subject;
        while usage(&entries, is_own).0 >= MAX_OF_ONE && remove_oldest(&mut entries, is_own) {}
        if matches!(share, Share::Organization(_)) {
            let in_share = |one: &Entry| one.share == share;
            let is_full = |(count, bytes)| count >= MAX_OF_ORGANIZATION || bytes + new > MAX_BYTES_OF_ORGANIZATION;
            while is_full(usage(&entries, in_share)) && remove_oldest(&mut entries, in_share) {}
        }
        while let Some(size) = self.what_is_full(&entries, new)
            && let Some(largest) = largest_share(&entries, size)
            && remove_oldest(&mut entries, |one| one.share == largest)
        {}
        entries.insert(key, Entry { session: Arc::new(session), share, used_at: now });
    }

    /// What a session takes of the bound that one more of these bytes would exceed; absent where it fits.
    fn what_is_full(&self, entries: &HashMap<Key, Entry>, new: usize) -> Option<fn(&Session) -> usize> {
        let (count, bytes) = usage(entries, |_| true);
        if count >= self.max {
            return Some(|_| 1);
        }
        (bytes + new > self.max_bytes).then_some(Session::bytes)
    }

    /// The session, which is used by this.
    pub(crate) fn find(&self, key: &Key, now: Micros) -> Option<Arc<Session>> {
        let mut entries = self.lock();
        let entry = entries.get_mut(key)?;
        if entry.is_over(now) {
            entries.remove(key).map(Entry::ended);
            return None;
        }
        entry.used_at = entry.used_at.max(now);
        Some(entry.session.clone())
    }

    /// The session, which is not used by this: what goes on by itself keeps no session from ending.
    pub(crate) fn peek(&self, key: &Key, now: Micros) -> Option<Arc<Session>> {
        let entries = self.lock();
        entries.get(key).filter(|entry| !entry.is_over(now)).map(|entry| entry.session.clone())
    }

    pub(crate) fn end(&self, key: &Key) -> Option<Arc<Session>> {
        self.lock().remove(key).map(Entry::ended)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        // Nothing panics while it is locked.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Number and bytes of some sessions.
fn usage(entries: &HashMap<Key, Entry>, of: impl Fn(&Entry) -> bool) -> (usize, usize) {
    let some = entries.values().filter(|entry| of(entry));
    some.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.session.bytes()))
}

/// The share that takes the most of a size; absent where operators alone are signed in.
fn largest_share(entries: &HashMap<Key, Entry>, size: fn(&Session) -> usize) -> Option<Share> {
    let mut shares: HashMap<&Share, usize> = HashMap::new();
    for entry in entries.values().filter(|entry| !entry.session.is_operator) {
        *shares.entry(&entry.share).or_default() += size(&entry.session);
    }
    shares.into_iter().max_by_key(|(_, taken)| *taken).map(|(share, _)| share.clone())
}

/// Removes the longest unused of some sessions; false where there is none.
fn remove_oldest(entries: &mut HashMap<Key, Entry>, of: impl Fn(&Entry) -> bool) -> bool {
    let oldest = entries.iter().filter(|(_, entry)| of(entry)).min_by_key(|(_, entry)| entry.used_at);
    let Some(key) = oldest.map(|(key, _)| *key) else { return false };
    entries.remove(&key).map(Entry::ended).is_some()
}

#[cfg(test)]
mod tests {
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
            sessions.begin(
                key(70_000 + number),
                of_provider("c/1", &format!("c{number}"), half - 100),
                number as Micros,
            );
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
    fn operators_are_signed_out_sooner() {
        let sessions = Sessions::default();
        sessions.begin(key(1), Session { is_operator: true, ..session("operator", 3600 * SECOND) }, 0);
        assert!(sessions.find(&key(1), OPERATOR_IDLE - 1).is_some());
        assert!(sessions.find(&key(1), 2 * OPERATOR_IDLE).is_none());
    }
}
