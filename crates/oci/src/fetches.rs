//! Blobs that are being fetched from upstreams: each once, for all clients that wait for it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_content::{Digest, Follower};
use bowline_core::Error;
use bowline_pipeline::{Lease, Quota};
use bowline_registry::content::{Name, RefusalCode, RegistryClient, UpstreamBlob};
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::answer::Refused;
use crate::{Distribution, DistributionRequest};

/// Fetches under way in this process, and of one organization: each has a connection and some megabytes.
const FETCHES: usize = 256;
const FETCHES_BY_ORGANIZATION: usize = 128;
/// Clients whose permission may store the blob; those that came last have the newest tokens.
const CLIENTS: usize = 8;
/// How long a fetch continues that no client follows: one that lost its connection comes back within seconds.
pub(crate) const LONELY: Duration = Duration::from_secs(5);

/// The fetches of this process.
pub(crate) struct Fetches {
    under_way: Mutex<HashMap<String, Arc<Fetch>>>,
    slots: Arc<Quota<String>>,
}

/// A blob to fetch for the clients of a repository.
pub(crate) struct Fetch {
    pub(crate) name: Name,
    pub(crate) digest: Digest,
    pub(crate) blob: UpstreamBlob,
    phase: watch::Sender<Phase>,
    clients: Mutex<VecDeque<RegistryClient>>,
    _slot: Lease<String>,
}

/// How far a fetch is.
#[derive(Clone)]
pub(crate) enum Phase {
    /// The upstream has not responded, or another server fetches what cannot be seen here before its end.
    Waiting,
    /// Bytes arrive, which clients can follow.
    Arriving(Follower),
    /// The repository has the blob.
    Stored,
    /// Each client gets the same refusal.
    Failed(Arc<Refused>),
}

/// A client's part in a fetch, which continues while it has any client.
pub(crate) struct Following {
    phase: watch::Receiver<Phase>,
}

impl Fetches {
    pub(crate) fn new() -> Fetches {
        Fetches { under_way: Mutex::default(), slots: Quota::new(FETCHES, FETCHES_BY_ORGANIZATION) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Fetch>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are under way.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Waits until no client has followed a fetch for a while, and takes it out of the list.
    async fn abandoned(&self, key: &str, fetch: &Fetch) {
        loop {
            fetch.phase.closed().await;
            tokio::time::sleep(LONELY).await;
            let mut under_way = self.lock();
            // Under the lock, so that no client joins what stops.
            if fetch.phase.receiver_count() == 0 {
                under_way.remove(key);
                return;
            }
        }
    }
}

impl Fetch {
    fn join(&self, client: &RegistryClient) -> Following {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() == CLIENTS {
            clients.pop_front();
        }
        clients.push_back(client.clone());
        Following { phase: self.phase.subscribe() }
    }

    /// Those in whose name the blob may be stored.
    pub(crate) fn clients(&self) -> Vec<RegistryClient> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Lets clients follow the bytes.
    pub(crate) fn arrives(&self, follower: Follower) {
        self.phase.send_replace(Phase::Arriving(follower));
    }
}

/// Takes a fetch out of the list at its end, also if it panics; its clients get no other phase then.
struct Listed {
    distribution: Arc<Distribution>,
    key: String,
    fetch: Arc<Fetch>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut under_way = self.distribution.fetches.lock();
        if under_way.get(&self.key).is_some_and(|listed| Arc::ptr_eq(listed, &self.fetch)) {
            under_way.remove(&self.key);
        }
    }
}

impl Distribution {
    /// Joins the fetch of a blob, or begins it. It does not end with the client that began it.
    ///
    /// # Errors
    /// TOOMANYREQUESTS if too many are under way.
    pub(crate) fn follow(
        self: &Arc<Self>,
        request: &DistributionRequest,
        name: &Name,
        digest: &Digest,
        blob: UpstreamBlob,
    ) -> Result<Following, Refused> {
        let key = blob.key();
        let mut under_way = self.fetches.lock();
        if let Some(fetch) = under_way.get(&key) {
            return Ok(fetch.join(&request.client));
        }
        let slot = self.fetches.slots.take(Some(blob.organization().to_owned()), 1).map_err(|_| {
            let message = "too many blobs are on their way from upstreams: try again in a few seconds";
            Refused::new(RefusalCode::TooManyRequests, message).with_retry_after(5)
        })?;
        let fetch = Arc::new(Fetch {
            name: name.clone(),
            digest: digest.clone(),
            blob,
            phase: watch::channel(Phase::Waiting).0,
            clients: Mutex::default(),
            _slot: slot,
        });
        let following = fetch.join(&request.client);
        under_way.insert(key.clone(), fetch.clone());
        drop(under_way);
        let listed = Listed { distribution: self.clone(), key, fetch };
        tokio::spawn(run(listed).in_current_span());
        Ok(following)
    }
}

/// Fetches, and says how it ended once new clients can no longer join.
async fn run(listed: Listed) {
    let (distribution, fetch) = (listed.distribution.clone(), listed.fetch.clone());
    let outcome = tokio::select! {
        outcome = distribution.fetched(&fetch) => outcome,
        () = distribution.fetches.abandoned(&listed.key, &fetch) => return,
    };
    drop(listed);
    let last = match outcome {
        Ok(()) => Phase::Stored,
        Err(refused) => Phase::Failed(Arc::new(refused)),
    };
    fetch.phase.send_replace(last);
}

impl Following {
    /// Waits until bytes arrive, or all are stored.
    ///
    /// # Errors
    /// The fetch failed.
    pub(crate) async fn begun(&mut self) -> Result<Option<Follower>, Refused> {
        self.until(|phase| match phase {
            Phase::Arriving(follower) => Some(Some(follower.clone())),
            Phase::Stored => Some(None),
            _ => None,
        })
        .await
    }

    /// Waits until the repository has the blob.
    ///
    /// # Errors
    /// The fetch failed.
    pub(crate) async fn stored(mut self) -> Result<(), Refused> {
        self.until(|phase| matches!(phase, Phase::Stored).then_some(())).await
    }

    async fn until<T>(&mut self, reached: impl Fn(&Phase) -> Option<T>) -> Result<T, Refused> {
        loop {
            {
                let phase = self.phase.borrow_and_update();
                match &*phase {
                    Phase::Failed(refused) => return Err(refused.again()),
                    phase => {
                        if let Some(found) = reached(phase) {
                            return Ok(found);
                        }
                    }
                }
            }
            let ended = self.phase.changed().await;
            ended.map_err(|_| Refused::from(Error::unavailable("a fetch ended without an outcome")))?;
        }
    }
}
