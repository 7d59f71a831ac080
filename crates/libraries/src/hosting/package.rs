//! Where a package is found: published by a group of the view, or at an upstream of the organization.
//!
//! The nearest group that publishes a package counts, whole. A name that is reserved, or that any group of the organization
//! publishes or ever published, is never requested from an upstream: it would tell others which names are private, and the answer could
//! come from anyone who takes the name there. Of upstreams, the first that has the package counts, whole.

use std::collections::HashMap;

use bowline_core::{Error, Micros, Reason, Result, UidRange, Uidp};
use bowline_store::{ReadTx, Row, Value};

use super::documents::{self, Ask, DocumentRow, Outcome, UpstreamAccess};
use super::served::ServedVersion;
use super::views::View;
use super::{Hosting, reservations, upstream_files, upstreams};
use crate::ecosystems::Language;
use crate::malware;

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
    /// When the upstream confirmed it, if that is too long ago and it could not be asked again.
    pub(super) stale_since: Option<Micros>,
}

/// A file of a package.
#[derive(Clone, Debug)]
pub(super) struct PackageFile {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) sort_key: Vec<u8>,
    /// License that it declares; empty without one, and until it is known.
    pub(super) license: String,
    /// Length in bytes, where that is known.
    pub(super) size: Option<u64>,
    /// SHA-256 in lower-case hex.
    pub(super) sha256: String,
    /// SHA-256 of its core metadata; empty without.
    pub(super) metadata_sha256: String,
    pub(super) requires_python: String,
    /// When it became public, where that is known.
    pub(super) uploaded_at: Option<Micros>,
    /// Why installers should pass over it; absent if they need not.
    pub(super) yanked: Option<String>,
    pub(super) is_malware: bool,
    /// Whether its bytes were stored as this file's, so that its license is known as far as it can be.
    pub(super) is_stored: bool,
    /// Address of its bytes at the upstream.
    pub(super) url: String,
}

impl Package {
    pub(super) fn is_hosted(&self) -> bool {
        self.upstream.is_none()
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

    /// The package, unless its upstream has no file of it any more.
    fn located(self) -> Result<Located> {
        if self.files.is_empty() { Err(absent(&self.name)) } else { Ok(Located::Here(self)) }
    }

    /// The file with this name and digest.
    pub(super) fn file(&self, (sha256, name): (&str, &str)) -> Option<&PackageFile> {
        self.files.iter().find(|file| file.name == name && file.sha256 == sha256)
    }
}

/// Where a package is, or whom to ask.
#[derive(Debug)]
pub(super) enum Located {
    Here(Package),
    Ask(Box<Ask>),
}

/// Finds a package. With `wanted`, digest and name of one of its files, an old document is good enough if it has that file.
///
/// # Errors
/// NOT_FOUND, or UNAVAILABLE if an upstream cannot be asked, so that no one knows.
pub(super) async fn locate(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (language, name): (Language, &str),
    wanted: Option<(&str, &str)>,
    now: Micros,
) -> Result<Located> {
    if let Some(package) = hosted(tx, view, name).await? {
        return Ok(Located::Here(package));
    }
    let organization = view.scope.root();
    if is_own(tx, &organization, language, name).await? {
        return Err(absent(name));
    }
    for row in upstreams::of_organization(tx, organization.as_str()).await? {
        if row.language != language {
            continue;
        }
        let upstream = UpstreamAccess::of(&row, &hosting.pipeline.vault)?;
        let document = documents::find(tx, &upstream.uid, name).await?;
        let package = of_upstream(tx, language, &upstream, (name, document.as_ref()), wanted.is_some()).await?;
        if wanted.is_some_and(|wanted| package.file(wanted).is_some()) {
            return Ok(Located::Here(package));
        }
        match (document, hosting.memory.outcome(&upstream.uid, name, now)) {
            (Some(document), _) if document.is_fresh(now) => return package.located(),
            (None, Some(Outcome::Absent)) => {}
            // What is not on an old page may be on a new one.
            (Some(document), Some(Outcome::Failed)) if document.is_usable(now) && wanted.is_none() => {
                return Package { stale_since: Some(document.fetched_at), ..package }.located();
            }
            (_, Some(Outcome::Failed)) => {
                let text = format!("the upstream {} does not answer: try again in a few seconds", upstream.name);
                return Err(Error::new(Reason::Unavailable, text));
            }
            (document, _) => return Ok(Located::Ask(Box::new(Ask::new(upstream, name, document)))),
        }
    }
    Err(absent(name))
}

/// The package of the nearest repository of a view that has it.
async fn hosted(tx: &mut ReadTx, view: &View, name: &str) -> Result<Option<Package>> {
    let sql = "SELECT f.name, v.version, f.sort_key, v.license, f.size_bytes, f.sha256, f.metadata_sha256,
                      f.requires_python, f.created_at, v.yanked
               FROM hosted_files f JOIN hosted_versions v
                 ON v.repository = f.repository AND v.package = f.package AND v.sort_key = f.sort_key
               WHERE f.repository = $1 AND f.package = $2 AND f.deleted_at IS NULL ORDER BY f.sort_key, f.name";
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(PackageFile {
            name: row.text(0)?,
            version: row.text(1)?,
            sort_key: row.bytes(2)?,
            license: row.text(3)?,
            size: Some(row.int(4)?.unsigned_abs()),
            sha256: row.text(5)?,
            metadata_sha256: row.text(6)?,
            requires_python: row.text(7)?,
            uploaded_at: Some(row.int(8)?),
            yanked: row.opt_text(9)?,
            is_malware: false,
            is_stored: true,
            url: String::new(),
        })
    };
    for repository in &view.repositories {
        let files = tx.query(sql, &[Value::from(repository.as_str()), Value::from(name)], read).await?;
        if !files.is_empty() {
            let (name, repository) = (name.to_owned(), repository.clone());
            return Ok(Some(Package { name, repository, upstream: None, files, stale_since: None }));
        }
    }
    Ok(None)
}

