//! Publishing: the bytes of a file, which are stored as they come.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bowline_authn::crypto::random_bytes;
use bowline_core::hex;
use bowline_libraries::hosting::{
    Checksums, Generic, HostClient, NewFile, Publishing, generic_file_name, generic_purl,
};
use serde_json::json;

use super::digests::Announced;
use crate::PackageHosts;
use crate::answers::{Refused, set, typed};
use crate::pages::at_scope;
use crate::storing::{FILE, Received};

impl PackageHosts {
    /// Publishes a file of a version.
    pub(super) async fn put_generic(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        (name, version, path): (&str, &str, &str),
        (headers, body): (&HeaderMap, Body),
    ) -> Result<Response, Refused> {
        require_whole(headers)?;
        if is_part_of_uidp(name) {
            return Err(Refused::bad(format!(
                "{name} looks like the last part of a group's UIDP, so it names no file: join the parts of a group with a \
                 colon, such as {}:{name}",
                scope.unwrap_or("ORGANIZATION")
            )));
        }
        let announced = Announced::of(headers).map_err(Refused::bad)?;
        let id = hex(&random_bytes::<16>());
        let mut publishing = self.hosting.begin_publishing::<Generic>(client, scope, &id).await?;
        let published =
            self.receive_generic(client, &mut publishing, (name, version, path), (&announced, &id, body)).await;
        if !matches!(published, Ok((true, _))) {
            self.abandon(&id).await;
        }
        let (is_new, received) = published?;
        let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        let answer = json!({
            "purl": generic_purl(name, version),
            "path": path,
            "size_bytes": received.stored.size,
            "sha256": received.content.sha256,
        });
        let mut response = typed(status, "application/json", answer.to_string());
        let group = if scope.is_some() { at_scope(scope) } else { "/~".into() };
        set(&mut response, header::LOCATION, &format!("{}/files{group}/{name}/{version}/{path}", self.url));
        set(&mut response, header::CACHE_CONTROL, "no-store");
        Ok(response)
    }

    /// Stores and publishes a file; false beside it if it is there with the same bytes.
    async fn receive_generic(
        &self,
        client: &HostClient,
        publishing: &mut Publishing,
        (name, version, path): (&str, &str, &str),
        (announced, id, body): (&Announced, &str, Body),
    ) -> Result<(bool, Received), Refused> {
        let received = self.receive_whole(client, publishing, id, (body, FILE)).await?;
        let file = NewFile {
            name: generic_file_name(version, path),
            package: name.into(),
            version: version.into(),
            license: String::new(),
            requires_python: String::new(),
            content: received.content.clone(),
            metadata: None,
            manifest: None,
            requirements: None,
            checksums: Checksums::default(),
            pom: None,
            attestations: Vec::new(),
        };
        let published = match announced.require(&received.content.sha256, &received.checksums) {
            Ok(()) => self.hosting.publish::<Generic>(&received.client, publishing, &file).await.map_err(Refused::from),
            Err(sentence) => Err(Refused::bad(sentence)),
        };
        let is_new = self.settled(&received, published).await?;
        Ok((is_new, received))
    }
}

/// Refuses what would be stored as other bytes than the file has: a part of it, or a form with it. Files do not change later.
fn require_whole(headers: &HeaderMap) -> Result<(), Refused> {
    if headers.contains_key(header::CONTENT_RANGE) {
        return Err(Refused::bad("a file is published whole: send all of it, without Content-Range"));
    }
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if content_type.to_ascii_lowercase().starts_with("multipart/form-data") {
        let text = "the body is the file itself here, and not a form: with curl, use --upload-file in place of -F";
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    Ok(())
}

/// Whether a name has the form of the parts of a UIDP below the organization: with a slash instead of a colon, the file would lie
/// in a group above the one that is meant.
fn is_part_of_uidp(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
