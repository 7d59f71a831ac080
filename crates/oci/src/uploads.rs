//! Uploads over HTTP: at once, in chunks, or by linking what another repository has.

use axum::body::Body;
use axum::http::{HeaderName, Method, StatusCode, header};
use axum::response::Response;
use bowline_authn::wrap::random_bytes;
use bowline_content::{Algorithm, ContentError, Digest};
use bowline_core::hex;
use bowline_services::content::{Name, RefusalCode, RegistryError, StoredBlob, Visitor};

use crate::answer::{Answer, CONTENT_DIGEST, Refused, empty, set, wrong_verb};
use crate::{Asked, Door, body, range};

/// Most bytes of a blob.
pub(crate) const BLOB_BYTES: u64 = 1 << 40;

impl Door {
    /// Begins an upload; with `digest` the body is the whole blob, with `mount` a blob of elsewhere is linked.
    pub(crate) async fn uploads(&self, asked: &Asked, body: Body, name: &Name) -> Answer {
        if asked.method != Method::POST {
            return Err(wrong_verb("POST"));
        }
        if let Some(mount) = asked.parameter("mount")
            && let Some(digest) = self.mounted(asked, name, mount).await?
        {
            return Ok(created(name, &digest));
        }
        let digest = asked.parameter("digest").map(read_digest).transpose()?;
        let id = hex(&random_bytes::<16>());
        let room = self.registry.begin_upload(&asked.visitor, name, &id).await?;
        self.content.begin(&id)?;
        let Some(digest) = digest else { return Ok(under_way(name, &id, 0, StatusCode::ACCEPTED)) };
        let place = Place { name, id: &id, room };
        let done = self.append_and_finish(asked, body, &place, &digest).await;
        if done.is_err() {
            self.end(asked, name, &id).await?;
        }
        done
    }

    /// The digest, if the blob could be linked. A source that is no name has no blob.
    async fn mounted(&self, asked: &Asked, name: &Name, mount: &str) -> Result<Option<Digest>, Refused> {
        let digest = read_digest(mount)?;
        let from = match asked.parameter("from") {
            None => None,
            Some(from) => match Name::parse(from) {
                None => return Ok(None),
                from => from,
            },
        };
        let mounted = self.registry.mount(&asked.visitor, name, digest.as_str(), from.as_ref()).await?;
        // What has lost its bytes is to be pushed.
        let Some(blob) = mounted else { return Ok(None) };
        let is_intact = self.content.size(&digest, &blob.upload).await? == Some(blob.size);
        Ok(is_intact.then_some(digest))
    }

    /// An upload of the visitor's own: where it is, more of it, its end.
    pub(crate) async fn upload(&self, asked: &Asked, body: Body, name: &Name, id: &str) -> Answer {
        match asked.method {
            Method::GET | Method::HEAD | Method::PATCH | Method::PUT | Method::DELETE => {}
            _ => return Err(wrong_verb("GET, PATCH, PUT, DELETE")),
        }
        let room = self.registry.own_upload(&asked.visitor, name, id).await?;
        let place = Place { name, id, room };
        match asked.method {
            Method::PATCH => {
                let (_, uploaded) = self.append(asked, body, &place, Algorithm::Sha256).await?;
                Ok(under_way(name, id, uploaded, StatusCode::ACCEPTED))
            }
            Method::PUT => {
                let digest = asked.parameter("digest");
                let digest = digest.ok_or_else(|| Refused::new(RefusalCode::DigestInvalid, "digest is required"))?;
                self.append_and_finish(asked, body, &place, &read_digest(digest)?).await
            }
            Method::DELETE => {
                self.end(asked, name, id).await?;
                Ok(empty(StatusCode::NO_CONTENT))
            }
            _ => Ok(under_way(name, id, self.content.uploaded(id).await?, StatusCode::NO_CONTENT)),
        }
    }

    /// Adds a body to an upload; the visitor at its end, and the upload's size. One that is not as long as was promised
    /// leaves the upload as it was.
    async fn append(
        &self,
        asked: &Asked,
        body: Body,
        place: &Place<'_>,
        algorithm: Algorithm,
    ) -> Result<(Visitor, u64), Refused> {
        let range = match asked.header(header::CONTENT_RANGE) {
            None => None,
            Some(text) => Some(range::content_range(text).ok_or_else(|| {
                let message = "Content-Range must be the first and the last byte: <start>-<end>";
                Refused::new(RefusalCode::BlobUploadInvalid, message)
            })?),
        };
        let start = range.map(|(first, _)| first);
        let promised = range.map(|(first, last)| last - first + 1);
        let parts = body::parts(body, promised);
        let Place { name, id, room } = *place;
        match self.content.append(id, start, parts, algorithm, room.min(BLOB_BYTES)).await {
            Ok(uploaded) => Ok((asked.visitor.renewed()?, uploaded)),
            Err(ContentError::TooLarge(most)) if most == room => Err(no_room(room)),
            Err(error @ ContentError::OutOfOrder { uploaded }) => Err(Refused::from(error)
                .with_header(header::LOCATION, location(name, id))
                .with_header(header::RANGE, range_of(uploaded))),
            Err(error) => Err(error.into()),
        }
    }

    async fn append_and_finish(&self, asked: &Asked, body: Body, place: &Place<'_>, digest: &Digest) -> Answer {
        let Place { name, id, .. } = *place;
        let (visitor, _) = self.append(asked, body, place, digest.algorithm()).await?;
        let stored = match self.content.finish(id, digest).await {
            Ok(stored) => stored,
            Err(error) => {
                // The bytes are gone: they were not those that were promised.
                if matches!(error, ContentError::Mismatch { .. }) {
                    self.registry.cancel_upload(&asked.visitor, name, id).await?;
                }
                return Err(error.into());
            }
        };
        let blob = StoredBlob { size: stored.size, upload: stored.upload };
        match self.registry.finish_upload(&visitor, name, id, digest.as_str(), blob.clone()).await {
            Ok(before) => self.drop_copy(digest, before).await,
            Err(RegistryError::Refused(refusal)) => {
                // Nothing was stored, so that these bytes are nobody's. After any other failure that is not known.
                self.drop_copy(digest, Some(blob.upload)).await;
                return Err(refusal.into());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(created(name, digest))
    }

    /// Removes bytes that no blob has any more. What stays is collected: it is no failure of the request.
    pub(crate) async fn drop_copy(&self, digest: &Digest, upload: Option<String>) {
        let Some(upload) = upload else { return };
        if let Err(error) = self.content.delete(digest, &upload).await {
            tracing::warn!(%digest, upload, %error, "bytes of no blob stay until they are collected");
        }
    }

    /// Ends an upload without a blob.
    async fn end(&self, asked: &Asked, name: &Name, id: &str) -> Result<(), Refused> {
        self.content.cancel(id)?;
        match self.registry.cancel_upload(&asked.visitor, name, id).await {
            // It has ended already.
            Err(RegistryError::Refused(refusal)) if refusal.code == RefusalCode::BlobUploadUnknown => Ok(()),
            ended => Ok(ended?),
        }
    }
}

/// An upload of a repository.
#[derive(Clone, Copy)]
struct Place<'a> {
    name: &'a Name,
    id: &'a str,
    /// Bytes that a quota could have room for: more are not even stored.
    room: u64,
}

fn no_room(room: u64) -> Refused {
    let message = format!("a quota allots {room} bytes in all, fewer than this blob has; ask for a higher quota");
    Refused::new(RefusalCode::Denied, message)
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

/// The last byte that is there. The protocol has no word for none: it is told like one.
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
