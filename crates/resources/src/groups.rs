//! What belongs to a group, by domain: what keeps it from being deleted, and what goes with it.

use bowline_core::{Result, Uidp};
use bowline_pipeline::Change;
use bowline_store::tables::TableDeclaration;
use bowline_store::{BoxFuture, WriteTx};

/// Deletes what a domain holds of a group, in the transaction that deletes the group, and returns the changes that the
/// audit log shows.
pub type DeleteOfGroup = for<'a> fn(&'a mut WriteTx, &'a Uidp) -> BoxFuture<'a, Result<Vec<Change>>>;

/// What a domain holds of groups.
#[derive(Clone, Copy)]
pub struct Belongings {
    /// Its tables: what keeps a group, and what goes with it without more ado.
    pub tables: &'static [TableDeclaration],
    /// Deletes the rest, if there is any.
    pub delete: Option<DeleteOfGroup>,
}
