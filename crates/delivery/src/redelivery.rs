//! Redelivery requests, and dead letters of deleted subscriptions.

use std::sync::Arc;

use bowline_core::{Error, Result};
use bowline_store::{Db, Value, WriteTx};

use crate::lease;
use crate::saving::Redelivered;
use crate::subscription::Redelivery;

/// Maximum number of subscriptions of one look.
const SUBSCRIPTIONS_AT_ONCE: usize = 64;
/// Maximum number of requests per subscription and look: many requests of one delay no others.
const MAX_PER_SUBSCRIPTION: i64 = 16;
/// Dead letters of ended subscriptions that one transaction deletes.
const SWEPT_AT_ONCE: i64 = 100;

/// The oldest redelivery requests of the next subscriptions after `after`, and the subscription to continue after; empty
/// to start over.
pub(crate) async fn requests(db: &Db, after: String) -> Result<(Vec<(String, Vec<Redelivery>)>, String)> {
    db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT subscription, seq, event_id FROM redeliveries
                       WHERE subscription = (SELECT min(subscription) FROM redeliveries WHERE subscription > $1)
                       ORDER BY seq LIMIT $2";
            let mut all: Vec<(String, Vec<Redelivery>)> = Vec::new();
            let mut after = after;
            while all.len() < SUBSCRIPTIONS_AT_ONCE {
                let params = [Value::from(&after), Value::Int(MAX_PER_SUBSCRIPTION)];
                let read = |row: &bowline_store::Row<'_>| {
                    Ok::<_, Error>((row.text(0)?, Redelivery { seq: row.int(1)?, event_id: row.text(2)? }))
                };
                let found = tx.query(sql, &params, read).await?;
                let Some((uid, _)) = found.first() else {
                    return Ok((all, String::new()));
                };
                after.clone_from(uid);
                all.push((uid.clone(), found.into_iter().map(|(_, request)| request).collect()));
            }
            Ok((all, after))
        })
    })
    .await
}

/// Records the outcome of a redelivery. With `ends_all` the redelivery requests for the subscription's other
/// dead letters that existed by then are removed too.
pub(crate) async fn settle(tx: &mut WriteTx, done: &Redelivered) -> Result<()> {
    let uid = Value::from(&*done.uid);
    let id = Value::from(&done.event_id);
    tx.execute("DELETE FROM redeliveries WHERE subscription = $1 AND event_id = $2", &[uid, id]).await?;
    let Some(error) = &done.error else {
        tx.execute("DELETE FROM dead_letters WHERE subscription = $1 AND event_id = $2", &[uid, id]).await?;
        return Ok(());
    };
    let sql = "UPDATE dead_letters SET last_error = $3 WHERE subscription = $1 AND event_id = $2";
    tx.execute(sql, &[uid, id, Value::from(error)]).await?;
    if done.ends_all {
        let sql = "DELETE FROM redeliveries WHERE subscription = $1 AND asked_at <= $2";
        tx.execute(sql, &[uid, Value::Int(done.at)]).await?;
    }
    Ok(())
}

/// Deletes dead letters of a subscription that was deleted, a batch at a time. True if there may be more.
pub(crate) async fn sweep(db: &Db, holder: &str) -> Result<bool> {
    let next = "SELECT min(uid) FROM ended_subscriptions";
    let ended = db.read(move |tx| {
        Box::pin(async move { tx.query_opt(next, &[], |row| row.opt_text(0).map_err(Error::from)).await })
    });
    let Some(uid) = ended.await?.flatten() else { return Ok(false) };
    let (holder, uid): (String, Arc<str>) = (holder.to_owned(), uid.into());
    db.write_leased(move |tx| {
        let (holder, uid) = (holder.clone(), uid.clone());
        Box::pin(async move {
            if !lease::confirm(tx, &holder).await? {
                return Ok(false);
            }
            let sql = "DELETE FROM dead_letters WHERE subscription = $1 AND event_id IN (
                         SELECT event_id FROM dead_letters WHERE subscription = $1 ORDER BY seq LIMIT $2)";
            let swept = tx.execute(sql, &[Value::from(&*uid), Value::Int(SWEPT_AT_ONCE)]).await?;
            if swept < SWEPT_AT_ONCE as u64 {
                for sql in [
                    "DELETE FROM redeliveries WHERE subscription = $1",
                    "DELETE FROM ended_subscriptions WHERE uid = $1",
                ] {
                    tx.execute(sql, &[Value::from(&*uid)]).await?;
                }
            }
            Ok(true)
        })
    })
    .await
}
