//! Our own tokens: their claims, minting and verification.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::error::TokenError;
use crate::jwks::Jwks;
use crate::jwt::{LEEWAY, check_times, parse_unverified, verify_signature};
use crate::keys::SigningKey;

/// An access token lives at most this long, in seconds; verification refuses a longer one.
pub const MAX_ACCESS_LIFETIME: i64 = 3600;

/// What a token of this server is for; the header's `typ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenClass {
    /// API, registry and library access.
    Access,
    /// Statement of who someone is, for others.
    Id,
    /// Sent along with a delivered event.
    Webhook,
    /// What a token of a CI system says, for the upload of packages alone.
    Publishing,
}

impl TokenClass {
    /// The value of the header's `typ`.
    pub fn typ(self) -> &'static str {
        match self {
            Self::Access => "at+jwt",
            Self::Id => "id+jwt",
            Self::Webhook => "webhook+jwt",
            Self::Publishing => "publishing+jwt",
        }
    }
}

/// What a token was narrowed to when it was minted; intersected with the live permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowing {
    /// The capabilities that are left ([`crate::capset`] form); none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<String>,
    /// The groups that are left, each with its descendants; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// The claims of a token of this server, of any class: access, refresh, id and publishing tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccessClaims {
    /// URL of this server's issuer.
    pub iss: String,
    pub sub: String,
    /// The fronts that accept it; a single string in JSON when there is one.
    #[serde(serialize_with = "one_or_many", deserialize_with = "from_one_or_many")]
    pub aud: Vec<String>,
    /// Seconds since 1970, in UTC.
    pub exp: i64,
    /// Seconds since 1970, in UTC.
    pub iat: i64,
    /// Unique id of the token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub jti: String,
    /// E-mail address of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Whether the address is verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email_verified: Option<bool>,
    /// The exchanged token: `{iss, sub, aud}`, and the claims that the identity matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<Value>,
    /// Group to capability set, for the information of clients; it decides nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cap: BTreeMap<String, String>,
    /// Narrowing; none means everything that the identity may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrow: Option<Narrowing>,
    /// The organisation's identity provider through which the session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idp: Option<String>,
    /// The session that the token belongs to; it ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sid: Option<String>,
    /// Of an id token: the audiences that its holder confirmed, which it may be exchanged for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub good_for: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal: Option<Value>,
    /// Claims of the upstream sign-in: `{email, name, picture, ..}`; of a publishing token, all of the presented token's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Value>,
}

fn one_or_many<S: Serializer>(aud: &[String], out: S) -> Result<S::Ok, S::Error> {
    match aud {
        [one] => out.serialize_str(one),
        many => out.collect_seq(many),
    }
}

fn from_one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Aud {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Aud::deserialize(from)? {
        Aud::One(one) => vec![one],
        Aud::Many(many) => many,
    })
}

/// Signs the claims as a token of that class.
pub fn mint(class: TokenClass, claims: &AccessClaims, key: &SigningKey) -> String {
    mint_value(class, &json!(claims), key)
}

/// Signs any claims as a token of that class (webhook and id tokens with members of their own).
pub fn mint_value(class: TokenClass, claims: &Value, key: &SigningKey) -> String {
    let header = json!({ "alg": key.algorithm().as_str(), "kid": key.kid(), "typ": class.typ() });
    let mut token = B64.encode(header.to_string());
    token.push('.');
    B64.encode_string(claims.to_string(), &mut token);
    let signature = key.sign(token.as_bytes());
    token.push('.');
    B64.encode_string(signature, &mut token);
    token
}

/// Verifies a token of this server at a front: signature by a key of this server, class, issuer, one of the
/// audiences, times. Expiry is exact, since this server sets it; `iat` has the usual leeway for replicas
/// whose clocks differ.
pub fn verify_own(
    token: &str,
    class: TokenClass,
    keys: &Jwks,
    issuer: &str,
    audiences: &[&str],
    now: i64,
) -> Result<AccessClaims, TokenError> {
    let presented = parse_unverified(token)?;
    if presented.header.kid.is_none() {
        return Err(TokenError::UnknownKid);
    }
    verify_signature(token, keys)?;
    if presented.header.typ.as_deref() != Some(class.typ()) {
        return Err(TokenError::Class);
    }
    if presented.issuer != issuer {
        return Err(TokenError::Issuer);
    }
    if !presented.audiences.iter().any(|a| audiences.contains(&a.as_str())) {
        return Err(TokenError::Audience);
    }
    if now >= presented.expiry {
        return Err(TokenError::Expired);
    }
    check_times(&presented, now, LEEWAY)?;
    let claims: AccessClaims =
        serde_json::from_value(Value::Object(presented.claims)).map_err(|_| TokenError::Malformed)?;
    if class == TokenClass::Access && claims.exp.saturating_sub(claims.iat) > MAX_ACCESS_LIFETIME {
        return Err(TokenError::Lifetime);
    }
    Ok(claims)
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
