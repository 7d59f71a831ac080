//! Uploads that are being written to, and how far their digests have come.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::digest::Algorithm;
use crate::error::ContentError;
use crate::hasher::Hasher;

/// Maximum number of uploads whose hash state is cached between requests; for others the bytes are read again.
const MAX_HASH_STATES: usize = 1024;

#[derive(Default)]
pub(crate) struct UnderWay {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Uploads that a request is writing to.
    busy: HashSet<String>,
    /// Digests under way, with how many bytes they cover.
    hashers: HashMap<String, (u64, Hasher)>,
}

impl std::fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        f.debug_struct("UnderWay").field("busy", &state.busy.len()).field("hashers", &state.hashers.len()).finish()
    }
}

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an upload for one request of this process.
    ///
    /// # Errors
    /// Another request has it.
    pub(crate) fn take(self: &Arc<Self>, id: &str) -> Result<Busy, ContentError> {
        if !self.lock().busy.insert(id.to_owned()) {
            return Err(ContentError::Busy);
        }
        Ok(Busy { under_way: self.clone(), id: id.to_owned() })
    }

    #[cfg(test)]
    pub(crate) fn is_busy(&self, id: &str) -> bool {
        self.lock().busy.contains(id)
    }
}

/// An upload in the hands of one request.
#[derive(Debug)]
pub(crate) struct Busy {
    under_way: Arc<UnderWay>,
    id: String,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.under_way.lock().busy.remove(&self.id);
    }
}

impl Busy {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The digest of the bytes that are there, if it is known; from the start it is that of nothing.
    pub(crate) fn recall(&self, covered: u64, algorithm: Algorithm) -> Option<Hasher> {
        let known = self.under_way.lock().hashers.remove(&self.id);
        // The hash state of a part cannot be continued by another algorithm, nor from another position.
        match known.filter(|(bytes, _)| *bytes == covered) {
            Some((_, hasher)) if hasher.algorithm() == algorithm => Some(hasher),
            _ if covered == 0 => Some(Hasher::new(algorithm)),
            _ => None,
        }
    }

    /// Remembers the digest of the first so many bytes.
    pub(crate) fn insert(&self, covered: u64, hasher: Option<Hasher>) {
        let Some(hasher) = hasher else { return };
        let mut state = self.under_way.lock();
        if state.hashers.len() >= MAX_HASH_STATES {
            state.hashers.clear();
        }
        state.hashers.insert(self.id.clone(), (covered, hasher));
    }

    pub(crate) fn forget(&self) {
        self.under_way.lock().hashers.remove(&self.id);
    }
}
