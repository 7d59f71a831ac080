use bowline_authn::crypto::{KeyEncryptionKey, hmac_sha256};
use bowline_core::{Error, Result};

/// Encrypts and authenticates for handlers, which do not see the server's keys.
pub struct Vault {
    sealing_key: KeyEncryptionKey,
    mac_key: [u8; 32],
}

impl Vault {
    /// A vault that seals with one key and authenticates with another.
    pub fn new(sealing_key: KeyEncryptionKey, mac_key: [u8; 32]) -> Vault {
        Vault { sealing_key, mac_key }
    }

    /// Encrypts a stored secret. Only the same `context`, which names what is sealed, opens it again.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Vec<u8> {
        self.sealing_key.seal(context, plain)
    }

    /// Decrypts what [`Vault::seal`] made for the same context.
    ///
    /// # Errors
    /// INTERNAL: the stored bytes are damaged, or were sealed with another key file.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        self.sealing_key.open(context, sealed).map_err(|error| Error::internal(format!("{context}: {error}")))
    }

    /// A keyed digest of `message`; digests for different purposes are independent.
    pub fn mac(&self, purpose: &str, message: &[u8]) -> [u8; 32] {
        let key = hmac_sha256(&self.mac_key, purpose.as_bytes());
        hmac_sha256(&key, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_and_contexts_are_independent() {
        let vault = Vault::new(KeyEncryptionKey::from_bytes(&[1; 32]).unwrap(), [2; 32]);
        assert_eq!(vault.mac("a", b"x"), vault.mac("a", b"x"));
        assert_ne!(vault.mac("a", b"x"), vault.mac("b", b"x"));
        let sealed = vault.seal("here", b"secret");
        assert_eq!(vault.open("here", &sealed).unwrap(), b"secret");
        assert!(vault.open("there", &sealed).is_err());
    }
}
