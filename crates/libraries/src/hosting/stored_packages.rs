//! Packages of an organization as they are stored, many at once: their versions, and what clients are told of these. No upstream is
//! requested.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bowline_core::{Error, Result, UidRange, Uidp};
use bowline_store::{ReadTx, Row, Sql, Value};

use super::documents::{self, DocumentRow};
use super::facts::{self, PackageFacts, VersionFacts};
use super::package_file::PackageFile;
use super::packed::PackedManifests;
use super::upstream_files::{self, StoredFile};
use super::{own_names, requirements, upstreams};
use crate::ecosystems::Language;

/// Names that one statement looks up.
const NAMES_AT_ONCE: usize = 64;
/// Documents that one statement reads, and bytes of them, unless a single one has more.
const DOCUMENTS_AT_ONCE: usize = 16;
const BYTES_AT_ONCE: i64 = 8 << 20;
/// Bytes of documents that a reader reads in all, and of manifests that it unpacks; of the last package, all are.
const BYTES: i64 = 128 << 20;
const UNPACKED: usize = 256 << 20;

/// A package that groups of an organization publish, or the first of its upstreams that has it.
pub(crate) struct StoredPackage {
    pub(crate) facts: PackageFacts,
    /// The versions that are there, the highest first.
    pub(crate) versions: Vec<StoredVersion>,
    /// Tags with the versions that they stand for.
    pub(crate) tags: BTreeMap<String, String>,
    /// Of a package of an upstream: where it is from, and of npm and Cargo what clients are told of its versions.
    upstream: Option<Uidp>,
    manifests: PackedManifests,
}

/// A version that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredVersion {
    pub(crate) version: String,
    pub(crate) sort_key: Vec<u8>,
    /// Whether clients pass over it, since its publishers say so.
    pub(crate) is_yanked: bool,
    /// Whether clients take it only if no other one will do.
    pub(crate) is_deprecated: bool,
}

/// Reads packages of an ecosystem whose packages do not lie in each other, which is any but Go.
pub(crate) struct PackageReader<'a> {
    organization: &'a Uidp,
    language: Language,
    /// Whether the packages of groups are shown; else their names have no package.
    shows_own: bool,
    /// Upstreams, and whether what they have is shown.
    upstreams: Vec<(Uidp, bool)>,
    bytes_left: i64,
    /// Bytes of manifests of upstreams that are still unpacked.
    unpacked_left: usize,
    /// Packages that were not read, since those before have too many bytes.
    pub(crate) left_out: BTreeSet<String>,
}

impl StoredPackage {
    fn new(facts: PackageFacts, mut versions: Vec<StoredVersion>) -> StoredPackage {
        versions.sort_by(|one, other| other.sort_key.cmp(&one.sort_key));
        versions.dedup_by(|one, other| one.sort_key == other.sort_key);
        let (tags, upstream, manifests) = (BTreeMap::new(), None, PackedManifests::default());
        StoredPackage { facts, versions, tags, upstream, manifests }
    }

    fn of_document(
        (upstream, language): (&Uidp, Language),
        document: DocumentRow,
        manifests: PackedManifests,
        stored: Vec<StoredFile>,
    ) -> StoredPackage {
        let files = document.files(language);
        // Of several files of a version, those that are not yanked are installed.
        let left: HashSet<&[u8]> =
            files.iter().filter(|file| file.yanked.is_none()).map(|file| file.sort_key.as_slice()).collect();
        let of = |file: &PackageFile| {
            let is_withdrawn = !left.contains(file.sort_key.as_slice());
            StoredVersion {
                is_yanked: is_withdrawn && language != Language::JavaScript,
                is_deprecated: is_withdrawn && language == Language::JavaScript,
                version: file.version.clone(),
                sort_key: file.sort_key.clone(),
            }
        };
        let (versions, tags) = (files.iter().map(of).collect(), document.tags());
        let described = facts::described(language, std::slice::from_ref(&document), stored);
        let facts = PackageFacts { is_own: false, versions: described, has_list: true };
        let upstream = Some(upstream.clone());
        StoredPackage { tags, upstream, manifests, ..StoredPackage::new(facts, versions) }
    }
}

