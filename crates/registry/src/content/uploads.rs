//! Uploads under way: who began one alone continues with it.
//!
//! An open upload takes room: it counts against quotas and against the limits of its identity and its organization, and it
//! ends when it does not grow, see [`super::upload_growth`].

use bowline_contract::bowline::registry::v1::rpc::content::PushBlob;
use bowline_core::{Error, Micros, UidRange, Uidp};
use bowline_pipeline::UploadLimits;
use bowline_store::{ReadTx, Row, Value, WriteTx};
use tracing::Instrument as _;

use super::upload_growth::OpenUpload;
use super::{Name, RefusalCode, Registry, RegistryClient, RegistryError, StoredBlob, blobs, garbage};
use crate::limits::{self, Room};

/// How long an upload may take.
pub const UPLOAD_LIFETIME: Micros = 24 * 3600 * 1_000_000;

/// The identity of what is fetched from upstreams: no client has it, so that none continues with the upload.
pub(super) const NO_IDENTITY: &str = "";

/// Uploads that end in one transaction.
const AT_ONCE: i64 = 500;

impl Registry {
    /// Begins an upload under an id that was drawn at random.
    ///
    /// A client that goes away meanwhile does not keep the limits from being checked.
    ///
    /// # Errors
    /// The client may not push here, or too many uploads are open.
    pub async fn begin_upload(
        &self,
        client: &RegistryClient,
        name: &Name,
        id: &str,
        digest: Option<&str>,
    ) -> Result<OpenUpload, RegistryError> {
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let (id, digest) = (id.to_owned(), digest.map(str::to_owned));
        let beginning = async move { registry.begin_to_the_end(client, name, id, digest).await };
        match tokio::spawn(beginning.in_current_span()).await {
            Ok(begun) => begun,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Error::unavailable("the server is stopping: begin the upload again").into()),
        }
    }

    /// Writes the row of an upload and removes it where the limits refuse it.
    ///
    /// An upload that a failing machine forgets is begun again, so its row waits for no disk; a repository that a push
    /// makes does. The limits are read once the row is there, in a snapshot: uploads that begin at the same time do not
    /// make each other's transactions try again.
    async fn begin_to_the_end(
        &self,
        client: RegistryClient,
        name: Name,
        id: String,
        digest: Option<String>,
    ) -> Result<OpenUpload, RegistryError> {
        let db = &self.pipeline.db;
        let (registry, asked) = (self.clone(), (client.clone(), name.clone(), id.clone()));
        let begun = db.write_scratch(move |tx| {
            let (registry, (client, name, id)) = (registry.clone(), asked.clone());
            Box::pin(async move {
                let Some(repo) = registry.pushable_there(tx, &client, &name).await? else {
                    return Ok::<_, RegistryError>(None);
                };
                Ok(Some(registry.insert_upload(tx, client.subject(), client.now(), repo, id).await?))
            })
        });
        let begun = if let Some(begun) = begun.await? {
            begun
        } else {
            let (registry, asked) = (self.clone(), (client.clone(), name, id.clone()));
            let begun = db.write(move |tx| {
                let (registry, (client, name, id)) = (registry.clone(), asked.clone());
                Box::pin(async move {
                    let repo = registry.pushable(tx, &client, &name).await?;
                    let begun = registry.insert_upload(tx, client.subject(), client.now(), repo, id).await?;
                    // Before anything is committed: an upload that is refused makes no repository.
                    let limits = registry.pipeline.settings.uploads;
                    require_few(tx, limits, client.subject(), &begun.repo).await?;
                    Ok::<_, RegistryError>(begun)
                })
            });
            begun.await?
        };
        let begun = OpenUpload { digest, ..begun };
        match self.within_limits(&client, &begun).await {
            Ok(room) => Ok(OpenUpload { room, ..begun }),
            Err(error) => {
                self.forget_upload(&id).await?;
                Err(error)
            }
        }
    }

    /// Writes the row of an upload.
    pub(super) async fn insert_upload(
        &self,
        tx: &mut WriteTx,
        identity: &str,
        created_at: Micros,
        repo: Uidp,
        id: String,
    ) -> Result<OpenUpload, Error> {
        let expires_at = self.end_of_upload(created_at, created_at);
        let sql = "INSERT INTO uploads (id, repo, identity, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";
        let params = [
            Value::from(&id),
            Value::from(repo.as_str()),
            Value::from(identity),
            Value::Int(created_at),
            Value::Int(expires_at),
        ];
        tx.execute(sql, &params).await?;
        Ok(OpenUpload { id, repo, digest: None, created_at, expires_at, bytes: 0, room: None })
    }

    /// What quotas leave an upload that has just begun, unless too many are open with it.
    async fn within_limits(&self, client: &RegistryClient, upload: &OpenUpload) -> Result<Option<Room>, RegistryError> {
        let limits = self.pipeline.settings.uploads;
        let (identity, upload) = (client.subject().to_owned(), upload.clone());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                require_few(tx, limits, &identity, &upload.repo).await?;
                Ok(limits::room(tx, &upload.repo, &upload.id, upload.digest.as_deref()).await?)
            })
        });
        read.await
    }

    /// The client's own upload in this repository, to which they may still push; `digest` is that of a
    /// request that finishes it.
    ///
    /// # Errors
    /// BLOB_UPLOAD_UNKNOWN, or the client may not push here.
    pub async fn own_upload(
        &self,
        client: &RegistryClient,
        name: &Name,
        id: &str,
        digest: Option<&str>,
    ) -> Result<OpenUpload, RegistryError> {
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let (id, digest) = (id.to_owned(), digest.map(str::to_owned));
        self.pipeline
            .db
            .read(move |tx| {
                Box::pin(async move {
                    let repo = registry.readable_for_push(tx, &client, &name).await?;
                    let upload = require_own(tx, &client, &repo, &id).await?;
                    let room = limits::room(tx, &repo, &id, digest.as_deref()).await?;
                    Ok(OpenUpload { digest, room, ..upload })
                })
            })
            .await
    }

    pub(super) async fn forget_upload(&self, id: &str) -> Result<(), RegistryError> {
        let id = id.to_owned();
        let written = self.pipeline.db.write_scratch(move |tx| {
            let id = id.clone();
            Box::pin(async move { Ok(forget(tx, &id).await?) })
        });
        written.await
    }

    /// Links the blob that an upload became, whose bytes are durable. Returns the upload that had brought the
    /// blob's former bytes, if any, so that the caller removes them.
    ///
    /// # Errors
    /// BLOB_UPLOAD_UNKNOWN, the client may not push here, or a quota has no room for it.
    pub async fn finish_upload(
        &self,
        client: &RegistryClient,
        name: &Name,
        id: &str,
        digest: &str,
        blob: StoredBlob,
    ) -> Result<Option<String>, RegistryError> {
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let (id, digest) = (id.to_owned(), digest.to_owned());
        self.pipeline
            .db
            .write(move |tx| {
                let (registry, client, name) = (registry.clone(), client.clone(), name.clone());
                let (id, digest, blob) = (id.clone(), digest.clone(), blob.clone());
                Box::pin(async move {
                    let repo = registry.changeable::<PushBlob>(tx, &client, &name).await?;
                    require_own(tx, &client, &repo, &id).await?;
                    let before = blobs::put(tx, &digest, &blob, client.now()).await?;
                    registry.show_blob(tx, &client, &repo, &digest).await?;
                    forget(tx, &id).await?;
                    Ok(before)
                })
            })
            .await
    }

    /// Ends an upload without a blob.
    ///
    /// # Errors
    /// BLOB_UPLOAD_UNKNOWN, or the client may not push here.
    pub async fn cancel_upload(&self, client: &RegistryClient, name: &Name, id: &str) -> Result<(), RegistryError> {
        let (registry, client, name, id) = (self.clone(), client.clone(), name.clone(), id.to_owned());
        self.pipeline
            .db
            .from_reserve()
            .write(move |tx| {
                let (registry, client, name, id) = (registry.clone(), client.clone(), name.clone(), id.clone());
                Box::pin(async move {
                    let repo = registry.changeable::<PushBlob>(tx, &client, &name).await?;
                    require_own(tx, &client, &repo, &id).await?;
                    Ok(forget(tx, &id).await?)
                })
            })
            .await
    }

    /// Those of these uploads that are not under way: see [`garbage::ended_uploads`].
    pub async fn ended_uploads(&self, ids: &[String]) -> Result<Vec<String>, Error> {
        garbage::ended_uploads(&self.pipeline.db, ids).await
    }

    /// Ends the uploads whose time is over; their ids, so that their bytes can go.
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

