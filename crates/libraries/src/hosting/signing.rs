//! Signatures of this server: that it serves these bytes for this name and version of npm.
//!
//! One key of the installation signs. Versions of groups are signed in the transaction that publishes them, those of upstreams
//! when their document arrives; both signatures are stored, since each signing gives another one. Keys that another one took
//! the place of stay listed without their private half, so that what they signed verifies.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_authn::crypto::KeyEncryptionKey;
use bowline_authn::package_key::PackageSigner;
use bowline_contract::bowline::libraries::v1::{OwnSignature, UpstreamFile};
use bowline_core::{Error, Micros, Result};
use bowline_pipeline::Vault;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::documents::{self, Ask, DocumentRow};
use super::packed::PackedManifests;
use super::signing_keys::ListedKey;
use super::{Hosting, manifests};
use crate::base64_of_hex;

/// Versions that one step signs.
const AT_ONCE: i64 = 200;

/// A key of this server as it is stored.
pub(super) struct OwnKey {
    pub(super) keyid: String,
    pub(super) public_key: Vec<u8>,
    /// Sealed; empty once another key signs.
    sealed: Vec<u8>,
    /// When another one took its place; absent for the key that signs.
    pub(super) expires_at: Option<Micros>,
}

#[cfg(test)]
impl OwnKey {
    /// A key without a private half.
    pub(super) fn for_test(keyid: &str, public_key: Vec<u8>, expires_at: Option<Micros>) -> OwnKey {
        OwnKey { keyid: keyid.into(), public_key, sealed: Vec::new(), expires_at }
    }
}

/// What the private half of a key is sealed for.
pub fn context(keyid: &str) -> String {
    format!("package signing key {keyid}")
}

/// All keys of this server, the newest first, without those that were removed.
pub(super) async fn own_keys(tx: &mut ReadTx) -> Result<Vec<OwnKey>> {
    let sql = "SELECT keyid, public_key, sealed, expires_at FROM package_signing_keys WHERE removed_at IS NULL
               ORDER BY generation DESC";
    let read = |row: &Row<'_>| {
        let (keyid, public_key, sealed) = (row.text(0)?, row.bytes(1)?, row.bytes(2)?);
        Ok::<_, Error>(OwnKey { keyid, public_key, sealed, expires_at: row.opt_int(3)? })
    };
    tx.query(sql, &[], read).await
}

