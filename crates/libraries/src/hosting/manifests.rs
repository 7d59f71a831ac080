//! What npm's clients are told of versions: rows beside those of the versions, since they are long.

use std::collections::HashMap;

use bowline_core::{Error, Result, Uidp};
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::documents;
use super::package::Package;
use super::package_file::PackageFile;
use super::publishing::NewManifest;

/// What clients are told of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Members of its `package.json`, as JSON.
    pub(super) json: String,
    /// SHA-1 and SHA-512 of the file in lower-case hex; the first is empty where that is not known.
    pub(super) sha1: String,
    pub(super) sha512: String,
    /// Files in it, and their bytes; 0 where that is not known.
    pub(super) file_count: i64,
    pub(super) unpacked_bytes: i64,
    /// Signatures of an upstream, as JSON; empty without.
    pub(super) signatures: String,
}

/// The manifests of a package that comes from an upstream, by version. Digests are those of the files as they are served: of a file that
/// is stored, and has changed at the upstream since, its own.
pub(super) async fn of_upstream(tx: &mut ReadTx, package: &Package) -> Result<HashMap<String, Manifest>> {
    let mut of_version = documents::manifests(tx, &package.repository, &package.name).await?;
    let manifest = |file: &PackageFile| {
        let told = of_version.remove(&file.version)?;
        let is_as_told = !file.url.is_empty();
        let signatures = if is_as_told { told.signatures } else { String::new() };
        let manifest = Manifest {
            json: told.manifest,
            sha1: if is_as_told { told.sha1 } else { String::new() },
            sha512: file.digest.strip_prefix("sha512:")?.to_owned(),
            file_count: told.file_count,
            unpacked_bytes: told.unpacked_bytes,
            signatures,
        };
        Some((file.version.clone(), manifest))
    };
    Ok(package.files.iter().filter_map(manifest).collect())
}

/// The manifests of a package, by version.
pub(super) async fn of_package(tx: &mut ReadTx, repository: &Uidp, package: &str) -> Result<HashMap<String, Manifest>> {
    let sql = "SELECT v.version, m.manifest, m.sha1, m.sha512, m.file_count, m.unpacked_bytes
               FROM hosted_manifests m JOIN hosted_versions v
                 ON v.repository = m.repository AND v.package = m.package AND v.sort_key = m.sort_key
               WHERE m.repository = $1 AND m.package = $2";
    let read = |row: &Row<'_>| {
        let manifest = Manifest {
            json: row.text(1)?,
            sha1: row.text(2)?,
            sha512: row.text(3)?,
            file_count: row.int(4)?,
            unpacked_bytes: row.int(5)?,
            signatures: String::new(),
        };
        Ok::<_, Error>((row.text(0)?, manifest))
    };
    let rows = tx.query(sql, &[Value::from(repository.as_str()), Value::from(package)], read).await?;
    Ok(rows.into_iter().collect())
}

/// Stores the manifest of a new version.
pub(super) async fn insert(
    tx: &mut WriteTx,
    repository: &Uidp,
    (package, sort_key): (&str, &[u8]),
    manifest: &NewManifest,
) -> Result<()> {
    let sql = "INSERT INTO hosted_manifests (repository, package, sort_key, manifest, sha1, sha512, file_count, unpacked_bytes)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let params = [
        Value::from(repository.as_str()),
        Value::from(package),
        Value::from(sort_key),
        Value::from(&manifest.json),
        Value::from(&manifest.sha1),
        Value::from(&manifest.sha512),
        number(manifest.file_count),
        number(manifest.unpacked_bytes),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
