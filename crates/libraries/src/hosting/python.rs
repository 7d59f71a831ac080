//! What the protocol of Python's package index asks for: names, the files of a project, and one file.

use std::collections::HashMap;

use bowline_contract::bowline::libraries::v1::rpc::python_host::ReadPackages;
use bowline_core::{Error, Micros};
use bowline_registry::content::{StoredBlob, package_files};
use bowline_store::{Value, placeholders};

use super::gate::Gate;
use super::notes::Note;
use super::package::{Located, Package, PackageFile, absent, locate, locate_file};
use super::pages::{PageKey, RenderedPage, Stamp};
use super::upstream_files::MissingFile;
use super::views::View;
use super::{AvailableFile, HostClient, HostError, Hosting, Lookup, Withheld};
use crate::ecosystems::Language;
use crate::policy::decide::Refusal;
use crate::policy::purl;

const LANGUAGE: Language = Language::Python;

/// A project as its page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The normalized name of it.
    pub name: String,
    /// Versions that have files, the lowest first.
    pub versions: Vec<String>,
    /// By version and name.
    pub files: Vec<ProjectFile>,
    /// When a file of it that is too young now will be old enough; absent if time changes nothing.
    pub changes_at: Option<Micros>,
}

/// A file of a project's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    pub name: String,
    /// Length in bytes, where that is known.
    pub size: Option<u64>,
    /// SHA-256 in lower-case hex.
    pub sha256: String,
    /// SHA-256 of its core metadata; absent if it has none of its own.
    pub metadata_sha256: Option<String>,
    /// Versions of Python that it is for; empty if it does not say.
    pub requires_python: String,
    /// When it became public, where that is known.
    pub uploaded_at: Option<Micros>,
    /// Why installers should pass over it: a policy withholds it, or who published it withdrew it.
    pub yanked: Option<String>,
}

/// The bytes of a file, or of its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// `sha256:` and the digest in hex.
    pub digest: String,
    pub blob: StoredBlob,
}

/// What the policies in force say of a file.
type Decided = Vec<(Note, Option<Withheld>)>;

/// What there is of a page.
enum AtHand {
    Page(RenderedPage),
    /// It has to be made, and nothing was loaded for that.
    Nothing(PageKey),
    Project(PageKey, Stamp, Project),
}

impl Hosting {
    /// Names of the projects that groups of a view publish, normalized and sorted.
    ///
    /// # Errors
    /// The caller may not read there.
    pub async fn python_projects(&self, client: &HostClient, path: Option<&str>) -> Result<Vec<String>, HostError> {
        let (client, path) = (client.clone(), path.map(str::to_owned));
        let read = self.pipeline.db.read(move |tx| {
            let (client, path) = (client.clone(), path.clone());
            Box::pin(async move {
                let view = View::open::<ReadPackages>(tx, &client, path.as_deref(), LANGUAGE.number()).await?;
                if view.repositories.is_empty() {
                    return Ok(Vec::new());
                }
                let params: Vec<Value<'_>> =
                    view.repositories.iter().map(|repository| Value::from(repository.uid.as_str())).collect();
                let sql = format!(
                    "SELECT DISTINCT package FROM hosted_versions WHERE repository IN ({}) ORDER BY package",
                    placeholders(1, params.len())
                );
                Ok(tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?)
            })
        });
        read.await
    }

