//! Pages of packages as they are sent: compressed where clients can take that, and confirmed to those who have them.

use std::io::{self, Read as _, Write};

use aws_lc_rs::digest::{self, Context};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::Response;
use bowline_core::{Error, Micros, Result, hex};
use bowline_formats::percent::{self, AsciiSet, NOT_UNRESERVED};
use bowline_fronts::encoding::{Compression, accepts_gzip};
use bowline_fronts::range;
use bowline_libraries::hosting::{PageBody, RenderedPage};
use bytes::Bytes;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::stream;

use crate::answers::{set, typed};

/// Shorter pages are not compressed, and of longer ones nothing else is held.
const COMPRESSED_FROM: usize = 1024;
const PLAIN: usize = 1 << 20;
/// Bytes of a part of a text that is decompressed while it is sent.
const PART: usize = 64 << 10;
/// Seconds since an upstream confirmed a page that it cannot be asked for now.
const STALE: HeaderName = HeaderName::from_static("x-bowline-stale");

/// A page while it is written. Of a long one no more than its compressed bytes are in memory.
pub(crate) struct PageWriter {
    /// The text, as long as it is short.
    plain: Vec<u8>,
    /// Absent while the text is too short for it.
    gzip: Option<GzEncoder<Vec<u8>>>,
    digest: Context,
    length: u64,
}

impl PageWriter {
    pub(crate) fn new() -> PageWriter {
        PageWriter { plain: Vec::new(), gzip: None, digest: Context::new(&digest::SHA256), length: 0 }
    }

    fn is_long(&self) -> bool {
        self.length > PLAIN as u64
    }

    /// The page that was written.
    ///
    /// # Errors
    /// INTERNAL: the encoder failed, which it does not in memory.
    pub(crate) fn page(self) -> Result<RenderedPage> {
        let is_long = self.is_long();
        let gzip = self.gzip.map(GzEncoder::finish).transpose().map_err(Error::internal)?;
        let body = match (Bytes::from(self.plain), gzip.map(Bytes::from)) {
            (_, Some(gzip)) if is_long => PageBody::Gzip { gzip, length: self.length },
            (text, Some(gzip)) => PageBody::Both { text, gzip },
            (text, None) => PageBody::Text(text),
        };
        Ok(RenderedPage { body, tag: hex(&self.digest.finish().as_ref()[..16]), notice: None })
    }
}

impl Write for PageWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.digest.update(bytes);
        self.length += bytes.len() as u64;
        if self.gzip.is_none() && self.length >= COMPRESSED_FROM as u64 {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(&self.plain)?;
            self.gzip = Some(gzip);
        }
        if let Some(gzip) = &mut self.gzip {
            gzip.write_all(bytes)?;
        }
        if self.is_long() {
            self.plain = Vec::new();
        } else {
            self.plain.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A text as it is sent, with the tag that stands for it.
pub(crate) fn rendered(text: &str) -> Result<RenderedPage> {
    let mut writer = PageWriter::new();
    writer.write_all(text.as_bytes()).map_err(Error::internal)?;
    writer.page()
}

/// A page of a media type, compressed where the client can take that, unless it has it.
pub(crate) fn page(headers: &HeaderMap, content_type: &str, page: RenderedPage) -> Response {
    let is_compressed = accepts_gzip(headers) && !matches!(page.body, PageBody::Text(_));
    // Other bytes have another tag.
    let tag = if is_compressed { format!("{}-gzip", page.tag) } else { page.tag };
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = if range::is_not_modified(known, &tag) {
        typed(StatusCode::NOT_MODIFIED, content_type, "")
    } else {
        sent(content_type, page.body, is_compressed)
    };
    if is_compressed {
        set(&mut response, header::CONTENT_ENCODING, "gzip");
    }
    set(&mut response, header::ETAG, &format!("\"{tag}\""));
    // Policies and what others publish change it at any time.
    set(&mut response, header::CACHE_CONTROL, "private, no-cache");
    response
}

fn sent(content_type: &str, body: PageBody, is_compressed: bool) -> Response {
    match body {
        PageBody::Both { gzip, .. } | PageBody::Gzip { gzip, .. } if is_compressed => {
            typed(StatusCode::OK, content_type, gzip)
        }
        PageBody::Text(text) | PageBody::Both { text, .. } => typed(StatusCode::OK, content_type, text),
        PageBody::Gzip { gzip, length } => {
            let mut response = typed(StatusCode::OK, content_type, Body::from_stream(stream::iter(parts(gzip))));
            set(&mut response, header::CONTENT_LENGTH, &length.to_string());
            response
        }
    }
}

/// The text of compressed bytes, a part at a time.
fn parts(gzip: Bytes) -> impl Iterator<Item = io::Result<Bytes>> + Send {
    let mut decoder = GzDecoder::new(io::Cursor::new(gzip));
    std::iter::from_fn(move || {
        let mut part = Vec::with_capacity(PART);
        match decoder.by_ref().take(PART as u64).read_to_end(&mut part) {
            Ok(0) => None,
            Ok(_) => Some(Ok(part.into())),
            Err(error) => Some(Err(error)),
        }
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(page: &RenderedPage, accept: &'static str) -> (HeaderMap, Vec<u8>) {
        let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accept.parse().expect("a value"))]);
        let (head, body) = super::page(&headers, "text/plain", page.clone()).into_parts();
        (head.headers, axum::body::to_bytes(body, usize::MAX).await.expect("a body").to_vec())
    }

    /// A text that does not repeat itself, in writes of different lengths.
    fn written(length: usize) -> (Vec<u8>, RenderedPage) {
        let text: Vec<u8> = (0..length).map(|at| b'a' + (at * at / 7 % 26) as u8).collect();
        let mut writer = PageWriter::new();
        for part in text.chunks(1000) {
            writer.write_all(part).expect("memory");
        }
        (text, writer.page().expect("a page"))
    }

    #[tokio::test]
    async fn a_page_is_the_same_text_however_it_is_held_and_sent() {
        for length in [0, COMPRESSED_FROM - 1, COMPRESSED_FROM, PLAIN, PLAIN + 1, 3 * PLAIN + 17] {
            let (text, page) = written(length);
            let (headers, plain) = read(&page, "identity").await;
            assert!(plain == text && headers.get(header::CONTENT_ENCODING).is_none(), "{length}");
            let (headers, compressed) = read(&page, "gzip").await;
            let is_compressed = headers.get(header::CONTENT_ENCODING).is_some();
            assert_eq!(is_compressed, length >= COMPRESSED_FROM, "{length}");
            if is_compressed {
                let mut whole = Vec::new();
                GzDecoder::new(compressed.as_slice()).read_to_end(&mut whole).expect("gzip");
                assert!(
                    whole == text && headers[header::ETAG].to_str().expect("a tag").ends_with("-gzip\""),
                    "{length}"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_long_page_is_held_compressed_and_says_how_long_it_is() {
        let (text, page) = written(PLAIN + 1);
        assert!(matches!(page.body, PageBody::Gzip { length, .. } if length == text.len() as u64));
        assert_eq!(read(&page, "identity").await.0[header::CONTENT_LENGTH], (PLAIN + 1).to_string().as_str());
    }
}
