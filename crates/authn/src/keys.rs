//! Our signing keys and their rotation.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::{Value, json};

use crate::crypto::sha256;
use crate::jwks::Jwks;

/// How long a new key is published before it signs, in seconds.
pub const PUBLISH_AHEAD: i64 = 600;
/// How long a key stays published after it stopped signing, in seconds.
pub const KEEP_AFTER: i64 = 3600;

/// The algorithm of a signing key of this server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256: small and quick to sign.
    Es256,
    /// RSA PKCS#1 v1.5 with SHA-256, 2048 bits; the default, which OpenID Connect requires every provider to offer and
    /// which verifiers without configuration expect.
    #[default]
    Rs256,
}

impl Algorithm {
    /// The name in a token's header, a JWK and the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        }
    }

    /// The algorithm of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Es256, Self::Rs256].into_iter().find(|a| a.as_str() == name)
    }
}

/// A key could not be made or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a usable {} signing key", .0.as_str())]
pub struct KeyError(pub Algorithm);

enum Pair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// A private key of this server with its public half and key id.
pub struct SigningKey {
    pair: Pair,
    kid: String,
    jwk: Value,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("alg", &self.algorithm()).field("kid", &self.kid).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// A new key from the system's random source. RSA takes a noticeable part of a second: not inside a request.
    pub fn generate(alg: Algorithm) -> Result<Self, KeyError> {
        let pair = match alg {
            Algorithm::Es256 => EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map(Pair::Ec),
            Algorithm::Rs256 => RsaKeyPair::generate(KeySize::Rsa2048).map(Pair::Rsa),
        };
        Ok(Self::of(pair.map_err(|_| KeyError(alg))?))
    }

    /// Reads what [`Self::to_pkcs8`] wrote.
    pub fn from_pkcs8(alg: Algorithm, bytes: &[u8]) -> Result<Self, KeyError> {
        let pair = match alg {
            Algorithm::Es256 => EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes).map(Pair::Ec),
            Algorithm::Rs256 => RsaKeyPair::from_pkcs8(bytes).map(Pair::Rsa),
        };
        Ok(Self::of(pair.map_err(|_| KeyError(alg))?))
    }

    /// The private key as PKCS#8 DER, to be sealed before it is stored.
    pub fn to_pkcs8(&self) -> Result<Vec<u8>, KeyError> {
        let failed = |_| KeyError(self.algorithm());
        match &self.pair {
            Pair::Ec(pair) => Ok(pair.to_pkcs8v1().map_err(failed)?.as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let der: Pkcs8V1Der<'_> = pair.as_der().map_err(failed)?;
                Ok(der.as_ref().to_vec())
            }
        }
    }

    fn of(pair: Pair) -> Self {
        // RFC 7638: the required members in lexical order, no white space.
        let (thumb, mut jwk, alg) = match &pair {
            Pair::Ec(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                let (x, y) = (B64.encode(x), B64.encode(y));
                (
                    format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#),
                    json!({"kty": "EC", "crv": "P-256", "x": x, "y": y}),
                    Algorithm::Es256,
                )
            }
            Pair::Rsa(key) => {
                let n = B64.encode(key.public_key().modulus().big_endian_without_leading_zero());
                let e = B64.encode(key.public_key().exponent().big_endian_without_leading_zero());
                (
                    format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#),
                    json!({"kty": "RSA", "n": n, "e": e}),
                    Algorithm::Rs256,
                )
            }
        };
        let kid = B64.encode(sha256(thumb.as_bytes()));
        jwk["kid"] = json!(kid);
        jwk["use"] = json!("sig");
        jwk["alg"] = json!(alg.as_str());
        Self { pair, kid, jwk }
    }

    /// The algorithm that this key signs with.
    pub fn algorithm(&self) -> Algorithm {
        match self.pair {
            Pair::Ec(_) => Algorithm::Es256,
            Pair::Rsa(_) => Algorithm::Rs256,
        }
    }

    /// The key id: the RFC 7638 thumbprint (SHA-256, base64url).
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public key as a JWK with `kid`, `use` and `alg`.
    pub fn public_jwk(&self) -> Value {
        self.jwk.clone()
    }

    /// The raw JWS signature of `message`.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ec(pair) => pair.sign(&random, message).expect("a checked key signs").as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect("a checked key signs");
                signature
            }
        }
    }
}

