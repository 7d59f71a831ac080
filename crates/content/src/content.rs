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
use crate::writing::{self, Hold};

/// Parts of a body that wait to be written at most: bounds the memory of a transfer.
pub(crate) const WAITING: usize = 4;

/// The bytes of all blobs, in a directory or in an object store.
///
/// A blob is asked for by its digest and by what brought its bytes, as [`Content::finish`] said it: two uploads of one
/// digest never share their bytes, so anyone who removes one copy removes no other.
#[derive(Clone, Debug)]
pub struct Content {
    place: BlobBackend,
}

#[derive(Clone, Debug)]
enum BlobBackend {
    Local(Arc<Local>),
    Objects(Arc<Objects>),
}

/// Bytes that have become a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// How many they are.
    pub size: u64,
    /// What brought them: with the digest, where they lie.
    pub upload: String,
}

/// Bytes that lie somewhere, be they a blob's or no one's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobLocation {
    /// The digest, where the place tells it.
    pub digest: Option<Digest>,
    /// What a blob with these bytes says brought them.
    pub upload: String,
    /// The upload under way that they may still belong to.
    pub begun: String,
}

/// A part of what [`Content::shards`] divides all copies into.
#[derive(Clone, Copy, Debug)]
pub struct Shard {
    algorithm: Algorithm,
    first: u8,
}

/// What is said of a body that an upload grows by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addition {
    pub(crate) start: Option<u64>,
    pub(crate) algorithm: Algorithm,
    pub(crate) limit: u64,
}

impl Addition {
    pub(crate) fn require_start(&self, uploaded: u64) -> Result<(), ContentError> {
        match self.start {
            Some(start) if start != uploaded => Err(ContentError::OutOfOrder { uploaded }),
            _ => Ok(()),
        }
    }
}

/// What the writer is sent. Without an end the body broke off.
pub(crate) enum Part {
    Bytes(Bytes),
    End,
}

impl Content {
    /// The content of a directory, which is made if it is missing. Uploads stop while the disk is nearly full.
    ///
    /// # Errors
    /// The directory cannot be made or written.
    pub fn open(directory: &Path, is_full: FullCheck) -> Result<Content, ContentError> {
        Ok(Content { place: BlobBackend::Local(Arc::new(Local::open(directory, is_full)?)) })
    }

    /// The content below a prefix of an object store. `draw` gives random names of hexadecimal characters.
    ///
    /// # Errors
    /// The prefix cannot be one.
    pub fn in_objects(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        draw: fn() -> String,
    ) -> Result<Content, ContentError> {
        Ok(Content { place: BlobBackend::Objects(Arc::new(Objects::new(store, prefix, draw)?)) })
    }

