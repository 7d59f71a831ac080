//! What becomes of the rows of the audit log after the commit: numbered, chained, verified, pruned, erased.

mod chain;
mod erase;
mod number;
mod prune;
mod slice;
mod verify;

pub use chain::{HASH_LENGTH, Hash, Link, organization_hash, server_hash, snapshot_hash};
pub use erase::{Erased, erase_snapshots};
pub use number::{NUMBERED_AT_ONCE, number_rows, rows_wait};
pub use prune::{PRUNED_AT_ONCE, prune_rows};
pub use slice::{VerifiedSlice, verify_slice};
pub use verify::{Findings, verify};

/// Name of the chain of all rows, beside the organizations' UIDPs.
pub(crate) const SERVER: &str = "";
