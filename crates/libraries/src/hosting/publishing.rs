//! Publishing a file: an upload to a group, whose bytes are durable before the rows that name them.

use bowline_contract::bowline::libraries::v1::{HostedFile, OwnSignature};
use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::Changed;
use bowline_registry::content::{OpenUpload, StoredBlob, package_files};
use bowline_store::{Value, WriteTx};
use bowline_versions::order_key;

use super::attestations::{self, FileAttestation};
use super::files::{self, Checksums, FileRow};
use super::protocols::Protocol;
use super::{
    HostClient, HostError, Hosting, entitled, generic_changes, java_changes, java_signatures, manifests, own_names,
    repositories, requirements, summaries, tags, views,
};
use crate::ecosystems::Language;

/// A file on its way to a group.
#[derive(Debug)]
pub struct Publishing {
    group: Uidp,
    /// The upload that takes its bytes.
    pub upload: OpenUpload,
}

/// A blob whose bytes are durable, with the upload that brought them.
#[derive(Clone, Debug)]
pub struct NewBlob {
    /// SHA-256 in lower-case hex.
    pub sha256: String,
    pub blob: StoredBlob,
    /// Id of the upload.
    pub upload: String,
}

/// A file whose bytes are durable, as it describes itself.
#[derive(Clone, Debug)]
pub struct NewFile {
    pub name: String,
    /// Name of its package, normalized.
    pub package: String,
    pub version: String,
    pub license: String,
    pub requires_python: String,
    /// The bytes of the file itself.
    pub content: NewBlob,
    /// What resolvers read instead of it: the core metadata of a wheel, or the `go.mod` of an archive of Go.
    pub metadata: Option<NewBlob>,
    /// What clients resolve and install it by, if it is npm's or Cargo's.
    pub manifest: Option<NewManifest>,
    /// What a wheel requires, each as it is written; absent of all others.
    pub requirements: Option<Vec<String>>,
    pub checksums: Checksums,
    /// What it says of its version, if it is a POM.
    pub pom: Option<NewPom>,
    /// Statements that came with it, each of another predicate type.
    pub attestations: Vec<FileAttestation>,
}

/// What a POM says of its version, beside the license.
#[derive(Clone, Debug)]
pub struct NewPom {
    /// What kind of thing it describes, such as `jar`.
    pub packaging: String,
    /// `group:artifact:version` of the POM that it inherits from; empty without.
    pub parent_pom: String,
}

/// What clients of npm and Cargo are told of a version beside its file.
#[derive(Clone, Debug)]
pub struct NewManifest {
    /// Members of its `package.json`, or of its line in Cargo's index, as JSON.
    pub json: String,
    /// SHA-1 and SHA-512 of the file in lower-case hex.
    pub sha1: String,
    pub sha512: String,
    /// Files in it, and their bytes.
    pub file_count: u64,
    pub unpacked_bytes: u64,
    /// The tag of npm that stands for it from now on; absent for Cargo.
    pub tag: Option<String>,
}

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Published {
    /// It is there now. Digest and upload of the bytes that its own took the place of.
    New(Vec<(String, String)>),
    /// It was there with the same bytes.
    Same,
}

impl Hosting {
    /// Begins to publish a file to the group that the path names, or to the caller's organization, under an id that was
    /// drawn at random.
    ///
    /// # Errors
    /// The caller may not publish there, or too many uploads are open.
    pub async fn begin_publishing<P: Protocol>(
        &self,
        client: &HostClient,
        path: Option<&str>,
        id: &str,
    ) -> std::result::Result<Publishing, HostError> {
        let (of, path) = (client.clone(), path.map(str::to_owned));
        let read = self.pipeline.db.read(move |tx| {
            let (client, path) = (of.clone(), path.clone());
            Box::pin(async move { views::group_to_publish::<P>(tx, &client, path.as_deref()).await })
        });
        let group = read.await?;
        let upload = self.registry.begin_file(client.subject(), &group, id).await?;
        Ok(Publishing { group, upload })
    }

    /// Begins an upload of what belongs to a file that is being published.
    ///
    /// # Errors
    /// Too many uploads are open.
    pub async fn begin_part(&self, client: &HostClient, publishing: &Publishing, id: &str) -> Result<OpenUpload> {
        self.registry.begin_file(client.subject(), &publishing.group, id).await
    }

