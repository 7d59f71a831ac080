//! When identities were last seen: at minute grain, and never inside an exchange's transaction.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bowline_core::{Error, Micros, Result};
use bowline_store::{Db, Value};

const MINUTE: Micros = 60_000_000;

/// Rows that one transaction updates.
const AT_ONCE: usize = 200;

const SEEN: &str = "
UPDATE identities SET last_seen_at = $2 WHERE uid = $1 AND (last_seen_at IS NULL OR last_seen_at < $2)";

/// Identities seen since the last flush.
#[derive(Default)]
pub(super) struct LastSeen {
    waiting: Mutex<HashMap<String, Micros>>,
    /// Held while what was taken out of `waiting` is on its way to the database.
    writing: tokio::sync::Mutex<()>,
}

impl LastSeen {
    /// Notes that an identity was seen, unless the store already says so.
    pub(super) fn note(&self, uid: &str, stored: Option<Micros>, now: Micros) {
        let minute = now - now.rem_euclid(MINUTE);
        if stored.is_none_or(|stored| stored < minute) {
            self.put(uid.into(), minute);
        }
    }

    /// Writes what was noted, and waits for another flush that is under way: what was noted before the call is in the
    /// database after it. What cannot be written waits for the next time.
    pub(super) async fn flush(&self, db: &Db) -> Result<()> {
        let _writing = self.writing.lock().await;
        let waiting = std::mem::take(&mut *self.lock());
        let seen: Vec<(String, Micros)> = waiting.into_iter().collect();
        for (part, batch) in seen.chunks(AT_ONCE).enumerate() {
            if let Err(error) = write(db, batch.to_vec()).await {
                for (uid, minute) in &seen[part * AT_ONCE..] {
                    self.put(uid.clone(), *minute);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn put(&self, uid: String, minute: Micros) {
        let mut waiting = self.lock();
        let noted = waiting.entry(uid).or_insert(minute);
        *noted = minute.max(*noted);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Micros>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(db: &Db, mut batch: Vec<(String, Micros)>) -> Result<()> {
    // One order everywhere, so that replicas do not wait for each other in a circle.
    batch.sort();
    let batch = std::sync::Arc::new(batch);
    db.write(move |tx| {
        let batch = batch.clone();
        Box::pin(async move {
            for (uid, minute) in batch.iter() {
                tx.execute(SEEN, &[Value::from(uid), Value::Int(*minute)]).await?;
            }
            Ok::<(), Error>(())
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_noted_once() {
        let seen = LastSeen::default();
        seen.note("a", None, 3 * MINUTE + 5);
        seen.note("a", Some(2 * MINUTE), 2 * MINUTE + 7);
        seen.note("b", Some(3 * MINUTE), 3 * MINUTE + 9);
        assert_eq!(*seen.lock(), HashMap::from([("a".to_owned(), 3 * MINUTE)]));
    }
}
