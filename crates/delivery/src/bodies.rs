//! What attempts send: read when they begin, shared by those that send the same, gone with the last of them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bowline_core::{Error, Result};
use bowline_store::{Db, ReadTx, Value};

use crate::event::{EVENT, Event};
use crate::state::Attempt;
use crate::subscription::What;

/// Events that attempts under way send.
#[derive(Default)]
pub(crate) struct Bodies {
    known: HashMap<i64, Weak<Event>>,
}

impl Bodies {
    /// The event of each of the attempts, in their order; none for what is not stored any more.
    ///
    /// # Errors
    /// The database is not available.
    pub(crate) async fn of(&mut self, db: &Db, attempts: &[Attempt]) -> Result<Vec<Option<Arc<Event>>>> {
        self.known.retain(|_, event| event.strong_count() > 0);
        let mut shared: HashMap<i64, Arc<Event>> = HashMap::new();
        let (mut missing, mut redeliveries) = (Vec::new(), Vec::new());
        for attempt in attempts {
            match &attempt.what {
                What::Event(seq) => match self.known.get(seq).and_then(Weak::upgrade) {
                    Some(event) => {
                        shared.insert(*seq, event);
                    }
                    None => missing.push(*seq),
                },
                What::Redelivery(event_id) => redeliveries.push((attempt.uid.clone(), event_id.clone())),
            }
        }
        missing.sort_unstable();
        missing.dedup();
        let (events, mut redeliveries) = read(db, missing, redeliveries).await?;
        for event in events {
            self.known.insert(event.seq, Arc::downgrade(&event));
            shared.insert(event.seq, event);
        }
        let of = |attempt: &Attempt| match &attempt.what {
            What::Event(seq) => shared.get(seq).cloned(),
            What::Redelivery(event_id) => redeliveries.remove(&(attempt.uid.clone(), event_id.clone())),
        };
        Ok(attempts.iter().map(of).collect())
    }
}

/// A dead letter: whose, and the id of its event.
type Key = (Arc<str>, String);

async fn read(db: &Db, seqs: Vec<i64>, redeliveries: Vec<Key>) -> Result<(Vec<Arc<Event>>, HashMap<Key, Arc<Event>>)> {
    if seqs.is_empty() && redeliveries.is_empty() {
        return Ok(Default::default());
    }
    db.read(move |tx| {
        Box::pin(async move {
            let events = events(tx, &seqs).await?;
            let mut found = HashMap::new();
            for (uid, event_id) in redeliveries {
                if let Some(event) = redelivery(tx, &uid, &event_id).await? {
                    found.insert((uid, event_id), Arc::new(event));
                }
            }
            Ok::<_, Error>((events, found))
        })
    })
    .await
}

async fn events(tx: &mut ReadTx, seqs: &[i64]) -> Result<Vec<Arc<Event>>> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let placeholders: Vec<String> = (1..=seqs.len()).map(|n| format!("${n}")).collect();
    let sql = format!("SELECT {EVENT} FROM outbox WHERE seq IN ({})", placeholders.join(", "));
    let params: Vec<Value<'_>> = seqs.iter().map(|seq| Value::Int(*seq)).collect();
    tx.query(&sql, &params, |row| Event::read(row).map(Arc::new)).await
}

/// An event of the outbox, or else of a subscription's dead letters; absent where neither has it any more.
///
/// # Errors
/// The database is unavailable.
pub(crate) async fn stored(db: &Db, subscription: &str, seq: i64, event_id: &str) -> Result<Option<Event>> {
    let (subscription, event_id) = (subscription.to_owned(), event_id.to_owned());
    db.read(move |tx| {
        Box::pin(async move {
            let sql = format!("SELECT {EVENT} FROM outbox WHERE seq = $1");
            let event = tx.query_opt(&sql, &[Value::Int(seq)], Event::read).await?;
            match event.filter(|event| event.id == event_id) {
                Some(event) => Ok(Some(event)),
                None => redelivery(tx, &subscription, &event_id).await,
            }
        })
    })
    .await
}

async fn redelivery(tx: &mut ReadTx, uid: &str, event_id: &str) -> Result<Option<Event>> {
    let sql = format!("SELECT {EVENT} FROM dead_letters WHERE subscription = $1 AND event_id = $2");
    let found = tx.query_opt(&sql, &[Value::from(uid), Value::from(event_id)], Event::read).await?;
    Ok(found.map(|event| Event { id: event_id.to_owned(), ..event }))
}

#[cfg(test)]
mod tests {
    use bowline_store::{MIGRATIONS, SqliteOptions};

    use super::*;
    use crate::state::tests::{next, see, state};

    /// Attempts of two subscriptions at the event of this number.
    fn attempts(seq: i64) -> Vec<Attempt> {
        let mut state = state(&["a/s", "a/t"]);
        see(&mut state, seq, "a");
        std::iter::from_fn(|| next(&mut state, 0)).collect()
    }

    #[tokio::test]
    async fn attempts_at_one_event_share_it_and_the_last_one_lets_it_go() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open_sqlite(&directory.path().join("test.db"), SqliteOptions::default()).await.unwrap();
        db.migrate(MIGRATIONS).await.unwrap();
        let stored = db.write(|tx| {
            Box::pin(async move {
                let sql = "INSERT INTO outbox (at, event_type, customer, org, group_uid, subject, method, actor,
                                               extensions, body_type, body)
                           VALUES (0, '', TRUE, 'a', 'a', 'a/x', '', '', '', '', $1)";
                Ok::<_, Error>(tx.execute(sql, &[Value::Bytes(b"large")]).await?)
            })
        });
        stored.await.unwrap();
        let mut bodies = Bodies::default();
        let [first, second] = bodies.of(&db, &attempts(1)).await.unwrap().try_into().unwrap();
        assert!(Arc::ptr_eq(first.as_ref().unwrap(), second.as_ref().unwrap()), "both send one");
        let third = bodies.of(&db, &attempts(1)).await.unwrap().remove(0);
        assert!(Arc::ptr_eq(first.as_ref().unwrap(), third.as_ref().unwrap()), "and so do those that begin later");
        drop((first, second, third));
        assert!(bodies.known.values().all(|event| event.strong_count() == 0), "nothing is kept");
        assert!(bodies.of(&db, &attempts(2)).await.unwrap().iter().all(Option::is_none));
        assert!(bodies.known.is_empty());
    }
}
