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
/// States of a session that changes nothing: one that may be unlocked, and one that is over.
const LOCKED: Micros = Micros::MIN + 1;
const ENDED: Micros = Micros::MIN;
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
    pub(crate) pages: Arc<Semaphore>,
    /// Permits for pages that are made or wait.
    pub(crate) queue: Arc<Semaphore>,
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

    /// Lets the session change something for a time. While it does, this prolongs nothing. False where the session has
    /// ended.
    pub(crate) fn unlock(&self, now: Micros) -> bool {
        let until = (now + UNLOCKED).min(self.ends_at);
        self.set(|before| if now < before { before } else { until })
    }

    /// Lets the session only read again.
    pub(crate) fn lock(&self) {
        self.set(|_| LOCKED);
    }

    /// Ends the session for good, also for forms and pages that wait for their turn.
    fn end(&self) {
        self.unlocked_until.store(ENDED, Ordering::SeqCst);
    }

    /// Whether the session is over, while something still has it.
    pub(crate) fn has_ended(&self) -> bool {
        self.unlocked_until.load(Ordering::SeqCst) == ENDED
    }

    fn set(&self, until: impl Fn(Micros) -> Micros) -> bool {
        let next = |before| (before != ENDED).then(|| until(before));
        self.unlocked_until.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_ok()
    }

    /// Until when the session may change something; absent while it only reads.
    pub(crate) fn unlocked_until(&self, now: Micros) -> Option<Micros> {
        Some(self.unlocked_until.load(Ordering::SeqCst)).filter(|until| now < *until)
    }

    fn locked() -> AtomicI64 {
        AtomicI64::new(LOCKED)
    }

    /// Permits for the pages of a new session: for those that are made, and for all.
    pub(crate) fn permits() -> (Arc<Semaphore>, Arc<Semaphore>) {
        (Arc::new(Semaphore::new(PAGES_AT_ONCE)), Arc::new(Semaphore::new(MAX_PAGES)))
    }

    /// Whose pages make room for each other: an organization, or a person of the operator's providers.
    pub(crate) fn tenant(&self) -> &str {
        self.provider.as_deref().unwrap_or(&self.subject).split('/').next().unwrap_or_default()
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
    /// The session, once it is in the table no more: what still waits for its turn reads and changes nothing.
    fn ended(self) -> Arc<Session> {
        self.session.end();
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

    /// The session, without counting as use of it: a stream does not prolong a session.
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
mod tests;
