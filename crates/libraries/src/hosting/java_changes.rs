//! What clients of Maven change of the packages of a group: POMs say what versions are, old builds of snapshots go, and versions
//! are deleted.

use std::collections::BTreeSet;

use bowline_contract::bowline::libraries::v1::JavaVersion;
use bowline_contract::bowline::libraries::v1::rpc::java_host::DeleteVersion;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::Changed;
use bowline_registry::content::package_files;
use bowline_resources::kinds::PACKAGE_VERSION;
use bowline_store::{Row, Value, WriteTx};
use bowline_versions::order_key;

use super::files::{self, Checksums};
use super::java_metadata::snapshot_files;
use super::protocols::{Maven, Protocol};
use super::publishing::NewPom;
use super::snapshots::{SNAPSHOT, SnapshotName};
use super::{HostClient, HostError, Hosting, java, repositories, summaries, versions, views};

/// Builds of a snapshot that are kept, and files of older ones that one transaction removes.
const BUILDS: usize = 20;
const AT_ONCE: usize = 200;

/// Digests of a file that a group published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaDigests {
    /// SHA-256 in lower-case hex.
    pub sha256: String,
    pub checksums: Checksums,
}

impl Hosting {
    /// Refuses who may not publish to the group that the path names, or to the caller's organization.
    ///
    /// # Errors
    /// The caller may not publish there.
    pub async fn require_java_publisher(
        &self,
        client: &HostClient,
        path: Option<&str>,
    ) -> std::result::Result<(), HostError> {
        let of = (client.clone(), path.map(str::to_owned));
        let read = self.pipeline.db.read(move |tx| {
            let (client, path) = of.clone();
            Box::pin(async move { views::group_to_publish::<Maven>(tx, &client, path.as_deref()).await.map(drop) })
        });
        read.await
    }

    /// The digests of a file that the group itself has, for those who may publish there; absent if it has none of this name.
    ///
    /// # Errors
    /// The caller may not publish there.
    pub async fn own_java_file(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (package, name): (&str, &str),
    ) -> std::result::Result<Option<JavaDigests>, HostError> {
        let of = (client.clone(), path.map(str::to_owned), package.to_owned(), name.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let (client, path, package, name) = of.clone();
            Box::pin(async move {
                let group = views::group_to_publish::<Maven>(tx, &client, path.as_deref()).await?;
                let found = repositories::find(tx, group.as_str(), Maven::LANGUAGE.number()).await?;
                let Some(repository) = found else { return Ok(None) };
                let file = files::find(tx, &repository.uid, &package, &name).await?.filter(|file| !file.is_deleted);
                Ok::<_, HostError>(file.map(|file| JavaDigests { sha256: file.sha256, checksums: file.checksums }))
            })
        });
        read.await
    }

    /// Deletes a version with its files.
    ///
    /// # Errors
    /// The caller may not publish there, or the group has no such version.
    pub async fn delete_java_version(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (package, version): (&str, &str),
    ) -> std::result::Result<(), HostError> {
        let job = (client.clone(), path.map(str::to_owned), package.to_owned(), version.to_owned());
        let job = std::sync::Arc::new(job);
        let written = self.pipeline.db.write(move |tx| {
            let job = job.clone();
            Box::pin(async move {
                let (client, path, package, version) = &*job;
                let group = views::group_to_publish::<Maven>(tx, client, path.as_deref()).await?;
                delete(tx, client, &group, (package, version)).await.map_err(HostError::from)
            })
        });
        written.await
    }
}

async fn delete(tx: &mut WriteTx, client: &HostClient, group: &Uidp, of: (&str, &str)) -> Result<()> {
    let call = client.authorize_change::<DeleteVersion>(tx, group, named(group, of)).await?;
    let changed = remove(tx, group, of, client.now()).await?;
    client.visit.record(tx, &call, changed).await
}

fn named(group: &Uidp, (package, version): (&str, &str)) -> JavaVersion {
    JavaVersion {
        parent: group.as_str().into(),
        package: package.into(),
        version: version.into(),
        ..JavaVersion::default()
    }
}

