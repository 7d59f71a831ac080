//! Subscriptions of a marketplace: there are none here, and there is no way to get one.

use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::a_w_s_marketplace_subscriptions::List;
use bowline_pipeline::Handlers;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<List>(|_, _| Box::pin(async { Ok(v1::AwsMarketplaceSubscriptionList::default()) }))
}
