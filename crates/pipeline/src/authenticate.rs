//! Authenticates a bearer token: tokens of this server only, by class, issuer and audience.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bowline_authn::claims::{AccessClaims, TokenClass, verify_own};
use bowline_authn::jwks::Jwks;
use bowline_authn::keys::KeyRing;
use bowline_authn::{TokenError, capset};
use bowline_contract::Contract;
use bowline_core::{CapabilitySet, Error, Micros, Reason, Result, Uidp};

use crate::principal::{Narrowing, Principal, TokenFacts};

/// Our own signing keys, as one moment sees them.
pub struct OwnKeys {
    /// The keys, for minting.
    pub ring: KeyRing,
    /// The keys that a presented token may be signed with.
    pub verification: Jwks,
}

/// Maximum number of verified tokens in the cache; above it the cache is cleared.
const CACHED_TOKENS: usize = 10_000;

/// Verifies tokens and caches the valid ones, by their SHA-256, until they expire.
pub struct Authenticator {
    contract: Arc<Contract>,
    issuer: String,
    keys: RwLock<Arc<OwnKeys>>,
    verified: Mutex<HashMap<[u8; 32], Arc<TokenFacts>>>,
}

impl Authenticator {
    /// Verifies tokens of `issuer`.
    pub fn new(contract: Arc<Contract>, issuer: String, keys: OwnKeys) -> Authenticator {
        Authenticator { contract, issuer, keys: RwLock::new(Arc::new(keys)), verified: Mutex::default() }
    }

    pub fn keys(&self) -> Arc<OwnKeys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes new keys and forgets verified tokens, so that a withdrawn key stops at once.
    pub fn replace_keys(&self, keys: OwnKeys) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
        self.verified.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The principal of a token that one of these audiences accepts.
    ///
    /// # Errors
    /// UNAUTHENTICATED, saying what is wrong with the token.
    pub fn authenticate(&self, bearer: Option<&str>, audiences: &[&str], now: Micros) -> Result<Principal> {
        let Some(token) = bearer.filter(|token| !token.is_empty()) else {
            return Err(Error::new(
                Reason::Unauthenticated,
                "Unauthenticated: send an API token in the header \"Authorization: Bearer <token>\"",
            ));
        };
        let digest = bowline_authn::crypto::sha256(token.as_bytes());
        if let Some(facts) = self.cached(&digest)
            && now < facts.expires_at
            && facts.audiences.iter().any(|aud| audiences.contains(&aud.as_str()))
        {
            return Ok(Principal::Token(facts));
        }
        let keys = self.keys();
        let claims = verify_own(
            token,
            TokenClass::Access,
            &keys.verification,
            &self.issuer,
            audiences,
            now.div_euclid(1_000_000),
        )
        .map_err(|reason| self.refused(reason, audiences))?;
        let facts = Arc::new(self.facts(claims)?);
        self.insert(digest, &facts, &keys);
        Ok(Principal::Token(facts))
    }

    fn cached(&self, digest: &[u8; 32]) -> Option<Arc<TokenFacts>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner).get(digest).cloned()
    }

    /// Remembers, unless the keys changed meanwhile: what a withdrawn key signed must not stay.
    fn insert(&self, digest: [u8; 32], facts: &Arc<TokenFacts>, keys: &Arc<OwnKeys>) {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&self.keys(), keys) {
            return;
        }
        if verified.len() >= CACHED_TOKENS {
            verified.clear();
        }
        verified.insert(digest, facts.clone());
    }

    fn refused(&self, reason: TokenError, audiences: &[&str]) -> Error {
        let code = if reason == TokenError::Expired { Reason::TokenExpired } else { Reason::TokenInvalid };
        let advice = match reason {
            TokenError::Expired => "get a new one".into(),
            TokenError::Audience => format!("ask for a token with the audience {}", audiences.join(" or ")),
            TokenError::Issuer => format!("tokens come from {}", self.issuer),
            _ => format!("exchange an identity token at {}/sts/exchange", self.issuer),
        };
        Error::new(code, format!("Unauthenticated: {reason}; {advice}"))
    }

    /// The facts of a verified token, in typed form.
    ///
    /// # Errors
    /// UNAUTHENTICATED if a claim is not understood any more.
    pub fn facts(&self, claims: AccessClaims) -> Result<TokenFacts> {
        let broken =
            |what| Error::new(Reason::TokenInvalid, format!("Unauthenticated: the token's {what} is not valid"));
        let narrow = claims.narrow.unwrap_or_default();
        let capabilities = match narrow.cap {
            None => None,
            Some(bits) => {
                let words = capset::decode_bits(&bits).map_err(|_| broken("narrowing"))?;
                Some(CapabilitySet::from_words(&words))
            }
        };
        let scopes: std::result::Result<Vec<Uidp>, _> = narrow.scopes.iter().map(|scope| Uidp::parse(scope)).collect();
        Ok(TokenFacts {
            subject: Uidp::parse(&claims.sub).map_err(|_| broken("subject"))?,
            issuer: claims.iss,
            audiences: claims.aud,
            issued_at: claims.iat * 1_000_000,
            expires_at: claims.exp * 1_000_000,
            email: claims.email,
            narrowing: Narrowing { capabilities, scopes: scopes.map_err(|_| broken("narrowing"))? },
            session: claims.sid,
            provider: claims.idp,
            actor: claims.act,
        })
    }

    pub fn contract(&self) -> &Contract {
        &self.contract
    }
}
