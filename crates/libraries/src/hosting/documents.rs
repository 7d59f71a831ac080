//! Pages of packages at upstreams as they were answered last, and the files that are stored from there.

use std::collections::BTreeMap;
use std::fmt;

use bowline_contract::bowline::libraries::v1::{MavenPlugin, UpstreamDocument, UpstreamFile};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::Vault;
use bowline_store::{ReadTx, Row, Value};
use prost::Message as _;

use super::encoded::document_of;
use super::first_seen;
use super::package_file::PackageFile;
use super::packed::PackedManifests;
use super::upstreams::UpstreamRow;
use crate::ecosystems::Language;

const SECOND: Micros = 1_000_000;
/// How long a document is used without a question to its upstream.
pub(super) const FRESH: Micros = 300 * SECOND;
/// How long a document is used whose upstream cannot be asked.
const USABLE: Micros = 7 * 24 * 3600 * SECOND;
/// What entity tags begin with as they are stored: what this version of the server reads of pages. A page without it was read before
/// more of pages was, and is requested whole again: its upstream would confirm it unchanged. The last change was which statements
/// upstreams have about files.
pub(super) const FORMAT: &str = "1 ";
/// A document of at least so many files that loses more than half of them is not believed.
const MANY: usize = 10;

/// An upstream, and the account that requests are made with.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamAccess {
    pub(super) uid: Uidp,
    /// Its name within the organization.
    pub name: String,
    /// Address of its index.
    pub url: String,
    /// User name and password; absent for anonymous requests.
    pub account: Option<(String, String)>,
}

impl UpstreamAccess {
    pub(super) fn of(row: &UpstreamRow, vault: &Vault) -> Result<UpstreamAccess> {
        let password = row.password(vault)?;
        let account = password.map(|password| (row.username.clone(), password));
        Ok(UpstreamAccess { uid: row.uid.clone(), name: row.name.clone(), url: row.url.clone(), account })
    }

    /// What names it among all upstreams.
    pub fn key(&self) -> &str {
        self.uid.as_str()
    }

    /// The organization whose upstream it is.
    pub fn organization(&self) -> &str {
        self.uid.root_str()
    }
}

impl fmt::Debug for UpstreamAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamAccess").field("uid", &self.uid).field("url", &self.url).finish_non_exhaustive()
    }
}

/// A package that an upstream is to be asked for.
#[derive(Clone, Debug)]
pub struct Ask {
    pub upstream: UpstreamAccess,
    pub language: Language,
    /// Normalized name of the package.
    pub package: String,
    /// What the request is conditional on; empty without.
    pub etag: String,
    pub last_modified: String,
    /// Whether an old answer can be used if this one takes long.
    pub is_answered: bool,
    /// Address of the statements about a file that are requested in place of the package; absent for that itself.
    pub statements: Option<String>,
}

impl Ask {
    pub(super) fn new(
        upstream: UpstreamAccess,
        (language, package): (Language, &str),
        head: Option<DocumentHead>,
    ) -> Ask {
        let is_answered = head.is_some();
        let (etag, last_modified) = head.map(|head| (head.etag, head.last_modified)).unwrap_or_default();
        Ask { upstream, language, package: package.into(), etag, last_modified, is_answered, statements: None }
    }
}

/// What an upstream answers.
#[derive(Debug)]
pub enum Answer {
    /// The document that it gave before.
    Same,
    Document(Box<NewDocument>),
    /// It has no such package.
    Absent,
    /// It cannot be asked, or its answer cannot be used.
    Failed,
}

/// The page of a package at an upstream.
#[derive(Debug, Default)]
pub struct NewDocument {
    pub etag: String,
    pub last_modified: String,
    /// The upstream's count of changes; 0 where it has none.
    pub serial: i64,
    /// Whether the upstream says that it withholds the package, so that few files or none are meant.
    pub is_quarantined: bool,
    pub document: UpstreamDocument,
    /// Of npm: what clients are told of its versions.
    pub manifests: PackedManifests,
}

/// What is stored about a document. It differs from that of any other answer of the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DocumentHead {
    etag: String,
    last_modified: String,
    pub(super) serial: i64,
    /// Length of the stored document and the manifests beside it in bytes.
    length: i64,
    /// When the upstream confirmed it last.
    pub(super) fetched_at: Micros,
}

pub(super) const HEAD: &str = "etag, last_modified, serial, length(document) + length(manifests), fetched_at";

impl DocumentHead {
    fn read(row: &Row<'_>) -> Result<DocumentHead> {
        let (stored, last_modified) = (row.text(0)?, row.text(1)?);
        let known = stored.strip_prefix(FORMAT).map(|etag| (etag.to_owned(), last_modified));
        let (etag, last_modified) = known.unwrap_or_default();
        Ok(DocumentHead { etag, last_modified, serial: row.int(2)?, length: row.int(3)?, fetched_at: row.int(4)? })
    }

    pub(super) fn is_fresh(&self, now: Micros) -> bool {
        now < self.fetched_at.saturating_add(FRESH)
    }

    pub(super) fn is_usable(&self, now: Micros) -> bool {
        is_usable(self.fetched_at, now)
    }
}

/// Whether a document that was confirmed then is used while its upstream cannot be asked.
pub(super) fn is_usable(fetched_at: Micros, now: Micros) -> bool {
    now < fetched_at.saturating_add(USABLE)
}

/// A document as it is stored.
pub(super) struct DocumentRow {
    pub(super) head: DocumentHead,
    document: UpstreamDocument,
}

