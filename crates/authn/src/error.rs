//! Errors of token verification.

/// Why a token was refused. [`TokenError::reason`] goes to logs and metrics; `Display` is the public message
/// and reveals nothing about keys or identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TokenError {
    /// Not a compact JWS with JSON header and claims, or a claim of the wrong type.
    #[error("the token is malformed")]
    Malformed,
    /// It is longer than [`crate::jwt::MAX_TOKEN`].
    #[error("the token is too large")]
    TooLarge,
    /// `exp`, `sub` or `iss` is missing.
    #[error("the token lacks a required claim (iss, sub or exp)")]
    MissingClaim,
    /// `alg` is `none`, symmetric or unknown, or is not the algorithm of the key.
    #[error("the token's signature algorithm is not accepted")]
    AlgorithmRefused,
    /// The header has keys, key URLs or `crit`.
    #[error("the token's header has a member that is not accepted")]
    HeaderRefused,
    /// No key of the issuer has the token's `kid`, or no single key fits a token without one.
    #[error("the token is signed with an unknown key")]
    UnknownKid,
    /// The signature does not verify.
    #[error("the token's signature is not valid")]
    BadSignature,
    /// The time `exp` has passed.
    #[error("the token has expired")]
    Expired,
    /// Before `nbf` or `iat`.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// The lifetime exceeds the limit of the token's class.
    #[error("the token's lifetime is too long")]
    Lifetime,
    #[error("the token's issuer is not accepted")]
    Issuer,
    #[error("the token's audience is not accepted")]
    Audience,
    /// The token is of another class (header `typ`).
    #[error("this kind of token is not accepted here")]
    Class,
    /// The key set against which it should be verified does not parse.
    #[error("the issuer's keys cannot be read")]
    Keys,
}

impl TokenError {
    /// A stable word for logs and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::MissingClaim => "missing_claim",
            Self::AlgorithmRefused => "algorithm_refused",
            Self::HeaderRefused => "header_refused",
            Self::UnknownKid => "unknown_kid",
            Self::BadSignature => "bad_signature",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::Lifetime => "lifetime",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Class => "class",
            Self::Keys => "keys",
        }
    }

    /// The message for the caller; the same as `Display`.
    pub fn public_message(self) -> String {
        self.to_string()
    }
}
