//! Where a package is found: published by a group of the view, or at an upstream of the organization.
//!
//! The nearest group that publishes a package counts, whole. A name that is reserved, or that any group of the organization
//! publishes or ever published, is never requested from an upstream: it would tell others which names are private, and the answer could
//! come from anyone who takes the name there. Of upstreams, the first that has the package counts, whole.

use std::collections::BTreeMap;

use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_store::{ReadTx, Row, Sql, Value};

use super::documents::{self, Ask, DocumentHead, DocumentRow, UpstreamAccess};
use super::files::Checksums;
use super::memory::Outcome;
use super::package_file::PackageFile;
use super::protocols::{Npm, Protocol, Python};
use super::repositories::Repository;
use super::served::ServedVersion;
use super::serving::FileName;
use super::upstream_files::MissingFile;
use super::views::View;
use super::{Hosting, entitled, own_names, upstream_files, upstreams};
use crate::ecosystems::Language;
use crate::malware;
use crate::policy::age::FirstSeen;

/// A package as it is found.
#[derive(Debug)]
pub(super) struct Package {
    /// The normalized name of it.
    pub(super) name: String,
    /// The repository that blobs of its files are linked to.
    pub(super) repository: Uidp,
    /// The upstream that it comes from; absent for packages of groups.
    pub(super) upstream: Option<UpstreamAccess>,
    /// By version and name, the lowest version first.
    pub(super) files: Vec<PackageFile>,
    /// Whether these are all of its files.
    pub(super) is_whole: bool,
    /// Tags with the versions that they stand for, as its upstream has them.
    pub(super) tags: BTreeMap<String, String>,
}

/// Where a package lies.
#[derive(Debug)]
pub(super) struct Location {
    /// The repository that blobs of its files are linked to.
    pub(super) repository: Uidp,
    /// The upstream that it comes from; absent for packages of groups.
    pub(super) upstream: Option<UpstreamAccess>,
    pub(super) revision: Revision,
    /// When the upstream confirmed it, if that is too long ago and it could not be asked again.
    pub(super) stale_since: Option<Micros>,
}

/// Changes whenever something of a package does where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Revision {
    OfRepository(i64),
    OfUpstream { document: DocumentHead, stored_files: i64 },
}

impl Package {
    /// A package of some files, without tags.
    pub(super) fn of_files(
        name: &str,
        repository: Uidp,
        upstream: Option<UpstreamAccess>,
        files: Vec<PackageFile>,
    ) -> Package {
        Package { name: name.into(), repository, upstream, files, is_whole: false, tags: BTreeMap::new() }
    }

    pub(super) fn is_hosted(&self) -> bool {
        self.upstream.is_none()
    }

    /// The package without what was published after a time, or no one knows when. What was withdrawn since is missing, and tags
    /// are those of now.
    ///
    /// # Errors
    /// NOT_FOUND if nothing is left.
    pub(super) fn until(mut self, moment: Option<Micros>) -> Result<Package> {
        self.files.retain(|file| file.is_of(moment));
        if self.files.is_empty() { Err(absent_then(&self.name, moment)) } else { Ok(self) }
    }

    /// A version of it as an organization was served it; absent for packages of groups.
    pub(super) fn served(&self, organization: Uidp, language: Language, file: &PackageFile) -> Option<ServedVersion> {
        self.upstream.as_ref().map(|_| ServedVersion {
            organization,
            language,
            package: self.name.clone(),
            version: file.version.clone(),
        })
    }

    /// The file of this name, which has the digest if that is said.
    pub(super) fn file(&self, named: &FileName) -> Option<&PackageFile> {
        let has_digest = |file: &PackageFile| named.digest.as_ref().is_none_or(|digest| file.digest == *digest);
        self.files.iter().find(|file| file.name == named.name && has_digest(file))
    }
}

/// Finds the package of a file, as the protocol has files.
pub(super) trait LocateFile: Protocol {
    /// Whether policies withhold a file of this name. What resolvers read of versions that they do not install is not withheld.
    fn is_gated(_name: &str) -> bool {
        true
    }

    /// The package with the file, if that is there.
    ///
    /// # Errors
    /// NOT_FOUND, or UNAVAILABLE if an upstream cannot be asked, so that no one knows.
    fn locate_file(
        tx: &mut ReadTx,
        hosting: &Hosting,
        view: &View,
        name: &str,
        file: &FileName,
        now: Micros,
    ) -> impl Future<Output = Result<Located<Package>>> + Send {
        locate_file(tx, hosting, view, (Self::LANGUAGE, name), file, now)
    }
}

impl LocateFile for Python {}

impl LocateFile for Npm {}

/// Which files of a package are read: for one of them the others are not.
#[derive(Clone, Copy)]
pub(super) enum Which<'a> {
    /// Those that a page shows.
    OfPage,
    /// Those of this name, also one that its document has lost.
    Named(&'a str),
}

/// Where something of a package is, or whom to ask.
#[derive(Debug)]
pub(super) enum Located<T> {
    Here(T),
    Ask(Box<Ask>),
    /// Fetch what says more of it, and look again.
    Fetch(Box<MissingFile>),
}

