//! What all handlers share.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_core::{Error, Micros, Result};
use bowline_fronts::cookies::{self, Cookies};
use bowline_fronts::{BrowserSessions, Count, Front};
use bowline_pipeline::{ConsolePipeline, HeldToken, RequestOrigin};
use tokio::sync::Semaphore;

use crate::bodies::Bodies;
use crate::sessions::{Key, Session, Sessions};
use crate::turns::Turns;
use crate::{PREFIX, Random, assets, guard, live, shell};

/// Pages of all sessions that are made at a time, and those of one tenant; others wait. Operators have some of their own,
/// so that one can always look.
const PAGES_AT_ONCE: usize = 64;
/// Streams of all sessions that are open at a time.
const STREAMS_AT_ONCE: usize = 256;
const PAGES_OF_TENANT: usize = 48;
const PAGES_OF_OPERATORS: usize = 8;
/// Exports of all sessions that are made at a time: each takes many times its bytes.
const EXPORTS_AT_ONCE: usize = 2;
/// Longest path that a sign-in may return to.
const LONGEST_PATH: usize = 2048;

pub(crate) struct App {
    /// All that pages can do: calls that read, and with a proof, those that a person asks for.
    pub(crate) api: ConsolePipeline,
    /// Longest time for one page.
    pub(crate) page_time: Duration,
    pub(crate) count: Count,
    pub(crate) sessions: Sessions,
    /// Turns of the pages of all sessions, and permits for those of operators.
    pub(crate) pages: Arc<Turns>,
    pub(crate) pages_of_operators: Arc<Semaphore>,
    /// Permits for the exports of all sessions that are made at a time.
    pub(crate) exports: Arc<Semaphore>,
    /// Bytes of forms that are in memory.
    pub(crate) bodies: Bodies,
    /// Permits for the streams of all sessions.
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) cookies: Cookies,
    /// The public origin of the pages, which forms must come from.
    pub(crate) origin: String,
    /// The content security policy of all pages.
    pub(crate) policy: HeaderValue,
    random: Random,
}

impl App {
    pub(crate) fn new(api: ConsolePipeline, page_time: Duration, random: Random, count: Count) -> App {
        let origin = guard::origin_of(&api.settings().auth_url);
        App {
            cookies: Cookies { secure: origin.starts_with("https://") },
            policy: guard::policy(&origin),
            sessions: Sessions::default(),
            pages: Turns::new(PAGES_AT_ONCE, PAGES_OF_TENANT),
            pages_of_operators: Arc::new(Semaphore::new(PAGES_OF_OPERATORS)),
            exports: Arc::new(Semaphore::new(EXPORTS_AT_ONCE)),
            bodies: Bodies::new(),
            streams: Arc::new(Semaphore::new(STREAMS_AT_ONCE)),
            api,
            page_time,
            count,
            origin,
            random,
        }
    }

    pub(crate) fn now(&self) -> Micros {
        self.api.now()
    }

    pub(crate) fn cookie_name(&self) -> String {
        self.cookies.named("bowline-console")
    }

    /// The session of the request's cookie.
    pub(crate) fn session(&self, headers: &HeaderMap) -> Option<(Key, Arc<Session>)> {
        let key = self.key_of(headers)?;
        self.sessions.find(&key, self.now()).map(|session| (key, session))
    }

    /// The session of the request's cookie, which is not used by this.
    pub(crate) fn watching(&self, headers: &HeaderMap) -> Option<(Key, Arc<Session>)> {
        let key = self.key_of(headers)?;
        self.sessions.peek(&key, self.now()).map(|session| (key, session))
    }

    fn key_of(&self, headers: &HeaderMap) -> Option<Key> {
        let cookie = cookies::read(headers, &self.cookie_name())?;
        let cookie: [u8; 32] = URL_SAFE_NO_PAD.decode(cookie).ok()?.try_into().ok()?;
        Some(self.key(&cookie))
    }

