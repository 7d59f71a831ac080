//! Files that are not here yet: each is fetched once for all who wait. They look again before they have anything of it, since
//! what decides about it may have changed meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bowline_content::{Follower, HELD_BACK};
use bowline_core::Micros;
use bowline_libraries::hosting::{AvailableFile, File, HostError, Lookup, MissingFile};
use bowline_pipeline::{Entry, TtlCache};
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::PackageHosts;
use crate::fetching::{LOOKS, changing};

/// Files whose fetch ended a moment ago, and for how long it is remembered that it failed, and that it did not: longer than a
/// look takes.
const ENDED: usize = 10_000;
const FAILURE: Micros = 10_000_000;
const STORED: Micros = 60_000_000;

/// The fetches of files, by upstream and file.
pub(crate) struct FileFetches {
    under_way: Mutex<HashMap<String, watch::Receiver<Phase>>>,
    failures: TtlCache<String, Arc<str>>,
    /// Fetches that have ended well, counted, and the number of each.
    ends: AtomicU64,
    stored: TtlCache<String, u64>,
}

impl FileFetches {
    pub(crate) fn new() -> FileFetches {
        FileFetches {
            under_way: Mutex::default(),
            failures: TtlCache::new(ENDED),
            ends: AtomicU64::new(0),
            stored: TtlCache::new(ENDED),
        }
    }

    /// How many are under way, or wait for their turn.
    pub(crate) fn count(&self) -> usize {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How many fetches have ended well.
    fn ends(&self) -> u64 {
        self.ends.load(Ordering::SeqCst)
    }

    /// Remembers how a fetch has ended.
    fn note(&self, key: &str, ended: &Result<(), Arc<str>>, now: Micros) {
        match ended {
            Ok(()) => {
                let value = self.ends.fetch_add(1, Ordering::SeqCst) + 1;
                let entry = Entry { until: now.saturating_add(STORED), value };
                self.stored.change(key.to_owned(), now, |_| (Some(entry), ()));
            }
            Err(sentence) => {
                let entry = Entry { until: now.saturating_add(FAILURE), value: sentence.clone() };
                self.failures.change(key.to_owned(), now, |_| (Some(entry), ()));
            }
        }
    }

    /// Whether the fetch of a file ended well after so many had: who looked for the file at that time may have missed it.
    fn was_stored_after(&self, key: &str, ends: u64, now: Micros) -> bool {
        let number = self.stored.change(key.to_owned(), now, |known| (None, known.map(|entry| entry.value)));
        number.is_some_and(|number| number > ends)
    }

    /// Why a file could not be fetched a moment ago, if it could not.
    fn failure(&self, key: &str, now: Micros) -> Option<Arc<str>> {
        self.failures.change(key.to_owned(), now, |known| (None, known.map(|entry| entry.value)))
    }
}

/// A file that is being fetched.
pub(crate) struct Fetch {
    pub(crate) file: MissingFile,
    phase: watch::Sender<Phase>,
}

impl Fetch {
    /// Lets clients follow the bytes. They are so many, where that is known.
    pub(crate) fn arrives(&self, follower: Follower, size: Option<u64>) {
        self.phase.send_replace(Phase::Arriving(follower, size));
    }

    /// Lets clients that come now wait for the outcome.
    pub(crate) fn arrives_no_more(&self) {
        self.phase.send_replace(Phase::Waiting);
    }
}

/// How far a fetch is.
#[derive(Clone)]
enum Phase {
    Waiting,
    Arriving(Follower, Option<u64>),
    /// The file is stored, or why it is not.
    Ended(Result<(), Arc<str>>),
}

/// Which files a client gets before they are stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Early {
    Never,
    /// Those that take a while to arrive.
    Large,
    Any,
}

impl Early {
    fn of(file: &MissingFile, is_streamed: bool) -> Early {
        match (is_streamed && file.is_free_to_stream, file.is_decided_by_license) {
            (false, _) => Early::Never,
            // The license that it declares itself is known once it is stored, and decides then.
            (true, true) => Early::Large,
            (true, false) => Early::Any,
        }
    }
}

/// A client's part in a fetch.
struct Following(watch::Receiver<Phase>);

impl Following {
    /// Waits until the file is stored, or until its bytes can be sent: all of them if they are verified, the first ones if they
    /// are so many that waiting for all of them takes longer.
    async fn arriving(&mut self, early: Early) -> Result<Option<(Follower, u64)>, HostError> {
        loop {
            let phase = self.0.borrow_and_update().clone();
            match phase {
                Phase::Arriving(follower, Some(size)) if size > HELD_BACK && early >= Early::Large => {
                    return Ok(Some((follower, size)));
                }
                // All of it is held back: if its digest differs, the client is told so, and no response is cut.
                Phase::Arriving(follower, Some(size)) if early == Early::Any && follower.clone().verified().await => {
                    return Ok(Some((follower, size)));
                }
                Phase::Ended(Ok(())) => return Ok(None),
                Phase::Ended(Err(sentence)) => return Err(HostError::Upstream(sentence.as_ref().to_owned())),
                Phase::Waiting | Phase::Arriving(..) => {}
            }
            if self.0.changed().await.is_err() {
                return Err(HostError::Upstream("the fetch of a file ended without an outcome: try again".into()));
            }
        }
    }
}

