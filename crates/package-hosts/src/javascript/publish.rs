//! Documents that clients send: `PUT` of a package, with a file to publish a version, without one to change what is there.
//!
//! The file is stored while it arrives, and checked at the end, since all that describes it may follow. Whatever fails
//! leaves nothing behind but what garbage collection takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use bowline_authn::crypto::random_bytes;
use bowline_content::{Digest, Stored};
use bowline_core::{Error, Reason, hex};
use bowline_fronts::body::parts;
use bowline_libraries::Language;
use bowline_libraries::hosting::{Checksums, HostClient, NewBlob, NewFile, NewManifest, Npm, Published, Publishing};
use bowline_packages::{Refusal, Tarball};
use bowline_pipeline::Lease;
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use super::objects::Few;
use super::scanner::{Scanned, ScannedFile, Scanner};
use crate::PackageHosts;
use crate::answers::Refused;
use crate::fetching::line;
use crate::storing::{FILE, blob, has_no_row};

/// Maximum characters of the name of a new package, and of a version.
const NAME: usize = 214;
const VERSION: usize = 128;
/// Names that addresses of registries use for something else.
const TAKEN: [&str; 2] = ["favicon.ico", "node_modules"];

/// Members of the objects of a document.
const VERSIONS: usize = 10_000;
const TAGS: usize = 1000;
const ATTACHMENTS: usize = 16;

/// What a document says, as far as it is read.
#[derive(Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) name: String,
    #[serde(rename = "_rev")]
    pub(super) revision: Option<String>,
    versions: Option<Few<Version, VERSIONS>>,
    #[serde(default, rename = "dist-tags")]
    tags: Few<String, TAGS>,
    #[serde(default, rename = "_attachments")]
    attachments: Few<Attachment, ATTACHMENTS>,
}

#[derive(Deserialize)]
#[serde(expecting = "a version as an object")]
struct Version {
    name: Option<String>,
    version: Option<String>,
    deprecated: Option<Box<RawValue>>,
    dist: Option<Dist>,
}

impl Version {
    /// What those who install it are warned of; empty for no warning, for which old clients write `false`.
    fn warning(&self) -> String {
        let text = self.deprecated.as_ref().map(|value| serde_json::from_str(value.get()));
        text.and_then(Result::ok).unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(expecting = "dist as an object")]
struct Dist {
    shasum: Option<String>,
    integrity: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an attachment as an object")]
struct Attachment {
    length: Option<u64>,
    #[serde(default)]
    data: String,
}

/// The version that a document publishes.
struct NewVersion {
    version: String,
    tag: String,
    dist: Option<Dist>,
}

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
    /// Takes a document of a package; with the revision that the address has, if it has one.
    pub(super) async fn put_package(
        self: &Arc<Self>,
        client: &HostClient,
        scope: Option<&str>,
        (name, revision): (&str, Option<&str>),
        body: Body,
    ) -> Result<(), Refused> {
        let id = hex(&random_bytes::<16>());
        let mut publishing = self.hosting.begin_publishing::<Npm>(client, scope, &id).await?;
        let received = self.receive_package(client, scope, &mut publishing, (name, revision), &id, body).await;
        if !matches!(received, Ok(Outcome::Published)) {
            self.abandon(&id).await;
        }
        received.map(drop)
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
                Ok(Outcome::Published)
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
        let file_name = format!("{}-{}.tgz", name.rsplit('/').next().unwrap_or(name), new.version);
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
            checksums: Checksums::default(),
            pom: None,
        };
        Ok(self.hosting.publish::<Npm>(client, publishing, &file).await?)
    }
}

/// What a document did.
enum Outcome {
    Published,
    /// Nothing is stored of its body.
    Changed,
}

impl Document {
    /// The versions that it has, with what those who install them are warned of; absent if it says nothing of versions.
    pub(super) fn warnings(&self) -> Option<BTreeMap<String, String>> {
        let versions = self.versions.as_ref().filter(|versions| !versions.0.is_empty())?;
        Some(versions.0.iter().map(|(version, described)| (version.clone(), described.warning())).collect())
    }

