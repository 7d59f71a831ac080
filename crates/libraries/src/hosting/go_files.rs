//! Where modules of Go, their versions and their files lie: in a group of the view, or at an upstream.

use bowline_core::{Error, Micros, Result, Uidp};
use bowline_packages::go_escaped;
use bowline_store::{ReadTx, Row, Sql};
use bowline_versions::order_key;

use super::Hosting;
use super::documents::{self, Ask, DocumentRow, UpstreamAccess};
use super::go::{GoInfo, key};
use super::memory::Outcome;
use super::package::{
    Known, LocateFile, Located, Package, Which, absent, of_upstream, repository, requestable, silent,
};
use super::package_file::PackageFile;
use super::protocols::Go;
use super::serving::FileName;
use super::upstream_files::{self, MissingFile};
use super::views::View;
use crate::ecosystems::Language;
use crate::malware;

const LANGUAGE: Language = Language::Go;

/// A module with the archives of its versions as lists have them, and how old the answer of its upstream is.
pub(super) async fn listed(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    module: &str,
    now: Micros,
) -> Result<Located<(Package, Option<Micros>)>> {
    if let Some(repository) = repository(tx, view, module).await? {
        return Ok(Located::Here((hosted(tx, &repository.uid, module, None).await?, None)));
    }
    let (upstream, stale) = match upstream_of(tx, hosting, view, (module, true), now).await? {
        Located::Here(found) => found,
        Located::Ask(ask) => return Ok(Located::Ask(ask)),
        Located::Fetch(file) => return Ok(Located::Fetch(file)),
    };
    let document = documents::find(tx, &upstream.uid, module).await?;
    let package = of_upstream(tx, LANGUAGE, &upstream, (module, document.as_ref()), Which::OfPage).await?;
    let had_versions = document.is_some_and(|document| !document.upstream_files().is_empty());
    if package.files.is_empty() && had_versions {
        return Err(absent(module));
    }
    Ok(Located::Here((package, stale)))
}

/// The first upstream that has a list of a module, if only once, and how old that is where it cannot be asked. The list comes before
/// everything else of a module: by it the age of versions is known from now on, and no later upstream supplies what it lacks.
/// Without `is_fresh`, an old list is good enough.
async fn upstream_of(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (module, is_fresh): (&str, bool),
    now: Micros,
) -> Result<Located<(UpstreamAccess, Option<Micros>)>> {
    for upstream in requestable(tx, hosting, &view.scope.root(), (LANGUAGE, module)).await? {
        let head = documents::find_head(tx, &upstream.uid, module).await?;
        if head.is_some() && !is_fresh {
            return Ok(Located::Here((upstream, None)));
        }
        match Known::of(hosting, &upstream.uid, module, head, now) {
            Known::Fresh(_) => return Ok(Located::Here((upstream, None))),
            Known::Old(head) => return Ok(Located::Here((upstream, Some(now.saturating_sub(head.fetched_at))))),
            Known::Absent => {}
            Known::Silent => return Err(silent(&upstream)),
            Known::Unasked(head) => return Ok(Located::Ask(Box::new(Ask::new(upstream, (LANGUAGE, module), head)))),
        }
    }
    Err(absent(module))
}

/// The upstream that supplies a version: the one whose archive of it is stored, else the module's.
pub(super) async fn supplier(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (module, version): (&str, &str),
    now: Micros,
) -> Result<Located<UpstreamAccess>> {
    let archive = format!("{version}.zip");
    for upstream in requestable(tx, hosting, &view.scope.root(), (LANGUAGE, module)).await? {
        if upstream_files::stored_file(tx, &upstream.uid, module, &archive).await?.is_some() {
            return Ok(Located::Here(upstream));
        }
    }
    Ok(match upstream_of(tx, hosting, view, (module, false), now).await? {
        Located::Here((upstream, _)) => Located::Here(upstream),
        Located::Ask(ask) => Located::Ask(ask),
        Located::Fetch(file) => Located::Fetch(file),
    })
}

/// What an upstream says of a query.
pub(super) enum Answered {
    Absent,
    Ask(Box<Ask>),
    Here(GoInfo, Box<PackageFile>),
}

/// What an upstream says of a query. What a version is does not change; what other queries lead to does.
pub(super) async fn answered(
    tx: &mut ReadTx,
    hosting: &Hosting,
    upstream: &UpstreamAccess,
    (module, query): (&str, &str),
    now: Micros,
) -> Result<Answered> {
    let is_version = LANGUAGE.is_version(query);
    let key = key(module, query);
    let document = documents::find(tx, &upstream.uid, &key).await?;
    if let Some(document) = document.as_ref().filter(|document| is_version && document.has_files()) {
        return here(document, &key);
    }
    let head = document.as_ref().map(|document| document.head.clone());
    match (Known::of(hosting, &upstream.uid, &key, head, now), &document) {
        (Known::Fresh(_) | Known::Old(_), Some(document)) => here(document, &key),
        (Known::Fresh(_) | Known::Old(_) | Known::Absent, _) => Ok(Answered::Absent),
        (Known::Silent, _) => Err(silent(upstream)),
        (Known::Unasked(head), _) => Ok(Answered::Ask(Box::new(Ask::new(upstream.clone(), (LANGUAGE, &key), head)))),
    }
}

