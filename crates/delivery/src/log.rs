//! Reading the log of events.

use std::collections::HashMap;
use std::sync::Arc;

use bowline_core::{Error, Micros, Result, UidRange};
use bowline_store::{Db, Engine, ReadTx, Row, Value};

use crate::event::{NOTICE, Notice};
use crate::lease;
use crate::subscription::Waiting;

/// Rows that are read, or numbered, at a time.
pub(crate) const BATCH: usize = 500;
/// Events of one subscription that are read at a time.
pub(crate) const PAGE: usize = 32;
/// Numbers that one statement for a subscription looks at, and how many such statements follow one another.
const WINDOW: i64 = 10_000;
const WINDOWS: usize = 20;

/// A subscription as it is stored, and where it stands.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) uid: String,
    pub(crate) sink: String,
    pub(crate) created_at: Micros,
    pub(crate) cursor: Option<i64>,
    pub(crate) attempts: i64,
    pub(crate) failing_since: Option<Micros>,
    pub(crate) next_at: Option<Micros>,
    pub(crate) last_error: String,
    pub(crate) is_paused: bool,
}

impl Stored {
    fn read(row: &Row<'_>) -> Result<Stored> {
        Ok(Stored {
            uid: row.text(0)?,
            sink: row.text(1)?,
            created_at: row.int(2)?,
            cursor: row.opt_int(3)?,
            attempts: row.opt_int(4)?.unwrap_or(0),
            failing_since: row.opt_int(5)?,
            next_at: row.opt_int(6)?,
            last_error: row.opt_text(7)?.unwrap_or_default(),
            is_paused: row.opt_int(8)?.is_some(),
        })
    }
}

/// The newest number, 0 for none. Rows are never all deleted, so it only grows.
pub(crate) async fn newest(db: &Db) -> Result<i64> {
    db.read(|tx| {
        Box::pin(async move {
            let sql = "SELECT coalesce(max(seq), 0) FROM outbox";
            Ok(tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0))
        })
    })
    .await
}

/// All subscriptions, by UIDP.
pub(crate) async fn subscriptions(db: &Db) -> Result<Vec<Stored>> {
    let mut all: Vec<Stored> = Vec::new();
    loop {
        let after = all.last().map(|last| last.uid.clone()).unwrap_or_default();
        let page = db.read(move |tx| {
            Box::pin(async move {
                let sql =
                    "SELECT s.uid, s.sink, s.created_at, c.cursor, c.attempts, c.failing_since, c.next_at, c.last_error,
                            s.paused_at
                           FROM subscriptions s LEFT JOIN subscription_cursors c ON c.subscription = s.uid
                           WHERE s.uid > $1 ORDER BY s.uid LIMIT $2";
                tx.query(sql, &[Value::from(&after), Value::Int(BATCH as i64)], Stored::read).await
            })
        });
        let page = page.await?;
        let is_last = page.len() < BATCH;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}

/// The number of the event that a subscription began with, if it has one yet.
pub(crate) async fn beginning(db: &Db, uid: &str) -> Result<Option<i64>> {
    let uid = uid.to_owned();
    db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT min(seq) FROM outbox WHERE org = $1 AND subject = $2";
            let org = uid.split('/').next().unwrap_or_default();
            let params = [Value::from(org), Value::from(&uid)];
            let found = tx.query_opt(sql, &params, |row| row.opt_int(0).map_err(Error::from)).await?;
            Ok(found.flatten())
        })
    })
    .await
}

/// New rows of the log, and the state of subscriptions that began, or were paused or resumed, in them.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) events: Vec<Notice>,
    pub(crate) sinks: HashMap<String, String>,
    /// Whether these subscriptions are paused now.
    pub(crate) paused: HashMap<String, bool>,
    /// Whether rows wait for their number.
    pub(crate) has_unnumbered: bool,
}

/// What came after a number.
pub(crate) async fn after(db: &Db, seq: i64) -> Result<News> {
    db.read(move |tx| Box::pin(async move { read_after(tx, seq).await })).await
}

