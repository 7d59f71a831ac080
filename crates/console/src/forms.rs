//! Forms that change something: each is sent once, by a page of the same session, within a time.
//!
//! The id of a form says when it was made and which one of the session's forms it is, and carries a keyed digest of that, of
//! the session and of what the form is for. A session remembers of its newest forms which were sent: a bit for each, so
//! that no one's forms take room that others need, and that the memory ends with the session.
//!
//! This is the one file that may make an [`Unlocked`]: see the structure test.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_core::{Error, Micros, Reason, Result};
use bowline_pipeline::Unlocked;

use crate::app::App;
use crate::guard::{Form, same};
use crate::sessions::{Key, Session};

/// Time in which a form must be sent after its page was made.
const LIFETIME: Micros = 30 * 60 * 1_000_000;
/// Forms of one session that can be sent: the newest ones.
const WINDOW: u64 = 2048;
/// Name of the field with the id.
pub(crate) const ID: &str = "form";

/// Which forms of a session were made and sent.
pub(crate) struct SentForms(Mutex<Window>);

struct Window {
    /// Number of the next form.
    next: u64,
    /// A bit for each of the newest forms, by its number: whether it was sent.
    sent: [u64; (WINDOW / 64) as usize],
}

impl Default for SentForms {
    fn default() -> SentForms {
        SentForms(Mutex::new(Window { next: 0, sent: [0; (WINDOW / 64) as usize] }))
    }
}

impl SentForms {
    fn make(&self) -> u64 {
        let mut window = self.lock();
        let number = window.next;
        window.next += 1;
        let (word, bit) = position(number);
        window.sent[word] &= !bit;
        number
    }

    /// Marks a form as sent, if it may be: of two that come at once, the first is.
    fn take(&self, number: u64) -> std::result::Result<(), Refusal> {
        let mut window = self.lock();
        window.state(number)?;
        let (word, bit) = position(number);
        window.sent[word] |= bit;
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Window> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn state(&self, number: u64) -> std::result::Result<(), Refusal> {
        let age = self.next.checked_sub(number).filter(|age| *age > 0).ok_or(Refusal::Foreign)?;
        let (word, bit) = position(number);
        match age {
            age if age > WINDOW => Err(Refusal::Stale),
            _ if self.sent[word] & bit != 0 => Err(Refusal::Used),
            _ => Ok(()),
        }
    }
}

/// The word and the bit of a form's number.
fn position(number: u64) -> (usize, u64) {
    (((number % WINDOW) / 64) as usize, 1 << (number % 64))
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
            Refusal::Stale => "This form is older than half an hour, or many were opened since.",
            Refusal::Used => "This form was sent before, and a form works once.",
        }
    }

    /// The error of a form that is not shown again.
    pub(crate) fn error(self) -> Error {
        Error::new(Reason::FailedPrecondition, self.sentence())
    }
}

/// What the id of a form says, once it is known to be of this session and in time.
pub(crate) struct FormId {
    session: Arc<Session>,
    number: u64,
    /// Position of the method that it sends; absent for a form of the console's own.
    method: Option<usize>,
}

/// An id for a form of this session. `purpose` is the method that it sends, or its address.
pub(crate) fn issue(app: &App, (key, session): (&Key, &Arc<Session>), purpose: &str) -> String {
    let mut id = app.now().to_be_bytes().to_vec();
    id.extend_from_slice(&session.sent.make().to_be_bytes());
    let digest = digest(app, key, purpose, &id);
    id.extend_from_slice(&digest);
    URL_SAFE_NO_PAD.encode(id)
}

/// Reads the id of a form, which stays usable.
pub(crate) fn check(
    app: &App,
    (key, session): (&Key, &Arc<Session>),
    purpose: &str,
    form: &Form,
) -> std::result::Result<FormId, Refusal> {
    let text = form.fields().get(ID).unwrap_or_default();
    let id = URL_SAFE_NO_PAD.decode(text).map_err(|_| Refusal::Foreign)?;
    let (said, given) = id.split_at_checked(16).ok_or(Refusal::Foreign)?;
    let expected = URL_SAFE_NO_PAD.encode(digest(app, key, purpose, said));
    if !same(&expected, &URL_SAFE_NO_PAD.encode(given)) {
        return Err(Refusal::Foreign);
    }
    let (made, number) = said.split_at(8);
    let made = Micros::from_be_bytes(made.try_into().map_err(|_| Refusal::Foreign)?);
    let number = u64::from_be_bytes(number.try_into().map_err(|_| Refusal::Foreign)?);
    if app.now() >= made.saturating_add(LIFETIME) {
        return Err(Refusal::Stale);
    }
    session.sent.lock().state(number)?;
    let method = app.api.contract().by_full_name(purpose).map(|method| method.index);
    Ok(FormId { session: session.clone(), number, method })
}

impl FormId {
    /// Uses the id up, for one call of its method in an unlocked session.
    ///
    /// # Errors
    /// FAILED_PRECONDITION: changes are locked, or the form was sent before.
    pub(crate) fn use_up(&self, app: &App) -> Result<Unlocked> {
        let until = self.session.unlocked_until(app.now()).ok_or_else(|| {
            let text = "Precondition failed: changes are locked; unlock them and send the form again";
            Error::new(Reason::FailedPrecondition, text)
        })?;
        let method = self.method.ok_or_else(|| Error::internal("a form without a method was sent to one"))?;
        self.session.sent.take(self.number).map_err(Refusal::error)?;
        Ok(Unlocked::by_form(method, until))
    }

    /// Uses the id up, and lets its session change something for a time.
    ///
    /// # Errors
    /// FAILED_PRECONDITION: the form was sent before, or its session has ended.
    pub(crate) fn unlock(&self, app: &App) -> Result<()> {
        self.session.sent.take(self.number).map_err(Refusal::error)?;
        if self.session.unlock(app.now()) { Ok(()) } else { Err(Refusal::Foreign.error()) }
    }
}

fn digest(app: &App, key: &Key, purpose: &str, said: &[u8]) -> [u8; 32] {
    app.api.mac("form of a method", &[key.as_slice(), said, purpose.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_taken_once() {
        let forms = SentForms::default();
        let (one, two) = (forms.make(), forms.make());
        assert_eq!(forms.take(two), Ok(()));
        assert_eq!(forms.take(two), Err(Refusal::Used));
        assert_eq!(forms.take(one), Ok(()));
        assert_eq!(forms.take(two + 1), Err(Refusal::Foreign), "one that was not made");
    }

    #[test]
    fn the_newest_forms_can_be_sent() {
        let forms = SentForms::default();
        let numbers: Vec<u64> = (0..=WINDOW).map(|_| forms.make()).collect();
        assert_eq!(forms.take(numbers[0]), Err(Refusal::Stale));
        assert_eq!(forms.take(numbers[1]), Ok(()));
        let next = forms.make();
        assert_eq!(forms.take(next), Ok(()));
        assert_eq!(forms.take(numbers[1]), Err(Refusal::Stale), "whose place another one has");
        for number in &numbers[2..] {
            assert_eq!(forms.take(*number), Ok(()), "{number}");
        }
    }
}
