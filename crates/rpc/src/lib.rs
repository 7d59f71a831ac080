//! The transports: gRPC and REST on one listener, both over the same pipeline.
//!
//! A transport translates between its wire and `(method, encoded request)`, and knows no service by name.
//! [`Front`] holds what both need; [`Listener`] accepts connections and distinguishes the two. Paths outside
//! the contract (discovery documents, sign-in pages) go to an axum router that the composition root passes
//! in.

mod acceptor;
mod access_log;
mod answer;
mod body;
mod connection_counts;
mod cors;
mod csv;
mod error_details;
mod front;
mod grpc;
mod hosts;
mod in_flight;
mod listener;
mod openapi;
mod peer;
mod pulse;
mod query;
mod request_body;
mod response_cache;
mod rest;
mod rest_request;
mod services;
mod slice;
mod streaming;
mod telemetry;

pub use acceptor::{Acceptor, ListenerOptions};
pub use connection_counts::{ConnectionCounts, Refusal};
pub use cors::Cors;
pub use error_details::status_of;
pub use front::Front;
pub use hosts::Hosts;
pub use in_flight::{InFlight, InFlightLimits};
pub use listener::Listener;
pub use openapi::openapi;
pub use peer::TrustedProxies;
pub use response_cache::{ResponseCache, is_known};
pub use telemetry::{CallTotals, DURATION_BOUNDS, Telemetry};
