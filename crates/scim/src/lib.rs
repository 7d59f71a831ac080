//! SCIM 2.0 over HTTP (RFC 7644): paths, headers, bodies and statuses. What they mean is decided in
//! `bowline_identity::scim`.
//!
//! Every path below `/scim/v2/` goes one way: the address is counted, the token checked, the write or search
//! counted, and only then is a body read. Without a good token every path answers alike.

mod answer;
mod documents;
mod render;
mod request;
mod router;
mod schemas;

pub use router::{Scim, router};
