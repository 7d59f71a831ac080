//! Forms that change something: each is sent once, by a page of the same session, within a time.
//!
//! The id of a form is made without being stored: it says when it was made, and carries a keyed digest of that, of the
//! session and of what the form is for. Ids that were used are remembered until they would have expired anyway.
//!
//! This is the one file that may make an [`Unlocked`]: see the structure test.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_core::{Detail, Error, Micros, Reason, Result};
use bowline_pipeline::Unlocked;

use crate::app::App;
use crate::guard::{Form, same};
use crate::sessions::{Key, Session};

/// Time in which a form must be sent after its page was made.
const LIFETIME: Micros = 30 * 60 * 1_000_000;
/// Forms that one session may send in that time.
const MAX_OF_ONE: usize = 300;
/// Forms that all sessions may send in that time: more than those of one organization's people together.
const MAX_OF_ALL: usize = 200_000;
/// Name of the field with the id.
pub(crate) const ID: &str = "form";

type Nonce = [u8; 16];

/// Forms that were sent, and are not taken again.
#[derive(Default)]
pub(crate) struct SentForms(Mutex<Used>);

#[derive(Default)]
struct Used {
    /// By the time when they were sent.
    order: VecDeque<(Micros, Key, Nonce)>,
    nonces: HashSet<Nonce>,
    of_session: HashMap<Key, usize>,
}

/// Why a form is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No page of this session has it: that of an earlier session, or a forged one.
    Foreign,
    /// Its page is too old.
    Stale,
    /// It was sent before.
    Used,
}

impl Refusal {
    /// What the page says.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Refusal::Foreign => "This form is not from a page of your session, perhaps because you signed in again.",
            Refusal::Stale => "This form is older than half an hour.",
            Refusal::Used => "This form was sent before, and a form works once.",
        }
    }
}

/// What the id of a form says, once it is known to be of this session and in time.
pub(crate) struct FormId {
    key: Key,
    nonce: Nonce,
    method: usize,
}

impl SentForms {
    /// An id for a form of this session that sends this method.
    pub(crate) fn issue(app: &App, key: &Key, method: usize) -> String {
        let (now, random) = (app.now(), app.random());
        let mut id = now.to_be_bytes().to_vec();
        id.extend_from_slice(&random[..16]);
        let digest = digest(app, key, method, &id);
        id.extend_from_slice(&digest);
        URL_SAFE_NO_PAD.encode(id)
    }

    /// Reads the id of a form, which stays usable.
    pub(crate) fn check(
        &self,
        app: &App,
        key: &Key,
        method: usize,
        form: &Form,
    ) -> std::result::Result<FormId, Refusal> {
        let text = form.fields().get(ID).unwrap_or_default();
        let id = URL_SAFE_NO_PAD.decode(text).map_err(|_| Refusal::Foreign)?;
        let (said, given) = id.split_at_checked(24).ok_or(Refusal::Foreign)?;
        let expected = URL_SAFE_NO_PAD.encode(digest(app, key, method, said));
        if !same(&expected, &URL_SAFE_NO_PAD.encode(given)) {
            return Err(Refusal::Foreign);
        }
        let (made, nonce) = said.split_at(8);
        let made = Micros::from_be_bytes(made.try_into().map_err(|_| Refusal::Foreign)?);
        let nonce: Nonce = nonce.try_into().map_err(|_| Refusal::Foreign)?;
        if app.now() >= made.saturating_add(LIFETIME) {
            return Err(Refusal::Stale);
        }
        if self.lock().nonces.contains(&nonce) {
            return Err(Refusal::Used);
        }
        Ok(FormId { key: *key, nonce, method })
    }

    /// Uses an id up, for one call of its method in an unlocked session.
    ///
    /// # Errors
    /// FAILED_PRECONDITION: changes are locked. RESOURCE_EXHAUSTED: the session, or all together, sent too many forms.
    pub(crate) fn use_up(&self, app: &App, session: &Session, id: &FormId) -> Result<Unlocked> {
        let now = app.now();
        let Some(until) = session.unlocked_until(now) else {
            let text = "Precondition failed: changes are locked; unlock them and send the form again";
            return Err(Error::new(Reason::FailedPrecondition, text));
        };
        self.take(id, now)?;
        Ok(Unlocked::by_form(id.method, until))
    }

    /// Uses an id up, and lets the session change something for a time.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED: the session, or all together, sent too many forms.
    pub(crate) fn unlock(&self, app: &App, session: &Session, id: &FormId) -> Result<()> {
        self.take(id, app.now())?;
        session.unlock(app.now());
        Ok(())
    }

    fn take(&self, id: &FormId, now: Micros) -> Result<()> {
        let mut used = self.lock();
        used.forget(now - LIFETIME);
        let own = used.of_session.get(&id.key).copied().unwrap_or_default();
        if own >= MAX_OF_ONE || used.order.len() >= MAX_OF_ALL {
            let text = "Resource exhausted: too many forms were sent in half an hour; wait, or use the command line";
            let wait = std::time::Duration::from_secs(60);
            return Err(Error::new(Reason::RateLimited, text).with(Detail::RetryAfter(wait)));
        }
        if !used.nonces.insert(id.nonce) {
            return Err(Error::new(Reason::FailedPrecondition, Refusal::Used.sentence()));
        }
        used.order.push_back((now, id.key, id.nonce));
        *used.of_session.entry(id.key).or_default() += 1;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Used> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    /// Forgets what was sent before a time: those forms have expired.
    fn forget(&mut self, before: Micros) {
        while let Some((_, key, nonce)) = self.order.pop_front_if(|(sent, ..)| *sent < before) {
            self.nonces.remove(&nonce);
            if let Some(count) = self.of_session.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.of_session.remove(&key);
                }
            }
        }
    }
}

fn digest(app: &App, key: &Key, method: usize, said: &[u8]) -> [u8; 32] {
    let name = app.api.contract().method(method).full_name.as_bytes();
    app.api.mac("form of a method", &[key.as_slice(), said, name].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(session: u8, number: usize) -> FormId {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&number.to_be_bytes());
        nonce[8] = session;
        FormId { key: [session; 32], nonce, method: 0 }
    }

    #[test]
    fn a_form_is_taken_once_and_forgotten_in_time() {
        let sent = SentForms::default();
        sent.take(&id(1, 1), 10).unwrap();
        assert!(sent.take(&id(1, 1), 11).is_err());
        sent.take(&id(2, 1), 11).unwrap();
        sent.take(&id(1, 2), 10 + LIFETIME + 1).unwrap();
        let used = sent.lock();
        assert_eq!((used.order.len(), used.nonces.len(), used.of_session.len()), (2, 2, 2));
    }

    #[test]
    fn forms_of_one_session_are_bounded() {
        let sent = SentForms::default();
        for number in 0..MAX_OF_ONE {
            sent.take(&id(1, number), 10).unwrap();
        }
        assert!(sent.take(&id(1, MAX_OF_ONE), 10).is_err());
        sent.take(&id(2, 0), 10).unwrap();
        sent.take(&id(1, MAX_OF_ONE), 11 + LIFETIME).unwrap();
        assert_eq!(sent.lock().order.len(), 1, "the others have expired");
    }
}
