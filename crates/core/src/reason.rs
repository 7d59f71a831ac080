//! Why a call failed, for programs.

/// gRPC status codes, with their HTTP twins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[expect(missing_docs, reason = "the names are those of the gRPC specification")]
pub enum Code {
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    /// The HTTP status that carries the code.
    pub fn http_status(self) -> u16 {
        match self {
            Code::Cancelled => 499,
            Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => 400,
            Code::DeadlineExceeded => 504,
            Code::NotFound => 404,
            Code::AlreadyExists | Code::Aborted => 409,
            Code::PermissionDenied => 403,
            Code::ResourceExhausted => 429,
            Code::Unimplemented => 501,
            Code::Unavailable => 503,
            Code::Unauthenticated => 401,
            Code::Unknown | Code::Internal | Code::DataLoss => 500,
        }
    }

    /// The code's name as the specification writes it.
    pub fn name(self) -> &'static str {
        match self {
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

/// Why a call failed, for programs. docs/ERRORS.md lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "docs/ERRORS.md is their documentation")]
pub enum Reason {
    InvalidArgument,
    PageTokenInvalid,
    PageTokenExpired,
    Unauthenticated,
    TokenExpired,
    TokenInvalid,
    TokenReused,
    PermissionDenied,
    NotFound,
    AlreadyExists,
    FailedPrecondition,
    QuotaExceeded,
    RateLimited,
    RequestTooLarge,
    UnsupportedMediaType,
    UnsupportedEncoding,
    StorageFull,
    DeadlineExceeded,
    Aborted,
    Unimplemented,
    Unavailable,
    Internal,
}

impl Reason {
    /// All reasons. A test compares them with the variants.
    pub const ALL: [Reason; 22] = [
        Reason::InvalidArgument,
        Reason::PageTokenInvalid,
        Reason::PageTokenExpired,
        Reason::Unauthenticated,
        Reason::TokenExpired,
        Reason::TokenInvalid,
        Reason::TokenReused,
        Reason::PermissionDenied,
        Reason::NotFound,
        Reason::AlreadyExists,
        Reason::FailedPrecondition,
        Reason::QuotaExceeded,
        Reason::RateLimited,
        Reason::RequestTooLarge,
        Reason::UnsupportedMediaType,
        Reason::UnsupportedEncoding,
        Reason::StorageFull,
        Reason::DeadlineExceeded,
        Reason::Aborted,
        Reason::Unimplemented,
        Reason::Unavailable,
        Reason::Internal,
    ];

    /// The gRPC code of the reason.
    pub fn code(self) -> Code {
        match self {
            Reason::InvalidArgument
            | Reason::PageTokenInvalid
            | Reason::PageTokenExpired
            | Reason::UnsupportedMediaType
            | Reason::UnsupportedEncoding => Code::InvalidArgument,
            Reason::Unauthenticated | Reason::TokenExpired | Reason::TokenInvalid | Reason::TokenReused => {
                Code::Unauthenticated
            }
            Reason::PermissionDenied => Code::PermissionDenied,
            Reason::NotFound => Code::NotFound,
            Reason::AlreadyExists => Code::AlreadyExists,
            Reason::FailedPrecondition => Code::FailedPrecondition,
            Reason::QuotaExceeded | Reason::RateLimited | Reason::RequestTooLarge | Reason::StorageFull => {
                Code::ResourceExhausted
            }
            Reason::DeadlineExceeded => Code::DeadlineExceeded,
            Reason::Aborted => Code::Aborted,
            Reason::Unimplemented => Code::Unimplemented,
            Reason::Unavailable => Code::Unavailable,
            Reason::Internal => Code::Internal,
        }
    }

    /// The reason as `ErrorInfo` carries it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::PageTokenInvalid => "PAGE_TOKEN_INVALID",
            Reason::PageTokenExpired => "PAGE_TOKEN_EXPIRED",
            Reason::TokenExpired => "TOKEN_EXPIRED",
            Reason::TokenInvalid => "TOKEN_INVALID",
            Reason::TokenReused => "TOKEN_REUSED",
            Reason::QuotaExceeded => "QUOTA_EXCEEDED",
            Reason::RateLimited => "RATE_LIMITED",
            Reason::RequestTooLarge => "REQUEST_TOO_LARGE",
            Reason::UnsupportedMediaType => "UNSUPPORTED_MEDIA_TYPE",
            Reason::UnsupportedEncoding => "UNSUPPORTED_ENCODING",
            Reason::StorageFull => "STORAGE_FULL",
            other => other.code().name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reasons_are_listed() {
        let variants =
            include_str!("reason.rs").split_once("pub enum Reason {").and_then(|(_, rest)| rest.split('}').next());
        let variants: Vec<&str> =
            variants.expect("the variants").split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        assert_eq!(variants, Reason::ALL.map(|reason| format!("{reason:?}")));
    }
}
