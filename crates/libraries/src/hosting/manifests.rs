//! What npm's clients are told of versions: rows beside those of the versions, since they are long.

use bowline_contract::bowline::libraries::v1::UpstreamManifest;
use bowline_core::{Error, Result, Uidp};
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::package_file::PackageFile;
use super::packed::PackedManifests;
use super::publishing::NewManifest;

/// What npm's clients are told of the versions of a package, one message for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manifests {
    /// Of a package of a group.
    Hosted(Vec<UpstreamManifest>),
    /// Of a package of an upstream.
    Packed(PackedManifests),
}

impl Default for Manifests {
    fn default() -> Manifests {
        Manifests::Hosted(Vec::new())
    }
}

impl Manifests {
    /// Visits them one after the other: all of them together may be large.
    ///
    /// # Errors
    /// INTERNAL: they are damaged. Those of `visit`.
    pub(super) fn each(&self, mut visit: impl FnMut(&UpstreamManifest) -> Result<()>) -> Result<()> {
        match self {
            Manifests::Hosted(manifests) => manifests.iter().try_for_each(visit),
            Manifests::Packed(packed) => packed.each(|manifest| visit(&manifest)),
        }
    }

    /// Whether they describe this very file: of a stored one that has changed at the upstream since, they do not.
    pub(super) fn are_of(&self, file: &PackageFile) -> bool {
        matches!(self, Manifests::Hosted(_)) || !file.url.is_empty()
    }
}

/// The manifest of a version that a group published.
pub(super) struct HostedManifest {
    pub(super) manifest: UpstreamManifest,
    /// SHA-512 of the file in lower-case hex.
    pub(super) sha512: String,
}

/// The manifests of a package of a group, the lowest version first: a document is the same text on every server.
pub(super) async fn of_package(tx: &mut ReadTx, repository: &Uidp, package: &str) -> Result<Vec<HostedManifest>> {
    let sql = "SELECT v.version, m.manifest, m.sha1, m.sha512, m.file_count, m.unpacked_bytes
               FROM hosted_manifests m JOIN hosted_versions v
                 ON v.repository = m.repository AND v.package = m.package AND v.sort_key = m.sort_key
               WHERE m.repository = $1 AND m.package = $2 ORDER BY m.sort_key";
    let read = |row: &Row<'_>| {
        let manifest = UpstreamManifest {
            version: row.text(0)?,
            manifest: row.text(1)?,
            sha1: row.text(2)?,
            file_count: row.int(4)?,
            unpacked_bytes: row.int(5)?,
            signatures: String::new(),
        };
        Ok::<_, Error>(HostedManifest { manifest, sha512: row.text(3)? })
    };
    tx.query(sql, &[Value::from(repository.as_str()), Value::from(package)], read).await
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
