//! Attempts at deliveries, test deliveries, and pauses.

use std::sync::Arc;
use std::time::Duration;

use bowline_contract::bowline::events::v1;
use bowline_contract::bowline::events::v1::rpc::deliveries_service::{
    GetDelivery, ListDeliveries, Pause, Resume, TestDelivery,
};
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{Detail, Error, Micros, Reason, Result, Uidp};
use bowline_delivery::{AttemptRecord, DirectSender, SinkTest, TestPermit};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Page, PageRequest, SortKey, handler};
use bowline_resources::kinds::SUBSCRIPTION;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::subscriptions;

/// Shortest time between two tests of a subscription.
const TEST_EVERY: Micros = 10_000_000;

const ATTEMPT: &str = "number, kind, event_id, event_type, subject, at, took, status, error, response, seq";

/// Registers the handlers. Without a sender, those that send are registered but fail.
pub(super) fn register(handlers: Handlers, sender: Option<&Arc<DirectSender>>) -> Handlers {
    let (reading, testing, sending) = (sender.cloned(), sender.cloned(), sender.cloned());
    handlers
        .read::<ListDeliveries>(handler!(list))
        .read_then::<GetDelivery, _>(handler!(get), move |found| {
            let sender = reading.clone();
            Box::pin(async move { with_payload(present(sender.as_ref())?, found).await })
        })
        .write_then::<TestDelivery, _>(
            move |tx, call| {
                let sender = testing.clone();
                Box::pin(async move { begin_test(tx, call, present(sender.as_ref())?).await })
            },
            move |test| {
                let sender = sending.clone();
                Box::pin(async move { run_test(present(sender.as_ref())?, test).await })
            },
        )
        .write::<Pause>(handler!(pause))
        .write::<Resume>(handler!(resume))
}

fn present(sender: Option<&Arc<DirectSender>>) -> Result<&DirectSender> {
    sender.map(Arc::as_ref).ok_or_else(|| Error::internal("handlers without a server were called"))
}

/// A stored attempt, with the number of its event in the outbox.
struct AttemptRow {
    delivery: v1::Delivery,
    seq: i64,
    /// Whether the caller may not see the event's body.
    is_body_hidden: bool,
}

fn read_attempt(row: &Row<'_>, uid: &Uidp) -> Result<AttemptRow> {
    let delivery = v1::Delivery {
        subscription_uid: uid.as_str().into(),
        number: row.int(0)?,
        kind: row.int(1)? as i32,
        event_id: row.text(2)?,
        event_type: row.text(3)?,
        subject: row.text(4)?,
        time: timestamp(row.int(5)?),
        duration: Some(duration(row.int(6)?)),
        status: row.opt_int(7)?.unwrap_or(0) as i32,
        error: row.text(8)?,
        response: row.text(9)?,
        payload: String::new(),
    };
    Ok(AttemptRow { delivery, seq: row.int(10)?, is_body_hidden: false })
}

fn duration(micros: Micros) -> prost_types::Duration {
    prost_types::Duration { seconds: micros / 1_000_000, nanos: (micros % 1_000_000) as i32 * 1000 }
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::ListDeliveriesRequest>) -> Result<v1::ListDeliveriesResponse> {
    let request = call.request();
    let uid = call.require_scope()?;
    subscriptions::require(tx, uid).await?;
    let paging = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: uid.as_str().into(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &paging, &[&["number"]], (0, Direction::Descending))?;
    let before = match page.cursor.as_ref().map(|cursor| &cursor.key) {
        None => i64::MAX,
        Some(Some(SortKey::Int(number))) => *number,
        Some(_) => return Err(Error::internal("a page token of deliveries has no number")),
    };
    let sql = format!(
        "SELECT {ATTEMPT} FROM delivery_attempts WHERE subscription = $1 AND number < $2 ORDER BY number DESC LIMIT $3"
    );
    let params = [Value::from(uid.as_str()), Value::Int(before), Value::Int(page.size as i64 + 1)];
    let mut rows = tx.query(&sql, &params, |row| read_attempt(row, uid)).await?;
    let mut next_page_token = String::new();
    if rows.len() > page.size {
        rows.truncate(page.size);
        if let Some(last) = rows.last() {
            next_page_token = page.next_token(call, Some(SortKey::Int(last.delivery.number)), uid.as_str().into());
        }
    }
    Ok(v1::ListDeliveriesResponse { deliveries: rows.into_iter().map(|row| row.delivery).collect(), next_page_token })
}

async fn get(tx: &mut ReadTx, call: &Authorized<v1::GetDeliveryRequest>) -> Result<AttemptRow> {
    let uid = call.require_scope()?;
    subscriptions::require(tx, uid).await?;
    let number = call.request().number;
    let sql = format!("SELECT {ATTEMPT} FROM delivery_attempts WHERE subscription = $1 AND number = $2");
    let params = [Value::from(uid.as_str()), Value::Int(number)];
    let row = tx.query_opt(&sql, &params, |row| read_attempt(row, uid)).await?;
    let mut row = row.ok_or_else(|| Error::not_found("bowline.events/Delivery", number.to_string()))?;
    // Bodies have what lists of other kinds show; who may add a sink of their own receives them anyway.
    if !call.holds(uid.as_str(), Capability::CapEventsSubscriptionCreate) {
        row.is_body_hidden = true;
    }
    Ok(row)
}

