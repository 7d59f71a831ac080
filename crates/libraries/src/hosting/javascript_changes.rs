//! What npm's clients change of the packages of a group: warnings, tags, and versions that they delete.
//!
//! They read the document of a package, change it, and send it back. So that nothing that another client did meanwhile is
//! undone, the document has a revision, and is refused if that is not the one of now.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bowline_contract::bowline::libraries::v1::rpc::javascript_host as operations;
use bowline_core::{Error, Reason, Result, Uidp};
use bowline_pipeline::Changed;
use bowline_store::WriteTx;

use super::javascript::{Packument, hosted_manifests};
use super::javascript_versions::{Target, deletion, deprecation, remove, write_warning};
use super::package_file::PackageFile;
use super::protocols::Npm;
use super::signing_keys::VersionSigning;
use super::{HostClient, HostError, Hosting, repositories, tags, views};

/// A package of a group as those see it who change it: whole, whatever policies withhold.
#[derive(Clone, Debug)]
pub struct OwnPackument {
    pub packument: Packument,
    /// Changes with each change of the package.
    pub revision: String,
}

impl Hosting {
    /// A package that the group itself published, for those who may change it.
    ///
    /// # Errors
    /// The caller may not publish there, or the group has no such package.
    pub async fn own_javascript_package(
        &self,
        client: &HostClient,
        path: Option<&str>,
        name: &str,
    ) -> std::result::Result<OwnPackument, HostError> {
        let of = (self.clone(), client.clone(), path.map(str::to_owned), name.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, name) = of.clone();
            Box::pin(async move {
                let group = views::group_to_publish::<Npm>(tx, &client, path.as_deref()).await?;
                let target = Target::find(tx, &group, &name).await?;
                let (mut sha512s, manifests) = hosted_manifests(tx, &target.repository, &name).await?;
                let modified_at = tags::changed_at(tx, &target.repository, &name).await?;
                let signing = VersionSigning::read(tx, &hosting, &target.package, client.now()).await?;
                let mut packument = Packument { name, modified_at, manifests, signing, ..Packument::default() };
                for file in &target.package.files {
                    packument.add(file, sha512s.remove(&file.version), None)?;
                }
                let revision = target.revision();
                packument.set_tags(target.tags);
                Ok::<_, HostError>(OwnPackument { packument, revision })
            })
        });
        read.await
    }

    /// Sets what those are warned of who install some versions; an empty text lifts a warning.
    ///
    /// # Errors
    /// The caller may not publish there, a version is not there, or the revision is not that of the package.
    pub async fn deprecate_javascript(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (name, revision): (&str, Option<&str>),
        warnings: BTreeMap<String, String>,
    ) -> std::result::Result<(), HostError> {
        let job = (client.clone(), path.map(str::to_owned), name.to_owned(), revision.map(str::to_owned), warnings);
        let job = std::sync::Arc::new(job);
        let written = self.pipeline.db.write(move |tx| {
            let job = job.clone();
            Box::pin(async move {
                let (client, path, name, revision, warnings) = &*job;
                let group = views::group_to_publish::<Npm>(tx, client, path.as_deref()).await?;
                let target = Target::find(tx, &group, name).await?;
                target.require_revision(revision.as_deref())?;
                deprecate(tx, client, &group, &target, warnings).await.map_err(HostError::from)
            })
        });
        written.await
    }

    /// Deletes versions of a package: those that are not among `remaining`, or all of them.
    ///
    /// # Errors
    /// The caller may not publish there, there is no such package, or the revision is not that of the package.
    pub async fn delete_javascript(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (name, revision): (&str, &str),
        remaining: Option<BTreeSet<String>>,
    ) -> std::result::Result<(), HostError> {
        let job = (client.clone(), path.map(str::to_owned), name.to_owned(), revision.to_owned(), remaining);
        let job = std::sync::Arc::new(job);
        let written = self.pipeline.db.write(move |tx| {
            let job = job.clone();
            Box::pin(async move {
                let (client, path, name, revision, remaining) = &*job;
                let group = views::group_to_publish::<Npm>(tx, client, path.as_deref()).await?;
                let target = Target::find(tx, &group, name).await?;
                target.require_revision(Some(revision))?;
                delete(tx, client, &group, &target, remaining.as_ref()).await.map_err(HostError::from)
            })
        });
        written.await
    }

    /// Lets a tag stand for a version, or with none removes it.
    ///
    /// # Errors
    /// The caller may not publish there, package, version or tag are not there, or the tag must stay.
    pub async fn tag_javascript(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (name, tag): (&str, &str),
        version: Option<&str>,
    ) -> std::result::Result<(), HostError> {
        let job =
            (client.clone(), path.map(str::to_owned), name.to_owned(), tag.to_owned(), version.map(str::to_owned));
        let job = std::sync::Arc::new(job);
        let written = self.pipeline.db.write(move |tx| {
            let job = job.clone();
            Box::pin(async move {
                let (client, path, name, tag, version) = &*job;
                let group = views::group_to_publish::<Npm>(tx, client, path.as_deref()).await?;
                let target = Target::find(tx, &group, name).await?;
                let written = match version {
                    Some(version) => set_tag(tx, client, &group, &target, (tag, version)).await,
                    None => remove_tag(tx, client, &group, &target, tag).await,
                };
                written.map_err(HostError::from)
            })
        });
        written.await
    }
}

