//! What all handlers share, and what happens around each of them.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::header::{self, SET_COOKIE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bowline_core::{Error, Micros, Reason};
use bowline_fronts::request::is_form;
use bowline_fronts::{BrowserSessions, Count, Front};
use bowline_identity::people::Context;
use bowline_pipeline::{RequestOrigin, Settings, Surface, Vault};
use bowline_store::Db;

use crate::SignIn;
use crate::attempt_limiter::AttemptLimiter;
use crate::cookies::Cookies;
use crate::grant::Refusal;
use crate::page;
use crate::parameters::Parameters;
use crate::problem::Problem;

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
    pub(crate) wrong_codes: AttemptLimiter,
    pub(crate) devices: AttemptLimiter,
}

pub(crate) type Shared = State<Arc<App>>;

impl App {
    pub(crate) fn new(parts: SignIn) -> App {
        let is_https = url::Url::parse(&parts.pipeline.settings.auth_url).is_ok_and(|url| url.scheme() == "https");
        let cookies = Cookies { secure: is_https };
        let limiter = |(max_attempts, seconds)| AttemptLimiter::new(max_attempts, seconds);
        App { parts, cookies, wrong_codes: limiter(WRONG_CODES), devices: limiter(DEVICES) }
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
    pub(crate) fn context<'a>(&'a self, origin: &'a RequestOrigin, method: &'static str) -> Context<'a> {
        let draw: &(dyn Fn() -> [u8; 32] + Sync) = &*self.parts.random;
        Context { now: self.now(), request_id: &origin.request_id, draw, method }
    }

    /// The console, where it is switched on and has this page.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another path, FAILED_PRECONDITION without a console.
    pub(crate) fn console_with(&self, path: &str) -> bowline_core::Result<&dyn BrowserSessions> {
        let off = || Error::new(Reason::FailedPrecondition, "The console of this server is switched off.");
        let console = self.parts.console.as_deref().ok_or_else(off)?;
        if console.is_page(path) {
            return Ok(console);
        }
        Err(Error::invalid_field("return", "must be the path of a page of the console"))
    }

    /// Whether a request came to the host that serves the console: that of sign-in, unless the API has the same.
    pub(crate) fn is_console_host(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let settings = self.settings();
        let origin = |text: &str| url::Url::parse(text).ok().map(|url| url.origin());
        let own = origin(&settings.auth_url);
        let scheme = settings.auth_url.split("://").next().unwrap_or_default();
        let host = uri.authority().map(Authority::as_str);
        let host = host.or_else(|| headers.get(header::HOST)?.to_str().ok()).unwrap_or_default();
        own == origin(&settings.base_url) || own == origin(&format!("{scheme}://{host}"))
    }

    /// Where providers send the browser back to.
    pub(crate) fn callback_url(&self) -> String {
        format!("{}/oauth/callback", self.settings().auth_url)
    }
}

/// Counts every request but those for the style sheet, and writes its line.
pub(crate) fn front(app: &Arc<App>, count: Count) -> Front {
    let limited = app.clone();
    let admit = move |path: &str, origin: &RequestOrigin| match path {
        page::STYLE_PATH => Ok(()),
        _ => limited.parts.pipeline.limits.count_address(Surface::SignIn, Some(origin.address)),
    };
    let render_rejection = |path: &str, error| match Problem::from(error) {
        problem if PROGRAMS.contains(&path) => Refusal::from(problem).into_response(),
        problem => problem.into_response(),
    };
    Front { transport: "browser", name, admit: Arc::new(admit), render_rejection, count }
}

fn name(verb: &Method, _: &str) -> &'static str {
    match verb.as_str() {
        "GET" => "signin.get",
        "POST" => "signin.post",
        _ => "signin.unknown",
    }
}

/// Sets security headers on every response, and renders error pages.
pub(crate) async fn guarded(
    State(app): Shared,
    Extension(origin): Extension<RequestOrigin>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    if let Some(found) = response.extensions_mut().remove::<Problem>() {
        let cookies: Vec<HeaderValue> = response.headers().get_all(SET_COOKIE).iter().cloned().collect();
        response = page::problem(&found, &origin.request_id);
        for cookie in cookies {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    page::guard(response.headers_mut(), app.cookies.secure);
    response
}

/// A form of a page of this server, not one that another site sent.
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
/// The body is not a form.
pub(crate) fn program_form(headers: &HeaderMap, body: &[u8]) -> Result<Parameters, Refusal> {
    if !is_form(headers) {
        return Err(Refusal::invalid_request("the body must be application/x-www-form-urlencoded"));
    }
    Ok(Parameters::read(body)?)
}

/// Adds a cookie to a response.
pub(crate) fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
