//! The query API of OSV over HTTP: which records affect a version of a package, and the records themselves.
//! The matching is in `bowline_vulnerabilities::records`.
//!
//! It is a front of its own because its documents are the stored records, byte for byte: with members that no
//! message of the contract has, and names that are not camelCase. Like the contract's methods for metadata of
//! vulnerabilities it needs no authentication; calls are limited by address.

mod answer;
mod request;
mod router;

pub use request::MAX_BODY;
pub use router::{OsvApi, router};