async fn read_after(tx: &mut ReadTx, seq: i64) -> Result<News> {
    let sql = format!("SELECT {NOTICE} FROM outbox WHERE seq > $1 ORDER BY seq LIMIT $2");
    let params = [Value::Int(seq), Value::Int(BATCH as i64)];
    let events = tx.query(&sql, &params, Notice::read).await?;
    let mut news = News { events, ..News::default() };
    for event in &news.events {
        if !event.begins_subscription() && !event.pauses_or_resumes() {
            continue;
        }
        let sql = "SELECT sink, paused_at FROM subscriptions WHERE uid = $1";
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.opt_int(1)?.is_some()));
        // One that is gone again needs no events.
        if let Some((sink, is_paused)) = tx.query_opt(sql, &[Value::from(&event.subject)], read).await? {
            news.sinks.insert(event.subject.clone(), sink);
            news.paused.insert(event.subject.clone(), is_paused);
        }
    }
    if tx.engine() == Engine::Postgres {
        let sql = "SELECT id FROM outbox WHERE seq IS NULL LIMIT 1";
        news.has_unnumbered = tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await?.is_some();
    }
    Ok(news)
}

/// Rows to be numbered: those of finished transactions, in the order of the transactions; nothing can come between
/// them later. Rows of transactions that this server never had came with a dump of another one, and go first.
const NUMBER: &str = "
WITH ready AS (
  SELECT id, row_number() OVER (ORDER BY part, txid, id) AS n FROM (
    (SELECT 0 AS part, txid, id FROM outbox
     WHERE seq IS NULL AND txid >= CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)
     ORDER BY txid, id LIMIT $1)
    UNION ALL
    (SELECT 1 AS part, txid, id FROM outbox
     WHERE seq IS NULL AND txid < CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)
     ORDER BY txid, id LIMIT $1)) AS parts
  ORDER BY part, txid, id LIMIT $1)
UPDATE outbox SET seq = ready.n + (SELECT coalesce(max(seq), 0) FROM outbox) FROM ready WHERE outbox.id = ready.id";

/// Numbers rows if the lease is still the holder's. Only for PostgreSQL: the embedded engine numbers as it writes.
pub(crate) async fn number(db: &Db, holder: &str) -> Result<()> {
    let holder = holder.to_owned();
    db.write_leased(move |tx| {
        let holder = holder.clone();
        Box::pin(async move {
            if lease::confirm(tx, &holder).await? {
                tx.execute(NUMBER, &[Value::Int(BATCH as i64)]).await?;
            }
            Ok(())
        })
    })
    .await
}

/// A stretch of the log that a subscription wants to have.
#[derive(Clone, Debug)]
pub(crate) struct LogRange {
    pub(crate) uid: Arc<str>,
    pub(crate) group: Arc<str>,
    /// Events after this number alone.
    pub(crate) after: i64,
}

/// The next events of a subscription.
#[derive(Debug)]
pub(crate) struct LogEvents {
    pub(crate) uid: Arc<str>,
    pub(crate) events: Vec<Waiting>,
    /// Everything up to here is in the events.
    pub(crate) read_to: i64,
}

/// The next events of several subscriptions, up to the number `last`.
pub(crate) async fn matching(db: &Db, wanted: Vec<LogRange>, last: i64) -> Result<Vec<LogEvents>> {
    db.read(move |tx| {
        Box::pin(async move {
            let mut all = Vec::with_capacity(wanted.len());
            for one in wanted {
                all.push(matching_one(tx, one, last).await?);
            }
            Ok(all)
        })
    })
    .await
}

async fn matching_one(tx: &mut ReadTx, wanted: LogRange, last: i64) -> Result<LogEvents> {
    let sql = "SELECT seq, at FROM outbox
         WHERE org = $1 AND seq > $2 AND seq <= $3 AND customer
           AND (group_uid >= $4 AND group_uid < $5 OR group_uid = '' AND subject = $6)
         ORDER BY seq LIMIT $7";
    let range = UidRange::subtree(&wanted.group);
    let mut read_to = wanted.after;
    let mut events: Vec<Waiting> = Vec::new();
    for _ in 0..WINDOWS {
        let end = last.min(read_to + WINDOW);
        let params = [
            Value::from(wanted.group.split('/').next().unwrap_or_default()),
            Value::Int(read_to),
            Value::Int(end),
            Value::from(&range.lower),
            Value::from(&range.upper),
            Value::from(&*wanted.group),
            Value::Int(PAGE as i64),
        ];
        let read = |row: &Row<'_>| Ok::<_, Error>(Waiting { seq: row.int(0)?, at: row.int(1)? });
        events = tx.query(sql, &params, read).await?;
        let is_full = events.len() == PAGE;
        read_to = if is_full { events.last().map_or(end, |event| event.seq) } else { end };
        if !events.is_empty() || read_to >= last {
            break;
        }
    }
    Ok(LogEvents { uid: wanted.uid, events, read_to })
}
