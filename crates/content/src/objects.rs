//! Blobs in an object store.
//!
//! Every chunk of an upload becomes an object of its own, `blobs/<xx>/<upload>/<start>-<random>`, which is never written
//! again. An upload of one chunk, the usual one, is a blob without any further transfer; several chunks are put together
//! when the upload is finished. No object says whether it is a blob: the database names the
//! one that is, and the others are collected.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, WriteMultipart};
use tokio::sync::mpsc;

use crate::content::{Addition, BlobLocation, Part, Stored, is_id};
use crate::digest::{Algorithm, Digest};
use crate::error::ContentError;
use crate::hasher::Hasher;
use crate::reader::Reader;
use crate::under_way::{Busy, UnderWay};

/// Size of a part of a multipart upload in bytes. Stores require at least 5 MiB, some of them equal parts.
const PART: usize = 8 << 20;
/// Parts on their way at once: with the one that is being filled, the memory of a transfer.
const PARTS_AT_ONCE: usize = 2;
/// Maximum number of parts of an object, in any store.
const MAX_PARTS: u64 = 10_000;
/// Maximum number of chunks of one upload: each is an object until the upload is finished.
const MAX_CHUNKS: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    random_id: fn() -> String,
    pub(crate) under_way: Arc<UnderWay>,
}

/// The object of one chunk of an upload.
struct Chunk {
    start: u64,
    size: u64,
    /// Its name below the upload.
    name: String,
}

