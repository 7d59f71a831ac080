//! Public key sets: parsing, choosing and verifying.

use aws_lc_rs::signature as sig;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::Value;

use crate::error::TokenError;

/// A key set holds at most this many keys.
pub const MAX_KEYS: usize = 100;

/// The signature algorithms that are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alg {
    /// RSA PKCS#1 v1.5, SHA-256.
    Rs256,
    /// RSA PKCS#1 v1.5, SHA-384.
    Rs384,
    /// RSA PKCS#1 v1.5, SHA-512.
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

const ALGS: [(Alg, &str); 9] = [
    (Alg::Rs256, "RS256"),
    (Alg::Rs384, "RS384"),
    (Alg::Rs512, "RS512"),
    (Alg::Ps256, "PS256"),
    (Alg::Ps384, "PS384"),
    (Alg::Ps512, "PS512"),
    (Alg::Es256, "ES256"),
    (Alg::Es384, "ES384"),
    (Alg::EdDsa, "EdDSA"),
];

impl Alg {
    /// The algorithm of a header's `alg`; none, symmetric and unknown ones are refused.
    pub fn parse(name: &str) -> Result<Self, TokenError> {
        ALGS.iter().find(|(_, n)| *n == name).map(|(a, _)| *a).ok_or(TokenError::AlgorithmRefused)
    }

    pub fn as_str(self) -> &'static str {
        ALGS.iter().find(|(a, _)| *a == self).map_or("", |(_, n)| n)
    }

    fn rsa(self) -> Option<&'static sig::RsaParameters> {
        match self {
            Self::Rs256 => Some(&sig::RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&sig::RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&sig::RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&sig::RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&sig::RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&sig::RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::EdDsa => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    kid: Option<String>,
    alg: Option<Alg>,
    material: Material,
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublicKey").field("kid", &self.kid).field("alg", &self.alg).finish_non_exhaustive()
    }
}

impl PublicKey {
    /// None for a key that cannot verify a token here: another type or curve, symmetric, for encryption, damaged.
    fn parse(jwk: &Value) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| text(name).and_then(|t| B64.decode(t.trim_end_matches('=')).ok());
        if text("use").is_some_and(|u| u != "sig") {
            return None;
        }
        if let Some(ops) = jwk.get("key_ops").and_then(Value::as_array)
            && !ops.iter().any(|op| op == "verify")
        {
            return None;
        }
        let point = |size: usize| {
            let (x, y) = (bytes("x")?, bytes("y")?);
            (x.len() == size && y.len() == size).then(|| [&[4][..], &x, &y].concat())
        };
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                let strip = |v: Vec<u8>| v.iter().position(|b| *b != 0).map(|at| v[at..].to_vec());
                Material::Rsa { n: strip(bytes("n")?)?, e: strip(bytes("e")?)? }
            }
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
            _ => return None,
        };
        let alg = match text("alg") {
            Some(name) => Some(Alg::parse(name).ok()?),
            None => None,
        };
        Some(Self { kid: text("kid").map(str::to_owned), alg, material })
    }

    /// The key id, when the set names one.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    fn fits(&self, alg: Alg) -> bool {
        self.alg.is_none_or(|own| own == alg)
            && match &self.material {
                Material::Rsa { .. } => alg.rsa().is_some(),
                Material::P256(_) => alg == Alg::Es256,
                Material::P384(_) => alg == Alg::Es384,
                Material::Ed25519(_) => alg == Alg::EdDsa,
            }
    }

    fn verify(&self, alg: Alg, message: &[u8], signature: &[u8]) -> bool {
        let with = |how: &'static dyn sig::VerificationAlgorithm, key: &[u8]| {
            sig::UnparsedPublicKey::new(how, key).verify(message, signature).is_ok()
        };
        match &self.material {
            Material::Rsa { n, e } => alg
                .rsa()
                .is_some_and(|how| sig::RsaPublicKeyComponents { n, e }.verify(how, message, signature).is_ok()),
            Material::P256(point) => with(&sig::ECDSA_P256_SHA256_FIXED, point),
            Material::P384(point) => with(&sig::ECDSA_P384_SHA384_FIXED, point),
            Material::Ed25519(key) => with(&sig::ED25519, key),
        }
    }
}

/// A parsed key set. Keys that cannot verify a token here are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jwks {
    keys: Vec<PublicKey>,
}

impl Jwks {
    /// Reads a JWKS document: an object with an array `keys` of at most 100 members.
    pub fn parse(document: &Value) -> Result<Self, TokenError> {
        let keys = document.get("keys").and_then(Value::as_array).ok_or(TokenError::Keys)?;
        if keys.len() > MAX_KEYS {
            return Err(TokenError::Keys);
        }
        Ok(Self { keys: keys.iter().filter_map(PublicKey::parse).collect() })
    }

    /// Reads a stored JWKS text (`issuer_keys` of a static identity). A text without a single usable key is an error.
    pub fn parse_str(text: &str) -> Result<Self, TokenError> {
        let set = Self::parse(&serde_json::from_str(text).map_err(|_| TokenError::Keys)?)?;
        if set.keys.is_empty() { Err(TokenError::Keys) } else { Ok(set) }
    }

    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// Whether a key has that id.
    pub fn has_kid(&self, kid: &str) -> bool {
        self.keys.iter().any(|k| k.kid() == Some(kid))
    }

    /// Verifies with the keys of that id; without an id, with the only key that fits the algorithm.
    pub(crate) fn verify(
        &self,
        alg: Alg,
        kid: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), TokenError> {
        let candidates: Vec<&PublicKey> = match kid {
            Some(_) => self.keys.iter().filter(|k| k.kid() == kid).collect(),
            None => self.keys.iter().filter(|k| k.fits(alg)).collect(),
        };
        if candidates.is_empty() || (kid.is_none() && candidates.len() > 1) {
            return Err(TokenError::UnknownKid);
        }
        let mut refusal = TokenError::AlgorithmRefused;
        for key in candidates.into_iter().filter(|k| k.fits(alg)) {
            if key.verify(alg, message, signature) {
                return Ok(());
            }
            refusal = TokenError::BadSignature;
        }
        Err(refusal)
    }
}
