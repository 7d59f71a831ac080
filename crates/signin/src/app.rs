//! What all handlers share, and what happens around each of them.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Extension, Request, State};
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bowline_core::Micros;
use bowline_fronts::{AccessLine, code_of};
use bowline_identity::people::Context;
use bowline_pipeline::{Arrival, Settings, Surface, Vault};
use bowline_store::Db;

use crate::SignIn;
use crate::cookies::Cookies;
use crate::grant::Refusal;
use crate::page;
use crate::parameters::Parameters;
use crate::problem::Problem;
use crate::tries::Tries;

/// Wrong user codes that one address may type within a quarter of an hour.
const WRONG_CODES: (u32, i64) = (5, 900);
/// Device authorizations that one address may begin within a minute.
const DEVICES: (u32, i64) = (30, 60);

/// Paths that programs call: they read errors as JSON.
const PROGRAMS: &[&str] = &["/oauth/device_authorization", "/oauth/token", "/oauth/revoke", "/orgcheck"];

/// The parts, and what was made of them.
pub(crate) struct App {
    pub(crate) parts: SignIn,
    pub(crate) cookies: Cookies,
    pub(crate) wrong_codes: Tries,
    pub(crate) devices: Tries,
}

pub(crate) type Shared = State<Arc<App>>;

impl App {
    pub(crate) fn new(parts: SignIn) -> App {
        let cookies = Cookies { secure: parts.pipeline.settings.auth_url.starts_with("https://") };
        let tries = |(most, seconds)| Tries::new(most, seconds);
        App { parts, cookies, wrong_codes: tries(WRONG_CODES), devices: tries(DEVICES) }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.parts.pipeline.settings
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.parts.pipeline.vault
    }

    pub(crate) fn db(&self) -> &Db {
        &self.parts.pipeline.db
    }

    pub(crate) fn now(&self) -> Micros {
        self.parts.pipeline.clock.now()
    }

    pub(crate) fn draw(&self) -> [u8; 32] {
        (self.parts.random)()
    }

    /// What the domain knows of a request to the route `method`.
    pub(crate) fn context<'a>(&'a self, arrival: &'a Arrival, method: &'static str) -> Context<'a> {
        let draw: &(dyn Fn() -> [u8; 32] + Sync) = &*self.parts.random;
        Context { now: self.now(), request_id: &arrival.request_id, draw, method }
    }

    /// Where providers send the browser back to.
    pub(crate) fn callback_url(&self) -> String {
        format!("{}/oauth/callback", self.settings().auth_url)
    }
}

/// Counts, guards and logs every request, and writes the page of what went wrong.
pub(crate) async fn around(
    State(app): Shared,
    Extension(arrival): Extension<Arrival>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let (verb, path) = (request.method().clone(), request.uri().path().to_owned());
    let counted = if path == page::STYLE_PATH { Ok(()) } else { count(&app, &arrival) };
    let mut response = match counted {
        Ok(()) => next.run(request).await,
        Err(problem) if PROGRAMS.contains(&path.as_str()) => Refusal::from(problem).into_response(),
        Err(problem) => problem.into_response(),
    };
    if let Some(found) = response.extensions_mut().remove::<Problem>() {
        if let Some(cause) = &found.cause {
            tracing::error!(request_id = %arrival.request_id, path, cause, "sign-in failed");
        }
        let cookies: Vec<HeaderValue> = response.headers().get_all(SET_COOKIE).iter().cloned().collect();
        response = page::problem(&found, &arrival.request_id);
        for cookie in cookies {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    page::guard(response.headers_mut(), app.cookies.secure);
    // The path alone: queries carry codes.
    let status = response.status().as_u16();
    AccessLine {
        transport: "browser",
        method: &format!("signin {verb}"),
        path: &path,
        principal: "",
        scope: "",
        status: Some(status),
        code: code_of(status),
        elapsed: started.elapsed(),
        request_id: &arrival.request_id,
    }
    .write();
    response
}

fn count(app: &App, arrival: &Arrival) -> Result<(), Problem> {
    Ok(app.parts.pipeline.limits.count_address(Surface::SignIn, Some(arrival.address))?)
}

/// A form of one of our own pages: not one that another site sent.
///
/// # Errors
/// It is another site's, or no form.
pub(crate) fn own_form(headers: &HeaderMap, body: &[u8]) -> Result<Parameters, Problem> {
    // Pages send no referrer, which makes `Origin` say nothing; browsers say this instead.
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if !matches!(site, None | Some(b"same-origin" | b"none")) {
        return Err(Problem::forbidden("This form was sent by another site. Begin again at the page itself."));
    }
    if !is_form(headers) {
        return Err(Problem::bad("The body must be a form (application/x-www-form-urlencoded)."));
    }
    Parameters::read(body)
}

/// A form of a program.
///
/// # Errors
/// It is none.
pub(crate) fn program_form(headers: &HeaderMap, body: &[u8]) -> Result<Parameters, Refusal> {
    if !is_form(headers) {
        return Err(Refusal::invalid_request("the body must be application/x-www-form-urlencoded"));
    }
    Ok(Parameters::read(body)?)
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    content_type.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// Adds a cookie to an answer.
pub(crate) fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
