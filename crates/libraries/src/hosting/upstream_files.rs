//! Files of upstreams: what is to be fetched, and what is stored.

use bowline_core::{Error, Micros, Result, Uidp};
use bowline_registry::content::package_files;
use bowline_store::{ReadTx, Row, Value, WriteTx};
use bowline_versions::order_key;

use super::documents::UpstreamAccess;
use super::files::Checksums;
use super::notes::Note;
use super::package_file::PackageFile;
use super::served::ServedVersion;
use super::{Hosting, OpenUpload, StoredBlob, first_seen, requirements, upstreams};
use crate::ecosystems::Language;
use crate::policy::age::FirstSeen;

/// A file that is to be fetched from an upstream: the bytes of it, or its core metadata.
#[derive(Clone, Debug)]
pub struct MissingFile {
    pub upstream: UpstreamAccess,
    pub language: Language,
    pub(super) package: String,
    /// Name of the file.
    pub name: String,
    pub(super) version: String,
    /// Address of the bytes.
    pub url: String,
    /// Digest of the bytes: its algorithm, a colon and hex.
    pub digest: String,
    /// Length in bytes, where that is known.
    pub size: Option<u64>,
    pub is_metadata: bool,
    /// Whether no policy needs to look into the file before its first byte is served.
    pub is_free_to_stream: bool,
    /// Whether a policy is about licenses, of which that in the file counts once it is stored.
    pub is_decided_by_license: bool,
    /// What policies that only log say of it.
    pub(super) logged: Vec<Note>,
    /// What the organization is served with it.
    pub(super) served: Option<ServedVersion>,
    pub(super) published_at: Option<Micros>,
    /// When it was seen at its upstream first; absent if it was not looked for in a list.
    pub(super) first_seen: Option<FirstSeen>,
}

impl MissingFile {
    /// A file of which nothing is known but its address, so that it is fetched whole: of a package and version, by its name.
    pub(super) fn whole(
        upstream: &UpstreamAccess,
        language: Language,
        (package, version, name): (&str, &str, &str),
        url: String,
    ) -> MissingFile {
        MissingFile {
            upstream: upstream.clone(),
            language,
            package: package.into(),
            name: name.into(),
            version: version.into(),
            url,
            digest: String::new(),
            size: None,
            is_metadata: false,
            is_free_to_stream: false,
            is_decided_by_license: false,
            logged: Vec::new(),
            served: None,
            published_at: None,
            first_seen: None,
        }
    }

    /// What its absence is remembered by: package and name.
    pub(super) fn path(&self) -> String {
        format!("{} {}", self.package, self.name)
    }

    /// Its name and the coordinates of its version.
    pub fn coordinates(&self) -> (&str, &str, &str) {
        (&self.package, &self.version, &self.name)
    }

    /// The same file once its bytes are here, which are as old as was known before.
    pub fn with_digest(self, sha256: &str) -> MissingFile {
        MissingFile { digest: format!("sha256:{sha256}"), ..self }
    }

    /// The same file once its upstream was asked for it: what its bytes are, and when they became public.
    pub fn with_bytes(self, sha256: &str, published_at: Option<Micros>) -> MissingFile {
        MissingFile { digest: format!("sha256:{sha256}"), published_at, ..self }
    }
}

/// What a fetched file says of itself, or others need to know of its bytes.
#[derive(Clone, Debug, Default)]
pub struct FetchedFacts {
    /// License that it declares; empty if unknown.
    pub license: String,
    pub checksums: Checksums,
    /// Of a POM: `group:artifact:version` of the one that it inherits from; empty without.
    pub parent_pom: String,
    /// What a wheel requires, each as it is written; absent if the file says nothing of that.
    pub requirements: Option<Vec<String>>,
}

/// A file whose bytes are stored.
#[derive(Clone)]
pub(super) struct StoredFile {
    pub(super) name: String,
    version: String,
    pub(super) license: String,
    pub(super) digest: String,
    pub(super) published_at: Option<Micros>,
    pub(super) first_seen: Option<FirstSeen>,
    checksums: Checksums,
    pub(super) parent_pom: String,
}

