//! Sealed secrets, digests, random bytes and codes.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{digest, hmac, rand};

const VERSION: u8 = 1;

/// A key of the wrong length, or a sealed value that is damaged or was sealed with another key or context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The key is not 32 bytes.
    #[error("a key-encryption key has 32 bytes")]
    KeyLength,
    /// Too short, or of a version that this program does not know.
    #[error("not a sealed value of a known version")]
    Format,
    /// The authentication tag does not fit.
    #[error("the sealed value does not open with this key and context")]
    Refused,
}

/// The key that wraps signing keys, provider secrets and HMAC keys (AES-256-GCM).
pub struct KeyEncryptionKey {
    bytes: [u8; 32],
    key: LessSafeKey,
}

impl fmt::Debug for KeyEncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyEncryptionKey(..)")
    }
}

impl KeyEncryptionKey {
    /// A new key from the system's random source.
    pub fn generate() -> Self {
        Self::of(random_bytes::<32>())
    }

    /// A key read from its file; exactly 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SealError> {
        Ok(Self::of(bytes.try_into().map_err(|_| SealError::KeyLength)?))
    }

    /// The raw key, for writing its file.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    fn of(bytes: [u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, &bytes).expect("AES-256 takes 32 bytes");
        Self { bytes, key: LessSafeKey::new(key) }
    }

    /// Encrypts `plain`; only the same `context` opens it. Version byte, nonce, ciphertext, tag.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Vec<u8> {
        let nonce = random_bytes::<NONCE_LEN>();
        let mut text = plain.to_vec();
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad(context), &mut text)
            .expect("a secret is far below the limit of AES-GCM");
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + text.len());
        sealed.push(VERSION);
        sealed.extend_from_slice(&nonce);
        sealed.append(&mut text);
        sealed
    }

    /// Opens what [`Self::seal`] made with the same context.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (version, rest) = sealed.split_first().ok_or(SealError::Format)?;
        if *version != VERSION || rest.len() < NONCE_LEN {
            return Err(SealError::Format);
        }
        let (nonce, text) = rest.split_at(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Format)?;
        let mut text = text.to_vec();
        let plain = self.key.open_in_place(nonce, aad(context), &mut text).map_err(|_| SealError::Refused)?.len();
        text.truncate(plain);
        Ok(text)
    }
}

fn aad(context: &str) -> Aad<Vec<u8>> {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(context.as_bytes());
    Aad::from(bytes)
}

pub fn hmac_sha256(key: &[u8], data: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data);
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Whether `tag` is the full HMAC-SHA-256 of `data`, compared in constant time.
pub fn verify_hmac(key: &[u8], data: &[u8], tag: &[u8]) -> bool {
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, key), data, tag).is_ok()
}

pub fn sha256(data: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, data).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Whether two byte strings are equal, in time that depends on their lengths alone.
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

/// Random bytes from the system's source.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).expect("the system's random source answers");
    bytes
}

/// The characters of short codes: 32 that people do not take for one another.
pub const CODE_ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The first forty bits as `XXXX-XXXX`.
pub fn short_code(bytes: &[u8; 32]) -> String {
    let bits = bytes[..5].iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let mut code: String =
        (0..8).rev().map(|index| char::from(CODE_ALPHABET[(bits >> (index * 5) & 31) as usize])).collect();
    code.insert(4, '-');
    code
}

/// A short code of a public key that a page and a terminal both show, so that a person can compare them.
pub fn check_code(public_key: &[u8]) -> String {
    short_code(&sha256(public_key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_with_the_same_key_and_context() {
        let kek = KeyEncryptionKey::generate();
        let sealed = kek.seal("signing-key/1", b"secret");
        assert_eq!(kek.open("signing-key/1", &sealed).unwrap(), b"secret");
        assert_eq!(kek.open("signing-key/2", &sealed), Err(SealError::Refused));
        let other = KeyEncryptionKey::generate();
        assert_eq!(other.open("signing-key/1", &sealed), Err(SealError::Refused));
        let again = KeyEncryptionKey::from_bytes(kek.as_bytes()).unwrap();
        assert_eq!(again.open("signing-key/1", &sealed).unwrap(), b"secret");
        assert_ne!(sealed, kek.seal("signing-key/1", b"secret"), "nonces differ");
        assert!(KeyEncryptionKey::from_bytes(&[0; 31]).is_err());
        assert_eq!(format!("{kek:?}"), "KeyEncryptionKey(..)");
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let kek = KeyEncryptionKey::generate();
        let sealed = kek.seal("c", b"");
        assert_eq!(kek.open("c", &sealed).unwrap(), b"");
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(kek.open("c", &damaged).is_err(), "byte {at}");
            assert!(kek.open("c", &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn hmac_and_digest_known_answers() {
        // RFC 4231, case 2.
        let tag = hmac_sha256(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(tag[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        assert!(verify_hmac(b"Jefe", b"what do ya want for nothing?", &tag));
        assert!(!verify_hmac(b"Jefe", b"what do ya want for nothing!", &tag));
        assert!(!verify_hmac(b"Jefe", b"what do ya want for nothing?", &tag[..16]));
        assert_eq!(sha256(b"abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
        assert!(constant_time_eq(b"a", b"a") && !constant_time_eq(b"a", b"ab"));
        assert_ne!(random_bytes::<16>(), random_bytes::<16>());
    }
}
