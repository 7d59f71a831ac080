//! Pages of packages as they are sent: compressed where clients can take that, and confirmed to those who have them.

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::Response;
use bowline_authn::crypto::sha256;
use bowline_core::{Micros, Result, hex};
use bowline_formats::percent::{self, AsciiSet, NOT_UNRESERVED};
use bowline_fronts::encoding::{Compression, accepts_gzip, gzip};
use bowline_fronts::range;
use bowline_libraries::hosting::RenderedPage;

use crate::answers::{set, typed};

/// Shorter pages are not compressed.
const COMPRESSED_FROM: usize = 1024;
/// Seconds since an upstream confirmed a page that it cannot be asked for now.
const STALE: HeaderName = HeaderName::from_static("x-bowline-stale");

/// A text as it is sent, with the tag that stands for it.
pub(crate) fn rendered(text: String) -> Result<RenderedPage> {
    let tag = hex(&sha256(text.as_bytes())[..16]);
    let is_long = text.len() >= COMPRESSED_FROM;
    let compressed = is_long.then(|| gzip(text.as_bytes(), Compression::default())).transpose()?;
    Ok(RenderedPage { text: text.into(), gzip: compressed, tag, notice: None })
}

/// A page of a media type, compressed where the client can take that, unless it has it.
pub(crate) fn page(headers: &HeaderMap, content_type: &str, page: RenderedPage) -> Response {
    let compressed = page.gzip.filter(|_| accepts_gzip(headers));
    // Other bytes have another tag.
    let tag = if compressed.is_some() { format!("{}-gzip", page.tag) } else { page.tag };
    let is_compressed = compressed.is_some();
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = if range::is_not_modified(known, &tag) {
        typed(StatusCode::NOT_MODIFIED, content_type, "")
    } else {
        typed(StatusCode::OK, content_type, compressed.unwrap_or(page.text))
    };
    if is_compressed {
        set(&mut response, header::CONTENT_ENCODING, "gzip");
    }
    set(&mut response, header::ETAG, &format!("\"{tag}\""));
    // Policies and what others publish change it at any time.
    set(&mut response, header::CACHE_CONTROL, "private, no-cache");
    response
}

/// Says how long ago the upstream confirmed a page that it cannot be asked for now.
pub(crate) fn note_age(response: &mut Response, age: Option<Micros>) {
    if let Some(age) = age {
        set(response, STALE, &(age / 1_000_000).to_string());
    }
}

/// What is escaped in the name of a group: npm refuses files at addresses that do not begin as its registry is written.
const ESCAPED: &AsciiSet = &NOT_UNRESERVED.remove(b':').remove(b'@');

/// The part of an address that names a group; empty without one.
pub(crate) fn at_scope(scope: Option<&str>) -> String {
    scope.map(|scope| format!("/~{}", percent::encode(scope, ESCAPED))).unwrap_or_default()
}
