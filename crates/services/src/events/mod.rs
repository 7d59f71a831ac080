//! Events: subscriptions, and how the delivery to them goes. The delivery itself is a crate of its own.

mod attempts;
mod deliveries;
mod sink;
mod subscriptions;
mod subscriptions_v1;

use std::sync::Arc;

use bowline_delivery::DirectSender;
use bowline_pipeline::Handlers;
use bowline_resources::groups::GroupContents;

use crate::tables::TABLES;

pub(crate) fn register(handlers: Handlers, sender: Option<&Arc<DirectSender>>) -> Handlers {
    let handlers = subscriptions::register(handlers);
    let handlers = subscriptions_v1::register(handlers);
    let handlers = deliveries::register(handlers);
    attempts::register(handlers, sender)
}

/// Resources of this domain in a group. A group with subscriptions cannot be deleted.
pub(crate) const GROUP_CONTENTS: GroupContents = GroupContents { tables: TABLES, delete: None };
