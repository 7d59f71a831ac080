//! Subscriptions as in v1.

use bowline_contract::v1::events as v1;
use bowline_contract::v1::events::rpc::subscriptions::{Create, Delete, List};
use bowline_core::Result;
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::list;
use bowline_store::{ReadTx, WriteTx};
use prost::Message;

use super::sink;
use super::subscriptions::{self, SubscriptionRow};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .validate::<Create>(|request| {
            sink::violations(request.subscription.as_ref().map_or("", |given| &given.sink), &["https", "http"])
        })
        .write::<Create>(handler!(create))
        .read::<List>(handler!(list))
        .write::<Delete>(handler!(delete))
}

async fn create(
    tx: &mut WriteTx,
    call: &Authorized<v1::CreateSubscriptionRequest>,
) -> Result<Changed<v1::Subscription>> {
    let sink = call.request().subscription.clone().unwrap_or_default().sink;
    if sink.is_empty() {
        // V1 does not require the message that the field's rule is about.
        return Err(bowline_core::Error::invalid_field("sink", "sink is required"));
    }
    Ok(subscriptions::create(tx, call, sink).await?.map(|row| row.to_v1()))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::SubscriptionFilter>) -> Result<v1::SubscriptionList> {
    let filter = call.request();
    let selection = list::select_v1(call.visible(), filter.uidp.as_ref(), &filter.id);
    let size = |row: &SubscriptionRow| row.to_v1().encoded_len();
    let rows = list::everything(tx, call, &subscriptions::TABLE, &selection, size).await?;
    Ok(v1::SubscriptionList { items: rows.iter().map(SubscriptionRow::to_v1).collect() })
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteSubscriptionRequest>) -> Result<Changed<()>> {
    subscriptions::remove(tx, call).await
}