    /// Publishes a file, unless it is there.
    ///
    /// # Errors
    /// ALREADY_EXISTS if its name is taken by other bytes or was deleted, QUOTA_EXCEEDED, or the caller may not publish any
    /// more.
    pub async fn publish<P: Protocol>(
        &self,
        client: &HostClient,
        publishing: &Publishing,
        file: &NewFile,
    ) -> Result<Published> {
        let job = std::sync::Arc::new((self.clone(), client.clone(), publishing.group.clone(), file.clone()));
        let written = self.pipeline.db.write(move |tx| {
            let job = job.clone();
            Box::pin(async move { publish::<P>(tx, &job.0, (&job.1, &job.2), &job.3).await })
        });
        written.await
    }
}

async fn publish<P: Protocol>(
    tx: &mut WriteTx,
    hosting: &Hosting,
    (client, group): (&HostClient, &Uidp),
    file: &NewFile,
) -> Result<Published> {
    let language = P::LANGUAGE;
    let row = row(language, file, client.now());
    let hosted = HostedFile {
        attestations: file.attestations.iter().map(FileAttestation::shown).collect(),
        ..files::snapshot(group, language, &file.package, &file.version, &row)
    };
    let call = client.visit.authorize_change_at::<P::Publish>(tx, group, hosted.clone()).await?;
    // It may have been withdrawn while the file arrived.
    entitled::require(tx, call.settings(), &group.root(), language).await?;
    let repository = match repositories::find(tx, group.as_str(), language.number()).await? {
        Some(repository) => repository.uid,
        None => repositories::create(tx, call.new_child(group), language.number(), client.now()).await?,
    };
    if let Some(before) = files::find(tx, &repository, &file.package, &file.name).await? {
        same(&before, &row)?;
        // It may have been published before requirements were read.
        if let Some(requirements) = &file.requirements {
            requirements::insert(tx, &repository, (&file.package, &row.sort_key), requirements).await?;
        }
        return attestations::require_stored(tx, &repository, file).await.map(|()| Published::Same);
    }
    own_names::require_name(tx, group, language, &file.package).await?;
    own_names::require_spelling(tx, group, language, &file.package).await?;
    require_version::<P>(tx, (group, &repository), (file, &row)).await?;
    if language == Language::Java {
        java_signatures::require_agreement(tx, &repository, file).await?;
    }
    let mut replaced = Vec::new();
    for part in std::iter::once(&file.content).chain(&file.metadata) {
        let digest = format!("sha256:{}", part.sha256);
        let before = package_files::link(tx, &repository, &digest, &part.blob, &part.upload, client.now()).await?;
        replaced.extend(before.map(|upload| (digest, upload)));
    }
    insert(tx, &repository, file, &row).await?;
    attestations::insert(tx, &repository, (file, &row.sort_key), row.created_at).await?;
    if let Some(requirements) = &file.requirements {
        requirements::insert(tx, &repository, (&file.package, &row.sort_key), requirements).await?;
    }
    let mut changes = vec![files::published(&repository, &hosted)];
    if let Some(manifest) = &file.manifest {
        let signature = signature::<P>(tx, hosting, file, manifest).await?;
        manifests::insert(tx, &repository, (&file.package, &row.sort_key), (manifest, &signature)).await?;
        if let Some(tag) = &manifest.tag {
            changes.extend(tags::set_for_new(tx, client, (group, &repository), file, tag).await?);
        }
    }
    let mut gone = 0;
    if let Some(pom) = &file.pom {
        java_changes::describe(tx, &repository, (&file.package, &row.sort_key), (&file.license, pom)).await?;
        gone = java_changes::remove_old_builds(tx, &repository, (&file.package, &file.version)).await?;
    }
    summaries::create(tx, &call, (&repository, language), &file.package).await?;
    summaries::note_change(tx, (&repository, language), &file.package, 1 - gone, client.now()).await?;
    let changed = Changed::many(changes, ()).with_event(group, &hosted);
    client.visit.record(tx, &call, changed).await?;
    Ok(Published::New(replaced))
}

