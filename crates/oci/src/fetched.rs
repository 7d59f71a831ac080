//! Fetches a blob from another registry, and stores it while clients follow.

use std::sync::{Mutex as StdMutex, PoisonError};
use std::time::Duration;

use axum::http::{Method, header};
use bowline_authn::crypto::random_bytes;
use bowline_authn::guarded::{FetchError, Opened};
use bowline_content::{Content, ContentError, Tail};
use bowline_core::{Error, Micros, hex};
use bowline_fronts::body::BodyError;
use bowline_registry::content::{
    BegunFetch, FetchFailure, FetchState, OpenUpload, RefusalCode, Registry, RegistryError, StoredBlob,
};
use bytes::Bytes;
use futures_util::Stream;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use crate::Distribution;
use crate::answer::Refused;
use crate::fetches::Fetch;
use crate::pull_through::away;
use crate::uploads::{BLOB_BYTES, Growth};
use crate::upstream::{Problem, Unanswered};

/// How often other servers learn that a fetch continues: a quarter of the time after which they take over.
const RENEWAL: Duration = Duration::from_secs(4);
/// How often the file of another server's fetch is looked at, and every how many looks the database.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 5;

impl Distribution {
    /// Fetches a blob of so many bytes, as a manifest here says, unless another server does.
    pub(crate) async fn fetched(&self, fetch: &Fetch) -> Result<(), Refused> {
        loop {
            let id = hex(&random_bytes::<16>());
            match self.registry.begin_fetch(&fetch.name, &fetch.blob, &id).await? {
                BegunFetch::Here(upload) => return self.fetch_here(fetch, upload, id).await,
                BegunFetch::Elsewhere(FetchState::Stored(_)) => return Ok(()),
                BegunFetch::Elsewhere(FetchState::Failed(failure)) => return Err(failed_elsewhere(failure)),
                BegunFetch::Elsewhere(FetchState::UnderWay(holder)) => {
                    if self.followed_elsewhere(fetch, holder).await? {
                        return Ok(());
                    }
                }
                // Another server has just ended one.
                BegunFetch::Elsewhere(FetchState::Absent) => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// Fetches into an upload of this server, which a failure ends.
    async fn fetch_here(&self, fetch: &Fetch, upload: OpenUpload, id: String) -> Result<(), Refused> {
        let mut began = Begun::new(self, fetch.blob.key(), id);
        let kept = tokio::select! {
            kept = self.fetch_into(fetch, upload, &began.remains.id) => kept,
            never = self.renewed_for_ever(fetch, &began.remains.id) => match never {},
        };
        if let Err((refused, rest)) = &kept {
            began.remains.clone().remove(rest.and_then(|rest| for_others(refused, rest))).await;
        }
        began.is_over = true;
        kept.map_err(|(refused, _)| refused)
    }

    async fn renewed_for_ever(&self, fetch: &Fetch, id: &str) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(RENEWAL).await;
            if let Err(error) = self.registry.continue_fetch(&fetch.blob, id).await {
                tracing::warn!(digest = %fetch.digest, ?error, "another server may fetch the same blob");
            }
        }
    }

    /// The failure says for how many microseconds no other server is to try again.
    async fn fetch_into(
        &self,
        fetch: &Fetch,
        mut upload: OpenUpload,
        id: &str,
    ) -> Result<(), (Refused, Option<Micros>)> {
        let size = fetch.blob.size;
        if size > BLOB_BYTES {
            return Err(plain(ContentError::TooLarge(BLOB_BYTES)));
        }
        if upload.room().is_some_and(|room| room < size)
            && let Some(refusal) = upload.exceeded()
        {
            return Err(plain(refusal));
        }
        let resource = format!("blobs/{}", fetch.digest);
        let asked = self.upstream.ask(Method::GET, &fetch.blob.upstream, &resource, "*/*").await;
        let opened = asked.map_err(|Unanswered { problem, is_new }| {
            if is_new {
                tracing::warn!(name = %fetch.name, digest = %fetch.digest, %problem, "the upstream request failed");
            }
            (away(problem, RefusalCode::BlobUnknown), Some(problem.rest()))
        })?;
        let stored = match announced(&opened, size) {
            Ok(()) => self.stored(fetch, &mut upload, opened, id).await,
            Err(problem) => Err(Cause::Upstream(problem)),
        };
        match stored {
            Ok(()) => Ok(()),
            Err(Cause::Here(refused)) => Err((refused, None)),
            Err(Cause::Upstream(problem)) => {
                tracing::warn!(name = %fetch.name, digest = %fetch.digest, %problem, "the upstream response failed");
                self.upstream.note_problem(&fetch.blob.upstream, &resource, problem);
                Err((away(problem, RefusalCode::BlobUnknown), Some(problem.rest())))
            }
        }
    }

    /// Stores what arrives, verifies and commits it; clients get the last bytes after that.
    async fn stored(&self, fetch: &Fetch, upload: &mut OpenUpload, opened: Opened, id: &str) -> Result<(), Cause> {
        self.content.begin(id)?;
        let tail = FailedUnlessFinished(self.content.tail(id, &fetch.digest)?);
        fetch.arrives(tail.0.follower());
        let interruption = StdMutex::new(None);
        let growth = Mutex::new(Growth::of(upload));
        let parts = self.noted(parts(opened, &interruption), &growth);
        let appended = self.content.append_followed(id, parts, fetch.blob.size, &tail.0).await;
        if let Some(refusal) = growth.into_inner().refusal {
            return Err(Cause::Here(refusal.into()));
        }
        if let Some(error) = interruption.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(Cause::Upstream(Problem::of_response(error)));
        }
        match appended {
            Ok(size) if size < fetch.blob.size => return Err(Cause::Upstream(Problem::Wrong("fewer bytes"))),
            Err(ContentError::TooLarge(_)) => return Err(Cause::Upstream(Problem::Wrong("more bytes"))),
            appended => appended?,
        };
        self.registry.keep_upload(upload).await?;
        let stored = match self.content.finish(id, &fetch.digest).await {
            Err(ContentError::Mismatch { .. }) => return Err(Cause::Upstream(Problem::Wrong("another digest"))),
            stored => stored?,
        };
        let upload = stored.upload.clone();
        self.commit(fetch, id, StoredBlob { size: stored.size, upload: stored.upload }).await?;
        tail.0.finish(&upload);
        Ok(())
    }

