//! What the protocol of Python's package index asks for: names, the files of a project, and one file.

use bowline_core::{Error, Micros};
use bowline_store::{ReadTx, Value, placeholders};

use super::gate::Gate;
use super::package::{Package, absent};
use super::pages::RenderedPage;
use super::protocols::Python;
use super::serving::{FileName, PageContent, PageName};
use super::views::View;
use super::{AvailableFile, HostClient, HostError, Hosting, Lookup, Withheld, attestations};
use crate::ecosystems::Language;
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
    pub version: String,
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
    /// Whether there are statements about it: here, or as its upstream says.
    pub is_attested: bool,
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
                let view = View::open::<Python>(tx, &client, path.as_deref()).await?;
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

    /// The page of a project of a view, by any spelling of its name, in a form that `render` makes, with addresses of statements
    /// below `base`. It is made again once something that it shows has changed. Beside it, microseconds since its upstream
    /// confirmed it, if that cannot be asked.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds all of it.
    pub async fn python_page(
        &self,
        client: &HostClient,
        path: Option<&str>,
        name: &str,
        (form, base): (&'static str, &str),
        render: impl FnOnce(&Project) -> bowline_core::Result<RenderedPage> + Send + 'static,
    ) -> Result<Lookup<(RenderedPage, Option<Micros>)>, HostError> {
        let page = PageName { package: LANGUAGE.normalized(name), form, base: base.to_owned() };
        self.page(client, path, page, render).await
    }

    /// A file of a view; with `is_metadata` its core metadata, which no policy withholds: resolvers read them of versions that
    /// they do not install.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds it, which is noted.
    pub async fn python_file(
        &self,
        client: &HostClient,
        path: Option<&str>,
        file: &FileName,
        is_metadata: bool,
    ) -> Result<Lookup<AvailableFile>, HostError> {
        let Some(package) = bowline_packages::package_of_file(&file.name) else {
            return Err(absent(&file.name).into());
        };
        self.file::<Python>(client, path, (&package, file), is_metadata).await
    }
}

impl PageContent for Project {
    type Of = Python;

    async fn load(
        tx: &mut ReadTx,
        _hosting: &Hosting,
        package: Package,
        gate: Gate,
        now: Micros,
    ) -> Result<Project, HostError> {
        let mut project = project(&package, &gate, now)?;
        if package.is_hosted() {
            let attested = attestations::attested_files(tx, &package.repository, &package.name).await?;
            for file in &mut project.files {
                file.is_attested = attested.contains(&file.name);
            }
        }
        Ok(project)
    }

    fn changes_at(&self) -> Option<Micros> {
        self.changes_at
    }
}

/// A project as its page shows it. Withheld files stay on it as yanked ones: resolvers pass over those, and who asks for one by its
/// version is told why when the file is refused.
fn project(package: &Package, gate: &Gate, now: Micros) -> Result<Project, HostError> {
    let name = &package.name;
    let refused = gate.refused(package, now)?;
    let mut project = Project {
        name: name.clone(),
        versions: Vec::new(),
        files: Vec::with_capacity(package.files.len()),
        changes_at: gate.changes_at(&refused, now),
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
            version: file.version.clone(),
            size: file.size,
            sha256: file.digest.trim_start_matches("sha256:").to_owned(),
            metadata_sha256: Some(file.metadata_sha256.clone()).filter(|digest| !digest.is_empty()),
            requires_python: file.requires_python.clone(),
            uploaded_at: file.uploaded_at,
            yanked: withheld.or_else(|| file.yanked.clone()),
            is_attested: !file.provenance_url.is_empty(),
        });
    }
    Ok(project)
}
