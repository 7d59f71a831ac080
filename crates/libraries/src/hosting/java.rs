//! What Maven's protocol asks for: files by their paths, since its repositories have no lists of them.
//!
//! A file is named by its version's directory and its own name. Of an upstream, the POM of a version is fetched first: it says
//! that the version exists, since when, and its license. Before it comes the list of the package, where a policy counts from when
//! versions were seen first: it says which of them are not new. Another file is pinned by the bytes that came first. Versions come from the
//! first upstream that has them.

use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::{ReadTx, Row, Value};
use bowline_versions::order_key;

use super::documents::{self, Ask, UpstreamAccess};
use super::files::Checksums;
use super::memory::Outcome;
use super::package::{LocateFile, Located, Package, absent, repository, requestable, silent};
use super::package_file::PackageFile;
use super::protocols::Maven;
use super::serving::FileName;
use super::snapshots::{SNAPSHOT, SnapshotName, newest};
use super::upstream_files::{self, MissingFile, StoredFile};
use super::views::View;
use super::{AvailableFile, HostClient, HostError, Hosting, Lookup};
use super::{gate, known_versions};
use crate::ecosystems::Language;
use crate::malware;

const LANGUAGE: Language = Language::Java;
/// POMs above one another whose licenses are looked at.
const PARENTS: usize = 8;

/// A version by its coordinates.
#[derive(Clone, Copy)]
struct Coordinates<'a> {
    /// Group and artifact, such as `org.example:library`.
    package: &'a str,
    version: &'a str,
}

impl<'a> Coordinates<'a> {
    /// Of the package, and a name that begins with the directory of the version.
    fn of_file(package: &'a str, name: &'a str) -> Coordinates<'a> {
        Coordinates { package, version: name.split('/').next().unwrap_or_default() }
    }

    /// Of a text such as `org.example:library:1.0`.
    fn parse(text: &'a str) -> Option<Coordinates<'a>> {
        text.rsplit_once(':').map(|(package, version)| Coordinates { package, version })
    }

    /// Name of its POM, with the directory of the version.
    fn pom(self) -> String {
        pom_name(self.package, self.version)
    }
}

/// The artifact of a package such as `org.example:library`.
pub fn artifact(package: &str) -> &str {
    package.rsplit(':').next().unwrap_or_default()
}

/// The name of the POM of a version below its package, such as `1.0/library-1.0.pom`.
pub fn pom_name(package: &str, version: &str) -> String {
    format!("{version}/{}-{version}.pom", artifact(package))
}

/// The address of something of a package at an upstream.
pub fn address(upstream: &str, package: &str, name: &str) -> String {
    let (group, artifact) = package.split_once(':').unwrap_or(("", package));
    format!("{}/{}/{artifact}/{name}", upstream.trim_end_matches('/'), group.replace('.', "/"))
}

impl Hosting {
    /// A file of a package of a view, by its name below the package, such as `1.0/library-1.0.jar`. Of a snapshot also the
    /// newest build, by its name without time and number.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds it, which is noted.
    pub async fn java_file(
        &self,
        client: &HostClient,
        path: Option<&str>,
        package: &str,
        name: &str,
    ) -> std::result::Result<Lookup<AvailableFile>, HostError> {
        let file = FileName { name: name.into(), digest: None };
        self.file::<Maven>(client, path, (package, &file), false).await
    }
}

impl LocateFile for Maven {
    async fn locate_file(
        tx: &mut ReadTx,
        hosting: &Hosting,
        view: &View,
        name: &str,
        file: &FileName,
        now: Micros,
    ) -> Result<Located<Package>> {
        let wanted = Coordinates::of_file(name, &file.name);
        if let Some(repository) = repository(tx, view, name).await? {
            let (mut files, parent) = hosted(tx, &repository.uid, wanted).await?;
            if let Some(build) = newest_build(wanted, &files, &file.name) {
                files.push(PackageFile { name: file.name.clone(), ..build });
            }
            let license = match inherited(tx, hosting, view, (files.first(), &parent), now).await? {
                Inherited::License(license) => license,
                Inherited::Missing(missing) => return Ok(missing.located()),
            };
            for file in &mut files {
                file.license.clone_from(&license);
            }
            return Ok(Located::Here(Package::of_files(name, repository.uid, None, files)));
        }
        match pom(tx, hosting, view, wanted, now).await? {
            Pom::Nowhere => Err(absent(&file.name)),
            Pom::Unfetched(missing) => Ok(missing.located()),
            Pom::Stored(of) => beside(tx, hosting, view, (of.0, wanted, of.1), file, now).await,
        }
    }
}