/// Makes a key the one that signs. The private half of the one before is deleted, and the public one stays.
///
/// # Errors
/// INTERNAL: the key cannot be encoded. Those of the database.
pub async fn replace_key(
    tx: &mut WriteTx,
    key: &PackageSigner,
    wrapping: &KeyEncryptionKey,
    now: Micros,
) -> Result<()> {
    let sealed = wrapping.seal(&context(key.id()), &key.to_pkcs8().map_err(Error::internal)?);
    let nothing: &[u8] = &[];
    let sql = "UPDATE package_signing_keys SET sealed = $1, expires_at = $2
               WHERE expires_at IS NULL AND removed_at IS NULL";
    tx.execute(sql, &[Value::from(nothing), Value::Int(now)]).await?;
    let sql = "SELECT coalesce(max(generation), 0) FROM package_signing_keys";
    let last = tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await?.unwrap_or_default();
    let sql = "INSERT INTO package_signing_keys (keyid, generation, public_key, sealed, created_at)
               VALUES ($1, $2, $3, $4, $5)";
    let params = [
        Value::from(key.id()),
        Value::Int(last + 1),
        Value::Bytes(key.public_key()),
        Value::Bytes(&sealed),
        Value::Int(now),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// The keys of this server as clients are told of them, the newest first.
///
/// # Errors
/// Those of the database.
pub async fn listed(tx: &mut ReadTx) -> Result<Vec<ListedKey>> {
    Ok(own_keys(tx).await?.iter().map(ListedKey::from).collect())
}

/// Whether a key of this server signs packages now.
///
/// # Errors
/// Those of the database.
pub async fn signs(tx: &mut ReadTx) -> Result<bool> {
    Ok(own_keys(tx).await?.iter().any(|key| key.expires_at.is_none()))
}

/// The key that signs, opened once for each that there is.
#[derive(Default)]
pub(super) struct OpenedKey(Mutex<Option<Arc<PackageSigner>>>);

impl OpenedKey {
    fn open(&self, vault: &Vault, stored: &OwnKey) -> Result<Arc<PackageSigner>> {
        let opened = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(opened) = opened.filter(|opened| opened.id() == stored.keyid) {
            return Ok(opened);
        }
        let bytes = vault.open(&context(&stored.keyid), &stored.sealed)?;
        let key = Arc::new(PackageSigner::from_pkcs8(&bytes).map_err(Error::internal)?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(key.clone());
        Ok(key)
    }
}

/// Signs versions with the key of the server.
#[derive(Clone)]
pub(super) struct VersionSigner(Arc<PackageSigner>);

impl fmt::Debug for VersionSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VersionSigner").field(&self.0.id()).finish()
    }
}

impl PartialEq for VersionSigner {
    fn eq(&self, other: &VersionSigner) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Eq for VersionSigner {}

impl VersionSigner {
    /// Signs that a version has a file with this integrity, such as `sha512-` and base64.
    pub(super) fn sign(&self, (package, version): (&str, &str), integrity: &str) -> Result<OwnSignature> {
        // What clients compare: npm's name, an @, the version, a colon, and the integrity.
        let message = format!("{package}@{version}:{integrity}");
        let signature = self.0.sign(message.as_bytes()).map_err(Error::internal)?;
        Ok(OwnSignature { keyid: self.0.id().into(), signature })
    }

    /// The same by the SHA-512 of the file in hex.
    pub(super) fn sign_sha512(&self, of: (&str, &str), sha512: &str) -> Result<OwnSignature> {
        self.sign(of, &integrity(sha512))
    }
}

/// A SHA-512 in hex as clients compare it; empty if it is not in hex.
pub(super) fn integrity(sha512: &str) -> String {
    base64_of_hex(sha512).map(|text| format!("sha512-{text}")).unwrap_or_default()
}

/// Signs the versions of a document of an upstream: those that were signed before have the same signatures again.
#[derive(Debug)]
pub struct DocumentSigner {
    package: String,
    signer: VersionSigner,
    /// Signatures of the document before, by version and SHA-512.
    before: HashMap<(String, String), OwnSignature>,
}

impl DocumentSigner {
    /// The signature of a version whose file has this SHA-512 in hex.
    ///
    /// # Errors
    /// INTERNAL: the key does not sign.
    pub fn sign(&self, version: &str, sha512: &str) -> Result<OwnSignature> {
        match self.before.get(&(version.to_owned(), sha512.to_owned())) {
            Some(before) => Ok(before.clone()),
            None => self.signer.sign_sha512((&self.package, version), sha512),
        }
    }
}

impl Hosting {
    /// What signs versions now, as a transaction sees it.
    ///
    /// # Errors
    /// INTERNAL: there is no key, although each start makes one, or it does not open.
    pub(super) async fn signer(&self, tx: &mut ReadTx) -> Result<VersionSigner> {
        let keys = own_keys(tx).await?;
        self.signer_of(&keys)
    }

    pub(super) fn signer_of(&self, keys: &[OwnKey]) -> Result<VersionSigner> {
        let key = keys.iter().find(|key| key.expires_at.is_none());
        let key = key.ok_or_else(|| Error::internal("no key signs packages: start the server again"))?;
        Ok(VersionSigner(self.opened_key.open(&self.pipeline.vault, key)?))
    }

    /// What signs the versions of a document that an upstream is asked for.
    ///
    /// # Errors
    /// Those of the database. INTERNAL: the key does not open.
    pub async fn document_signer(&self, ask: &Ask) -> Result<DocumentSigner> {
        let of = (self.clone(), ask.upstream.uid.clone(), ask.package.clone());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, upstream, package) = of.clone();
            Box::pin(async move {
                let keys = own_keys(tx).await?;
                let signer = hosting.signer_of(&keys)?;
                let document = documents::find(tx, &upstream, &package).await?;
                let packed = documents::manifests(tx, &upstream, &package).await?;
                Ok::<_, Error>((DocumentSigner { package, signer, before: HashMap::new() }, keys, document, packed))
            })
        });
        let (mut signer, keys, document, packed) = read.await?;
        // Long documents take a while to unpack.
        let reading = tokio::task::spawn_blocking(move || {
            let files = document.as_ref().map(DocumentRow::upstream_files).unwrap_or_default();
            // The new document takes the place of a damaged one, which must not hinder that.
            signer.before = signatures(&keys, files, &packed).unwrap_or_else(|error| {
                tracing::warn!(package = signer.package, %error, "stored document of an upstream unreadable; all its versions are signed again");
                HashMap::new()
            });
            signer
        });
        reading.await.map_err(Error::internal)
    }

    /// Signs some versions that groups published before versions were signed. False if there is nothing to sign.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn sign_some(&self) -> Result<bool> {
        let looks = self.pipeline.db.read(|tx| Box::pin(async move { manifests::unsigned(tx, 1).await }));
        if looks.await?.is_empty() {
            return Ok(false);
        }
        let hosting = self.clone();
        let written = self.pipeline.db.write(move |tx| {
            let hosting = hosting.clone();
            Box::pin(async move {
                let signer = hosting.signer(tx).await?;
                for unsigned in manifests::unsigned(tx, AT_ONCE).await? {
                    let signature = signer.sign_sha512((&unsigned.package, &unsigned.version), &unsigned.sha512)?;
                    manifests::set_signature(tx, &unsigned, &signature).await?;
                }
                Ok::<_, Error>(true)
            })
        });
        written.await
    }
}

