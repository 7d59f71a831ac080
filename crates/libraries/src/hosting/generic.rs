//! What the host of generic files asks for: the versions under a name, the files of a version, and their bytes.

use std::collections::HashMap;

use bowline_core::{Error, Micros, Result};
use bowline_store::{ReadTx, Row, Sql};
use bowline_versions::order_key;

use super::gate::Gate;
use super::package::{LocateFile, Located, Package, absent, absent_then, repository};
use super::package_file::PackageFile;
use super::protocols::Generic;
use super::repositories::Repository;
use super::serving::FileName;
use super::views::View;
use super::{AvailableFile, HostClient, HostError, Hosting, Lookup, Withheld, files};
use crate::ecosystems::Language;
use crate::policy::decide::Refusal;
use crate::policy::purl;

const LANGUAGE: Language = Language::Generic;
/// Versions of a page.
const PAGE: usize = 1_000;

/// The versions under a name, the lowest first: a page of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenericVersions {
    pub versions: Vec<GenericVersionItem>,
    /// The versions of the page that a policy withholds, with the reasons.
    pub withheld: Vec<(String, Withheld)>,
    /// The last version of the page if there are more.
    pub next_after: Option<String>,
}

/// A version in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenericVersionItem {
    pub version: String,
    pub file_count: u64,
    pub size_bytes: u64,
    /// When its first file was published.
    pub published_at: Micros,
}

/// The files of a version, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenericFiles {
    pub files: Vec<GenericFile>,
    /// The paths of files that a policy withholds, with the reasons.
    pub withheld: Vec<(String, Withheld)>,
}

/// A file in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenericFile {
    pub path: String,
    pub size_bytes: u64,
    /// SHA-256 of its bytes in lower-case hex.
    pub sha256: String,
    pub published_at: Micros,
}

/// The package URL of a version of generic files.
pub fn generic_purl(name: &str, version: &str) -> String {
    purl::of_version(LANGUAGE, name, version)
}

/// The name of the file at a path of a version, as rows have it.
pub fn generic_file_name(version: &str, path: &str) -> String {
    format!("{version}/{path}")
}

impl Hosting {
    /// The versions under a name of a view, after the given one.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, or a policy withholds all of it.
    pub async fn generic_versions(
        &self,
        client: &HostClient,
        path: Option<&str>,
        name: &str,
        after: Option<&str>,
    ) -> std::result::Result<GenericVersions, HostError> {
        let of = (client.clone(), path.map(str::to_owned), name.to_owned(), after.map(str::to_owned));
        let read = self.pipeline.db.read(move |tx| {
            let (client, path, name, after) = of.clone();
            Box::pin(async move {
                let view = View::open::<Generic>(tx, &client, path.as_deref()).await?;
                let repository = repository(tx, &view, &name).await?.ok_or_else(|| absent(&name))?;
                let mut items = versions(tx, &repository, (&name, after.as_deref()), view.moment).await?;
                if items.is_empty() && after.is_none() {
                    return Err(absent_then(&name, view.moment).into());
                }
                let has_more = items.len() > PAGE;
                items.truncate(PAGE);
                let last = items.last().map(|item| item.version.clone());
                let named = items.iter().map(|item| (item.version.as_str(), item.version.as_str(), item.published_at));
                let package = package(&repository, &name, named);
                let mut withheld = withheld(tx, &view, &package, client.now()).await?;
                let (kept, gone) = parted(items, |item| item.version.as_str(), &mut withheld);
                Ok::<_, HostError>(GenericVersions {
                    versions: kept,
                    withheld: gone,
                    next_after: last.filter(|_| has_more),
                })
            })
        });
        read.await
    }

    /// The files of a version of a view.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, or a policy withholds all of it.
    pub async fn generic_files(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (name, version): (&str, &str),
    ) -> std::result::Result<GenericFiles, HostError> {
        let of = (client.clone(), path.map(str::to_owned), name.to_owned(), version.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let (client, path, name, version) = of.clone();
            Box::pin(async move {
                let view = View::open::<Generic>(tx, &client, path.as_deref()).await?;
                let wanted = format!("{name}@{version}");
                let repository = repository(tx, &view, &name).await?.ok_or_else(|| absent(&wanted))?;
                let items = files_of(tx, &repository, (&name, &version), view.moment).await?;
                if items.is_empty() {
                    return Err(absent_then(&wanted, view.moment).into());
                }
                let named = items.iter().map(|item| (item.path.as_str(), version.as_str(), item.published_at));
                let package = package(&repository, &name, named);
                let mut withheld = withheld(tx, &view, &package, client.now()).await?;
                let (kept, mut gone) = parted(items, |item| item.path.as_str(), &mut withheld);
                match gone.pop() {
                    Some((_, withheld)) if kept.is_empty() => Err(HostError::Withheld(withheld)),
                    last => {
                        gone.extend(last);
                        Ok::<_, HostError>(GenericFiles { files: kept, withheld: gone })
                    }
                }
            })
        });
        read.await
    }

    /// The file at a path of a version of a view.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, or a policy withholds it, which is noted.
    pub async fn generic_file(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (name, version, file): (&str, &str, &str),
    ) -> std::result::Result<Lookup<AvailableFile>, HostError> {
        let file = FileName { name: generic_file_name(version, file), digest: None };
        self.file::<Generic>(client, path, (name, &file), false).await
    }
}