/// A key with the times (unix seconds) that say what it is for.
#[derive(Clone, Debug)]
pub struct RingKey {
    pub key: Arc<SigningKey>,
    /// From when the JWKS carries it.
    pub published_at: i64,
    /// From when it signs.
    pub signs_from: i64,
    /// From when it signs no more; the JWKS carries it for an hour after that.
    pub retired_at: Option<i64>,
}

/// What a key does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// Signs from a later second on; seconds until then.
    SignsIn(i64),
    Signs,
    /// Signs no more. Tokens that it signed are accepted; for so many seconds more, if that has an end.
    Accepted(Option<i64>),
    /// Neither signs nor verifies.
    Retired,
}

/// All signing keys of this server: which one signs now, which ones are published.
#[derive(Clone, Debug, Default)]
pub struct KeyRing {
    keys: Vec<RingKey>,
}

impl KeyRing {
    /// The ring of the stored keys, in any order.
    pub fn new(keys: Vec<RingKey>) -> Self {
        Self { keys }
    }

    /// The keys with their times, for storing.
    pub fn keys(&self) -> &[RingKey] {
        &self.keys
    }

    /// Adds a new key and plans the end of the others: published now, signing ten minutes later. When no other key
    /// signs now, this one signs at once. Returns the time from which the new key signs.
    pub fn rotate(&mut self, key: impl Into<Arc<SigningKey>>, now: i64) -> i64 {
        let signs_from = if self.signing_key(now).is_some() { now + PUBLISH_AHEAD } else { now };
        for other in &mut self.keys {
            other.retired_at = Some(other.retired_at.map_or(signs_from, |at| at.min(signs_from)));
        }
        self.keys.push(RingKey { key: key.into(), published_at: now, signs_from, retired_at: None });
        signs_from
    }

    /// The key to sign with at that time: among those that may, the one that began last.
    pub fn signing_key(&self, now: i64) -> Option<&Arc<SigningKey>> {
        self.keys
            .iter()
            .filter(|k| k.signs_from <= now && k.retired_at.is_none_or(|at| now < at))
            .max_by_key(|k| k.signs_from)
            .map(|k| &k.key)
    }

    /// What one of these keys does at that time.
    pub fn state(&self, key: &RingKey, now: i64) -> KeyState {
        if self.signing_key(now).is_some_and(|signing| signing.kid() == key.key.kid()) {
            return KeyState::Signs;
        }
        match key.retired_at.map(|at| at.saturating_add(KEEP_AFTER) - now) {
            Some(left) if left < 0 => KeyState::Retired,
            _ if key.signs_from > now => KeyState::SignsIn(key.signs_from - now),
            left => KeyState::Accepted(left),
        }
    }

    /// Removes keys at once, so that nothing they signed is accepted any more. The newest of the others that has not
    /// retired then signs without an end, from now on if no other key does. False if there is none: a new key is needed.
    pub fn revoke(&mut self, kids: &[String], now: i64) -> bool {
        self.keys.retain(|k| !kids.iter().any(|kid| kid == k.key.kid()));
        let signs = self.signing_key(now).is_some();
        let active = self.keys.iter_mut().filter(|k| k.retired_at.is_none_or(|at| now < at));
        let Some(newest) = active.max_by_key(|k| k.signs_from) else {
            return false;
        };
        newest.retired_at = None;
        if !signs {
            newest.signs_from = now;
        }
        true
    }

    fn published(&self, now: i64) -> impl Iterator<Item = &RingKey> {
        self.keys.iter().filter(move |k| {
            k.published_at <= now && k.retired_at.is_none_or(|at| now <= at.saturating_add(KEEP_AFTER))
        })
    }

    /// The JWKS document to publish at that time.
    pub fn jwks(&self, now: i64) -> Value {
        json!({ "keys": self.published(now).map(|k| k.key.public_jwk()).collect::<Vec<_>>() })
    }

    /// The same keys, for verifying tokens of this server.
    pub fn verification_keys(&self, now: i64) -> Jwks {
        Jwks::parse(&self.jwks(now)).unwrap_or_default()
    }

    /// Drops the keys that are no longer published and returns their ids.
    pub fn prune(&mut self, now: i64) -> Vec<String> {
        let (keep, gone) = std::mem::take(&mut self.keys)
            .into_iter()
            .partition(|k| k.retired_at.is_none_or(|at| now <= at.saturating_add(KEEP_AFTER)));
        self.keys = keep;
        let gone: Vec<RingKey> = gone;
        gone.into_iter().map(|k| k.key.kid().to_owned()).collect()
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
