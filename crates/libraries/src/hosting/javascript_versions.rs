//! Versions of JavaScript packages that are changed: what npm's clients and the methods of the API do with them, once that is
//! authorized.

use std::collections::BTreeMap;

use bowline_authn::crypto::sha256;
use bowline_contract::bowline::libraries::v1::{JavascriptDeletion, JavascriptDeprecation, JavascriptVersion};
use bowline_core::{Error, Micros, Reason, Result, Uidp, hex};
use bowline_pipeline::{Change, Changed, ResourceSnapshot};
use bowline_resources::kinds::PACKAGE_VERSION;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, WriteTx};

use super::package::{Package, Which, absent, hosted};
use super::package_file::PackageFile;
use super::protocols::{Npm, Protocol};
use super::{repositories, summaries, tags, versions};

/// A package that is changed.
pub(super) struct Target {
    pub(super) repository: Uidp,
    pub(super) package: Package,
    pub(super) tags: BTreeMap<String, String>,
}

impl Target {
    pub(super) async fn find(tx: &mut ReadTx, group: &Uidp, name: &str) -> Result<Target> {
        let repository = repositories::find(tx, group.as_str(), Npm::LANGUAGE.number()).await?;
        let repository = repository.ok_or_else(|| absent(name))?.uid;
        let package = hosted(tx, &repository, name, Which::OfPage).await?;
        if package.files.is_empty() {
            return Err(absent(name));
        }
        let tags = tags::of_package(tx, &repository, name).await?;
        Ok(Target { repository, package, tags })
    }

    /// Stands for all that a document says that can be changed.
    pub(super) fn revision(&self) -> String {
        let mut bytes = Vec::new();
        let mut add = |part: &str| {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part.as_bytes());
        };
        for file in &self.package.files {
            ["version", &file.version, file.yanked.as_deref().unwrap_or_default()].into_iter().for_each(&mut add);
        }
        for (tag, version) in &self.tags {
            ["tag", tag, version].into_iter().for_each(&mut add);
        }
        format!("1-{}", &hex(&sha256(&bytes))[..32])
    }

    /// Refuses a document that was read before the last change.
    pub(super) fn require_revision(&self, revision: Option<&str>) -> Result<()> {
        if revision.is_none_or(|revision| revision == self.revision()) {
            return Ok(());
        }
        let name = &self.package.name;
        Err(Error::new(Reason::FailedPrecondition, format!("{name} has changed meanwhile: try again")))
    }

    pub(super) fn version(&self, version: &str) -> Result<&PackageFile> {
        let found = self.package.files.iter().find(|file| file.version == version);
        found.ok_or_else(|| self.without(version))
    }

    /// Says that a version is not there.
    pub(super) fn without(&self, version: &str) -> Error {
        absent(&format!("{}@{version}", self.package.name))
    }
}

/// What a warning of some versions is, for the audit log and the event; an empty text lifts it.
pub(super) fn deprecation(
    group: &Uidp,
    target: &Target,
    files: &[&PackageFile],
    warning: &str,
) -> JavascriptDeprecation {
    JavascriptDeprecation {
        parent: group.as_str().into(),
        package: target.package.name.clone(),
        versions: files.iter().map(|file| file.version.clone()).collect(),
        deprecated: warning.into(),
    }
}

/// Stores a warning of some versions.
pub(super) async fn write_warning(
    tx: &mut WriteTx,
    group: &Uidp,
    target: &Target,
    (files, deprecation): (&[&PackageFile], &JavascriptDeprecation),
    now: Micros,
) -> Result<Changed<()>> {
    let (package, warning) = (target.package.name.as_str(), &deprecation.deprecated);
    let mut changes = Vec::new();
    for file in files {
        let stored = Some(warning.as_str()).filter(|warning| !warning.is_empty());
        versions::set_yanked(tx, &target.repository, (package, &file.sort_key), stored).await?;
        let after = PackageFile { yanked: Some(warning.clone()), ..(*file).clone() };
        changes.push(change(group, target, Some(file), Some(&after)));
    }
    summaries::note_change(tx, (&target.repository, Npm::LANGUAGE), package, 0, now).await?;
    Ok(Changed::many(changes, ()).with_event(group, deprecation))
}

