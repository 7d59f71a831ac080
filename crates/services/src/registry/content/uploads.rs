//! Uploads under way: who began one alone goes on with it.

use std::collections::HashSet;

use bowline_contract::bowline::registry::v1::rpc::content::PushBlob;
use bowline_core::{Error, Micros, Uidp};
use bowline_store::{ReadTx, Value, WriteTx};

use super::{Name, RefusalCode, Registry, RegistryError, StoredBlob, Visitor, blobs};

/// How long an upload may take.
pub const UPLOAD_LIFETIME: Micros = 24 * 3600 * 1_000_000;

/// Uploads that end in one transaction.
const AT_ONCE: i64 = 500;

impl Registry {
    /// Begins an upload under an id that was drawn at random.
    ///
    /// # Errors
    /// The visitor may not push here.
    pub async fn begin_upload(&self, visitor: &Visitor, name: &Name, id: &str) -> Result<(), RegistryError> {
        let (registry, visitor, name, id) = (self.clone(), visitor.clone(), name.clone(), id.to_owned());
        self.pipeline
            .db
            .write(move |tx| {
                let (registry, visitor, name, id) = (registry.clone(), visitor.clone(), name.clone(), id.clone());
                Box::pin(async move {
                    let repo = registry.pushable(tx, &visitor, &name).await?;
                    let sql =
                        "INSERT INTO uploads (id, repo, identity, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";
                    let params = [
                        Value::from(&id),
                        Value::from(repo.as_str()),
                        Value::from(visitor.subject()),
                        Value::Int(visitor.now()),
                        Value::Int(visitor.now() + UPLOAD_LIFETIME),
                    ];
                    tx.execute(sql, &params).await?;
                    Ok(())
                })
            })
            .await
    }

    /// Refuses unless this is an upload of the visitor's own in this repository, to which they may still push.
    ///
    /// # Errors
    /// BLOB_UPLOAD_UNKNOWN, or the visitor may not push here.
    pub async fn own_upload(&self, visitor: &Visitor, name: &Name, id: &str) -> Result<(), RegistryError> {
        let (registry, visitor, name) = (self.clone(), visitor.clone(), name.clone());
        let id = id.to_owned();
        self.pipeline
            .db
            .read(move |tx| {
                Box::pin(async move {
                    let repo = registry.readable_for_push(tx, &visitor, &name).await?;
                    require_own(tx, &visitor, &repo, &id).await
                })
            })
            .await
    }

    /// Shows the blob that an upload became, whose bytes are durable. The bytes that the blob had before, if any, are
    /// nobody's any more: the upload that brought them is told, so that they can go.
    ///
    /// # Errors
    /// BLOB_UPLOAD_UNKNOWN, the visitor may not push here, or a quota has no room for it.
    pub async fn finish_upload(
        &self,
        visitor: &Visitor,
        name: &Name,
        id: &str,
        digest: &str,
        size: u64,
    ) -> Result<Option<String>, RegistryError> {
        let (registry, visitor, name) = (self.clone(), visitor.clone(), name.clone());
        let (digest, blob) = (digest.to_owned(), StoredBlob { size, upload: id.to_owned() });
        self.pipeline
            .db
            .write(move |tx| {
                let (registry, visitor, name) = (registry.clone(), visitor.clone(), name.clone());
                let (digest, blob) = (digest.clone(), blob.clone());
                Box::pin(async move {
                    let repo = registry.changeable::<PushBlob>(tx, &visitor, &name).await?;
                    require_own(tx, &visitor, &repo, &blob.upload).await?;
                    let before = blobs::put(tx, &digest, &blob, visitor.now()).await?;
                    registry.show_blob(tx, &visitor, &repo, &digest).await?;
                    forget(tx, &blob.upload).await?;
                    Ok(before)
                })
            })
            .await
    }

    /// Ends an upload without a blob.
    ///
    /// # Errors
    /// BLOB_UPLOAD_UNKNOWN, or the visitor may not push here.
    pub async fn cancel_upload(&self, visitor: &Visitor, name: &Name, id: &str) -> Result<(), RegistryError> {
        let (registry, visitor, name, id) = (self.clone(), visitor.clone(), name.clone(), id.to_owned());
        self.pipeline
            .db
            .write(move |tx| {
                let (registry, visitor, name, id) = (registry.clone(), visitor.clone(), name.clone(), id.clone());
                Box::pin(async move {
                    let repo = registry.changeable::<PushBlob>(tx, &visitor, &name).await?;
                    require_own(tx, &visitor, &repo, &id).await?;
                    forget(tx, &id).await
                })
            })
            .await
    }

    /// Those of these uploads that are not under way: nobody writes to them any more, and they become no blob.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn ended_uploads(&self, mut ids: Vec<String>) -> Result<Vec<String>, Error> {
        let mut known = HashSet::new();
        for part in ids.chunks(AT_ONCE as usize) {
            let part = part.to_vec();
            let read = self.pipeline.db.read(move |tx| Box::pin(async move { under_way(tx, &part).await }));
            known.extend(read.await?);
        }
        ids.retain(|id| !known.contains(id));
        Ok(ids)
    }

    /// Ends the uploads whose time is over; their ids, so that their bytes can go.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn expire_uploads(&self) -> Result<Vec<String>, Error> {
        let now = self.pipeline.clock.now();
        self.pipeline
            .db
            .write(move |tx| {
                Box::pin(async move {
                    let sql = "SELECT id FROM uploads WHERE expires_at <= $1 ORDER BY expires_at, id LIMIT $2";
                    let params = [Value::Int(now), Value::Int(AT_ONCE)];
                    let ids = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
                    for id in &ids {
                        tx.execute("DELETE FROM uploads WHERE id = $1", &[Value::from(id)]).await?;
                    }
                    Ok(ids)
                })
            })
            .await
    }
}

/// Those of these uploads that are under way.
pub(super) async fn under_way(tx: &mut ReadTx, ids: &[String]) -> Result<Vec<String>, Error> {
    let places: Vec<String> = (1..=ids.len()).map(|n| format!("${n}")).collect();
    let sql = format!("SELECT id FROM uploads WHERE id IN ({})", places.join(", "));
    let params: Vec<Value<'_>> = ids.iter().map(Value::from).collect();
    tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await
}

async fn require_own(tx: &mut ReadTx, visitor: &Visitor, repo: &Uidp, id: &str) -> Result<(), RegistryError> {
    let sql = "SELECT id FROM uploads WHERE id = $1 AND repo = $2 AND identity = $3 AND expires_at > $4";
    let params =
        [Value::from(id), Value::from(repo.as_str()), Value::from(visitor.subject()), Value::Int(visitor.now())];
    let found = tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    found.map(|_| ()).ok_or_else(|| {
        RegistryError::refused(RefusalCode::BlobUploadUnknown, "there is no such upload of yours: begin a new one")
    })
}

pub(super) async fn forget(tx: &mut WriteTx, id: &str) -> Result<(), RegistryError> {
    tx.execute("DELETE FROM uploads WHERE id = $1", &[Value::from(id)]).await?;
    Ok(())
}
