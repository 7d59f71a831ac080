use bowline_core::Error;
use bowline_store::StoreError;

/// Why a directory's request is refused, in the vocabulary of RFC 7644.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Unknown provider, SCIM disabled, or another provider's token: never distinguished.
    Unauthorized,
    /// A filter that is malformed or not supported.
    InvalidFilter,
    /// A body that is no SCIM message.
    InvalidSyntax,
    /// A PATCH path that is malformed or names nothing.
    InvalidPath,
    /// A value that the attribute cannot have, or one that is missing.
    InvalidValue,
    /// A PATCH path whose filter matches nothing, or a removal without a path.
    NoTarget,
    /// An attribute that only the server sets.
    Mutability,
    /// A user name or external id that another user has.
    Uniqueness,
    NotFound,
    /// The organization would lose its last owner that is not the directory's own.
    LastOwner,
    /// A resource that is too large to keep.
    TooLarge,
    /// The user changed since the version that the client named.
    VersionMismatch,
}

impl Refusal {
    /// The `scimType` of the error, where the RFC has one.
    pub fn scim_type(self) -> Option<&'static str> {
        match self {
            Refusal::InvalidFilter => Some("invalidFilter"),
            Refusal::InvalidSyntax => Some("invalidSyntax"),
            Refusal::InvalidPath => Some("invalidPath"),
            Refusal::InvalidValue => Some("invalidValue"),
            Refusal::NoTarget => Some("noTarget"),
            Refusal::Mutability => Some("mutability"),
            Refusal::Uniqueness => Some("uniqueness"),
            Refusal::Unauthorized
            | Refusal::NotFound
            | Refusal::LastOwner
            | Refusal::TooLarge
            | Refusal::VersionMismatch => None,
        }
    }
}

/// What a request of a directory fails with.
#[derive(Debug)]
pub enum ScimError {
    /// The request is at fault; the text says how.
    Refused(Refusal, String),
    Failed(Error),
}

impl ScimError {
    pub(super) fn refuse(refusal: Refusal, detail: impl Into<String>) -> ScimError {
        ScimError::Refused(refusal, detail.into())
    }
}

impl From<Error> for ScimError {
    fn from(error: Error) -> ScimError {
        ScimError::Failed(error)
    }
}

impl From<StoreError> for ScimError {
    fn from(error: StoreError) -> ScimError {
        ScimError::Failed(error.into())
    }
}

pub(super) type Result<T> = std::result::Result<T, ScimError>;
