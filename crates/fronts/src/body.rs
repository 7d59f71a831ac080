//! Bodies of requests, bounded in silence.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};

/// How long a client may stay silent in the middle of a transfer.
pub const IDLE: Duration = Duration::from_secs(60);

/// The body ended in silence, or has another length than was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body broke off")]
pub struct BodyError;

/// The parts of a body, of which `promised` bytes are to come if that is known.
pub fn parts(body: Body, promised: Option<u64>) -> impl Stream<Item = Result<Bytes, BodyError>> + Send {
    let state = (Box::pin(body.into_data_stream()), 0_u64, false);
    futures_util::stream::unfold(state, move |(mut body, mut size, is_over)| async move {
        if is_over {
            return None;
        }
        let part = match tokio::time::timeout(IDLE, body.next()).await {
            Ok(Some(Ok(part))) => {
                size += part.len() as u64;
                if promised.is_some_and(|promised| size > promised) { Err(BodyError) } else { Ok(part) }
            }
            Ok(None) if promised.is_none_or(|promised| size == promised) => return None,
            Ok(Some(Err(_)) | None) | Err(_) => Err(BodyError),
        };
        let is_over = part.is_err();
        Some((part, (body, size, is_over)))
    })
}
