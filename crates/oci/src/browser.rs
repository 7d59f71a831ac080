//! Browsers: what was pushed is never shown as a page, since pages of this server may share the host.

use axum::http::HeaderMap;
use bowline_registry::content::RefusalCode;

use crate::answer::Refused;

/// Whether a browser asks for something to show, frame or run. Scripts that fetch (`empty`) get bytes, and programs do not
/// send this header.
pub(crate) fn shows(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-dest").is_some_and(|destination| destination != "empty")
}

/// The refusal of such a request, whether what it asks for exists or not.
pub(crate) fn not_shown() -> Refused {
    let text = "browsers do not show what the registry stores; pull it with a container client, such as `docker pull`";
    Refused::new(RefusalCode::Denied, text)
}
