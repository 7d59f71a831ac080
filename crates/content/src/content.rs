use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use object_store::ObjectStore;
use tokio::sync::mpsc;

use crate::digest::{Algorithm, Digest};
use crate::error::ContentError;
use crate::local::{FullCheck, Local};
use crate::objects::Objects;
use crate::reader::Reader;
use crate::tail::Tail;
use crate::writing::{self, Hold};

/// Maximum number of parts of a body that wait to be written: bounds the memory of a transfer.
pub(crate) const WAITING: usize = 4;

/// The bytes of all blobs, in a directory or in an object store.
///
/// The bytes of a blob are addressed by its digest and by the `upload` that [`Content::finish`] returned. Two
/// uploads of one digest never share their bytes, so that removing one replica leaves the others.
#[derive(Clone, Debug)]
pub struct Content {
    pub(crate) backend: BlobBackend,
}

#[derive(Clone, Debug)]
pub(crate) enum BlobBackend {
    Local(Arc<Local>),
    Objects(Arc<Objects>),
}

/// The blob that a finished upload has become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Size of the blob in bytes.
    pub size: u64,
    /// The upload that brought the bytes; with the digest it locates them.
    pub upload: String,
}

/// Location of stored bytes, whether or not a blob refers to them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobLocation {
    /// The digest, if the names of the backend contain it.
    pub digest: Option<Digest>,
    /// What a blob with these bytes records as its `upload`: with the digest it locates them.
    pub key: String,
    /// The open upload that the bytes may still belong to.
    pub open_upload: String,
}

/// A part of the listing of all replicas, see [`Content::shards`].
#[derive(Clone, Copy, Debug)]
pub struct Shard {
    algorithm: Algorithm,
    first: u8,
}

/// Parameters of a body that is appended to an upload.
#[derive(Clone, Debug)]
pub(crate) struct Addition {
    pub(crate) start: Option<u64>,
    pub(crate) algorithm: Algorithm,
    pub(crate) limit: u64,
    /// Shows readers what has been written.
    pub(crate) tail: Option<Tail>,
}

impl Addition {
    pub(crate) fn require_start(&self, uploaded: u64) -> Result<(), ContentError> {
        match self.start {
            Some(start) if start != uploaded => Err(ContentError::OutOfOrder { uploaded }),
            _ => Ok(()),
        }
    }
}

/// What a writer receives. A body without `End` broke off.
pub(crate) enum Part {
    Bytes(Bytes),
    End,
}

impl Content {
    /// Opens the content of a directory, creating it if it is missing. Uploads stop while the disk is nearly
    /// full.
    ///
    /// # Errors
    /// The directory cannot be made or written.
    pub fn open(directory: &Path, is_full: FullCheck) -> Result<Content, ContentError> {
        Ok(Content { backend: BlobBackend::Local(Arc::new(Local::open(directory, is_full)?)) })
    }

    /// Opens the content below a prefix of an object store. `random_id` returns random hexadecimal digits, for the
    /// names of objects.
    ///
    /// # Errors
    /// The prefix is not a valid path.
    pub fn in_objects(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        random_id: fn() -> String,
    ) -> Result<Content, ContentError> {
        Ok(Content { backend: BlobBackend::Objects(Arc::new(Objects::new(store, prefix, random_id)?)) })
    }

    /// Returns the owner of the content: the first `candidate` that was ever passed. The caller draws `draft` at random, for
    /// a file that replicas of one database do not share.
    pub async fn owner(&self, candidate: &str, draft: &str) -> Result<String, ContentError> {
        match &self.backend {
            BlobBackend::Local(local) => local.owner(candidate, draft),
            BlobBackend::Objects(objects) => objects.owner(candidate).await,
        }
    }

    /// Begins an upload. The caller draws its id at random; it consists of hexadecimal digits.
    pub fn begin(&self, id: &str) -> Result<(), ContentError> {
        if !is_id(id) {
            return Err(ContentError::UnknownUpload);
        }
        match &self.backend {
            BlobBackend::Local(local) => local.begin(id),
            BlobBackend::Objects(_) => Ok(()),
        }
    }

    /// Size of an upload in bytes.
    ///
    /// # Errors
    /// The upload does not exist. An object store does not know uploads without bytes.
    pub async fn uploaded(&self, id: &str) -> Result<u64, ContentError> {
        match &self.backend {
            BlobBackend::Local(local) => local.uploaded(id),
            BlobBackend::Objects(objects) => objects.uploaded(id).await,
        }
    }

