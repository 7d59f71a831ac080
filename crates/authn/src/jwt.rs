//! Presented tokens: reading without trust, then verifying.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::{Map, Value};

pub use crate::jwks::{Alg, Jwks};

use crate::error::TokenError;

/// The longest token that is looked at, in bytes.
pub const MAX_TOKEN: usize = 64 * 1024;
/// The usual tolerance for clocks of others, in seconds.
pub const LEEWAY: i64 = 60;

/// The header of a presented token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub alg: Alg,
    /// The id of the key.
    pub kid: Option<String>,
    /// The class of the token.
    pub typ: Option<String>,
}

/// What a token says about itself. Nothing of it is true before [`verify_signature`] and [`check_times`] passed.
#[derive(Clone, Debug, PartialEq)]
pub struct Presented {
    pub header: Header,
    /// Value of the claim `iss`.
    pub issuer: String,
    /// Value of the claim `sub`.
    pub subject: String,
    /// `aud`, one or many; may be empty.
    pub audiences: Vec<String>,
    /// The claim `exp`: seconds since 1970.
    pub expiry: i64,
    /// The claim `nbf`: seconds since 1970.
    pub not_before: Option<i64>,
    /// The claim `iat`: seconds since 1970.
    pub issued_at: Option<i64>,
    pub claims: Map<String, Value>,
}

/// A token cut into its three parts.
struct Parts<'a> {
    header: Header,
    message: &'a [u8],
    payload: &'a str,
    signature: &'a str,
}

fn decode(part: &str) -> Result<Vec<u8>, TokenError> {
    B64.decode(part).map_err(|_| TokenError::Malformed)
}

fn object(part: &str) -> Result<Map<String, Value>, TokenError> {
    serde_json::from_slice(&decode(part)?).map_err(|_| TokenError::Malformed)
}

fn split(token: &str) -> Result<Parts<'_>, TokenError> {
    if token.len() > MAX_TOKEN {
        return Err(TokenError::TooLarge);
    }
    if !token.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
        return Err(TokenError::Malformed);
    }
    let (message, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
    let (header, payload) = message.split_once('.').ok_or(TokenError::Malformed)?;
    if payload.contains('.') {
        return Err(TokenError::Malformed);
    }
    Ok(Parts { header: read_header(&object(header)?)?, message: message.as_bytes(), payload, signature })
}

fn read_header(header: &Map<String, Value>) -> Result<Header, TokenError> {
    if ["jwk", "jku", "x5u", "x5c", "crit"].iter().any(|name| header.contains_key(*name)) {
        return Err(TokenError::HeaderRefused);
    }
    let text = |name: &str| match header.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(TokenError::Malformed),
    };
    let alg = Alg::parse(&text("alg")?.ok_or(TokenError::Malformed)?)?;
    Ok(Header { alg, kid: text("kid")?, typ: text("typ")? })
}

/// Reads a token without verifying it, to pick the candidate whose keys then have to verify it. Refuses what could
/// never be accepted: algorithm none or symmetric, keys in the header, `crit`, a missing `iss`, `sub` or `exp`.
pub fn parse_unverified(token: &str) -> Result<Presented, TokenError> {
    let parts = split(token)?;
    Presented::of_claims(parts.header, object(parts.payload)?)
}

impl Presented {
    /// What these claims say.
    ///
    /// # Errors
    /// A claim that every token needs is missing, or of a wrong type.
    pub fn of_claims(header: Header, claims: Map<String, Value>) -> Result<Presented, TokenError> {
        let text = |name: &str| match claims.get(name) {
            None => Err(TokenError::MissingClaim),
            Some(Value::String(text)) if text.is_empty() => Err(TokenError::MissingClaim),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(TokenError::Malformed),
        };
        let seconds = |name: &str| match claims.get(name) {
            None => Ok(None),
            // Fractions are allowed (RFC 7519); the cast saturates.
            Some(Value::Number(n)) => {
                n.as_i64().or_else(|| n.as_f64().map(|f| f.floor() as i64)).map(Some).ok_or(TokenError::Malformed)
            }
            Some(_) => Err(TokenError::Malformed),
        };
        let audiences = match claims.get("aud") {
            None => Vec::new(),
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(many)) => many
                .iter()
                .map(|a| a.as_str().map(str::to_owned).ok_or(TokenError::Malformed))
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(TokenError::Malformed),
        };
        Ok(Presented {
            issuer: text("iss")?,
            subject: text("sub")?,
            audiences,
            expiry: seconds("exp")?.ok_or(TokenError::MissingClaim)?,
            not_before: seconds("nbf")?,
            issued_at: seconds("iat")?,
            header,
            claims,
        })
    }
}

/// Verifies the signature with the keys of the candidate. A `kid` must be in the set; a token without one passes only
/// when exactly one key fits its algorithm.
pub fn verify_signature(token: &str, keys: &Jwks) -> Result<(), TokenError> {
    let parts = split(token)?;
    let signature = decode(parts.signature)?;
    keys.verify(parts.header.alg, parts.header.kid.as_deref(), parts.message, &signature)
}

/// Checks `exp`, `nbf` and `iat` at the time `now`, each with `leeway` seconds of tolerance.
pub fn check_times(token: &Presented, now: i64, leeway: i64) -> Result<(), TokenError> {
    if now >= token.expiry.saturating_add(leeway) {
        return Err(TokenError::Expired);
    }
    let early = |at: Option<i64>| at.is_some_and(|at| at > now.saturating_add(leeway));
    if early(token.not_before) || early(token.issued_at) {
        return Err(TokenError::NotYetValid);
    }
    Ok(())
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
