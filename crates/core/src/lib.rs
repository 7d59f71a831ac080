//! The vocabulary of Bowline, without input or output: identifiers, capability sets, errors, time.
//!
//! Everything here is plain data and pure functions. A new word belongs here when two crates need it
//! and neither owns it; a word that only one crate uses stays there.

mod capability_set;
mod clock;
mod error;
mod range;
mod reason;
pub mod rfc3339;
mod uidp;

pub use capability_set::CapabilitySet;
pub use clock::{Clock, Micros, SystemClock};
pub use error::{
    Detail, Error, FieldViolation, MAX_VIOLATIONS, PreconditionViolation, QuotaViolation, Result, TermsDocument,
};
pub use range::{UidRange, intersect, just_after, merge};
pub use reason::{Code, Reason};
pub use uidp::{MAX_LEVELS, ROOT_LENGTH, SEGMENT_LENGTH, Uidp, UidpError, hex};
