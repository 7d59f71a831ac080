//! Refusals in the words of the distribution protocol.

use bowline_core::{Error, Reason, Uidp};
use bowline_pipeline::MayDefer;
use bowline_store::StoreError;
use serde_json::{Value, json};

/// Codes of the distribution protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the distribution specification is their documentation")]
pub enum RefusalCode {
    BlobUnknown,
    BlobUploadInvalid,
    BlobUploadUnknown,
    Denied,
    DigestInvalid,
    ManifestBlobUnknown,
    ManifestInvalid,
    ManifestUnknown,
    NameInvalid,
    NameUnknown,
    PaginationNumberInvalid,
    SizeInvalid,
    TooManyRequests,
    Unauthorized,
    Unsupported,
}

/// Why a request was refused, for the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub code: RefusalCode,
    /// What was wrong and what to do.
    pub message: String,
    /// More, for programs; null for nothing.
    pub detail: Value,
}

/// Why an operation of the registry failed.
#[derive(Debug)]
pub enum RegistryError {
    /// The client gets an error code of the protocol.
    Refused(Refusal),
    /// Something of this server failed.
    Failed(Error),
}

impl RegistryError {
    /// A refusal without details.
    pub fn refused(code: RefusalCode, message: impl Into<String>) -> RegistryError {
        RegistryError::Refused(Refusal { code, message: message.into(), detail: Value::Null })
    }

    /// A refusal with what it is about.
    pub(super) fn about(code: RefusalCode, message: impl Into<String>, detail: Value) -> RegistryError {
        RegistryError::Refused(Refusal { code, message: message.into(), detail })
    }
}

impl From<Error> for RegistryError {
    fn from(error: Error) -> RegistryError {
        let code = match error.reason() {
            Reason::Unauthenticated | Reason::TokenExpired | Reason::TokenInvalid => RefusalCode::Unauthorized,
            Reason::InvalidArgument => RefusalCode::NameInvalid,
            Reason::FailedPrecondition | Reason::QuotaExceeded => RefusalCode::Denied,
            Reason::RateLimited => RefusalCode::TooManyRequests,
            _ => return RegistryError::Failed(error),
        };
        RegistryError::refused(code, error.message())
    }
}

impl MayDefer for RegistryError {
    fn pipeline_error(&self) -> Option<&Error> {
        match self {
            RegistryError::Failed(error) => Some(error),
            RegistryError::Refused(_) => None,
        }
    }
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> RegistryError {
        RegistryError::Failed(error.into())
    }
}

/// The error for anonymous clients and for those without the permission: the same whether or not the name
/// exists.
pub(super) fn denied(is_anonymous: bool, name: &str, needed: &[&str]) -> RegistryError {
    let mut detail = json!({ "name": name, "capabilities": needed });
    // The same for every name, so that it reveals nothing about this one.
    if !is_anonymous && !name.split('/').next().is_some_and(Uidp::is_valid) {
        detail["hint"] = "an organization is called by its UIDP here, and by its name once it is verified".into();
    }
    if is_anonymous {
        return RegistryError::about(RefusalCode::Unauthorized, "Authentication required", detail);
    }
    let message = format!("caller does not have the required capabilities at \"{name}\"");
    RegistryError::about(RefusalCode::Denied, message, detail)
}