/// What a document says of a query; it has no file once the upstream has nothing there.
fn here(document: &DocumentRow, key: &str) -> Result<Answered> {
    let (Some(file), Some(said)) = (document.files(LANGUAGE).pop(), document.upstream_files().first()) else {
        return Err(absent(key));
    };
    let info = GoInfo { version: file.version.clone(), time: said.upload_micros };
    Ok(Answered::Here(info, Box::new(file)))
}

impl LocateFile for Go {
    fn is_gated(name: &str) -> bool {
        name.rsplit_once('.').is_none_or(|(_, end)| end != "mod")
    }

    async fn locate_file(
        tx: &mut ReadTx,
        hosting: &Hosting,
        view: &View,
        module: &str,
        file: &FileName,
        now: Micros,
    ) -> Result<Located<Package>> {
        let version = file.name.rsplit_once('.').map_or(file.name.as_str(), |(version, _)| version);
        if let Some(repository) = repository(tx, view, module).await? {
            return Ok(Located::Here(hosted(tx, &repository.uid, module, Some(version)).await?));
        }
        let upstream = match supplier(tx, hosting, view, (module, version), now).await? {
            Located::Here(upstream) => upstream,
            Located::Ask(ask) => return Ok(Located::Ask(ask)),
            Located::Fetch(file) => return Ok(Located::Fetch(file)),
        };
        let missing = missing(&upstream, (module, version), &file.name);
        let found = if let Some(stored) = upstream_files::stored_file(tx, &upstream.uid, module, &file.name).await? {
            stored.file(LANGUAGE)
        } else if hosting.memory.outcome(&upstream.uid, &missing.path(), now) == Some(Outcome::Absent) {
            return Err(absent(&key(module, &file.name)));
        } else if Go::is_gated(&file.name) {
            match answered(tx, hosting, &upstream, (module, version), now).await? {
                Answered::Absent => return Err(absent(&key(module, &file.name))),
                Answered::Ask(ask) => return Ok(Located::Ask(ask)),
                Answered::Here(_, file) => PackageFile { digest: String::new(), ..*file },
            }
        } else {
            PackageFile::unfetched(LANGUAGE, version, &file.name)
        };
        let found = PackageFile { url: missing.url, ..found };
        let package = Package::of_files(module, upstream.uid.clone(), Some(upstream), vec![found]);
        Ok(Located::Here(gauged(tx, package).await?))
    }
}

/// The package with what reports of malware say of its files.
pub(super) async fn gauged(tx: &mut ReadTx, mut package: Package) -> Result<Package> {
    let names = std::collections::BTreeSet::from([package.name.as_str()]);
    let withheld = malware::withheld_of(tx, LANGUAGE, &names).await?;
    if let Some(withheld) = withheld.get(&package.name) {
        for file in &mut package.files {
            file.is_malware = withheld.has(&file.version, &file.sort_key);
        }
    }
    Ok(package)
}

fn missing(upstream: &UpstreamAccess, (module, version): (&str, &str), name: &str) -> MissingFile {
    let url = format!("{}/{}/@v/{}", upstream.url.trim_end_matches('/'), go_escaped(module), go_escaped(name));
    MissingFile::whole(upstream, LANGUAGE, (module, version, name), url)
}

/// The versions that a group published of a module, the lowest first: their archives, and where one version is named also its
/// `go.mod`, which is stored as the metadata of the archive.
pub(super) async fn hosted(tx: &mut ReadTx, repository: &Uidp, module: &str, version: Option<&str>) -> Result<Package> {
    let mut sql = Sql::new(
        "SELECT f.name, v.version, f.size_bytes, f.sha256, f.created_at, f.metadata_sha256
         FROM hosted_files f JOIN hosted_versions v
           ON v.repository = f.repository AND v.package = f.package AND v.sort_key = f.sort_key
         WHERE f.deleted_at IS NULL",
    );
    sql.bind(" AND f.repository = ", repository.as_str()).bind(" AND f.package = ", module);
    let sort_key = version.map(|version| order_key(LANGUAGE.scheme(), version));
    if let Some(sort_key) = &sort_key {
        sql.bind(" AND f.sort_key = ", sort_key.as_slice());
    }
    sql.push(" ORDER BY f.sort_key");
    let read = |row: &Row<'_>| {
        let (name, of) = (row.text(0)?, row.text(1)?);
        Ok::<_, Error>(PackageFile {
            size: Some(row.int(2)?.unsigned_abs()),
            digest: format!("sha256:{}", row.text(3)?),
            uploaded_at: Some(row.int(4)?),
            metadata_sha256: row.text(5)?,
            is_stored: true,
            ..PackageFile::unfetched(LANGUAGE, &of, &name)
        })
    };
    let mut files = tx.query(&sql.text, &sql.params, read).await?;
    if let Some(version) = version {
        files.retain(|file| file.version == version);
        files.extend(files.first().map(|archive| PackageFile {
            digest: format!("sha256:{}", archive.metadata_sha256),
            name: format!("{version}.mod"),
            size: None,
            ..archive.clone()
        }));
    }
    Ok(Package::of_files(module, repository.clone(), None, files))
}
