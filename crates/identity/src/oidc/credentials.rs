//! User names and passwords that fronts exchange for tokens: container clients and package managers know no other form.

use std::sync::Arc;

use bowline_authn::crypto::sha256;
use bowline_authn::jwt::parse_unverified;
use bowline_contract::Method as _;
use bowline_contract::v1::oidc::rpc::security_token_service::Exchange;
use bowline_contract::v1::oidc::{ExchangeRequest, RawToken};
use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::{Call, Caller, Entry, OwnKeys, Pipeline, RequestOrigin, Surface, Transport, TtlCache};
use prost::Message as _;

use super::IdentityRevision;

/// What a client proves itself with: a token as the password, and the UIDP of an identity or any other text as the name.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub user: String,
    pub password: String,
}

/// A token of this server for one front.
#[derive(Clone)]
pub struct Issued {
    pub token: Arc<str>,
    pub expires_at: Micros,
}

impl Credential {
    fn digest(&self) -> [u8; 32] {
        // No user name holds a NUL, so that two credentials never look alike.
        sha256(&[self.user.as_bytes(), b"\0", self.password.as_bytes()].concat())
    }

    /// The identity that it is for, if it passes: the named one, or the one of a token of this server.
    fn identity(&self) -> Option<Uidp> {
        let named = Uidp::parse(&self.user).ok();
        named.or_else(|| Uidp::parse(&parse_unverified(&self.password).ok()?.subject).ok())
    }

    /// When it ends by its own word; absent where it is no token, such as a signed request for AWS.
    fn ends_at(&self) -> Option<Micros> {
        parse_unverified(&self.password).ok().map(|presented| presented.expiry.saturating_mul(1_000_000))
    }
}

/// Maximum number of credentials in the cache.
const MAX_CREDENTIALS: usize = 10_000;

#[derive(Clone)]
struct CachedExchange {
    token: Arc<str>,
    identity: Option<IdentityRevision>,
    keys: Arc<OwnKeys>,
}

/// Exchanges credentials for tokens of one front, and caches the tokens by the digests of the credentials.
///
/// An entry ends with the token, with the credential's own `exp`, with the revision of the identity, and with the
/// server's signing keys. What the identity may do is read at every request.
pub struct CredentialExchange {
    pipeline: Arc<Pipeline>,
    audience: String,
    surface: Surface,
    cached: TtlCache<[u8; 32], CachedExchange>,
}

impl CredentialExchange {
    /// For tokens of this audience; exchanges are counted at the surface.
    pub fn new(pipeline: Arc<Pipeline>, audience: String, surface: Surface) -> CredentialExchange {
        CredentialExchange { pipeline, audience, surface, cached: TtlCache::new(MAX_CREDENTIALS) }
    }

    /// The token for a credential, from an earlier exchange if there was one.
    ///
    /// # Errors
    /// Those of [`CredentialExchange::exchange`].
    pub async fn token(&self, credential: &Credential, origin: &RequestOrigin) -> Result<Arc<str>> {
        let (digest, now) = (credential.digest(), self.pipeline.clock.now());
        let keys = self.pipeline.authenticator.keys();
        if let Some(known) = self.cached.change(digest, now, |entry| (None, entry.map(|entry| entry.value)))
            && Arc::ptr_eq(&known.keys, &keys)
            && known.identity == self.revision(credential).await?
        {
            return Ok(known.token);
        }
        let caller = self.admit(credential, origin)?;
        // Read before the exchange, so that a change during it ends the entry.
        let identity = self.revision(credential).await?;
        let issued = self.issue(credential, caller, origin).await?;
        if let Some(ends_at) = credential.ends_at() {
            let value = CachedExchange { token: issued.token.clone(), identity, keys };
            let until = ends_at.min(issued.expires_at);
            self.cached.change(digest, now, |_| (Some(Entry { until, value }), ()));
        }
        Ok(issued.token)
    }

    /// Exchanges a credential for a token of this server, by the same method that every exchange takes.
    ///
    /// # Errors
    /// UNAUTHENTICATED if the password is no token, RATE_LIMITED, or what the exchange answers, which tells the reason to
    /// holders of a valid token alone.
    pub async fn exchange(&self, credential: &Credential, origin: &RequestOrigin) -> Result<Issued> {
        let caller = self.admit(credential, origin)?;
        self.issue(credential, caller, origin).await
    }

    async fn revision(&self, credential: &Credential) -> Result<Option<IdentityRevision>> {
        let Some(uid) = credential.identity() else { return Ok(None) };
        IdentityRevision::read(&self.pipeline.db, &uid).await
    }

    /// Counts an exchange against the address, and refuses what can be none.
    fn admit(&self, credential: &Credential, origin: &RequestOrigin) -> Result<Caller> {
        if Uidp::parse(&credential.user).is_err() && !self.is_issued_here(&credential.password) {
            // Counted like an exchange, although none begins.
            self.pipeline.limits.count_address(self.surface, Some(origin.address))?;
            return Err(Error::new(
                Reason::Unauthenticated,
                "the password is no token of this server; with a token of another issuer, or a pull token, the user \
                 name is the identity's UIDP",
            ));
        }
        let password = Some(credential.password.clone());
        self.pipeline.admit(self.method()?, password, Some(origin.address))
    }

    async fn issue(&self, credential: &Credential, caller: Caller, origin: &RequestOrigin) -> Result<Issued> {
        let identity = Uidp::parse(&credential.user).ok();
        let request = ExchangeRequest {
            aud: vec![self.audience.clone()],
            identity: identity.map(String::from).unwrap_or_default(),
            ..ExchangeRequest::default()
        };
        let call = Call {
            method: self.method()?,
            payload: request.encode_to_vec().into(),
            caller,
            request_id: origin.request_id.to_string(),
            transport: Transport::Rest,
            present: None,
            slice: None,
            resume: None,
        };
        let response = self.pipeline.dispatch(call).await.result?;
        let raw = RawToken::decode(response.payload).map_err(Error::internal)?;
        let expiry = raw.expiry.as_ref().map_or(0, |expiry| expiry.seconds);
        Ok(Issued { token: raw.token.into(), expires_at: expiry * 1_000_000 })
    }

    fn method(&self) -> Result<usize> {
        let method = self.pipeline.contract.by_full_name(Exchange::FULL_NAME);
        Ok(method.ok_or_else(|| Error::internal("the exchange is not in the contract"))?.index)
    }

    fn is_issued_here(&self, token: &str) -> bool {
        parse_unverified(token).is_ok_and(|presented| presented.issuer == self.pipeline.settings.auth_url)
    }
}
