//! Pulls, written down outside of the requests that made them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_contract::bowline::registry::v1::Interaction;
use bowline_contract::bowline::registry::v1::rpc::content::PullManifest;
use bowline_contract::{Contract, Method as _, MethodInfo};
use bowline_core::{Error, Micros, Uidp};
use bowline_pipeline::{Actor, EventBody, ResourceSnapshot, Visit, record_event};
use bowline_store::activity::{self, Activity, ActivityKind};
use bowline_store::{Db, Value, WriteTx};

use super::gate;
pub(super) use super::pull_spill::Pull;
use super::pull_spill::PullSpill;

const MINUTE: Micros = 60_000_000;
/// Pulls that wait in memory at most; further ones wait in the file.
const WAITING: usize = 20_000;
/// Pulls that one transaction writes.
const AT_ONCE: usize = 200;
/// Batches that one flush takes out of the file.
const BATCHES_AT_ONCE: usize = 100;
/// Repositories whose dropped pulls are counted one by one, and named in the log.
const COUNTED: usize = 1000;
const MAX_LOGGED_REPOS: usize = 10;

const PULLED: &str = "
UPDATE repo_manifests SET last_pulled_at = $3, last_pulled_by = $4
WHERE repo = $1 AND digest = $2 AND (last_pulled_at IS NULL OR last_pulled_at < $3)";

impl Pull {
    pub(super) fn new(visit: &Visit, repo: &Uidp, interaction: Interaction) -> Pull {
        let act = visit.principal().token().and_then(|token| token.actor.as_ref());
        Pull {
            at: visit.now(),
            actor: visit.principal().subject().to_owned(),
            act: act.map(ToString::to_string).unwrap_or_default(),
            repo: repo.as_str().into(),
            interaction,
            is_recorded: false,
        }
    }
}

/// Pulls since the last flush.
pub(super) struct Pulls {
    /// Pulls in memory are older than those in the file: what comes while the file has some goes into the file.
    waiting: Mutex<Waiting>,
    /// Held while pulls that were taken out of `waiting` are on their way to the database.
    writing: tokio::sync::Mutex<()>,
    most_in_memory: usize,
}

#[derive(Default)]
struct Waiting {
    pulls: Vec<Pull>,
    spill: Option<PullSpill>,
    /// Pulls that were dropped since the last flush, by repository.
    dropped: BTreeMap<String, u64>,
    dropped_in_all: u64,
}

/// What waits, and what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullBacklog {
    /// Pulls that wait in memory.
    pub in_memory: u64,
    /// Bytes of pulls that wait in the file.
    pub spilled_bytes: u64,
    /// Pulls that were dropped since the start.
    pub dropped: u64,
}

impl Pulls {
    pub(super) fn new(spill: Option<PullSpill>) -> Pulls {
        Pulls {
            waiting: Mutex::new(Waiting { spill, ..Waiting::default() }),
            writing: tokio::sync::Mutex::default(),
            most_in_memory: WAITING,
        }
    }

    /// Notes a pull: in memory, else in the file, unless the disk is full. Past the file's bound it is only counted.
    pub(super) fn note(&self, pull: Pull, disk_is_full: bool) {
        let mut waiting = self.lock();
        let is_spilling = waiting.spill.as_ref().is_some_and(|spill| spill.waiting() > 0);
        if !is_spilling && waiting.pulls.len() < self.most_in_memory {
            waiting.pulls.push(pull);
            return;
        }
        let spilled = match &mut waiting.spill {
            Some(spill) if !disk_is_full => spill.push(&pull).unwrap_or_else(|error| {
                tracing::warn!(%error, "a pull could not be written to the spill file");
                false
            }),
            _ => false,
        };
        if !spilled {
            waiting.count_dropped(pull.repo);
        }
    }

    /// Writes what was noted, and waits for another flush that is under way. What cannot be written waits for the next
    /// time. True if the file has more.
    pub(super) async fn flush(&self, db: &Db, contract: &Arc<Contract>) -> bool {
        let _writing = self.writing.lock().await;
        let (pulls, dropped) = {
            let mut waiting = self.lock();
            (std::mem::take(&mut waiting.pulls), std::mem::take(&mut waiting.dropped))
        };
        report(&dropped);
        let batches: Vec<Arc<[Pull]>> = pulls.chunks(AT_ONCE).map(Arc::from).collect();
        for (at, batch) in batches.iter().enumerate() {
            if !write(db, contract, batch.clone()).await {
                let rest = batches[at..].iter().flat_map(|batch| batch.iter().cloned());
                self.lock().pulls.splice(0..0, rest);
                return false;
            }
        }
        for _ in 0..BATCHES_AT_ONCE {
            let Some((batch, next)) = self.lock().first_spilled() else { return false };
            if !write(db, contract, batch.into()).await {
                return false;
            }
            let mut waiting = self.lock();
            if let Some(Err(error)) = waiting.spill.as_mut().map(|spill| spill.advance(next)) {
                tracing::warn!(%error, "the spill file does not know which pulls are written: a restart repeats some");
            }
        }
        true
    }

