//! All errors of the exchange. How much each reveals is decided here, in one place.

use std::time::Duration;

use bowline_authn::TokenError;
use bowline_authn::aws::AwsError;
use bowline_authn::discovery::{KEEP_FAILURE, KeysError};
use bowline_authn::matching::Mismatch;
use bowline_core::{Detail, Error, Reason};

pub(crate) fn no_token() -> Error {
    Error::new(
        Reason::Unauthenticated,
        "Unauthenticated: send the identity token to exchange in the header \"Authorization: Bearer <token>\"",
    )
}

/// The presented token is not good.
pub(crate) fn token(error: TokenError) -> Error {
    tracing::info!(reason = error.reason(), "exchange refused");
    let reason = if error == TokenError::Expired { Reason::TokenExpired } else { Reason::TokenInvalid };
    Error::new(reason, format!("Unauthenticated: {error}"))
}

/// The issuer's keys are not at hand.
pub(crate) fn keys(error: KeysError) -> Error {
    tracing::info!(reason = error.reason(), "exchange refused: no keys");
    if error.is_temporary() {
        // An earlier attempt would only get the cached failure.
        let wait = Duration::from_secs(KEEP_FAILURE.unsigned_abs());
        return Error::new(Reason::Unavailable, format!("Unavailable: {error}")).with(Detail::RetryAfter(wait));
    }
    Error::new(Reason::TokenInvalid, format!("Unauthenticated: {error}"))
}

/// The signed request of an AWS identity is not good, or AWS cannot say so.
pub(super) fn aws(error: AwsError) -> Error {
    tracing::info!(reason = ?error, "exchange refused: AWS");
    match error {
        AwsError::Unavailable(_) => Error::new(Reason::Unavailable, format!("Unavailable: {error}; try again"))
            .with(Detail::RetryAfter(Duration::from_secs(1))),
        AwsError::Expired => Error::new(Reason::TokenExpired, format!("Unauthenticated: {error}")),
        // Whatever is not a token of any kind gets the same error.
        AwsError::Malformed => token(TokenError::Malformed),
        _ => Error::new(Reason::TokenInvalid, format!("Unauthenticated: {error}")),
    }
}

/// AWS named someone whom the identity does not accept.
pub(super) fn aws_caller(member: &'static str) -> Error {
    tracing::info!(reason = "aws", member, "exchange refused");
    Error::permission_denied(format!("invalid {member:?}"))
}

/// The one error for an identity that does not exist and one that does not trust the token's issuer.
pub(crate) fn mismatch(why: &'static str) -> Error {
    tracing::info!(reason = why, "exchange refused: the token does not match the identity");
    Error::permission_denied("permission denied: the token does not match the identity")
}

/// The one error for no candidate and for several; which it was goes to the log.
pub(crate) fn no_identity(why: &'static str) -> Error {
    tracing::info!(reason = why, "exchange refused: no identity found");
    Error::permission_denied("no identity found; pass identity=<uid>")
}

/// No identity trusts exactly the issuer of a token to publish with.
pub(super) fn unknown_issuer() -> Error {
    tracing::info!(reason = "unknown issuer", "publishing token refused");
    Error::permission_denied(
        "no identity trusts exactly the issuer of this token; create one with the issuer as the token spells it, not with a \
         pattern, and give it a role that publishes packages",
    )
}

/// A token that does not fit into a publishing token.
pub(super) fn too_long(limit: usize) -> Error {
    tracing::info!(reason = "too long", "publishing token refused");
    Error::new(Reason::TokenInvalid, format!("Unauthenticated: the token has more claims than fit into {limit} bytes"))
}

/// The one error for a group that does not exist, and for one where no identity that the token matches may publish.
pub(super) fn no_publisher(why: &'static str) -> Error {
    tracing::info!(reason = why, "publishing refused: no identity");
    Error::permission_denied(
        "Permission denied: the group does not exist, or no identity that may publish there matches the token; compare issuer, \
         subject, audience and claims, or send the identity's UIDP as the user name",
    )
}

/// A verified token lacks a claim that the identity requires.
pub(crate) fn claim(mismatch: &Mismatch) -> Error {
    tracing::info!(reason = "claim", claim = ?mismatch.claim, "exchange refused");
    Error::permission_denied(mismatch.to_string())
}

/// A verified token for an identity that no longer acts.
pub(crate) fn inactive(what: &'static str) -> Error {
    tracing::info!(reason = what, "exchange refused: the identity is inactive");
    Error::permission_denied(format!("permission denied: the identity {what}"))
}

/// The keys stored with the identity are not a key set.
pub(crate) fn stored_keys(uid: &str) -> Error {
    tracing::info!(reason = "stored_keys", "exchange refused");
    Error::precondition("IDENTITY_KEYS", uid, "the identity's issuer_keys do not parse as a JWKS; update the identity")
}

/// A token of this server whose identity no longer acts.
pub(crate) fn own_subject() -> Error {
    Error::new(
        Reason::Unauthenticated,
        "Unauthenticated: the token's identity does not exist, has expired or is deactivated; sign in again",
    )
}

/// Someone re-configured the identity while its token was being checked.
pub(crate) fn changed() -> Error {
    Error::new(Reason::Aborted, "Aborted: the identity changed during the exchange; try again")
}

/// A token of this server that is not for the API was presented for a front that it does not open itself.
pub(crate) fn wider_audience() -> Error {
    Error::permission_denied(
        "Permission denied: a token that is not for the API yields only tokens for its own audiences; exchange the identity token instead",
    )
}
