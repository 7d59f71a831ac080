//! The two cookies: the secret of a sign-in under way, and the session of a browser.

pub(crate) use bowline_fronts::cookies::{Cookies, read};

/// How long a browser stays signed in, in seconds.
pub(crate) const SESSION_SECONDS: i64 = 30 * 24 * 3600;

/// The cookie of the sign-in of this id; each has its own, so that several continue in one browser.
pub(crate) fn flow(cookies: Cookies, id: &str) -> String {
    cookies.named(&format!("bowline-flow-{id}"))
}

/// The cookie of the browser's session.
pub(crate) fn session(cookies: Cookies) -> String {
    cookies.named("bowline-session")
}