    /// Whose content this is: that of the first caller, for good.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn owner(&self, candidate: &str) -> Result<String, ContentError> {
        match &self.place {
            BlobBackend::Local(local) => local.owner(candidate),
            BlobBackend::Objects(objects) => objects.owner(candidate).await,
        }
    }

    /// Begins an upload. Ids are the caller's, drawn at random, of hexadecimal characters.
    ///
    /// # Errors
    /// The storage refuses.
    pub fn begin(&self, id: &str) -> Result<(), ContentError> {
        if !is_id(id) {
            return Err(ContentError::UnknownUpload);
        }
        match &self.place {
            BlobBackend::Local(local) => local.begin(id),
            BlobBackend::Objects(_) => Ok(()),
        }
    }

    /// How many bytes an upload has.
    ///
    /// # Errors
    /// There is no such upload, as far as the storage knows of uploads without bytes.
    pub async fn uploaded(&self, id: &str) -> Result<u64, ContentError> {
        match &self.place {
            BlobBackend::Local(local) => local.uploaded(id),
            BlobBackend::Objects(objects) => objects.uploaded(id).await,
        }
    }

    /// Appends a body to an upload; its size afterwards. What arrived before a failure is taken back, also where no one
    /// waits for the end any more.
    ///
    /// `algorithm` is that of the digest that the upload will be compared with, as far as it is known. A body that says
    /// where it starts must start where the upload ends.
    ///
    /// # Errors
    /// The body starts elsewhere, breaks off or is larger than `limit`, or the storage refuses.
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
        let addition = Addition { start, algorithm, limit };
        let (sender, parts) = mpsc::channel::<Part>(WAITING);
        let writer = match &self.place {
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

    /// Compares an upload with its digest, makes it durable and gives it its place beside other copies of the blob. A
    /// failed comparison ends the upload.
    ///
    /// # Errors
    /// Another digest, no such upload, or the storage refuses.
    pub async fn finish(&self, id: &str, digest: &Digest) -> Result<Stored, ContentError> {
        let digest = digest.clone();
        match &self.place {
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

    /// Ends an upload without a blob; one that does not exist is none the less ended. In an object store its bytes stay
    /// until they are collected: whether they have become a blob, only the database knows.
    ///
    /// # Errors
    /// Another request writes to it, or the storage refuses.
    pub fn cancel(&self, id: &str) -> Result<(), ContentError> {
        match &self.place {
            BlobBackend::Local(local) => local.cancel(id),
            BlobBackend::Objects(objects) => {
                objects.under_way.take(id)?.forget();
                Ok(())
            }
        }
    }

    /// Ids of the uploads that have a file of their own. In an object store none has: what is there, copies tell.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn uploads(&self) -> Result<Vec<String>, ContentError> {
        match &self.place {
            BlobBackend::Local(local) => {
                let local = local.clone();
                blocking(move || local.uploads()).await
            }
            BlobBackend::Objects(_) => Ok(Vec::new()),
        }
    }

    /// Opens the copy of a blob that an upload brought; absent if it is not there.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn read(&self, digest: &Digest, upload: &str) -> Result<Option<Reader>, ContentError> {
        match &self.place {
            BlobBackend::Local(local) => local.read(digest, upload),
            BlobBackend::Objects(objects) => objects.read(upload).await,
        }
    }

    /// Bytes of a copy; absent if it is not there.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn size(&self, digest: &Digest, upload: &str) -> Result<Option<u64>, ContentError> {
        match &self.place {
            BlobBackend::Local(local) => local.size(digest, upload),
            BlobBackend::Objects(objects) => objects.size(upload).await,
        }
    }

    /// What a person finds a copy by, be it there or not: a file, or the key of an object.
    pub fn shown(&self, digest: &Digest, upload: &str) -> String {
        match &self.place {
            BlobBackend::Local(local) => format!("file {}", local.blob(digest, upload).display()),
            BlobBackend::Objects(objects) => format!("object {}", objects.shown(upload)),
        }
    }

    /// Removes a copy; one that is not there is none the less gone.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn delete(&self, digest: &Digest, upload: &str) -> Result<(), ContentError> {
        match &self.place {
            BlobBackend::Local(local) => {
                let path = local.blob(digest, upload);
                blocking(move || crate::files::remove(&path).map(|_| ())).await
            }
            BlobBackend::Objects(objects) => objects.delete(upload).await,
        }
    }

    /// The digest that the bytes of a copy really have; absent if there are none. Reads all of them.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn rehash(&self, digest: &Digest, upload: &str) -> Result<Option<Digest>, ContentError> {
        match &self.place {
            BlobBackend::Local(local) => {
                let (local, digest, upload) = (local.clone(), digest.clone(), upload.to_owned());
                blocking(move || local.rehash(&digest, &upload)).await
            }
            BlobBackend::Objects(objects) => objects.rehash(upload, digest.algorithm()).await,
        }
    }

    /// The parts that copies are listed in, one after the other.
    pub fn shards(&self) -> Vec<Shard> {
        let algorithms: &[Algorithm] = match &self.place {
            BlobBackend::Local(_) => &[Algorithm::Sha256, Algorithm::Sha512],
            // Keys there tell no digest: any algorithm stands for all.
            BlobBackend::Objects(_) => &[Algorithm::Sha256],
        };
        let of = |algorithm: &Algorithm| {
            let algorithm = *algorithm;
            (0..=255).map(move |first| Shard { algorithm, first })
        };
        algorithms.iter().flat_map(of).collect()
    }

    /// The copies of one part.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn locations(&self, shard: Shard) -> Result<Vec<BlobLocation>, ContentError> {
        match &self.place {
            BlobBackend::Local(local) => {
                let local = local.clone();
                blocking(move || local.locations(shard.algorithm, shard.first)).await
            }
            BlobBackend::Objects(objects) => objects.locations(shard.first).await,
        }
    }

    /// Bytes of what a listing named; absent if it is gone.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn size_at(&self, location: &BlobLocation) -> Result<Option<u64>, ContentError> {
        match (&self.place, &location.digest) {
            (BlobBackend::Local(local), Some(digest)) => local.size(digest, &location.upload),
            (BlobBackend::Local(_), None) => Ok(None),
            (BlobBackend::Objects(objects), _) => objects.size(&location.upload).await,
        }
    }

    /// Removes what a listing named.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn delete_at(&self, location: &BlobLocation) -> Result<(), ContentError> {
        match (&self.place, &location.digest) {
            (BlobBackend::Local(_), Some(digest)) => self.delete(digest, &location.upload).await,
            (BlobBackend::Local(_), None) => Ok(()),
            (BlobBackend::Objects(objects), _) => objects.delete(&location.upload).await,
        }
    }
}

pub(crate) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Hands a body to its writer, as fast as that one takes it.
async fn forward<S, E>(body: S, sender: mpsc::Sender<Part>)
where
    S: Stream<Item = Result<Bytes, E>> + Send,
{
    let mut body = std::pin::pin!(body);
    loop {
        let part = tokio::select! {
            part = body.next() => part,
            // The writer went away: it says why.
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
mod tests;

#[cfg(test)]
#[path = "local_tests.rs"]
mod local_tests;
