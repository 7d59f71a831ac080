//! Blobs that are fetched from another registry.

use axum::http::Method;
use bowline_authn::crypto::random_bytes;
use bowline_authn::guarded::{FetchError, Opened};
use bowline_content::{Content, ContentError, Digest};
use bowline_core::hex;
use bowline_registry::content::{Name, OpenUpload, Registry, RegistryError, StoredBlob, UpstreamConfig};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use crate::answer::Refused;
use crate::body::BodyError;
use crate::pull_through::away;
use crate::uploads::{BLOB_BYTES, Growth};
use crate::{Distribution, DistributionRequest};

impl Distribution {
    /// Fetches a blob of so many bytes, as a manifest here says.
    pub(crate) async fn fetch_blob(
        &self,
        request: &DistributionRequest,
        name: &Name,
        digest: &Digest,
        upstream: &UpstreamConfig,
        size: u64,
    ) -> Result<(), Refused> {
        let opened = self.upstream.ask(Method::GET, upstream, &format!("blobs/{digest}"), "*/*").await;
        let opened = opened.map_err(|unanswered| {
            if unanswered.is_new {
                tracing::warn!(%name, %digest, problem = %unanswered.problem, "the upstream request failed");
            }
            away(unanswered.problem)
        })?;
        let mut fetch = Fetch::new(self);
        let id = fetch.remains.id.clone();
        let kept = async {
            let upload = self.registry.begin_fetch(&request.client, name, &id, digest.as_str()).await?;
            let size = size.min(BLOB_BYTES);
            if upload.room().is_some_and(|room| room < size)
                && let Some(refusal) = upload.exceeded()
            {
                return Err(refusal.into());
            }
            self.keep_blob(request, name, digest, Coming { opened, id: &id, upload, size }).await
        };
        let kept = kept.await;
        if kept.is_err() {
            fetch.remains.clone().remove().await;
        }
        fetch.is_over = true;
        kept
    }

    async fn keep_blob(
        &self,
        request: &DistributionRequest,
        name: &Name,
        digest: &Digest,
        coming: Coming<'_>,
    ) -> Result<(), Refused> {
        let Coming { opened, id, mut upload, size } = coming;
        self.content.begin(id)?;
        let parts = futures_util::stream::try_unfold(opened, |mut opened| async {
            let part = opened.chunk().await.map_err(|_: FetchError| BodyError)?;
            Ok::<_, BodyError>(part.map(|part| (part, opened)))
        });
        let growth = Mutex::new(Growth::of(&mut upload));
        let appended = self.content.append(id, None, self.noted(parts, &growth), digest.algorithm(), size).await;
        if let Some(refusal) = growth.into_inner().refusal {
            return Err(refusal.into());
        }
        appended?;
        self.registry.keep_upload(&mut upload).await?;
        let stored = self.content.finish(id, digest).await?;
        let blob = StoredBlob { size: stored.size, upload: stored.upload };
        let client = request.client.renewed()?;
        match self.registry.keep_fetched(&client, name, digest.as_str(), id, blob.clone()).await {
            Ok(before) => self.drop_location(digest, before).await,
            Err(RegistryError::Refused(refusal)) => {
                self.drop_location(digest, Some(blob.upload)).await;
                return Err(refusal.into());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// A blob that an upstream has begun to send.
struct Coming<'a> {
    opened: Opened,
    id: &'a str,
    upload: OpenUpload,
    /// Bytes that it may have.
    size: u64,
}

/// A fetch under way. One whose client goes away leaves nothing that counts against a quota; what a stopping server
/// leaves ends as every upload does that does not grow.
struct Fetch {
    remains: Remains,
    runtime: Handle,
    is_over: bool,
}

impl Fetch {
    fn new(distribution: &Distribution) -> Fetch {
        let (registry, content) = (distribution.registry.clone(), distribution.content.clone());
        let remains = Remains { registry, content, id: hex(&random_bytes::<16>()) };
        Fetch { remains, runtime: Handle::current(), is_over: false }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        if !self.is_over {
            self.runtime.spawn(self.remains.clone().remove());
        }
    }
}

/// What a fetch without a blob leaves: its row, and the bytes that have arrived.
#[derive(Clone)]
struct Remains {
    registry: Registry,
    content: Content,
    id: String,
}

impl Remains {
    async fn remove(self) {
        let Remains { registry, content, id } = self;
        if let Err(error) = registry.end_fetch(&id).await {
            tracing::warn!(id, ?error, "a fetch that failed counts against quotas until it expires");
        }
        match content.cancel(&id) {
            // What still writes takes its bytes back, and the file goes with those of ended uploads.
            Ok(()) | Err(ContentError::Busy) => {}
            Err(error) => tracing::warn!(id, %error, "the bytes of a fetch that failed stay until they are swept"),
        }
    }
}
