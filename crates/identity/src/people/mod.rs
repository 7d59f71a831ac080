//! People: how they sign in, what their sessions are, and how those end.
//!
//! No one has a password here. A person signs in at an identity provider ([`Provider`]): one of the operator's, which
//! everyone may use, or one of an organization's, which its name leads to. The pages send the browser to
//! [`People::authorization_url`]; it comes back with a code that [`People::redeem`] turns into what the provider says
//! of the person ([`Upstream`]). [`People::sign_in`] then registers them or finds them again, and begins a session, in
//! one transaction; [`People::issue`] makes tokens of it. Tokens name their session and end with its row.
//!
//! Through an organization's provider a session acts only inside that organization, because that provider's
//! administrator can sign in as anyone of its issuer.

mod first_grants;
mod one_time;
mod own_sessions;
mod preferences;
pub(crate) mod providers;
mod prune;
mod refresh;
mod register;
pub(crate) mod sessions;
mod sign_in;
mod tokens;
mod types;
mod upstream;

use std::sync::Arc;

use bowline_authn::discovery::IssuerKeys;
use bowline_authn::guarded::GuardedClient;
use bowline_contract::Contract;
use bowline_contract::v1::auth::rpc::auth::{Delete, GetHeadlessSession, Register};
use bowline_contract::v1::oidc::rpc::security_token_service::ExchangeRefreshToken;
use bowline_contract::v1::oidc::{ExchangeRequest, RawToken};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authenticator, Handlers, Open, Settings, Vault, handler};
use bowline_store::{Db, WriteTx};

pub use types::{
    AuthorizationRequest, Choice, ConfiguredProvider, Context, Entry, Issued, Login, Provider, Redemption, Signed,
    Source, TokenParams, Upstream,
};

pub use one_time::create_operator_link;
pub use providers::operator_secret_context;
pub use providers::secret_context as provider_secret_context;
pub use prune::is_full;

use crate::oidc::Exchange;
use crate::oidc::params::ExchangeParams;

/// Everything about people who sign in, with all that it needs.
pub struct People {
    parts: Arc<Parts>,
}

/// What [`People`] is made of.
pub struct Parts {
    pub db: Db,
    /// The client for requests to identity providers.
    pub client: GuardedClient,
    /// Keys of other issuers.
    pub issuer_keys: Arc<IssuerKeys>,
    pub authenticator: Arc<Authenticator>,
    /// What the operator configured.
    pub settings: Arc<Settings>,
    pub contract: Arc<Contract>,
    pub vault: Arc<Vault>,
    pub exchange: Arc<Exchange>,
    /// The operator's providers of the configuration file.
    pub providers: Vec<ConfiguredProvider>,
}

pub(crate) fn register(handlers: Handlers, people: Option<&Arc<People>>) -> Handlers {
    let handlers = preferences::register(own_sessions::register(handlers));
    let (refresh, registration, headless) = (people.cloned(), people.cloned(), people.cloned());
    handlers
        .open::<ExchangeRefreshToken>(move |call| {
            let people = refresh.clone();
            Box::pin(async move { refresh::exchange(&present(people)?.parts, &call).await })
        })
        .open::<Register>(move |call| {
            let people = registration.clone();
            Box::pin(async move { register::register(&present(people)?.parts, &call).await })
        })
        .open::<GetHeadlessSession>(move |call| {
            let people = headless.clone();
            Box::pin(
                async move { one_time::take_headless(&present(people)?.parts, &call.request().code, call.now()).await },
            )
        })
        .write::<Delete>(handler!(register::delete))
}

pub(crate) fn present(people: Option<Arc<People>>) -> Result<Arc<People>> {
    people.ok_or_else(|| Error::internal("the handlers were made without people"))
}

impl People {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> People {
        People { parts: Arc::new(parts) }
    }

    pub(crate) fn client(&self) -> GuardedClient {
        self.parts.client.clone()
    }

    pub(crate) fn exchange(&self) -> Arc<Exchange> {
        self.parts.exchange.clone()
    }

    /// The providers that everyone is offered: those of the configuration file, then those set by command.
    pub async fn operator_providers(&self) -> Result<Vec<Provider>> {
        providers::of_operator(&self.parts).await
    }

    /// The provider that a caller names.
    ///
    /// # Errors
    /// NOT_FOUND, with one text for everything that may be wrong.
    pub async fn provider(&self, choice: &Choice) -> Result<Provider> {
        providers::chosen(&self.parts, choice).await
    }

    /// Whether a verified organization of this name has a provider of its own.
    pub async fn organization_has_provider(&self, name: &str) -> Result<bool> {
        let name = name.to_owned();
        let read = self.parts.db.read(move |tx| Box::pin(async move { providers::by_name(tx, &name).await }));
        Ok(read.await?.is_some())
    }

