//! What the protocol of Python's package index asks for: names, the files of a project, and one file.

use std::collections::HashMap;

use bowline_contract::bowline::libraries::v1::rpc::python_host::ReadPackages;
use bowline_core::{Error, Micros, Uidp};
use bowline_registry::content::{StoredBlob, package_files};
use bowline_store::{ReadTx, Row, Value, placeholders};

use super::files::{self, FileRow};
use super::notes::Note;
use super::views::View;
use super::{HostClient, HostError, Hosting, Withheld};
use crate::ecosystems::Language;
use crate::policies::{self, Mode};
use crate::policy::decide::{Decision, Policy, Refusal, Subject, decide};
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
}

/// A file of a project's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    pub name: String,
    pub size: u64,
    /// SHA-256 in lower-case hex.
    pub sha256: String,
    /// SHA-256 of its core metadata; absent if it has none of its own.
    pub metadata_sha256: Option<String>,
    /// Versions of Python that it is for; empty if it does not say.
    pub requires_python: String,
    pub uploaded_at: Micros,
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

/// Versions of a package, by the keys that files have of them.
type Versions = HashMap<Vec<u8>, VersionRow>;

struct VersionRow {
    version: String,
    license: String,
    yanked: Option<String>,
}

/// What holds for an organization, with the names of the policies.
struct Gate {
    enforced: Option<Bound>,
    logged: Option<Bound>,
}

struct Bound {
    uid: Uidp,
    name: String,
    policy: Policy,
}

impl Gate {
    /// The policies that are in force. To what a group publishes itself they apply block list and licence: how long it has
    /// been public, and what is said of a public package of that name, is not about it.
    async fn load(tx: &mut ReadTx, organization: &Uidp) -> Result<Gate, Error> {
        let (mut enforced, mut logged) = (None, None);
        for (mode, bound) in [(Mode::Enforced, &mut enforced), (Mode::Log, &mut logged)] {
            let found = policies::named_in_force(tx, organization, LANGUAGE, mode).await?;
            *bound = found.map(|(uid, name, policy)| Bound {
                uid,
                name,
                policy: Policy { cooldown_days: Some(0), ..policy },
            });
        }
        Ok(Gate { enforced, logged })
    }
}

impl Bound {
    fn refusal(&self, package: &str, version: &VersionRow, now: Micros) -> Option<Refusal> {
        let subject = Subject {
            language: LANGUAGE,
            name: package,
            version: &version.version,
            license: &version.license,
            is_malware: false,
            published_at: None,
        };
        match decide(&self.policy, &subject, now) {
            Decision::Allowed => None,
            Decision::Refused(refusal) => Some(refusal),
        }
    }
}

impl Hosting {
    /// Names of the projects of a view, normalized and sorted.
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
                let params: Vec<Value<'_>> = view.repositories.iter().map(|uid| Value::from(uid.as_str())).collect();
                let sql = format!(
                    "SELECT DISTINCT package FROM hosted_versions WHERE repository IN ({}) ORDER BY package",
                    placeholders(1, params.len())
                );
                Ok(tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?)
            })
        });
        read.await
    }

    /// A project of a view, by any spelling of its name.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, or a policy withholds all of it.
    pub async fn python_project(
        &self,
        client: &HostClient,
        path: Option<&str>,
        name: &str,
    ) -> Result<Project, HostError> {
        let of = (client.clone(), path.map(str::to_owned), LANGUAGE.normalized(name));
        let read = self.pipeline.db.read(move |tx| {
            let (client, path, name) = of.clone();
            Box::pin(async move {
                let view = View::open::<ReadPackages>(tx, &client, path.as_deref(), LANGUAGE.number()).await?;
                let (repository, versions) = nearest(tx, &view, &name).await?;
                let gate = Gate::load(tx, &view.scope.root()).await?;
                let files = files::of_package(tx, &repository, &name).await?;
                page(&name, &versions, files, gate.enforced.as_ref(), client.now())
            })
        });
        read.await
    }

    /// A file of a view, by its digest and name; with `is_metadata` its core metadata, which no policy withholds: resolvers
    /// read them of versions that they do not install.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, or a policy withholds it, which is noted.
    pub async fn python_file(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (sha256, name): (&str, &str),
        is_metadata: bool,
    ) -> Result<File, HostError> {
        let Some(package) = bowline_packages::package_of_file(name) else { return Err(absent(name).into()) };
        let of = (client.clone(), path.map(str::to_owned), package, sha256.to_owned(), name.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let (client, path, package, sha256, name) = of.clone();
            Box::pin(async move {
                let view = View::open::<ReadPackages>(tx, &client, path.as_deref(), LANGUAGE.number()).await?;
                let (repository, versions) = nearest(tx, &view, &package).await?;
                let file = files::find(tx, &repository, &package, &name).await?;
                let file =
                    file.filter(|file| !file.is_deleted && file.sha256 == sha256).ok_or_else(|| absent(&name))?;
                let version = versions.get(&file.sort_key).ok_or_else(|| absent(&name))?;
                let decided = if is_metadata {
                    Vec::new()
                } else {
                    let gate = Gate::load(tx, &view.scope.root()).await?;
                    decided(&view, &gate, &package, version, client.now())
                };
                let wanted = if is_metadata { &file.metadata_sha256 } else { &file.sha256 };
                if wanted.is_empty() {
                    return Err(absent(&format!("{name}.metadata")).into());
                }
                let digest = format!("sha256:{wanted}");
                let blob = package_files::find(tx, &repository, &digest).await?;
                let blob = blob.ok_or_else(|| Error::internal(format!("{name} has no link to its bytes")))?;
                Ok::<_, HostError>((File { digest, blob }, decided))
            })
        });
        let (file, decided) = read.await?;
        let mut withheld = None;
        for (note, refused) in decided {
            self.notes.add(note);
            withheld = withheld.or(refused);
        }
        withheld.map_or(Ok(file), |withheld| Err(HostError::Withheld(withheld)))
    }
}

