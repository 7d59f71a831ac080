//! Health and reflection: gRPC services without authentication, within limits by address.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_pipeline::{RateLimits, Surface, network};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};
use tonic::Status;

use crate::body::ReplyBody;
use crate::request_body::RequestBody;
use bowline_pipeline::{Lease, Quota};

/// Maximum number of calls under way, in all and of one address: probes need one each.
const CALLS: usize = 256;
const CALLS_BY_ADDRESS: usize = 16;
/// Maximum bytes of a request, which names a service or a symbol.
const REQUEST_BYTES: usize = 64 << 10;

/// The services, by the beginning of their paths.
pub(crate) struct Services {
    by_prefix: Vec<(&'static str, Box<Service>)>,
    calls: Arc<Quota<IpAddr>>,
    idle: Duration,
}

type Service = dyn Fn(Request<RequestBody>) -> BoxFuture<'static, Response<tonic::body::Body>> + Send + Sync;

impl Services {
    /// A call ends that has sent nothing for `idle`.
    pub(crate) fn new(reflection: bool, idle: Duration) -> Result<Services, tonic_reflection::server::Error> {
        let (_, health) = tonic_health::server::health_reporter();
        let mut by_prefix = vec![("/grpc.health.v1.Health/", boxed(health))];
        if reflection {
            let builder = || {
                tonic_reflection::server::Builder::configure()
                    .register_encoded_file_descriptor_set(bowline_contract::SERVED_DESCRIPTOR_SET)
                    .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            };
            let v1 = builder().build_v1()?.max_decoding_message_size(REQUEST_BYTES);
            let v1alpha = builder().build_v1alpha()?.max_decoding_message_size(REQUEST_BYTES);
            by_prefix.push(("/grpc.reflection.v1.ServerReflection/", boxed(v1)));
            by_prefix.push(("/grpc.reflection.v1alpha.ServerReflection/", boxed(v1alpha)));
        }
        Ok(Services { by_prefix, calls: Quota::new(CALLS, CALLS_BY_ADDRESS), idle })
    }

    /// Whether the path is one of these services.
    pub(crate) fn serves(&self, path: &str) -> bool {
        self.of(path).is_some()
    }

    /// Serves a call from that address.
    pub(crate) async fn serve(
        &self,
        request: Request<RequestBody>,
        limits: &RateLimits,
        address: IpAddr,
    ) -> Response<ReplyBody> {
        self.answer(request, limits, address)
            .await
            .unwrap_or_else(|status| status.into_http::<tonic::body::Body>().map(ReplyBody::Grpc))
    }

    async fn answer(
        &self,
        request: Request<RequestBody>,
        limits: &RateLimits,
        address: IpAddr,
    ) -> Result<Response<ReplyBody>, Status> {
        limits
            .count_address(Surface::Health, Some(address))
            .map_err(|error| Status::resource_exhausted(error.to_string()))?;
        let lease = self.calls.take(Some(network(address)), 1).map_err(|_| {
            Status::resource_exhausted(format!(
                "Too many health and reflection calls are under way ({CALLS_BY_ADDRESS} of an address, {CALLS} in all): \
                 end some first"
            ))
        })?;
        let Some(service) = self.of(request.uri().path()) else {
            return Err(Status::unimplemented("no such service"));
        };
        let response = tokio::time::timeout(self.idle, service(request)).await;
        let response = response.map_err(|_| Status::deadline_exceeded("The request did not arrive in time"))?;
        Ok(response.map(|body| ReplyBody::Service(Box::new(ServiceBody::new(body, lease, self.idle)))))
    }

    fn of(&self, path: &str) -> Option<&Service> {
        self.by_prefix.iter().find(|(prefix, _)| path.starts_with(prefix)).map(|(_, service)| &**service)
    }
}

/// A response that ends when it has sent nothing for a while, and counts as a call under way until then.
pub(crate) struct ServiceBody {
    body: tonic::body::Body,
    idle: Duration,
    ends: Pin<Box<Sleep>>,
    /// Taken when the response ends.
    lease: Option<Lease<IpAddr>>,
}

impl ServiceBody {
    fn new(body: tonic::body::Body, lease: Lease<IpAddr>, idle: Duration) -> ServiceBody {
        ServiceBody { body, idle, ends: Box::pin(tokio::time::sleep(idle)), lease: Some(lease) }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lease.is_none() || self.body.is_end_stream()
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.lease.is_none() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.ends.as_mut().reset(Instant::now() + self.idle);
            return Poll::Ready(frame);
        }
        if self.ends.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.lease = None;
        let mut trailers = HeaderMap::new();
        // UNAVAILABLE: clients that watch open another call.
        trailers.insert("grpc-status", HeaderValue::from_static("14"));
        trailers.insert("grpc-message", HeaderValue::from_static("idle call ended"));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}

fn boxed<S>(service: S) -> Box<Service>
where
    S: tower_service::Service<Request<RequestBody>, Response = Response<tonic::body::Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
{
    Box::new(move |request| {
        let mut service = service.clone();
        Box::pin(async move {
            match service.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        })
    })
}
