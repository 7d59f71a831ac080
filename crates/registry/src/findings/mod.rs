//! The findings of all images of a scope: [`history`] from day to day, [`open`] as they are.
//!
//! An image counts while a tag names it, by its newest report, as in the counts of single tags. What is counted of reports
//! is read from a table of its own, which has none of their bytes.

pub mod history;
pub mod open;

use bowline_core::{Result, Uidp};
use bowline_store::ReadTx;

use crate::repos;
pub use crate::scan_reports::parse::{Finding, rank};

/// Rejects a scope that is neither a group nor a repository.
///
/// # Errors
/// NOT_FOUND.
pub async fn require_scope(tx: &mut ReadTx, scope: &Uidp) -> Result<()> {
    repos::require_repo_or_group(tx, scope).await
}