impl<'a> PackageReader<'a> {
    /// A reader that shows packages of groups, and those of upstreams that need an account, if the caller may see them.
    pub(crate) async fn open(
        tx: &mut ReadTx,
        organization: &'a Uidp,
        language: Language,
        shows_own: bool,
    ) -> Result<PackageReader<'a>> {
        let rows = upstreams::of_organization(tx, organization.as_str()).await?;
        let of_language = rows.into_iter().filter(|row| row.language == language);
        let upstreams = of_language.map(|row| (row.uid, shows_own || row.username.is_empty())).collect();
        Ok(PackageReader {
            organization,
            language,
            shows_own,
            upstreams,
            bytes_left: BYTES,
            unpacked_left: UNPACKED,
            left_out: BTreeSet::new(),
        })
    }

    /// The packages of these normalized names, without those that are not stored.
    pub(crate) async fn packages(
        &mut self,
        tx: &mut ReadTx,
        names: &BTreeSet<String>,
    ) -> Result<HashMap<String, StoredPackage>> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let own = own_names::of_names(tx, self.organization, self.language, &names).await?;
        let mut packages = if self.shows_own { self.own_packages(tx, &own).await? } else { HashMap::new() };
        let mut others: Vec<&str> = names.into_iter().filter(|name| !own.contains(name)).collect();
        for (upstream, is_shown) in self.upstreams.clone() {
            let mut known = Vec::new();
            for chunk in others.chunks(NAMES_AT_ONCE) {
                known.extend(document_sizes(tx, &upstream, chunk).await?);
            }
            // The first upstream that has a package counts, also where it has no version any more.
            others.retain(|name| !known.iter().any(|(known, _)| known == name));
            if is_shown {
                self.read_documents(tx, &upstream, known, &mut packages).await?;
            }
        }
        Ok(packages)
    }

    /// Reads documents of an upstream, of which the sizes are known, a few at once.
    async fn read_documents(
        &mut self,
        tx: &mut ReadTx,
        upstream: &Uidp,
        known: Vec<(String, i64)>,
        packages: &mut HashMap<String, StoredPackage>,
    ) -> Result<()> {
        let (mut next, mut bytes) = (Vec::new(), 0);
        for (name, size) in known {
            if size > self.bytes_left {
                self.left_out.insert(name);
                continue;
            }
            self.bytes_left -= size;
            if !next.is_empty() && (next.len() == DOCUMENTS_AT_ONCE || bytes + size > BYTES_AT_ONCE) {
                packages.extend(documents_of(tx, self.language, upstream, &next).await?);
                (next, bytes) = (Vec::new(), 0);
            }
            bytes += size;
            next.push(name);
        }
        if !next.is_empty() {
            packages.extend(documents_of(tx, self.language, upstream, &next).await?);
        }
        Ok(())
    }

    /// What clients are told of some versions of packages that this reader has read: JSON, by package and version. Some are missing
    /// where too much would be unpacked.
    pub(crate) async fn manifests(
        &mut self,
        tx: &mut ReadTx,
        packages: &HashMap<String, StoredPackage>,
        versions: &[(String, String)],
    ) -> Result<HashMap<(String, String), String>> {
        let mut manifests = HashMap::new();
        let mut of_upstreams: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        let mut own = Vec::new();
        for (name, version) in versions {
            match packages.get(name) {
                Some(package) if package.facts.is_own => own.push((name.as_str(), version.as_str())),
                Some(_) => _ = of_upstreams.entry(name).or_default().insert(version),
                None => {}
            }
        }
        if self.language == Language::Python {
            manifests = self.required_of_upstreams(tx, packages, &of_upstreams).await?;
            of_upstreams.clear();
        }
        for (name, spelled) in of_upstreams {
            if self.unpacked_left == 0 {
                break;
            }
            packages[name].manifests.each(|manifest| {
                self.unpacked_left = self.unpacked_left.saturating_sub(manifest.manifest.len());
                if spelled.contains(manifest.version.as_str()) {
                    manifests.insert((name.to_owned(), manifest.version), manifest.manifest);
                }
                Ok(())
            })?;
        }
        for chunk in own.chunks(NAMES_AT_ONCE) {
            self.own_manifests(tx, chunk, &mut manifests).await?;
        }
        Ok(manifests)
    }

    /// What versions of packages of Python from upstreams require, by package and version.
    async fn required_of_upstreams(
        &mut self,
        tx: &mut ReadTx,
        packages: &HashMap<String, StoredPackage>,
        versions: &HashMap<&str, BTreeSet<&str>>,
    ) -> Result<HashMap<(String, String), String>> {
        let mut by_upstream: HashMap<&Uidp, Vec<(&str, &str)>> = HashMap::new();
        for (name, spelled) in versions {
            if let Some(upstream) = &packages[*name].upstream {
                by_upstream.entry(upstream).or_default().extend(spelled.iter().map(|version| (*name, *version)));
            }
        }
        let mut required = HashMap::new();
        for (upstream, versions) in by_upstream {
            for chunk in versions.chunks(NAMES_AT_ONCE) {
                if self.unpacked_left == 0 {
                    return Ok(required);
                }
                let manifests = requirements::of_versions(tx, upstream, chunk).await?;
                let bytes = manifests.values().map(String::len).sum();
                self.unpacked_left = self.unpacked_left.saturating_sub(bytes);
                required.extend(manifests);
            }
        }
        Ok(required)
    }

    /// The rows of groups of the organization, for statements that join them as `r`.
    fn in_organization<'s>(&self, sql: &mut Sql<'s>, range: &'s UidRange) {
        sql.bind(" WHERE r.uid >= ", &range.lower).bind(" AND r.uid < ", &range.upper);
        sql.bind(" AND r.ecosystem = ", self.language.number());
    }

    /// The packages of these names that groups publish: all versions of all groups.
    async fn own_packages(&self, tx: &mut ReadTx, names: &BTreeSet<&str>) -> Result<HashMap<String, StoredPackage>> {
        let published: BTreeSet<String> = names.iter().map(|name| self.language.published(name)).collect();
        let published: Vec<&str> = published.iter().map(String::as_str).collect();
        let mut rows: HashMap<String, Vec<OwnRow>> = HashMap::new();
        let mut tags: HashMap<String, BTreeMap<String, String>> = HashMap::new();
        for chunk in published.chunks(NAMES_AT_ONCE) {
            for row in self.own_rows(tx, chunk).await? {
                rows.entry(row.package.clone()).or_default().push(row);
            }
            for (package, tag, version) in self.own_tags(tx, chunk).await? {
                tags.entry(package).or_default().insert(tag, version);
            }
        }
        let of = |name: &&str| {
            let published = self.language.published(name);
            let package = own_package(rows.get(&published)?);
            let tags = tags.get(&published).cloned().unwrap_or_default();
            Some(((*name).to_owned(), StoredPackage { tags, ..package }))
        };
        Ok(names.iter().filter_map(of).collect())
    }

    async fn own_rows(&self, tx: &mut ReadTx, names: &[&str]) -> Result<Vec<OwnRow>> {
        let range = UidRange::below(self.organization.as_str());
        let mut sql = Sql::new(
            "SELECT f.package, f.sort_key, v.version, v.license, f.created_at, v.yanked IS NOT NULL
             FROM hosted_files f JOIN hosted_versions v
                 ON v.repository = f.repository AND v.package = f.package AND v.sort_key = f.sort_key
               JOIN package_repositories r ON r.uid = f.repository",
        );
        self.in_organization(&mut sql, &range);
        sql.push(" AND f.deleted_at IS NULL");
        sql.bind_list(" AND f.package IN ", padded(names).map(|name| Value::from(*name)));
        // Of several files of a version, the first one that was published comes last.
        sql.push(" ORDER BY f.created_at DESC");
        let is_javascript = self.language == Language::JavaScript;
        let read = |row: &Row<'_>| {
            let facts = VersionFacts::own(row.text(3)?, row.int(4)?);
            let is_withdrawn = row.bool(5)?;
            let (is_yanked, is_deprecated) = (is_withdrawn && !is_javascript, is_withdrawn && is_javascript);
            let version = StoredVersion { version: row.text(2)?, sort_key: row.bytes(1)?, is_yanked, is_deprecated };
            Ok::<_, Error>(OwnRow { package: row.text(0)?, version, facts })
        };
        tx.query(&sql.text, &sql.params, read).await
    }

    /// Package, tag and version of each tag. Of crates there are none.
    async fn own_tags(&self, tx: &mut ReadTx, names: &[&str]) -> Result<Vec<(String, String, String)>> {
        let range = UidRange::below(self.organization.as_str());
        let mut sql = Sql::new(
            "SELECT t.package, t.tag, v.version
             FROM hosted_tags t JOIN hosted_versions v
                 ON v.repository = t.repository AND v.package = t.package AND v.sort_key = t.sort_key
               JOIN package_repositories r ON r.uid = t.repository",
        );
        self.in_organization(&mut sql, &range);
        sql.bind_list(" AND t.package IN ", padded(names).map(|name| Value::from(*name)));
        sql.push(" ORDER BY t.repository");
        tx.query(&sql.text, &sql.params, |row| Ok::<_, Error>((row.text(0)?, row.text(1)?, row.text(2)?))).await
    }

    async fn own_manifests(
        &self,
        tx: &mut ReadTx,
        versions: &[(&str, &str)],
        manifests: &mut HashMap<(String, String), String>,
    ) -> Result<()> {
        let keys: Vec<(String, Vec<u8>)> = versions
            .iter()
            .map(|(name, version)| (self.language.published(name), self.language.order_key(version)))
            .collect();
        let range = UidRange::below(self.organization.as_str());
        let mut sql = Sql::new(
            "SELECT m.package, m.sort_key, m.manifest FROM hosted_manifests m
               JOIN package_repositories r ON r.uid = m.repository",
        );
        self.in_organization(&mut sql, &range);
        for (at, (name, key)) in padded(&keys).enumerate() {
            sql.bind(if at == 0 { " AND ((m.package = " } else { " OR (m.package = " }, name);
            sql.bind(" AND m.sort_key = ", key.as_slice()).push(")");
        }
        sql.push(") ORDER BY m.repository");
        let read = |row: &Row<'_>| Ok::<_, Error>(((row.text(0)?, row.bytes(1)?), row.text(2)?));
        let rows: HashMap<_, _> = tx.query(&sql.text, &sql.params, read).await?.into_iter().collect();
        for ((name, version), key) in versions.iter().zip(&keys) {
            let manifest = rows.get(key).cloned();
            manifests.extend(manifest.map(|manifest| (((*name).to_owned(), (*version).to_owned()), manifest)));
        }
        Ok(())
    }
}