async fn deprecate(
    tx: &mut WriteTx,
    client: &HostClient,
    group: &Uidp,
    target: &Target,
    warnings: &BTreeMap<String, String>,
) -> Result<()> {
    let by_version: HashMap<&str, &PackageFile> =
        target.package.files.iter().map(|file| (file.version.as_str(), file)).collect();
    let mut versions_of: BTreeMap<&str, Vec<&PackageFile>> = BTreeMap::new();
    for (version, warning) in warnings {
        let file = by_version.get(version.as_str()).copied().ok_or_else(|| target.without(version))?;
        if file.yanked.as_deref().unwrap_or_default() != warning {
            versions_of.entry(warning).or_default().push(file);
        }
    }
    for (warning, files) in versions_of {
        let deprecation = deprecation(group, target, &files, warning);
        let call = client.authorize_change::<operations::DeprecateVersions>(tx, group, deprecation.clone()).await?;
        let changed = write_warning(tx, group, target, (&files, &deprecation), client.now()).await?;
        client.visit.record(tx, &call, changed).await?;
    }
    Ok(())
}

async fn delete(
    tx: &mut WriteTx,
    client: &HostClient,
    group: &Uidp,
    target: &Target,
    remaining: Option<&BTreeSet<String>>,
) -> Result<()> {
    let stays = |file: &&PackageFile| remaining.is_some_and(|remaining| remaining.contains(&file.version));
    let (staying, going): (Vec<&PackageFile>, Vec<&PackageFile>) = target.package.files.iter().partition(stays);
    if going.is_empty() {
        return Ok(());
    }
    let deletion = deletion(group, target, &going);
    let call = client.authorize_change::<operations::DeleteVersions>(tx, group, deletion.clone()).await?;
    let changed = remove(tx, group, target, (&staying, &going, &deletion), client.now()).await?;
    client.visit.record(tx, &call, changed).await
}

async fn set_tag(
    tx: &mut WriteTx,
    client: &HostClient,
    group: &Uidp,
    target: &Target,
    (tag, version): (&str, &str),
) -> Result<()> {
    target.version(version)?;
    let (new, before) = (tags::named(group, &target.package.name, tag, version), target.tags.get(tag));
    let call = client.authorize_change::<operations::SetTag>(tx, group, new.clone()).await?;
    if before.is_some_and(|before| before == version) {
        return Ok(());
    }
    tags::require_room(&target.tags, tag)?;
    let change = tags::set(tx, &target.repository, before, &new, client.now()).await?;
    repositories::note_change(tx, &target.repository, 0).await?;
    client.visit.record(tx, &call, Changed::many(vec![change], ()).with_event(group, &new)).await
}

async fn remove_tag(tx: &mut WriteTx, client: &HostClient, group: &Uidp, target: &Target, tag: &str) -> Result<()> {
    let name = &target.package.name;
    let version = target.tags.get(tag).ok_or_else(|| Error::not_found("tag", tag))?;
    if tag == tags::LATEST {
        let text = "the tag latest cannot be removed, since installers need it: let it stand for another version";
        return Err(Error::new(Reason::FailedPrecondition, text));
    }
    let gone = tags::named(group, name, tag, version);
    let call = client.authorize_change::<operations::DeleteTag>(tx, group, gone.clone()).await?;
    let change = tags::remove(tx, &target.repository, &gone).await?;
    repositories::note_change(tx, &target.repository, 0).await?;
    client.visit.record(tx, &call, Changed::many(vec![change], ()).with_event(group, &gone)).await
}
