//! Small formats that more than one crate reads or writes, each in one module: package URLs,
//! percent-encoding, archives, YAML, the claims of workloads.
//!
//! A format belongs here when a second crate needs it. Times are in `bowline_core::rfc3339`, because
//! everything has times. What a domain derives from a format (the ecosystem of a package URL, the files of a
//! wheel) stays in that domain.

pub mod archive;
pub mod percent;
pub mod purl;
pub mod workloads;
pub mod yaml;
mod yaml_writer;
