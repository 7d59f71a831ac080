//! What a caller may learn of a storage error: nothing of the engine.

use bowline_core::Error;

use crate::{ErrorKind, StoreError};

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match error.kind() {
            ErrorKind::Full => Error::storage_full(error),
            ErrorKind::Unavailable if is_short_of_resources(&error) => Error::short_of_resources(error),
            ErrorKind::OverBudget => Error::precondition("PREVIEW_TOO_LARGE", "preview", error.message()),
            ErrorKind::Serialization | ErrorKind::Unavailable => Error::unavailable(error),
            ErrorKind::UniqueViolation
            | ErrorKind::ForeignKeyViolation
            | ErrorKind::OtherConstraint
            | ErrorKind::Corrupt
            | ErrorKind::SchemaUnknown
            | ErrorKind::Incomplete
            | ErrorKind::Bug => Error::internal(error),
        }
    }
}

/// PostgreSQL has no memory or no connection left (SQLSTATE class 53, without a full disk).
fn is_short_of_resources(error: &StoreError) -> bool {
    error.sqlstate().is_some_and(|code| code.starts_with("53"))
}