/// What the policies say of a version: a note for each that refuses it, and what to answer where that is enforced.
fn decided(
    view: &View,
    gate: &Gate,
    package: &str,
    version: &VersionRow,
    now: Micros,
) -> Vec<(Note, Option<Withheld>)> {
    let modes = [(Mode::Enforced, &gate.enforced), (Mode::Log, &gate.logged)];
    let refused = modes.into_iter().filter_map(|(mode, bound)| {
        let bound = bound.as_ref()?;
        let refusal = bound.refusal(package, version, now)?;
        let purl = purl::of_version(LANGUAGE, package, &version.version);
        let withheld = (mode == Mode::Enforced).then(|| Withheld::new(purl, &bound.name, &refusal));
        let note = Note {
            organization: view.scope.root(),
            language: LANGUAGE,
            package: package.to_owned(),
            version: version.version.clone(),
            policy: bound.uid.clone(),
            mode,
            refusal,
        };
        Some((note, withheld))
    });
    refused.collect()
}

/// The page of a project. Withheld versions stay on it as yanked ones: resolvers pass over those, and who asks for one by
/// its version is told why when the file is refused.
fn page(
    name: &str,
    versions: &Versions,
    files: Vec<FileRow>,
    enforced: Option<&Bound>,
    now: Micros,
) -> Result<Project, HostError> {
    let refused: HashMap<&[u8], Refusal> = versions
        .iter()
        .filter_map(|(key, version)| Some((key.as_slice(), enforced?.refusal(name, version, now)?)))
        .collect();
    if let (Some(bound), Some(Refusal::Blocked(pattern))) = (enforced, refused.values().next())
        && refused.len() == versions.len()
        && pattern.is_of_all_versions()
    {
        let purl = purl::of_package(LANGUAGE, name);
        return Err(HostError::Withheld(Withheld::new(purl, &bound.name, &Refusal::Blocked(pattern.clone()))));
    }
    let mut files = files;
    files.sort_by(|a, b| (&a.sort_key, &a.name).cmp(&(&b.sort_key, &b.name)));
    let mut project = Project { name: name.to_owned(), versions: Vec::new(), files: Vec::with_capacity(files.len()) };
    let mut last: &[u8] = &[];
    for file in &files {
        let Some(version) = versions.get(&file.sort_key) else { continue };
        if file.sort_key != last {
            project.versions.push(version.version.clone());
            last = &file.sort_key;
        }
        let withheld = refused.get(file.sort_key.as_slice()).zip(enforced).map(|(refusal, bound)| {
            Withheld::new(purl::of_version(LANGUAGE, name, &version.version), &bound.name, refusal).sentence
        });
        project.files.push(ProjectFile {
            name: file.name.clone(),
            size: file.size,
            sha256: file.sha256.clone(),
            metadata_sha256: Some(file.metadata_sha256.clone()).filter(|digest| !digest.is_empty()),
            requires_python: file.requires_python.clone(),
            uploaded_at: file.created_at,
            yanked: withheld.or_else(|| version.yanked.clone()),
        });
    }
    Ok(project)
}

/// The nearest repository of a view that has a package, with its versions.
async fn nearest(tx: &mut ReadTx, view: &View, package: &str) -> Result<(Uidp, Versions), HostError> {
    let sql = "SELECT sort_key, version, license, yanked FROM hosted_versions WHERE repository = $1 AND package = $2";
    let read = |row: &Row<'_>| {
        let version = VersionRow { version: row.text(1)?, license: row.text(2)?, yanked: row.opt_text(3)? };
        Ok::<_, Error>((row.bytes(0)?, version))
    };
    for repository in &view.repositories {
        let params = [Value::from(repository.as_str()), Value::from(package)];
        let versions: Versions = tx.query(sql, &params, read).await?.into_iter().collect();
        if !versions.is_empty() {
            return Ok((repository.clone(), versions));
        }
    }
    Err(absent(package).into())
}

fn absent(name: &str) -> Error {
    Error::not_found("package", name)
}
