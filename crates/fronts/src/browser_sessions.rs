use axum::http::{HeaderMap, HeaderValue};
use bowline_core::Result;

/// A front whose pages browsers use while the token stays on the server. Sign-in hands it the token; the browser gets a
/// cookie alone.
pub trait BrowserSessions: Send + Sync {
    /// Begins a session with an access token of the API, and returns the cookie that stands for it. `label` is what pages call
    /// the caller.
    ///
    /// # Errors
    /// UNAUTHENTICATED: the token is not good.
    fn begin(&self, token: String, label: &str) -> Result<HeaderValue>;

    /// Ends the session of the cookie that a request has. A new one replaces the cookie, so that only a thief would still
    /// have it.
    fn end(&self, request: &HeaderMap);

    /// Whether a path, with its query, is that of a page of this front: nothing else may follow a sign-in.
    fn is_page(&self, path: &str) -> bool;
}
