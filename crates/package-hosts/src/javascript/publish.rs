//! Documents that clients send: `PUT` of a package, with a file to publish a version, without one to change what is there.
//!
//! The file is stored while it arrives, and checked at the end, since all that describes it may follow. Whatever fails
//! leaves nothing behind but what garbage collection takes.

use std::sync::Arc;

use axum::body::Body;
use bowline_authn::crypto::random_bytes;
use bowline_content::{Digest, Stored};
use bowline_core::{Error, Reason, hex};
use bowline_fronts::body::parts;
use bowline_libraries::hosting::{
    Checksums, HostClient, NewBlob, NewFile, NewManifest, Npm, Published, Publishing, SubjectDigest,
};
use bowline_packages::Refusal;
use bowline_pipeline::Lease;
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::Mutex;

use super::document::{Document, NewVersion};
use super::scanner::{Scanned, Scanner};
use crate::PackageHosts;
use crate::answers::Refused;
use crate::fetching::line;
use crate::storing::{FILE, blob, has_no_row};

/// A body while it is read, and why it is not read any further.
struct Reading {
    scanner: Scanner,
    memory: Lease<String>,
    refused: Option<Refused>,
}

impl Reading {
    /// Reads the next part, for whose other members there must be room beside those of other documents.
    fn read(&mut self, part: &[u8]) -> Result<Bytes, Refused> {
        let before = self.scanner.rest_bytes();
        let file = self.scanner.read(part)?;
        self.memory.grow(self.scanner.rest_bytes() - before).map_err(|_| {
            let text = "too many large documents are published at once: try again in a few seconds";
            Refused::from(Error::new(Reason::RateLimited, text))
        })?;
        Ok(file)
    }
}

