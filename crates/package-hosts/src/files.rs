//! Bytes of files, whole or in part.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::Response;
use bowline_content::{Digest, Reader};
use bowline_core::Error;
use bowline_fronts::range::{self, ByteRange};
use bowline_libraries::hosting::File;

use crate::PackageHosts;
use crate::answers::{Refused, set, typed};
use crate::file_fetches::FileSource;

impl PackageHosts {
    /// The bytes of a file, to a GET or a HEAD.
    pub(crate) async fn file(
        &self,
        method: &Method,
        headers: &HeaderMap,
        source: FileSource,
    ) -> Result<Response, Refused> {
        match source {
            FileSource::Stored(file) => self.stored_file(method, headers, &file).await,
            FileSource::Arriving { digest, size, follower } => {
                let body = Body::from_stream(follower.stream(0, size));
                let mut response = typed(StatusCode::OK, "application/octet-stream", body);
                set(&mut response, header::CONTENT_LENGTH, &size.to_string());
                Ok(described(response, &digest))
            }
        }
    }

    async fn stored_file(&self, method: &Method, headers: &HeaderMap, file: &File) -> Result<Response, Refused> {
        let header = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let response = if range::is_not_modified(header(header::IF_NONE_MATCH), &file.digest) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let is_same = header(header::IF_RANGE).is_none_or(|tag| range::matches_etag(tag, &file.digest));
            let wanted = header(header::RANGE).filter(|_| is_same && *method == Method::GET);
            self.part(file, range::parse(wanted, file.blob.size), *method == Method::GET).await?
        };
        Ok(described(response, &file.digest))
    }

    async fn part(&self, file: &File, range: ByteRange, has_body: bool) -> Result<Response, Refused> {
        let size = file.blob.size;
        let (status, start, length) = match range {
            ByteRange::Whole => (StatusCode::OK, 0, size),
            ByteRange::Part { start, length } => (StatusCode::PARTIAL_CONTENT, start, length),
            ByteRange::Unsatisfiable => {
                let refused = Refused::new(StatusCode::RANGE_NOT_SATISFIABLE, format!("the file has {size} bytes"));
                return Err(refused.with_header(header::CONTENT_RANGE, format!("bytes */{size}")));
            }
        };
        let reader = self.reader(file).await?;
        let body = match has_body {
            false => Body::empty(),
            true if Reader::is_small(length) => Body::from(reader.read_small(start, length).await?),
            true => Body::from_stream(reader.stream(start, length)),
        };
        let mut response = typed(status, "application/octet-stream", body);
        set(&mut response, header::CONTENT_LENGTH, &length.to_string());
        if status == StatusCode::PARTIAL_CONTENT {
            set(&mut response, header::CONTENT_RANGE, &format!("bytes {start}-{}/{size}", start + length - 1));
        }
        Ok(response)
    }

    /// The bytes of a file, all of which must be there.
    async fn reader(&self, file: &File) -> Result<Reader, Refused> {
        let digest = Digest::parse(&file.digest).map_err(|error| Error::internal(error.to_string()))?;
        let reader = self.content.read(&digest, &file.blob.upload).await?;
        reader.filter(|reader| reader.size() == file.blob.size).ok_or_else(|| {
            let (digest, upload, size) = (&file.digest, &file.blob.upload, file.blob.size);
            tracing::error!(digest, upload, size, "the bytes of a package file are missing or too few");
            Error::internal(format!("the bytes of {digest} are missing or too few")).into()
        })
    }
}

/// A response with the headers of every file.
fn described(mut response: Response, digest: &str) -> Response {
    set(&mut response, header::ETAG, &format!("\"{digest}\""));
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    // A policy may withhold it tomorrow: clients ask again, and get a 304.
    set(&mut response, header::CACHE_CONTROL, "private, no-cache");
    response
}