async fn with_payload(sender: &DirectSender, row: AttemptRow) -> Result<v1::Delivery> {
    let mut delivery = row.delivery;
    if row.is_body_hidden {
        return Ok(delivery);
    }
    let payload = sender.payload(&delivery.subscription_uid, row.seq, &delivery.event_id).await?;
    delivery.payload = payload.unwrap_or_default();
    Ok(delivery)
}

/// Notes that the sink is tested now, so that it is not tested again soon, whichever replica is called.
async fn begin_test(
    tx: &mut WriteTx,
    call: &Authorized<v1::TestDeliveryRequest>,
    sender: &DirectSender,
) -> Result<Changed<(SinkTest, TestPermit)>> {
    let uid = call.require_scope()?;
    let subscription = subscriptions::require(tx, uid).await?;
    let permit = sender.permit(uid.root_str())?;
    let sql = "UPDATE subscriptions SET tested_at = $2 WHERE uid = $1 AND (tested_at IS NULL OR tested_at <= $3)";
    let params = [Value::from(uid.as_str()), Value::Int(call.now()), Value::Int(call.now() - TEST_EVERY)];
    if tx.execute(sql, &params).await? == 0 {
        let seconds = TEST_EVERY / 1_000_000;
        let text = format!("Rate limit reached: a subscription is tested once in {seconds} s; try again later");
        let wait = Detail::RetryAfter(Duration::from_micros(TEST_EVERY as u64));
        return Err(Error::new(Reason::RateLimited, text).with(wait));
    }
    let test = SinkTest {
        subscription: uid.as_str().into(),
        sink: subscription.sink.clone(),
        actor: call.event_actor(),
        seed: call.draw(),
    };
    let snapshot = subscription.snapshot(call.vault());
    Ok(Changed::one(SUBSCRIPTION, uid, Some(&snapshot), Some(&snapshot), (test, permit)))
}

async fn run_test(sender: &DirectSender, (test, permit): (SinkTest, TestPermit)) -> Result<v1::Delivery> {
    let (record, number, payload) = sender.test(test, permit).await?;
    Ok(delivery(&record, number, payload))
}

fn delivery(record: &AttemptRecord, number: i64, payload: String) -> v1::Delivery {
    v1::Delivery {
        subscription_uid: record.subscription.to_string(),
        number,
        kind: record.kind as i32,
        event_id: record.event_id.clone(),
        event_type: record.event_type.clone(),
        subject: record.subject.clone(),
        time: timestamp(record.at),
        duration: Some(duration(Micros::try_from(record.took.as_micros()).unwrap_or(Micros::MAX))),
        status: record.status.map_or(0, i32::from),
        error: record.error.clone(),
        response: record.response.clone(),
        payload,
    }
}

async fn pause(tx: &mut WriteTx, call: &Authorized<v1::PauseRequest>) -> Result<Changed<v1::PauseState>> {
    let uid = call.require_scope()?;
    let changed = set_pause(tx, uid, Some(call.now())).await?;
    Ok(if changed.changes.is_empty() { changed } else { changed.with_event(uid, call.request()) })
}

async fn resume(tx: &mut WriteTx, call: &Authorized<v1::ResumeRequest>) -> Result<Changed<v1::PauseState>> {
    let uid = call.require_scope()?;
    let changed = set_pause(tx, uid, None).await?;
    // Failures before the pause must not turn events that waited into dead letters.
    let sql = "UPDATE subscription_cursors SET attempts = 0, failing_since = NULL, next_at = NULL, last_error = ''
               WHERE subscription = $1";
    if changed.changes.is_empty() {
        return Ok(changed);
    }
    tx.execute(sql, &[Value::from(uid.as_str())]).await?;
    Ok(changed.with_event(uid, call.request()))
}

/// Pauses deliveries since that time, or resumes them. Changes nothing if they already are.
async fn set_pause(tx: &mut WriteTx, uid: &Uidp, paused_at: Option<Micros>) -> Result<Changed<v1::PauseState>> {
    subscriptions::require(tx, uid).await?;
    let before = paused_since(tx, uid).await?;
    let state = |at: Option<Micros>| v1::PauseState { uid: uid.as_str().into(), pause_time: at.and_then(timestamp) };
    if before.is_some() == paused_at.is_some() {
        return Ok(Changed::nothing(state(before)));
    }
    let sql = "UPDATE subscriptions SET paused_at = $2 WHERE uid = $1";
    tx.execute(sql, &[Value::from(uid.as_str()), Value::OptInt(paused_at)]).await?;
    let (before, after) = (state(before), state(paused_at));
    Ok(Changed::one(SUBSCRIPTION, uid, Some(&before), Some(&after), after.clone()))
}

/// When deliveries to a subscription were paused; absent if they are not.
pub(super) async fn paused_since(tx: &mut ReadTx, uid: &Uidp) -> Result<Option<Micros>> {
    let sql = "SELECT paused_at FROM subscriptions WHERE uid = $1";
    let row = tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.opt_int(0).map_err(Error::from)).await?;
    Ok(row.flatten())
}