/// A file of a version that a group published.
struct OwnRow {
    package: String,
    version: StoredVersion,
    facts: VersionFacts,
}

fn own_package(rows: &[OwnRow]) -> StoredPackage {
    let versions = rows.iter().map(|row| row.version.clone()).collect();
    let facts = rows.iter().map(|row| (row.version.sort_key.clone(), row.facts.clone())).collect();
    StoredPackage::new(PackageFacts { is_own: true, versions: facts, has_list: false }, versions)
}

/// The same with its last repeated up to a power of two: of few widths, so that few texts fill the statement caches.
pub(super) fn padded<T>(list: &[T]) -> impl Iterator<Item = &T> {
    let more = list.len().next_power_of_two() - list.len();
    list.iter().chain(list.last().into_iter().cycle().take(more))
}

/// Which of some packages an upstream was asked for, with the bytes of their documents and manifests.
async fn document_sizes(tx: &mut ReadTx, upstream: &Uidp, names: &[&str]) -> Result<Vec<(String, i64)>> {
    let mut sql = Sql::new("SELECT package, length(document) + length(manifests) FROM upstream_documents");
    sql.bind(" WHERE upstream = ", upstream.as_str());
    sql.bind_list(" AND package IN ", padded(names).map(|name| Value::from(*name)));
    sql.push(" ORDER BY package");
    tx.query(&sql.text, &sql.params, |row| Ok::<_, Error>((row.text(0)?, row.int(1)?))).await
}

