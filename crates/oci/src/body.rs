//! Small bodies, bounded in length and time.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bowline_fronts::body::{BodyError, parts};
use bowline_registry::content::RefusalCode;
use futures_util::StreamExt as _;

use crate::answer::Refused;

/// A body of up to so many times its limit is read to its end, though not kept: a client that is still writing would
/// not see why it is refused.
const DRAINED: usize = 4;

/// A small body, whole, which must have arrived after `time`.
pub(crate) async fn whole(body: Body, limit: usize, time: Duration) -> Result<Vec<u8>, Refused> {
    let late = |_| {
        Refused::new(RefusalCode::SizeInvalid, format!("the body took longer than {} s to arrive", time.as_secs()))
            .with_status(StatusCode::REQUEST_TIMEOUT)
    };
    tokio::time::timeout(time, read(body, limit)).await.map_err(late)?
}

async fn read(body: Body, limit: usize) -> Result<Vec<u8>, Refused> {
    let too_large = || {
        Refused::new(RefusalCode::SizeInvalid, format!("the body is larger than {limit} bytes"))
            .with_status(StatusCode::PAYLOAD_TOO_LARGE)
    };
    let expected = axum::body::HttpBody::size_hint(&body).lower();
    if expected > (limit * DRAINED) as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(limit.min(expected as usize));
    let mut size = 0;
    let mut parts = std::pin::pin!(parts(body, None));
    while let Some(part) = parts.next().await {
        let part = part.map_err(|BodyError| Refused::new(RefusalCode::SizeInvalid, "the body broke off"))?;
        size += part.len();
        if size > limit * DRAINED {
            break;
        }
        if size <= limit {
            bytes.extend_from_slice(&part);
        }
    }
    if size > limit { Err(too_large()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[tokio::test]
    async fn a_small_body_that_goes_on_and_on_is_given_up() {
        let drops = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
        });
        let given_up = tokio::time::timeout(
            Duration::from_secs(10),
            whole(Body::from_stream(drops), 1 << 30, Duration::from_millis(100)),
        );
        assert!(given_up.await.is_ok_and(|body| body.is_err()));
    }
}
