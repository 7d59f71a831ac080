//! The log of attempts: the newest of each subscription, written in batches beside everything else.
//!
//! Attempts wait in memory, up to a limit per subscription and in total. Beyond it, new attempts replace waiting ones:
//! no delivery waits for the log. A crash loses the attempts of the last second or so.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_core::{Error, Micros, Result};
use bowline_store::{Db, Value, WriteTx};
use tokio::task::JoinHandle;

use crate::event::Event;

/// Attempts that are stored of each subscription.
const STORED: usize = 200;
/// Attempts that wait in memory.
const WAITING: usize = 10_000;
/// Attempts, and their subscriptions, that one transaction writes.
const ROWS_AT_ONCE: usize = 500;
const SUBSCRIPTIONS_AT_ONCE: usize = 64;
/// Rows of one statement.
const ROWS: usize = 20;
/// Pause between two transactions.
const SAVE_EVERY: Duration = Duration::from_millis(500);

/// Bytes of a response that are stored.
pub(crate) const RESPONSE: usize = 1024;

/// Why a delivery was attempted; the numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptKind {
    /// It was the event's turn.
    Event = 1,
    /// A dead letter was sent again.
    Redelivery = 2,
    /// The sink was tested.
    Test = 3,
}

/// An attempt that was made.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// UIDP of the subscription.
    pub subscription: Arc<str>,
    pub kind: AttemptKind,
    /// When the attempt began.
    pub at: Micros,
    /// Number of the event in the outbox; 0 for a test.
    pub seq: i64,
    pub event_id: String,
    pub event_type: String,
    pub subject: String,
    /// How long the sink took.
    pub took: Duration,
    pub status: Option<u16>,
    /// Empty for a success.
    pub error: String,
    /// The beginning of the response.
    pub response: String,
}

/// The outcome of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct SinkResponse {
    pub(crate) took: Duration,
    pub(crate) status: Option<u16>,
    pub(crate) error: String,
    pub(crate) response: String,
}

impl AttemptRecord {
    pub(crate) fn of(
        subscription: &Arc<str>,
        kind: AttemptKind,
        event: &Event,
        at: Micros,
        went: SinkResponse,
    ) -> AttemptRecord {
        AttemptRecord {
            subscription: subscription.clone(),
            kind,
            at,
            seq: event.seq,
            event_id: event.id.clone(),
            event_type: event.event_type.clone(),
            subject: event.subject.clone(),
            took: went.took,
            status: went.status,
            error: went.error,
            response: went.response,
        }
    }
}

/// The bytes as text that both engines store. A character that was cut off is replaced like any damage.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

/// Attempts that are not in the database yet.
#[derive(Default)]
pub(crate) struct AttemptLog {
    waiting: HashMap<Arc<str>, VecDeque<AttemptRecord>>,
    /// The subscriptions that have some, in turn.
    turns: VecDeque<Arc<str>>,
    count: usize,
    saving: Option<JoinHandle<()>>,
    saved_at: Option<Instant>,
}

impl AttemptLog {
    /// Adds an attempt. If too many wait, drops the oldest of its subscription, or the new one.
    pub(crate) fn push(&mut self, attempt: AttemptRecord) {
        let own = self.waiting.get_mut(&attempt.subscription).filter(|own| !own.is_empty());
        let is_full = self.count >= WAITING;
        match own {
            Some(own) => {
                if is_full || own.len() >= STORED {
                    own.pop_front();
                    self.count -= 1;
                }
                own.push_back(attempt);
            }
            None if is_full => return,
            None => {
                self.turns.push_back(attempt.subscription.clone());
                self.waiting.insert(attempt.subscription.clone(), VecDeque::from([attempt]));
            }
        }
        self.count += 1;
    }

    /// The attempts of the subscriptions whose turn it is.
    fn take(&mut self) -> Vec<Vec<AttemptRecord>> {
        let (mut taken, mut rows) = (Vec::new(), 0);
        while taken.len() < SUBSCRIPTIONS_AT_ONCE && rows < ROWS_AT_ONCE {
            let Some(own) = self.turns.pop_front().and_then(|uid| self.waiting.remove(&uid)) else { break };
            rows += own.len();
            self.count -= own.len();
            taken.push(own.into());
        }
        taken
    }

    /// Begins to write waiting attempts, if the pause is over.
    pub(crate) fn save(&mut self, db: &Db) {
        let is_saving = self.saving.as_ref().is_some_and(|task| !task.is_finished());
        if self.count == 0 || is_saving || self.saved_at.is_some_and(|at| at.elapsed() < SAVE_EVERY) {
            return;
        }
        self.saved_at = Some(Instant::now());
        let (db, batch) = (db.clone(), self.take());
        self.saving = Some(tokio::spawn(async move {
            if let Err(error) = save(&db, batch).await {
                tracing::warn!(cause = %error, "attempts at deliveries were not logged");
            }
        }));
    }
}

