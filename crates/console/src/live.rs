//! The audit log as it grows: server-sent events for the page that shows it.
//!
//! A stream is a call of `WatchEntries` by the session's caller, whose token and rights are checked at each look. It ends
//! with the session, and does not keep it from ending. Streams are few for each session and in all, and the API's own
//! limits count them as well. Nothing is read ahead of what the browser took.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse as _, Response};
use bowline_contract::bowline::audit::v1::rpc::audit::WatchEntries;
use bowline_contract::bowline::audit::v1::{Entry, WatchEntriesRequest};
use bowline_core::{Code, Error, Reason, Result};
use bowline_fronts::LogFields;
use bowline_pipeline::RequestOrigin;
use bytes::Bytes;
use futures_util::stream::unfold;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::pages::{audit, audit_live};
use crate::query::Query;
use crate::sessions::{Key, Session};
use crate::shell;
use crate::streams::OpenStream;
use crate::visit::Visit;

/// Address of the stream.
pub(crate) const LIVE: &str = "/console/audit-live";
/// The number after which a stream begins.
pub(crate) const AFTER: &str = "after";

/// Time between two looks at the session.
const LOOK: Duration = Duration::from_secs(1);
/// Looks without an event after which a comment is sent: proxies close connections where nothing comes.
const QUIET: u32 = 15;

/// The beginning of a stream: when a browser connects again, in milliseconds.
const BEGINNING: &[u8] = b"retry: 3000\n\n";
const COMMENT: &[u8] = b":\n\n";

/// A stream for a browser.
struct Live {
    app: Arc<App>,
    key: Key,
    session: Arc<Session>,
    origin: RequestOrigin,
    query: Query,
    stream: OpenStream<WatchEntries>,
    /// Events are sent in parts, each with the names of one call.
    parts: u64,
    /// Looks since the last event.
    quiet: u32,
    _permits: [OwnedSemaphorePermit; 2],
}

/// `GET /console/audit-live`: entries as they come, for a page of this console.
pub(crate) async fn serve(
    State(app): State<Arc<App>>,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let request_id = origin.request_id.clone();
    match open(app, origin, &headers, &uri).await {
        Ok(live) => {
            let principal = live.session.subject.clone();
            let mut response = live.response();
            response.extensions_mut().insert(LogFields { principal, ..LogFields::default() });
            response
        }
        Err(error) => {
            let mut response = shell::problem(None, &error, &request_id, None);
            response.extensions_mut().insert(LogFields::failure(&error));
            response
        }
    }
}

/// What a page of this console sends, and nothing else: a stream costs more than a page.
///
/// # Errors
/// PERMISSION_DENIED: another site asks, or what asks does not say. INVALID_ARGUMENT: it does not ask for events.
fn require_own(headers: &HeaderMap) -> Result<()> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if text(HeaderName::from_static("sec-fetch-site")) != "same-origin" {
        return Err(Error::permission_denied("Permission denied: only a page of this console may open this stream"));
    }
    if !text(header::ACCEPT).contains("text/event-stream") {
        return Err(Error::invalid_field("Accept", "must be text/event-stream; open the audit log to see it live"));
    }
    Ok(())
}

/// The number after which an interrupted stream continues.
fn resume(headers: &HeaderMap) -> Result<Option<i64>> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    number("Last-Event-ID", value.to_str().unwrap_or_default()).map(Some)
}

fn number(name: &str, text: &str) -> Result<i64> {
    let number = text.trim().parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| Error::invalid_field(name, "must be the number of an entry"))
}

fn ended() -> Error {
    Error::new(Reason::Unauthenticated, "Your session has ended: sign in again.")
}

async fn open(app: Arc<App>, origin: RequestOrigin, headers: &HeaderMap, uri: &Uri) -> Result<Live> {
    require_own(headers)?;
    let (key, session) = app.watching(headers).ok_or_else(ended)?;
    let query = Query::read(uri.query().unwrap_or_default())?;
    let full = || {
        let text = "Resource exhausted: too many live views are open; close another one first";
        Error::new(Reason::QuotaExceeded, text)
    };
    let permits = [
        session.streams.clone().try_acquire_owned().map_err(|_| full())?,
        app.streams.clone().try_acquire_owned().map_err(|_| full())?,
    ];
    let request = WatchEntriesRequest {
        within: query.text("in"),
        actor: query.text("actor"),
        method: query.text("method"),
        kind: query.text("kind"),
        after: query.get(AFTER).map(|after| number(AFTER, after)).transpose()?,
        ..WatchEntriesRequest::default()
    };
    let mut visit = Visit::new(app.clone(), (key, session.clone()), LIVE, Query::default(), origin.clone());
    let stream = visit.watch::<WatchEntries>(request, resume(headers)?).await?;
    Ok(Live { app, key, session, origin, query, stream, parts: 0, quiet: 0, _permits: permits })
}

