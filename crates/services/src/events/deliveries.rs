//! State of deliveries to subscriptions, and dead letters. The relay writes the rows; the one thing written
//! here is the redelivery request of a dead letter.

use bowline_contract::bowline::events::v1;
use bowline_contract::bowline::events::v1::rpc::deliveries_service::{GetDeliveryStatus, ListDeadLetters, Redeliver};
use bowline_core::{Error, Micros, Result, UidRange, Uidp};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Page, PageRequest, SortKey, handler};
use bowline_resources::kinds::SUBSCRIPTION;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::{attempts, subscriptions};

/// Counts stop here: they inform, they bill no one.
const COUNTED: i64 = 1000;
/// Events of the organization that are looked at to count those that wait.
const LOOKED_AT: i64 = 20_000;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetDeliveryStatus>(handler!(status))
        .read::<ListDeadLetters>(handler!(list))
        .write::<Redeliver>(handler!(redeliver))
}

/// Where the relay says that a subscription stands.
#[derive(Default)]
struct CursorRow {
    cursor: i64,
    attempts: i64,
    failing_since: Option<Micros>,
    next_at: Option<Micros>,
    last_error: String,
}

async fn status(tx: &mut ReadTx, call: &Authorized<v1::GetDeliveryStatusRequest>) -> Result<v1::DeliveryStatus> {
    let uid = call.require_scope()?;
    subscriptions::require(tx, uid).await?;
    let sql = "SELECT cursor, attempts, failing_since, next_at, last_error
               FROM subscription_cursors WHERE subscription = $1";
    let found = tx.query_opt(sql, &[Value::from(uid.as_str())], read_cursor).await?;
    // Before the relay came to the subscription's own creation, nothing waits for it.
    let (waiting, oldest) = match &found {
        Some(row) => waiting(tx, uid, row.cursor).await?,
        None => (0, None),
    };
    let row = found.unwrap_or_default();
    Ok(v1::DeliveryStatus {
        uid: uid.as_str().into(),
        waiting: waiting as i32,
        oldest_waiting_time: oldest.and_then(timestamp),
        attempts: row.attempts as i32,
        failing_since: row.failing_since.and_then(timestamp),
        next_attempt_time: row.next_at.and_then(timestamp),
        last_error: row.last_error,
        dead_letters: dead(tx, uid).await? as i32,
        pause_time: attempts::paused_since(tx, uid).await?.and_then(timestamp),
    })
}

fn read_cursor(row: &Row<'_>) -> Result<CursorRow> {
    Ok(CursorRow {
        cursor: row.int(0)?,
        attempts: row.int(1)?,
        failing_since: row.opt_int(2)?,
        next_at: row.opt_int(3)?,
        last_error: row.text(4)?,
    })
}

/// How many events past the cursor are for the subscription, and the time of the first.
async fn waiting(tx: &mut ReadTx, uid: &Uidp, cursor: i64) -> Result<(i64, Option<Micros>)> {
    let group = uid.parent_str();
    let range = UidRange::subtree(group);
    let sql = "SELECT count(*), min(at) FROM (
                 SELECT at FROM (
                   SELECT at, customer, group_uid, subject FROM outbox
                   WHERE org = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS later
                 WHERE customer AND (group_uid >= $4 AND group_uid < $5 OR group_uid = '' AND subject = $6)
                 LIMIT $7) AS matching";
    let params = [
        Value::from(uid.root_str()),
        Value::Int(cursor),
        Value::Int(LOOKED_AT),
        Value::from(&range.lower),
        Value::from(&range.upper),
        Value::from(group),
        Value::Int(COUNTED),
    ];
    let counted = tx.query_opt(sql, &params, |row| Ok::<_, Error>((row.int(0)?, row.opt_int(1)?))).await?;
    Ok(counted.unwrap_or_default())
}

async fn dead(tx: &mut ReadTx, uid: &Uidp) -> Result<i64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM dead_letters WHERE subscription = $1 LIMIT $2) AS dead";
    let params = [Value::from(uid.as_str()), Value::Int(COUNTED)];
    Ok(tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::ListDeadLettersRequest>) -> Result<v1::ListDeadLettersResponse> {
    let request = call.request();
    let uid = call.require_scope()?;
    require_something(tx, uid).await?;
    let page_request = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: uid.as_str().into(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page_request, &[&["subscription"]], (0, Direction::Ascending))?;
    let mut rows = read_page(tx, uid, &page).await?;
    let mut next_page_token = String::new();
    if rows.len() > page.size {
        rows.truncate(page.size);
        if let Some((seq, last)) = rows.last() {
            next_page_token = page.next_token(call, Some(SortKey::Int(*seq)), last.subscription_uid.clone());
        }
    }
    Ok(v1::ListDeadLettersResponse {
        dead_letters: rows.into_iter().map(|(_, dead_letter)| dead_letter).collect(),
        next_page_token,
    })
}

