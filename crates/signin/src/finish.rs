//! Completes a sign-in: issues the requested tokens, or reports why not.

use axum::response::Response;
use bowline_core::{Code, Error, Reason, Uidp};
use bowline_identity::people::{Context, Entry, Login, TokenParams, Upstream};
use bowline_pipeline::RequestOrigin;
use maud::html;

use crate::app::{App, with_cookie};
use crate::cookies::{self, SESSION_SECONDS};
use crate::device::{self, Outcome, Tokens};
use crate::flow::Chosen;
use crate::headless;
use crate::login_request::{Destination, LoginRequest};
use crate::page;
use crate::problem::Problem;
use crate::secrets::{FlowSecret, bytes_of, text_of};

/// The route that the audit log names.
const METHOD: &str = "/oauth/confirm";

/// Signs the person in, and issues what was requested.
///
/// # Errors
/// Why nothing was handed out.
pub(crate) async fn finish(
    app: &App,
    origin: &RequestOrigin,
    secret: &FlowSecret,
    request: &LoginRequest,
    chosen: &Chosen,
    upstream: &Upstream,
) -> bowline_core::Result<Response> {
    let context = app.context(origin, METHOD);
    let provider = app.parts.people.provider(&chosen.choice()?).await?;
    let claimed = claim(app, request).await?;
    // The browser is the person's own where it began the sign-in, not where it helps another machine.
    let cookie = matches!(request.destination, Destination::Page | Destination::Redirect(_)).then(|| app.draw());
    let entry = Entry { invite: request.invite.clone(), may_register: !request.skip_registration, cookie };
    let requested = requested(request)?;
    let done = async {
        // What cannot be handed out must not cost the person their invitation.
        app.parts.people.validate(&requested)?;
        let login = app.parts.people.sign_in(&provider, upstream, &entry, &context).await;
        let is_unknown = |error: &Error| request.skip_registration && error.code() == Code::NotFound;
        let login = login.map_err(|error| if is_unknown(&error) { no_account() } else { error })?;
        hand_out(app, &context, request, &requested, &login, upstream, claimed).await
    };
    let done = done.await;
    if done.is_err() {
        give_up(app, &context, claimed, cookie).await?;
    }
    let session =
        cookie.and_then(|cookie| app.cookies.set(&cookies::session(app.cookies), &text_of(&cookie), SESSION_SECONDS));
    Ok(with_cookie(over(app, secret, done?), session))
}

/// Nothing was issued: the device gets the error, and the session, whose cookie no browser has, ends.
async fn give_up(
    app: &App,
    context: &Context<'_>,
    device: Option<[u8; 32]>,
    cookie: Option<[u8; 32]>,
) -> bowline_core::Result<()> {
    if let Some(hash) = device {
        device::step(app.db(), hash, Outcome::Claimed, Outcome::Denied, app.now()).await?;
    }
    if let Some(cookie) = cookie {
        app.parts.people.end_session(&cookie, context).await?;
    }
    Ok(())
}

/// The device authorization that this browser completes: of two browsers at a time, one does.
async fn claim(app: &App, request: &LoginRequest) -> bowline_core::Result<Option<[u8; 32]>> {
    let Destination::Device { hash, .. } = &request.destination else {
        return Ok(None);
    };
    let hash = bytes_of(hash).ok_or_else(|| Error::internal("a stored sign-in names no device"))?;
    if device::step(app.db(), hash, Outcome::Pending, Outcome::Claimed, app.now()).await? {
        return Ok(Some(hash));
    }
    Err(Error::new(
        Reason::FailedPrecondition,
        "The device's code was answered already, or is older than a quarter of an hour. Begin again on the device.",
    ))
}

