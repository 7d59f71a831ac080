//! The lists of Maven's repositories, `maven-metadata.xml`: versions of an artifact, builds of a snapshot, plugins of a group.
//!
//! None is stored: each is made of what is there and of what upstreams list. Lists of several upstreams are one. A version that
//! a policy withholds is left out; one of which no one knows how old it is is listed, and its files are refused.

use std::collections::BTreeMap;

use bowline_contract::bowline::libraries::v1::MavenPlugin;
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Error, Micros, Result, UidRange, Uidp};
use bowline_store::{ReadTx, Row, Value};
use bowline_versions::order_key;

use super::documents::{self, Ask};
use super::gate::Gate;
use super::package::{Known, Package, Which, absent, of_upstream, repository, requestable, silent};
use super::package_file::PackageFile;
use super::protocols::Maven;
use super::repositories::Repository;
use super::snapshots::{SNAPSHOT, SnapshotName, newest};
use super::views::View;
use super::{HostClient, HostError, Hosting, Lookup, Withheld, java, reservations};
use crate::ecosystems::Language;
use crate::policy::decide::Refusal;
use crate::policy::purl;

const LANGUAGE: Language = Language::Java;
/// Plugins of Maven, by the packaging of their POM.
const PLUGIN: &str = "maven-plugin";

/// What a list of a directory says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JavaMetadata {
    /// Group and artifact that the directory is, as an artifact.
    pub group: String,
    pub artifact: String,
    /// Versions, the lowest first.
    pub versions: Vec<String>,
    /// Plugins of the group that the directory is.
    pub plugins: Vec<MavenPlugin>,
    pub snapshot: Option<Snapshot>,
    /// When it changed last, where that is known.
    pub updated_at: Option<Micros>,
    /// Microseconds since its upstream confirmed it, if that cannot be asked.
    pub stale: Option<Micros>,
}

/// The newest build of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub version: String,
    /// Such as `20260102.030405`, and the number of the build.
    pub timestamp: String,
    pub build: u64,
    /// The newest file of each kind.
    pub files: Vec<SnapshotFile>,
}

/// The newest file of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Empty for the main artifact.
    pub classifier: String,
    /// The rest of the name, such as `jar`.
    pub extension: String,
    /// The version in its name, such as `1.0-20260102.030405-1`.
    pub value: String,
    /// When it was built, such as `20260102030405`.
    pub updated: String,
}

impl JavaMetadata {
    /// The highest version, with snapshots or without.
    pub fn highest(&self, with_snapshots: bool) -> Option<&str> {
        let mut versions = self.versions.iter().rev();
        versions.find(|version| with_snapshots || !version.ends_with(SNAPSHOT)).map(String::as_str)
    }
}

impl Hosting {
    /// The list of a directory of a view, by its parts.
    ///
    /// # Errors
    /// The caller may not read there, there is none, no one knows, or a policy withholds all that it has.
    pub async fn java_metadata(
        &self,
        client: &HostClient,
        path: Option<&str>,
        directory: &[String],
    ) -> std::result::Result<Lookup<JavaMetadata>, HostError> {
        let of = (self.clone(), client.clone(), path.map(str::to_owned), directory.to_vec());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, directory) = of.clone();
            Box::pin(async move {
                let view = View::open::<Maven>(tx, &client, path.as_deref()).await?;
                let name = directory.join("/");
                match directory.as_slice() {
                    [group @ .., artifact, version] if version.ends_with(SNAPSHOT) && !group.is_empty() => {
                        snapshot(tx, &view, (&group.join("."), artifact), version).await.map(Lookup::Here)
                    }
                    [group @ .., artifact] if !group.is_empty() => {
                        list(tx, &hosting, &view, (&group.join("."), artifact), client.now()).await
                    }
                    _ => Err(absent(&name).into()),
                }
            })
        });
        read.await
    }
}