/// A file of a version whose POM an upstream has.
async fn beside(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (upstream, wanted, pom): (UpstreamAccess, Coordinates<'_>, StoredFile),
    file: &FileName,
    now: Micros,
) -> Result<Located<Package>> {
    let parent = pom.parent_pom.clone();
    let described = pom.file(LANGUAGE);
    let license = match inherited(tx, hosting, view, (Some(&described), &parent), now).await? {
        Inherited::License(license) => license,
        Inherited::Missing(missing) => return Ok(missing.located()),
    };
    let stored = upstream_files::stored_file(tx, &upstream.uid, wanted.package, &file.name).await?;
    let found = if let Some(stored) = stored {
        stored.file(LANGUAGE)
    } else {
        let missing = missing(&upstream, wanted, &file.name);
        if hosting.memory.outcome(&upstream.uid, &missing.path(), now).is_some() {
            return Err(absent(&file.name));
        }
        PackageFile { url: missing.url, ..PackageFile::unfetched(LANGUAGE, wanted.version, &file.name) }
    };
    let names = std::collections::BTreeSet::from([wanted.package]);
    let withheld = malware::withheld_of(tx, LANGUAGE, &names).await?;
    let is_malware = withheld.get(wanted.package).is_some_and(|withheld| withheld.has(&found.version, &found.sort_key));
    // The POM's license counts for all files, and the later date: a file may come to an old version today.
    let uploaded_at = described.uploaded_at.max(found.uploaded_at);
    // A file is as long known here as its version is: it is not on any list.
    let found = PackageFile { license, uploaded_at, first_seen: described.first_seen, is_malware, ..found };
    Ok(Located::Here(Package::of_files(wanted.package, upstream.uid.clone(), Some(upstream), vec![found])))
}

/// What an upstream has to be asked for first.
enum FirstRequest {
    Pom(Box<MissingFile>),
    /// The list of the package.
    List(Box<Ask>),
}

impl FirstRequest {
    fn located<T>(self) -> Located<T> {
        match self {
            FirstRequest::Pom(file) => Located::Fetch(file),
            FirstRequest::List(ask) => Located::Ask(ask),
        }
    }
}

/// The POM of a version at upstreams.
enum Pom {
    Nowhere,
    /// An upstream has to be asked.
    Unfetched(FirstRequest),
    Stored(Box<(UpstreamAccess, StoredFile)>),
}

/// The POM of a version: where it is stored, or else of the first upstream that has one. A version stays with the upstream that
/// it came from, whatever an earlier one has later. Snapshots are not taken from upstreams: they change.
async fn pom(tx: &mut ReadTx, hosting: &Hosting, view: &View, of: Coordinates<'_>, now: Micros) -> Result<Pom> {
    if of.version.ends_with(SNAPSHOT) {
        return Ok(Pom::Nowhere);
    }
    let upstreams = requestable(tx, hosting, &view.scope.root(), (LANGUAGE, of.package)).await?;
    for upstream in &upstreams {
        if let Some(stored) = upstream_files::stored_file(tx, &upstream.uid, of.package, &of.pom()).await? {
            return Ok(Pom::Stored(Box::new((upstream.clone(), stored))));
        }
    }
    for upstream in &upstreams {
        let missing = missing(upstream, of, &of.pom());
        if hosting.memory.outcome(&upstream.uid, &missing.path(), now) != Some(Outcome::Absent) {
            let list = missing_list(tx, hosting, view, (upstream, of.package), now).await?;
            return Ok(Pom::Unfetched(list.map_or_else(|| FirstRequest::Pom(Box::new(missing)), FirstRequest::List)));
        }
    }
    Ok(Pom::Nowhere)
}

/// The request for the list of a package, if a policy in force counts from when versions were seen first and no list of it was ever
/// read. That there is no list is noted, too.
///
/// # Errors
/// UNAVAILABLE if the upstream does not answer.
async fn missing_list(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (upstream, package): (&UpstreamAccess, &str),
    now: Micros,
) -> Result<Option<Box<Ask>>> {
    if !gate::needs_first_seen(tx, &view.scope.root(), LANGUAGE).await?
        || documents::find_head(tx, &upstream.uid, package).await?.is_some()
        || known_versions::find(tx, &upstream.uid, package).await?.is_some()
    {
        return Ok(None);
    }
    match hosting.memory.outcome(&upstream.uid, package, now) {
        Some(Outcome::Failed) => Err(silent(upstream)),
        // That it has none is in the database, unless it has another address since.
        Some(Outcome::Absent) | None => Ok(Some(Box::new(Ask::new(upstream.clone(), (LANGUAGE, package), None)))),
    }
}

fn missing(upstream: &UpstreamAccess, of: Coordinates<'_>, name: &str) -> MissingFile {
    let url = address(&upstream.url, of.package, name);
    MissingFile::whole(upstream, LANGUAGE, (of.package, of.version, name), url)
}

/// The license of a version, where that matters.
enum Inherited {
    License(String),
    /// That of a POM above it, which is to be fetched.
    Missing(FirstRequest),
}

/// The license of a version: that of its POM, or of the nearest one above it. POMs above are looked for where policies ask for
/// licenses alone; of those that are nowhere, nothing is known.
async fn inherited(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (file, parent): (Option<&PackageFile>, &str),
    now: Micros,
) -> Result<Inherited> {
    let mut license = file.map(|file| file.license.clone()).unwrap_or_default();
    let mut parent = parent.to_owned();
    if license.is_empty() && !parent.is_empty() && !gate::needs_licenses(tx, &view.scope.root(), LANGUAGE).await? {
        return Ok(Inherited::License(license));
    }
    for _ in 0..PARENTS {
        let Some(above) = Coordinates::parse(&parent).filter(|_| license.is_empty()) else { break };
        match above_of(tx, hosting, view, above, now).await? {
            Above::Nowhere => break,
            Above::Unfetched(missing) => return Ok(Inherited::Missing(missing)),
            Above::Here(found) => (license, parent) = found,
        }
    }
    Ok(Inherited::License(license))
}

/// A POM that others inherit from.
enum Above {
    Nowhere,
    Unfetched(FirstRequest),
    /// Its license, and the POM above it.
    Here((String, String)),
}

async fn above_of(tx: &mut ReadTx, hosting: &Hosting, view: &View, of: Coordinates<'_>, now: Micros) -> Result<Above> {
    if LANGUAGE.validate_name(of.package).is_err() || of.version.contains(['/', '$']) {
        return Ok(Above::Nowhere);
    }
    if let Some(repository) = repository(tx, view, of.package).await? {
        let sql = "SELECT license, parent_pom FROM hosted_versions
                   WHERE repository = $1 AND package = $2 AND sort_key = $3";
        let sort_key = order_key(LANGUAGE.scheme(), of.version);
        let params = [Value::from(repository.uid.as_str()), Value::from(of.package), Value::from(sort_key.as_slice())];
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
        return Ok(tx.query_opt(sql, &params, read).await?.map_or(Above::Nowhere, Above::Here));
    }
    Ok(match pom(tx, hosting, view, of, now).await? {
        Pom::Nowhere => Above::Nowhere,
        Pom::Unfetched(missing) => Above::Unfetched(missing),
        Pom::Stored(of) => Above::Here((of.1.license, of.1.parent_pom)),
    })
}

/// The files of a version that a group published, and the POM that its own inherits from.
async fn hosted(tx: &mut ReadTx, repository: &Uidp, of: Coordinates<'_>) -> Result<(Vec<PackageFile>, String)> {
    let sql = "SELECT f.name, v.version, f.sort_key, v.license, f.size_bytes, f.sha256, f.created_at, f.md5, f.sha1,
                      f.sha512, v.parent_pom
               FROM hosted_files f JOIN hosted_versions v
                 ON v.repository = f.repository AND v.package = f.package AND v.sort_key = f.sort_key
               WHERE f.repository = $1 AND f.package = $2 AND f.sort_key = $3 AND f.deleted_at IS NULL ORDER BY f.name";
    let read = |row: &Row<'_>| {
        let file = PackageFile {
            name: row.text(0)?,
            version: row.text(1)?,
            sort_key: row.bytes(2)?,
            license: row.text(3)?,
            size: Some(row.int(4)?.unsigned_abs()),
            digest: format!("sha256:{}", row.text(5)?),
            uploaded_at: Some(row.int(6)?),
            checksums: Checksums { md5: row.text(7)?, sha1: row.text(8)?, sha512: row.text(9)? },
            is_stored: true,
            ..PackageFile::unfetched(LANGUAGE, of.version, "")
        };
        Ok::<_, Error>((file, row.text(10)?))
    };
    let sort_key = order_key(LANGUAGE.scheme(), of.version);
    let params = [Value::from(repository.as_str()), Value::from(of.package), Value::from(sort_key.as_slice())];
    let (files, mut parents): (Vec<_>, Vec<_>) = tx.query(sql, &params, read).await?.into_iter().unzip();
    Ok((files, parents.pop().unwrap_or_default()))
}

/// The file of the newest build that a name of a snapshot without time and number means.
fn newest_build(of: Coordinates<'_>, files: &[PackageFile], name: &str) -> Option<PackageFile> {
    let base = of.version.strip_suffix(SNAPSHOT)?;
    let rest = name.strip_prefix(&format!("{0}/{1}-{0}", of.version, artifact(of.package)))?;
    let named = |file: &PackageFile| {
        let parsed = SnapshotName::parse(artifact(of.package), base, file.name.rsplit('/').next()?)?;
        Some((parsed, file.clone()))
    };
    let builds: Vec<(SnapshotName, PackageFile)> = files.iter().filter_map(named).collect();
    let newest = newest(builds.iter().map(|(name, _)| name)).into_iter().find(|build| build.rest() == rest)?;
    builds.iter().find(|(name, _)| *name == newest).map(|(_, file)| file.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_of_groups_alone_are_directories() {
        let at = |package| address("https://h/m2/", package, "1.0/x");
        assert_eq!(at("org.pub:lib"), "https://h/m2/org/pub/lib/1.0/x");
        assert_eq!(at("jakarta.platform:jakarta.bom"), "https://h/m2/jakarta/platform/jakarta.bom/1.0/x");
    }
}