/// The signatures of a stored document that a listed key made, by version and SHA-512.
fn signatures(
    keys: &[OwnKey],
    files: &[UpstreamFile],
    packed: &PackedManifests,
) -> Result<HashMap<(String, String), OwnSignature>> {
    let sha512s: HashMap<&str, &str> = files.iter().map(|file| (&*file.version, &*file.sha512)).collect();
    let mut signatures = HashMap::new();
    packed.each(|manifest| {
        let signature = manifest.own_signature.filter(|own| keys.iter().any(|key| key.keyid == own.keyid));
        if let Some((signature, sha512)) = signature.zip(sha512s.get(manifest.version.as_str())) {
            signatures.insert((manifest.version, (*sha512).to_owned()), signature);
        }
        Ok(())
    })?;
    Ok(signatures)
}

#[cfg(test)]
mod tests {
    use bowline_authn::package_key::verifies;
    use bowline_contract::bowline::libraries::v1::{UpstreamManifest, UpstreamManifests};

    use super::*;

    const SHA512: &str = "0001feff";

    fn signer() -> (VersionSigner, Vec<u8>) {
        let key = PackageSigner::generate().expect("a key");
        let public_key = key.public_key().to_vec();
        (VersionSigner(Arc::new(key)), public_key)
    }

    #[test]
    fn a_signature_is_of_name_version_and_integrity() {
        let (signer, public_key) = signer();
        let signed = signer.sign_sha512(("@a/b", "1.0.0"), SHA512).expect("a signature");
        assert!(verifies(&public_key, b"@a/b@1.0.0:sha512-AAH+/w==", &signed.signature));
        assert!(!verifies(&public_key, b"@a/b@1.0.1:sha512-AAH+/w==", &signed.signature));
    }

    #[test]
    fn a_document_has_the_signatures_of_before_where_its_files_are_the_same() {
        let (signer, public_key) = signer();
        let manifest = |version: &str, keyid: &str| UpstreamManifest {
            version: version.into(),
            own_signature: Some(OwnSignature { keyid: keyid.into(), signature: vec![7] }),
            ..UpstreamManifest::default()
        };
        let manifests = vec![manifest("1.0.0", "a"), manifest("1.1.0", "gone"), UpstreamManifest::default()];
        let packed = PackedManifests::pack(&UpstreamManifests { manifests }).expect("packed");
        let file =
            |version: &str| UpstreamFile { version: version.into(), sha512: SHA512.into(), ..UpstreamFile::default() };
        let files = [file("1.0.0"), file("1.1.0"), file("")];
        let before = signatures(&[OwnKey::for_test("a", vec![], None)], &files, &packed).expect("signatures");
        let document = DocumentSigner { package: "b".into(), signer, before };
        let sign = |version: &str, sha512: &str| document.sign(version, sha512).expect("a signature");
        assert_eq!(sign("1.0.0", SHA512), OwnSignature { keyid: "a".into(), signature: vec![7] });
        for (version, sha512, message) in
            [("1.0.0", "00", "b@1.0.0:sha512-AA=="), ("1.1.0", SHA512, "b@1.1.0:sha512-AAH+/w==")]
        {
            assert!(verifies(&public_key, message.as_bytes(), &sign(version, sha512).signature), "{message}");
        }
    }
}