impl DocumentRow {
    /// Reads the columns of `HEAD`, and the document after them.
    pub(super) fn read(row: &Row<'_>) -> Result<DocumentRow> {
        let document = UpstreamDocument::decode(row.bytes(5)?.as_slice()).map_err(Error::internal)?;
        Ok(DocumentRow { head: DocumentHead::read(row)?, document })
    }

    /// Whether the upstream has the package; it may have had it once.
    pub(super) fn has_files(&self) -> bool {
        self.document.files.iter().any(|file| !file.gone)
    }

    pub(super) fn files(&self, language: Language) -> Vec<PackageFile> {
        let file = |file: &UpstreamFile| PackageFile {
            license: file.license.clone(),
            size: u64::try_from(file.size_bytes).ok().filter(|size| *size > 0),
            digest: match file.sha512.as_str() {
                "" => format!("sha256:{}", file.sha256),
                sha512 => format!("sha512:{sha512}"),
            },
            metadata_sha256: file.metadata_sha256.clone(),
            requires_python: file.requires_python.clone(),
            uploaded_at: Some(first_seen::published_micros(language, file)).filter(|micros| *micros > 0),
            first_seen: first_seen::of_file(&self.document, file),
            yanked: file.yanked.then(|| file.yanked_reason.clone()),
            url: file.url.clone(),
            provenance_url: file.provenance_url.clone(),
            provenance_type: file.provenance_type.clone(),
            ..PackageFile::unfetched(language, &file.version, &file.name)
        };
        self.document.files.iter().filter(|file| !file.gone).map(file).collect()
    }

    /// The files as the upstream says of them, also those that are gone.
    pub(super) fn upstream_files(&self) -> &[UpstreamFile] {
        &self.document.files
    }

    /// All that is stored of it.
    pub(super) fn document(&self) -> &UpstreamDocument {
        &self.document
    }

    pub(super) fn into_document(self) -> UpstreamDocument {
        self.document
    }

    /// Plugins of Maven, if the package is a group of them.
    pub(super) fn plugins(&self) -> &[MavenPlugin] {
        &self.document.plugins
    }

    /// The statements about a file, if this is no package; empty where the upstream has none.
    pub(super) fn into_statements(self) -> String {
        self.document.statements
    }

    /// Tags with the versions that they stand for.
    pub(super) fn tags(&self) -> BTreeMap<String, String> {
        self.document.tags.clone()
    }

    /// Why a new document is not believed in place of this one: distributors sometimes answer with old pages.
    pub(super) fn contradicts(&self, new: &NewDocument) -> Option<&'static str> {
        let is_there = |file: &&UpstreamFile| !file.gone;
        let (before, after) = (self.document.files.iter().filter(is_there).count(), new.document.files.len());
        match () {
            () if new.is_quarantined => None,
            () if self.head.serial > new.serial && new.serial > 0 => Some("it is older than the stored one"),
            () if before >= MANY && after < before / 2 => Some("it lost more than half of its files"),
            () => None,
        }
    }
}

/// The document of a package at an upstream.
pub(super) async fn find(tx: &mut ReadTx, upstream: &Uidp, package: &str) -> Result<Option<DocumentRow>> {
    tx.query_opt(&whole(), &[Value::from(upstream.as_str()), Value::from(package)], DocumentRow::read).await
}

/// The same with the files of one name alone: others are not read.
pub(super) async fn find_of(
    tx: &mut ReadTx,
    upstream: &Uidp,
    package: &str,
    file: &str,
) -> Result<Option<DocumentRow>> {
    let read = |row: &Row<'_>| {
        Ok(DocumentRow { document: document_of(&row.bytes(5)?, file)?, head: DocumentHead::read(row)? })
    };
    tx.query_opt(&whole(), &[Value::from(upstream.as_str()), Value::from(package)], read).await
}

fn whole() -> String {
    format!("SELECT {HEAD}, document FROM upstream_documents WHERE upstream = $1 AND package = $2")
}

/// What is known of single versions of a module of Go at an upstream.
pub(super) async fn of_versions(tx: &mut ReadTx, upstream: &Uidp, module: &str) -> Result<Vec<DocumentRow>> {
    let sql = format!(
        "SELECT {HEAD}, document FROM upstream_documents WHERE upstream = $1 AND package >= $2 AND package < $3"
    );
    // The sign after an @.
    let (lower, upper) = (format!("{module}@"), format!("{module}A"));
    tx.query(&sql, &[Value::from(upstream.as_str()), Value::from(&lower), Value::from(&upper)], DocumentRow::read).await
}

/// The document of a package without itself.
pub(super) async fn find_head(tx: &mut ReadTx, upstream: &Uidp, package: &str) -> Result<Option<DocumentHead>> {
    let sql = format!("SELECT {HEAD} FROM upstream_documents WHERE upstream = $1 AND package = $2");
    tx.query_opt(&sql, &[Value::from(upstream.as_str()), Value::from(package)], DocumentHead::read).await
}

/// What clients are told of the versions of a package at an upstream.
pub(super) async fn manifests(tx: &mut ReadTx, upstream: &Uidp, package: &str) -> Result<PackedManifests> {
    let sql = "SELECT manifests FROM upstream_documents WHERE upstream = $1 AND package = $2";
    let params = [Value::from(upstream.as_str()), Value::from(package)];
    let packed = tx.query_opt(sql, &params, |row: &Row<'_>| row.bytes(0).map_err(Error::from)).await?;
    Ok(PackedManifests(packed.unwrap_or_default()))
}
