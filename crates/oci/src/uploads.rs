//! Blob uploads: in one request, in chunks, or by mounting a blob of another repository.

use axum::body::Body;
use axum::http::{HeaderName, Method, StatusCode, header};
use axum::response::Response;
use bowline_authn::crypto::random_bytes;
use bowline_content::{Algorithm, ContentError, Digest};
use bowline_core::hex;
use bowline_fronts::body::{BodyError, parts};
use bowline_fronts::range;
use bowline_registry::content::{Name, OpenUpload, RefusalCode, RegistryClient, RegistryError, StoredBlob};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::Mutex;

use crate::answer::{Answer, CONTENT_DIGEST, Refused, empty, set, wrong_verb};
use crate::{Distribution, DistributionRequest};

/// Maximum bytes of a blob.
pub(crate) const BLOB_BYTES: u64 = 1 << 40;

impl Distribution {
    /// Begins an upload. With `digest` the body is the whole blob; with `mount` a blob of another repository
    /// is linked.
    pub(crate) async fn uploads(&self, request: &DistributionRequest, body: Body, name: &Name) -> Answer {
        if request.method != Method::POST {
            return Err(wrong_verb("POST"));
        }
        if let Some(mount) = request.parameter("mount")
            && let Some(digest) = self.mounted(request, name, mount).await?
        {
            return Ok(created(name, &digest));
        }
        let digest = request.parameter("digest").map(read_digest).transpose()?;
        let id = hex(&random_bytes::<16>());
        let upload =
            self.registry.begin_upload(&request.client, name, &id, digest.as_ref().map(Digest::as_str)).await?;
        self.content.begin(&id)?;
        let Some(digest) = digest else { return Ok(under_way(name, &id, 0, StatusCode::ACCEPTED)) };
        let done = self.append_and_finish(request, body, UploadTarget { name, id: &id, upload }, &digest).await;
        if done.is_err() {
            self.end(request, name, &id).await?;
        }
        done
    }

    /// Mounts a blob and returns its digest; absent if it cannot be mounted. A `from` that is not a name has
    /// no blob.
    async fn mounted(
        &self,
        request: &DistributionRequest,
        name: &Name,
        mount: &str,
    ) -> Result<Option<Digest>, Refused> {
        let digest = read_digest(mount)?;
        let from = match request.parameter("from") {
            None => None,
            Some(from) => match Name::parse(from) {
                None => return Ok(None),
                from => from,
            },
        };
        let mounted = self.registry.mount(&request.client, name, digest.as_str(), from.as_ref()).await?;
        // A blob that has lost its bytes must be pushed again.
        let Some(blob) = mounted else { return Ok(None) };
        let is_intact = self.content.size(&digest, &blob.upload).await? == Some(blob.size);
        Ok(is_intact.then_some(digest))
    }

    /// Serves an open upload of the client: its status, more bytes, its end.
    pub(crate) async fn upload(&self, request: &DistributionRequest, body: Body, name: &Name, id: &str) -> Answer {
        match request.method {
            Method::GET | Method::HEAD | Method::PATCH | Method::PUT | Method::DELETE => {}
            _ => return Err(wrong_verb("GET, PATCH, PUT, DELETE")),
        }
        let digest = request.parameter("digest").filter(|_| request.method == Method::PUT);
        let upload = self.registry.own_upload(&request.client, name, id, digest).await?;
        let mut target = UploadTarget { name, id, upload };
        match request.method {
            Method::PATCH => {
                let (_, uploaded) = self.append(request, body, &mut target, Algorithm::Sha256).await?;
                self.registry.upload_grew(&mut target.upload, uploaded).await?;
                Ok(under_way(name, id, uploaded, StatusCode::ACCEPTED))
            }
            Method::PUT => {
                let digest = digest.ok_or_else(|| Refused::new(RefusalCode::DigestInvalid, "digest is required"))?;
                self.append_and_finish(request, body, target, &read_digest(digest)?).await
            }
            Method::DELETE => {
                self.end(request, name, id).await?;
                Ok(empty(StatusCode::NO_CONTENT))
            }
            _ => Ok(under_way(name, id, self.content.uploaded(id).await?, StatusCode::NO_CONTENT)),
        }
    }

