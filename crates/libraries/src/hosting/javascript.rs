//! What npm's protocol asks for: the document of a package, one version, and one file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bowline_contract::bowline::libraries::v1::UpstreamManifest;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::ReadTx;

use super::gate::Gate;
use super::manifests::{HostedManifest, Manifests};
use super::own_names::is_own;
use super::package::{Package, absent};
use super::package_file::PackageFile;
use super::pages::RenderedPage;
use super::protocols::Npm;
use super::serving::{FileName, PageContent, PageName};
use super::signing::integrity;
use super::signing_keys::VersionSigning;
use super::views::View;
use super::{
    AvailableFile, HostClient, HostError, Hosting, Lookup, Withheld, attestations, documents, manifests, tags,
};
use crate::ecosystems::Language;
use crate::policy::purl;

const LANGUAGE: Language = Language::JavaScript;

/// A package as its document shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packument {
    /// Its name, with its scope.
    pub name: String,
    /// Versions that can be installed, the lowest first.
    pub versions: Vec<PackumentVersion>,
    /// Versions that a policy withholds, the lowest first.
    pub withheld: Vec<(String, Withheld)>,
    /// Tags with the versions that they stand for, all of which can be installed.
    pub tags: BTreeMap<String, String>,
    /// When each version became public, where that is known.
    pub times: Vec<(String, Micros)>,
    /// When the last of that happened, or a tag was set.
    pub modified_at: Option<Micros>,
    /// What `latest` stands for, if that is withheld.
    pub hidden_latest: Option<Withheld>,
    /// When a version that is too young now will be old enough; absent if time changes nothing.
    pub changes_at: Option<Micros>,
    /// What clients are told of versions, also of others than those that can be installed.
    pub manifests: Manifests,
    /// What documents show as signatures of versions.
    pub signing: VersionSigning,
}

/// A version as clients resolve and install it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackumentVersion {
    pub version: String,
    /// Name of its file.
    pub file: String,
    /// Its SHA-512 as clients compare it, such as `sha512-` and base64.
    pub integrity: String,
    /// Whether the file is the one of the manifest, so that its SHA-1 and signatures are those of the file.
    pub is_as_described: bool,
    /// When it became public, where that is known.
    pub published_at: Option<Micros>,
    /// What those who install it are warned of.
    pub deprecated: Option<String>,
    /// Predicate type of its provenance: of a package of a group if that was verified, of an upstream as that says; else empty.
    pub provenance: String,
}

impl Hosting {
    /// The document of a package of a view, in a form that `render` makes, with addresses of files below `base`. It is made
    /// again once something that it shows has changed. Beside it, microseconds since its upstream confirmed it, if that cannot
    /// be asked.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds all of it.
    pub async fn javascript_page(
        &self,
        client: &HostClient,
        path: Option<&str>,
        name: &str,
        (form, base): (&'static str, &str),
        render: impl FnOnce(&Packument) -> Result<RenderedPage> + Send + 'static,
    ) -> std::result::Result<Lookup<(RenderedPage, Option<Micros>)>, HostError> {
        let page = PageName { package: name.to_owned(), form, base: base.to_owned() };
        self.page(client, path, page, render).await
    }

    /// A package of a view as it is now, where no page of it is wanted.
    ///
    /// # Errors
    /// Those of its page.
    pub async fn javascript_package(
        &self,
        client: &HostClient,
        path: Option<&str>,
        name: &str,
    ) -> std::result::Result<Lookup<Packument>, HostError> {
        self.content::<Packument>(client, path, name).await
    }

    /// Those of some names that are the organization's own: published by a group of it, or reserved.
    ///
    /// # Errors
    /// The caller may not read there.
    pub async fn own_javascript_names(
        &self,
        client: &HostClient,
        path: Option<&str>,
        names: Vec<String>,
    ) -> std::result::Result<BTreeSet<String>, HostError> {
        let of = Arc::new((client.clone(), path.map(str::to_owned), names));
        let read = self.pipeline.db.read(move |tx| {
            let of = of.clone();
            Box::pin(async move {
                let (client, path, names) = &*of;
                let organization = View::open::<Npm>(tx, client, path.as_deref()).await?.scope.root();
                let mut own = BTreeSet::new();
                for name in names {
                    if is_own(tx, &organization, LANGUAGE, name).await? {
                        own.insert(name.clone());
                    }
                }
                Ok(own)
            })
        });
        read.await
    }

    /// A file of a package of a view.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds it, which is noted.
    pub async fn javascript_file(
        &self,
        client: &HostClient,
        path: Option<&str>,
        package: &str,
        file: &FileName,
    ) -> std::result::Result<Lookup<AvailableFile>, HostError> {
        self.file::<Npm>(client, path, (package, file), false).await
    }
}

impl PageContent for Packument {
    type Of = Npm;

    async fn load(
        tx: &mut ReadTx,
        hosting: &Hosting,
        package: Package,
        gate: Gate,
        now: Micros,
    ) -> std::result::Result<Packument, HostError> {
        let (repository, name) = (&package.repository, &package.name);
        let (mut sha512s, manifests, tags, modified_at) = if package.is_hosted() {
            let (sha512s, manifests) = hosted_manifests(tx, repository, name).await?;
            let tags = tags::of_package(tx, repository, name).await?;
            (sha512s, manifests, tags, tags::changed_at(tx, repository, name).await?)
        } else {
            let manifests = Manifests::Packed(documents::manifests(tx, repository, name).await?);
            (sha512s_of_files(&package), manifests, package.tags.clone(), None)
        };
        let refused = gate.refused(&package, now)?;
        let mut packument = Packument {
            name: name.clone(),
            modified_at,
            changes_at: gate.changes_at(&refused, now),
            manifests,
            signing: VersionSigning::read(tx, hosting, &package, now).await?,
            ..Packument::default()
        };
        for file in &package.files {
            let withheld = refused.get(file.name.as_str()).zip(gate.enforced.as_ref()).map(|(refusal, bound)| {
                let purl = purl::of_version(LANGUAGE, &package.name, &file.version);
                Withheld::new(purl, &bound.name, refusal)
            });
            packument.add(file, sha512s.remove(&file.version), withheld)?;
        }
        if package.is_hosted() {
            packument.set_provenance(&mut attestations::verified_provenance(tx, repository, name).await?);
        }
        packument.set_tags(tags);
        Ok(packument)
    }

