//! Blobs of package files: uploaded, linked, counted against quotas and collected as those of images are.
//!
//! The repository that they are linked to is one of packages, which the domain of packages declares; an upload has none
//! yet, and belongs to the group.

use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_store::{ReadTx, Value, WriteTx};

use super::{OpenUpload, Registry, RegistryError, StoredBlob, blobs, uploads};
use crate::limits;

impl Registry {
    /// Begins an upload of a file to a group under an id that was drawn at random.
    ///
    /// # Errors
    /// RATE_LIMITED if too many uploads are open.
    pub async fn begin_file(&self, identity: &str, group: &Uidp, id: &str) -> Result<OpenUpload> {
        let (registry, now) = (self.clone(), self.pipeline.clock.now());
        let of = (identity.to_owned(), group.clone(), id.to_owned());
        let begun = self.pipeline.db.write_scratch(move |tx| {
            let (registry, (identity, group, id)) = (registry.clone(), of.clone());
            Box::pin(async move { registry.insert_upload(tx, &identity, now, group, id).await })
        });
        let begun = begun.await?;
        match self.room_for_file(identity, begun.clone()).await {
            Ok(begun) => Ok(begun),
            Err(error) => {
                self.forget_file(id).await?;
                Err(error)
            }
        }
    }

    /// Begins to store a file that is fetched for an organization, under an id that was drawn at random. It is no upload of
    /// any identity: who calls limits how many there are.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn begin_fetched_file(&self, organization: &Uidp, id: &str) -> Result<OpenUpload> {
        self.begin_file("", organization, id).await
    }

    async fn room_for_file(&self, identity: &str, begun: OpenUpload) -> Result<OpenUpload> {
        let (limits, identity) = (self.pipeline.settings.uploads, identity.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let begun = begun.clone();
            Box::pin(async move {
                let is_fetched = identity.is_empty();
                if !is_fetched && let Some(message) = uploads::too_many(tx, limits, &identity, &begun.repo).await? {
                    return Err(Error::new(Reason::RateLimited, message));
                }
                let room = limits::room(tx, &begun.repo, &begun.id, None).await?;
                Ok(OpenUpload { room, ..begun })
            })
        });
        read.await
    }

    /// Notes how far an upload of a file has come while its body still arrives, if that is due.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if it has ended, QUOTA_EXCEEDED if others have taken the room that a quota left it.
    pub async fn file_grows(&self, upload: &mut OpenUpload, bytes: u64) -> Result<()> {
        match self.upload_grows(upload, bytes).await {
            Ok(()) => Ok(()),
            Err(RegistryError::Failed(error)) => Err(error),
            Err(RegistryError::Refused(_)) => Err(upload.exceeded_quota().unwrap_or_else(|| ended(&upload.id))),
        }
    }

    /// Ends an upload of a file without one.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn forget_file(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        let written = self.pipeline.db.write_scratch(move |tx| {
            let id = id.clone();
            Box::pin(async move { uploads::forget(tx, &id).await })
        });
        written.await
    }
}

/// Links the blob that an upload became, whose bytes are durable, to a repository of packages. Returns the upload that had
/// brought the blob's former bytes, if any, so that the caller removes them.
///
/// # Errors
/// QUOTA_EXCEEDED if a quota has no room for it, FAILED_PRECONDITION if the upload has ended.
pub async fn link(
    tx: &mut WriteTx,
    repository: &Uidp,
    digest: &str,
    blob: &StoredBlob,
    upload: &str,
    now: Micros,
) -> Result<Option<String>> {
    if tx
        .execute("DELETE FROM uploads WHERE id = $1 AND expires_at > $2", &[Value::from(upload), Value::Int(now)])
        .await?
        == 0
    {
        return Err(ended(upload));
    }
    let before = blobs::put(tx, digest, blob, now).await?;
    blobs::link(tx, repository, digest, now).await?;
    Ok(before)
}

/// Takes up to `most` blobs out of a repository that goes; returns how many there were.
///
/// # Errors
/// Those of the database.
pub async fn unlink_some(tx: &mut WriteTx, repository: &Uidp, most: i64) -> Result<usize> {
    let sql = "SELECT digest FROM repo_blobs WHERE repo = $1 ORDER BY digest LIMIT $2";
    let params = [Value::from(repository.as_str()), Value::Int(most)];
    let digests = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    for digest in &digests {
        blobs::unlink(tx, repository, digest).await?;
    }
    Ok(digests.len())
}

fn ended(upload: &str) -> Error {
    Error::precondition("UPLOAD", upload, "the upload took too long and has ended: send the file again")
}

/// A blob of a repository of packages; absent if it has none such.
///
/// # Errors
/// Those of the database.
pub async fn find(tx: &mut ReadTx, repository: &Uidp, digest: &str) -> Result<Option<StoredBlob>> {
    blobs::find_in(tx, repository, digest).await
}

/// Takes a blob, which the repository has, out of it.
///
/// # Errors
/// Those of the database.
pub async fn unlink(tx: &mut WriteTx, repository: &Uidp, digest: &str) -> Result<()> {
    blobs::unlink(tx, repository, digest).await.map(|_| ())
}
