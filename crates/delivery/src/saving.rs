//! Writing down how far each subscription is.

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_core::{Error, Micros, Result};
use bowline_store::{Db, Row, Value, WriteTx};

use crate::event;
use crate::{lease, redelivery};

/// Where a subscription stands, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CursorRow {
    pub(crate) cursor: i64,
    pub(crate) attempts: i64,
    pub(crate) failing_since: Option<Micros>,
    pub(crate) next_at: Option<Micros>,
    pub(crate) last_error: String,
}

/// An event that is given up.
#[derive(Clone, Debug)]
pub(crate) struct DeadLetter {
    pub(crate) uid: Arc<str>,
    /// Number of the event, which is in the log as long as this is not saved.
    pub(crate) seq: i64,
    pub(crate) at: Micros,
    pub(crate) error: String,
}

/// What became of a dead letter that was sent again.
#[derive(Clone, Debug)]
pub(crate) struct Redelivered {
    pub(crate) uid: Arc<str>,
    pub(crate) event_id: String,
    /// Absent if it was delivered.
    pub(crate) error: Option<String>,
    /// Whether the sink refused it, which ends all redeliveries of the subscription.
    pub(crate) ends_all: bool,
    pub(crate) at: Micros,
}

/// What one transaction saves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// Subscriptions that began, each with where.
    pub(crate) begun: Vec<(Arc<str>, i64)>,
    pub(crate) cursors: Vec<(Arc<str>, CursorRow)>,
    pub(crate) dead: Vec<DeadLetter>,
    pub(crate) redelivered: Vec<Redelivered>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.cursors.is_empty() && self.dead.is_empty() && self.redelivered.is_empty()
    }
}

/// Rows that one statement changes.
const ROWS: usize = 50;

/// Saves a batch, all of it or nothing. False if the lease is someone else's by now: then nothing was saved.
pub(crate) async fn save(db: &Db, holder: &str, batch: Arc<Batch>) -> Result<bool> {
    let holder = holder.to_owned();
    db.write(move |tx| {
        let (holder, batch) = (holder.clone(), batch.clone());
        Box::pin(async move {
            if !lease::is_held(tx, &holder).await? {
                return Ok(false);
            }
            save_all(tx, &batch).await?;
            Ok(true)
        })
    })
    .await
}

async fn save_all(tx: &mut WriteTx, batch: &Batch) -> Result<()> {
    for (uid, cursor) in &batch.begun {
        if exists(tx, uid).await? {
            let sql = "INSERT INTO subscription_cursors (subscription, cursor, attempts, last_error)
                       VALUES ($1, $2, 0, '') ON CONFLICT DO NOTHING";
            tx.execute(sql, &[Value::from(&**uid), Value::Int(*cursor)]).await?;
        }
    }
    for rows in batch.cursors.chunks(ROWS) {
        save_cursors(tx, rows).await?;
    }
    let mut owners = BTreeSet::new();
    for dead in &batch.dead {
        if exists(tx, &dead.uid).await? {
            bury(tx, dead).await?;
            owners.insert(&*dead.uid);
        }
    }
    for uid in owners {
        drop_oldest(tx, uid).await?;
    }
    for done in &batch.redelivered {
        redelivery::settle(tx, done).await?;
    }
    Ok(())
}

/// A deleted subscription must not leave anything behind.
async fn exists(tx: &mut WriteTx, uid: &str) -> Result<bool> {
    let sql = "SELECT uid FROM subscriptions WHERE uid = $1";
    Ok(tx.query_opt(sql, &[Value::from(uid)], |_| Ok::<_, Error>(())).await?.is_some())
}

