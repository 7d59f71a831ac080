use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use crate::services::ServiceBody;

/// The body of every response: one type, so that none needs a box.
pub(crate) enum ReplyBody {
    /// Bytes that are there already.
    Full(Full<Bytes>),
    Grpc(tonic::body::Body),
    /// A body of health or reflection.
    Service(Box<ServiceBody>),
    /// A body of the router for other paths.
    Other(axum::body::Body),
}

impl ReplyBody {
    pub(crate) fn from(bytes: impl Into<Bytes>) -> ReplyBody {
        ReplyBody::Full(Full::new(bytes.into()))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            ReplyBody::Full(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            ReplyBody::Grpc(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            ReplyBody::Service(body) => body.poll(context).map_err(Into::into),
            ReplyBody::Other(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Full(body) => body.is_end_stream(),
            ReplyBody::Grpc(body) => body.is_end_stream(),
            ReplyBody::Service(body) => body.has_ended(),
            ReplyBody::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Full(body) => body.size_hint(),
            ReplyBody::Grpc(body) => body.size_hint(),
            ReplyBody::Service(_) => SizeHint::default(),
            ReplyBody::Other(body) => body.size_hint(),
        }
    }
}