    fn changes_at(&self) -> Option<Micros> {
        self.changes_at
    }
}

/// What clients are told of a package of a group, and the SHA-512 of its files by version.
pub(super) async fn hosted_manifests(
    tx: &mut ReadTx,
    repository: &Uidp,
    name: &str,
) -> Result<(HashMap<String, String>, Manifests)> {
    let (mut sha512s, mut manifests) = (HashMap::new(), Vec::new());
    for HostedManifest { manifest, sha512 } in manifests::of_package(tx, repository, name).await? {
        sha512s.insert(manifest.version.clone(), sha512);
        manifests.push(manifest);
    }
    Ok((sha512s, Manifests::Hosted(manifests)))
}

/// SHA-512 of the files of a package of an upstream, as they are served, by version.
fn sha512s_of_files(package: &Package) -> HashMap<String, String> {
    let sha512 = |file: &PackageFile| Some((file.version.clone(), file.digest.strip_prefix("sha512:")?.to_owned()));
    package.files.iter().filter_map(sha512).collect()
}

impl Packument {
    /// Adds a version, unless a policy withholds it.
    pub(super) fn add(&mut self, file: &PackageFile, sha512: Option<String>, withheld: Option<Withheld>) -> Result<()> {
        self.times.extend(file.uploaded_at.map(|at| (file.version.clone(), at)));
        self.modified_at = self.modified_at.max(file.uploaded_at);
        if let Some(withheld) = withheld {
            self.withheld.push((file.version.clone(), withheld));
            return Ok(());
        }
        let sha512 = sha512.ok_or_else(|| self.without_manifest(&file.version))?;
        self.versions.push(PackumentVersion {
            version: file.version.clone(),
            file: file.name.clone(),
            integrity: integrity(&sha512),
            // Of a file that is stored and has changed at the upstream since, the document says nothing.
            is_as_described: self.manifests.are_of(file),
            published_at: file.uploaded_at,
            deprecated: file.yanked.clone(),
            provenance: file.provenance_type.clone(),
        });
        Ok(())
    }

    /// Visits the versions that can be installed with what clients are told of them, one after the other.
    ///
    /// # Errors
    /// INTERNAL: there is a version of which nothing is known. Those of `visit`.
    pub fn each_version(
        &self,
        mut visit: impl FnMut(&PackumentVersion, &UpstreamManifest) -> Result<()>,
    ) -> Result<()> {
        let mut shown: HashMap<&str, &PackumentVersion> =
            self.versions.iter().map(|version| (version.version.as_str(), version)).collect();
        self.manifests.each(|manifest| match shown.remove(manifest.version.as_str()) {
            Some(version) => visit(version, manifest),
            None => Ok(()),
        })?;
        shown.keys().next().map_or(Ok(()), |version| Err(self.without_manifest(version)))
    }

    fn without_manifest(&self, version: &str) -> Error {
        Error::internal(format!("{}@{version} has no manifest", self.name))
    }

    /// Adds the predicate types of provenance, by name of the file.
    pub(super) fn set_provenance(&mut self, of_files: &mut HashMap<String, String>) {
        for version in &mut self.versions {
            version.provenance = of_files.remove(&version.file).unwrap_or_default();
        }
    }

    /// Adds the tags of versions that are shown. `latest` stands for another one if its own is not: clients install nothing at
    /// all without it.
    pub(super) fn set_tags(&mut self, tags: BTreeMap<String, String>) {
        let is_shown = |version: &str| self.versions.iter().any(|shown| shown.version == version);
        let (mut shown, hidden): (BTreeMap<_, _>, BTreeMap<_, _>) =
            tags.into_iter().partition(|(_, version)| is_shown(version));
        if !shown.contains_key(tags::LATEST)
            && let Some(highest) = tags::highest(self.versions.iter().map(|shown| shown.version.as_str()))
        {
            shown.insert(tags::LATEST.into(), highest.into());
        }
        self.hidden_latest = hidden.get(tags::LATEST).and_then(|latest| self.refusal(latest)).cloned();
        self.tags = shown;
    }

    /// The version that a version or a tag names.
    ///
    /// # Errors
    /// A policy withholds it, or it does not exist.
    pub fn version(&self, named: &str) -> std::result::Result<&PackumentVersion, HostError> {
        let version = self.tags.get(named).map_or(named, String::as_str);
        if let Some(found) = self.versions.iter().find(|shown| shown.version == version) {
            return Ok(found);
        }
        match self.refusal(version) {
            Some(withheld) => Err(HostError::Withheld(withheld.clone())),
            None => Err(absent(&format!("{}@{named}", self.name)).into()),
        }
    }

    /// Why a version is withheld, if it is.
    fn refusal(&self, version: &str) -> Option<&Withheld> {
        self.withheld.iter().find(|(withheld, _)| withheld == version).map(|(_, withheld)| withheld)
    }
}
