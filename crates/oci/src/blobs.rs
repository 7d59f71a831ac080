//! Blobs over HTTP: whole, or in parts, from here or while they arrive from an upstream.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use bowline_content::{Digest, HELD_BACK, Reader};
use bowline_fronts::range::{self, ByteRange};
use bowline_registry::content::{Name, RefusalCode, StoredBlob, UpstreamBlob};
use futures_util::StreamExt as _;

use crate::answer::{Answer, CONTENT_DIGEST, Refused, empty, set, wrong_verb};
use crate::pull_through::AvailableBlob;
use crate::{Distribution, DistributionRequest};

/// The response to a pull of a blob: which bytes of it, and how it says so.
struct BlobRange {
    status: StatusCode,
    start: u64,
    length: u64,
    size: u64,
}

impl Distribution {
    pub(crate) async fn blob(self: &Arc<Self>, request: &DistributionRequest, name: &Name, digest: &Digest) -> Answer {
        match request.method {
            Method::GET | Method::HEAD => self.pull_blob(request, name, digest).await,
            Method::DELETE => {
                self.registry.delete_blob(&request.client, name, digest.as_str()).await?;
                Ok(empty(StatusCode::ACCEPTED))
            }
            _ => Err(wrong_verb("GET, HEAD, DELETE")),
        }
    }

    async fn pull_blob(self: &Arc<Self>, request: &DistributionRequest, name: &Name, digest: &Digest) -> Answer {
        let available = self.available_blob(request, name, digest).await?;
        let mut response = if range::is_not_modified(request.header(header::IF_NONE_MATCH), digest.as_str()) {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            match available {
                AvailableBlob::Here(blob) => self.blob_body(request, name, digest, blob).await?,
                AvailableBlob::Upstream(blob) => self.cold_blob(request, name, digest, blob).await?,
            }
        };
        set(&mut response, CONTENT_DIGEST, digest.as_str());
        set(&mut response, header::ETAG, &format!("\"{digest}\""));
        set(&mut response, header::ACCEPT_RANGES, "bytes");
        Ok(response)
    }

    /// A blob that comes from an upstream, as its bytes arrive. A HEAD, and a request for few bytes, wait for the whole
    /// blob: a push may name next what a HEAD has found, and the last bytes wait for the verification anyway.
    async fn cold_blob(
        self: &Arc<Self>,
        request: &DistributionRequest,
        name: &Name,
        digest: &Digest,
        blob: UpstreamBlob,
    ) -> Answer {
        let range = BlobRange::of(request, digest, blob.size)?;
        let mut following = self.follow(request, name, digest, blob)?;
        let follower = if request.method == Method::HEAD || range.length <= HELD_BACK {
            following.stored().await?;
            None
        } else {
            following.begun().await?.map(|follower| (follower, following))
        };
        let Some((follower, following)) = follower else {
            let stored = self.registry.pull_blob(&request.client, name, digest.as_str()).await?;
            return self.blob_body(request, name, digest, stored).await;
        };
        let parts = follower.stream(range.start, range.length);
        // The fetch continues while a response is being sent.
        let parts = parts.inspect(move |_| {
            let _ = &following;
        });
        Ok(range.response(Body::from_stream(parts)))
    }

    async fn blob_body(&self, request: &DistributionRequest, name: &Name, digest: &Digest, blob: StoredBlob) -> Answer {
        let (reader, size) = self.reader(request, name, digest, blob).await?;
        if request.method == Method::HEAD {
            self.registry.keep_blob(&request.client, name, digest.as_str()).await?;
        }
        let range = BlobRange::of(request, digest, size)?;
        let body = match request.method {
            Method::GET => body(reader, range.start, range.length).await?,
            _ => Body::empty(),
        };
        Ok(range.response(body))
    }

    /// The bytes of a blob, and their number. If they are missing, the response is that of an unknown blob:
    /// the client pushes it again, which repairs it.
    async fn reader(
        &self,
        request: &DistributionRequest,
        name: &Name,
        digest: &Digest,
        blob: StoredBlob,
    ) -> Result<(Reader, u64), Refused> {
        if let Some(reader) = self.intact(digest, &blob).await? {
            return Ok((reader, blob.size));
        }
        // Another push may just have brought them again.
        let now = self.registry.pull_blob(&request.client, name, digest.as_str()).await?;
        if let Some(reader) = self.intact(digest, &now).await? {
            return Ok((reader, now.size));
        }
        tracing::error!(%digest, upload = now.upload, size = now.size, "the bytes of a blob are missing or too few");
        let message = format!("the bytes of the blob {digest} are lost: push it again");
        Err(Refused::new(RefusalCode::BlobUnknown, message))
    }

    /// The bytes of a blob, absent unless all of them are there.
    pub(crate) async fn intact(&self, digest: &Digest, blob: &StoredBlob) -> Result<Option<Reader>, Refused> {
        Ok(self.content.read(digest, &blob.upload).await?.filter(|reader| reader.size() == blob.size))
    }
}

impl BlobRange {
    /// The bytes that a request wants of a blob of this size.
    fn of(request: &DistributionRequest, digest: &Digest, size: u64) -> Result<BlobRange, Refused> {
        let if_range = request.header(header::IF_RANGE);
        let is_same = if_range.is_none_or(|tag| range::matches_etag(tag, digest.as_str()));
        let range = request.header(header::RANGE).filter(|_| is_same && request.method == Method::GET);
        let (status, start, length) = match range::parse(range, size) {
            ByteRange::Whole => (StatusCode::OK, 0, size),
            ByteRange::Part { start, length } => (StatusCode::PARTIAL_CONTENT, start, length),
            ByteRange::Unsatisfiable => {
                let refused = Refused::new(RefusalCode::SizeInvalid, format!("the blob has {size} bytes"));
                let refused = refused.with_status(StatusCode::RANGE_NOT_SATISFIABLE);
                return Err(refused.with_header(header::CONTENT_RANGE, format!("bytes */{size}")));
            }
        };
        Ok(BlobRange { status, start, length, size })
    }

    fn response(&self, body: Body) -> Response {
        let BlobRange { status, start, length, size } = *self;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        set(&mut response, header::CONTENT_TYPE, "application/octet-stream");
        set(&mut response, header::CONTENT_LENGTH, &length.to_string());
        if status == StatusCode::PARTIAL_CONTENT {
            let last = start + length - 1;
            set(&mut response, header::CONTENT_RANGE, &format!("bytes {start}-{last}/{size}"));
        }
        response
    }
}

async fn body(reader: Reader, start: u64, length: u64) -> Result<Body, Refused> {
    if Reader::is_small(length) {
        return Ok(Body::from(reader.read_small(start, length).await?));
    }
    Ok(Body::from_stream(reader.stream(start, length)))
}
