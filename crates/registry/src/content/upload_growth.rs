//! How far an open upload has come, and when it ends.
//!
//! Its row says so only as far as it matters: growth is noted where a quota counts it, and else as seldom as keeps a growing
//! upload from ending, so that a push without a quota costs no write per chunk.

use bowline_core::{Error, Micros, Uidp};
use bowline_store::Value;

use super::uploads::{UPLOAD_LIFETIME, unknown};
use super::{Registry, RegistryError};
use crate::limits::{self, Room};

/// Bytes by which an upload under a quota grows before that is noted: by so much each, uploads that grow at the same time
/// may exceed the quota until they are finished.
const NOTED_AT_ONCE: u64 = 16 << 20;

/// An upload that its identity may continue with.
#[derive(Clone, Debug)]
pub struct OpenUpload {
    pub(super) id: String,
    pub(super) repo: Uidp,
    /// The digest that it is to have, once the client has said so.
    pub(super) digest: Option<String>,
    pub(super) created_at: Micros,
    pub(super) expires_at: Micros,
    pub(super) bytes: u64,
    pub(super) room: Option<Room>,
}

impl OpenUpload {
    /// Its bytes, as noted last.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that quotas leave it in all; absent without a quota.
    pub fn room(&self) -> Option<u64> {
        self.room.as_ref().map(|room| room.bytes)
    }

    /// The refusal of more bytes than that; absent without a quota.
    pub fn exceeded(&self) -> Option<RegistryError> {
        self.exceeded_quota().map(RegistryError::from)
    }

    /// The same as an error of the API.
    pub fn exceeded_quota(&self) -> Option<Error> {
        self.room.as_ref().map(Room::exceeded)
    }
}

impl Registry {
    /// Notes how far an upload has come while its body still arrives, if that is due.
    ///
    /// # Errors
    /// BLOB_UPLOAD_UNKNOWN if it has ended, or others have taken the room that a quota left it.
    pub async fn upload_grows(&self, upload: &mut OpenUpload, bytes: u64) -> Result<(), RegistryError> {
        let is_much = upload.room.is_some() && bytes.saturating_sub(upload.bytes) >= NOTED_AT_ONCE;
        if !is_much && !self.ends_soon(upload) {
            return Ok(());
        }
        self.note_upload(upload, bytes).await?;
        match &upload.room {
            Some(room) if bytes > room.bytes => Err(room.exceeded().into()),
            _ => Ok(()),
        }
    }

    /// Notes how many bytes an upload has after a body, if that is due: what is acknowledged stays for as long as an upload
    /// may rest.
    ///
    /// # Errors
    /// BLOB_UPLOAD_UNKNOWN if it has ended.
    pub async fn upload_grew(&self, upload: &mut OpenUpload, bytes: u64) -> Result<(), RegistryError> {
        let is_counted = upload.room.is_some() && bytes != upload.bytes;
        if is_counted || self.ends_soon(upload) { self.note_upload(upload, bytes).await } else { Ok(()) }
    }

    /// Puts the end of an upload off if it is near: finishing it takes time, in which what was acknowledged must not go.
    ///
    /// # Errors
    /// BLOB_UPLOAD_UNKNOWN if it has ended.
    pub async fn keep_upload(&self, upload: &mut OpenUpload) -> Result<(), RegistryError> {
        let bytes = upload.bytes;
        if self.ends_soon(upload) { self.note_upload(upload, bytes).await } else { Ok(()) }
    }

    async fn note_upload(&self, upload: &mut OpenUpload, bytes: u64) -> Result<(), RegistryError> {
        let now = self.pipeline.clock.now();
        let (id, expires_at) = (upload.id.clone(), self.end_of_upload(upload.created_at, now));
        let noted = self.pipeline.db.write_scratch(move |tx| {
            let id = id.clone();
            Box::pin(async move {
                let sql = "UPDATE uploads SET bytes = $2, expires_at = $3 WHERE id = $1 AND expires_at > $4";
                let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
                let params = [Value::from(&id), Value::Int(bytes), Value::Int(expires_at), Value::Int(now)];
                Ok::<_, RegistryError>(tx.execute(sql, &params).await?)
            })
        });
        if noted.await? == 0 {
            return Err(unknown());
        }
        (upload.bytes, upload.expires_at) = (bytes, expires_at);
        if upload.room.is_some() {
            upload.room = self.room_of(upload).await?;
        }
        Ok(())
    }

    /// What quotas leave an upload; absent without a quota.
    pub(super) async fn room_of(&self, upload: &OpenUpload) -> Result<Option<Room>, RegistryError> {
        let of = upload.clone();
        let read = self
            .pipeline
            .db
            .read(move |tx| Box::pin(async move { limits::room(tx, &of.repo, &of.id, of.digest.as_deref()).await }));
        Ok(read.await?)
    }

    /// When an upload ends that has grown now. A quarter more than an upload may rest: noted growth covers all growth of
    /// that quarter.
    pub(super) fn end_of_upload(&self, created_at: Micros, now: Micros) -> Micros {
        let idle = self.pipeline.settings.uploads.idle;
        (now + idle + idle / 4).min(created_at + UPLOAD_LIFETIME)
    }

    /// Whether an upload that grows now would end sooner than one may rest.
    fn ends_soon(&self, upload: &OpenUpload) -> bool {
        let rests_until = self.pipeline.clock.now() + self.pipeline.settings.uploads.idle;
        upload.expires_at < rests_until.min(upload.created_at + UPLOAD_LIFETIME)
    }
}