impl Live {
    fn response(self) -> Response {
        let beginning = futures_util::stream::iter([Ok::<_, Infallible>(Bytes::from_static(BEGINNING))]);
        let parts = unfold(Some(self), |live| async {
            let mut live = live?;
            match live.part().await {
                Ok(Some(part)) => Some((Ok::<_, Infallible>(part), Some(live))),
                Ok(None) => None,
                // The server stops: the browser connects again by itself.
                Err(error) if error.code() == Code::Unavailable => None,
                Err(error) => Some((Ok(last(&error)), None)),
            }
        });
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        ];
        let body = futures_util::StreamExt::chain(beginning, parts);
        (headers, Body::from_stream(body)).into_response()
    }

    /// The next events, or a comment where there are none for a while.
    ///
    /// # Errors
    /// Why the stream ends.
    async fn part(&mut self) -> Result<Option<Bytes>> {
        loop {
            self.require_session()?;
            match tokio::time::timeout(LOOK, self.stream.next()).await {
                Ok(entries) => {
                    let Some(entries) = entries? else { return Ok(None) };
                    self.quiet = 0;
                    return self.events(entries).await.map(Some);
                }
                Err(_) => self.quiet += 1,
            }
            if self.quiet >= QUIET {
                self.quiet = 0;
                return Ok(Some(Bytes::from_static(COMMENT)));
            }
        }
    }

    fn require_session(&self) -> Result<()> {
        self.app.sessions.peek(&self.key, self.app.now()).map(|_| ()).ok_or_else(ended)
    }

    /// Entries as events, with the names that the caller may read.
    async fn events(&mut self, entries: Vec<(i64, Entry)>) -> Result<Bytes> {
        self.parts += 1;
        let request_id = format!("{}.{}", self.origin.request_id, self.parts).into();
        let origin = RequestOrigin { request_id, ..self.origin.clone() };
        let session = (self.key, self.session.clone());
        let mut visit = Visit::new(self.app.clone(), session, LIVE, self.query.clone(), origin);
        visit.is_scope_resolved = true;
        let (numbers, entries): (Vec<i64>, Vec<Entry>) = entries.into_iter().unzip();
        let names = audit::names_in(&mut visit, &entries).await?;
        // It may have ended meanwhile.
        self.require_session()?;
        let mut events = String::new();
        for (number, entry) in numbers.iter().zip(&entries) {
            let cells = json!({ "cells": audit_live::cells(entry, &names) });
            events.push_str(&format!("id: {number}\nevent: entry\ndata: {cells}\n\n"));
        }
        Ok(events.into())
    }
}

/// The last event of a stream: why it ends. Browsers do not connect again after it.
fn last(error: &Error) -> Bytes {
    format!("event: end\ndata: {}\n\n", json!({ "text": error.message() })).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn pages_of_this_console_alone_open_streams() {
        let accept = ("accept", "text/event-stream");
        assert!(require_own(&headers(&[("sec-fetch-site", "same-origin"), accept])).is_ok());
        for site in ["same-site", "cross-site", "none", ""] {
            let error = require_own(&headers(&[("sec-fetch-site", site), accept])).unwrap_err();
            assert_eq!(error.code(), Code::PermissionDenied, "{site}");
        }
        assert!(require_own(&headers(&[accept])).is_err(), "what does not say");
        assert!(require_own(&headers(&[("sec-fetch-site", "same-origin"), ("accept", "text/html")])).is_err());
    }

    #[test]
    fn streams_continue_after_a_number() {
        assert_eq!(resume(&headers(&[])).unwrap(), None);
        assert_eq!(resume(&headers(&[("last-event-id", "7")])).unwrap(), Some(7));
        for wrong in ["", "-1", "x", "99999999999999999999"] {
            assert!(resume(&headers(&[("last-event-id", wrong)])).is_err(), "{wrong}");
        }
    }
}
