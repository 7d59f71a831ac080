//! Compression of large responses.

use std::io::Write as _;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_ENCODING;
use bowline_core::{Error, Result};
use bytes::Bytes;
use flate2::write::GzEncoder;

pub use flate2::Compression;

/// Whether the caller can read gzip. Its own weight counts, and that of `*` where it has none.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut any = false;
    for encoding in values.flat_map(|value| value.split(',')) {
        let mut parts = encoding.split(';').map(str::trim);
        let name = parts.next().unwrap_or("");
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse::<f32>);
        let is_accepted = weight.is_ok_and(|weight| weight > 0.0);
        if name.eq_ignore_ascii_case("gzip") {
            return is_accepted;
        }
        any |= name == "*" && is_accepted;
    }
    any
}

/// The bytes as gzip.
///
/// # Errors
/// INTERNAL: the encoder failed, which it does not in memory.
pub fn gzip(bytes: &[u8], level: Compression) -> Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    encoder.write_all(bytes).map_err(Error::internal)?;
    Ok(encoder.finish().map_err(Error::internal)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_what_the_caller_accepts() {
        for (accepted, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("*, gzip;q=0", false),
            ("gzip;q=x", false),
            ("br", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, accepted.parse().unwrap())]);
            assert_eq!(accepts_gzip(&headers), expected, "{accepted}");
        }
    }
}
