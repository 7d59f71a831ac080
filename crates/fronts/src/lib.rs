//! What every protocol front shares: the line of a request in the access log.
//!
//! A front is a crate with a router for the paths of its protocol. It calls `Pipeline` or a domain, counts each request
//! against the rate limits, and writes one [`AccessLine`] for it.

mod access_line;

pub use access_line::{AccessLine, code_of, write_failure};
