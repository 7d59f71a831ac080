//! The style sheet and the script. Their names change with their content, so that browsers keep them for ever.

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// Path of both files.
pub(crate) const PREFIX: &str = "/console/assets/";

const STYLE: &str = include_str!("../assets/console.css");
const SCRIPT: &str = include_str!("../assets/console.js");

/// File name of the style sheet.
pub(crate) fn style_name() -> String {
    format!("console-{:016x}.css", digest(STYLE))
}

/// File name of the script.
pub(crate) fn script_name() -> String {
    format!("console-{:016x}.js", digest(SCRIPT))
}

pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let (kind, content) = if name == style_name() {
        ("text/css; charset=utf-8", STYLE)
    } else if name == script_name() {
        ("text/javascript; charset=utf-8", SCRIPT)
    } else {
        return (StatusCode::NOT_FOUND, "There is no such file.").into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, content).into_response()
}

/// FNV-1a: it tells versions of one file apart, and protects nothing.
const fn digest(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_stays_small_and_makes_no_markup() {
        assert!(SCRIPT.len() < 12 << 10);
        for sink in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "DOMParser"] {
            assert!(!SCRIPT.contains(sink), "{sink}");
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
