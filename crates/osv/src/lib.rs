//! Records of vulnerabilities in the shape of the OSV schema, without IO.
//!
//! `parse` checks a record strictly and gives its `Record` and its canonical bytes: the same content has the same
//! bytes, and so the same digest. [`Affects`] is what a query by package needs of a record, in a form that is matched
//! without being decoded.

mod affects;
mod canonical;
mod distribution;
mod facts;
mod package;
mod parse;
mod purl;
mod record;
mod score;

pub use affects::{Affects, VersionQuery};
pub use distribution::{ComparedPackage, ComponentComparison, PackageOrigin};
pub use facts::{Facts, Link, OtherIds, Rated};
pub use package::{PackageKey, base_ecosystem};
pub use parse::{LONGEST_ID, MAX_BYTES, Parsed, is_id, parse};
pub use purl::{Purl, PurlError, RUST};
pub use record::{Affected, Event, Package, Range, RangeKind, Record, Reference, Severity, SeverityKind};
pub use score::{Rating, highest_score, score};