impl StoredFile {
    /// The file where its document says nothing of it, or something else.
    pub(super) fn file(self, language: Language) -> PackageFile {
        PackageFile {
            sort_key: order_key(language.scheme(), &self.version),
            name: self.name,
            version: self.version,
            license: self.license,
            size: None,
            digest: self.digest,
            metadata_sha256: String::new(),
            requires_python: String::new(),
            uploaded_at: self.published_at,
            first_seen: self.first_seen,
            yanked: None,
            is_malware: false,
            is_stored: true,
            url: String::new(),
            checksums: self.checksums,
            provenance_url: String::new(),
            provenance_type: String::new(),
        }
    }
}

pub(super) const COLUMNS: &str = "name, version, license, sha256, published_at, sha512, md5, sha1, parent_pom,
     first_seen_at, is_new";

impl StoredFile {
    /// Reads the columns of `COLUMNS`.
    pub(super) fn read(row: &Row<'_>) -> Result<StoredFile> {
        let (sha256, sha512) = (row.text(3)?, row.text(5)?);
        let digest = if sha256.is_empty() { format!("sha512:{sha512}") } else { format!("sha256:{sha256}") };
        Ok(StoredFile {
            name: row.text(0)?,
            version: row.text(1)?,
            license: row.text(2)?,
            digest,
            published_at: row.opt_int(4)?,
            checksums: Checksums { md5: row.text(6)?, sha1: row.text(7)?, sha512 },
            parent_pom: row.text(8)?,
            first_seen: read_first_seen(row, 9)?,
        })
    }
}

/// Reads the columns `first_seen_at` and `is_new`.
fn read_first_seen(row: &Row<'_>, at: usize) -> Result<Option<FirstSeen>> {
    let seen = FirstSeen { at: row.int(at)?, is_new: row.bool(at + 1)? };
    Ok(Some(seen).filter(|seen| seen.at > 0))
}

/// When the stored files of a package were seen first, by their names, without those of which that is not known.
pub(super) async fn first_seen_of_package(
    tx: &mut ReadTx,
    upstream: &Uidp,
    package: &str,
) -> Result<Vec<(String, FirstSeen)>> {
    let sql = "SELECT name, first_seen_at, is_new FROM upstream_files WHERE upstream = $1 AND package = $2";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, read_first_seen(row, 1)?));
    let rows = tx.query(sql, &[Value::from(upstream.as_str()), Value::from(package)], read).await?;
    Ok(rows.into_iter().filter_map(|(name, seen)| Some((name, seen?))).collect())
}

/// The stored files of a package at an upstream.
pub(super) async fn stored_files(tx: &mut ReadTx, upstream: &Uidp, package: &str) -> Result<Vec<StoredFile>> {
    let sql = format!("SELECT {COLUMNS} FROM upstream_files WHERE upstream = $1 AND package = $2 ORDER BY name");
    tx.query(&sql, &[Value::from(upstream.as_str()), Value::from(package)], StoredFile::read).await
}

/// The stored file of this name.
pub(super) async fn stored_file(
    tx: &mut ReadTx,
    upstream: &Uidp,
    package: &str,
    name: &str,
) -> Result<Option<StoredFile>> {
    let sql = format!("SELECT {COLUMNS} FROM upstream_files WHERE upstream = $1 AND package = $2 AND name = $3");
    let params = [Value::from(upstream.as_str()), Value::from(package), Value::from(name)];
    tx.query_opt(&sql, &params, StoredFile::read).await
}

/// How many these are; files of an upstream only come, until all of them go with it.
pub(super) async fn count(tx: &mut ReadTx, upstream: &Uidp, package: &str) -> Result<i64> {
    let sql = "SELECT count(*) FROM upstream_files WHERE upstream = $1 AND package = $2";
    let params = [Value::from(upstream.as_str()), Value::from(package)];
    Ok(tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or_default())
}

