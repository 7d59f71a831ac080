//! What belongs to a group, by domain: what keeps it from being deleted, and what goes with it.

use bowline_core::{Result, Uidp};
use bowline_pipeline::Change;
use bowline_store::tables::TableDeclaration;
use bowline_store::{BoxFuture, WriteTx};

/// Deletes the resources of a domain in a group, in the transaction that deletes the group, and returns the changes that the
/// audit log shows.
pub type DeleteOfGroup = for<'a> fn(&'a mut WriteTx, &'a Uidp) -> BoxFuture<'a, Result<Vec<Change>>>;

/// Resources of a domain in a group.
#[derive(Clone, Copy)]
pub struct GroupContents {
    /// The tables of the domain: some rows prevent the deletion of their group, others are deleted with it.
    pub tables: &'static [TableDeclaration],
    /// Deletes what the tables alone do not, if there is any.
    pub delete: Option<DeleteOfGroup>,
}
