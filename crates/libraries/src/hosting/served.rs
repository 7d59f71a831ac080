//! Versions of upstreams that organizations were served, noted in memory and written every few seconds: drafts of policies are
//! compared over them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::{Entry, TtlCache};
use bowline_store::WriteTx;

use super::Hosting;
use crate::ecosystems::Language;
use crate::resolutions::{self, Choice};

/// Versions that wait in memory at most; further ones are noted at their next download.
const WAITING: usize = 10_000;
/// Versions that one transaction writes.
const AT_ONCE: usize = 200;
/// Versions that are known to be written, and for how long they are not written again.
const RECENT: usize = 100_000;
const AGAIN: Micros = 3_600_000_000;

/// A version that an organization was served.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ServedVersion {
    pub(super) organization: Uidp,
    pub(super) language: Language,
    pub(super) package: String,
    pub(super) version: String,
}

/// What waits to be written: each version with the digest of a file of it.
pub(super) struct Served {
    waiting: Mutex<HashMap<ServedVersion, String>>,
    recent: TtlCache<ServedVersion, ()>,
}

impl Default for Served {
    fn default() -> Served {
        Served { waiting: Mutex::default(), recent: TtlCache::new(RECENT) }
    }
}

impl Served {
    pub(super) fn add(&self, version: ServedVersion, digest: &str, now: Micros) {
        if self.recent.change(version.clone(), now, |known| (None, known.is_some())) {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING {
            waiting.insert(version, digest.to_owned());
        }
    }

    fn take(&self) -> HashMap<ServedVersion, String> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes what waits; what cannot be written is noted again at its next download.
pub(super) async fn flush(hosting: &Hosting) {
    let now = hosting.pipeline.clock.now();
    let waiting: Vec<(ServedVersion, String)> = hosting.served.take().into_iter().collect();
    for part in waiting.chunks(AT_ONCE) {
        let rows = std::sync::Arc::new(part.to_vec());
        let written = hosting.pipeline.db.write_derived(move |tx| {
            let rows = rows.clone();
            Box::pin(async move {
                for (version, digest) in rows.iter() {
                    write(tx, version, digest, now).await?;
                }
                Ok::<_, Error>(())
            })
        });
        match written.await {
            Ok(()) => {
                for (version, _) in part {
                    let entry = Entry { until: now.saturating_add(AGAIN), value: () };
                    hosting.served.recent.change(version.clone(), now, |_| (Some(entry), ()));
                }
            }
            Err(error) => tracing::warn!(%error, "versions that were served could not be written down"),
        }
    }
}

async fn write(tx: &mut WriteTx, served: &ServedVersion, digest: &str, now: Micros) -> Result<()> {
    // It may have been deleted since.
    match bowline_resources::references::require_group(tx, &served.organization).await {
        Err(error) if error.reason() == Reason::NotFound => return Ok(()),
        checked => checked?,
    }
    let choice = Choice {
        organization: &served.organization,
        language: served.language,
        registry: served.language.word(),
        package: &served.package,
        version: &served.version,
        is_built: false,
        digest,
    };
    resolutions::record(tx, &choice, now).await.map(|_| ())
}