    /// Signed statements beside a file are refused, not dropped: who sends them expects them to be there.
    fn require_no_attachments(&self) -> Result<(), Refused> {
        match self.attachments.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(Refused::bad(format!("{} is no package (.tgz): publish without provenance", line(name)))),
        }
    }

    /// The one version that is published.
    fn new_version(self, name: &str, file: &ScannedFile) -> Result<NewVersion, Refused> {
        let attachments = self.attachments.0.len();
        let lengths = self.attachments.0.values().filter_map(|attachment| attachment.length);
        if attachments != 1 || self.attachments.0.values().any(|attachment| !attachment.data.is_empty()) {
            return Err(Refused::bad(
                "_attachments must have one file, whose name ends with .tgz: publish without provenance",
            ));
        }
        if lengths.into_iter().any(|length| length != file.size) {
            return Err(Refused::bad(format!("length of the file differs from its {} bytes", file.size)));
        }
        let mut versions = self.versions.unwrap_or_default().0.into_iter();
        let (Some((version, described)), None) = (versions.next(), versions.next()) else {
            return Err(Refused::bad("versions must have the one version that is published"));
        };
        if described.name.is_some_and(|other| other != name) || described.version.is_some_and(|other| other != version)
        {
            return Err(Refused::bad(format!(
                "the version says that it is another one than {name}@{}",
                line(&version)
            )));
        }
        require_new_name(name)?;
        if version.len() > VERSION || semver::Version::parse(&version).is_err() {
            return Err(Refused::bad(format!("{} is no version by semver, such as 1.2.3", line(&version))));
        }
        let tag = match self.tags.0.len() {
            0 => "latest".to_owned(),
            1 => {
                self.tags.0.into_iter().filter(|(_, of)| *of == version).map(|(tag, _)| tag).next().unwrap_or_default()
            }
            _ => String::new(),
        };
        if tag.is_empty() {
            return Err(Refused::bad(format!("dist-tags must have one tag, which stands for {version}")));
        }
        Ok(NewVersion { version, tag, dist: described.dist })
    }
}

impl NewVersion {
    /// Documents show what lies in the file, so the description must say the same.
    fn require_same(&self, name: &str, file: &Tarball) -> Result<(), Refused> {
        if file.name != name || !Language::JavaScript.is_same_version(&file.version, &self.version) {
            let (of_file, version) = (line(&format!("{}@{}", file.name, file.version)), &self.version);
            return Err(Refused::bad(format!(
                "the package.json in the file is of {of_file}, and the document of {name}@{version}"
            )));
        }
        let Some(dist) = &self.dist else { return Ok(()) };
        let is_wrong = dist.shasum.as_ref().is_some_and(|shasum| *shasum != file.sha1)
            || dist.integrity.as_ref().is_some_and(|integrity| !has_digest(integrity, &file.sha512));
        if is_wrong { Err(Refused::bad("the file has another digest than dist says: send it again")) } else { Ok(()) }
    }
}

/// Whether an integrity, which may list several digests, agrees with a SHA-512 in hex. Other algorithms are not compared.
fn has_digest(integrity: &str, sha512: &str) -> bool {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    integrity.split_ascii_whitespace().filter_map(|digest| digest.strip_prefix("sha512-")).all(|digest| {
        let digest = digest.split('?').next().unwrap_or(digest);
        STANDARD.decode(digest).is_ok_and(|bytes| hex(&bytes) == sha512)
    })
}

/// Refuses a name that no new package has: installers and file systems would take it for another.
fn require_new_name(name: &str) -> Result<(), Refused> {
    let is_plain = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte))
            && !part.starts_with(['.', '_'])
    };
    let is_fine = name.len() <= NAME && name.trim_start_matches('@').split('/').all(is_plain) && !TAKEN.contains(&name);
    if is_fine {
        return Ok(());
    }
    Err(Refused::bad(format!(
        "{name} is no name of a new package: use at most {NAME} lower-case letters, digits, -, . and _, and none of the last \
         two first"
    )))
}
