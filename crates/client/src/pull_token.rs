use bowline_authn::claims::{TokenClass, mint_value};
use bowline_authn::keys::{Algorithm, SigningKey};
use serde_json::json;

use crate::error::ClientError;

/// The key that signs one pull token and is then discarded.
pub struct PullTokenKey {
    key: SigningKey,
    subject: String,
    issuer: String,
}

/// User name and password for a registry or package client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullToken {
    /// UIDP of the identity: the user name.
    pub identity: String,
    pub token: String,
}

impl PullTokenKey {
    /// Generates a key. `nonce` makes the subject unique.
    ///
    /// # Errors
    /// No key can be made.
    pub fn new(issuer: &str, nonce: &str) -> Result<PullTokenKey, ClientError> {
        let key = SigningKey::generate(Algorithm::Rs256).map_err(|error| ClientError::Usage(error.to_string()))?;
        Ok(PullTokenKey { key, subject: format!("pull-token-{nonce}"), issuer: issuer.into() })
    }

    /// The subject that the identity must expect.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The public half, as the identity stores it.
    pub fn key_set(&self) -> String {
        json!({ "keys": [self.key.public_jwk()] }).to_string()
    }

    /// Signs the token of the identity that trusts the key, and consumes the key. Times are in unix seconds.
    pub fn sign(self, identity: &str, audience: &str, issued_at: i64, expires_at: i64) -> PullToken {
        let claims = json!({
            "iss": self.issuer, "sub": self.subject, "aud": [audience], "iat": issued_at, "exp": expires_at,
        });
        PullToken { identity: identity.into(), token: mint_value(TokenClass::Id, &claims, &self.key) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_authn::jwks::Jwks;
    use bowline_authn::jwt::{parse_unverified, verify_signature};

    #[test]
    fn the_stored_keys_verify_the_token() {
        let key = PullTokenKey::new("https://pull.example", "1").unwrap();
        let keys = Jwks::parse_str(&key.key_set()).unwrap();
        let token = key.sign("abc", "https://issuer.example", 100, 200);
        verify_signature(&token.token, &keys).unwrap();
        let presented = parse_unverified(&token.token).unwrap();
        assert_eq!((presented.issuer.as_str(), presented.subject.as_str()), ("https://pull.example", "pull-token-1"));
        assert_eq!((presented.expiry, &presented.audiences[..]), (200, &["https://issuer.example".to_owned()][..]));
    }
}