impl PackageHosts {
    /// Takes a document of a package; with the revision that the address has, if it has one. Returns what npm is to print.
    pub(super) async fn put_package(
        self: &Arc<Self>,
        client: &HostClient,
        scope: Option<&str>,
        (name, revision): (&str, Option<&str>),
        body: Body,
    ) -> Result<Option<&'static str>, Refused> {
        let id = hex(&random_bytes::<16>());
        let mut publishing = self.hosting.begin_publishing::<Npm>(client, scope, &id).await?;
        let received = self.receive_package(client, scope, &mut publishing, (name, revision), &id, body).await;
        if !matches!(received, Ok(Outcome::Published { .. })) {
            self.abandon(&id).await;
        }
        Ok(match received? {
            Outcome::Published { has_statement } => self.unverified_notice(has_statement),
            Outcome::Changed => None,
        })
    }

    async fn receive_package(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        publishing: &mut Publishing,
        (name, revision): (&str, Option<&str>),
        id: &str,
        body: Body,
    ) -> Result<Outcome, Refused> {
        self.content.begin(id)?;
        let (scanned, _memory) = self.scan(client, publishing, id, body).await?;
        let client = client.renewed()?;
        let document = self.parsed(scanned.rest).await?;
        if !document.name.is_empty() && document.name != name {
            return Err(Refused::bad(format!(
                "the document is of {}, and the address of {name}",
                line(&document.name)
            )));
        }
        let Some(file) = scanned.file else {
            document.require_no_attachments()?;
            self.change_package(&client, scope, (name, revision), document).await?;
            return Ok(Outcome::Changed);
        };
        if revision.is_some() {
            return Err(Refused::bad("a version is published without a revision in the address"));
        }
        let new = document.new_version(name, &file)?;
        let has_statement = new.statement.is_some();
        let label = format!("{name}@{}", new.version);
        let invalid = |_| Error::internal("a digest of this server does not parse");
        let digest = Digest::parse(&format!("sha256:{}", file.sha256)).map_err(invalid)?;
        let stored = self.content.finish(id, &digest).await?;
        let published =
            self.inspect_and_publish_version(&client, publishing, (name, new), (&digest, id), &stored).await;
        if has_no_row(&published) {
            self.drop_bytes(&digest, &stored.upload).await;
        }
        match published? {
            // Release tools of this ecosystem take a success for a new version.
            Published::Same => {
                let text = format!("{label} is published already: publish another version");
                Err(Error::new(Reason::AlreadyExists, text).into())
            }
            Published::New(replaced) => {
                self.drop_replaced(&replaced).await;
                Ok(Outcome::Published { has_statement })
            }
        }
    }

    /// Stores the file of a body while it arrives.
    async fn scan(
        &self,
        client: &HostClient,
        publishing: &mut Publishing,
        id: &str,
        body: Body,
    ) -> Result<(Scanned, Lease<String>), Refused> {
        let memory = self.documents.lease(Some(client.subject().to_owned()));
        let reading = Mutex::new(Reading { scanner: Scanner::new(), memory, refused: None });
        let decoded = parts(body, None).then(async |part| {
            let part = part.map_err(drop)?;
            let mut reading = reading.lock().await;
            reading.read(&part).map_err(|refused| reading.refused = Some(refused))
        });
        let appended = self.append_published(publishing, id, decoded, FILE).await;
        let reading = reading.into_inner();
        if let Some(refused) = reading.refused {
            return Err(refused);
        }
        appended?;
        Ok((reading.scanner.finish()?, reading.memory))
    }

    /// Parses a document, which may be long, on a thread that may wait.
    async fn parsed(&self, text: Vec<u8>) -> Result<Document, Refused> {
        let turn = self.archives.clone().acquire_owned().await.map_err(Error::internal)?;
        let parsing = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            // An array would be taken for the members of the object in their order.
            if text.trim_ascii_start().first() != Some(&b'{') {
                return Err(Refused::bad("the body must be a JSON object: the document of a package"));
            }
            serde_json::from_slice(&text).map_err(|error| Refused::bad(format!("the body is no document: {error}")))
        });
        parsing.await.map_err(Error::internal)?
    }

    async fn inspect_and_publish_version(
        &self,
        client: &HostClient,
        publishing: &Publishing,
        (name, new): (&str, NewVersion),
        (digest, id): (&Digest, &str),
        stored: &Stored,
    ) -> Result<Published, Refused> {
        let unreadable = |refusal: Refusal| Refused::bad(format!("the file {refusal}"));
        let tarball = self.inspect((digest, stored), bowline_packages::tarball).await?.map_err(unreadable)?;
        new.require_same(name, &tarball)?;
        let attestations = match new.statement {
            None => Vec::new(),
            Some(text) => {
                let (package, version, sha512) = (name.to_owned(), new.version.clone(), tarball.sha512.clone());
                let subject = SubjectDigest::Sha512(sha512.clone());
                let read = move || {
                    bowline_packages::npm_attestation(&text, &package, &version, &sha512)
                        .map(|statement| vec![statement])
                };
                self.verified_attestations(read, subject).await?
            }
        };
        let file_name = super::javascript_file(name, &new.version);
        let manifest = NewManifest {
            json: tarball.manifest,
            sha1: tarball.sha1,
            sha512: tarball.sha512,
            file_count: tarball.file_count,
            unpacked_bytes: tarball.unpacked_bytes,
            tag: Some(new.tag),
        };
        let file = NewFile {
            name: file_name,
            package: name.into(),
            version: new.version,
            license: tarball.license,
            requires_python: String::new(),
            content: NewBlob { sha256: digest.hex().into(), blob: blob(stored), upload: id.into() },
            metadata: None,
            manifest: Some(manifest),
            requirements: None,
            checksums: Checksums::default(),
            pom: None,
            attestations,
        };
        Ok(self.hosting.publish::<Npm>(client, publishing, &file).await?)
    }
}

/// What a document did.
enum Outcome {
    Published {
        has_statement: bool,
    },
    /// Nothing is stored of its body.
    Changed,
}
