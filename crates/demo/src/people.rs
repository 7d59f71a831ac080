//! Tokens that people and machines of the demonstration sign in with.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_server::StartError;
use serde_json::{Value, json};

/// Issuer of their tokens; the domain is reserved, and no server is there.
pub(crate) const ISSUER: &str = "https://people.acme.example";
const KEY_ID: &str = "demonstration";

/// Signs in everyone while a directory is filled. The key is drawn for it and never stored, so that no one can sign in with
/// it later.
pub(crate) struct Signer(EcdsaKeyPair);

impl Signer {
    pub(crate) fn new() -> Result<Signer, StartError> {
        let made = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING);
        made.map(Signer).map_err(|_| StartError::Defect("no key for the demonstration could be made".into()))
    }

    /// The public key, as identities store it.
    pub(crate) fn jwks(&self) -> String {
        // An uncompressed point: one byte, then both coordinates.
        let point = self.0.public_key().as_ref();
        let part = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(point.get(range).unwrap_or_default());
        let key = json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": KEY_ID,
            "x": part(1..33), "y": part(33..65) });
        json!({ "keys": [key] }).to_string()
    }

    /// A token for ten minutes.
    pub(crate) fn token(&self, subject: &str, audience: &str, now: i64) -> Result<String, StartError> {
        let header = json!({ "alg": "ES256", "typ": "JWT", "kid": KEY_ID });
        let claims = json!({ "iss": ISSUER, "sub": subject, "aud": audience, "iat": now, "exp": now + 600 });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let unsigned = format!("{}.{}", part(&header), part(&claims));
        let signature = self.0.sign(&SystemRandom::new(), unsigned.as_bytes());
        let signature = signature.map_err(|_| StartError::Defect("a token could not be signed".into()))?;
        Ok(format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