    /// Appends a body to an upload and returns the size of the upload in bytes. After a failure the appended
    /// bytes are removed, even if the caller has gone away.
    ///
    /// `algorithm` is that of the expected digest, as far as it is known. `start`, if given, must be the
    /// current size of the upload; `limit` bounds its size in bytes.
    ///
    /// # Errors
    /// The body starts elsewhere, breaks off or exceeds `limit`, or the storage fails.
    pub async fn append<S, E>(
        &self,
        id: &str,
        start: Option<u64>,
        body: S,
        algorithm: Algorithm,
        limit: u64,
    ) -> Result<u64, ContentError>
    where
        S: Stream<Item = Result<Bytes, E>> + Send,
    {
        self.add(id, Addition { start, algorithm, limit, tail: None }, body).await
    }

    pub(crate) async fn add<S, E>(&self, id: &str, addition: Addition, body: S) -> Result<u64, ContentError>
    where
        S: Stream<Item = Result<Bytes, E>> + Send,
    {
        let (sender, parts) = mpsc::channel::<Part>(WAITING);
        let writer = match &self.backend {
            BlobBackend::Local(local) => {
                let hold = Hold::take(local, id)?;
                tokio::spawn(writing::append(hold, addition, parts))
            }
            BlobBackend::Objects(objects) => {
                let busy = objects.under_way.take(id)?;
                let objects = objects.clone();
                tokio::spawn(async move { objects.append(&busy, addition, parts).await })
            }
        };
        forward(body, sender).await;
        joined(writer).await
    }

    /// Compares an upload with its digest, makes it durable and moves it beside other replicas of the blob. A
    /// failed comparison ends the upload.
    ///
    /// # Errors
    /// The digest differs, the upload does not exist, or the storage fails.
    pub async fn finish(&self, id: &str, digest: &Digest) -> Result<Stored, ContentError> {
        let digest = digest.clone();
        match &self.backend {
            BlobBackend::Local(local) => {
                let hold = Hold::take(local, id)?;
                let size = joined(tokio::spawn(writing::finish(hold, digest))).await?;
                Ok(Stored { size, upload: id.to_owned() })
            }
            BlobBackend::Objects(objects) => {
                let (objects, busy) = (objects.clone(), objects.under_way.take(id)?);
                joined(tokio::spawn(async move { objects.finish(&busy, &digest).await })).await
            }
        }
    }

    /// Ends an upload without a blob; succeeds if the upload does not exist. In an object store its bytes
    /// stay until garbage collection, because only the database knows whether they have become a blob.
    ///
    /// # Errors
    /// Another request writes to the upload, or the storage fails.
    pub fn cancel(&self, id: &str) -> Result<(), ContentError> {
        match &self.backend {
            BlobBackend::Local(local) => local.cancel(id),
            BlobBackend::Objects(objects) => {
                objects.under_way.take(id)?.forget();
                Ok(())
            }
        }
    }

    /// Ids of the uploads that have a file. An object store has none: there, [`Content::locations`] lists all
    /// bytes.
    pub async fn uploads(&self) -> Result<Vec<String>, ContentError> {
        match &self.backend {
            BlobBackend::Local(local) => {
                let local = local.clone();
                blocking(move || local.uploads()).await
            }
            BlobBackend::Objects(_) => Ok(Vec::new()),
        }
    }

    /// Opens the replica of a blob that an upload brought; absent if its bytes are missing.
    pub async fn read(&self, digest: &Digest, upload: &str) -> Result<Option<Reader>, ContentError> {
        match &self.backend {
            BlobBackend::Local(local) => local.read(digest, upload),
            BlobBackend::Objects(objects) => objects.read(upload).await,
        }
    }

    /// Size of a replica in bytes; absent if it is missing.
    pub async fn size(&self, digest: &Digest, upload: &str) -> Result<Option<u64>, ContentError> {
        match &self.backend {
            BlobBackend::Local(local) => local.size(digest, upload),
            BlobBackend::Objects(objects) => objects.size(upload).await,
        }
    }

