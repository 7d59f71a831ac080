//! Blobs on their way from an upstream: one fetch over all servers of a database.
//!
//! A fetch is the row of its upload and a lease, whose holder is the upload. The lease of a fetch that failed stays for a
//! few seconds with the reason as its holder, so that other servers do not send the same request at once.

use bowline_contract::bowline::registry::v1::Interaction;
use bowline_contract::bowline::registry::v1::rpc::content::PullBlob;
use bowline_core::{Error, Micros, Uidp};
use bowline_pipeline::{Changed, lease};
use bowline_store::{ReadTx, Value};

use super::upstreams::{UpstreamConfig, repo_of};
use crate::content::upload_growth::OpenUpload;
use crate::content::uploads::{NO_IDENTITY, forget};
use crate::content::{Name, Registry, RegistryClient, RegistryError, StoredBlob, blobs, lookup};
use crate::repos;

/// How long a server that fetches may be silent before another one takes over.
const LEASE: Micros = 15_000_000;
/// What the holder of a lease begins with whose fetch failed; an upload's id has no space.
const FAILED: &str = "failed ";

/// A blob that a manifest of the repository names, and where it comes from.
#[derive(Clone, Debug)]
pub struct UpstreamBlob {
    repo: Uidp,
    digest: String,
    /// The repository at the upstream.
    pub upstream: UpstreamConfig,
    /// Its size in bytes, as the manifest says.
    pub size: u64,
}

impl UpstreamBlob {
    /// What its fetch is called: repositories do not share fetches, because their upstreams and readers differ.
    pub fn key(&self) -> String {
        format!("fetch {} {}", self.repo, self.digest)
    }

    /// UIDP of the repository's organization.
    pub fn organization(&self) -> &str {
        self.repo.root_str()
    }
}

/// What came of the attempt to begin a fetch.
#[derive(Debug)]
pub enum BegunFetch {
    /// This server fetches, into this upload.
    Here(OpenUpload),
    /// Another server fetches, has fetched, or has failed.
    Elsewhere(FetchState),
}

/// How far a fetch is, wherever it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchState {
    /// The repository has the blob.
    Stored(StoredBlob),
    /// The id of the upload that it goes to.
    UnderWay(String),
    /// It failed a moment ago, for this reason.
    Failed(FetchFailure),
    /// No server fetches it.
    Absent,
}

