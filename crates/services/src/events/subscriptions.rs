//! Subscriptions: webhooks that receive the events of a group and of everything below it.

use bowline_contract::v1::events as v1;
use bowline_contract::v2::events as v2;
use bowline_contract::v2::events::rpc::subscriptions_service::{
    CreateSubscription, DeleteSubscription, GetSubscription, ListSubscriptions,
};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, SortKey, Vault, handler};
use bowline_resources::kinds::SUBSCRIPTION;
use bowline_resources::list::{self, BY_CREATED, BY_UID, Listed, Table};
use bowline_resources::references::require_room;
use bowline_resources::references::require_scope;
use bowline_store::counters::{self, Scope};
use bowline_store::{ReadTx, Row, Value, WriteTx, tables};

use super::sink;
use crate::tables::TABLES;

/// Subscriptions that one organization may have: every event of it is checked against each of them.
const MAX_IN_ORGANIZATION: i64 = 10_000;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetSubscription>(handler!(get))
        .read::<ListSubscriptions>(handler!(list))
        .validate::<CreateSubscription>(|request| {
            sink::violations(request.subscription.as_ref().map_or("", |given| &given.sink), &["https"])
        })
        .write::<CreateSubscription>(handler!(create_v2))
        .write::<DeleteSubscription>(handler!(delete))
}

pub(super) const TABLE: Table =
    Table { name: "subscriptions", columns: "uid, sink, created_at", orders: &[BY_UID, BY_CREATED] };

/// A subscription as it is stored.
#[derive(Clone, Debug)]
pub(super) struct SubscriptionRow {
    pub(super) uid: Uidp,
    pub(super) sink: String,
    pub(super) created_at: Micros,
}

impl Listed for SubscriptionRow {
    fn read(row: &Row<'_>) -> Result<SubscriptionRow> {
        Ok(SubscriptionRow { uid: list::stored_uid(row, &TABLE)?, sink: row.text(1)?, created_at: row.int(2)? })
    }

    fn uid(&self) -> &str {
        self.uid.as_str()
    }

    fn sort_key(&self, _column: &str) -> SortKey {
        SortKey::Int(self.created_at)
    }
}

impl SubscriptionRow {
    pub(super) fn to_v2(&self) -> v2::Subscription {
        v2::Subscription { uid: self.uid.as_str().into(), sink: self.sink.clone() }
    }

    pub(super) fn to_v1(&self) -> v1::Subscription {
        v1::Subscription { id: self.uid.as_str().into(), sink: self.sink.clone() }
    }

    /// For the audit log.
    pub(super) fn snapshot(&self, vault: &Vault) -> v2::Subscription {
        let digest = |sink: &[u8]| vault.mac("sink in the audit log", sink);
        v2::Subscription { sink: sink::shortened(&self.sink, digest), ..self.to_v2() }
    }

    /// For events, which other receivers get.
    fn public(&self) -> v1::Subscription {
        v1::Subscription { sink: sink::host(&self.sink).to_owned(), ..self.to_v1() }
    }
}

async fn find(tx: &mut ReadTx, uid: &str) -> Result<Option<SubscriptionRow>> {
    let sql = "SELECT uid, sink, created_at FROM subscriptions WHERE uid = $1";
    tx.query_opt(sql, &[Value::from(uid)], SubscriptionRow::read).await
}

pub(super) async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<SubscriptionRow> {
    find(tx, uid.as_str()).await?.ok_or_else(|| Error::not_found(SUBSCRIPTION, uid.as_str()))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetSubscriptionRequest>) -> Result<v2::Subscription> {
    Ok(require(tx, call.require_scope()?).await?.to_v2())
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<v2::ListSubscriptionsRequest>,
) -> Result<v2::ListSubscriptionsResponse> {
    let request = call.request();
    let selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    let page = list::paging(request);
    let ascending = (0, Direction::Ascending);
    let listing = list::page::<_, SubscriptionRow>(tx, call, &TABLE, &selection, &page, ascending).await?;
    Ok(v2::ListSubscriptionsResponse {
        subscriptions: listing.items.iter().map(SubscriptionRow::to_v2).collect(),
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

async fn create_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::CreateSubscriptionRequest>,
) -> Result<Changed<v2::Subscription>> {
    let sink = call.request().subscription.clone().unwrap_or_default().sink;
    Ok(create(tx, call, sink).await?.map(|row| row.to_v2()))
}

/// Creates a subscription. Nothing is sent to the sink before there is an event for it.
pub(super) async fn create<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    sink: String,
) -> Result<Changed<SubscriptionRow>> {
    let parent = require_scope(tx, call).await?;
    require_room(tx, &parent, "subscriptions", TABLE.name).await?;
    require_room_in_organization(tx, &parent).await?;
    let row = SubscriptionRow { uid: call.new_child(&parent), sink, created_at: call.now() };
    let sql = "INSERT INTO subscriptions (uid, parent, org, sink, created_at) VALUES ($1, $2, $3, $4, $5)";
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(parent.as_str()),
        Value::from(row.uid.root_str()),
        Value::from(&row.sink),
        Value::Int(row.created_at),
    ];
    tx.execute(sql, &params).await?;
    list::count(tx, &TABLE, &row.uid, 1).await?;
    let after = row.snapshot(call.vault());
    let event = v1::CreateSubscriptionRequest { parent_id: parent.as_str().into(), subscription: Some(row.public()) };
    Ok(Changed::one(SUBSCRIPTION, &row.uid, None, Some(&after), row.clone()).with_event(&row.uid, &event))
}

async fn require_room_in_organization(tx: &mut ReadTx, parent: &Uidp) -> Result<()> {
    let organization = parent.root_str();
    if counters::total(tx, TABLE.name, &Scope::Below(organization)).await? < MAX_IN_ORGANIZATION {
        return Ok(());
    }
    Err(Error::quota(
        organization,
        format!(
            "an organization may hold {MAX_IN_ORGANIZATION} subscriptions; delete some, or subscribe one sink to a group further up"
        ),
    ))
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v2::DeleteSubscriptionRequest>) -> Result<Changed<()>> {
    remove(tx, call).await
}

/// Ends a subscription; what was not delivered yet goes with it, its dead letters a little later.
pub(super) async fn remove<T>(tx: &mut WriteTx, call: &Authorized<T>) -> Result<Changed<()>> {
    let uid = call.require_scope()?;
    let before = require(tx, uid).await?.snapshot(call.vault());
    for sql in [
        "DELETE FROM subscriptions WHERE uid = $1",
        "INSERT INTO ended_subscriptions (uid)
         SELECT CAST($1 AS TEXT) WHERE EXISTS (SELECT 1 FROM dead_letters WHERE subscription = $1)",
    ] {
        tx.execute(sql, &[Value::from(uid.as_str())]).await?;
    }
    tables::delete_rows(tx, TABLES, TABLE.name, uid.as_str()).await?;
    list::count(tx, &TABLE, uid, -1).await?;
    let event = v1::DeleteSubscriptionRequest { id: uid.as_str().into() };
    Ok(Changed::one(SUBSCRIPTION, uid, Some(&before), None, ()).with_event(uid, &event))
}
