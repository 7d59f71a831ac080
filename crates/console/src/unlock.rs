//! A session rests reading only. Here a person lets it change something for a time, and locks it again.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::Response;
use bowline_core::Error;
use bowline_fronts::LogFields;
use bowline_pipeline::RequestOrigin;
use maud::{Markup, html};
use prost_types::Timestamp;

use crate::SMALL_FORM;
use crate::app::{App, is_page};
use crate::forms::{self, Refusal};
use crate::guard::{foreign, own_form, same};
use crate::method::METHOD;
use crate::shell;
use crate::sign_in::{HOME, see_other, to_sign_in};
use crate::values::time;
use crate::visit::Visit;

/// Address where a session is unlocked.
pub(crate) const UNLOCK: &str = "/console/unlock";
/// Address where it is locked again.
pub(crate) const LOCK: &str = "/console/lock";

/// `POST /console/unlock`: the session may change something for a time.
pub(crate) async fn unlock(
    app: State<Arc<App>>,
    origin: Extension<RequestOrigin>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    set(UNLOCK, app, origin, &headers, &body)
}

/// `POST /console/lock`: the session only reads again.
pub(crate) async fn lock(
    app: State<Arc<App>>,
    origin: Extension<RequestOrigin>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    set(LOCK, app, origin, &headers, &body)
}

fn set(
    action: &str,
    State(app): State<Arc<App>>,
    Extension(origin): Extension<RequestOrigin>,
    headers: &HeaderMap,
    body: &[u8],
) -> Response {
    let refused = |error: Error| shell::problem(None, &error, &origin.request_id, None);
    let form = match own_form(&app, headers, body, SMALL_FORM) {
        Ok(form) => form,
        Err(error) => return refused(error),
    };
    let back = form.fields().get("back").filter(|path| is_page(path)).unwrap_or(HOME).to_owned();
    let Some((key, session)) = app.session(headers) else { return to_sign_in(&app, headers, &back, false) };
    if action == UNLOCK {
        let id = forms::check(&app, (&key, &session), UNLOCK, &form).map_err(|refusal| match refusal {
            Refusal::Foreign => foreign(),
            Refusal::Stale | Refusal::Used => refusal.error(),
        });
        let unlocked = id.and_then(|id| id.unlock(&app));
        if let Err(error) = unlocked {
            return refused(error);
        }
    } else if same(&app.form_token(&key, LOCK), form.fields().get("token").unwrap_or_default()) {
        session.lock();
    } else {
        return refused(foreign());
    }
    let mut response = see_other(&back);
    response.extensions_mut().insert(LogFields { principal: session.subject.clone(), ..LogFields::default() });
    response
}

/// Until when the session may change something, and the button for the other state. Part of every page.
pub(crate) fn state(visit: &Visit) -> Markup {
    let until = visit.session.unlocked_until(visit.app.now());
    let (action, text) = match until {
        Some(_) => (LOCK, "Lock changes"),
        None => (UNLOCK, "Unlock changes for 15 minutes"),
    };
    html! {
        form.changes method="post" action=(action) aria-label="Changes" {
            @match until {
                Some(until) => { p { "Changes are unlocked until " (time(Some(&at(until)))) "." } }
                None => { p { "This session only reads." } }
            }
            @if until.is_some() {
                input type="hidden" name="token" value=(visit.app.form_token(&visit.key, LOCK));
            } @else {
                input type="hidden" name=(forms::ID) value=(forms::issue(&visit.app, (&visit.key, &visit.session), UNLOCK));
            }
            input type="hidden" name="back" value=(visit.query.address(visit.path, &["notice"], &[]));
            // A form has a button of its own, which keeps what was typed.
            @if until.is_some() || visit.path != METHOD { button.quiet type="submit" { (text) } }
        }
    }
}

/// A time as values show it.
pub(crate) fn at(micros: i64) -> Timestamp {
    Timestamp { seconds: micros.div_euclid(1_000_000), nanos: 0 }
}