impl LocateFile for Generic {
    async fn locate_file(
        tx: &mut ReadTx,
        _hosting: &Hosting,
        view: &View,
        name: &str,
        file: &FileName,
        _now: Micros,
    ) -> Result<Located<Package>> {
        let missing = || absent(&format!("{name}/{}", file.name));
        let repository = repository(tx, view, name).await?.ok_or_else(missing)?;
        let found = files::find(tx, &repository.uid, name, &file.name).await?.filter(|found| !found.is_deleted);
        let found = found.ok_or_else(missing)?;
        let version = file.name.split('/').next().unwrap_or_default();
        let file = PackageFile {
            size: Some(found.size),
            digest: format!("sha256:{}", found.sha256),
            ..of_group((&file.name, version, found.created_at))
        };
        Ok(Located::Here(Package::of_files(name, repository.uid, None, vec![file])))
    }
}

/// A file of a group by its name and version, and when it was published.
fn of_group((name, version, published_at): (&str, &str, Micros)) -> PackageFile {
    PackageFile { uploaded_at: Some(published_at), is_stored: true, ..PackageFile::unfetched(LANGUAGE, version, name) }
}

fn package<'a>(
    repository: &Repository,
    name: &str,
    files: impl Iterator<Item = (&'a str, &'a str, Micros)>,
) -> Package {
    Package::of_files(name, repository.uid.clone(), None, files.map(of_group).collect())
}

/// What the policy in force withholds of a package, by the names of its files.
///
/// # Errors
/// It withholds the package itself.
async fn withheld(
    tx: &mut ReadTx,
    view: &View,
    package: &Package,
    now: Micros,
) -> std::result::Result<HashMap<String, Withheld>, HostError> {
    let gate = Gate::load(tx, &view.scope.root(), LANGUAGE, package, now).await?;
    let policy = gate.enforced.as_ref().map_or("", |bound| bound.name.as_str());
    let refused: HashMap<&str, Refusal> = gate.refused(package, now)?;
    let of = |file: &PackageFile| {
        let refusal = refused.get(file.name.as_str())?;
        let purl = generic_purl(&package.name, &file.version);
        Some((file.name.clone(), Withheld::new(purl, policy, refusal)))
    };
    Ok(package.files.iter().filter_map(of).collect())
}

/// The items that are served, and beside them the names of the others with the reasons.
fn parted<T>(
    items: Vec<T>,
    name: impl Fn(&T) -> &str,
    withheld: &mut HashMap<String, Withheld>,
) -> (Vec<T>, Vec<(String, Withheld)>) {
    let (mut kept, mut gone) = (Vec::with_capacity(items.len()), Vec::new());
    for item in items {
        match withheld.remove_entry(name(&item)) {
            Some(entry) => gone.push(entry),
            None => kept.push(item),
        }
    }
    (kept, gone)
}

/// The versions under a name after the given one, one more than a page has.
async fn versions(
    tx: &mut ReadTx,
    repository: &Repository,
    (name, after): (&str, Option<&str>),
    moment: Option<Micros>,
) -> Result<Vec<GenericVersionItem>> {
    let mut sql = Sql::new(
        "SELECT v.version, count(*), CAST(coalesce(sum(f.size_bytes), 0) AS BIGINT), min(f.created_at)
         FROM hosted_versions v JOIN hosted_files f
           ON f.repository = v.repository AND f.package = v.package AND f.sort_key = v.sort_key
         WHERE f.deleted_at IS NULL",
    );
    let after = after.map(|after| order_key(LANGUAGE.scheme(), after));
    sql.bind(" AND v.repository = ", repository.uid.as_str()).bind(" AND v.package = ", name);
    if let Some(after) = &after {
        sql.bind(" AND v.sort_key > ", after.as_slice());
    }
    if let Some(moment) = moment {
        sql.bind(" AND f.created_at <= ", moment);
    }
    sql.push(" GROUP BY v.version, v.sort_key ORDER BY v.sort_key").bind(" LIMIT ", PAGE as i64 + 1);
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(GenericVersionItem {
            version: row.text(0)?,
            file_count: row.int(1)?.unsigned_abs(),
            size_bytes: row.int(2)?.unsigned_abs(),
            published_at: row.int(3)?,
        })
    };
    tx.query(&sql.text, &sql.params, read).await
}

/// The files of a version that had been published at a time, or are there now: it may have so many as a group can publish.
async fn files_of(
    tx: &mut ReadTx,
    repository: &Repository,
    (name, version): (&str, &str),
    moment: Option<Micros>,
) -> Result<Vec<GenericFile>> {
    let key = order_key(LANGUAGE.scheme(), version);
    let prefix = generic_file_name(version, "");
    let files = files::of_version(tx, &repository.uid, name, &key).await?;
    let listed = files.into_iter().filter(|file| moment.is_none_or(|moment| file.created_at <= moment));
    let listed = listed.filter_map(|file| {
        let path = file.name.strip_prefix(&prefix)?.to_owned();
        Some(GenericFile { path, size_bytes: file.size, sha256: file.sha256, published_at: file.created_at })
    });
    Ok(listed.collect())
}
