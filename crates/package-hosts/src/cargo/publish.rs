//! Publishing: what cargo says of a version, and its archive, in one body. Both have their lengths before them.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bowline_authn::crypto::random_bytes;
use bowline_core::hex;
use bowline_fronts::body::{BodyError, parts};
use bowline_libraries::Language;
use bowline_libraries::hosting::{
    Cargo, Checksums, HostClient, NewFile, NewManifest, Published, Publishing, crate_file,
};
use bowline_packages::{CARGO_ARCHIVE, MAX_METADATA, crate_archive};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::json;

use super::answered;
use super::index::NewVersion;
use super::target::is_version;
use crate::PackageHosts;
use crate::answers::Refused;
use crate::storing::Received;

/// Bytes of a length.
const LENGTH: usize = 4;

/// What is before the archive, and what is left of the body.
struct Head<S> {
    version: NewVersion,
    /// Bytes of the archive.
    size: u64,
    rest: S,
}

impl PackageHosts {
    /// Publishes a version of a crate.
    pub(super) async fn put_crate(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        body: Body,
    ) -> Result<Response, Refused> {
        let id = hex(&random_bytes::<16>());
        let mut publishing = self.hosting.begin_publishing::<Cargo>(client, scope, &id).await?;
        let published = self.receive_crate(client, &mut publishing, &id, body).await;
        if !matches!(published, Ok(true)) {
            self.abandon(&id).await;
        }
        published?;
        Ok(answered(&json!({ "warnings": { "invalid_categories": [], "invalid_badges": [], "other": [] } })))
    }

    /// Stores and publishes an archive; false if it is there with the same bytes.
    async fn receive_crate(
        &self,
        client: &HostClient,
        publishing: &mut Publishing,
        id: &str,
        body: Body,
    ) -> Result<bool, Refused> {
        let Head { version, size, rest } = head(parts(body, None)).await?;
        let received = self.receive_whole(client, publishing, id, (Body::from_stream(rest), size)).await?;
        let published = if received.stored.size == size {
            self.publish_crate(publishing, &version, &received).await
        } else {
            Err(Refused::bad("the body ends before the archive does: publish again"))
        };
        self.settled(&received, published).await
    }

    async fn publish_crate(
        &self,
        publishing: &Publishing,
        version: &NewVersion,
        received: &Received,
    ) -> Result<Published, Refused> {
        let inspected = self.inspect((&received.digest, &received.stored), crate_archive).await?;
        let archive = inspected.map_err(|refusal| Refused::bad(format!("the archive {refusal}")))?;
        if (&archive.name, &archive.version) != (&version.name, &version.version) {
            let (name, version) = (&archive.name, &archive.version);
            return Err(Refused::bad(format!("the archive is {name} {version}, which is not what was announced")));
        }
        let manifest = NewManifest {
            json: version.line((&archive.links, &archive.rust_version)).to_string(),
            sha1: received.checksums.sha1.clone(),
            sha512: received.checksums.sha512.clone(),
            file_count: 0,
            unpacked_bytes: 0,
            tag: None,
        };
        let file = NewFile {
            name: crate_file(&version.name, &version.version),
            package: Language::Cargo.normalized(&version.name),
            version: version.version.clone(),
            license: archive.license,
            requires_python: String::new(),
            content: received.content.clone(),
            metadata: None,
            manifest: Some(manifest),
            requirements: None,
            checksums: Checksums::default(),
            pom: None,
            attestations: Vec::new(),
        };
        Ok(self.hosting.publish::<Cargo>(&received.client, publishing, &file).await?)
    }
}

/// Reads what is before the archive.
async fn head(
    parts: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
) -> Result<Head<impl Stream<Item = Result<Bytes, BodyError>> + Send>, Refused> {
    let (mut parts, mut read) = (Box::pin(parts), BytesMut::new());
    let length = number(&taken(&mut parts, &mut read, LENGTH).await?);
    if u64::from(length) > MAX_METADATA {
        let text = format!("what is said of the version has {length} bytes, and {MAX_METADATA} are possible");
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    let text = taken(&mut parts, &mut read, length as usize).await?;
    let version: NewVersion = serde_json::from_slice(&text)
        .map_err(|error| Refused::bad(format!("what is said of the version does not parse: {error}")))?;
    if let Err(wrong) = Language::Cargo.validate_name(&version.name) {
        return Err(Refused::bad(format!("the name {:?} {wrong}", version.name)));
    }
    if !is_version(&version.version) {
        return Err(Refused::bad(format!("{:?} is no version of a crate", version.version)));
    }
    version.validate().map_err(|wrong| Refused::bad(format!("the version {wrong}")))?;
    let size = u64::from(number(&taken(&mut parts, &mut read, LENGTH).await?));
    if size > CARGO_ARCHIVE {
        let text = format!("the archive has {size} bytes, and {CARGO_ARCHIVE} are possible");
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    let first = Some(read.freeze()).filter(|bytes| !bytes.is_empty()).map(Ok);
    Ok(Head { version, size, rest: stream::iter(first).chain(parts) })
}

/// Takes so many bytes off the front of a body.
async fn taken(
    parts: &mut (impl Stream<Item = Result<Bytes, BodyError>> + Unpin),
    read: &mut BytesMut,
    length: usize,
) -> Result<Bytes, Refused> {
    while read.len() < length {
        match parts.next().await {
            Some(Ok(part)) => read.extend_from_slice(&part),
            Some(Err(_)) | None => return Err(Refused::bad("the body broke off: publish again")),
        }
    }
    Ok(read.split_to(length).freeze())
}

/// A length as it is sent: the lowest byte first.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
