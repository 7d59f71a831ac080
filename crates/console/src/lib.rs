//! The web console: pages that a server renders, and that work without scripts.
//!
//! A page calls methods of the contract through the pipeline as the signed-in caller (`visit`), and can do nothing else:
//! this crate knows no domain and no storage, and of the pipeline only what `ConsolePipeline` has. So a page shows what the
//! API returns to the same caller, with the same authentication, limits, authorization and log lines.
//!
//! The caller's token stays in the server's memory (`sessions`); the browser has a cookie that stands for it. A session only
//! reads until its person unlocks changes for a time (`unlock`), and then changes what forms ask for, each once (`forms`).
//!
//! To add a page: a function in `pages/`, its line in `PAGES`, and its text in `help/screens.rs`.

mod actions;
mod app;
mod assets;
mod bodies;
mod chart;
mod components;
mod export;
mod forms;
mod guard;
mod help;
mod hidden;
mod live;
mod method;
mod names;
mod pages;
mod permits;
mod query;
mod secrets;
mod sessions;
mod shell;
mod sign_in;
mod streams;
mod turns;
mod unlock;
mod values;
mod visit;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{get, post};
use bowline_fronts::Count;
use bowline_pipeline::ConsolePipeline;

use app::App;

/// Where random bytes come from; other ones at each call.
pub type Random = Arc<dyn Fn() -> [u8; 32] + Send + Sync>;

/// Where all pages are.
const PREFIX: &str = "/console";

/// Maximum bytes of a form with a button alone.
const SMALL_FORM: usize = 8 << 10;

/// The console of a server.
#[derive(Clone)]
pub struct Console {
    app: Arc<App>,
}

impl Console {
    /// A console without sessions, whose pages take no longer than `page_time`. `count` is called for each page, and for
    /// each call of a page.
    pub fn new(api: ConsolePipeline, page_time: Duration, random: Random, count: Count) -> Console {
        Console { app: Arc::new(App::new(api, page_time, random, count)) }
    }

    /// Paths of all pages.
    pub fn paths() -> impl Iterator<Item = &'static str> {
        pages::PAGES.iter().map(|page| page.path)
    }

    /// Whether browsers send the cookie of a session in the clear over a network.
    pub fn is_exposed(&self) -> bool {
        guard::is_exposed(&self.app.origin)
    }

    /// What sign-in hands tokens to.
    pub fn sessions(&self) -> Arc<dyn bowline_fronts::BrowserSessions> {
        self.app.clone()
    }

    /// The routes. Requests must carry a [`bowline_pipeline::RequestOrigin`].
    pub fn router(&self) -> Router {
        let app = &self.app;
        let mut routes = Router::new()
            .route(PREFIX, get(sign_in::home))
            .route("/console/sign-in", get(sign_in::ask))
            .route("/console/sign-out", post(sign_in::out))
            .route(unlock::UNLOCK, post(unlock::unlock))
            .route(unlock::LOCK, post(unlock::lock))
            .route(live::LIVE, get(live::serve))
            .route("/console/assets/{name}", get(assets::serve))
            .route(method::METHOD, post(method::send))
            .route("/console/{*path}", get(pages::missing));
        for page in pages::PAGES {
            let show = move |app, origin, headers, uri| pages::show(page, app, origin, headers, uri);
            routes = routes.route(page.path, get(show));
        }
        app::front(app)
            .wrap(
                routes
                    .layer(DefaultBodyLimit::max(SMALL_FORM))
                    .layer(middleware::from_fn_with_state(app.clone(), guard::admitted)),
            )
            .layer(middleware::from_fn_with_state(app.clone(), guard::guarded))
            .with_state(app.clone())
    }
}
