//! Pulls, written down outside of the requests that made them.

use std::sync::{Arc, Mutex, PoisonError};

use bowline_contract::bowline::registry::v1::Interaction;
use bowline_contract::bowline::registry::v1::rpc::content::PullManifest;
use bowline_core::{Micros, Uidp};
use bowline_pipeline::{EventBody, Image, Visit};
use bowline_store::{Db, StoreError, Value};

const MINUTE: Micros = 60_000_000;
/// Pulls that wait to be written at most.
const WAITING: usize = 20_000;
/// Pulls that one transaction writes.
const AT_ONCE: usize = 200;

const PULLED: &str = "
UPDATE repo_manifests SET last_pulled_at = $3
WHERE repo = $1 AND digest = $2 AND (last_pulled_at IS NULL OR last_pulled_at < $3)";

/// One pull of a manifest.
#[derive(Clone)]
pub(super) struct Pull {
    pub(super) visit: Visit,
    pub(super) repo: Uidp,
    pub(super) interaction: Interaction,
}

/// Pulls since the last flush.
#[derive(Default)]
pub(super) struct Pulls {
    waiting: Mutex<Waiting>,
    /// Held while pulls that were taken out of `waiting` are on their way to the database.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    pulls: Vec<Pull>,
    dropped: usize,
}

impl Pulls {
    /// Notes a pull. With a full queue it is only counted.
    pub(super) fn note(&self, pull: Pull) {
        let mut waiting = self.lock();
        if waiting.pulls.len() < WAITING {
            waiting.pulls.push(pull);
        } else {
            waiting.dropped += 1;
        }
    }

    /// Writes what was noted, and waits for another flush that is under way: what was noted before the call is in the
    /// database after it. What cannot be written waits for the next time.
    pub(super) async fn flush(&self, db: &Db) {
        let _writing = self.writing.lock().await;
        let Waiting { pulls, dropped } = std::mem::take(&mut *self.lock());
        if dropped > 0 {
            tracing::warn!(dropped, "more pulls came than could be written down: their events are lost");
        }
        let batches: Vec<Arc<[Pull]>> = pulls.chunks(AT_ONCE).map(Arc::from).collect();
        for (at, batch) in batches.iter().enumerate() {
            if let Err(error) = write(db, batch.clone()).await {
                tracing::warn!(%error, "pulls could not be written down; trying again later");
                batches[at..].iter().flat_map(|batch| batch.iter()).for_each(|pull| self.note(pull.clone()));
                return;
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(db: &Db, batch: Arc<[Pull]>) -> Result<(), bowline_core::Error> {
    db.write(move |tx| {
        let batch = batch.clone();
        Box::pin(async move {
            for pull in batch.iter() {
                pull.visit.record_event::<PullManifest>(tx, &event(&pull.repo, &pull.interaction)).await?;
            }
            // One row once, and in one order everywhere, so that replicas do not wait for each other in a circle.
            let minute = |at: Micros| at - at.rem_euclid(MINUTE);
            let mut pulled: Vec<(&str, &str, Micros)> = batch
                .iter()
                .map(|pull| (pull.repo.as_str(), &*pull.interaction.digest, minute(pull.visit.now())))
                .collect();
            pulled.sort_unstable();
            pulled.dedup();
            for (repo, digest, at) in pulled {
                let params = [Value::from(repo), Value::from(digest), Value::Int(at)];
                tx.execute(PULLED, &params).await.map_err(|error: StoreError| bowline_core::Error::from(error))?;
            }
            Ok(())
        })
    })
    .await
}

/// The event of a pull or push of a repository.
pub(super) fn event(repo: &Uidp, interaction: &Interaction) -> EventBody {
    EventBody {
        subject: repo.as_str().into(),
        group: repo.parent_str().into(),
        body: Image::of(interaction),
        extensions: Vec::new(),
    }
}