    /// The page of a project of a view, by any spelling of its name, in a form that `render` makes. It is made again once
    /// something that it shows has changed. Beside it, microseconds since its upstream confirmed it, if that cannot be asked.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds all of it.
    pub async fn python_page(
        &self,
        client: &HostClient,
        path: Option<&str>,
        name: &str,
        (form, render): (&'static str, fn(&Project) -> bowline_core::Result<RenderedPage>),
    ) -> Result<Lookup<(RenderedPage, Option<Micros>)>, HostError> {
        let name = LANGUAGE.normalized(name);
        let key = match self.python_page_at_hand(client, path, (&name, form), false).await? {
            Lookup::Here((AtHand::Page(page), stale)) => return Ok(Lookup::Here((page, stale))),
            Lookup::Here((AtHand::Nothing(key) | AtHand::Project(key, ..), _)) => key,
            Lookup::Ask(ask) => return Ok(Lookup::Ask(ask)),
        };
        let _turn = self.pages.turn(&key).await;
        match self.python_page_at_hand(client, path, (&name, form), true).await? {
            Lookup::Here((AtHand::Page(page), stale)) => Ok(Lookup::Here((page, stale))),
            Lookup::Here((AtHand::Project(key, stamp, project), stale)) => {
                let until = project.changes_at;
                let page = self.pages.make((key, stamp), until, move || render(&project)).await?;
                Ok(Lookup::Here((page, stale)))
            }
            Lookup::Here((AtHand::Nothing(_), _)) => Err(Error::internal("a project was not loaded").into()),
            Lookup::Ask(ask) => Ok(Lookup::Ask(ask)),
        }
    }

    /// The page if it is kept, else what to make it of, if that is to be loaded; and how old the answer of its upstream is.
    async fn python_page_at_hand(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (name, form): (&str, &'static str),
        is_loaded: bool,
    ) -> Result<Lookup<(AtHand, Option<Micros>)>, HostError> {
        let of = (self.clone(), client.clone(), path.map(str::to_owned), name.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, name) = of.clone();
            Box::pin(async move {
                let view = View::open::<ReadPackages>(tx, &client, path.as_deref(), LANGUAGE.number()).await?;
                let (organization, now) = (view.scope.root(), client.now());
                let location = match locate(tx, &hosting, &view, (LANGUAGE, &name), now).await? {
                    Located::Here(location) => location,
                    Located::Ask(ask) => return Ok(Lookup::Ask(ask)),
                };
                let stamp = Stamp::read(tx, &organization, (LANGUAGE, &name), &location).await?;
                let key = PageKey { repository: location.repository.clone(), package: name.clone(), form };
                let stale = location.stale_since.map(|since| now.saturating_sub(since));
                if let Some(page) = hosting.pages.find(&key, &stamp, now) {
                    return Ok(Lookup::Here((AtHand::Page(page), stale)));
                }
                if !is_loaded {
                    return Ok(Lookup::Here((AtHand::Nothing(key), stale)));
                }
                let package = location.package(tx, LANGUAGE, &name).await?;
                let gate = Gate::load(tx, &organization, LANGUAGE, &package).await?;
                let project = project(&package, &gate, now)?;
                Ok::<_, HostError>(Lookup::Here((AtHand::Project(key, stamp, project), stale)))
            })
        });
        read.await
    }

    /// A file of a view, by its digest and name; with `is_metadata` its core metadata, which no policy withholds: resolvers
    /// read them of versions that they do not install.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds it, which is noted.
    pub async fn python_file(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (sha256, name): (&str, &str),
        is_metadata: bool,
    ) -> Result<Lookup<AvailableFile>, HostError> {
        let Some(package) = bowline_packages::package_of_file(name) else { return Err(absent(name).into()) };
        let of = (self.clone(), client.clone(), path.map(str::to_owned), package, sha256.to_owned(), name.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, package, sha256, name) = of.clone();
            Box::pin(async move {
                let view = View::open::<ReadPackages>(tx, &client, path.as_deref(), LANGUAGE.number()).await?;
                let (wanted, now) = ((sha256.as_str(), name.as_str()), client.now());
                let package = match locate_file(tx, &hosting, &view, (LANGUAGE, &package), wanted, now).await? {
                    Located::Here(package) => package,
                    Located::Ask(ask) => return Ok(Lookup::Ask(ask)),
                };
                let file = package.file(wanted).ok_or_else(|| absent(&name))?;
                let gate = Gate::load(tx, &view.scope.root(), LANGUAGE, &package).await?;
                let decided = if is_metadata { Decided::new() } else { gate.decided(&package.name, file, now) };
                let digest = if is_metadata { &file.metadata_sha256 } else { &file.sha256 };
                if digest.is_empty() {
                    return Err(absent(&format!("{name}.metadata")).into());
                }
                let digest = format!("sha256:{digest}");
                // Another file may have the same bytes; what they say of themselves is known once they came as this one.
                let is_stored = is_metadata || file.is_stored;
                let blob = package_files::find(tx, &package.repository, &digest).await?;
                let found = match blob.filter(|_| is_stored) {
                    Some(blob) => AvailableFile::Stored(File { digest, blob }),
                    None => AvailableFile::Missing(Box::new(missing_file(&package, file, &gate, is_metadata)?)),
                };
                let served = package.served(view.scope.root(), LANGUAGE, file).filter(|_| !is_metadata);
                Ok::<_, HostError>(Lookup::Here((found, decided, served)))
            })
        });
        let (mut found, decided, served) = match read.await? {
            Lookup::Here(found) => found,
            Lookup::Ask(ask) => return Ok(Lookup::Ask(ask)),
        };
        let mut withheld = None;
        for (note, refused) in decided {
            match (&mut found, refused) {
                (_, Some(refused)) => {
                    self.notes.add(note);
                    withheld = withheld.or(Some(refused));
                }
                // What policies only log is noted once, when the file is served: clients look again after a fetch.
                (AvailableFile::Stored(_), None) => self.notes.add(note),
                (AvailableFile::Missing(file), None) => file.logged.push(note),
            }
        }
        if let Some(withheld) = withheld {
            return Err(HostError::Withheld(withheld));
        }
        match (&mut found, served) {
            (AvailableFile::Stored(file), Some(served)) => self.served.add(served, &file.digest, client.now()),
            (AvailableFile::Missing(file), served) => file.served = served,
            (AvailableFile::Stored(_), None) => {}
        }
        Ok(Lookup::Here(found))
    }
}