/// The builds of a snapshot of a group.
async fn snapshot(
    tx: &mut ReadTx,
    view: &View,
    (group, artifact): (&str, &str),
    version: &str,
) -> std::result::Result<JavaMetadata, HostError> {
    let (package, base) = (format!("{group}:{artifact}"), version.strip_suffix(SNAPSHOT).unwrap_or(version));
    let missing = || absent(&format!("{package}:{version}"));
    let repository = repository(tx, view, &package).await?.ok_or_else(missing)?;
    let names = snapshot_files(tx, &repository.uid, &package, version).await?;
    let parsed: Vec<SnapshotName> =
        names.iter().filter_map(|(name, _)| SnapshotName::parse(artifact, base, name.rsplit('/').next()?)).collect();
    let last = parsed.iter().max_by_key(|name| name.age()).ok_or_else(missing)?;
    let file = |name: SnapshotName| SnapshotFile {
        value: format!("{base}-{}-{}", name.timestamp, name.build),
        updated: name.timestamp.replace('.', ""),
        classifier: name.classifier,
        extension: name.extension,
    };
    let snapshot = Snapshot {
        version: version.into(),
        timestamp: last.timestamp.clone(),
        build: last.build,
        files: newest(parsed.iter()).into_iter().map(file).collect(),
    };
    Ok(JavaMetadata {
        group: group.into(),
        artifact: artifact.into(),
        updated_at: names.iter().map(|(_, created_at)| *created_at).max(),
        snapshot: Some(snapshot),
        ..JavaMetadata::default()
    })
}

/// Names and times of the files of a version of a group.
pub(super) async fn snapshot_files(
    tx: &mut ReadTx,
    repository: &Uidp,
    package: &str,
    version: &str,
) -> Result<Vec<(String, Micros)>> {
    let sql = "SELECT name, created_at FROM hosted_files
               WHERE repository = $1 AND package = $2 AND sort_key = $3 AND deleted_at IS NULL ORDER BY name";
    let sort_key = order_key(LANGUAGE.scheme(), version);
    let params = [Value::from(repository.as_str()), Value::from(package), Value::from(sort_key.as_slice())];
    tx.query(sql, &params, |row| Ok::<_, Error>((row.text(0)?, row.int(1)?))).await
}

/// The versions of an artifact, and the plugins of the group that has the name of both.
async fn list(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (group, artifact): (&str, &str),
    now: Micros,
) -> std::result::Result<Lookup<JavaMetadata>, HostError> {
    let (package, as_group) = (format!("{group}:{artifact}"), format!("{group}.{artifact}"));
    let mut metadata = JavaMetadata { group: group.into(), artifact: artifact.into(), ..JavaMetadata::default() };
    let mut versions: BTreeMap<Vec<u8>, String> = BTreeMap::new();
    let mut refusals: Vec<Withheld> = Vec::new();
    for found in plugins(tx, &view.repositories, &as_group).await? {
        metadata.add(found);
    }
    let mut packages = Vec::new();
    if let Some(repository) = repository(tx, view, &package).await? {
        packages.push(hosted(tx, &repository.uid, &package).await?);
    } else if !is_own_group(tx, &view.scope.root(), &as_group).await? {
        for upstream in requestable(tx, hosting, &view.scope.root(), (LANGUAGE, &package)).await? {
            let head = documents::find_head(tx, &upstream.uid, &package).await?;
            let head = match Known::of(hosting, &upstream.uid, &package, head, now) {
                Known::Fresh(head) => head,
                Known::Old(head) => {
                    metadata.stale = metadata.stale.max(Some(now.saturating_sub(head.fetched_at)));
                    head
                }
                Known::Absent => continue,
                Known::Silent => return Err(silent(&upstream).into()),
                Known::Unasked(head) => {
                    return Ok(Lookup::Ask(Box::new(Ask::new(upstream, (LANGUAGE, &package), head))));
                }
            };
            metadata.updated_at = metadata.updated_at.max(Some(head.serial).filter(|micros| *micros > 0));
            let document = documents::find(tx, &upstream.uid, &package).await?;
            for found in document.iter().flat_map(documents::DocumentRow::plugins) {
                metadata.add(found.clone());
            }
            packages.push(of_upstream(tx, LANGUAGE, &upstream, (&package, document.as_ref()), Which::OfPage).await?);
        }
    }
    for package in &packages {
        let gate = Gate::load_whole(tx, &view.scope.root(), LANGUAGE, package, now).await?;
        let refused = gate.refused(package, now)?;
        for file in &package.files {
            match refused.get(file.name.as_str()).zip(gate.enforced.as_ref()) {
                Some((refusal, bound)) if !is_unknown_age(refusal) => {
                    let purl = purl::of_version(LANGUAGE, &package.name, &file.version);
                    refusals.push(Withheld::new(purl, &bound.name, refusal));
                }
                _ => {
                    let updated_at = file.uploaded_at.filter(|_| package.is_hosted());
                    metadata.updated_at = metadata.updated_at.max(updated_at);
                    versions.entry(spelled_key(file)).or_insert_with(|| file.version.clone());
                }
            }
        }
    }
    metadata.versions = versions.into_values().collect();
    match refusals.pop() {
        Some(withheld) if metadata.versions.is_empty() => Err(HostError::Withheld(withheld)),
        _ if metadata.versions.is_empty() && metadata.plugins.is_empty() => Err(absent(&package).into()),
        _ => Ok(Lookup::Here(metadata)),
    }
}

