//! Forms as they arrive, and what is kept of those whose session has ended.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bowline_core::{Error, Reason, Result};
use maud::html;

use super::fields::{Input, fields, leaves};
use super::form::carried;
use super::typed::JSON;
use super::{CONFIRM, MAX_FIELDS, MAX_FORM, MAX_TYPED, METHOD, PREFIX, named};
use crate::app::App;
use crate::guard::{Form, own_form, require_own};
use crate::shell;

/// Reads a form: its headers before its bytes, and those within the time of a page.
pub(super) async fn form_of(app: &App, headers: &HeaderMap, body: Body) -> Result<Form> {
    require_own(app, headers)?;
    let body = tokio::time::timeout(app.page_time, axum::body::to_bytes(body, MAX_FORM)).await;
    let body = body.map_err(|_| too_slow())?.map_err(|_| too_large())?;
    // Before it is taken apart: each field takes memory of its own.
    if body.split(|byte| *byte == b'&').count() > MAX_FIELDS {
        return Err(too_large());
    }
    let form = own_form(app, headers, &body, MAX_FORM)?;
    if is_bounded(&form) { Ok(form) } else { Err(too_large()) }
}

fn too_slow() -> Error {
    Error::new(Reason::DeadlineExceeded, "Deadline exceeded: the form did not arrive in time; send it again")
}

/// Whether a page can show a form again: each field takes some bytes of it, and each byte up to six.
fn is_bounded(form: &Form) -> bool {
    let sizes = form.fields().pairs().map(|(name, value)| name.len() + value.len());
    let (count, bytes) = sizes.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size));
    count <= MAX_FIELDS && bytes <= MAX_TYPED
}

fn too_large() -> Error {
    let text =
        format!("Request too large: a form takes {} KiB; send larger requests with the command line", MAX_TYPED >> 10);
    Error::new(Reason::RequestTooLarge, text)
}

/// The session is over: what was typed stays in the page until the person has signed in elsewhere. Secrets do not, since
/// someone else may sign in.
pub(super) fn ended(app: &App, form: &Form) -> Response {
    let contract = app.api.contract();
    let nodes = named(contract, form.fields()).map(|method| fields(contract, method)).unwrap_or_default();
    let secrets: Vec<String> = leaves(&nodes)
        .into_iter()
        .filter(|leaf| leaf.input == Input::Secret)
        .map(|leaf| format!("{PREFIX}{}", leaf.path))
        .collect();
    // The whole request as JSON may have secrets in it, where the method has any.
    let is_dropped = |name: &str| name == CONFIRM || secrets.iter().any(|one| one == name);
    let is_json = |name: &str| name == JSON && !secrets.is_empty();
    let kept = form.fields().pairs().filter(|(name, _)| !is_dropped(name) && !is_json(name));
    let body = html! {
        p.notice role="alert" { "Your session has ended. What you typed is kept in this page; nothing was sent." }
        ol {
            li {
                a href="/console/sign-in" target="_blank" rel="noopener" { "Sign in in another tab" } "."
            }
            li { "Come back to this tab and continue. You see the form again before anything is sent." }
        }
        form method="post" action=(METHOD) {
            (carried(kept))
            @if !secrets.is_empty() { p.small { "Secrets are not kept, nor is JSON, which may have some: type them again." } }
            button type="submit" name="do" value="continue" { "Continue" }
        }
    };
    shell::outside("Your session has ended", StatusCode::UNAUTHORIZED, &body)
}