/// One row more than the page has, each with its number.
async fn read_page(tx: &mut ReadTx, uid: &Uidp, page: &Page) -> Result<Vec<(i64, v1::DeadLetter)>> {
    let range = UidRange::of(uid);
    let (after_uid, after_seq) = match &page.cursor {
        Some(cursor) => match cursor.key {
            Some(SortKey::Int(seq)) => (cursor.uid.as_str(), seq),
            _ => return Err(Error::internal("a page token of dead letters has no number")),
        },
        None => ("", 0),
    };
    // Letters of a subscription that was deleted go a little later than it.
    let sql = "SELECT d.seq, d.subscription, d.event_id, d.event_type, d.subject, d.at, d.died_at, d.last_error,
                      r.asked_at
               FROM dead_letters d
               LEFT JOIN redeliveries r ON r.subscription = d.subscription AND r.seq = d.seq
               WHERE d.subscription >= $1 AND d.subscription < $2 AND (d.subscription, d.seq) > ($3, $4)
                 AND NOT EXISTS (SELECT 1 FROM ended_subscriptions WHERE uid = d.subscription)
               ORDER BY d.subscription, d.seq LIMIT $5";
    let params = [
        Value::from(&range.lower),
        Value::from(&range.upper),
        Value::from(after_uid),
        Value::Int(after_seq),
        Value::Int(page.size as i64 + 1),
    ];
    tx.query(sql, &params, |row| {
        let dead_letter = v1::DeadLetter {
            subscription_uid: row.text(1)?,
            event_id: row.text(2)?,
            event_type: row.text(3)?,
            subject: row.text(4)?,
            event_time: timestamp(row.int(5)?),
            death_time: timestamp(row.int(6)?),
            last_error: row.text(7)?,
            redeliver_time: row.opt_int(8)?.and_then(timestamp),
        };
        Ok((row.int(0)?, dead_letter))
    })
    .await
}

/// A subscription or a group of that UIDP.
async fn require_something(tx: &mut ReadTx, uid: &Uidp) -> Result<()> {
    let sql = "SELECT uid FROM groups WHERE uid = $1 UNION ALL SELECT uid FROM subscriptions WHERE uid = $1";
    let found = tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.text(0).map_err(Error::from)).await?;
    found.map(|_| ()).ok_or_else(|| Error::not_found(SUBSCRIPTION, uid.as_str()))
}

async fn redeliver(
    tx: &mut WriteTx,
    call: &Authorized<v1::RedeliverRequest>,
) -> Result<Changed<v1::RedeliverResponse>> {
    let request = call.request();
    if request.all != request.event_id.is_empty() {
        return Err(Error::invalid_field("eventId", "give either eventId or all, and not both"));
    }
    let uid = call.require_scope()?;
    let subscription = subscriptions::require(tx, uid).await?;
    let mut sql = String::from(
        "INSERT INTO redeliveries (subscription, seq, event_id, asked_at)
         SELECT subscription, seq, event_id, CAST($2 AS BIGINT) FROM dead_letters WHERE subscription = $1",
    );
    let mut params = vec![Value::from(uid.as_str()), Value::Int(call.now())];
    if !request.all {
        require_dead_letter(tx, uid, &request.event_id).await?;
        sql += " AND event_id = $3";
        params.push(Value::from(&request.event_id));
    }
    sql += " ON CONFLICT DO NOTHING";
    let redelivered = tx.execute(&sql, &params).await?;
    let response = v1::RedeliverResponse { redelivered: redelivered as i64 };
    if redelivered == 0 {
        return Ok(Changed::nothing(response));
    }
    let snapshot = subscription.snapshot(call.vault());
    Ok(Changed::one(SUBSCRIPTION, uid, Some(&snapshot), Some(&snapshot), response))
}

async fn require_dead_letter(tx: &mut ReadTx, uid: &Uidp, event_id: &str) -> Result<()> {
    let sql = "SELECT event_id FROM dead_letters WHERE subscription = $1 AND event_id = $2";
    let params = [Value::from(uid.as_str()), Value::from(event_id)];
    let found = tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    found.map(|_| ()).ok_or_else(|| Error::not_found("bowline.events/DeadLetter", event_id))
}
