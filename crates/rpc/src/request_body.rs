//! Request bodies, and what becomes of one that its handler did not read.
//!
//! Over HTTP/1.1 unread bytes stand between a response and the next request of the connection, so that hyper closes
//! it. A client that was not warned has its next request on the way by then, and loses it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, HeaderValue};
use http::{Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::body::ReplyBody;

/// Maximum unread bytes that are discarded to keep a connection.
const DISCARDED_BYTES: u64 = 64 << 10;
/// How long they may take to arrive.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// The body of a request.
pub(crate) enum RequestBody {
    /// No one else looks at it: over HTTP/2 an unread body ends its own stream alone.
    Owned(Incoming),
    /// Over HTTP/1.1 the rest is looked at after the handler.
    Shared(Arc<Mutex<Tracked>>),
}

pub(crate) struct Tracked {
    body: Incoming,
    has_ended: bool,
}

/// Runs the handler. If it left bytes of the body unread, they are discarded, or the response says
/// `Connection: close`.
pub(crate) async fn handle<F>(
    request: Request<Incoming>,
    handler: impl FnOnce(Request<RequestBody>) -> F,
) -> Response<ReplyBody>
where
    F: Future<Output = Response<ReplyBody>>,
{
    if request.version() >= Version::HTTP_2 || request.body().is_end_stream() {
        return handler(request.map(RequestBody::Owned)).await;
    }
    let expects_continue = request.headers().contains_key(EXPECT);
    let (head, body) = request.into_parts();
    let shared = Arc::new(Mutex::new(Tracked { body, has_ended: false }));
    let mut response = handler(Request::from_parts(head, RequestBody::Shared(shared.clone()))).await;
    // A handler that still holds the body reads on while it responds.
    if let Some(tracked) = Arc::into_inner(shared) {
        let tracked = tracked.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !tracked.discard(expects_continue).await {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    response
}

impl Tracked {
    /// Reads the rest if it is small; false if bytes stay unread.
    async fn discard(mut self, expects_continue: bool) -> bool {
        if self.has_ended || self.body.is_end_stream() {
            return true;
        }
        // Reading would make the client send the body.
        if expects_continue || self.body.size_hint().lower() > DISCARDED_BYTES {
            return false;
        }
        let rest = async {
            let mut left = DISCARDED_BYTES;
            while let Some(frame) = self.body.frame().await {
                let Ok(frame) = frame else { return false };
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                let Some(less) = left.checked_sub(length) else { return false };
                left = less;
            }
            true
        };
        tokio::time::timeout(DISCARD_TIME, rest).await.unwrap_or(false)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            RequestBody::Owned(body) => Pin::new(body).poll_frame(context),
            RequestBody::Shared(shared) => {
                let mut tracked = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let frame = ready!(Pin::new(&mut tracked.body).poll_frame(context));
                tracked.has_ended = !matches!(frame, Some(Ok(_)));
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Owned(body) => body.is_end_stream(),
            RequestBody::Shared(shared) => shared.lock().unwrap_or_else(PoisonError::into_inner).body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Owned(body) => body.size_hint(),
            RequestBody::Shared(shared) => shared.lock().unwrap_or_else(PoisonError::into_inner).body.size_hint(),
        }
    }
}
