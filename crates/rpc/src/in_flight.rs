//! Bytes of requests in memory, limited in all and by caller.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::middleware::Next;
use bowline_core::{Detail, Error, Reason, Result};
use bowline_pipeline::{Caller, Principal, RequestOrigin, network};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http_body::{Body, Frame, SizeHint};

use crate::answer::JSON;
use crate::front::Front;
use crate::request_body::RequestBody;
use bowline_pipeline::{Full, Lease, Quota};

/// Bytes of a request that are not counted: most requests have fewer.
const UNCOUNTED: usize = 64 << 10;

/// Counts the bytes of large requests from their arrival until their last use, the queue of the writer included.
#[derive(Debug)]
pub struct InFlight {
    callers: Arc<Quota<Holder>>,
    /// Identities cost their organization nothing, so that those of one share a limit.
    organizations: Arc<Quota<String>>,
    limits: InFlightLimits,
}

#[derive(Clone, Copy, Debug)]
pub struct InFlightLimits {
    pub total: usize,
    /// Of one identity, or of one network where calls take no token.
    pub caller: usize,
    /// Of all identities of one organization.
    pub organization: usize,
}

/// Whose bytes they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Identity(String),
    Network(IpAddr),
}

impl InFlight {
    /// Nothing is under way yet.
    pub fn new(limits: InFlightLimits) -> InFlight {
        InFlight {
            callers: Quota::new(limits.total, limits.caller),
            organizations: Quota::new(limits.total, limits.organization),
            limits,
        }
    }

    /// Counts a request as it was decoded until the returned bytes are dropped.
    pub(crate) fn count(&self, payload: Bytes, caller: &Caller) -> Result<Bytes> {
        if payload.len() <= UNCOUNTED {
            return Ok(payload);
        }
        let mut lease = self.lease(holder(caller));
        self.grow(&mut lease, payload.len())?;
        Ok(Bytes::from_owner(Counted { payload, _lease: lease }))
    }

    /// Routes that read bodies of up to `most` bytes by themselves: what a body may grow to counts from its first byte.
    /// Beyond the limits they respond 429.
    pub fn hold_bodies(self: &Arc<Self>, routes: axum::Router, most: usize) -> axum::Router {
        let in_flight = self.clone();
        routes.layer(axum::middleware::from_fn(move |request: axum::extract::Request, next: Next| {
            let in_flight = in_flight.clone();
            async move {
                let origin = request.extensions().get::<RequestOrigin>();
                let holder = origin.map(|origin| Holder::Network(network(origin.address)));
                let mut lease = in_flight.lease(holder);
                let bytes = request.body().size_hint().upper().map_or(most, |bytes| most.min(bytes as usize));
                match in_flight.grow(&mut lease, if bytes > UNCOUNTED { bytes } else { 0 }) {
                    Ok(()) => next.run(request).await,
                    Err(error) => refusal(&error),
                }
            }
        }))
    }

    fn lease(&self, holder: Option<Holder>) -> Held {
        let organization = holder.as_ref().and_then(Holder::organization);
        Held {
            organization: organization.map(|key| self.organizations.lease(Some(key))),
            caller: self.callers.lease(holder),
        }
    }

    fn grow(&self, held: &mut Held, bytes: usize) -> Result<()> {
        if let Some(organization) = &mut held.organization {
            organization.grow(bytes).map_err(|_| too_many("the organization's", self.limits.organization))?;
        }
        held.caller.grow(bytes).map_err(|full| match full {
            Full::Key => too_many("the caller's", self.limits.caller),
            Full::Total => too_many("all", self.limits.total),
        })
    }
}

/// Bytes of one request, given back on drop.
#[derive(Debug)]
struct Held {
    organization: Option<Lease<String>>,
    caller: Lease<Holder>,
}

impl Holder {
    fn organization(&self) -> Option<String> {
        match self {
            Holder::Identity(uid) => uid.split('/').next().map(String::from),
            Holder::Network(_) => None,
        }
    }
}

