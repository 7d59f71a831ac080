//! Files on their way into storage: noted while they grow, inspected once they are there, removed when nothing names them.

use axum::body::Body;
use bowline_authn::crypto::random_bytes;
use bowline_content::{Algorithm, BlobSource, ContentError, Digest, Stored};
use bowline_core::{Error, hex};
use bowline_fronts::body::parts;
use bowline_libraries::hosting::{
    Checksums, HostClient, NewBlob, NewFile, OpenUpload, Protocol, Published, Publishing, StoredBlob,
};
use bowline_packages::Refusal;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::Mutex;

use crate::PackageHosts;
use crate::answers::Refused;
use crate::checksums::{Hasher, hashed};

/// Maximum bytes of a file.
pub(crate) const FILE: u64 = 16 << 30;

/// An upload while its bytes arrive.
pub(crate) struct Growth<'a> {
    pub(crate) upload: &'a mut OpenUpload,
    pub(crate) size: u64,
    /// Why it was ended.
    pub(crate) error: Option<Error>,
}

/// A file that a publisher sent, whose bytes are durable.
pub(crate) struct Received {
    /// The publisher after the body was read.
    pub(crate) client: HostClient,
    pub(crate) digest: Digest,
    pub(crate) stored: Stored,
    pub(crate) content: NewBlob,
    pub(crate) checksums: Checksums,
}

/// Whether no row has the new bytes, so that they can go. Of a database that fails, that is unknown: garbage collection
/// knows later.
pub(crate) fn has_no_row(published: &Result<Published, Refused>) -> bool {
    match published {
        Ok(Published::New(_)) => false,
        Ok(Published::Same) => true,
        Err(refused) => refused.is_certain(),
    }
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

    /// Stores a file of at most so many bytes that is published while it arrives.
    pub(crate) async fn append_published<E: Send>(
        &self,
        publishing: &mut Publishing,
        id: &str,
        parts: impl Stream<Item = Result<Bytes, E>> + Send,
        most: u64,
    ) -> Result<(), Refused> {
        let limit = publishing.upload.room().unwrap_or(most).min(most);
        let quota = publishing.upload.exceeded_quota();
        let growth = Mutex::new(Growth { upload: &mut publishing.upload, size: 0, error: None });
        let appended = self.content.append(id, None, self.noted(parts, &growth), Algorithm::Sha256, limit).await;
        match (appended, growth.into_inner().error) {
            (Ok(_), _) => Ok(()),
            (Err(_), Some(error)) => Err(Refused::from(error)),
            (Err(ContentError::TooLarge(limit)), _) if limit < most => {
                Err(quota.map_or_else(|| ContentError::TooLarge(limit).into(), Refused::from))
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Receives a file of at most so many bytes that is published whole, and whose digest no one said.
    pub(crate) async fn receive_whole(
        &self,
        client: &HostClient,
        publishing: &mut Publishing,
        id: &str,
        (body, most): (Body, u64),
    ) -> Result<Received, Refused> {
        self.content.begin(id)?;
        let hasher = Mutex::new(Hasher::new());
        self.append_published(publishing, id, hashed(parts(body, None), &hasher), most).await?;
        let client = client.renewed()?;
        let (sha256, checksums) = hasher.into_inner().finish();
        let invalid = |_| Error::internal("a digest of this server does not parse");
        let digest = Digest::parse(&format!("sha256:{sha256}")).map_err(invalid)?;
        let stored = self.content.finish(id, &digest).await?;
        let content = NewBlob { sha256, blob: blob(&stored), upload: id.into() };
        Ok(Received { client, digest, stored, content, checksums })
    }

    /// What became of a file that was received; false if it was there with the same bytes. Bytes that no row has go.
    pub(crate) async fn settled(
        &self,
        received: &Received,
        published: Result<Published, Refused>,
    ) -> Result<bool, Refused> {
        if has_no_row(&published) {
            self.drop_bytes(&received.digest, &received.stored.upload).await;
        }
        match published? {
            Published::Same => Ok(false),
            Published::New(replaced) => {
                self.drop_replaced(&replaced).await;
                Ok(true)
            }
        }
    }

    /// Stores what resolvers read instead of a file that is published as a blob of its own.
    pub(crate) async fn store_part(
        &self,
        client: &HostClient,
        publishing: &Publishing,
        bytes: Vec<u8>,
    ) -> Result<NewBlob, Refused> {
        let upload = hex(&random_bytes::<16>());
        self.hosting.begin_part(client, publishing, &upload).await?;
        self.content.begin(&upload)?;
        let digest = Digest::of(Algorithm::Sha256, &bytes);
        let limit = bytes.len() as u64;
        let body = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from(bytes))]);
        self.content.append(&upload, None, body, Algorithm::Sha256, limit).await?;
        let stored = self.content.finish(&upload, &digest).await?;
        Ok(NewBlob { sha256: digest.hex().into(), blob: blob(&stored), upload })
    }

    /// Publishes a file with the part that is stored beside it, which goes again if it is not published.
    pub(crate) async fn publish_with_part<P: Protocol>(
        &self,
        client: &HostClient,
        publishing: &Publishing,
        file: &NewFile,
    ) -> Result<Published, Refused> {
        let published = self.hosting.publish::<P>(client, publishing, file).await.map_err(Refused::from);
        if let (Some(part), true) = (&file.metadata, has_no_row(&published)) {
            self.drop_replaced(&[(format!("sha256:{}", part.sha256), part.blob.upload.clone())]).await;
            self.abandon(&part.upload).await;
        }
        published
    }

    /// What a file says of itself by `read`, which is given its bytes and their number, or why it cannot be read; read on a
    /// thread that may wait.
    pub(crate) async fn inspect<T: Send + 'static>(
        &self,
        (digest, stored): (&Digest, &Stored),
        read: impl FnOnce(BlobSource, u64) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<Result<T, Refusal>, Refused> {
        let reader = self.content.read(digest, &stored.upload).await?;
        let reader = reader.ok_or_else(|| Error::internal("the bytes of a new file are missing"))?;
        let size = reader.size();
        let source = BlobSource::new(reader, tokio::runtime::Handle::current());
        // The thread continues when the client disconnects, so it holds the turn.
        let turn = self.archives.clone().acquire_owned().await.map_err(Error::internal)?;
        let reading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            read(source, size)
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