impl Registry {
    /// Where a blob comes from that a manifest of the repository names; absent if it may only lie here.
    pub async fn blob_upstream(
        &self,
        client: &RegistryClient,
        name: &Name,
        digest: &str,
    ) -> Result<Option<UpstreamBlob>, RegistryError> {
        let Some(upstream) = self.upstream_for::<PullBlob>(client, name).await? else { return Ok(None) };
        let (name, digest) = (name.clone(), digest.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                let Some(repo) = repo_of(tx, &name).await? else { return Ok::<_, RegistryError>(None) };
                let sql = "SELECT f.size FROM manifest_references f JOIN repo_manifests r ON r.digest = f.manifest
                           WHERE f.digest = $1 AND r.repo = $2 LIMIT 1";
                let params = [Value::from(&digest), Value::from(repo.as_str())];
                let size = tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?;
                let size = size.and_then(|size| u64::try_from(size).ok());
                Ok(size.map(|size| UpstreamBlob { repo, digest, upstream, size }))
            })
        });
        read.await
    }

    /// Begins to fetch a blob, under an id that was drawn at random, unless it is here or another server fetches it. It
    /// counts against quotas as its bytes arrive, and no identity can continue with it.
    ///
    /// # Errors
    /// The repository is gone.
    pub async fn begin_fetch(&self, name: &Name, blob: &UpstreamBlob, id: &str) -> Result<BegunFetch, RegistryError> {
        let (registry, now) = (self.clone(), self.pipeline.clock.now());
        let (name, of, id) = (name.clone(), blob.clone(), id.to_owned());
        let written = self.pipeline.db.write_scratch(move |tx| {
            let (registry, name, of, id) = (registry.clone(), name.clone(), of.clone(), id.clone());
            Box::pin(async move {
                if !repos::exists(tx, &of.repo).await? {
                    return Err(lookup::unknown(&name));
                }
                match state(tx, &of, now).await? {
                    FetchState::Absent if lease::keep(tx, &of.key(), &id, LEASE, now).await? => {
                        let begun = registry.insert_upload(tx, NO_IDENTITY, now, of.repo.clone(), id).await?;
                        Ok(BegunFetch::Here(begun))
                    }
                    state => Ok(BegunFetch::Elsewhere(state)),
                }
            })
        });
        let begun = match written.await? {
            BegunFetch::Here(begun) => OpenUpload { digest: Some(blob.digest.clone()), ..begun },
            elsewhere @ BegunFetch::Elsewhere(_) => return Ok(elsewhere),
        };
        let room = self.room_of(&begun).await?;
        Ok(BegunFetch::Here(OpenUpload { room, ..begun }))
    }

    /// How far the fetch of a blob is, wherever it runs.
    pub async fn fetch_state(&self, blob: &UpstreamBlob) -> Result<FetchState, RegistryError> {
        let (of, now) = (blob.clone(), self.pipeline.clock.now());
        self.pipeline.db.read(move |tx| Box::pin(async move { state(tx, &of, now).await })).await
    }

    /// Keeps other servers from fetching the same for a while longer. Call it every few seconds; one that comes too late
    /// costs a second request and nothing else.
    pub async fn continue_fetch(&self, blob: &UpstreamBlob, id: &str) -> Result<(), RegistryError> {
        let (key, id, now) = (blob.key(), id.to_owned(), self.pipeline.clock.now());
        let written = self.pipeline.db.write_scratch(move |tx| {
            let (key, id) = (key.clone(), id.clone());
            Box::pin(async move { Ok::<_, RegistryError>(lease::keep(tx, &key, &id, LEASE, now).await?) })
        });
        written.await.map(|_| ())
    }

    /// Keeps a blob that was fetched under this id, whose bytes are durable: the upload that had brought it before, if
    /// one had.
    ///
    /// # Errors
    /// The client may not pull, the repository is gone, or a quota has no room.
    pub async fn keep_fetched(
        &self,
        client: &RegistryClient,
        name: &Name,
        fetched: &UpstreamBlob,
        id: &str,
        blob: StoredBlob,
    ) -> Result<Option<String>, RegistryError> {
        let (registry, client, name, fetched) = (self.clone(), client.clone(), name.clone(), fetched.clone());
        let id = id.to_owned();
        let written = self.pipeline.db.write(move |tx| {
            let (registry, client, name) = (registry.clone(), client.clone(), name.clone());
            let (fetched, id, blob) = (fetched.clone(), id.clone(), blob.clone());
            Box::pin(async move {
                let UpstreamBlob { repo, digest, .. } = &fetched;
                if !repos::exists(tx, repo).await? {
                    return Err(lookup::unknown(&name));
                }
                let call = client.visit.authorize_at::<PullBlob>(tx, repo, Interaction::default()).await;
                let call = call.map_err(|error| registry.refusal::<PullBlob>(&client, name.as_str(), error))?;
                let before = blobs::put(tx, digest, &blob, client.now()).await?;
                let change = blobs::link(tx, repo, digest, client.now()).await?;
                forget(tx, &id).await?;
                lease::give_back(tx, &fetched.key(), &id).await?;
                let changed = Changed::many(change.into_iter().collect(), ());
                client.visit.record(tx, &call, changed).await?;
                Ok(before)
            })
        });
        written.await
    }

    /// Ends a fetch without a blob, so that another one may begin: at once, or some time after a failure.
    pub async fn end_fetch(&self, key: &str, id: &str, failure: Option<FetchFailure>) -> Result<(), RegistryError> {
        let (key, id, now) = (key.to_owned(), id.to_owned(), self.pipeline.clock.now());
        let db = self.pipeline.db.from_reserve();
        let written = db.write_scratch(move |tx| {
            let (key, id, failure) = (key.clone(), id.clone(), failure.clone());
            Box::pin(async move {
                forget(tx, &id).await?;
                let Some(FetchFailure { status, message, rest }) = failure else {
                    return Ok(lease::give_back(tx, &key, &id).await?);
                };
                let note = format!("{FAILED}{status} {} {message}", now + rest);
                Ok::<_, RegistryError>(lease::leave(tx, &key, &id, &note, now + rest).await?)
            })
        });
        written.await
    }

    /// Removes what fetches that failed, or whose server is gone, have left. Returns how many.
    pub async fn sweep_fetches(&self) -> Result<u64, Error> {
        let now = self.pipeline.clock.now();
        let db = self.pipeline.db.from_reserve();
        let written = db
            .write_scratch(move |tx| Box::pin(async move { lease::sweep(tx, "fetch ", "fetch!", now - LEASE).await }));
        written.await
    }
}

/// Why a fetch failed, for clients of all servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchFailure {
    /// HTTP status of the responses.
    pub status: u16,
    /// The cause: public, without an address or a secret.
    pub message: String,
    /// For how long no server tries again.
    pub rest: Micros,
}

async fn state(tx: &mut ReadTx, blob: &UpstreamBlob, now: Micros) -> Result<FetchState, RegistryError> {
    if let Some(stored) = blobs::find_in(tx, &blob.repo, &blob.digest).await? {
        return Ok(FetchState::Stored(stored));
    }
    let Some(holder) = lease::holder(tx, &blob.key(), now).await? else { return Ok(FetchState::Absent) };
    Ok(failure(&holder, now).map_or(FetchState::UnderWay(holder), FetchState::Failed))
}

/// The failure that a lease has in its holder's place.
fn failure(holder: &str, now: Micros) -> Option<FetchFailure> {
    let mut parts = holder.strip_prefix(FAILED)?.splitn(3, ' ');
    let (status, until, message) = (parts.next()?.parse().ok()?, parts.next()?.parse::<Micros>().ok()?, parts.next()?);
    Some(FetchFailure { status, message: message.to_owned(), rest: until - now })
}