impl JavaMetadata {
    /// Adds a plugin, unless its short name is taken: the nearest group counts, then the first upstream.
    fn add(&mut self, plugin: MavenPlugin) {
        if self.plugins.iter().all(|known| known.prefix != plugin.prefix) {
            self.plugins.push(plugin);
        }
    }
}

/// By version; spellings of one version are versions of their own here, since they have directories of their own.
fn spelled_key(file: &PackageFile) -> Vec<u8> {
    [&file.sort_key[..], &[0], file.version.as_bytes()].concat()
}

/// Whether a version is refused because its age is not known, which its POM will say.
fn is_unknown_age(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Cooldown { until: None, .. } | Refusal::Frozen { published_at: None, .. })
}

/// A package that a group published, as its versions that have a POM.
async fn hosted(tx: &mut ReadTx, repository: &Uidp, name: &str) -> Result<Package> {
    let sql = "SELECT version, license, created_at FROM hosted_versions
               WHERE repository = $1 AND package = $2 AND packaging <> '' ORDER BY sort_key";
    let read = |row: &Row<'_>| {
        let version = row.text(0)?;
        Ok::<_, Error>(PackageFile {
            license: row.text(1)?,
            uploaded_at: Some(row.int(2)?),
            is_stored: true,
            ..PackageFile::unfetched(LANGUAGE, &version, &version)
        })
    };
    let files = tx.query(sql, &[Value::from(repository.as_str()), Value::from(name)], read).await?;
    Ok(Package::of_files(name, repository.clone(), None, files))
}

/// The plugins of a group of Maven that repositories have, by the short names that their artifacts give them.
async fn plugins(tx: &mut ReadTx, repositories: &[Repository], group: &str) -> Result<Vec<MavenPlugin>> {
    let sql = "SELECT DISTINCT package FROM hosted_versions
               WHERE repository = $1 AND package >= $2 AND package < $3 AND packaging = $4 ORDER BY package";
    let mut found = Vec::new();
    // The sign after a colon.
    let (lower, upper) = (format!("{group}:"), format!("{group};"));
    for repository in repositories {
        let params =
            [Value::from(repository.uid.as_str()), Value::from(&lower), Value::from(&upper), Value::from(PLUGIN)];
        for package in tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await? {
            let artifact = java::artifact(&package).to_owned();
            found.push(MavenPlugin { prefix: prefix(&artifact), name: artifact.clone(), artifact });
        }
    }
    Ok(found)
}

/// The short name of a plugin, as Maven itself gives it: without `-maven-plugin` or the words of Maven's own.
fn prefix(artifact: &str) -> String {
    let rest: Vec<&str> = artifact.split('-').filter(|word| !matches!(*word, "maven" | "plugin")).collect();
    if rest.is_empty() { artifact.to_owned() } else { rest.join("-") }
}

/// Whether a group of Maven is the organization's: reserved, or something of it is published there. Its list is not requested
/// from upstreams, to which that would tell its name.
async fn is_own_group(tx: &mut ReadTx, organization: &Uidp, group: &str) -> Result<bool> {
    let (lower, upper) = (format!("{group}:"), format!("{group};"));
    if reservations::has_in_group(tx, organization.as_str(), group).await? {
        return Ok(true);
    }
    let range = UidRange::below(organization.as_str());
    let sql = "SELECT 1 FROM hosted_files
               WHERE package >= $1 AND package < $2 AND repository >= $3 AND repository < $4 LIMIT 1";
    let params = [Value::from(&lower), Value::from(&upper), Value::from(&range.lower), Value::from(&range.upper)];
    Ok(tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.is_some())
}

/// A time as lists have it, such as `20260102030405`.
pub fn list_time(at: Micros) -> String {
    let text = rfc3339::text(at, Digits::Fewest);
    text.bytes().filter(u8::is_ascii_digit).take(14).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_have_the_short_names_of_maven() {
        for (artifact, wanted) in [
            ("maven-clean-plugin", "clean"),
            ("exec-maven-plugin", "exec"),
            ("build-helper-maven-plugin", "build-helper"),
            ("odd", "odd"),
            ("maven-plugin", "maven-plugin"),
        ] {
            assert_eq!(prefix(artifact), wanted, "{artifact}");
        }
    }

    #[test]
    fn times_of_lists_are_digits() {
        assert_eq!(list_time(1_700_000_000_123_456), "20231114221320");
    }
}
