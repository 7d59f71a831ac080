//! The token exchange: someone else's identity token in, an access token of this server out.
//!
//! The order of the steps is the security of this module. First the candidate is picked, from what the caller
//! names or what the store has of the token's issuer and subject; the keys belong to the candidate; then the
//! token is verified, and only errors about a verified token have details.

pub(crate) mod audiences;
mod aws;
mod candidates;
mod cap_claim;
mod credentials;
mod exchange;
pub(crate) mod issuing;
mod last_seen;
mod matchers;
pub(crate) mod narrowing;
pub(crate) mod params;
mod publishing;
pub(crate) mod refusals;
mod trials;

use std::sync::Arc;

use bowline_contract::v1::oidc::rpc::security_token_service::Exchange as ExchangeMethod;
use bowline_core::Error;
use bowline_pipeline::Handlers;

use crate::people::People;

pub use candidates::IdentityRevision;
pub use credentials::{Credential, CredentialExchange, Issued};
pub use exchange::Exchange;
pub(crate) use exchange::parse_presented;
pub(crate) use narrowing::groups_left;
pub use publishing::{PublishingToken, Upload, is_publishing_token};

pub(crate) fn register(handlers: Handlers, people: Option<&Arc<People>>) -> Handlers {
    let handlers = trials::register(handlers, people);
    let people = people.cloned();
    handlers.open::<ExchangeMethod>(move |call| {
        let people = people.clone();
        Box::pin(async move {
            let people = people.ok_or_else(|| Error::internal("the handlers were made without people"))?;
            let exchange = people.exchange();
            let asked = exchange.requested(call.request())?;
            match &asked.provider {
                // Anyone who names a provider is a person and gets a session.
                Some(provider) => people.exchange_through(&call, provider, &asked).await,
                None => exchange.exchange(&call, asked).await,
            }
        })
    })
}
