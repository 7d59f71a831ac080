//! Forms as they arrive, and what is kept of those whose session has ended.

use std::borrow::Cow;

use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bowline_core::{Error, Reason, Result};
use bowline_pipeline::RequestOrigin;
use maud::html;

use super::fields::{Leaf, fields, leaves};
use super::form::carried;
use super::typed::{JSON, Typed};
use super::{BASE, CONFIRM, MAX_FIELDS, MAX_FORM, MAX_TYPED, METHOD, PREFIX, base_of, base_text, named};
use crate::app::App;
use crate::bodies::{HeldBytes, STRANGERS_TIME};
use crate::guard::{Form, own_form, require_own};
use crate::query::Query;
use crate::shell;

/// Reads a form: its headers before its bytes, and those within a time, and within what its sender may have in memory.
pub(super) async fn form_of(
    app: &App,
    headers: &HeaderMap,
    origin: &RequestOrigin,
    body: Body,
) -> Result<(Form, HeldBytes)> {
    require_own(app, headers)?;
    let most = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(MAX_FORM).min(MAX_FORM);
    let (held, time) = match app.session(headers) {
        Some((_, session)) => (app.bodies.of_session(&session.subject, most)?, app.page_time),
        None => (app.bodies.of_network(origin.address, most)?, app.page_time.min(STRANGERS_TIME)),
    };
    let body = tokio::time::timeout(time, axum::body::to_bytes(body, MAX_FORM)).await;
    let body = body.map_err(|_| too_slow())?.map_err(|_| too_large())?;
    // Before it is taken apart: each field takes memory of its own.
    if body.split(|byte| *byte == b'&').count() > MAX_FIELDS {
        return Err(too_large());
    }
    let form = own_form(app, headers, &body, MAX_FORM)?;
    if is_bounded(&form) { Ok((form, held)) } else { Err(too_large()) }
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
    let (kept, is_less) = without_secrets(&leaves(&nodes), form.fields());
    let body = html! {
        p.notice role="alert" { "Your session has ended. What you typed is kept in this page; nothing was sent." }
        ol {
            li {
                a href="/console/sign-in" target="_blank" rel="noopener" { "Sign in in another tab" } "."
            }
            li { "Come back to this tab and continue. You see the form again before anything is sent." }
        }
        form method="post" action=(METHOD) {
            (carried(kept.iter().map(|(name, value)| (*name, value.as_ref()))))
            @if is_less { p.small { "Secrets are not kept, nor is JSON, which may have some: type them again." } }
            button type="submit" name="do" value="continue" { "Continue" }
        }
    };
    shell::outside("Your session has ended", StatusCode::UNAUTHORIZED, &body)
}

/// What a form has without its secrets, and whether that is less. The whole request as JSON may have secrets in it, where
/// the method has any, and so may what the page of an edit showed.
fn without_secrets<'f>(leaves: &[&Leaf], fields: &'f Query) -> (Vec<(&'f str, Cow<'f, str>)>, bool) {
    let secrets: Vec<&Leaf> = leaves.iter().copied().filter(|leaf| leaf.may_hold_secret).collect();
    let holds = |path: &str, text: &str| secrets.iter().any(|leaf| leaf.path == path && leaf.holds_secret(text));
    let mut kept = Vec::new();
    for (name, value) in fields.pairs() {
        match name {
            CONFIRM => {}
            JSON if !secrets.is_empty() => {}
            BASE if !secrets.is_empty() => {
                let Some(texts) = base_of(value) else { continue };
                let texts = texts.texts().filter(|(path, text)| !holds(path, text));
                let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
                kept.push((name, base_text(&Typed::of(texts)).into()));
            }
            name if name.strip_prefix(PREFIX).is_some_and(|path| holds(path, value)) => {}
            name => kept.push((name, value.into())),
        }
    }
    (kept, !secrets.is_empty())
}

#[cfg(test)]
mod tests {
    use bowline_contract::Contract;

    use super::*;

    #[test]
    fn no_page_of_an_ended_session_has_a_secret() {
        let contract = Contract::load();
        for (method, secret, plain) in [
            (
                "chainguard.platform.iam.v2.IdentityProvidersService.CreateIdentityProvider",
                "identity_provider.oidc.client_secret",
                "identity_provider.name",
            ),
            ("bowline.preview.v1.Previews.Preview", "request", "method"),
        ] {
            let nodes = fields(&contract, contract.by_full_name(method).unwrap());
            let base = serde_json::json!({ secret: "hunter2", plain: "kept" }).to_string();
            let (secret, plain) = (format!("{PREFIX}{secret}"), format!("{PREFIX}{plain}"));
            let query = Query::of(&[(&secret, "hunter2"), (&plain, "kept"), (JSON, "hunter2"), (BASE, &base)]);
            let (kept, is_less) = without_secrets(&leaves(&nodes), &query);
            assert!(is_less && kept.contains(&(plain.as_str(), "kept".into())), "{kept:?}");
            assert!(kept.iter().all(|(_, value)| !value.contains("hunter2")), "{kept:?}");
        }
        let create = "chainguard.platform.events.v2.SubscriptionsService.CreateSubscription";
        let nodes = fields(&contract, contract.by_full_name(create).unwrap());
        for (sink, count) in [("https://hooks.example/", 1), ("https://hooks.example/hunter2", 0)] {
            let query = Query::of(&[("f.subscription.sink", sink)]);
            assert_eq!(without_secrets(&leaves(&nodes), &query).0.len(), count, "{sink}");
        }
        let group = "chainguard.platform.iam.v2.GroupsService.CreateGroup";
        let nodes = fields(&contract, contract.by_full_name(group).unwrap());
        let query = Query::of(&[(JSON, "{}"), (CONFIRM, "x")]);
        assert_eq!(without_secrets(&leaves(&nodes), &query), (vec![(JSON, "{}".into())], false));
    }
}
