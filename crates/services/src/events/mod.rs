//! Events: subscriptions, and how the delivery to them goes. The delivery itself is a crate of its own.

mod deliveries;
mod sink;
mod subscriptions;
mod subscriptions_v1;

use bowline_pipeline::Handlers;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    let handlers = subscriptions::register(handlers);
    let handlers = subscriptions_v1::register(handlers);
    deliveries::register(handlers)
}