/// What to fetch of a file whose bytes are not stored.
fn missing_file(package: &Package, file: &PackageFile, gate: &Gate, is_metadata: bool) -> Result<MissingFile, Error> {
    let upstream = package.upstream.clone().filter(|_| !file.url.is_empty());
    let upstream = upstream.ok_or_else(|| Error::internal(format!("{} has no link to its bytes", file.name)))?;
    let (url, sha256, size) = if is_metadata {
        (format!("{}.metadata", file.url), &file.metadata_sha256, None)
    } else {
        (file.url.clone(), &file.sha256, file.size)
    };
    Ok(MissingFile {
        upstream,
        package: package.name.clone(),
        name: file.name.clone(),
        version: file.version.clone(),
        url,
        sha256: sha256.clone(),
        size,
        is_metadata,
        is_free_to_stream: !gate.needs_licenses(),
        logged: Vec::new(),
        served: None,
        published_at: file.uploaded_at,
    })
}

/// A project as its page shows it. Withheld files stay on it as yanked ones: resolvers pass over those, and who asks for one by its
/// version is told why when the file is refused.
fn project(package: &Package, gate: &Gate, now: Micros) -> Result<Project, HostError> {
    let name = &package.name;
    let refused: HashMap<&str, Refusal> = package
        .files
        .iter()
        .filter_map(|file| Some((file.name.as_str(), gate.enforced.as_ref()?.refusal(LANGUAGE, name, file, now)?)))
        .collect();
    if let (Some(bound), Some(refusal)) = (&gate.enforced, refused.values().next())
        && refused.len() == package.files.len()
        && refused.values().all(is_of_all_versions)
    {
        return Err(HostError::Withheld(Withheld::new(purl::of_package(LANGUAGE, name), &bound.name, refusal)));
    }
    let mut project = Project {
        name: name.clone(),
        versions: Vec::new(),
        files: Vec::with_capacity(package.files.len()),
        changes_at: refused.values().filter_map(Refusal::ends_at).min(),
    };
    let mut last: &[u8] = &[];
    for file in &package.files {
        if file.sort_key != last {
            project.versions.push(file.version.clone());
            last = &file.sort_key;
        }
        let withheld = refused.get(file.name.as_str()).zip(gate.enforced.as_ref()).map(|(refusal, bound)| {
            Withheld::new(purl::of_version(LANGUAGE, name, &file.version), &bound.name, refusal).sentence
        });
        project.files.push(ProjectFile {
            name: file.name.clone(),
            size: file.size,
            sha256: file.sha256.clone(),
            metadata_sha256: Some(file.metadata_sha256.clone()).filter(|digest| !digest.is_empty()),
            requires_python: file.requires_python.clone(),
            uploaded_at: file.uploaded_at,
            yanked: withheld.or_else(|| file.yanked.clone()),
        });
    }
    Ok(project)
}

/// Whether a refusal is of the package rather than of some versions, as far as it says.
fn is_of_all_versions(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Blocked(pattern) => pattern.is_of_all_versions(),
        Refusal::Malware => true,
        Refusal::License(_) | Refusal::Cooldown { .. } => false,
    }
}