/// Removes a version of a group with its files; of a snapshot, all builds.
///
/// # Errors
/// NOT_FOUND: the group has no such version.
pub(super) async fn remove(
    tx: &mut WriteTx,
    group: &Uidp,
    (package, version): (&str, &str),
    now: Micros,
) -> Result<Changed<()>> {
    let missing = || Error::not_found(PACKAGE_VERSION, format!("{package}:{version}"));
    let language = Maven::LANGUAGE;
    let repository = repositories::find(tx, group.as_str(), language.number()).await?.ok_or_else(missing)?.uid;
    let sort_key = order_key(language.scheme(), version);
    let sql = "SELECT license FROM hosted_versions
               WHERE repository = $1 AND package = $2 AND sort_key = $3 AND version = $4";
    let params = [Value::from(repository.as_str()), package.into(), Value::from(sort_key.as_slice()), version.into()];
    let found = tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    let license = found.ok_or_else(missing)?;
    let gone = versions::remove(tx, &repository, (package, &sort_key), now).await?;
    summaries::note_change(tx, (&repository, language), package, -gone, now).await?;
    let file_count = i32::try_from(gone).unwrap_or(i32::MAX);
    let deleted = JavaVersion { license, file_count, ..named(group, (package, version)) };
    let changed = Changed::one(PACKAGE_VERSION, &repository, Some(&deleted), None::<&JavaVersion>, ());
    Ok(changed.with_event(group, &deleted))
}

/// Stores what the POM of a version says. Of builds of a snapshot, the last one counts.
pub(super) async fn describe(
    tx: &mut WriteTx,
    repository: &Uidp,
    (package, sort_key): (&str, &[u8]),
    (license, pom): (&str, &NewPom),
) -> Result<()> {
    let sql = "UPDATE hosted_versions SET license = $4, packaging = $5, parent_pom = $6
               WHERE repository = $1 AND package = $2 AND sort_key = $3";
    let params = [
        Value::from(repository.as_str()),
        package.into(),
        Value::from(sort_key),
        license.into(),
        Value::from(&pom.packaging),
        Value::from(&pom.parent_pom),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Removes the files of the oldest builds of a snapshot; how many these were. Their names do not come again, so nothing is left
/// of them.
pub(super) async fn remove_old_builds(
    tx: &mut WriteTx,
    repository: &Uidp,
    (package, version): (&str, &str),
) -> Result<i64> {
    let Some(base) = version.strip_suffix(SNAPSHOT) else { return Ok(0) };
    let artifact = java::artifact(package);
    let files = snapshot_files(tx, repository, package, version).await?;
    let parsed: Vec<(SnapshotName, &str)> = files
        .iter()
        .filter_map(|(name, _)| Some((SnapshotName::parse(artifact, base, name.rsplit('/').next()?)?, name.as_str())))
        .collect();
    let ages: BTreeSet<(&str, u64)> = parsed.iter().map(|(name, _)| name.age()).collect();
    let Some(oldest) = ages.iter().rev().nth(BUILDS - 1) else { return Ok(0) };
    let mut gone = 0;
    for (_, name) in parsed.iter().filter(|(parsed, _)| parsed.age() < *oldest).take(AT_ONCE) {
        let params = [Value::from(repository.as_str()), package.into(), Value::from(*name)];
        let sql = "DELETE FROM hosted_files WHERE repository = $1 AND package = $2 AND name = $3 RETURNING sha256";
        let read = |row: &Row<'_>| row.text(0).map_err(Error::from);
        for sha256 in tx.query(sql, &params, read).await? {
            unlink_unless_named(tx, repository, &sha256).await?;
        }
        let sql = "DELETE FROM hosted_attestations WHERE repository = $1 AND package = $2 AND file = $3";
        tx.execute(sql, &params).await?;
        gone += 1;
    }
    Ok(gone)
}

/// Takes a blob out of a repository, unless a file there still has it: files of different names may have the same bytes, or the same metadata.
pub(super) async fn unlink_unless_named(tx: &mut WriteTx, repository: &Uidp, sha256: &str) -> Result<()> {
    let sql = "SELECT 1 FROM hosted_files
               WHERE repository = $1 AND (sha256 = $2 OR metadata_sha256 = $2) AND deleted_at IS NULL LIMIT 1";
    let params = [Value::from(repository.as_str()), Value::from(sha256)];
    if tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.is_some() {
        return Ok(());
    }
    package_files::unlink(tx, repository, &format!("sha256:{sha256}")).await
}