/// Sets what those are warned of who install a version of a group; an empty text lifts the warning.
///
/// # Errors
/// NOT_FOUND: the group has no such version.
pub(super) async fn set_warning(
    tx: &mut WriteTx,
    group: &Uidp,
    (name, version): (&str, &str),
    warning: &str,
    now: Micros,
) -> Result<Changed<()>> {
    let target = Target::find(tx, group, name).await?;
    let file = target.version(version)?;
    if file.yanked.as_deref().unwrap_or_default() == warning {
        return Ok(Changed::nothing(()));
    }
    let deprecation = deprecation(group, &target, &[file], warning);
    write_warning(tx, group, &target, (&[file], &deprecation), now).await
}

/// What goes, for the audit log and the event.
pub(super) fn deletion(group: &Uidp, target: &Target, going: &[&PackageFile]) -> JavascriptDeletion {
    JavascriptDeletion {
        parent: group.as_str().into(),
        package: target.package.name.clone(),
        versions: going.iter().map(|file| file.version.clone()).collect(),
    }
}

/// Removes versions, and the tags that stand for them; `latest` then stands for the highest that stays.
pub(super) async fn remove(
    tx: &mut WriteTx,
    group: &Uidp,
    target: &Target,
    (staying, going, deletion): (&[&PackageFile], &[&PackageFile], &JavascriptDeletion),
    now: Micros,
) -> Result<Changed<()>> {
    let (name, mut changes) = (&target.package.name, Vec::new());
    let latest = tags::highest(staying.iter().map(|file| file.version.as_str()));
    for (tag, version) in &target.tags {
        if !deletion.versions.contains(version) {
            continue;
        }
        changes.push(match latest.filter(|_| tag == tags::LATEST) {
            Some(latest) => {
                let new = tags::named(group, name, tag, latest);
                tags::set(tx, &target.repository, Some(version), &new, now).await?
            }
            None => tags::remove(tx, &target.repository, &tags::named(group, name, tag, version)).await?,
        });
    }
    let mut count = 0;
    for file in going {
        count += versions::remove(tx, &target.repository, (name, &file.sort_key), now).await?;
        changes.push(change(group, target, Some(file), None));
    }
    summaries::note_change(tx, (&target.repository, Npm::LANGUAGE), name, -count, now).await?;
    Ok(Changed::many(changes, ()).with_event(group, deletion))
}

/// Removes one version of a group.
///
/// # Errors
/// NOT_FOUND: the group has no such version.
pub(super) async fn remove_version(
    tx: &mut WriteTx,
    group: &Uidp,
    (name, version): (&str, &str),
    now: Micros,
) -> Result<Changed<()>> {
    let target = Target::find(tx, group, name).await?;
    let going = target.version(version)?;
    let staying: Vec<&PackageFile> = target.package.files.iter().filter(|file| file.version != version).collect();
    let deletion = deletion(group, &target, &[going]);
    remove(tx, group, &target, (&staying, &[going], &deletion), now).await
}

/// A change of a version, for the audit log.
fn change(group: &Uidp, target: &Target, before: Option<&PackageFile>, after: Option<&PackageFile>) -> Change {
    let snapshot = |file: &PackageFile| {
        ResourceSnapshot::of(&JavascriptVersion {
            parent: group.as_str().into(),
            package: target.package.name.clone(),
            version: file.version.clone(),
            license: file.license.clone(),
            deprecated: file.yanked.clone().unwrap_or_default(),
            size_bytes: i64::try_from(file.size.unwrap_or_default()).unwrap_or(i64::MAX),
            create_time: file.uploaded_at.and_then(timestamp),
        })
    };
    Change {
        kind: PACKAGE_VERSION,
        uid: target.repository.as_str().into(),
        before: before.map(snapshot),
        after: after.map(snapshot),
    }
}