/// What is known of a package at an upstream.
pub(super) enum Known {
    Fresh(DocumentHead),
    /// Confirmed too long ago, by an upstream that does not answer now.
    Old(DocumentHead),
    Absent,
    /// It does not answer.
    Silent,
    /// It has to be asked, conditionally on what it answered before.
    Unasked(Option<DocumentHead>),
}

impl Known {
    pub(super) fn of(
        hosting: &Hosting,
        upstream: &Uidp,
        name: &str,
        document: Option<DocumentHead>,
        now: Micros,
    ) -> Known {
        match (document, hosting.memory.outcome(upstream, name, now)) {
            (Some(document), _) if document.is_fresh(now) => Known::Fresh(document),
            (None, Some(Outcome::Absent)) => Known::Absent,
            (Some(document), Some(Outcome::Failed)) if document.is_usable(now) => Known::Old(document),
            (_, Some(Outcome::Failed)) => Known::Silent,
            (document, _) => Known::Unasked(document),
        }
    }
}

/// Finds where a package lies, for its page.
///
/// # Errors
/// NOT_FOUND, or UNAVAILABLE if an upstream cannot be asked, so that no one knows.
pub(super) async fn locate(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (language, name): (Language, &str),
    now: Micros,
) -> Result<Located<Location>> {
    if let Some(Repository { uid, revision }) = repository(tx, view, name).await? {
        let revision = Revision::OfRepository(revision);
        return Ok(Located::Here(Location { repository: uid, upstream: None, revision, stale_since: None }));
    }
    for upstream in requestable(tx, hosting, &view.scope.root(), (language, name)).await? {
        let document = documents::find_head(tx, &upstream.uid, name).await?;
        let (document, stale_since) = match Known::of(hosting, &upstream.uid, name, document, now) {
            Known::Fresh(document) => (document, None),
            Known::Old(document) => {
                let since = document.fetched_at;
                (document, Some(since))
            }
            Known::Absent => continue,
            Known::Silent => return Err(silent(&upstream)),
            Known::Unasked(document) => {
                return Ok(Located::Ask(Box::new(Ask::new(upstream, (language, name), document))));
            }
        };
        let stored_files = upstream_files::count(tx, &upstream.uid, name).await?;
        let revision = Revision::OfUpstream { document, stored_files };
        let repository = upstream.uid.clone();
        return Ok(Located::Here(Location { repository, upstream: Some(upstream), revision, stale_since }));
    }
    Err(absent(name))
}

/// Finds the package of a file. An old document is good enough if it has the file;
/// what is not on it may be on a new one.
///
/// # Errors
/// Those of `locate`.
pub(super) async fn locate_file(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (language, name): (Language, &str),
    file: &FileName,
    now: Micros,
) -> Result<Located<Package>> {
    let which = Which::Named(&file.name);
    if let Some(repository) = repository(tx, view, name).await? {
        return Ok(Located::Here(hosted(tx, &repository.uid, name, which).await?));
    }
    for upstream in requestable(tx, hosting, &view.scope.root(), (language, name)).await? {
        let document = documents::find_of(tx, &upstream.uid, name, &file.name).await?;
        let package = of_upstream(tx, language, &upstream, (name, document.as_ref()), which).await?;
        if package.file(file).is_some() {
            return Ok(Located::Here(package));
        }
        match Known::of(hosting, &upstream.uid, name, document.map(|document| document.head), now) {
            Known::Fresh(_) => break,
            Known::Absent => {}
            Known::Old(_) | Known::Silent => return Err(silent(&upstream)),
            Known::Unasked(document) => {
                return Ok(Located::Ask(Box::new(Ask::new(upstream, (language, name), document))));
            }
        }
    }
    Err(absent(&file.name))
}

impl Location {
    /// The package that lies there.
    ///
    /// # Errors
    /// NOT_FOUND if its upstream has no file of it any more.
    pub(super) async fn package(&self, tx: &mut ReadTx, language: Language, name: &str) -> Result<Package> {
        let package = match &self.upstream {
            None => hosted(tx, &self.repository, name, Which::OfPage).await?,
            Some(upstream) => {
                let document = documents::find(tx, &upstream.uid, name).await?;
                of_upstream(tx, language, upstream, (name, document.as_ref()), Which::OfPage).await?
            }
        };
        if package.files.is_empty() { Err(absent(name)) } else { Ok(package) }
    }
}

/// The upstreams of an organization that may be asked for a name, in their order: none for its own names.
pub(super) async fn requestable(
    tx: &mut ReadTx,
    hosting: &Hosting,
    organization: &Uidp,
    (language, name): (Language, &str),
) -> Result<Vec<UpstreamAccess>> {
    if own_names::is_own(tx, organization, language, name).await? {
        return Ok(Vec::new());
    }
    let mut rows = upstreams::of_organization(tx, organization.as_str()).await?;
    rows.retain(|row| row.language == language);
    if !rows.is_empty() {
        entitled::require_upstreams(tx, &hosting.pipeline.settings, organization, language).await?;
    }
    rows.iter().map(|row| UpstreamAccess::of(row, &hosting.pipeline.vault)).collect()
}

