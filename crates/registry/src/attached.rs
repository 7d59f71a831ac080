//! What is attached to images: manifests that refer to one, and the bytes of what they name.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_core::{Error, Result, Uidp};
use bowline_store::{BoxFuture, ReadTx, Row, Value};
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Where the bytes of blobs are read from.
pub trait BlobBytes: Send + Sync {
    /// The bytes of a blob that an upload brought; absent if they are not there, or more than `most`.
    fn read<'a>(&'a self, digest: &'a str, upload: &'a str, most: u64) -> BoxFuture<'a, Result<Option<Vec<u8>>>>;
}

/// No blobs at all: for handlers that no one calls.
pub struct NoBlobs;

impl BlobBytes for NoBlobs {
    fn read<'a>(&'a self, _: &'a str, _: &'a str, _: u64) -> BoxFuture<'a, Result<Option<Vec<u8>>>> {
        Box::pin(async { Ok(None) })
    }
}

/// Maximum number of responses that parse documents at once: each may hold some of them in memory.
const AT_ONCE: usize = 4;

/// Looks into documents: in no transaction, on no thread that serves, and a few at once.
#[derive(Clone)]
pub struct Documents {
    blobs: Arc<dyn BlobBytes>,
    permits: Arc<Semaphore>,
}

impl Documents {
    /// Reads blobs through `blobs`.
    pub fn new(blobs: Arc<dyn BlobBytes>) -> Documents {
        Documents { blobs, permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// A permit to parse documents, held until it is dropped.
    pub(super) async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        self.permits.clone().acquire_owned().await.map_err(Error::internal)
    }

    /// The bytes of a layer.
    ///
    /// # Errors
    /// They are not there any more: another push has just brought them again, or they are lost.
    pub(super) async fn read(&self, layer: &Layer) -> Result<Vec<u8>> {
        let found = self.blobs.read(&layer.digest, &layer.upload, layer.size).await?;
        found.ok_or_else(|| Error::unavailable(format!("the bytes of the blob {} are missing", layer.digest)))
    }

    /// Does what takes long.
    pub(super) async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)
    }
}

/// Maximum number of manifests attached to an image, and of documents in each.
const MAX_DOCUMENTS: i64 = 50;

/// A layer of a manifest, whose blob the repository has.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) digest: String,
    /// The upload that brought the blob.
    pub(super) upload: String,
    pub(super) media_type: String,
    pub(super) size: u64,
}

/// Digests of the manifests of the repository that refer to this one, the newest first: by their subject, by a tag
/// as in `sha256-<digest>.att`, or beside it in an index.
pub(super) async fn manifests(tx: &mut ReadTx, repo: &Uidp, image: &str) -> Result<Vec<String>> {
    let sql = format!(
        "SELECT digest FROM (
           SELECT r.digest, r.pushed_at FROM repo_manifests r {} WHERE r.repo = $1 AND r.subject = $2 AND r.subject <> ''
           UNION
           SELECT r.digest, r.pushed_at FROM tags t JOIN repo_manifests r ON r.repo = t.parent AND r.digest = t.digest
           WHERE t.parent = $1 AND t.name IN ($3, $4)) found
         ORDER BY pushed_at DESC, digest LIMIT $5",
        tx.index_hint("repo_manifests_by_subject")
    );
    let name = image.replace(':', "-");
    let (sbom, attestation) = (format!("{name}.sbom"), format!("{name}.att"));
    let params = [
        Value::from(repo.as_str()),
        Value::from(image),
        Value::from(&sbom),
        Value::from(&attestation),
        Value::Int(MAX_DOCUMENTS),
    ];
    let mut found: Vec<String> = tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    found.extend(beside(tx, repo, image).await?);
    Ok(found)
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    digest: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Builders put attestations into the index, and name there the image that each is about.
async fn beside(tx: &mut ReadTx, repo: &Uidp, image: &str) -> Result<Vec<String>> {
    let sql = "SELECT m.content FROM manifest_references f
               JOIN repo_manifests r ON r.repo = $1 AND r.digest = f.manifest
               JOIN manifests m ON m.digest = f.manifest
               WHERE f.digest = $2 AND f.kind = 3 ORDER BY r.pushed_at DESC, r.digest LIMIT 5";
    let params = [Value::from(repo.as_str()), Value::from(image)];
    let indexes: Vec<Vec<u8>> = tx.query(sql, &params, |row| row.bytes(0).map_err(Error::from)).await?;
    let mut found = Vec::new();
    for index in indexes {
        let about = subjects_in(&index).into_iter().filter(|(_, about)| about == image);
        found.extend(about.map(|(member, _)| member).take(MAX_DOCUMENTS as usize));
    }
    Ok(found)
}

/// The images that a manifest, if it is an index, names members for.
pub(super) async fn subjects_of(tx: &mut ReadTx, manifest: &str) -> Result<Vec<String>> {
    let sql = "SELECT content FROM manifests WHERE digest = $1 AND shape = 2";
    let content =
        tx.query_opt(sql, &[Value::from(manifest)], |row| row.bytes(0).map_err(Error::from)).await?.unwrap_or_default();
    Ok(subjects_in(&content).into_iter().map(|(_, image)| image).collect())
}

/// The members of an index that are about an image, each with the digest of the image.
pub(super) fn subjects_in(index: &[u8]) -> Vec<(String, String)> {
    const SUBJECT: &str = "vnd.docker.reference.digest";
    // A push looks at no annotations: where they are none, nothing is named.
    let Ok(Index { manifests }) = serde_json::from_slice(index) else { return Vec::new() };
    let about = |mut one: Member| Some((one.digest, one.annotations.remove(SUBJECT)?));
    manifests.into_iter().filter_map(about).collect()
}

/// The layers of a manifest of the repository, as far as the repository has their blobs.
pub(super) async fn layers(tx: &mut ReadTx, repo: &Uidp, manifest: &str) -> Result<Vec<Layer>> {
    named(tx, repo, manifest, 2).await
}

/// The config of a manifest of the repository.
pub(super) async fn config(tx: &mut ReadTx, repo: &Uidp, manifest: &str) -> Result<Option<Layer>> {
    Ok(named(tx, repo, manifest, 1).await?.into_iter().next())
}

async fn named(tx: &mut ReadTx, repo: &Uidp, manifest: &str, kind: i64) -> Result<Vec<Layer>> {
    let sql = "SELECT f.digest, f.media_type, b.size, b.upload FROM manifest_references f
               JOIN repo_manifests r ON r.repo = $1 AND r.digest = f.manifest
               JOIN repo_blobs l ON l.repo = $1 AND l.digest = f.digest
               JOIN blobs b ON b.digest = f.digest
               WHERE f.manifest = $2 AND f.kind = $3 ORDER BY f.place LIMIT $4";
    let params = [Value::from(repo.as_str()), Value::from(manifest), Value::Int(kind), Value::Int(MAX_DOCUMENTS)];
    let read = |row: &Row<'_>| {
        let size = u64::try_from(row.int(2)?).unwrap_or(0);
        Ok::<_, Error>(Layer { digest: row.text(0)?, upload: row.text(3)?, media_type: row.text(1)?, size })
    };
    tx.query(sql, &params, read).await
}
