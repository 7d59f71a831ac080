use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_contract::{Auth, Contract, MethodInfo};
use bowline_core::{Detail, Error, Reason, Result};
use bowline_pipeline::{Answer, Call, Outcome, Pipeline};
use bowline_transcode::Tables;
use futures_util::FutureExt as _;
use http::HeaderMap;

use crate::access_log::{self, Entry};
use crate::cors::Cors;
use crate::hosts::Hosts;
use crate::in_flight::InFlight;
use crate::peer::TrustedProxies;
use crate::response_cache::ResponseCache;
use crate::telemetry::Telemetry;

/// Maximum bytes of a request to a method that needs no token of this server.
const OPEN_REQUEST_BYTES: usize = 1 << 20;

/// What both transports share.
pub struct Front {
    /// The path of every call.
    pub pipeline: Arc<Pipeline>,
    pub telemetry: Arc<Telemetry>,
    pub hosts: Hosts,
    /// Sites whose pages may read responses.
    pub cors: Cors,
    pub proxies: TrustedProxies,
    /// The cache of encoded responses, for methods whose responses callers cache.
    pub response_cache: ResponseCache,
    /// Paths outside the contract.
    pub router: axum::Router,
    /// Longest time for one call.
    pub request_time: Duration,
    /// Maximum bytes of a request, where the rule of its method gives no other limit.
    pub request_bytes: usize,
    /// Maximum bytes of a gRPC response.
    pub grpc_response_bytes: usize,
    /// Bytes of requests in memory.
    pub in_flight: Arc<InFlight>,
}

impl Front {
    pub(crate) fn contract(&self) -> &Contract {
        &self.pipeline.contract
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.pipeline.tables
    }

    /// Public address of the API, without a final slash.
    pub(crate) fn base_url(&self) -> &str {
        &self.pipeline.settings.base_url
    }

    /// Takes a call through the pipeline within its time, and logs it.
    pub(crate) async fn call(
        &self,
        mut call: Call,
        transport: &'static str,
        timeout: Option<Duration>,
    ) -> Result<Answer> {
        let started = Instant::now();
        let method: &MethodInfo = self.contract().method(call.method);
        let request_id = call.request_id.clone();
        let counted = self.in_flight.count(call.payload, &call.caller);
        call.payload = counted.map_err(|error| self.refused(call.method, error, transport, &request_id))?;
        let time = timeout.map_or(self.request_time, |timeout| timeout.min(self.request_time));
        let run = AssertUnwindSafe(self.pipeline.dispatch(call)).catch_unwind();
        let outcome = match tokio::time::timeout(time, run).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Outcome::failed(Error::internal("the handler panicked")),
            Err(_) => Outcome::failed(deadline(time)),
        };
        let entry = Entry {
            method,
            previewed: &outcome.previewed,
            principal: &outcome.principal,
            scope: &outcome.scope,
            transport,
            request_id: &request_id,
            elapsed: started.elapsed(),
        };
        access_log::write(self, &entry, &outcome.result);
        outcome.result
    }

    /// A call that did not get as far as the pipeline: its error is logged all the same.
    pub(crate) fn refused(&self, method: usize, error: Error, transport: &'static str, request_id: &str) -> Error {
        let entry = Entry {
            method: self.contract().method(method),
            previewed: "",
            principal: "",
            scope: "",
            transport,
            request_id,
            elapsed: Duration::ZERO,
        };
        let result: Result<()> = Err(error);
        access_log::write(self, &entry, &result);
        match result {
            Err(error) => error,
            Ok(()) => Error::internal("a refusal without an error"),
        }
    }

    /// Maximum bytes of a request: the method's own limit, or the default, which is small for callers without a token.
    pub(crate) fn request_limit(&self, method: &MethodInfo) -> usize {
        let default = match method.auth {
            Auth::Own | Auth::Public => OPEN_REQUEST_BYTES.min(self.request_bytes),
            Auth::Capabilities { .. } => self.request_bytes,
        };
        method.max_request_bytes.map_or(default, |limit| limit as usize)
    }

    pub(crate) fn peer(&self, connected: IpAddr, headers: &HeaderMap) -> IpAddr {
        self.proxies.client(connected, headers)
    }
}

pub(crate) fn deadline(time: Duration) -> Error {
    Error::new(
        Reason::DeadlineExceeded,
        format!("Deadline exceeded: the call took longer than {} ms; whether it took effect is open", time.as_millis()),
    )
    .with(Detail::RetryAfter(Duration::from_secs(1)))
}

/// The id that the caller gave, or a new one.
pub(crate) fn request_id(headers: &HeaderMap) -> String {
    bowline_fronts::request::request_id(headers, bowline_authn::crypto::random_bytes)
}
