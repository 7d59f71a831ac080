//! Statements about vulnerabilities in the formats that others read and write.
//!
//! Everything is read into one neutral form ([`Advisory`]) and written from it. A reader is lenient: an
//! invalid record is skipped with its position and the reason, and the rest is read. What a format cannot
//! express is reported by reader and writer alike ([`Problems`]). Writers are deterministic: equal data makes
//! equal bytes, times come from the data and ids of documents from their content.

mod csaf;
mod cursor;
mod cyclonedx;
mod format;
mod license;
mod model;
mod native;
mod openvex;
mod osv;
mod problem;
mod release_cycles;
mod rustsec;
pub mod scan;
mod secdb;
mod subject;
mod tree;
mod vex;
mod yaml;
mod zip;

pub use format::{Document, ReadFormat, Reading, WriteFormat, read, read_of, write};
pub use license::forbids_derivatives;
pub use model::{
    Advisory, Artifact, Assessment, Component, Detection, Event, FalsePositive, Micros, Provenance, Scan,
    is_advisory_id,
};
pub use osv::{Osv, RecordName};
pub use problem::{Effect, Problem, Problems, Unreadable};
pub use release_cycles::{Cycle, Product, release_cycles};
pub use rustsec::{RustsecFile, rustsec_file};
pub use secdb::Secdb;
pub use tree::Limits;
pub use vex::Publisher;
pub use yaml::objects_of_yaml;
pub use zip::ZipWriter;