    /// Describes the location of a replica for people: a file, or the key of an object. The replica need not
    /// exist.
    pub fn shown(&self, digest: &Digest, upload: &str) -> String {
        match &self.backend {
            BlobBackend::Local(local) => format!("file {}", local.blob(digest, upload).display()),
            BlobBackend::Objects(objects) => format!("object {}", objects.shown(upload)),
        }
    }

    /// Removes a replica; succeeds if it is missing.
    pub async fn delete(&self, digest: &Digest, upload: &str) -> Result<(), ContentError> {
        match &self.backend {
            BlobBackend::Local(local) => {
                let path = local.blob(digest, upload);
                blocking(move || crate::files::remove(&path).map(|_| ())).await
            }
            BlobBackend::Objects(objects) => objects.delete(upload).await,
        }
    }

    /// Computes the digest of a replica from all of its bytes; absent if it is missing.
    pub async fn rehash(&self, digest: &Digest, upload: &str) -> Result<Option<Digest>, ContentError> {
        match &self.backend {
            BlobBackend::Local(local) => {
                let (local, digest, upload) = (local.clone(), digest.clone(), upload.to_owned());
                blocking(move || local.rehash(&digest, &upload)).await
            }
            BlobBackend::Objects(objects) => objects.rehash(upload, digest.algorithm()).await,
        }
    }

    /// The parts into which the listing of replicas is divided.
    pub fn shards(&self) -> Vec<Shard> {
        let algorithms: &[Algorithm] = match &self.backend {
            BlobBackend::Local(_) => &[Algorithm::Sha256, Algorithm::Sha512],
            // Object keys do not contain the digest: one algorithm stands for all.
            BlobBackend::Objects(_) => &[Algorithm::Sha256],
        };
        let of = |algorithm: &Algorithm| {
            let algorithm = *algorithm;
            (0..=255).map(move |first| Shard { algorithm, first })
        };
        algorithms.iter().flat_map(of).collect()
    }

    /// The replicas of one part.
    pub async fn locations(&self, shard: Shard) -> Result<Vec<BlobLocation>, ContentError> {
        match &self.backend {
            BlobBackend::Local(local) => {
                let local = local.clone();
                blocking(move || local.locations(shard.algorithm, shard.first)).await
            }
            BlobBackend::Objects(objects) => objects.locations(shard.first).await,
        }
    }

    /// Size in bytes at a listed location; absent if it is gone.
    pub async fn size_at(&self, location: &BlobLocation) -> Result<Option<u64>, ContentError> {
        match (&self.backend, &location.digest) {
            (BlobBackend::Local(local), Some(digest)) => local.size(digest, &location.key),
            (BlobBackend::Local(_), None) => Ok(None),
            (BlobBackend::Objects(objects), _) => objects.size(&location.key).await,
        }
    }

    /// Removes the bytes at a listed location.
    pub async fn delete_at(&self, location: &BlobLocation) -> Result<(), ContentError> {
        match (&self.backend, &location.digest) {
            (BlobBackend::Local(_), Some(digest)) => self.delete(digest, &location.key).await,
            (BlobBackend::Local(_), None) => Ok(()),
            (BlobBackend::Objects(objects), _) => objects.delete(&location.key).await,
        }
    }
}

pub(crate) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Sends a body to its writer, at the writer's pace.
async fn forward<S, E>(body: S, sender: mpsc::Sender<Part>)
where
    S: Stream<Item = Result<Bytes, E>> + Send,
{
    let mut body = std::pin::pin!(body);
    loop {
        let part = tokio::select! {
            part = body.next() => part,
            // The writer has ended; its result says why.
            () = sender.closed() => return,
        };
        let (part, is_last) = match part {
            Some(Ok(bytes)) => (Part::Bytes(bytes), false),
            Some(Err(_)) => return,
            None => (Part::End, true),
        };
        if sender.send(part).await.is_err() || is_last {
            return;
        }
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ContentError> + Send + 'static,
) -> Result<T, ContentError> {
    joined(tokio::task::spawn_blocking(work)).await
}

pub(crate) async fn joined<T, E>(
    work: impl Future<Output = Result<Result<T, ContentError>, E>>,
) -> Result<T, ContentError>
where
    E: std::error::Error,
{
    work.await.map_err(|error| std::io::Error::other(error.to_string()))?
}

#[cfg(test)]
#[path = "content_tests.rs"]
pub(crate) mod tests;

#[cfg(test)]
#[path = "local_tests.rs"]
mod local_tests;