/// The packages of these documents of an upstream.
async fn documents_of(
    tx: &mut ReadTx,
    language: Language,
    upstream: &Uidp,
    names: &[String],
) -> Result<Vec<(String, StoredPackage)>> {
    let mut sql = Sql::new(format!("SELECT {}, document, manifests, package FROM upstream_documents", documents::HEAD));
    sql.bind(" WHERE upstream = ", upstream.as_str());
    sql.bind_list(" AND package IN ", padded(names).map(Value::from));
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(7)?, DocumentRow::read(row)?, PackedManifests(row.bytes(6)?)));
    let rows = tx.query(&sql.text, &sql.params, read).await?;
    let mut stored = stored_files(tx, upstream, names).await?;
    let of = |(name, document, manifests): (String, DocumentRow, PackedManifests)| {
        let files = stored.remove(&name).unwrap_or_default();
        (name, StoredPackage::of_document((upstream, language), document, manifests, files))
    };
    Ok(rows.into_iter().map(of).collect())
}

/// The stored files of these packages at an upstream.
async fn stored_files(tx: &mut ReadTx, upstream: &Uidp, names: &[String]) -> Result<HashMap<String, Vec<StoredFile>>> {
    let mut sql = Sql::new(format!("SELECT {}, package FROM upstream_files", upstream_files::COLUMNS));
    sql.bind(" WHERE upstream = ", upstream.as_str());
    sql.bind_list(" AND package IN ", padded(names).map(Value::from));
    sql.push(" ORDER BY name");
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(11)?, StoredFile::read(row)?));
    let mut files: HashMap<String, Vec<StoredFile>> = HashMap::new();
    for (name, file) in tx.query(&sql.text, &sql.params, read).await? {
        files.entry(name).or_default().push(file);
    }
    Ok(files)
}
