//! Who asks: a token of this server for the registry, or a user name and a password that are exchanged for one.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bowline_authn::crypto::sha256;
use bowline_authn::jwt::parse_unverified;
use bowline_contract::Method as _;
use bowline_contract::v1::oidc::rpc::security_token_service::Exchange;
use bowline_contract::v1::oidc::{ExchangeRequest, RawToken};
use bowline_core::{Error, Micros, Reason, Uidp};
use bowline_identity::IdentityRevision;
use bowline_pipeline::{
    ANONYMOUS, Call, Caller, Entry, OwnKeys, Principal, RequestOrigin, Surface, Transport, TtlCache,
};
use bowline_registry::content::RefusalCode;
use prost::Message as _;

use crate::Distribution;
use crate::answer::Refused;

/// What a client proves itself with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// Someone at the front.
pub(crate) struct Known {
    pub(crate) principal: Principal,
    /// Whether anything was presented, be it a token that everyone gets.
    pub(crate) has_credential: bool,
}

/// A token of this server for the registry.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) token: Arc<str>,
    pub(crate) expires_at: Micros,
}

/// Maximum number of credentials in the cache.
const MAX_CREDENTIALS: usize = 10_000;

/// Tokens that credentials were exchanged for, by the credential's digest.
///
/// An entry ends with the token, with the credential's own `exp`, with the revision of the identity, and with the
/// server's signing keys. What the identity may do is read at every request.
pub(crate) struct Exchanged(TtlCache<[u8; 32], CachedExchange>);

#[derive(Clone)]
struct CachedExchange {
    token: Arc<str>,
    identity: Option<IdentityRevision>,
    keys: Arc<OwnKeys>,
}

impl Default for Exchanged {
    fn default() -> Exchanged {
        Exchanged(TtlCache::new(MAX_CREDENTIALS))
    }
}

impl Exchanged {
    fn get(&self, digest: [u8; 32], now: Micros) -> Option<CachedExchange> {
        self.0.change(digest, now, |known| (None, known.map(|entry| entry.value)))
    }

    fn put(&self, digest: [u8; 32], value: CachedExchange, until: Micros, now: Micros) {
        self.0.change(digest, now, |_| (Some(Entry { until, value }), ()));
    }
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

/// What the `authorization` header holds.
pub(crate) enum Presented {
    Nothing,
    Bearer(String),
    Basic(Credential),
}

/// Reads the `authorization` header.
pub(crate) fn presented(headers: &HeaderMap) -> Result<Presented, Refused> {
    let unreadable = || {
        let message = "the authorization header is neither \"Bearer <token>\" nor \"Basic <base64 of user:password>\"";
        Refused::new(RefusalCode::Unauthorized, message)
    };
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(Presented::Nothing) };
    let (scheme, rest) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(unreadable)?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty() {
        return Ok(Presented::Bearer(rest.into()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(unreadable());
    }
    let bytes = STANDARD.decode(rest).or_else(|_| STANDARD_NO_PAD.decode(rest)).map_err(|_| unreadable())?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable())?;
    let (user, password) = text.split_once(':').ok_or_else(unreadable)?;
    if user.contains('\0') {
        return Err(unreadable());
    }
    if user.is_empty() && password.is_empty() {
        return Ok(Presented::Nothing);
    }
    Ok(Presented::Basic(Credential { user: user.into(), password: password.into() }))
}

impl Distribution {
    /// Who sends these headers.
    pub(crate) async fn principal(&self, headers: &HeaderMap, origin: &RequestOrigin) -> Result<Known, Refused> {
        let token: Arc<str> = match presented(headers)? {
            Presented::Nothing => {
                self.pipeline.limits.count_address(Surface::Registry, Some(origin.address))?;
                return Ok(Known { principal: Principal::Anonymous, has_credential: false });
            }
            Presented::Bearer(token) => token.into(),
            Presented::Basic(credential) => self.exchanged(&credential, origin).await?,
        };
        let principal = self.verified(&token)?;
        if principal.subject() == ANONYMOUS {
            self.pipeline.limits.count_address(Surface::Registry, Some(origin.address))?;
            return Ok(Known { principal: Principal::Anonymous, has_credential: true });
        }
        self.pipeline.limits.count_principal(Surface::Registry, principal.subject())?;
        Ok(Known { principal, has_credential: true })
    }