/// The signature of a version of npm, by the key that signs as this transaction sees it; empty for Cargo.
async fn signature<P: Protocol>(
    tx: &mut WriteTx,
    hosting: &Hosting,
    file: &NewFile,
    manifest: &NewManifest,
) -> Result<OwnSignature> {
    match P::LANGUAGE {
        Language::JavaScript => {
            let signer = hosting.signer(tx).await?;
            signer.sign_sha512((&file.package, &file.version), &manifest.sha512)
        }
        _ => Ok(OwnSignature::default()),
    }
}

/// The row of a new file.
fn row(language: Language, file: &NewFile, now: Micros) -> FileRow {
    FileRow {
        name: file.name.clone(),
        sort_key: order_key(language.scheme(), &file.version),
        size: file.content.blob.size,
        sha256: file.content.sha256.clone(),
        metadata_sha256: file.metadata.as_ref().map(|metadata| metadata.sha256.clone()).unwrap_or_default(),
        requires_python: file.requires_python.clone(),
        created_at: now,
        is_deleted: false,
        checksums: file.checksums.clone(),
    }
}

/// Refuses a file whose name is used up.
fn same(before: &FileRow, row: &FileRow) -> Result<()> {
    let taken = match () {
        () if before.is_deleted => "was deleted, and its name stays used",
        () if before.sha256 != row.sha256 => "already exists with other bytes, and files do not change",
        () => return Ok(()),
    };
    Err(Error::new(Reason::AlreadyExists, format!("{} {taken}: publish another version", row.name)))
}

/// Refuses a version that can have no further file: one that has a single one, is there in another spelling, or has too many.
async fn require_version<P: Protocol>(
    tx: &mut WriteTx,
    (group, repository): (&Uidp, &Uidp),
    (file, row): (&NewFile, &FileRow),
) -> Result<()> {
    let Some(stored) = version(tx, repository, &file.package, &row.sort_key).await? else { return Ok(()) };
    if file.manifest.is_some() || is_other_spelling::<P>(&stored, file) {
        let text = format!("{} is the version {stored}, which exists: publish another version", file.version);
        return Err(Error::new(Reason::AlreadyExists, text));
    }
    if P::LANGUAGE == Language::Generic {
        let of = (file.package.as_str(), file.version.as_str(), row.sort_key.as_slice());
        generic_changes::require_room(tx, (group, repository), of).await?;
    }
    Ok(())
}

/// Whether a version is there in another spelling, where each has a directory of its own: who chooses one of a range would take
/// them for one version.
fn is_other_spelling<P: Protocol>(stored: &str, file: &NewFile) -> bool {
    matches!(P::LANGUAGE, Language::Java | Language::Generic) && stored != file.version
}

/// A version of a package as it was spelled when its first file came.
async fn version(tx: &mut WriteTx, repository: &Uidp, package: &str, sort_key: &[u8]) -> Result<Option<String>> {
    let sql = "SELECT version FROM hosted_versions WHERE repository = $1 AND package = $2 AND sort_key = $3";
    let params = [Value::from(repository.as_str()), Value::from(package), Value::from(sort_key)];
    tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await
}

async fn insert(tx: &mut WriteTx, repository: &Uidp, file: &NewFile, row: &FileRow) -> Result<()> {
    let sql = "INSERT INTO hosted_versions (repository, package, sort_key, version, license, created_at)
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (repository, package, sort_key) DO NOTHING";
    let params = [
        Value::from(repository.as_str()),
        Value::from(&file.package),
        Value::from(row.sort_key.as_slice()),
        Value::from(&file.version),
        Value::from(&file.license),
        Value::Int(row.created_at),
    ];
    tx.execute(sql, &params).await?;
    let sql = "INSERT INTO hosted_files (repository, package, name, sort_key, size_bytes, sha256, metadata_sha256,
                                         requires_python, created_at, md5, sha1, sha512)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let params = [
        Value::from(repository.as_str()),
        Value::from(&file.package),
        Value::from(&row.name),
        Value::from(row.sort_key.as_slice()),
        Value::Int(i64::try_from(row.size).unwrap_or(i64::MAX)),
        Value::from(&row.sha256),
        Value::from(&row.metadata_sha256),
        Value::from(&row.requires_python),
        Value::Int(row.created_at),
        Value::from(&row.checksums.md5),
        Value::from(&row.checksums.sha1),
        Value::from(&row.checksums.sha512),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
