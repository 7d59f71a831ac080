//! Refused downloads, summed in memory and written every few seconds: clients repeat them, and a refusal costs no write.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_store::WriteTx;

use super::{Hosting, served};
use crate::block_events::{self, BlockedDownload};
use crate::ecosystems::Language;
use crate::policies::Mode;
use crate::policy::age::Age;
use crate::policy::decide::{Refusal, Subject};

/// Different refusals that wait in memory at most; attempts of others are dropped, which the log says.
const WAITING: usize = 10_000;
/// Refusals that one transaction writes.
const AT_ONCE: usize = 200;

/// A download that a policy refused, or would have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) organization: Uidp,
    pub(super) language: Language,
    pub(super) package: String,
    pub(super) version: String,
    /// The policy that decided; absent for freezes.
    pub(super) policy: Option<Uidp>,
    pub(super) mode: Mode,
    pub(super) refusal: Refusal,
}

type Key = (String, &'static str, String, String, String, i64);

impl Note {
    fn key(&self) -> Key {
        (
            self.organization.as_str().into(),
            self.refusal.reason(),
            self.package.clone(),
            self.version.clone(),
            self.policy.as_ref().map(|uid| uid.as_str().into()).unwrap_or_default(),
            self.mode as i64,
        )
    }
}

#[derive(Default)]
struct Waiting {
    notes: HashMap<Key, (Note, i64)>,
    dropped: u64,
}

/// What waits to be written.
#[derive(Default)]
pub(super) struct Notes(Mutex<Waiting>);

impl Notes {
    pub(super) fn add(&self, note: Note) {
        self.add_attempts(note, 1);
    }

    fn add_attempts(&self, note: Note, attempts: i64) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = note.key();
        if waiting.notes.len() >= WAITING && !waiting.notes.contains_key(&key) {
            waiting.dropped += 1;
            return;
        }
        waiting.notes.entry(key).or_insert((note, 0)).1 += attempts;
    }

    fn take(&self) -> Waiting {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes the refusals that wait, and the versions that were served; refusals that cannot be written wait for the next time.
/// Call it every few seconds, and once at the end. `draw` draws UIDPs of new rows at random.
pub async fn flush(hosting: &Hosting, draw: fn() -> [u8; 8]) {
    served::flush(hosting).await;
    let Waiting { notes, dropped } = hosting.notes.take();
    if dropped > 0 {
        tracing::warn!(dropped, "refused downloads were not noted: more than {WAITING} different ones waited");
    }
    let notes: Vec<(Note, i64)> = notes.into_values().collect();
    let now = hosting.pipeline.clock.now();
    for part in notes.chunks(AT_ONCE) {
        let rows = std::sync::Arc::new(part.to_vec());
        let written = hosting.pipeline.db.write_derived(move |tx| {
            let rows = rows.clone();
            Box::pin(async move {
                for (note, attempts) in rows.iter() {
                    write(tx, note, *attempts, &note.organization.child_from(draw()), now).await?;
                }
                Ok::<_, Error>(())
            })
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, "refused downloads could not be written down; trying again");
            for (note, attempts) in part {
                hosting.notes.add_attempts(note.clone(), *attempts);
            }
        }
    }
}

async fn write(tx: &mut WriteTx, note: &Note, attempts: i64, new: &Uidp, now: Micros) -> Result<()> {
    // It may have been deleted since.
    match bowline_resources::references::require_group(tx, &note.organization).await {
        Err(error) if error.reason() == Reason::NotFound => return Ok(()),
        checked => checked?,
    }
    let subject = Subject {
        language: note.language,
        name: &note.package,
        version: &note.version,
        license: "",
        is_malware: false,
        age: Age::default(),
        vulnerabilities: &[],
        is_own: false,
    };
    let blocked = BlockedDownload {
        organization: &note.organization,
        subject,
        policy: note.policy.as_ref(),
        mode: note.mode,
        refusal: &note.refusal,
        attempts,
    };
    block_events::record(tx, &blocked, new, now).await
}