/// Takes a fetch out of the list at its end, also if it panics.
struct Listed {
    hosts: Arc<PackageHosts>,
    key: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut fetches = self.hosts.fetching.files.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        fetches.remove(&self.key);
    }
}

/// Where the bytes of a file come from.
pub(crate) enum FileSource {
    Stored(File),
    /// They arrive from the upstream, so many; the last ones once all were verified.
    Arriving {
        digest: String,
        size: u64,
        follower: Follower,
    },
}

/// What the fetch of a file is known by: others of its upstream with the same bytes are one with it.
fn key_of(file: &MissingFile) -> String {
    // Files of Java and Go have no digest before they are here.
    let of = if file.digest.is_empty() { &file.url } else { &file.digest };
    format!("{} {of}", file.upstream.key())
}

impl PackageHosts {
    /// Looks for a file until it is here, or, if the client can take it so, its bytes arrive.
    pub(crate) async fn file_source<Look>(
        self: &Arc<Self>,
        look: impl Fn() -> Look,
        is_streamed: bool,
    ) -> Result<FileSource, HostError>
    where
        Look: Future<Output = Result<Lookup<AvailableFile>, HostError>>,
    {
        for _ in 0..LOOKS {
            let ends = self.fetching.files.ends();
            let missing = match self.until_here(&look).await? {
                AvailableFile::Stored(file) => return Ok(FileSource::Stored(file)),
                AvailableFile::Missing(missing) => missing,
            };
            let (key, early) = (key_of(&missing), Early::of(&missing, is_streamed));
            let Some(mut following) = self.follow(*missing, &key, ends)? else { continue };
            let Some((follower, size)) = following.arriving(early).await? else { continue };
            let same = match self.until_here(&look).await? {
                AvailableFile::Stored(file) => return Ok(FileSource::Stored(file)),
                AvailableFile::Missing(same) => same,
            };
            // A failure that is known before the first byte has a sentence.
            if key == key_of(&same) && early == Early::of(&same, is_streamed) && !follower.has_failed() {
                self.hosting.note_streamed(&same);
                return Ok(FileSource::Arriving { digest: same.digest, size, follower });
            }
        }
        Err(changing())
    }

    /// Joins the fetch of a file, or begins it, unless one has stored it since so many had ended. It does not end with the client
    /// that began it.
    fn follow(self: &Arc<Self>, file: MissingFile, key: &str, ends: u64) -> Result<Option<Following>, HostError> {
        let mut fetches = self.fetching.files.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(phase) = fetches.get(key) {
            return Ok(Some(Following(phase.clone())));
        }
        let now = self.pipeline.clock.now();
        if self.fetching.files.was_stored_after(key, ends, now) {
            return Ok(None);
        }
        if let Some(sentence) = self.fetching.files.failure(key, now) {
            return Err(HostError::Upstream(sentence.as_ref().to_owned()));
        }
        let (sender, phase) = watch::channel(Phase::Waiting);
        fetches.insert(key.to_owned(), phase.clone());
        drop(fetches);
        let listed = Listed { hosts: self.clone(), key: key.to_owned() };
        let fetch = Fetch { file, phase: sender };
        let fetching = async move {
            let outcome = match listed.hosts.slot(fetch.file.upstream.organization()).await {
                Ok(_slot) => listed.hosts.fetched(&fetch).await,
                Err(error) => Err(error.into()),
            };
            let ended = outcome.map_err(|problem| {
                let (upstream, file) = (&fetch.file.upstream.name, &fetch.file.name);
                tracing::warn!(upstream, file, %problem, "a file was not fetched and stored");
                Arc::from(problem.sentence(&fetch.file))
            });
            listed.hosts.fetching.files.note(&listed.key, &ended, listed.hosts.pipeline.clock.now());
            // Those who come now look again, and find the file or the failure.
            drop(listed);
            fetch.phase.send_replace(Phase::Ended(ended));
        };
        tokio::spawn(fetching.in_current_span());
        Ok(Some(Following(phase)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looked_before_a_fetch_ended_looks_again() {
        let (files, now) = (FileFetches::new(), 1);
        let before = files.ends();
        assert!(!files.was_stored_after("a", before, now));
        files.note("b", &Err("gone".into()), now);
        files.note("a", &Ok(()), now);
        assert!(files.was_stored_after("a", before, now));
        assert!(!files.was_stored_after("a", files.ends(), now), "it was looked for afterwards");
        assert!(!files.was_stored_after("b", before, now) && files.failure("b", now).is_some());
        files.note("c", &Ok(()), now);
        assert!(!files.was_stored_after("a", before + 1, now) && files.was_stored_after("c", before + 1, now));
        assert!(!files.was_stored_after("a", before, now + STORED) && files.failure("b", now + FAILURE).is_none());
    }
}