impl Hosting {
    /// Notes that a file was served while it was fetched, and what policies that only log say of that.
    pub fn note_streamed(&self, file: &MissingFile) {
        if let Some(served) = file.served.clone() {
            self.served.add(served, &file.digest, self.pipeline.clock.now());
        }
        for note in &file.logged {
            self.notes.add(note.clone());
        }
    }

    /// Begins to store a file that is fetched, under an id that was drawn at random.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn begin_fetching(&self, wanted: &MissingFile, id: &str) -> Result<OpenUpload> {
        self.registry.begin_fetched_file(&wanted.upstream.uid.root(), id).await
    }

    /// Keeps a file that was fetched, whose bytes are durable. Digests and
    /// uploads of the bytes that its own took the place of.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED, or NOT_FOUND if the upstream has been deleted.
    pub async fn keep_fetched(
        &self,
        wanted: &MissingFile,
        (blob, upload): (&StoredBlob, &str),
        facts: &FetchedFacts,
    ) -> Result<Vec<(String, String)>> {
        let now = self.pipeline.clock.now();
        let job = std::sync::Arc::new((wanted.clone(), blob.clone(), upload.to_owned(), facts.clone()));
        let written = self.pipeline.db.write(move |tx| {
            let job = job.clone();
            Box::pin(async move { keep(tx, &job.0, (&job.1, &job.2), &job.3, now).await })
        });
        written.await
    }

    /// Removes some of the files of deleted upstreams. False if there is nothing to remove.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn remove_some_of_deleted_upstreams(&self) -> Result<bool> {
        let written = self.pipeline.db.write(move |tx| Box::pin(async move { upstreams::remove_some(tx).await }));
        written.await
    }
}

async fn keep(
    tx: &mut WriteTx,
    wanted: &MissingFile,
    (blob, upload): (&StoredBlob, &str),
    facts: &FetchedFacts,
    now: Micros,
) -> Result<Vec<(String, String)>> {
    let uid = &wanted.upstream.uid;
    if !upstreams::is_there(tx, uid).await? {
        return Err(Error::not_found("package upstream", &wanted.upstream.name));
    }
    let before = package_files::link(tx, uid, &wanted.digest, blob, upload, now).await?;
    if let Some(requirements) = &facts.requirements {
        requirements::keep(tx, uid, (&wanted.package, &wanted.version), requirements).await?;
    }
    if !wanted.is_metadata {
        let sql =
            "INSERT INTO upstream_files (upstream, package, name, version, license, sha256, published_at, created_at, sha512,
                                         md5, sha1, parent_pom, first_seen_at, is_new)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (upstream, package, name) DO NOTHING";
        let of = |algorithm: &str| wanted.digest.strip_prefix(algorithm);
        let checksums = &facts.checksums;
        let seen = match wanted.first_seen {
            // The list of its package has the names of POMs.
            None if wanted.language == Language::Java && wanted.name.rsplit('.').next() == Some("pom") => {
                first_seen::of_fetched(tx, uid, (&wanted.package, &wanted.name), now).await?
            }
            seen => seen,
        };
        let params = [
            Value::from(uid.as_str()),
            Value::from(&wanted.package),
            Value::from(&wanted.name),
            Value::from(&wanted.version),
            Value::from(&facts.license),
            Value::from(of("sha256:").unwrap_or_default()),
            Value::OptInt(wanted.published_at),
            Value::Int(now),
            Value::from(of("sha512:").unwrap_or(&checksums.sha512)),
            Value::from(&checksums.md5),
            Value::from(&checksums.sha1),
            Value::from(&facts.parent_pom),
            Value::Int(seen.map_or(0, |seen| seen.at)),
            Value::Bool(seen.is_some_and(|seen| seen.is_new)),
        ];
        tx.execute(sql, &params).await?;
    }
    Ok(before.map(|upload| (wanted.digest.clone(), upload)).into_iter().collect())
}
