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
    /// The database does not answer.
    pub(crate) async fn of(&mut self, db: &Db, attempts: &[Attempt]) -> Result<Vec<Option<Arc<Event>>>> {
        self.known.retain(|_, event| event.strong_count() > 0);
        let mut shared: HashMap<i64, Arc<Event>> = HashMap::new();
        let (mut missing, mut letters) = (Vec::new(), Vec::new());
        for attempt in attempts {
            match &attempt.what {
                What::Event(seq) => match self.known.get(seq).and_then(Weak::upgrade) {
                    Some(event) => {
                        shared.insert(*seq, event);
                    }
                    None => missing.push(*seq),
                },
                What::Letter(event_id) => letters.push((attempt.uid.clone(), event_id.clone())),
            }
        }
        missing.sort_unstable();
        missing.dedup();
        let (events, mut letters) = read(db, missing, letters).await?;
        for event in events {
            self.known.insert(event.seq, Arc::downgrade(&event));
            shared.insert(event.seq, event);
        }
        let of = |attempt: &Attempt| match &attempt.what {
            What::Event(seq) => shared.get(seq).cloned(),
            What::Letter(event_id) => letters.remove(&(attempt.uid.clone(), event_id.clone())),
        };
        Ok(attempts.iter().map(of).collect())
    }
}

/// A dead letter: whose, and the id of its event.
type Key = (Arc<str>, String);

async fn read(db: &Db, seqs: Vec<i64>, letters: Vec<Key>) -> Result<(Vec<Arc<Event>>, HashMap<Key, Arc<Event>>)> {
    if seqs.is_empty() && letters.is_empty() {
        return Ok(Default::default());
    }
    db.read(move |tx| {
        Box::pin(async move {
            let events = events(tx, &seqs).await?;
            let mut found = HashMap::new();
            for (uid, event_id) in letters {
                if let Some(event) = letter(tx, &uid, &event_id).await? {
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
    let places: Vec<String> = (1..=seqs.len()).map(|n| format!("${n}")).collect();
    let sql = format!("SELECT {EVENT} FROM outbox WHERE seq IN ({})", places.join(", "));
    let params: Vec<Value<'_>> = seqs.iter().map(|seq| Value::Int(*seq)).collect();
    tx.query(&sql, &params, |row| Event::read(row).map(Arc::new)).await
}

async fn letter(tx: &mut ReadTx, uid: &str, event_id: &str) -> Result<Option<Event>> {
    let sql = format!("SELECT {EVENT} FROM dead_letters WHERE subscription = $1 AND event_id = $2");
    let found = tx.query_opt(&sql, &[Value::from(uid), Value::from(event_id)], Event::read).await?;
    Ok(found.map(|event| Event { id: event_id.to_owned(), ..event }))
}
