//! Keys that sign versions of packages as registries of npm do: ECDSA on P-256 with SHA-256.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, ParsedPublicKey,
    UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::crypto::sha256;
use crate::keys::{Algorithm, KeyError};

/// What stands before the point in the DER of a public key on P-256, by RFC 5480.
const BEFORE_POINT: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Bytes of a point that is not compressed, and what it begins with.
const POINT: usize = 65;
const UNCOMPRESSED: u8 = 4;

const FAILED: KeyError = KeyError(Algorithm::Es256);

/// A key that signs versions of packages.
pub struct PackageSigner {
    pair: EcdsaKeyPair,
    public_key: Vec<u8>,
    id: String,
}

impl fmt::Debug for PackageSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackageSigner").field("id", &self.id).finish_non_exhaustive()
    }
}

impl PackageSigner {
    /// A new key from the system's random source.
    pub fn generate() -> Result<PackageSigner, KeyError> {
        EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).map(PackageSigner::of).map_err(|_| FAILED)
    }

    /// Reads what [`Self::to_pkcs8`] wrote.
    pub fn from_pkcs8(bytes: &[u8]) -> Result<PackageSigner, KeyError> {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, bytes).map(PackageSigner::of).map_err(|_| FAILED)
    }

    /// The private key as PKCS#8 DER, to be sealed before it is stored.
    pub fn to_pkcs8(&self) -> Result<Vec<u8>, KeyError> {
        Ok(self.pair.to_pkcs8v1().map_err(|_| FAILED)?.as_ref().to_vec())
    }

    fn of(pair: EcdsaKeyPair) -> PackageSigner {
        let point = pair.public_key().as_ref();
        let public_key = [&BEFORE_POINT, point].concat();
        let id = fingerprint(point);
        PackageSigner { pair, public_key, id }
    }

    /// The key id: `SHA256:` and the fingerprint of the public key as OpenSSH computes it, as the public registry has them.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The public key as a DER of SubjectPublicKeyInfo.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// The signature of a message in DER. It differs from call to call.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.pair.sign(&SystemRandom::new(), message).map_err(|_| FAILED)?;
        Ok(signature.as_ref().to_vec())
    }
}

/// The fingerprint of a key of the type `ecdsa-sha2-nistp256`, whose encoding is by RFC 5656.
fn fingerprint(point: &[u8]) -> String {
    let mut key = Vec::new();
    for part in [b"ecdsa-sha2-nistp256", b"nistp256".as_slice(), point] {
        key.extend((part.len() as u32).to_be_bytes());
        key.extend(part);
    }
    format!("SHA256:{}", STANDARD_NO_PAD.encode(sha256(&key)))
}

/// Whether bytes are a public key on P-256, as SubjectPublicKeyInfo in DER. Clients fail with a point that is not on the curve.
pub fn is_public_key(der: &[u8]) -> bool {
    let point = der.strip_prefix(&BEFORE_POINT).unwrap_or_default();
    let has_form = point.len() == POINT && point.first() == Some(&UNCOMPRESSED);
    has_form && ParsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).is_ok()
}

/// Whether a signature in DER is that of a message by the key with this public half.
pub fn verifies(public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let Some(point) = public_key.strip_prefix(&BEFORE_POINT) else { return false };
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature).is_ok()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn a_signature_verifies_with_its_key_and_message_alone() {
        let key = PackageSigner::generate().unwrap();
        let signature = key.sign(b"a@1.0.0:sha512-x").unwrap();
        assert!(is_public_key(key.public_key()) && verifies(key.public_key(), b"a@1.0.0:sha512-x", &signature));
        assert!(!verifies(key.public_key(), b"a@1.0.1:sha512-x", &signature));
        let other = PackageSigner::generate().unwrap();
        assert!(!verifies(other.public_key(), b"a@1.0.0:sha512-x", &signature) && other.id() != key.id());
        let again = PackageSigner::from_pkcs8(&key.to_pkcs8().unwrap()).unwrap();
        assert_eq!((again.id(), again.public_key()), (key.id(), key.public_key()));
        assert!(PackageSigner::from_pkcs8(b"x").is_err());
    }

    #[test]
    fn ids_are_those_of_the_public_registry() {
        let known = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEY6Ya7W++7aUPzvMTrezH6Ycx3c+HOKYCcNGybJZSCJq/fd7Qa8uuAKtdIkUQtQiEKERhAmE5\
                     lMMJhP8OkDOa2g==";
        let der = STANDARD.decode(known).unwrap();
        assert!(is_public_key(&der));
        assert_eq!(fingerprint(&der[BEFORE_POINT.len()..]), "SHA256:DhQ8wR5APBvFHLF/+Tc+AYvPOdTpcIDqOhxsBHRwC7U");
        let mut off_curve = der.clone();
        off_curve[90] ^= 1;
        for wrong in [&der[1..], &der[..90], b"", &[&der[..26], &[2; 65]].concat(), &off_curve] {
            assert!(!is_public_key(wrong), "{wrong:?}");
        }
    }
}