    /// Appends a body to an upload; returns the client as authenticated again after the body, and the
    /// upload's size in bytes. A body of another length than promised leaves the upload unchanged.
    async fn append(
        &self,
        request: &DistributionRequest,
        body: Body,
        target: &mut UploadTarget<'_>,
        algorithm: Algorithm,
    ) -> Result<(RegistryClient, u64), Refused> {
        let range = match request.header(header::CONTENT_RANGE) {
            None => None,
            Some(text) => Some(range::content_range(text).ok_or_else(|| {
                let message = "Content-Range must be the first and the last byte: <start>-<end>";
                Refused::new(RefusalCode::BlobUploadInvalid, message)
            })?),
        };
        let start = range.map(|(first, _)| first);
        let promised = range.map(|(first, last)| last - first + 1);
        let UploadTarget { name, id, upload } = target;
        let (before, room) = (upload.bytes(), upload.room());
        let growth = Mutex::new(Growth::of(upload));
        let parts = self.noted(parts(body, promised), &growth);
        let limit = room.unwrap_or(BLOB_BYTES).min(BLOB_BYTES);
        let appended = self.content.append(id, start, parts, algorithm, limit).await;
        let Growth { upload, refusal, .. } = growth.into_inner();
        if appended.is_err() && upload.bytes() != before {
            // The appended bytes were removed, so the recorded size is reset. If the upload has ended
            // meanwhile, it no longer counts.
            if let Err(error) = self.registry.upload_grew(upload, before).await {
                tracing::info!(id, ?error, "the size of an upload that was taken back is not noted");
            }
        }
        match (appended, refusal) {
            (Ok(uploaded), _) => Ok((request.client.renewed()?, uploaded)),
            (Err(_), Some(refusal)) => {
                // An expired token is reported first: without it the caller must not learn of the upload.
                request.client.renewed()?;
                Err(refusal.into())
            }
            (Err(ContentError::TooLarge(most)), _) if Some(most) == room => {
                Err(upload.exceeded().map_or_else(|| ContentError::TooLarge(most).into(), Refused::from))
            }
            (Err(error @ ContentError::OutOfOrder { uploaded }), _) => Err(Refused::from(error)
                .with_header(header::LOCATION, location(name, id))
                .with_header(header::RANGE, range_of(uploaded))),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Records the size of the upload while it grows; ends the body once it may not grow further.
    pub(crate) fn noted<'a>(
        &'a self,
        parts: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'a,
        growth: &'a Mutex<Growth<'_>>,
    ) -> impl Stream<Item = Result<Bytes, BodyError>> + Send + 'a {
        parts.then(async move |part| {
            let part = part?;
            let mut growth = growth.lock().await;
            growth.size += part.len() as u64;
            let size = growth.size;
            match self.registry.upload_grows(growth.upload, size).await {
                Ok(()) => Ok(part),
                Err(refusal) => {
                    growth.refusal = Some(refusal);
                    Err(BodyError)
                }
            }
        })
    }

    async fn append_and_finish(
        &self,
        request: &DistributionRequest,
        body: Body,
        mut target: UploadTarget<'_>,
        digest: &Digest,
    ) -> Answer {
        let (client, _) = self.append(request, body, &mut target, digest.algorithm()).await?;
        self.registry.keep_upload(&mut target.upload).await?;
        let UploadTarget { name, id, .. } = target;
        let stored = match self.content.finish(id, digest).await {
            Ok(stored) => stored,
            Err(error) => {
                // The bytes did not have the promised digest, and were removed.
                if matches!(error, ContentError::Mismatch { .. }) {
                    self.registry.cancel_upload(&request.client, name, id).await?;
                }
                return Err(error.into());
            }
        };
        let blob = StoredBlob { size: stored.size, upload: stored.upload };
        match self.registry.finish_upload(&client, name, id, digest.as_str(), blob.clone()).await {
            Ok(before) => self.drop_location(digest, before).await,
            Err(RegistryError::Refused(refusal)) => {
                // No row was written, so no blob has these bytes. After any other failure the outcome is
                // unknown.
                self.drop_location(digest, Some(blob.upload)).await;
                return Err(refusal.into());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(created(name, digest))
    }

    /// Removes bytes that no blob has any more. A failure is only logged: garbage collection removes them
    /// later.
    pub(crate) async fn drop_location(&self, digest: &Digest, upload: Option<String>) {
        let Some(upload) = upload else { return };
        if let Err(error) = self.content.delete(digest, &upload).await {
            tracing::warn!(%digest, upload, %error, "bytes of no blob stay until they are collected");
        }
    }

    /// Ends an upload without a blob.
    async fn end(&self, request: &DistributionRequest, name: &Name, id: &str) -> Result<(), Refused> {
        self.content.cancel(id)?;
        match self.registry.cancel_upload(&request.client, name, id).await {
            // It has ended already.
            Err(RegistryError::Refused(refusal)) if refusal.code == RefusalCode::BlobUploadUnknown => Ok(()),
            ended => Ok(ended?),
        }
    }
}

/// An upload of a repository.
struct UploadTarget<'a> {
    name: &'a Name,
    id: &'a str,
    upload: OpenUpload,
}

/// An upload while a body is added to it.
pub(crate) struct Growth<'a> {
    upload: &'a mut OpenUpload,
    /// Bytes before the body, and what has arrived of it.
    size: u64,
    /// Why the body was ended.
    pub(crate) refusal: Option<RegistryError>,
}

impl Growth<'_> {
    pub(crate) fn of(upload: &mut OpenUpload) -> Growth<'_> {
        Growth { size: upload.bytes(), upload, refusal: None }
    }
}

fn under_way(name: &Name, id: &str, uploaded: u64, status: StatusCode) -> Response {
    let mut response = empty(status);
    set(&mut response, header::LOCATION, &location(name, id));
    set(&mut response, header::RANGE, &range_of(uploaded));
    set(&mut response, HeaderName::from_static("docker-upload-uuid"), id);
    response
}

fn location(name: &Name, id: &str) -> String {
    format!("/v2/{name}/blobs/uploads/{id}")
}

/// The `Range` header of an upload. The protocol cannot express zero bytes, so `0-0` also stands for them.
fn range_of(uploaded: u64) -> String {
    format!("0-{}", uploaded.saturating_sub(1))
}

fn read_digest(text: &str) -> Result<Digest, Refused> {
    Digest::parse(text).map_err(|error| Refused::new(RefusalCode::DigestInvalid, format!("the digest {error}")))
}

fn created(name: &Name, digest: &Digest) -> Response {
    let mut response = empty(StatusCode::CREATED);
    set(&mut response, header::LOCATION, &format!("/v2/{name}/blobs/{digest}"));
    set(&mut response, CONTENT_DIGEST, digest.as_str());
    response
}
