//! The confirmation page, which shows what will be issued to whom, and its form.

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::Response;
use bowline_identity::people::{Provider, Upstream};
use bowline_pipeline::RequestOrigin;
use maud::{Markup, html};

use crate::app::{App, Shared, own_form};
use crate::codes;
use crate::cookies;
use crate::finish::{self, leave};
use crate::flow::{self, Flow, Stage};
use crate::login_request::{Destination, LoginRequest};
use crate::problem::Problem;
use crate::secrets::{FlowSecret, bytes_of, is_id, same};

const OVER: &str = "This page is out of date: the sign-in was finished or cancelled already, or took longer than ten \
                    minutes. Begin again.";

pub(crate) fn page(
    app: &App,
    origin: &RequestOrigin,
    secret: &FlowSecret,
    flow: &Flow,
    provider: &Provider,
    is_known: bool,
) -> Response {
    let request = &flow.request;
    let body = html! {
        @if let Some(warning) = warning(&request.destination) {
            p.notice { (warning) }
        }
        dl {
            @if let Some(code) = check_code(&request.destination) {
                div { dt { "Check code" } dd.code { (code) } }
            }
            @if let Some(upstream) = &flow.upstream {
                (row("You are", &html! { (person(upstream)) }))
            }
            (row("Signed in with", &html! { (provider.label) " (" (provider.issuer) ")" }))
            @if !is_known { (row("Account", &html! { "A new one is created for you." })) }
            @if request.invite.is_some() { (row("Invitation", &html! { "You accept the invitation that you followed." })) }
            (destination(request, origin))
        }
        form method="post" action="/oauth/confirm" {
            input type="hidden" name="flow" value=(secret.id(app.vault()));
            input type="hidden" name="token" value=(secret.form_token(app.vault()));
            div.actions {
                button type="submit" name="answer" value="continue" { "Continue" }
                button.quiet type="submit" name="answer" value="cancel" { "Cancel" }
            }
        }
    };
    crate::page::page("Confirm your sign-in", body)
}

fn row(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// What is issued, and who gets it.
fn destination(request: &LoginRequest, request_origin: &RequestOrigin) -> Markup {
    let tokens =
        if request.refresh { "An access token, and a refresh token for up to 30 days" } else { "An access token" };
    html! {
        @match &request.destination {
            Destination::Page => { (row("Issued", &html! { "A session of this browser, for 30 days at most" })) }
            Destination::Console(_) => { (row("Issued", &html! { "A session of the console in this browser, for an hour at most" })) }
            Destination::Redirect(address) => {
                (row("Issued", &html! { (tokens) }))
                (row("Goes to", &html! { (origin(address)) }))
            }
            Destination::Headless(_) => {
                (row("Issued", &html! { "An id token, for the terminal that shows the check code" }))
            }
            Destination::Device { address, client_id, .. } => {
                (row("Issued", &html! { (tokens) }))
                (row("Goes to", &html! { "The device that asked from " (address) " as " (client_id) }))
            }
        }
        @if !matches!(request.destination, Destination::Page | Destination::Console(_)) {
            (row("Good for", &html! { (request.audiences.join(", ")) }))
            @if let Some(identity) = &request.identity { (row("As identity", &html! { (identity) })) }
            @if !request.scopes.is_empty() { (row("Only in", &html! { (request.scopes.join(", ")) })) }
        }
        (row("Your address", &html! { (request_origin.address) }))
    }
}

fn origin(address: &str) -> String {
    match url::Url::parse(address) {
        Ok(url) if url.scheme() == "http" => {
            format!("A program on this computer, at {}", url.origin().ascii_serialization())
        }
        Ok(url) => url.origin().ascii_serialization(),
        Err(_) => String::new(),
    }
}

fn person(upstream: &Upstream) -> String {
    match (&upstream.name, &upstream.email) {
        (Some(name), Some(email)) => format!("{name} ({email})"),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => upstream.subject.clone(),
    }
}

/// The code that the program or device shows as well.
fn check_code(target: &Destination) -> Option<String> {
    match target {
        Destination::Headless(key) => Some(codes::check_code(&bytes_of(key)?)),
        Destination::Device { user_code, .. } => Some(user_code.clone()),
        Destination::Page | Destination::Console(_) | Destination::Redirect(_) => None,
    }
}

fn warning(target: &Destination) -> Option<&'static str> {
    match target {
        Destination::Headless(_) | Destination::Device { .. } => Some(
            "Continue only if you began this yourself and your own screen shows exactly this code. Anyone who sent you here could otherwise act as you.",
        ),
        Destination::Redirect(_) => Some("Continue only if you began this yourself, with a program that you trust."),
        Destination::Page | Destination::Console(_) => None,
    }
}

/// Handles the form of `POST /oauth/confirm`.
pub(crate) async fn confirm(
    State(app): Shared,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let parameters = own_form(&headers, &body)?;
    let id = parameters.one("flow")?.filter(|id| is_id(id)).ok_or_else(|| Problem::bad(OVER))?;
    let secret = cookies::read(&headers, &cookies::flow(app.cookies, id)).and_then(FlowSecret::read);
    let secret = secret.ok_or_else(|| Problem::bad(OVER))?;
    if !same(&secret.form_token(app.vault()), parameters.one("token")?.unwrap_or_default()) {
        return Err(Problem::forbidden("This form has expired. Begin again."));
    }
    let choice = parameters.one("answer")?;
    if !matches!(choice, Some("continue" | "cancel")) {
        return Err(Problem::bad("The answer is either continue or cancel."));
    }
    let taken = flow::take(app.db(), app.vault(), &secret, Stage::Confirming, app.now()).await?;
    let Some(Flow { request, provider, upstream: Some(upstream) }) = taken else {
        return Err(Problem::bad(OVER));
    };
    if choice == Some("cancel") {
        return finish::cancel(&app, &secret, &request).await;
    }
    match finish::finish(&app, &origin, &secret, &request, &provider, &upstream).await {
        Ok(response) => {
            if let (Destination::Console(_), Some(console)) = (&request.destination, &app.parts.console) {
                console.end(&headers);
            }
            Ok(response)
        }
        Err(error) => leave(&app, &secret, &request, &error),
    }
}