/// Whether a name is the organization's: reserved, or published by any group of it, if only once before it was deleted.
async fn is_own(tx: &mut ReadTx, organization: &Uidp, language: Language, name: &str) -> Result<bool> {
    let UidRange { lower, upper } = UidRange::below(organization.as_str());
    let sql = "SELECT 1 FROM hosted_files WHERE package = $1 AND repository >= $2 AND repository < $3 LIMIT 1";
    let params = [Value::from(name), Value::from(&lower), Value::from(&upper)];
    let published = tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(published.is_some() || reservations::has(tx, organization.as_str(), language, name).await?)
}

/// Refuses to publish the first file of a package whose name an upstream is known to have: it would take the upstream's
/// package from the whole organization. The upstream is not asked, which would tell others the name.
pub(super) async fn require_name(tx: &mut ReadTx, group: &Uidp, language: Language, name: &str) -> Result<()> {
    let organization = group.root();
    if is_own(tx, &organization, language, name).await? {
        return Ok(());
    }
    for row in upstreams::of_organization(tx, organization.as_str()).await? {
        let document = documents::find(tx, &row.uid, name).await?.filter(|_| row.language == language);
        if document.is_some_and(|document| document.has_files()) {
            let text = format!(
                "the upstream {} has a package {name}, which the organization installs: publish under another name, or \
                 have an owner reserve this one",
                row.name
            );
            return Err(Error::new(Reason::AlreadyExists, text));
        }
    }
    Ok(())
}

/// The package as its document and the files that are stored say. A stored file keeps its digest, whatever the document says
/// now. One that the document has lost is there for those who name it, `with_lost`; a page does not show it, since upstreams
/// delete what is malicious.
async fn of_upstream(
    tx: &mut ReadTx,
    language: Language,
    upstream: &UpstreamAccess,
    (name, document): (&str, Option<&DocumentRow>),
    with_lost: bool,
) -> Result<Package> {
    let mut files: Vec<PackageFile> = document.map(|document| document.files(language)).unwrap_or_default();
    for stored in upstream_files::stored_files(tx, &upstream.uid, name).await? {
        match files.iter_mut().find(|file| file.name == stored.name) {
            Some(file) if file.sha256 == stored.sha256 => (file.license, file.is_stored) = (stored.license, true),
            Some(file) => *file = stored.file(language),
            None if with_lost => files.push(stored.file(language)),
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
    Ok(Package { name, repository, upstream: Some(upstream.clone()), files, stale_since: None })
}

/// What the upstreams of an organization were last known to say of a version.
#[derive(Clone, Default)]
pub(crate) struct UpstreamFacts {
    /// The license that a fetched file of it declares; empty if none was fetched.
    pub(crate) license: String,
    /// When its first file became public, where that is known.
    pub(crate) published_at: Option<Micros>,
}

/// The facts of the versions of a package that comes from an upstream, by their sort keys; none if no document here has it, or
/// the name is the organization's own.
pub(crate) async fn upstream_facts(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    name: &str,
) -> Result<HashMap<Vec<u8>, UpstreamFacts>> {
    let mut facts: HashMap<Vec<u8>, UpstreamFacts> = HashMap::new();
    if is_own(tx, organization, language, name).await? {
        return Ok(facts);
    }
    for row in upstreams::of_organization(tx, organization.as_str()).await? {
        let Some(document) = documents::find(tx, &row.uid, name).await?.filter(|_| row.language == language) else {
            continue;
        };
        for file in document.files(language) {
            let known = facts.entry(file.sort_key).or_default();
            known.published_at = known.published_at.into_iter().chain(file.uploaded_at).min();
        }
        for stored in upstream_files::stored_files(tx, &row.uid, name).await? {
            let file = stored.file(language);
            let known = facts.entry(file.sort_key).or_default();
            known.published_at = known.published_at.into_iter().chain(file.uploaded_at).min();
            known.license = std::mem::take(&mut known.license).max(file.license);
        }
        break;
    }
    Ok(facts)
}

pub(super) fn absent(name: &str) -> Error {
    Error::not_found("package", name)
}
