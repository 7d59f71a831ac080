//! Records of vulnerabilities: how they are imported, what the metadata methods say of them, and the queries of the
//! OSV API.
//!
//! A row of `records` is visible while its source's generation is at least `since` and less than `until`. An import
//! stages rows of the next generation, in short transactions, and is committed by one update of its source: readers
//! see the old state or the new one. What an import that was given up has staged, and what a later one replaced, is
//! cleared away in steps (`sweep`).

mod begin;
mod import_row;
mod imports;
mod lookup;
mod metadata;
mod metadata_v1;
mod newest;
mod of_ecosystem;
mod of_packages;
mod plan;
mod severities;
mod sources;
mod staged;
mod staging;
mod statements;
mod sweep;
mod visible;

use std::sync::Arc;

use bowline_pipeline::Handlers;

pub use lookup::{Missing, Query, RecordLookup, RecordMatch, Results};
pub use newest::{Newest, newest};
pub use of_packages::{PackageRecord, numbers_of_package, of_packages};
pub(crate) use severities::{read as stored_severities, severities};
pub use statements::insert;
pub(crate) use statements::{IN_A_LIST, among};
pub use sweep::sweep;
pub(crate) use visible::{Generations, VISIBLE};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    let handlers = sources::register(handlers);
    let handlers = imports::register(handlers);
    let handlers = staged::register(handlers);
    let handlers = staging::register(handlers);
    let handlers = of_ecosystem::register(handlers);
    let totals = Arc::default();
    let handlers = metadata::register(handlers, &totals);
    metadata_v1::register(handlers, &totals)
}

/// The end of a row that has none: more generations than any source comes to.
const NEVER: i64 = 2_147_483_647;
