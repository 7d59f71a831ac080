//! Publishing: one request for each file, and one for each digest beside it.
//!
//! Lists are made here, so those that clients send are read and dropped. A digest must be that of the file that it names.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bowline_authn::crypto::random_bytes;
use bowline_content::{Digest, Stored};
use bowline_core::hex;
use bowline_fronts::body::parts;
use bowline_libraries::Language;
use bowline_libraries::hosting::{
    HostClient, JAVA_SIGNATURE, Maven, NewFile, NewPom, Published, Publishing, SNAPSHOT, java_artifact,
};
use futures_util::StreamExt as _;

use super::target::{Checksum, LIST, Target};
use super::{digest_text, nowhere};
use crate::PackageHosts;
use crate::answers::{Refused, typed};
use crate::attestations::STATEMENTS;
use crate::storing::FILE;

/// Bytes of a digest, with the name that some write after it, and of a list.
const DIGEST: usize = 1024;
const LIST_BYTES: usize = 8 << 20;

impl PackageHosts {
    pub(super) async fn put_java(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        target: Target,
        body: Body,
    ) -> Result<Response, Refused> {
        self.hosting.require_java_publisher(client, scope).await?;
        match target {
            Target::List { checksum, .. } => {
                let most = if checksum.is_some() { DIGEST } else { LIST_BYTES };
                drained(body, most).await?;
                Ok(typed(StatusCode::CREATED, "text/plain", ""))
            }
            Target::File { package, name, checksum: Some(checksum) } => {
                let said = digest_of_body(body).await?;
                self.require_digest(client, scope, (&package, &name), (checksum, &said)).await?;
                Ok(typed(StatusCode::CREATED, "text/plain", ""))
            }
            Target::File { package, name, checksum: None } => {
                let published = self.put_file(client, scope, (&package, &name), body).await?;
                let status = if published { StatusCode::CREATED } else { StatusCode::OK };
                Ok(self.note_signature(typed(status, "text/plain", ""), &name, published))
            }
            _ => Err(nowhere()),
        }
    }

    /// Publishes a file; false if it is there with the same bytes.
    async fn put_file(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        (package, name): (&str, &str),
        body: Body,
    ) -> Result<bool, Refused> {
        let version = require_version(name)?;
        let id = hex(&random_bytes::<16>());
        let mut publishing = self.hosting.begin_publishing::<Maven>(client, scope, &id).await?;
        let received = self.receive_file(client, scope, &mut publishing, (package, version, name), &id, body).await;
        if !matches!(received, Ok(true)) {
            self.abandon(&id).await;
        }
        received
    }

    async fn receive_file(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        publishing: &mut Publishing,
        (package, version, name): (&str, &str, &str),
        id: &str,
        body: Body,
    ) -> Result<bool, Refused> {
        let most = if name.ends_with(JAVA_SIGNATURE) { STATEMENTS as u64 } else { FILE };
        let received = self.receive_whole(client, publishing, id, (body, most)).await?;
        let file = NewFile {
            name: name.into(),
            package: package.into(),
            version: version.into(),
            license: String::new(),
            requires_python: String::new(),
            content: received.content.clone(),
            metadata: None,
            manifest: None,
            requirements: None,
            checksums: received.checksums.clone(),
            pom: None,
            attestations: Vec::new(),
        };
        let of = (&received.digest, &received.stored);
        let published = self.describe_and_publish(&received.client, scope, publishing, file, of).await;
        self.settled(&received, published).await
    }

    async fn describe_and_publish(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        publishing: &Publishing,
        file: NewFile,
        of: (&Digest, &Stored),
    ) -> Result<Published, Refused> {
        let file = if file.name.ends_with(JAVA_SIGNATURE) {
            let attestations = vec![self.java_signature(client, scope, (&file.package, &file.name), of).await?];
            NewFile { attestations, ..file }
        } else if is_pom(&file) {
            let pom = self.pom(of, (&file.package, &file.version, &file.name)).await?;
            let pom = pom.map_err(|refusal| Refused::bad(format!("the POM {refusal}")))?;
            let license = pom.license();
            let pom = NewPom { packaging: pom.packaging, parent_pom: pom.parent };
            NewFile { license, pom: Some(pom), ..file }
        } else {
            file
        };
        Ok(self.hosting.publish::<Maven>(client, publishing, &file).await?)
    }

    /// Refuses a digest that is not that of the file beside it.
    async fn require_digest(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        (package, name): (&str, &str),
        (checksum, said): (Checksum, &str),
    ) -> Result<(), Refused> {
        let found = self.hosting.own_java_file(client, scope, (package, name)).await?.ok_or_else(|| {
            Refused::new(StatusCode::CONFLICT, format!("{name} is not published: send the file before its digest"))
        })?;
        let digest = digest_text(&found.sha256, &found.checksums, checksum);
        if digest.eq_ignore_ascii_case(said) {
            return Ok(());
        }
        let checksum = checksum.name();
        Err(Refused::bad(format!(
            "the {checksum} of {name} is {digest}, and another one was sent: the file was damaged on its way; delete the \
             version, and publish another one"
        )))
    }
}

/// The version whose directory a name begins with.
fn require_version(name: &str) -> Result<&str, Refused> {
    let (version, file) = name.split_once('/').unwrap_or_default();
    if version.len() > 128 || !Language::Java.is_version(version) {
        return Err(Refused::bad(format!("{version} is no version of at most 128 characters")));
    }
    if version.ends_with(SNAPSHOT) && file.contains(SNAPSHOT) {
        let text = "files of snapshots have a time and a number in their names, since files do not change: publish with Maven \
                    3 or Gradle, or publish a release";
        return Err(Refused::bad(text));
    }
    Ok(version)
}

/// Whether a file is the POM of its version, or of a build of it.
fn is_pom(file: &NewFile) -> bool {
    let artifact = java_artifact(&file.package);
    let base = file.version.strip_suffix(SNAPSHOT);
    let name = file.name.rsplit('/').next().unwrap_or_default();
    let Some(rest) = name.strip_prefix(artifact).and_then(|rest| rest.strip_suffix(".pom")) else { return false };
    match base {
        None => rest == format!("-{}", file.version),
        // A time and a number follow, and no classifier.
        Some(base) => rest
            .strip_prefix(&format!("-{base}-"))
            .is_some_and(|build| build.bytes().filter(|b| *b == b'-').count() == 1),
    }
}

/// The digest that a body is.
async fn digest_of_body(body: Body) -> Result<String, Refused> {
    let bytes = axum::body::to_bytes(body, DIGEST).await.map_err(|_| {
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {DIGEST} bytes, or broke off"))
    })?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.split_ascii_whitespace().next().unwrap_or_default().to_owned())
}

/// Reads a body of which nothing is kept.
async fn drained(body: Body, most: usize) -> Result<(), Refused> {
    let mut parts = std::pin::pin!(parts(body, None));
    let mut size = 0;
    while let Some(part) = parts.next().await {
        size += part.map_err(|_| Refused::bad("the body broke off: send it again"))?.len();
        if size > most {
            let text = format!("{LIST} or its digest has more than {most} bytes");
            return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_directories() {
        assert_eq!(require_version("1.0/a-1.0.jar").expect("a version"), "1.0");
        assert!(require_version("1-SNAPSHOT/a-1-20260102.030405-1.jar").is_ok());
        let refused = require_version("1-SNAPSHOT/a-1-SNAPSHOT.jar").expect_err("no build");
        assert!(refused.into_error().message().contains("time and a number"));
        assert!(require_version(&format!("{0}/a-{0}.jar", "1".repeat(129))).is_err());
    }
}