    pub(super) fn backlog(&self) -> PullBacklog {
        let waiting = self.lock();
        PullBacklog {
            in_memory: waiting.pulls.len() as u64,
            spilled_bytes: waiting.spill.as_ref().map_or(0, PullSpill::waiting),
            dropped: waiting.dropped_in_all,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn count_dropped(&mut self, repo: String) {
        self.dropped_in_all += 1;
        // Callers choose which repositories they pull from.
        let is_counted = self.dropped.len() < COUNTED || self.dropped.contains_key(&repo);
        *self.dropped.entry(if is_counted { repo } else { "others".into() }).or_default() += 1;
    }

    /// The first batch of the file, if it has any. What cannot be read is given up.
    fn first_spilled(&mut self) -> Option<(Vec<Pull>, u64)> {
        let spill = self.spill.as_mut().filter(|spill| spill.waiting() > 0)?;
        match spill.first(AT_ONCE) {
            Ok(first) => Some(first),
            Err(error) => {
                tracing::error!(%error, bytes = spill.waiting(), "the spill file is damaged; the pulls in it are lost");
                if let Err(error) = spill.clear() {
                    tracing::error!(%error, "the spill file cannot be emptied; it is no longer used");
                    self.spill = None;
                }
                None
            }
        }
    }
}

/// Says which pulls were lost: those of the repositories with the most.
fn report(dropped: &BTreeMap<String, u64>) {
    if dropped.is_empty() {
        return;
    }
    let mut most: Vec<(&String, &u64)> = dropped.iter().collect();
    most.sort_by_key(|(repo, count)| (std::cmp::Reverse(**count), *repo));
    let named: Vec<String> =
        most.iter().take(MAX_LOGGED_REPOS).map(|(repo, count)| format!("{repo}={count}")).collect();
    let pulls: u64 = dropped.values().sum();
    tracing::warn!(
        pulls,
        repositories = dropped.len(),
        most = named.join(" "),
        "more pulls came than could be written or spilled; their events and times are lost"
    );
}

/// Writes a batch; false if the storage refuses.
async fn write(db: &Db, contract: &Arc<Contract>, batch: Arc<[Pull]>) -> bool {
    let contract = contract.clone();
    let written = db.write(move |tx| {
        let (batch, contract) = (batch.clone(), contract.clone());
        Box::pin(async move {
            let info = info(&contract)?;
            for pull in batch.iter() {
                let actor = Actor { subject: &pull.actor, request_id: "", method: &info.full_name };
                let act = serde_json::from_str(&pull.act).ok();
                let repo = Uidp::parse(&pull.repo).map_err(|_| Error::internal("a pull of no repository"))?;
                record_event(tx, info, pull.at, &actor, act.as_ref(), &event(&repo, &pull.interaction)).await?;
            }
            count(tx, &batch).await?;
            gate::record_passed(tx, &batch).await?;
            // One row once, and in one order everywhere, so that replicas do not wait for each other in a circle.
            let minute = |at: Micros| at - at.rem_euclid(MINUTE);
            let mut pulled: BTreeMap<(&str, &str), (Micros, &str)> = BTreeMap::new();
            for pull in batch.iter() {
                let last = pulled.entry((&pull.repo, &pull.interaction.digest)).or_default();
                *last = (minute(pull.at), pull.actor.as_str()).max(*last);
            }
            for ((repo, digest), (at, by)) in pulled {
                let params = [Value::from(repo), Value::from(digest), Value::Int(at), Value::from(by)];
                tx.execute(PULLED, &params).await.map_err(Error::from)?;
            }
            Ok::<_, Error>(())
        })
    });
    match written.await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, "pulls could not be written; trying again later");
            false
        }
    }
}

/// Counts pulls by day: a row for each repository and caller of the batch.
async fn count(tx: &mut WriteTx, batch: &[Pull]) -> Result<(), Error> {
    let mut counts: BTreeMap<Activity<'_>, i64> = BTreeMap::new();
    for pull in batch {
        let day = activity::day_of(pull.at);
        let activity = Activity { scope: &pull.repo, identity: &pull.actor, day, kind: ActivityKind::Pulls };
        *counts.entry(activity).or_default() += 1;
    }
    for (activity, n) in &counts {
        activity::record(tx, activity, *n).await?;
    }
    Ok(())
}

fn info(contract: &Contract) -> Result<&MethodInfo, Error> {
    let found = contract.by_full_name(PullManifest::FULL_NAME);
    found.ok_or_else(|| Error::internal(format!("{} is not in the contract", PullManifest::FULL_NAME)))
}

/// The event of a pull or push of a repository.
pub(super) fn event(repo: &Uidp, interaction: &Interaction) -> EventBody {
    EventBody {
        subject: repo.as_str().into(),
        group: repo.parent_str().into(),
        body: ResourceSnapshot::of(interaction),
        extensions: Vec::new(),
    }
}

#[cfg(test)]
#[path = "pulls_tests.rs"]
mod tests;
