//! The query API of OSV over HTTP: which records affect a version of a package, and the records themselves. What it
//! finds is decided in `bowline_vulnerabilities::records`.
//!
//! It is a front of its own because its documents are the stored records, byte for byte: members that no message of
//! ours knows, and names that are not camelCase. Like the metadata of vulnerabilities in the wire contract it asks
//! no one who they are; addresses are counted.

mod answer;
mod request;
mod router;

pub use request::MAX_BODY;
pub use router::{OsvApi, router};
