//! Last-seen times of identities: to the minute, and never inside an exchange's transaction.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bowline_core::{Error, Micros, Result};
use bowline_store::{Db, Value};

const MINUTE: Micros = 60_000_000;

/// Maximum number of rows that one transaction updates.
const AT_ONCE: usize = 200;

const SEEN: &str = "
UPDATE identities SET last_seen_at = $2 WHERE uid = $1 AND (last_seen_at IS NULL OR last_seen_at < $2)";

/// Identities seen since the last flush.
#[derive(Default)]
pub(super) struct LastSeen {
    waiting: Mutex<HashMap<String, Micros>>,
    /// Held while entries taken out of `waiting` are being written.
    writing: tokio::sync::Mutex<()>,
}

impl LastSeen {
    /// Records that an identity was seen, unless the database has this minute or a later one.
    pub(super) fn note(&self, uid: &str, stored: Option<Micros>, now: Micros) {
        let minute = now - now.rem_euclid(MINUTE);
        if stored.is_none_or(|stored| stored < minute) {
            self.put(uid.into(), minute);
        }
    }

    /// Writes the recorded times. It waits for a flush that is under way, so that everything recorded before
    /// the call is stored after it. Rows that cannot be written stay for the next flush.
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
    // One order everywhere, so that replicas do not deadlock.
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