/// Refuses if more uploads are open than the limits allow, the one that has just begun among them. Each count stops at one
/// beyond its limit. What is fetched from upstreams is no push of an identity, and does not count.
async fn require_few(tx: &mut ReadTx, limits: UploadLimits, identity: &str, repo: &Uidp) -> Result<(), RegistryError> {
    match too_many(tx, limits, identity, repo).await? {
        Some(message) => Err(RegistryError::refused(RefusalCode::TooManyRequests, message)),
        None => Ok(()),
    }
}

/// Why no more uploads may be open; absent if they may.
pub(super) async fn too_many(
    tx: &mut ReadTx,
    limits: UploadLimits,
    identity: &str,
    repo: &Uidp,
) -> Result<Option<String>, Error> {
    let UidRange { lower, upper } = UidRange::subtree(repo.root_str());
    let sql = "SELECT (SELECT count(*) FROM (SELECT id FROM uploads WHERE identity = $1 LIMIT $2) AS own),
                      (SELECT count(*) FROM (SELECT id FROM uploads WHERE repo >= $3 AND repo < $4 AND identity <> ''
                                             LIMIT $5) AS others)";
    let (per_identity, per_organization) = (i64::from(limits.per_identity), i64::from(limits.per_organization));
    let params = [
        Value::from(identity),
        Value::Int(per_identity + 1),
        Value::from(&lower),
        Value::from(&upper),
        Value::Int(per_organization + 1),
    ];
    let counts = tx.query_opt(sql, &params, |row| Ok::<_, Error>((row.int(0)?, row.int(1)?))).await?;
    let (of_identity, of_organization) = counts.unwrap_or_default();
    let too_many = match () {
        () if of_identity > per_identity => format!("this identity has {per_identity} uploads open"),
        () if of_organization > per_organization => format!("this organization has {per_organization} uploads open"),
        () => return Ok(None),
    };
    let minutes = limits.idle / 60_000_000;
    Ok(Some(format!(
        "{too_many}, the most there may be: finish or cancel some; one that does not grow ends after {minutes} minutes"
    )))
}

async fn require_own(
    tx: &mut ReadTx,
    client: &RegistryClient,
    repo: &Uidp,
    id: &str,
) -> Result<OpenUpload, RegistryError> {
    let sql = "SELECT created_at, expires_at, bytes FROM uploads
               WHERE id = $1 AND repo = $2 AND identity = $3 AND expires_at > $4";
    let params = [Value::from(id), Value::from(repo.as_str()), Value::from(client.subject()), Value::Int(client.now())];
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(OpenUpload {
            id: id.to_owned(),
            repo: repo.clone(),
            digest: None,
            created_at: row.int(0)?,
            expires_at: row.int(1)?,
            bytes: row.int(2)?.unsigned_abs(),
            room: None,
        })
    };
    tx.query_opt(sql, &params, read).await?.ok_or_else(unknown)
}

pub(super) fn unknown() -> RegistryError {
    RegistryError::refused(RefusalCode::BlobUploadUnknown, "there is no such upload of yours: begin a new one")
}

pub(super) async fn forget(tx: &mut WriteTx, id: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM uploads WHERE id = $1", &[Value::from(id)]).await?;
    Ok(())
}
