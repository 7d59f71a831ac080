//! What Cargo's protocol asks for: the index of a crate, and the archive of a version.

use std::collections::HashMap;

use bowline_core::{Error, Micros, Result};
use bowline_store::ReadTx;

use super::gate::Gate;
use super::package::{LocateFile, Package};
use super::pages::RenderedPage;
use super::protocols::Cargo;
use super::serving::{FileName, PageContent, PageName};
use super::{AvailableFile, HostClient, HostError, Hosting, Lookup, documents, manifests};
use crate::ecosystems::Language;

/// The versions of a crate, the lowest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CargoIndex {
    pub versions: Vec<CargoVersion>,
    /// When a version that is too young now will be old enough; absent if time changes nothing.
    changes_at: Option<Micros>,
}

/// A version as cargo resolves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CargoVersion {
    /// What it is and requires: its line of the index as JSON, without what is beside it here.
    pub manifest: String,
    /// SHA-256 of its archive in lower-case hex.
    pub sha256: String,
    /// Whether new lock files pass over it: its publishers say so, or a policy withholds it.
    pub yanked: bool,
    /// When it became public, where that is known.
    pub published_at: Option<Micros>,
}

/// The name of the archive of a version, as rows have it.
pub fn crate_file(name: &str, version: &str) -> String {
    format!("{}-{version}.crate", Language::Cargo.normalized(name))
}

impl Hosting {
    /// The index of a crate of a view, in a form that `render` makes. It is made again once something that it shows has changed.
    /// Beside it, microseconds since its upstream confirmed it, if that cannot be asked.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds all of it.
    pub async fn cargo_index(
        &self,
        client: &HostClient,
        path: Option<&str>,
        name: &str,
        render: impl FnOnce(&CargoIndex) -> Result<RenderedPage> + Send + 'static,
    ) -> std::result::Result<Lookup<(RenderedPage, Option<Micros>)>, HostError> {
        let package = Language::Cargo.normalized(name);
        self.page(client, path, PageName { package, form: "text/plain", base: String::new() }, render).await
    }

    /// The archive of a version of a crate of a view.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds it, which is noted.
    pub async fn cargo_file(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (name, version): (&str, &str),
    ) -> std::result::Result<Lookup<AvailableFile>, HostError> {
        let file = FileName { name: crate_file(name, version), digest: None };
        self.file::<Cargo>(client, path, (&Language::Cargo.normalized(name), &file), false).await
    }
}

impl LocateFile for Cargo {}

impl PageContent for CargoIndex {
    type Of = Cargo;

    async fn load(
        tx: &mut ReadTx,
        _hosting: &Hosting,
        package: Package,
        gate: Gate,
        now: Micros,
    ) -> std::result::Result<CargoIndex, HostError> {
        let mut manifests = manifests_of(tx, &package).await?;
        let refused = gate.refused(&package, now)?;
        let changes_at = gate.changes_at(&refused, now);
        let mut index = CargoIndex { versions: Vec::with_capacity(package.files.len()), changes_at };
        for file in &package.files {
            let damaged = || Error::internal(format!("{} has no line of the index, or no SHA-256", file.name));
            index.versions.push(CargoVersion {
                manifest: manifests.remove(&file.version).ok_or_else(damaged)?,
                sha256: file.digest.strip_prefix("sha256:").ok_or_else(damaged)?.to_owned(),
                yanked: file.yanked.is_some() || refused.contains_key(file.name.as_str()),
                published_at: file.uploaded_at,
            });
        }
        Ok(index)
    }

    fn changes_at(&self) -> Option<Micros> {
        self.changes_at
    }
}

/// What versions are and require, by version.
async fn manifests_of(tx: &mut ReadTx, package: &Package) -> Result<HashMap<String, String>> {
    let mut of_version = HashMap::new();
    if package.is_hosted() {
        let manifests = manifests::of_package(tx, &package.repository, &package.name).await?;
        of_version.extend(manifests.into_iter().map(|hosted| (hosted.manifest.version, hosted.manifest.manifest)));
        return Ok(of_version);
    }
    let packed = documents::manifests(tx, &package.repository, &package.name).await?;
    packed.each(|manifest| {
        of_version.insert(manifest.version, manifest.manifest);
        Ok(())
    })?;
    Ok(of_version)
}