async fn save_cursors(tx: &mut WriteTx, rows: &[(Arc<str>, CursorRow)]) -> Result<()> {
    let mut values = Vec::new();
    let mut params = Vec::new();
    for (uid, row) in rows {
        let types = ["TEXT", "BIGINT", "BIGINT", "BIGINT", "BIGINT", "TEXT"];
        let columns: Vec<String> =
            (1..).zip(types).map(|(n, kind)| format!("CAST(${} AS {kind})", params.len() + n)).collect();
        values.push(format!("({})", columns.join(", ")));
        params.extend([
            Value::from(&**uid),
            Value::Int(row.cursor),
            Value::Int(row.attempts),
            Value::OptInt(row.failing_since),
            Value::OptInt(row.next_at),
            Value::from(&row.last_error),
        ]);
    }
    let sql = format!(
        "UPDATE subscription_cursors
         SET cursor = given.column2, attempts = given.column3, failing_since = given.column4,
             next_at = given.column5, last_error = given.column6
         FROM (VALUES {}) AS given WHERE subscription_cursors.subscription = given.column1",
        values.join(", ")
    );
    tx.execute(&sql, &params).await?;
    Ok(())
}

/// Copies an event out of the log.
async fn bury(tx: &mut WriteTx, dead: &DeadLetter) -> Result<()> {
    let sql = "SELECT at, event_type, subject FROM outbox WHERE seq = $1";
    let read = |row: &Row<'_>| Ok::<_, Error>(event::id(dead.seq, row.int(0)?, &row.text(1)?, &row.text(2)?));
    let Some(event_id) = tx.query_opt(sql, &[Value::Int(dead.seq)], read).await? else { return Ok(()) };
    let sql = "INSERT INTO dead_letters (subscription, event_id, seq, at, died_at, last_error, event_type, group_uid,
                                         subject, method, actor, extensions, body_type, body)
               SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), seq, at, CAST($3 AS BIGINT), CAST($4 AS TEXT), event_type,
                      CASE WHEN group_uid = '' THEN subject ELSE group_uid END,
                      subject, method, actor, extensions, body_type, body
               FROM outbox WHERE seq = $5 ON CONFLICT DO NOTHING";
    let params = [
        Value::from(&*dead.uid),
        Value::from(&event_id),
        Value::Int(dead.at),
        Value::from(&dead.error),
        Value::Int(dead.seq),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Dead letters that a subscription keeps.
const MAX_DEAD_LETTERS: i64 = 1000;

async fn drop_oldest(tx: &mut WriteTx, uid: &str) -> Result<()> {
    let sql = "DELETE FROM dead_letters WHERE subscription = $1 AND seq <= (
                 SELECT seq FROM dead_letters WHERE subscription = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)";
    tx.execute(sql, &[Value::from(uid), Value::Int(MAX_DEAD_LETTERS)]).await?;
    Ok(())
}

/// Rows that one statement forgets.
const FORGOTTEN_AT_ONCE: i64 = 1000;

/// Deletes events up to the number `floor` that are older than `before`, and dead letters that died before
/// `dead_before`; a batch at a time. True if there may be more.
pub(crate) async fn forget(db: &Db, floor: i64, before: Micros, dead_before: Micros) -> Result<bool> {
    db.write(move |tx| {
        Box::pin(async move {
            let sql = "DELETE FROM outbox WHERE at < $2
                       AND seq IN (SELECT seq FROM outbox WHERE seq <= $1 ORDER BY seq LIMIT $3)";
            let params = [Value::Int(floor), Value::Int(before), Value::Int(FORGOTTEN_AT_ONCE)];
            let events = tx.execute(sql, &params).await?;
            let sql = "DELETE FROM dead_letters WHERE (subscription, event_id) IN (
                         SELECT subscription, event_id FROM dead_letters WHERE died_at < $1 ORDER BY died_at LIMIT $2)";
            let params = [Value::Int(dead_before), Value::Int(FORGOTTEN_AT_ONCE)];
            let dead = tx.execute(sql, &params).await?;
            Ok(events.max(dead) >= FORGOTTEN_AT_ONCE as u64)
        })
    })
    .await
}