    fn key(&self, cookie: &[u8; 32]) -> Key {
        self.api.mac("session", cookie)
    }

    /// What a link to a filled-in form carries if a page of this session has it.
    pub(crate) fn seal<'q>(&self, key: &Key, filled: impl Iterator<Item = (&'q str, &'q str)>) -> String {
        let mut message = key.to_vec();
        for text in filled.flat_map(|(name, value)| [name, value]) {
            message.extend_from_slice(&(text.len() as u64).to_be_bytes());
            message.extend_from_slice(text.as_bytes());
        }
        URL_SAFE_NO_PAD.encode(&self.api.mac("link to a form", &message)[..16])
    }

    /// What a form of this session must carry to be sent to this address.
    pub(crate) fn form_token(&self, key: &Key, action: &str) -> String {
        let message = [key.as_slice(), action.as_bytes()].concat();
        URL_SAFE_NO_PAD.encode(self.api.mac("form", &message))
    }
}

impl BrowserSessions for App {
    fn begin(&self, token: String, label: &str) -> Result<HeaderValue> {
        let token = HeldToken::new(token);
        let facts = self.api.facts(&token)?;
        let (now, cookie) = (self.now(), (self.random)());
        let session = Session::new(token, &facts, label);
        let seconds = (session.ends_at - now).max(0) / 1_000_000;
        self.sessions.begin(self.key(&cookie), session, now);
        let header = self.cookies.set(&self.cookie_name(), &URL_SAFE_NO_PAD.encode(cookie), seconds);
        header.ok_or_else(|| Error::internal("the cookie does not fit into a header"))
    }

    fn end(&self, request: &HeaderMap) {
        if let Some(key) = self.key_of(request) {
            self.sessions.end(&key);
        }
    }

    fn is_page(&self, path: &str) -> bool {
        is_page(path)
    }
}

/// Whether a path with its query is that of a page, and nothing that two parsers could read differently.
pub(crate) fn is_page(path: &str) -> bool {
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\\"<>".contains(&byte));
    if path.len() > LONGEST_PATH || !is_plain {
        return false;
    }
    let Some(rest) = path.strip_prefix(PREFIX) else { return false };
    let place = rest.split(['?', '#']).next().unwrap_or_default();
    let is_inside = rest.is_empty() || rest.starts_with(['/', '?']);
    let is_other = place.starts_with("/sign-") || place.starts_with("/assets");
    is_inside && !is_other && !place.contains("//") && !place.contains("..") && !place.contains('%')
}

/// Counts every page and form, and writes its line.
pub(crate) fn front(app: &App) -> Front {
    // What counts is decided with the session: see `guard::admitted`.
    let admit = |_: &str, _: &RequestOrigin| Ok(());
    let render_rejection = |_: &str, error: Error| shell::problem(None, &error, "", None);
    Front { transport: "console", name, admit: Arc::new(admit), render_rejection, count: app.count.clone() }
}

fn name(verb: &Method, path: &str) -> &'static str {
    match verb.as_str() {
        "GET" if path.starts_with(assets::PREFIX) => "console.asset",
        "GET" if path == live::LIVE => "console.stream",
        "GET" => "console.page",
        "POST" => "console.form",
        _ => "console.unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_pages_follows_a_sign_in() {
        for page in ["/console", "/console/", "/console?x=1", "/console/groups?in=a%2Fb&q=x//y"] {
            assert!(is_page(page), "{page}");
        }
        for other in [
            "",
            "/",
            "//evil.example/console/",
            "https://evil.example/console/",
            "/consoles",
            "/console.evil.example",
            "/console//evil.example",
            "/console/../oauth",
            "/console/%2e%2e/oauth",
            "/console\\evil",
            "/console/\r\nx",
            "/console/é",
            "/console/sign-out",
            "/console/sign-in?return=x",
            "/console/assets/x.js",
        ] {
            assert!(!is_page(other), "{other}");
        }
    }
}