impl Objects {
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        random_id: fn() -> String,
    ) -> Result<Objects, ContentError> {
        let prefix = Path::parse(prefix).map_err(|error| ContentError::Objects(error.into()))?;
        Ok(Objects { store, prefix, random_id, under_way: Arc::default() })
    }

    pub(crate) async fn owner(&self, candidate: &str) -> Result<String, ContentError> {
        let path = self.prefix.clone().join("owner");
        // Read first: only the very first start needs conditional writes.
        if let Some(owner) = self.text(&path).await? {
            return Ok(owner);
        }
        let payload = PutPayload::from(candidate.to_owned());
        match self.store.put_opts(&path, payload, PutMode::Create.into()).await {
            Ok(_) | Err(Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let absent = || ContentError::Storage(std::io::Error::other(format!("{path} is not there once written")));
        self.text(&path).await?.ok_or_else(absent)
    }

    async fn text(&self, path: &Path) -> Result<Option<String>, ContentError> {
        let bytes = match self.store.get(path).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            found => found?.bytes().await?,
        };
        Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()))
    }

    /// Where the objects of an upload lie.
    fn upload(&self, id: &str) -> Path {
        self.shard(id.get(..2).unwrap_or(id)).join(id)
    }

    fn shard(&self, first: &str) -> Path {
        self.prefix.clone().join("blobs").join(first)
    }

    /// The key of `<upload>/<name>` in the object store.
    fn path(&self, stored: &str) -> Option<Path> {
        let (id, name) = stored.split_once('/')?;
        is_id(id).then(|| self.upload(id).join(name))
    }

    pub(crate) fn shown(&self, stored: &str) -> String {
        self.path(stored).map_or_else(|| stored.to_owned(), |path| path.to_string())
    }

    /// The chunks of an upload, in order and without gaps.
    async fn chunks(&self, id: &str) -> Result<Vec<Chunk>, ContentError> {
        let mut listed = self.store.list(Some(&self.upload(id)));
        let mut chunks = Vec::new();
        while let Some(object) = listed.try_next().await? {
            let name = object.location.filename().unwrap_or_default().to_owned();
            let Some(start) = name.split_once('-').and_then(|(start, _)| u64::from_str_radix(start, 16).ok()) else {
                continue;
            };
            chunks.push(Chunk { start, size: object.size, name });
        }
        chunks.sort_by_key(|chunk| chunk.start);
        let mut end = 0;
        for chunk in &chunks {
            // Two servers accepted a chunk each for the same position.
            if chunk.start != end {
                return Err(ContentError::Torn);
            }
            end += chunk.size;
        }
        Ok(chunks)
    }

    pub(crate) async fn uploaded(&self, id: &str) -> Result<u64, ContentError> {
        Ok(size_of(&self.chunks(id).await?))
    }

    pub(crate) async fn append(
        &self,
        busy: &Busy,
        addition: Addition,
        parts: mpsc::Receiver<Part>,
    ) -> Result<u64, ContentError> {
        let chunks = self.chunks(busy.id()).await?;
        let before = size_of(&chunks);
        addition.require_start(before)?;
        if chunks.len() >= MAX_CHUNKS {
            return Err(ContentError::TooManyBodies(MAX_CHUNKS));
        }
        let limit = addition.limit.min(MAX_PARTS * PART as u64);
        let known = busy.recall(before, addition.algorithm);
        let mut draft = Draft::new(&self.store, self.chunk(busy.id(), before));
        let addition = Addition { limit, ..addition };
        match draft.fill(before, parts, known.clone(), &addition).await {
            Ok((size, hasher)) => {
                if let Some(tail) = &addition.tail {
                    tail.compare(size, hasher.as_ref());
                }
                if size > before {
                    draft.finish().await?;
                }
                busy.insert(size, hasher);
                Ok(size)
            }
            Err(error) => {
                draft.abort().await;
                busy.insert(before, known);
                Err(error)
            }
        }
    }

    /// A key that no other body has.
    fn chunk(&self, id: &str, start: u64) -> Path {
        self.upload(id).join(format!("{start:016x}-{}", (self.random_id)()))
    }

    pub(crate) async fn finish(&self, busy: &Busy, digest: &Digest) -> Result<Stored, ContentError> {
        let chunks = self.chunks(busy.id()).await?;
        let size = size_of(&chunks);
        let known = busy.recall(size, digest.algorithm());
        let (name, hasher) = match chunks.as_slice() {
            [only] => {
                let hasher = match known {
                    Some(hasher) => hasher,
                    None => self.hash_of(&self.upload(busy.id()).join(&*only.name), digest.algorithm()).await?,
                };
                (only.name.clone(), hasher)
            }
            several => self.merge(busy.id(), several, digest.algorithm()).await?,
        };
        let actual = hasher.finish();
        if actual != *digest {
            self.store.delete(&self.upload(busy.id()).join(name)).await?;
            return Err(ContentError::Mismatch { actual });
        }
        Ok(Stored { size, upload: format!("{}/{name}", busy.id()) })
    }

    /// Puts bodies together; the name of what they became, and its digest.
    async fn merge(&self, id: &str, chunks: &[Chunk], algorithm: Algorithm) -> Result<(String, Hasher), ContentError> {
        let limit = MAX_PARTS * PART as u64;
        if size_of(chunks) > limit {
            return Err(ContentError::TooLarge(limit));
        }
        let path = self.chunk(id, 0);
        let name = path.filename().unwrap_or_default().to_owned();
        let mut draft = Draft::new(&self.store, path);
        let mut hasher = Hasher::new(algorithm);
        for chunk in chunks {
            let from = self.upload(id).join(&*chunk.name);
            let mut bytes = self.store.get(&from).await?.into_stream();
            while let Some(part) = bytes.try_next().await? {
                hasher.update(&part);
                draft.write(&part).await?;
            }
        }
        draft.finish().await?;
        for chunk in chunks {
            self.store.delete(&self.upload(id).join(&*chunk.name)).await?;
        }
        Ok((name, hasher))
    }

    async fn hash_of(&self, path: &Path, algorithm: Algorithm) -> Result<Hasher, ContentError> {
        let mut hasher = Hasher::new(algorithm);
        let mut bytes = self.store.get(path).await?.into_stream();
        while let Some(part) = bytes.try_next().await? {
            hasher.update(&part);
        }
        Ok(hasher)
    }

    pub(crate) async fn read(&self, stored: &str) -> Result<Option<Reader>, ContentError> {
        let Some(path) = self.path(stored) else { return Ok(None) };
        let size = self.size(stored).await?;
        Ok(size.map(|size| Reader::of_object(self.store.clone(), path, size)))
    }

    pub(crate) async fn size(&self, stored: &str) -> Result<Option<u64>, ContentError> {
        let Some(path) = self.path(stored) else { return Ok(None) };
        match self.store.head(&path).await {
            Ok(object) => Ok(Some(object.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn delete(&self, stored: &str) -> Result<(), ContentError> {
        let Some(path) = self.path(stored) else { return Ok(()) };
        match self.store.delete(&path).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn rehash(&self, stored: &str, algorithm: Algorithm) -> Result<Option<Digest>, ContentError> {
        let Some(path) = self.path(stored) else { return Ok(None) };
        match self.hash_of(&path, algorithm).await {
            Ok(hasher) => Ok(Some(hasher.finish())),
            Err(ContentError::Objects(Error::NotFound { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What lies under uploads whose ids begin with this byte.
    pub(crate) async fn locations(&self, first: u8) -> Result<Vec<BlobLocation>, ContentError> {
        let shard = self.shard(&format!("{first:02x}"));
        let mut listed = self.store.list(Some(&shard));
        let mut locations = Vec::new();
        while let Some(object) = listed.try_next().await? {
            let parts: Vec<_> = object.location.prefix_match(&shard).into_iter().flatten().collect();
            if let [id, name] = parts.as_slice()
                && is_id(id.as_ref())
            {
                let (id, name) = (id.as_ref(), name.as_ref());
                locations.push(BlobLocation { digest: None, key: format!("{id}/{name}"), open_upload: id.to_owned() });
            }
        }
        Ok(locations)
    }
}

fn size_of(chunks: &[Chunk]) -> u64 {
    chunks.iter().map(|chunk| chunk.size).sum()
}

/// An object that is being written, and is not there before it is finished.
struct Draft<'a> {
    store: &'a Arc<dyn ObjectStore>,
    path: Path,
    /// What has come so far, while one request can still carry it.
    buffer: Vec<u8>,
    upload: Option<WriteMultipart>,
}

impl Draft<'_> {
    fn new(store: &Arc<dyn ObjectStore>, path: Path) -> Draft<'_> {
        Draft { store, path, buffer: Vec::new(), upload: None }
    }

    /// Writes what arrives; the size of the upload afterwards, and its digest if that of the bytes before was known.
    async fn fill(
        &mut self,
        before: u64,
        mut parts: mpsc::Receiver<Part>,
        mut hasher: Option<Hasher>,
        addition: &Addition,
    ) -> Result<(u64, Option<Hasher>), ContentError> {
        let mut size = before;
        loop {
            let part = match parts.recv().await {
                Some(Part::Bytes(part)) => part,
                Some(Part::End) => return Ok((size, hasher)),
                None => return Err(ContentError::Interrupted),
            };
            size += part.len() as u64;
            if size > addition.limit {
                return Err(ContentError::TooLarge(addition.limit));
            }
            self.write(&part).await?;
            if let Some(tail) = &addition.tail {
                tail.push(&part, size);
            }
            if let Some(hasher) = &mut hasher {
                hasher.update(&part);
            }
        }
    }

    async fn write(&mut self, bytes: &Bytes) -> Result<(), ContentError> {
        if let Some(upload) = &mut self.upload {
            upload.wait_for_capacity(PARTS_AT_ONCE).await?;
            upload.write(bytes);
            return Ok(());
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > PART {
            let upload = self.store.put_multipart(&self.path).await?;
            let mut upload = WriteMultipart::new_with_chunk_size(upload, PART);
            upload.write(&std::mem::take(&mut self.buffer));
            self.upload = Some(upload);
        }
        Ok(())
    }

    async fn finish(self) -> Result<(), ContentError> {
        match self.upload {
            Some(upload) => upload.finish().await?,
            None => self.store.put(&self.path, self.buffer.into()).await?,
        };
        Ok(())
    }

    /// Aborts the upload. A part that the store keeps anyway is removed by its lifecycle rules.
    async fn abort(self) {
        if let Some(upload) = self.upload
            && let Err(error) = upload.abort().await
        {
            tracing::warn!(path = %self.path, %error, "an unfinished upload stays in the object store");
        }
    }
}
