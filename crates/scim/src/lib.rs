//! SCIM 2.0 over HTTP (RFC 7644): paths, headers, bodies and statuses. The operations are in
//! `bowline_identity::scim`.
//!
//! Every path below `/scim/v2/` runs the same checks: rate limit of the address, token, rate limit of writes
//! and searches. Only then is a body read. Without a valid token every path responds alike.

mod answer;
mod documents;
mod render;
mod request;
mod router;
mod schemas;

pub use router::{Scim, router};