async fn hand_out(
    app: &App,
    context: &Context<'_>,
    request: &LoginRequest,
    requested: &TokenParams,
    login: &Login,
    upstream: &Upstream,
    device: Option<[u8; 32]>,
) -> bowline_core::Result<Response> {
    let people = &app.parts.people;
    match &request.destination {
        Destination::Page => Ok(signed_in(upstream)),
        Destination::Redirect(address) => {
            let target = app.parts.redirects.validate(address);
            let target = target.map_err(|why| Error::invalid_field("redirect", why))?;
            let issued = people.issue(&login.session, upstream, requested, context).await?;
            let url = target.with_tokens(&issued.token, issued.refresh_token.as_deref());
            Ok(page::moving_on("You are signed in", url.as_str(), "The program that asked goes on by itself."))
        }
        Destination::Console(path) => {
            let console = app.console_with(path)?;
            let issued = people.issue(&login.session, upstream, requested, context).await?;
            Ok(with_cookie(page::see_other(path)?, Some(console.begin(issued.token, person(upstream))?)))
        }
        Destination::Headless(code) => {
            let theirs = bytes_of(code).ok_or_else(|| Error::internal("a stored sign-in names no public key"))?;
            let token = people.id_token(&login.session, &request.audiences, None, None, context).await?;
            let sealed = headless::seal(&theirs, &app.draw(), &app.draw(), token.as_bytes())?;
            people.put_headless(code, &sealed.public_key, &sealed.text, app.now()).await?;
            Ok(elsewhere("You are signed in", "Return to your terminal: it goes on by itself."))
        }
        Destination::Device { client_id, .. } => {
            let hash = device.ok_or_else(|| Error::internal("no device was claimed"))?;
            let issued = people.issue(&login.session, upstream, requested, context).await?;
            let tokens = Tokens {
                id_token: people.id_token(&login.session, &request.audiences, Some(client_id), None, context).await?,
                access_token: issued.token,
                refresh_token: issued.refresh_token,
                expires_at: issued.expires_at,
            };
            let granted = device::granted(app.vault(), &hash, &tokens)?;
            if device::step(app.db(), hash, Outcome::Claimed, granted, app.now()).await? {
                return Ok(elsewhere("You are signed in", "Return to your device: it goes on by itself."));
            }
            Err(Error::new(Reason::FailedPrecondition, "The device's code ended meanwhile. Begin again on the device."))
        }
    }
}

fn requested(request: &LoginRequest) -> bowline_core::Result<TokenParams> {
    let identity = request.identity.as_deref().map(Uidp::parse).transpose();
    Ok(TokenParams {
        audiences: request.audiences.clone(),
        identity: identity.map_err(|_| Error::internal("a stored sign-in names no identity"))?,
        scopes: request.scopes.clone(),
        capabilities: Vec::new(),
        refresh: request.refresh,
    })
}

/// The person does not want it after all.
///
/// # Errors
/// The storage fails.
pub(crate) async fn cancel(app: &App, secret: &FlowSecret, request: &LoginRequest) -> Result<Response, Problem> {
    if let Destination::Device { hash, .. } = &request.destination
        && let Some(hash) = bytes_of(hash)
    {
        device::step(app.db(), hash, Outcome::Pending, Outcome::Denied, app.now()).await?;
    }
    match &request.destination {
        Destination::Redirect(_) => leave(app, secret, request, &Error::permission_denied("the sign-in was cancelled")),
        _ => Ok(over(app, secret, elsewhere("Cancelled", "The sign-in did not take place. You can close this page."))),
    }
}

/// Reports why there are no tokens: at the address of the request, or on a page.
///
/// # Errors
/// The page, where no address was given.
pub(crate) fn leave(
    app: &App,
    secret: &FlowSecret,
    request: &LoginRequest,
    error: &Error,
) -> Result<Response, Problem> {
    let target = match &request.destination {
        Destination::Redirect(address) => app.parts.redirects.validate(address).ok(),
        _ => None,
    };
    let problem = Problem::from(error);
    let Some(target) = target else {
        return Err(problem);
    };
    if let Some(cause) = &problem.cause {
        tracing::error!(cause, "sign-in failed");
    }
    let url = target.with_error(error.message(), error.http_status());
    let page = page::moving_on("You are not signed in", url.as_str(), error.message());
    Ok(over(app, secret, page))
}

/// What clients take for "register first".
pub(crate) fn no_account() -> Error {
    Error::new(Reason::NotFound, "account not found")
}

/// The flow is over: its cookie goes.
fn over(app: &App, secret: &FlowSecret, response: Response) -> Response {
    with_cookie(response, app.cookies.set(&cookies::flow(app.cookies, &secret.id(app.vault())), "", 0))
}

/// What a person is called on pages for themselves.
fn person(upstream: &Upstream) -> &str {
    upstream.email.as_ref().or(upstream.name.as_ref()).unwrap_or(&upstream.subject)
}

fn signed_in(upstream: &Upstream) -> Response {
    page::page(
        "You are signed in",
        html! {
            p { "You are signed in as " strong { (person(upstream)) } "." }
            p { "You can close this page, or " a href="/signout" { "sign out" } "." }
        },
    )
}

fn elsewhere(title: &str, text: &str) -> Response {
    page::page(title, html! { p { (text) } })
}
