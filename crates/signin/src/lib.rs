//! Everything that a browser sees when people sign in, and the endpoints of programs that let them do it elsewhere.
//!
//! A sign-in begins at `GET /oauth` (`start`), goes to an identity provider, comes back to `/oauth/callback`
//! (`callback`), and ends with a page on which the person confirms what is issued to whom (`confirm`). Devices
//! without a browser begin at `/oauth/device_authorization` (`grant`) and send their person to `/activate`.
//!
//! Pages are rendered here, work without scripts, and carry headers that let nothing else in (`page`). What a
//! person may do, and what tokens are made of, is decided by [`bowline_identity::People`].

mod activate;
mod app;
mod attempt_limiter;
mod callback;
mod choose;
mod codes;
mod confirm;
mod cookies;
mod device;
mod finish;
mod flow;
mod grant;
mod headless;
mod login_request;
mod operator;
mod orgcheck;
mod page;
mod parameters;
mod problem;
mod redirect;
mod secrets;
mod sign_out;
mod start;
mod tables;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::routing::{MethodRouter, get, post};
use bowline_fronts::{BrowserSessions, Count};
use bowline_identity::People;
use bowline_pipeline::Pipeline;

use app::App;
pub use codes::check_code;
pub use redirect::Redirects;
pub use secrets::Random;
pub use tables::TABLES;

/// Maximum bytes of a form.
const FORM_BYTES: usize = 32 << 10;

/// What the pages are made of.
pub struct SignIn {
    /// Who people are, and what they get.
    pub people: Arc<People>,
    /// Settings, storage, secrets, limits, the time.
    pub pipeline: Arc<Pipeline>,
    /// Where tokens may be sent to.
    pub redirects: Redirects,
    pub random: Random,
    /// The web console, unless it is switched off.
    pub console: Option<Arc<dyn BrowserSessions>>,
}

/// The routes. Requests must carry a [`bowline_pipeline::RequestOrigin`]; `count` is called for each.
pub fn router(parts: SignIn, count: Count) -> Router {
    let app = Arc::new(App::new(parts));
    let routes = Router::new()
        .route("/oauth", only("GET", get(start::start)))
        .route("/oauth/organization", only("POST", post(start::organization)))
        .route("/oauth/callback", only("GET", get(callback::callback)))
        .route("/oauth/confirm", only("POST", post(confirm::confirm)))
        .route("/oauth/operator", only("GET, POST", get(operator::ask).post(operator::redeem)))
        .route("/oauth/device_authorization", only("POST", post(grant::device_authorization)))
        .route("/oauth/token", only("POST", post(grant::token)))
        .route("/oauth/revoke", only("POST", post(grant::revoke)))
        .route("/activate", only("GET, POST", get(activate::ask).post(activate::submit)))
        .route("/signout", only("GET, POST", get(sign_out::sign_out_page).post(sign_out::sign_out)))
        .route("/orgcheck", get(orgcheck::check))
        .route(page::STYLE_PATH, get(page::style))
        .layer(DefaultBodyLimit::max(FORM_BYTES));
    app::front(&app, count)
        .wrap(routes)
        .layer(middleware::from_fn_with_state(app.clone(), app::guarded))
        .with_state(app)
}

/// These methods alone: axum would take HEAD for GET, which begins or ends a sign-in here.
fn only(allowed: &'static str, methods: MethodRouter<Arc<App>>) -> MethodRouter<Arc<App>> {
    let refuse = move || async move {
        let headers = [(header::ALLOW, allowed), (header::CONTENT_TYPE, "application/json")];
        (StatusCode::METHOD_NOT_ALLOWED, headers, r#"{"code":12,"message":"Method Not Allowed","details":[]}"#)
    };
    methods.head(refuse).fallback(refuse)
}