    /// The principal of a token. A token of this server for another front is rejected with an error that says
    /// so.
    fn verified(&self, token: &str) -> Result<Principal, Refused> {
        let (settings, now) = (&self.pipeline.settings, self.pipeline.clock.now());
        let authenticate = |audiences: &[&str]| self.pipeline.authenticator.authenticate(Some(token), audiences, now);
        authenticate(&[&settings.registry_audience]).map_err(|error| {
            let is_for_another_door = authenticate(&settings.audiences()).is_ok();
            match Refused::from(error) {
                Refused { error: bowline_registry::content::RegistryError::Refused(refusal), .. }
                    if is_for_another_door =>
                {
                    Refused::new(RefusalCode::Denied, refusal.message)
                }
                refused => refused,
            }
        })
    }

    /// The token for a credential, from an earlier exchange if there was one.
    async fn exchanged(&self, credential: &Credential, origin: &RequestOrigin) -> Result<Arc<str>, Refused> {
        let (digest, now) = (credential.digest(), self.pipeline.clock.now());
        let keys = self.pipeline.authenticator.keys();
        if let Some(kept) = self.exchanged.get(digest, now)
            && Arc::ptr_eq(&kept.keys, &keys)
            && kept.identity == self.revision(credential).await?
        {
            return Ok(kept.token);
        }
        let caller = self.admit(credential, origin)?;
        // Read before the exchange, so that a change during it ends the entry.
        let identity = self.revision(credential).await?;
        let issued = self.issue(credential, caller, origin).await?;
        if let Some(ends_at) = credential.ends_at() {
            let kept = CachedExchange { token: issued.token.clone(), identity, keys };
            self.exchanged.put(digest, kept, ends_at.min(issued.expires_at), now);
        }
        Ok(issued.token)
    }

    async fn revision(&self, credential: &Credential) -> Result<Option<IdentityRevision>, Refused> {
        let Some(uid) = credential.identity() else { return Ok(None) };
        Ok(IdentityRevision::read(&self.pipeline.db, &uid).await?)
    }

    /// Exchanges a credential for a token of this server for the registry, by the same method that every exchange takes.
    pub(crate) async fn exchange(&self, credential: &Credential, origin: &RequestOrigin) -> Result<Issued, Refused> {
        let caller = self.admit(credential, origin)?;
        self.issue(credential, caller, origin).await
    }

    /// Counts an exchange against the address, and refuses what can be none.
    fn admit(&self, credential: &Credential, origin: &RequestOrigin) -> Result<Caller, Refused> {
        if Uidp::parse(&credential.user).is_err() && !self.is_issued_here(&credential.password) {
            // Counted like an exchange, although none begins.
            self.pipeline.limits.count_address(Surface::Registry, Some(origin.address))?;
            return Err(Refused::new(
                RefusalCode::Unauthorized,
                "the password is no token of this server; with a token of another issuer, or a pull token, the user \
                 name is the identity's UIDP",
            ));
        }
        let password = Some(credential.password.clone());
        Ok(self.pipeline.admit(self.exchange_method()?, password, Some(origin.address))?)
    }

    async fn issue(&self, credential: &Credential, caller: Caller, origin: &RequestOrigin) -> Result<Issued, Refused> {
        let identity = Uidp::parse(&credential.user).ok();
        let request = ExchangeRequest {
            aud: vec![self.pipeline.settings.registry_audience.clone()],
            identity: identity.map(String::from).unwrap_or_default(),
            ..ExchangeRequest::default()
        };
        let call = Call {
            method: self.exchange_method()?,
            payload: request.encode_to_vec().into(),
            caller,
            request_id: origin.request_id.to_string(),
            transport: Transport::Rest,
            present: None,
            slice: None,
            resume: None,
        };
        let response = self.pipeline.dispatch(call).await.result.map_err(refused)?;
        let raw = RawToken::decode(response.payload).map_err(Error::internal)?;
        let expiry = raw.expiry.as_ref().map_or(0, |expiry| expiry.seconds);
        Ok(Issued { token: raw.token.into(), expires_at: expiry * 1_000_000 })
    }

    fn exchange_method(&self) -> Result<usize, Error> {
        let method = self.pipeline.contract.by_full_name(Exchange::FULL_NAME);
        Ok(method.ok_or_else(|| Error::internal("the exchange is not in the contract"))?.index)
    }

    fn is_issued_here(&self, token: &str) -> bool {
        parse_unverified(token).is_ok_and(|presented| presented.issuer == self.pipeline.settings.auth_url)
    }
}

/// Why no token is issued: the exchange gives details only to holders of a valid token.
fn refused(error: Error) -> Refused {
    match error.reason() {
        Reason::PermissionDenied | Reason::NotFound | Reason::FailedPrecondition => {
            Refused::new(RefusalCode::Denied, error.message())
        }
        Reason::InvalidArgument => Refused::new(RefusalCode::Unauthorized, error.message()),
        _ => error.into(),
    }
}