pub(super) fn silent(upstream: &UpstreamAccess) -> Error {
    let text = format!("the upstream {} does not answer: try again in a few seconds", upstream.name);
    Error::new(Reason::Unavailable, text)
}

/// The nearest repository of a view that has a package.
pub(super) async fn repository(tx: &mut ReadTx, view: &View, name: &str) -> Result<Option<Repository>> {
    let sql = "SELECT 1 FROM hosted_files WHERE repository = $1 AND package = $2 AND deleted_at IS NULL LIMIT 1";
    for repository in &view.repositories {
        let params = [Value::from(repository.uid.as_str()), Value::from(name)];
        if tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.is_some() {
            return Ok(Some(repository.clone()));
        }
    }
    Ok(None)
}

/// The package that a repository of a group has.
pub(super) async fn hosted(tx: &mut ReadTx, repository: &Uidp, name: &str, which: Which<'_>) -> Result<Package> {
    let mut sql = Sql::new(
        "SELECT f.name, v.version, f.sort_key, v.license, f.size_bytes, f.sha256, f.metadata_sha256,
                      f.requires_python, f.created_at, v.yanked
         FROM hosted_files f JOIN hosted_versions v
           ON v.repository = f.repository AND v.package = f.package AND v.sort_key = f.sort_key
         WHERE f.deleted_at IS NULL",
    );
    sql.bind(" AND f.repository = ", repository.as_str()).bind(" AND f.package = ", name);
    if let Which::Named(file) = which {
        sql.bind(" AND f.name = ", file);
    }
    sql.push(" ORDER BY f.sort_key, f.name");
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(PackageFile {
            name: row.text(0)?,
            version: row.text(1)?,
            sort_key: row.bytes(2)?,
            license: row.text(3)?,
            size: Some(row.int(4)?.unsigned_abs()),
            digest: format!("sha256:{}", row.text(5)?),
            metadata_sha256: row.text(6)?,
            requires_python: row.text(7)?,
            uploaded_at: Some(row.int(8)?),
            first_seen: None,
            yanked: row.opt_text(9)?,
            is_malware: false,
            is_stored: true,
            url: String::new(),
            checksums: Checksums::default(),
            provenance_url: String::new(),
            provenance_type: String::new(),
        })
    };
    let files = tx.query(&sql.text, &sql.params, read).await?;
    let (name, repository, is_whole) = (name.to_owned(), repository.clone(), matches!(which, Which::OfPage));
    Ok(Package { name, repository, upstream: None, files, is_whole, tags: BTreeMap::new() })
}

/// The package as its document and the files that are stored say. A stored file keeps its digest, whatever the document says
/// now. One that the document has lost is there for those who name it; a page does not show it, since upstreams delete what is
/// malicious.
pub(super) async fn of_upstream(
    tx: &mut ReadTx,
    language: Language,
    upstream: &UpstreamAccess,
    (name, document): (&str, Option<&DocumentRow>),
    which: Which<'_>,
) -> Result<Package> {
    let mut files: Vec<PackageFile> = document.map(|document| document.files(language)).unwrap_or_default();
    let stored = match which {
        Which::OfPage => upstream_files::stored_files(tx, &upstream.uid, name).await?,
        Which::Named(file) => Vec::from_iter(upstream_files::stored_file(tx, &upstream.uid, name, file).await?),
    };
    for stored in stored {
        match files.iter_mut().find(|file| file.name == stored.name) {
            Some(file) if file.digest == stored.digest => {
                file.is_stored = true;
                // Its document may have lost it, or shown other bytes, and have it again.
                file.first_seen = FirstSeen::earlier(file.first_seen, stored.first_seen);
                // What the file says of itself counts, if it can be read.
                if !stored.license.is_empty() {
                    file.license = stored.license;
                }
            }
            Some(file) => *file = stored.file(language),
            None if matches!(which, Which::Named(_)) => files.push(stored.file(language)),
            None => {}
        }
    }
    let packages = std::collections::BTreeSet::from([name]);
    if let Some(withheld) = malware::withheld_of(tx, language, &packages).await?.get(name) {
        for file in &mut files {
            file.is_malware = withheld.has(&file.version, &file.sort_key);
        }
    }
    files.sort_by(|a, b| (&a.sort_key, &a.name).cmp(&(&b.sort_key, &b.name)));
    let (name, repository) = (name.to_owned(), upstream.uid.clone());
    let tags = document.map(DocumentRow::tags).unwrap_or_default();
    let (upstream, is_whole) = (Some(upstream.clone()), matches!(which, Which::OfPage));
    Ok(Package { name, repository, upstream, files, is_whole, tags })
}

pub(super) fn absent(name: &str) -> Error {
    Error::not_found("package", name)
}

/// The refusal of something that is not there, or had not been published at a time.
pub(super) fn absent_then(name: &str, moment: Option<Micros>) -> Error {
    let Some(moment) = moment else { return absent(name) };
    let moment = rfc3339::text(moment, Digits::Fewest);
    Error::new(Reason::NotFound, format!("{name} had not been published at {moment}, the time of this address"))
}
