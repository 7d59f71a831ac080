//! What a caller may learn of a storage error: nothing of the engine.

use bowline_core::Error;

use crate::{ErrorKind, StoreError};

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match error.kind() {
            ErrorKind::Serialization | ErrorKind::Unavailable => Error::unavailable(error),
            ErrorKind::UniqueViolation
            | ErrorKind::ForeignKeyViolation
            | ErrorKind::OtherConstraint
            | ErrorKind::Corrupt
            | ErrorKind::SchemaUnknown
            | ErrorKind::Bug => Error::internal(error),
        }
    }
}
