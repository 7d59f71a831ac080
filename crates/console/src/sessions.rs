//! The sessions of browsers, in memory: what a cookie stands for, and when that ends.
//!
//! A session ends with its token, after half an hour without a page, at sign-out, and with the process. A key is a keyed digest
//! of the cookie, so that neither the table nor a memory dump of it has cookies in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_core::Micros;
use bowline_pipeline::HeldToken;

/// Key of a session: a keyed digest of its cookie.
pub(crate) type Key = [u8; 32];

/// Time without a page after which a session ends.
pub(crate) const IDLE: Micros = 30 * 60 * 1_000_000;
/// Sessions of one caller; the longest unused one makes room.
const MAX_OF_ONE: usize = 8;
/// Sessions of all callers; the longest unused one makes room.
const MAX_SESSIONS: usize = 10_000;

/// A signed-in browser. Not printable: it has the token.
pub(crate) struct Session {
    pub(crate) token: HeldToken,
    /// UIDP of the caller.
    pub(crate) subject: String,
    /// What the pages call the caller, such as an e-mail address.
    pub(crate) label: String,
    pub(crate) is_operator: bool,
    /// When the token ends, in microseconds.
    pub(crate) ends_at: Micros,
}

struct Entry {
    session: Arc<Session>,
    used_at: Micros,
}

impl Entry {
    fn is_over(&self, now: Micros) -> bool {
        now >= self.session.ends_at || now >= self.used_at + IDLE
    }
}

/// All sessions of this process.
pub(crate) struct Sessions {
    entries: Mutex<HashMap<Key, Entry>>,
    max: usize,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions::bounded(MAX_SESSIONS)
    }
}

impl Sessions {
    fn bounded(max: usize) -> Sessions {
        Sessions { entries: Mutex::default(), max }
    }

    pub(crate) fn begin(&self, key: Key, session: Session, now: Micros) {
        let mut entries = self.lock();
        entries.retain(|_, entry| !entry.is_over(now));
        let of_one = entries.values().filter(|entry| entry.session.subject == session.subject).count();
        if of_one >= MAX_OF_ONE {
            make_room(&mut entries, |entry| entry.session.subject == session.subject);
        } else if entries.len() >= self.max {
            make_room(&mut entries, |_| true);
        }
        entries.insert(key, Entry { session: Arc::new(session), used_at: now });
    }

    /// The session, which is used by this.
    pub(crate) fn find(&self, key: &Key, now: Micros) -> Option<Arc<Session>> {
        let mut entries = self.lock();
        let entry = entries.get_mut(key)?;
        if entry.is_over(now) {
            entries.remove(key);
            return None;
        }
        entry.used_at = entry.used_at.max(now);
        Some(entry.session.clone())
    }

    pub(crate) fn end(&self, key: &Key) -> Option<Arc<Session>> {
        self.lock().remove(key).map(|entry| entry.session)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        // Nothing panics while it is locked.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make_room(entries: &mut HashMap<Key, Entry>, may_go: impl Fn(&Entry) -> bool) {
    let oldest = entries.iter().filter(|(_, entry)| may_go(entry)).min_by_key(|(_, entry)| entry.used_at);
    if let Some(key) = oldest.map(|(key, _)| *key) {
        entries.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Micros = 1_000_000;

    fn session(subject: &str, ends_at: Micros) -> Session {
        Session {
            token: HeldToken::new("t".into()),
            subject: subject.into(),
            label: subject.into(),
            is_operator: false,
            ends_at,
        }
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
        let sessions = Sessions::bounded(20);
        for number in 0..30 {
            sessions.begin(key(number), session(&number.to_string(), 3600 * SECOND), number as Micros);
        }
        assert_eq!(sessions.lock().len(), 20);
        assert!(sessions.find(&key(9), 40).is_none() && sessions.find(&key(10), 40).is_some());
    }
}
