//! The page that leads to sign-in, and the end of a session.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bowline_core::{Error, Result};
use bowline_fronts::{LogFields, cookies};
use bowline_pipeline::RequestOrigin;
use maud::html;
use prost_types::Timestamp;

use crate::SMALL_FORM;
use crate::app::{App, is_page};
use crate::guard::{foreign, own_form, same};
use crate::query::{Query, address};
use crate::sessions::{Key, Session};
use crate::shell;
use crate::values::time;
use crate::visit::Visit;

/// Address of the first page.
pub(crate) const HOME: &str = "/console/";
/// Address where sessions end.
pub(crate) const SIGN_OUT: &str = "/console/sign-out";

/// `GET /console`: the first page.
pub(crate) async fn home() -> Response {
    see_other(HOME)
}

/// `GET /console/sign-in`: how to sign in, and for the operator, which command helps.
pub(crate) async fn ask(State(app): State<Arc<App>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = Query::read(&query.unwrap_or_default()).unwrap_or_default();
    let back = query.get("return").filter(|path| is_page(path)).unwrap_or(HOME);
    if app.session(&headers).is_some() {
        return see_other(back);
    }
    let start = address("/oauth", &[("exit", "console"), ("return", back)]);
    let body = html! {
        @match query.get("notice") {
            Some("ended") => { p.notice role="status" { "Your session has ended. Sign in again to continue where you were." } }
            Some("out") => { p.notice role="status" { "You are signed out." } }
            _ => {}
        }
        p { "The console shows what you may see on this server. It changes something only after you unlock changes." }
        p { a.button href=(start) { "Sign in" } }
        h2 { "As the operator" }
        p { "The operator gets a link that works once from the command line, on the machine of the server:" }
        pre tabindex="0" { code { "bowline operator login-url --reason 'first look at the console'" } }
    };
    shell::outside("Sign in", StatusCode::OK, &body)
}

/// `POST /console/sign-out`: the session ends here, and then at the server.
pub(crate) async fn out(
    State(app): State<Arc<App>>,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (key, session) = match session_of_form(&app, &headers, &body) {
        Ok(Some(found)) => found,
        Ok(None) => return without_cookie(&app, see_other("/console/sign-in")),
        Err(error) => return shell::problem(None, &error, &origin.request_id, None),
    };
    // Whatever the server can do now, the next person at this browser is not signed in.
    app.sessions.end(&key);
    let principal = session.subject.clone();
    let visit = Visit::new(app.clone(), (key, session), SIGN_OUT, Query::default(), origin);
    let response = match visit.end_session().await {
        Ok(()) => see_other("/console/sign-in?notice=out"),
        Err(error) => still_valid(&visit, &error),
    };
    let mut response = without_cookie(&app, response);
    response.extensions_mut().insert(LogFields { principal, ..LogFields::default() });
    response
}

/// The session that a form ends; absent without one.
///
/// # Errors
/// The form is not one of the session's pages.
fn session_of_form(app: &App, headers: &HeaderMap, body: &[u8]) -> Result<Option<(Key, Arc<Session>)>> {
    let form = own_form(app, headers, body, SMALL_FORM)?;
    let Some((key, session)) = app.session(headers) else { return Ok(None) };
    if same(&app.form_token(&key, SIGN_OUT), form.fields().get("token").unwrap_or_default()) {
        return Ok(Some((key, session)));
    }
    Err(foreign())
}

/// The browser is signed out, while the server could not end the token of its session.
fn still_valid(visit: &Visit, error: &Error) -> Response {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let end = Timestamp { seconds: visit.session.ends_at.div_euclid(1_000_000), nanos: 0 };
    let body = html! {
        p.notice role="alert" {
            "You are signed out of this browser. The server could not end the session: its token, which no browser has, is "
            "valid until " (time(Some(&end))) "."
        }
        p { (error.message()) }
        p.small { "Request id: " code { (visit.request_id()) } }
        p { a href="/console/sign-in" { "Sign in" } }
    };
    shell::outside("Signed out", status, &body)
}

/// To sign-in, and from there to this page.
pub(crate) fn to_sign_in(app: &App, headers: &HeaderMap, page: &str, has_ended: bool) -> Response {
    let page = if is_page(page) { page } else { HOME };
    let notice = if has_ended { "ended" } else { "" };
    let response = see_other(&address("/console/sign-in", &[("return", page), ("notice", notice)]));
    // The browser may have signed in again meanwhile: the cookie of a session that was there when the request came is left
    // to the next request without one. Browsers send no cookie with requests of other sites, which must not end the session.
    let is_left = has_ended || cookies::read(headers, &app.cookie_name()).is_none();
    if is_left { response } else { without_cookie(app, response) }
}

fn without_cookie(app: &App, mut response: Response) -> Response {
    if let Some(cookie) = app.cookies.set(&app.cookie_name(), "", 0) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// A redirect to an address of this console.
pub(crate) fn see_other(path: &str) -> Response {
    match HeaderValue::from_str(path) {
        Ok(location) => (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response(),
        Err(error) => {
            let error = Error::internal(error);
            let mut response = shell::problem(None, &error, "", None);
            response.extensions_mut().insert(LogFields::failure(&error));
            response
        }
    }
}