/// Writes attempts, those of a subscription together, and returns the number of the last. A machine that fails may lose
/// them.
///
/// # Errors
/// The database is unavailable.
pub(crate) async fn save(db: &Db, attempts: Vec<Vec<AttemptRecord>>) -> Result<i64> {
    let attempts = Arc::new(attempts);
    db.write_scratch(move |tx| {
        let attempts = attempts.clone();
        Box::pin(async move {
            let mut last = 0;
            for own in &*attempts {
                last = save_of_subscription(tx, own).await?;
            }
            Ok(last)
        })
    })
    .await
}

async fn save_of_subscription(tx: &mut WriteTx, attempts: &[AttemptRecord]) -> Result<i64> {
    let Some(first) = attempts.first() else { return Ok(0) };
    let uid = Value::from(&*first.subscription);
    let sql = "SELECT coalesce((SELECT max(number) FROM delivery_attempts WHERE subscription = $1), 0)
               FROM subscriptions WHERE uid = $1";
    // Attempts of deleted subscriptions are not stored.
    let Some(last) = tx.query_opt(sql, &[uid], |row| row.int(0).map_err(Error::from)).await? else {
        return Ok(0);
    };
    let mut number = last;
    for rows in attempts.chunks(ROWS) {
        insert(tx, rows, number).await?;
        number += rows.len() as i64;
    }
    let sql = "DELETE FROM delivery_attempts WHERE subscription = $1 AND number <= $2";
    tx.execute(sql, &[uid, Value::Int(number - STORED as i64)]).await?;
    Ok(number)
}

async fn insert(tx: &mut WriteTx, rows: &[AttemptRecord], last: i64) -> Result<()> {
    let (mut values, mut params) = (Vec::new(), Vec::new());
    for (number, row) in (last + 1..).zip(rows) {
        let columns: Vec<String> = (1..=12).map(|n| format!("${}", params.len() + n)).collect();
        values.push(format!("({})", columns.join(", ")));
        params.extend([
            Value::from(&*row.subscription),
            Value::Int(number),
            Value::Int(row.kind as i64),
            Value::Int(row.at),
            Value::Int(row.seq),
            Value::from(&row.event_id),
            Value::from(&row.event_type),
            Value::from(&row.subject),
            Value::Int(Micros::try_from(row.took.as_micros()).unwrap_or(Micros::MAX)),
            Value::OptInt(row.status.map(i64::from)),
            Value::from(&row.error),
            Value::from(&row.response),
        ]);
    }
    let sql = format!(
        "INSERT INTO delivery_attempts (subscription, number, kind, at, seq, event_id, event_type, subject, took, status,
                                        error, response)
         VALUES {}",
        values.join(", ")
    );
    tx.execute(&sql, &params).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(subscription: &str, seq: i64) -> AttemptRecord {
        AttemptRecord {
            subscription: subscription.into(),
            kind: AttemptKind::Event,
            at: 0,
            seq,
            event_id: String::new(),
            event_type: String::new(),
            subject: String::new(),
            took: Duration::ZERO,
            status: Some(200),
            error: String::new(),
            response: String::new(),
        }
    }

    #[test]
    fn a_subscription_keeps_its_newest_attempts_and_takes_turns() {
        let mut log = AttemptLog::default();
        for seq in 0..1000 {
            log.push(attempt("a", seq));
        }
        log.push(attempt("b", 0));
        let taken = log.take();
        let seqs: Vec<Vec<i64>> = taken.iter().map(|own| own.iter().map(|one| one.seq).collect()).collect();
        assert_eq!(seqs, [(800..1000).collect(), vec![0]]);
        assert_eq!((log.count, log.waiting.len(), log.turns.len()), (0, 0, 0));
    }

    #[test]
    fn memory_is_bounded_whatever_comes() {
        let mut log = AttemptLog::default();
        for n in 0..2 * WAITING as i64 {
            log.push(attempt(&format!("s{n}"), n));
            log.push(attempt("s0", n));
        }
        assert_eq!(log.count, WAITING);
        assert_eq!(log.waiting.values().map(VecDeque::len).sum::<usize>(), WAITING);
        let mut rows = 0;
        while log.count > 0 {
            let taken = log.take();
            let taken_rows: usize = taken.iter().map(Vec::len).sum();
            assert!(taken.len() <= SUBSCRIPTIONS_AT_ONCE && taken_rows < ROWS_AT_ONCE + STORED);
            rows += taken_rows;
        }
        assert_eq!(rows, WAITING);
    }

    #[test]
    fn responses_are_text_for_both_engines() {
        assert_eq!(text(b"ok\0\xff"), "ok\u{fffd}\u{fffd}");
        assert_eq!(text(&"é".as_bytes()[..1]), "\u{fffd}");
    }
}