fn holder(caller: &Caller) -> Option<Holder> {
    match caller.principal() {
        Principal::Anonymous => caller.peer().map(|address| Holder::Network(network(address))),
        Principal::Token(facts) => Some(Holder::Identity(facts.subject.as_str().to_owned())),
    }
}

fn too_many(whose: &str, most: usize) -> Error {
    let message = format!(
        "Too many bytes of {whose} requests are under way ({} MiB at most): try again when they have been answered",
        most >> 20
    );
    Error::new(Reason::RateLimited, message).with(Detail::RetryAfter(Duration::from_secs(1)))
}

fn refusal(error: &Error) -> axum::response::Response {
    let body = serde_json::json!({ "code": 8, "message": error.to_string(), "details": [] });
    let mut response = axum::response::Response::new(body.to_string().into());
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// A decoded request, counted until its last use.
struct Counted {
    payload: Bytes,
    _lease: Held,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.payload
    }
}

/// A body that is counted while it arrives. From its 65,537th byte on it is read only if the caller may call the
/// method at all, so that no one fills the memory with what is refused in any case.
pub(crate) struct Arriving {
    body: RequestBody,
    front: Arc<Front>,
    method: usize,
    caller: Caller,
    lease: Held,
    arrived: usize,
    counted: usize,
    authorization: Authorization,
}

/// What is known of the caller of a large request.
enum Authorization {
    Unknown,
    /// Under way, with the frame that waits for it.
    Running(BoxFuture<'static, Result<()>>, Option<Frame<Bytes>>),
    Granted,
}

pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

impl Arriving {
    pub(crate) fn new(front: &Arc<Front>, method: usize, caller: &Caller, body: RequestBody) -> Arriving {
        Arriving {
            body,
            front: front.clone(),
            method,
            caller: caller.clone(),
            lease: front.in_flight.lease(holder(caller)),
            arrived: 0,
            counted: 0,
            authorization: Authorization::Unknown,
        }
    }

    fn count(&mut self, frame: &Frame<Bytes>) -> Result<()> {
        self.arrived += frame.data_ref().map_or(0, Bytes::len);
        if self.arrived > UNCOUNTED {
            self.front.in_flight.grow(&mut self.lease, self.arrived - self.counted)?;
            self.counted = self.arrived;
        }
        Ok(())
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        loop {
            if let Authorization::Running(authorization, frame) = &mut this.authorization {
                ready!(authorization.as_mut().poll(context))?;
                let frame = frame.take();
                this.authorization = Authorization::Granted;
                return Poll::Ready(frame.map(Ok));
            }
            let Some(frame) = ready!(Pin::new(&mut this.body).poll_frame(context)?) else {
                return Poll::Ready(None);
            };
            this.count(&frame)?;
            if this.counted == 0 || matches!(this.authorization, Authorization::Granted) {
                return Poll::Ready(Some(Ok(frame)));
            }
            let (front, method, caller) = (this.front.clone(), this.method, this.caller.clone());
            let authorization = async move { front.pipeline.authorize_anywhere(method, &caller).await };
            this.authorization = Authorization::Running(Box::pin(authorization), Some(frame));
        }
    }

    fn is_end_stream(&self) -> bool {
        !matches!(self.authorization, Authorization::Running(..)) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_of_one_organization_share_a_limit() {
        let limits = InFlightLimits { total: 8 << 20, caller: 2 << 20, organization: 3 << 20 };
        let in_flight = InFlight::new(limits);
        let taken = |uid: &str, bytes| {
            let mut held = in_flight.lease(Some(Holder::Identity(uid.into())));
            in_flight.grow(&mut held, bytes).map(|()| held).map_err(|error| error.to_string())
        };
        let first = taken("a/1", 2 << 20).unwrap();
        assert!(taken("a/1", 1).unwrap_err().contains("the caller's requests are under way (2 MiB"));
        let second = taken("a/2", 1 << 20).unwrap();
        assert!(taken("a/3", 1).unwrap_err().contains("the organization's requests are under way (3 MiB"));
        taken("b/1", 2 << 20).unwrap();
        drop((first, second));
        taken("a/3", 2 << 20).unwrap();
    }
}