    /// Commits the blob in the name of a client that may still pull it.
    async fn commit(&self, fetch: &Fetch, id: &str, blob: StoredBlob) -> Result<(), Refused> {
        let mut refusal = None;
        for client in fetch.clients().into_iter().rev() {
            let kept = match client.renewed() {
                Ok(client) => self.registry.keep_fetched(&client, &fetch.name, &fetch.blob, id, blob.clone()).await,
                Err(ended) => Err(ended),
            };
            match kept {
                Ok(before) => {
                    self.drop_location(&fetch.digest, before).await;
                    return Ok(());
                }
                Err(error @ RegistryError::Refused(_)) => refusal = Some(error),
                // Whether it was committed is unknown.
                Err(error) => return Err(error.into()),
            }
        }
        self.drop_location(&fetch.digest, Some(blob.upload)).await;
        let none = || Error::internal("a fetch without clients").into();
        Err(refusal.unwrap_or_else(none).into())
    }

    /// Follows what another server fetches, and shows its bytes where both share a directory. False if no one fetches it
    /// any more.
    async fn followed_elsewhere(&self, fetch: &Fetch, holder: String) -> Result<bool, Refused> {
        let mut tail: Option<FailedUnlessFinished> = None;
        let mut is_shown = false;
        for look in 0.. {
            if tail.is_none() {
                let found = self.content.tail_elsewhere(&holder, &fetch.digest)?;
                tail = found.map(FailedUnlessFinished);
            }
            let size = tail.as_ref().map(|tail| tail.0.measure()).transpose();
            let size = size.map_err(|error| Refused::from(ContentError::from(error)))?.flatten();
            if let (false, Some(1..), Some(tail)) = (is_shown, size, &tail) {
                fetch.arrives(tail.0.follower());
                is_shown = true;
            }
            let is_gone = is_shown && size.is_none();
            if look % LOOKS != 0 && !is_gone {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            match self.registry.fetch_state(&fetch.blob).await? {
                FetchState::UnderWay(now) if now == holder => {}
                FetchState::Stored(blob) => {
                    if let Some(tail) = &tail {
                        tail.0.finish(&blob.upload);
                    }
                    return Ok(true);
                }
                FetchState::Failed(failure) => return Err(failed_elsewhere(failure)),
                // Those who have read its bytes cannot continue with others.
                _ if is_shown => {
                    let message = "the server that fetched it has stopped: try again".to_owned();
                    return Err(failed_elsewhere(FetchFailure { status: 503, message, rest: 0 }));
                }
                _ => return Ok(false),
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(false)
    }
}

/// What ended a fetch.
enum Cause {
    Upstream(Problem),
    Here(Refused),
}

impl From<ContentError> for Cause {
    fn from(error: ContentError) -> Cause {
        Cause::Here(error.into())
    }
}

impl From<RegistryError> for Cause {
    fn from(error: RegistryError) -> Cause {
        Cause::Here(error.into())
    }
}

impl From<Refused> for Cause {
    fn from(refused: Refused) -> Cause {
        Cause::Here(refused)
    }
}

/// A failure that concerns no other server.
fn plain(error: impl Into<Refused>) -> (Refused, Option<Micros>) {
    (error.into(), None)
}

fn failed_elsewhere(failure: FetchFailure) -> Refused {
    let FetchFailure { status, message, rest } = failure;
    let refused = Refused::of_upstream(status, RefusalCode::BlobUnknown, message);
    match status {
        429 | 503 => refused.with_retry_after(rest.max(1).unsigned_abs().div_ceil(1_000_000)),
        _ => refused,
    }
}

/// A failure of an upstream as other servers repeat it, for so many microseconds.
fn for_others(refused: &Refused, rest: Micros) -> Option<FetchFailure> {
    let RegistryError::Refused(refusal) = &refused.error else { return None };
    Some(FetchFailure { status: refused.status().as_u16(), message: refusal.message.clone(), rest })
}

/// Whether the upstream announces as many bytes as the manifest does.
fn announced(opened: &Opened, size: u64) -> Result<(), Problem> {
    let length =
        opened.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match length {
        Some(length) if length < size => Err(Problem::Wrong("fewer bytes")),
        Some(length) if length > size => Err(Problem::Wrong("more bytes")),
        _ => Ok(()),
    }
}

/// The parts of a response; what breaks it off is noted.
fn parts(
    opened: Opened,
    interruption: &StdMutex<Option<FetchError>>,
) -> impl Stream<Item = Result<Bytes, BodyError>> + Send {
    futures_util::stream::try_unfold(opened, async move |mut opened| match opened.chunk().await {
        Ok(part) => Ok(part.map(|part| (part, opened))),
        Err(error) => {
            *interruption.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            Err(BodyError)
        }
    })
}

/// Ends the readers of an upload with an error unless it has become a blob.
struct FailedUnlessFinished(Tail);

impl Drop for FailedUnlessFinished {
    fn drop(&mut self) {
        self.0.fail();
    }
}

/// A fetch under way. One that no client waits for leaves nothing that counts against a quota; what a stopping server
/// leaves ends as every upload does that does not grow.
struct Begun {
    remains: Remains,
    runtime: Handle,
    is_over: bool,
}

impl Begun {
    fn new(distribution: &Distribution, key: String, id: String) -> Begun {
        let (registry, content) = (distribution.registry.clone(), distribution.content.clone());
        Begun { remains: Remains { registry, content, key, id }, runtime: Handle::current(), is_over: false }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.is_over {
            self.runtime.spawn(self.remains.clone().remove(None));
        }
    }
}

/// What a fetch without a blob leaves: its rows, and the bytes that have arrived.
#[derive(Clone)]
struct Remains {
    registry: Registry,
    content: Content,
    key: String,
    id: String,
}

impl Remains {
    async fn remove(self, failure: Option<FetchFailure>) {
        let Remains { registry, content, key, id } = self;
        if let Err(error) = registry.end_fetch(&key, &id, failure).await {
            tracing::warn!(id, ?error, "a fetch that failed counts against quotas until it expires");
        }
        match content.cancel(&id) {
            // What still writes takes its bytes back, and the file goes with those of ended uploads.
            Ok(()) | Err(ContentError::Busy) => {}
            Err(error) => tracing::warn!(id, %error, "the bytes of a fetch that failed stay until they are swept"),
        }
    }
}
