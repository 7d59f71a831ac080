//! What npm's clients are told of versions: rows beside those of the versions, since they are long.

use bowline_contract::bowline::libraries::v1::{OwnSignature, UpstreamManifest};
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
    let sql =
        "SELECT v.version, m.manifest, m.sha1, m.sha512, m.file_count, m.unpacked_bytes, m.signature_keyid, m.signature
               FROM hosted_manifests m JOIN hosted_versions v
                 ON v.repository = m.repository AND v.package = m.package AND v.sort_key = m.sort_key
               WHERE m.repository = $1 AND m.package = $2 ORDER BY m.sort_key";
    let read = |row: &Row<'_>| {
        let (keyid, signature) = (row.text(6)?, row.opt_bytes(7)?.filter(|signature| !signature.is_empty()));
        let manifest = UpstreamManifest {
            version: row.text(0)?,
            manifest: row.text(1)?,
            sha1: row.text(2)?,
            file_count: row.int(4)?,
            unpacked_bytes: row.int(5)?,
            signatures: String::new(),
            own_signature: signature.map(|signature| OwnSignature { keyid, signature }),
        };
        Ok::<_, Error>(HostedManifest { manifest, sha512: row.text(3)? })
    };
    tx.query(sql, &[Value::from(repository.as_str()), Value::from(package)], read).await
}

/// A version of npm that is not signed.
pub(super) struct UnsignedVersion {
    repository: String,
    pub(super) package: String,
    sort_key: Vec<u8>,
    pub(super) version: String,
    pub(super) sha512: String,
}

/// Some versions that were published before versions were signed.
pub(super) async fn unsigned(tx: &mut ReadTx, limit: i64) -> Result<Vec<UnsignedVersion>> {
    let sql = "SELECT m.repository, m.package, m.sort_key, v.version, m.sha512
               FROM hosted_manifests m JOIN hosted_versions v
                 ON v.repository = m.repository AND v.package = m.package AND v.sort_key = m.sort_key
               WHERE m.signature IS NULL ORDER BY m.repository, m.package, m.sort_key LIMIT $1";
    let read = |row: &Row<'_>| {
        let (repository, package, sort_key) = (row.text(0)?, row.text(1)?, row.bytes(2)?);
        Ok::<_, Error>(UnsignedVersion { repository, package, sort_key, version: row.text(3)?, sha512: row.text(4)? })
    };
    tx.query(sql, &[Value::Int(limit)], read).await
}

/// Stores the signature of a version that has none.
pub(super) async fn set_signature(tx: &mut WriteTx, of: &UnsignedVersion, signature: &OwnSignature) -> Result<()> {
    let sql = "UPDATE hosted_manifests SET signature_keyid = $4, signature = $5
               WHERE repository = $1 AND package = $2 AND sort_key = $3 AND signature IS NULL";
    let params = [
        Value::from(&of.repository),
        Value::from(&of.package),
        Value::Bytes(&of.sort_key),
        Value::from(&signature.keyid),
        Value::Bytes(&signature.signature),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Forgets the signatures by a key of some versions, which are signed again then; how many there were.
pub(super) async fn forget_signatures(tx: &mut WriteTx, keyid: &str, limit: i64) -> Result<u64> {
    let sql = "UPDATE hosted_manifests SET signature_keyid = '', signature = NULL
               WHERE (repository, package, sort_key) IN (
                 SELECT repository, package, sort_key FROM hosted_manifests
                 WHERE signature_keyid = $1 LIMIT $2)";
    Ok(tx.execute(sql, &[Value::from(keyid), Value::Int(limit)]).await?)
}

/// Stores the manifest of a new version. One of Cargo has no signature.
pub(super) async fn insert(
    tx: &mut WriteTx,
    repository: &Uidp,
    (package, sort_key): (&str, &[u8]),
    (manifest, signature): (&NewManifest, &OwnSignature),
) -> Result<()> {
    let sql = "INSERT INTO hosted_manifests (repository, package, sort_key, manifest, sha1, sha512, file_count, unpacked_bytes,
                                             signature_keyid, signature)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
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
        Value::from(&signature.keyid),
        Value::Bytes(&signature.signature),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
