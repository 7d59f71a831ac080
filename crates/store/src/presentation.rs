//! What a caller may learn of a storage error: nothing of the engine.

use std::time::Duration;

use bowline_core::{Detail, Error, Reason};

use crate::{ErrorKind, StoreError};

/// When a preview that gave way to writes may be tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match error.kind() {
            ErrorKind::Full => Error::storage_full(error),
            ErrorKind::Unavailable if is_short_of_resources(&error) => Error::short_of_resources(error),
            ErrorKind::OverBudget => Error::precondition("PREVIEW_TOO_LARGE", "preview", error.message()),
            ErrorKind::GaveWay => {
                let text = format!("Unavailable: {}", error.message());
                Error::new(Reason::Unavailable, text).with(Detail::RetryAfter(RETRY_AFTER)).because(error)
            }
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
