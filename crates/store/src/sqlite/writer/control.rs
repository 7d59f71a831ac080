//! Statements about transactions, and what an error means for the writer's connection.

use rusqlite::ErrorCode;

use crate::error::StoreError;
use crate::sqlite::SqliteTx;
use crate::sqlite::checkpointer::{self, Copied};
use crate::tx::{Inner, WriteTx};

/// Checkpoints as far as readers let it; true if nothing is left. The rest is tried again later.
pub(super) fn checkpoint(conn: &rusqlite::Connection) -> bool {
    match checkpointer::checkpoint(conn) {
        Ok(copied) => copied.is_some_and(|Copied { logged, copied }| copied >= logged),
        Err(error) => {
            tracing::warn!(%error, "the log of the database was not checkpointed; tried again");
            false
        }
    }
}

pub(super) fn connection(tx: &WriteTx) -> Option<&SqliteTx> {
    match &tx.inner {
        Inner::Sqlite(conn) => Some(conn),
        Inner::Postgres(_) => None,
    }
}

pub(super) fn control(tx: &WriteTx, sql: &'static str) -> Result<(), StoreError> {
    connection(tx).map_or(Ok(()), |conn| conn.control(sql))
}

pub(super) fn is_lost(tx: &WriteTx) -> bool {
    connection(tx).is_some_and(|conn| conn.conn.is_autocommit())
}

/// A full disk or a lock held elsewhere is cured by time. After an I/O error, or
/// when the file was opened while it was read-only, only a fresh connection is.
pub(super) fn needs_reopen(error: &StoreError) -> bool {
    use ErrorCode as C;
    matches!(
        error.sqlite_code(),
        Some(
            C::SystemIoFailure
                | C::ReadOnly
                | C::CannotOpen
                | C::PermissionDenied
                | C::FileLockingProtocolFailed
                | C::DatabaseCorrupt
                | C::NotADatabase
                | C::OutOfMemory
        )
    )
}
