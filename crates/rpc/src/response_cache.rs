//! Responses that callers cache until they change: identified by an entity tag, encoded and compressed once,
//! and not sent again to callers that have them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_contract::MethodInfo;
use bowline_core::{Error, Result};
use bowline_fronts::encoding::{Compression, accepts_gzip, gzip};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use http::{HeaderMap, Response, StatusCode};

use crate::answer::{JSON, Names, failure, json_of};
use crate::body::ReplyBody;
use crate::front::Front;

/// Smaller responses travel as they are.
const COMPRESSED_FROM: usize = 1024;
/// Encoding more than this holds up others on the same thread.
const ENCODED_ASIDE_FROM: usize = 256 << 10;
/// Maximum bytes of encoded responses; above it the cache is cleared.
const MAX_BYTES: usize = 192 << 20;
/// Bytes of an entry besides its response, so that many small ones count for what they take.
const ENTRY_BYTES: usize = 512;

/// The caching and encoding headers of a request.
pub(crate) struct CacheHeaders {
    known: Option<HeaderValue>,
    pub(crate) gzip: bool,
}

impl CacheHeaders {
    pub(crate) fn of(headers: &HeaderMap) -> CacheHeaders {
        CacheHeaders { known: headers.get(IF_NONE_MATCH).cloned(), gzip: accepts_gzip(headers) }
    }

    fn knows(&self, etag: &str) -> bool {
        is_known(self.known.as_ref(), etag)
    }
}

/// Whether an `If-None-Match` names the weak tag, without regard to weakness.
pub fn is_known(if_none_match: Option<&HeaderValue>, etag: &str) -> bool {
    let known = if_none_match.and_then(|value| value.to_str().ok()).unwrap_or("");
    known.split(',').map(str::trim).any(|known| known == "*" || known == etag || Some(known) == etag.strip_prefix("W/"))
}

/// A response as it is sent.
#[derive(Clone)]
struct Encoded {
    json: Bytes,
    /// Absent where it is too small to gain.
    gzip: Option<Bytes>,
}

type Key = (usize, Names, Arc<str>);

/// Responses by method, names and tag. A tag stands for the content, so nothing here is ever out of date.
#[derive(Default)]
pub struct ResponseCache {
    encoded: Mutex<Entries>,
    /// Held while a large response is encoded: a concurrent request for the same finds it in the cache
    /// afterwards.
    aside: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<Key, Encoded>,
    bytes: usize,
}

impl Entries {
    fn insert(&mut self, key: Key, encoded: Encoded) {
        let added = encoded.bytes();
        if self.bytes + added > MAX_BYTES {
            *self = Entries::default();
        }
        self.bytes += added;
        // Two callers may have encoded the same at once.
        if let Some(previous) = self.by_key.insert(key, encoded) {
            self.bytes -= previous.bytes();
        }
    }
}

impl Encoded {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.json.len() + self.gzip.as_ref().map_or(0, Bytes::len)
    }
}

impl ResponseCache {
    fn find(&self, key: &Key) -> Option<Encoded> {
        self.encoded.lock().unwrap_or_else(PoisonError::into_inner).by_key.get(key).cloned()
    }

    fn insert(&self, key: Key, encoded: Encoded) {
        self.encoded.lock().unwrap_or_else(PoisonError::into_inner).insert(key, encoded);
    }
}

/// The response, or 304 if the caller has it.
pub(crate) async fn respond(
    front: &Arc<Front>,
    (method, names): (&MethodInfo, Names),
    payload: Bytes,
    tag: &Arc<str>,
    asked: &CacheHeaders,
    request_id: &str,
) -> Response<ReplyBody> {
    // The content is what the tag stands for, in whatever encoding: the weak kind.
    let etag = format!("W/\"{tag}\"");
    if asked.knows(&etag) {
        let mut response = Response::new(ReplyBody::from(Bytes::new()));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        describe(&mut response, &etag);
        return response;
    }
    let encoded = match encoded(front, method, names, payload, tag).await {
        Ok(encoded) => encoded,
        Err(error) => return failure(front, &error, Some(method), request_id),
    };
    let compressed = encoded.gzip.filter(|_| asked.gzip);
    let is_compressed = compressed.is_some();
    let mut response = Response::new(ReplyBody::from(compressed.unwrap_or(encoded.json)));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    if is_compressed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    describe(&mut response, &etag);
    response
}

fn describe(response: &mut Response<ReplyBody>, etag: &str) {
    let headers = response.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(ETAG, etag);
    }
    // The client may store it, and must revalidate it.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
}

async fn encoded(
    front: &Arc<Front>,
    method: &MethodInfo,
    names: Names,
    payload: Bytes,
    tag: &Arc<str>,
) -> Result<Encoded> {
    let key = (method.index, names, tag.clone());
    if let Some(encoded) = front.response_cache.find(&key) {
        return Ok(encoded);
    }
    if payload.len() < ENCODED_ASIDE_FROM {
        let encoded = encode(front, method, &payload, names)?;
        front.response_cache.insert(key, encoded.clone());
        return Ok(encoded);
    }
    let _alone = front.response_cache.aside.lock().await;
    if let Some(encoded) = front.response_cache.find(&key) {
        return Ok(encoded);
    }
    let (there, index) = (front.clone(), method.index);
    let work = move || encode(&there, there.contract().method(index), &payload, names);
    let encoded = tokio::task::spawn_blocking(work).await.map_err(Error::internal)??;
    front.response_cache.insert(key, encoded.clone());
    Ok(encoded)
}

fn encode(front: &Front, method: &MethodInfo, payload: &[u8], names: Names) -> Result<Encoded> {
    let json = json_of(front, method, payload, names)?;
    let gzip = if json.len() < COMPRESSED_FROM { None } else { Some(gzip(&json, Compression::default())?) };
    Ok(Encoded { json: json.into(), gzip })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: http::HeaderName, value: &str) -> CacheHeaders {
        CacheHeaders::of(&HeaderMap::from_iter([(name, value.parse().unwrap())]))
    }

    #[test]
    fn small_answers_count_for_their_entries_and_an_answer_counts_once() {
        let mut entries = Entries::default();
        let encoded = Encoded { json: Bytes::from_static(b"{}"), gzip: None };
        let key = |tag: usize| (0, Names::Json, Arc::from(tag.to_string()));
        for tag in [1, 2, 1] {
            entries.insert(key(tag), encoded.clone());
        }
        assert_eq!(entries.bytes, 2 * (ENTRY_BYTES + 2));
        for tag in 0..=MAX_BYTES / ENTRY_BYTES {
            entries.insert(key(tag), encoded.clone());
            assert!(entries.bytes <= MAX_BYTES);
        }
        assert!(entries.by_key.len() < MAX_BYTES / ENTRY_BYTES, "older entries were dropped");
    }

    #[test]
    fn tags_are_compared_without_regard_to_weakness() {
        for (known, expected) in [
            ("W/\"a\"", true),
            ("\"a\"", true),
            ("\"b\", W/\"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
            ("", false),
        ] {
            assert_eq!(asked(IF_NONE_MATCH, known).knows("W/\"a\""), expected, "{known}");
        }
    }
}
