//! Files on their way into storage: noted while they grow, inspected once they are there, removed when nothing names them.

use bowline_content::{BlobSource, Digest, Stored};
use bowline_core::Error;
use bowline_libraries::hosting::{OpenUpload, StoredBlob};
use bowline_packages::{Distribution, Refusal};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::Mutex;

use crate::PackageHosts;
use crate::answers::Refused;

/// An upload while its bytes arrive.
pub(crate) struct Growth<'a> {
    pub(crate) upload: &'a mut OpenUpload,
    pub(crate) size: u64,
    /// Why it was ended.
    pub(crate) error: Option<Error>,
}

pub(crate) fn blob(stored: &Stored) -> StoredBlob {
    StoredBlob { size: stored.size, upload: stored.upload.clone() }
}

impl PackageHosts {
    /// Notes the size of the upload while it grows, which quotas count; ends it once it may not grow further.
    pub(crate) fn noted<'a, E: Send + 'a>(
        &'a self,
        parts: impl Stream<Item = Result<Bytes, E>> + Send + 'a,
        growth: &'a Mutex<Growth<'_>>,
    ) -> impl Stream<Item = Result<Bytes, ()>> + Send + 'a {
        parts.then(async move |part| {
            let part = part.map_err(drop)?;
            let mut growth = growth.lock().await;
            growth.size += part.len() as u64;
            let size = growth.size;
            match self.hosting.file_grows(growth.upload, size).await {
                Ok(()) => Ok(part),
                Err(error) => {
                    growth.error = Some(error);
                    Err(())
                }
            }
        })
    }

    /// What a distribution says of itself, or why it cannot be read; read on a thread that may wait.
    pub(crate) async fn inspect(
        &self,
        name: &str,
        digest: &Digest,
        stored: &Stored,
    ) -> Result<Result<Distribution, Refusal>, Refused> {
        let reader = self.content.read(digest, &stored.upload).await?;
        let reader = reader.ok_or_else(|| Error::internal("the bytes of a new file are missing"))?;
        let (size, name) = (reader.size(), name.to_owned());
        let source = BlobSource::new(reader, tokio::runtime::Handle::current());
        // The thread continues when the client disconnects, so it holds the turn.
        let turn = self.archives.clone().acquire_owned().await.map_err(Error::internal)?;
        let reading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            bowline_packages::distribution(source, size, &name)
        });
        match reading.await.map_err(Error::internal)? {
            Err(Refusal::Unreadable(error)) => Err(Error::internal(error).into()),
            inspected => Ok(inspected),
        }
    }

    /// Ends an upload of which nothing is left to be kept. A failure is only logged: it ends by itself.
    pub(crate) async fn abandon(&self, id: &str) {
        if let Err(error) = self.content.cancel(id) {
            tracing::info!(id, %error, "the bytes of an upload stay until they are collected");
        }
        if let Err(error) = self.hosting.forget_upload(id).await {
            tracing::info!(id, %error, "the row of an upload stays until it expires");
        }
    }

    pub(crate) async fn drop_replaced(&self, replaced: &[(String, String)]) {
        for (digest, upload) in replaced {
            match Digest::parse(digest) {
                Ok(digest) => self.drop_bytes(&digest, upload).await,
                Err(error) => tracing::error!(digest, %error, "a blob has a damaged digest"),
            }
        }
    }

    /// Removes bytes that no blob has. A failure is only logged: garbage collection removes them later.
    pub(crate) async fn drop_bytes(&self, digest: &Digest, upload: &str) {
        if let Err(error) = self.content.delete(digest, upload).await {
            tracing::warn!(%digest, upload, %error, "bytes of no blob stay until they are collected");
        }
    }
}
