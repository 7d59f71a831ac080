//! Uploads under way: who began one alone goes on with it.

use bowline_contract::bowline::registry::v1::rpc::content::PushBlob;
use bowline_core::{Error, Micros, Uidp};
use bowline_store::{ReadTx, Value, WriteTx};

use super::{Name, RefusalCode, Registry, RegistryError, StoredBlob, Visitor, blobs, garbage};
use crate::registry::limits;

/// How long an upload may take.
pub const UPLOAD_LIFETIME: Micros = 24 * 3600 * 1_000_000;

/// Uploads that end in one transaction.
const AT_ONCE: i64 = 500;

impl Registry {
    /// Begins an upload under an id that was drawn at random; the most bytes that a quota could have room for.
    ///
    /// An upload that a failing machine forgets is begun anew, so its row waits for no disk; a repository that a push
    /// makes does.
    ///
    /// # Errors
    /// The visitor may not push here, or has too many uploads under way.
    pub async fn begin_upload(&self, visitor: &Visitor, name: &Name, id: &str) -> Result<u64, RegistryError> {
        let db = &self.pipeline.db;
        let (registry, asked) = (self.clone(), (visitor.clone(), name.clone(), id.to_owned()));
        let begun = db.write_scratch(move |tx| {
            let (registry, (visitor, name, id)) = (registry.clone(), asked.clone());
            Box::pin(async move {
                let Some(repo) = registry.pushable_there(tx, &visitor, &name).await? else { return Ok(None) };
                begin(tx, &visitor, &repo, &id).await.map(Some)
            })
        });
        if let Some(room) = begun.await? {
            return Ok(room);
        }
        let (registry, asked) = (self.clone(), (visitor.clone(), name.clone(), id.to_owned()));
        let begun = db.write(move |tx| {
            let (registry, (visitor, name, id)) = (registry.clone(), asked.clone());
            Box::pin(async move {
                let repo = registry.pushable(tx, &visitor, &name).await?;
                begin(tx, &visitor, &repo, &id).await
            })
        });
        begun.await
    }

    /// Refuses unless this is an upload of the visitor's own in this repository, to which they may still push; the most
    /// bytes that a quota could have room for.
    ///
    /// # Errors
    /// BLOB_UPLOAD_UNKNOWN, or the visitor may not push here.
    pub async fn own_upload(&self, visitor: &Visitor, name: &Name, id: &str) -> Result<u64, RegistryError> {
        let (registry, visitor, name) = (self.clone(), visitor.clone(), name.clone());
        let id = id.to_owned();
        self.pipeline
            .db
            .read(move |tx| {
                Box::pin(async move {
                    let repo = registry.readable_for_push(tx, &visitor, &name).await?;
                    require_own(tx, &visitor, &repo, &id).await?;
                    Ok(limits::most_bytes(tx, &repo).await?)
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
        blob: StoredBlob,
    ) -> Result<Option<String>, RegistryError> {
        let (registry, visitor, name) = (self.clone(), visitor.clone(), name.clone());
        let (id, digest) = (id.to_owned(), digest.to_owned());
        self.pipeline
            .db
            .write(move |tx| {
                let (registry, visitor, name) = (registry.clone(), visitor.clone(), name.clone());
                let (id, digest, blob) = (id.clone(), digest.clone(), blob.clone());
                Box::pin(async move {
                    let repo = registry.changeable::<PushBlob>(tx, &visitor, &name).await?;
                    require_own(tx, &visitor, &repo, &id).await?;
                    let before = blobs::put(tx, &digest, &blob, visitor.now()).await?;
                    registry.show_blob(tx, &visitor, &repo, &digest).await?;
                    forget(tx, &id).await?;
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
            .from_reserve()
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

    /// Those of these uploads that are not under way: see [`garbage::ended_uploads`].
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn ended_uploads(&self, ids: &[String]) -> Result<Vec<String>, Error> {
        garbage::ended_uploads(&self.pipeline.db, ids).await
    }

    /// Ends the uploads whose time is over; their ids, so that their bytes can go.
    ///
    /// # Errors
    /// The storage refuses.
    pub async fn expire_uploads(&self) -> Result<Vec<String>, Error> {
        let now = self.pipeline.clock.now();
        self.pipeline
            .db
            .from_reserve()
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

/// Writes the row of an upload; the most bytes that a quota could have room for.
async fn begin(tx: &mut WriteTx, visitor: &Visitor, repo: &Uidp, id: &str) -> Result<u64, RegistryError> {
    require_few(tx, visitor.subject(), repo).await?;
    let sql = "INSERT INTO uploads (id, repo, identity, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";
    let params = [
        Value::from(id),
        Value::from(repo.as_str()),
        Value::from(visitor.subject()),
        Value::Int(visitor.now()),
        Value::Int(visitor.now() + UPLOAD_LIFETIME),
    ];
    tx.execute(sql, &params).await?;
    Ok(limits::most_bytes(tx, repo).await?)
}

/// Uploads that one identity may have under way in one repository: each may hold bytes that no quota counts.
const MOST_AT_ONCE: i64 = 1000;

async fn require_few(tx: &mut ReadTx, identity: &str, repo: &Uidp) -> Result<(), RegistryError> {
    let sql = "SELECT count(*) FROM (SELECT id FROM uploads WHERE repo = $1 AND identity = $2 LIMIT $3) AS few";
    let params = [Value::from(repo.as_str()), Value::from(identity), Value::Int(MOST_AT_ONCE)];
    let under_way = tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?;
    if under_way.unwrap_or_default() < MOST_AT_ONCE {
        return Ok(());
    }
    let message = format!("{MOST_AT_ONCE} uploads of yours are under way here: finish or end some of them");
    Err(RegistryError::refused(RefusalCode::TooManyRequests, message))
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
