//! The token exchange: somebody else's identity token in, an access token of ours out.
//!
//! The order of things is the security of this module. The candidate is picked first, from what the
//! caller names or what the store knows of the token's issuer and subject; the keys belong to the
//! candidate; only then is the token verified, and only a verified token is told anything in detail.

mod asked;
mod audiences;
mod aws;
mod candidates;
mod cap_claim;
mod exchange;
mod last_seen;
mod matchers;
mod narrowing;
mod refusals;

use std::sync::Arc;

use bowline_contract::v1::oidc::rpc::security_token_service::Exchange as ExchangeMethod;
use bowline_core::Error;
use bowline_pipeline::Handlers;

pub use exchange::Exchange;
pub(crate) use narrowing::groups_left;

pub(crate) fn register(handlers: Handlers, exchange: Option<Arc<Exchange>>) -> Handlers {
    handlers.open::<ExchangeMethod>(move |call| {
        let exchange = exchange.clone();
        Box::pin(async move {
            let exchange = exchange.ok_or_else(|| Error::internal("the handlers were made without an exchange"))?;
            exchange.exchange(&call).await
        })
    })
}
