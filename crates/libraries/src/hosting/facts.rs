//! What is known of the versions of packages without asking upstreams: what previews and explanations of policies are made of.

use std::collections::{HashMap, HashSet};

use bowline_core::{Error, Micros, Result, UidRange, Uidp};
use bowline_store::{ReadTx, Row, Value};

use super::documents::DocumentRow;
use super::own_names::is_own;
use super::upstream_files::StoredFile;
use super::{documents, upstream_files, upstreams};
use crate::ecosystems::Language;
use crate::policy::age::{Age, FirstSeen};
use crate::vulnerabilities::KnownVersions;

/// What is known of a version: that a group published, or that upstreams of the organization were last known to have.
#[derive(Clone, Default)]
pub(crate) struct VersionFacts {
    /// The license that a file of it declares; empty if none was fetched.
    pub(crate) license: String,
    /// Since when its first file is public.
    pub(crate) age: Age,
    /// The version as it is spelled; empty for packages of groups.
    pub(crate) version: String,
}

impl VersionFacts {
    /// Those of a version that a group published, by one of its files.
    pub(super) fn own(license: String, published_at: Micros) -> VersionFacts {
        VersionFacts { license, age: Age::published(Some(published_at)), version: String::new() }
    }
}

/// What is known of a package.
#[derive(Default)]
pub(crate) struct PackageFacts {
    /// Whether the name is the organization's own.
    pub(crate) is_own: bool,
    /// By the sort keys of the versions.
    pub(crate) versions: HashMap<Vec<u8>, VersionFacts>,
    /// Whether an upstream's list of the versions is known.
    pub(crate) has_list: bool,
}

/// The facts of the versions of a package; none if no group has it and no document here.
pub(crate) async fn package_facts(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    name: &str,
) -> Result<PackageFacts> {
    if is_own(tx, organization, language, name).await? {
        let versions = own_versions(tx, organization, language, &language.published(name)).await?;
        return Ok(PackageFacts { is_own: true, versions, has_list: false });
    }
    upstream_versions(tx, organization, language, name).await
}

/// The versions that groups of an organization published under a name.
async fn own_versions(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    name: &str,
) -> Result<HashMap<Vec<u8>, VersionFacts>> {
    let UidRange { lower, upper } = UidRange::below(organization.as_str());
    let sql = "SELECT f.sort_key, v.license, f.created_at FROM hosted_files f JOIN hosted_versions v
                 ON v.repository = f.repository AND v.package = f.package AND v.sort_key = f.sort_key
                 JOIN package_repositories r ON r.uid = f.repository
               WHERE f.package = $1 AND f.repository >= $2 AND f.repository < $3 AND f.deleted_at IS NULL
                 AND r.ecosystem = $4
               ORDER BY f.created_at DESC";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.bytes(0)?, VersionFacts::own(row.text(1)?, row.int(2)?)));
    let params = [Value::from(name), Value::from(&lower), Value::from(&upper), Value::Int(language.number())];
    let rows = tx.query(sql, &params, read).await?;
    // Of several files, the first one that was published comes last.
    Ok(rows.into_iter().collect())
}

/// The versions that the first upstream has that has the package.
async fn upstream_versions(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    name: &str,
) -> Result<PackageFacts> {
    for row in upstreams::of_organization(tx, organization.as_str()).await? {
        if row.language == language {
            let facts = versions_at(tx, &row.uid, language, name).await?;
            if !facts.versions.is_empty() {
                return Ok(facts);
            }
        }
    }
    Ok(PackageFacts::default())
}

/// The versions of a package that an upstream was last known to have.
async fn versions_at(tx: &mut ReadTx, upstream: &Uidp, language: Language, name: &str) -> Result<PackageFacts> {
    let mut documents: Vec<_> = documents::find(tx, upstream, name).await?.into_iter().collect();
    let has_list = !documents.is_empty();
    if language == Language::Go {
        documents.extend(documents::of_versions(tx, upstream, name).await?);
    }
    let stored = upstream_files::stored_files(tx, upstream, name).await?;
    Ok(PackageFacts { is_own: false, versions: described(language, &documents, stored), has_list })
}

/// The versions of a package of an upstream, as documents and the files that are stored from there describe them: of a stored file,
/// the age that its document says counts if that is about the same bytes, and the earlier time at which they were seen.
pub(super) fn described(
    language: Language,
    documents: &[DocumentRow],
    stored: Vec<StoredFile>,
) -> HashMap<Vec<u8>, VersionFacts> {
    let mut facts: HashMap<Vec<u8>, VersionFacts> = HashMap::new();
    let by_name: HashMap<&str, &StoredFile> = stored.iter().map(|stored| (stored.name.as_str(), stored)).collect();
    let mut described = HashSet::new();
    for mut file in documents.iter().flat_map(|document| document.files(language)) {
        let of_name = by_name.get(file.name.as_str());
        let same = of_name.filter(|stored| stored.digest == file.digest);
        if let Some(stored) = same {
            file.first_seen = FirstSeen::earlier(file.first_seen, stored.first_seen);
        }
        let age = file.age();
        let known = facts.entry(file.sort_key).or_default();
        if of_name.is_none() || same.is_some() {
            known.age = known.age.or_older(age);
        }
        described.extend(same.map(|_| file.name));
        (known.license, known.version) = (file.license, file.version);
    }
    for stored in stored {
        let file = stored.file(language);
        let age = file.age();
        let known = facts.entry(file.sort_key).or_default();
        if !described.contains(&file.name) {
            known.age = known.age.or_older(age);
        }
        known.version = file.version;
        if !file.license.is_empty() {
            known.license = file.license;
        }
    }
    facts
}

/// The same for the look-up of fixes.
pub(super) async fn known_versions(
    tx: &mut ReadTx,
    upstream: &Uidp,
    language: Language,
    name: &str,
) -> Result<KnownVersions> {
    Ok(versions_at(tx, upstream, language, name).await?.known_versions())
}

impl PackageFacts {
    /// The versions of an upstream for the look-up of fixes.
    pub(crate) fn known_versions(&self) -> KnownVersions {
        let mut versions = KnownVersions::new(self.has_list);
        for (key, facts) in self.versions.iter().filter(|(_, facts)| !facts.version.is_empty()) {
            versions.add(key, &facts.version, facts.age);
        }
        versions
    }
}
