//! Forms of one method within a page that says what it is about: the last one before something changes, and those that
//! only read but must not be sent by a link.

use bowline_contract::Method;
use maud::{Markup, html};

use crate::app::is_page;
use crate::forms::{self, issue};
use crate::method::{METHOD, NAME, NEXT, PREFIX, UNREAD, unread};
use crate::unlock::UNLOCK;
use crate::visit::Visit;

/// Address of the page, to come back to.
fn here(visit: &Visit) -> String {
    visit.query.address(visit.path, &["notice"], &[])
}

/// What every such form has.
fn fields_of<M: Method>(visit: &Visit, fields: &[(String, String)], next: &str) -> Markup {
    html! {
        input type="hidden" name=(forms::ID) value=(issue(&visit.app, (&visit.key, &visit.session), M::FULL_NAME));
        input type="hidden" name=(NAME) value=(M::FULL_NAME);
        input type="hidden" name="back" value=(here(visit));
        @if visit.query.get(UNREAD).is_some() { input type="hidden" name=(UNREAD) value="true"; }
        @if !next.is_empty() { input type="hidden" name=(NEXT) value=(next); }
        @for (path, value) in fields { input type="hidden" name={ (PREFIX) (path) } value=(value); }
    }
}

/// The form of a method with these fields, which the page shows otherwise, and with inputs for others. What comes after it
/// is at `next`, with the id of what was made at its end.
pub(crate) fn confirm<M: Method>(
    visit: &Visit,
    fields: &[(String, String)],
    next: &str,
    label: &str,
    inputs: Option<&Markup>,
) -> Markup {
    let previewable = visit.app.api.contract().by_full_name(M::FULL_NAME).is_some_and(|method| method.previewable);
    let is_unlocked = visit.session.unlocked_until(visit.app.now()).is_some();
    // A form cannot return to an address that is too long.
    let is_short = is_page(&here(visit));
    html! {
        @if visit.query.get(UNREAD).is_some() { (unread()) }
        @if !is_unlocked && is_short { (unlock(visit, label)) }
        // What is typed would be lost with the form that unlocks.
        @if is_unlocked || !is_short || inputs.is_none() {
            form.request method="post" action=(METHOD) {
                (fields_of::<M>(visit, fields, next))
                @if let Some(inputs) = inputs { (inputs) }
                div.buttons {
                    button.quiet type="submit" name="do" value="code" { "Show as code" }
                    @if previewable { button.quiet type="submit" name="do" value="preview" { "Preview" } }
                    @if is_unlocked {
                        button type="submit" name="do" value="send" { (label) }
                    } @else if !is_short {
                        button type="submit" name="do" value="unlock" { "Unlock changes for 15 minutes" }
                    }
                }
            }
        }
    }
}

fn unlock(visit: &Visit, label: &str) -> Markup {
    html! {
        form method="post" action=(UNLOCK) {
            input type="hidden" name=(forms::ID) value=(issue(&visit.app, (&visit.key, &visit.session), UNLOCK));
            input type="hidden" name="back" value=(here(visit));
            p { "This session only reads. Unlock changes first: this page then has the button \"" (label) "\"." }
            button type="submit" { "Unlock changes for 15 minutes" }
        }
    }
}

/// The form of a method that only reads, but is not called by an address: it has a secret, or makes this server call out.
pub(crate) fn call_form<M: Method>(
    visit: &Visit,
    fields: &[(String, String)],
    next: &str,
    label: &str,
    inputs: Option<&Markup>,
) -> Markup {
    html! {
        form.request method="post" action=(METHOD) {
            (fields_of::<M>(visit, fields, next))
            @if let Some(inputs) = inputs { (inputs) }
            button type="submit" name="do" value="call" { (label) }
        }
    }
}