    /// Where to send the browser, from the provider's discovery document.
    ///
    /// # Errors
    /// UNAVAILABLE if the provider does not answer; FAILED_PRECONDITION if its discovery document is not what was
    /// configured.
    pub async fn authorization_url(&self, provider: &Provider, request: &AuthorizationRequest<'_>) -> Result<String> {
        upstream::authorization_url(&self.parts, provider, request).await
    }

    /// Turns the code that the browser brought back into what the provider says of the person.
    ///
    /// # Errors
    /// UNAUTHENTICATED if the provider refuses the code or its id token does not verify; UNAVAILABLE.
    pub async fn redeem(&self, provider: &Provider, redemption: &Redemption<'_>, now: Micros) -> Result<Upstream> {
        upstream::redeem(&self.parts, provider, redemption, now).await
    }

    /// The person's identity, if they are registered already.
    pub async fn find(&self, provider: &Provider, upstream: &Upstream) -> Result<Option<Uidp>> {
        sign_in::find(&self.parts, provider, upstream).await
    }

    /// Begins a session; registers the person first if they are new and may, and redeems the invitation if there is
    /// one. One transaction.
    ///
    /// # Errors
    /// NOT_FOUND for an unknown person who may not register; PERMISSION_DENIED for one who is deactivated or whom the
    /// organization's directory does not know.
    pub async fn sign_in(
        &self,
        provider: &Provider,
        upstream: &Upstream,
        entry: &Entry,
        context: &Context<'_>,
    ) -> Result<Login> {
        sign_in::sign_in(&self.parts, provider, upstream, entry, context).await
    }

    /// Makes tokens of a session.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for audiences, capabilities or groups that do not exist; UNAUTHENTICATED if the session ended.
    pub async fn issue(
        &self,
        session_id: &str,
        upstream: &Upstream,
        params: &TokenParams,
        context: &Context<'_>,
    ) -> Result<Issued> {
        tokens::issue(&self.parts, session_id, upstream, params, context).await
    }

    /// An id token of the session, valid for five minutes at this server's exchange and exchangeable for
    /// these audiences; the API's opens all of them. `client` is the requesting client, where it is known.
    ///
    /// # Errors
    /// UNAUTHENTICATED if the session ended.
    pub async fn id_token(
        &self,
        session: &str,
        audiences: &[String],
        client: Option<&str>,
        nonce: Option<&str>,
        context: &Context<'_>,
    ) -> Result<String> {
        tokens::id_token(&self.parts, session, audiences, client, nonce, context).await
    }

    /// Validates a request for tokens: errors are reported before the person signs in.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for audiences, capabilities or groups that do not exist.
    pub fn validate(&self, params: &TokenParams) -> Result<()> {
        tokens::validate(&self.parts, params).map(|_| ())
    }

    /// Ends the session of a refresh token, or of an access token (RFC 7009); an unknown token is as good as a revoked
    /// one.
    pub async fn revoke(&self, token: &str, context: &Context<'_>) -> Result<()> {
        refresh::revoke(&self.parts, token, context).await
    }

    /// Signs a browser out: whether there was a session.
    pub async fn end_session(&self, cookie: &[u8; 32], context: &Context<'_>) -> Result<bool> {
        sessions::sign_out(&self.parts, *cookie, context).await
    }

    /// Who is signed in with this cookie.
    pub async fn session_of_cookie(&self, cookie: &[u8; 32], now: Micros) -> Result<Option<Signed>> {
        sessions::signed(&self.parts, *cookie, now).await
    }

    /// Turns the code of a one-time link into a token of the operator. The link is used up.
    ///
    /// # Errors
    /// NOT_FOUND for a link that is unknown, used or too old.
    pub async fn redeem_operator_link(&self, code: &str, context: &Context<'_>) -> Result<Issued> {
        one_time::redeem_operator_link(&self.parts, code, context).await
    }

    /// Leaves the result of a headless sign-in to be read once, within five minutes. `code` is the text that the
    /// client began with, `public_key` and `sealed` are what it reads.
    pub async fn put_headless(&self, code: &str, public_key: &str, sealed: &[u8], now: Micros) -> Result<()> {
        one_time::put_headless(&self.parts, code, public_key, sealed, now).await
    }

    pub(crate) async fn exchange_through(
        &self,
        call: &Open<ExchangeRequest>,
        provider: &Uidp,
        params: &ExchangeParams,
    ) -> Result<RawToken> {
        register::exchange_through(&self.parts, call, provider, params).await
    }
}

/// Deletes sessions and other short-lived rows that have ended, some at a time ([`is_full`]).
pub async fn prune(tx: &mut WriteTx, now: Micros) -> Result<u64> {
    prune::prune(tx, now).await
}
