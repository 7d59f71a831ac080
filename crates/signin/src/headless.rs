//! A sign-in whose result only the holder of a private key can read.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use bowline_core::{Error, Result};

use crate::secrets::{bytes_of, text_of};

/// What the client reads.
pub(crate) struct Sealed {
    /// Our half of the agreement, as text.
    pub(crate) public_key: String,
    /// Nonce, ciphertext and tag, one after the other.
    pub(crate) text: Vec<u8>,
}

/// The client's half of the agreement; absent if the text is no public key that an agreement can be made with.
pub(crate) fn public_key(text: &str) -> Option<[u8; 32]> {
    let bytes = bytes_of(text)?;
    // With some points every agreement gives the same secret: any key of this server shows whether this is one.
    shared(&[0x55; 32], &bytes).ok().map(|_| bytes)
}

/// Encrypts `plain` for the holder of the private key: AES-256-GCM under the raw X25519 secret.
///
/// # Errors
/// INTERNAL, for a key that [`public_key`] did not check.
pub(crate) fn seal(peer_key: &[u8; 32], own_key: &[u8; 32], nonce: &[u8; 32], plain: &[u8]) -> Result<Sealed> {
    let failed = |_| Error::internal("a headless result was not encrypted");
    let key = shared(own_key, peer_key)?;
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).map_err(failed)?);
    let mut text = nonce[..NONCE_LEN].to_vec();
    let nonce = Nonce::try_assume_unique_for_key(&text).map_err(failed)?;
    let mut sealed = plain.to_vec();
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut sealed).map_err(failed)?;
    text.append(&mut sealed);
    let public_key = private(own_key)?.compute_public_key().map_err(failed)?;
    Ok(Sealed { public_key: text_of(public_key.as_ref()), text })
}

fn shared(own_key: &[u8; 32], peer_key: &[u8; 32]) -> Result<[u8; 32]> {
    let failed = || Error::internal("no key agreement");
    let peer_key = UnparsedPublicKey::new(&X25519, peer_key);
    agree(&private(own_key)?, peer_key, failed(), |secret| secret.try_into().map_err(|_| failed()))
}

fn private(bytes: &[u8; 32]) -> Result<PrivateKey> {
    PrivateKey::from_private_key(&X25519, bytes).map_err(|_| Error::internal("no private key of X25519"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_opens_what_was_sealed_for_it() {
        let client = private(&[7; 32]).unwrap();
        let peer_key: [u8; 32] = client.compute_public_key().unwrap().as_ref().try_into().unwrap();
        let sealed = seal(&peer_key, &[8; 32], &[9; 32], b"an id token").unwrap();
        let own_key = bytes_of(&sealed.public_key).unwrap();
        let key = shared(&[7; 32], &own_key).unwrap();
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).unwrap());
        let (nonce, text) = sealed.text.split_at(NONCE_LEN);
        let mut text = text.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(nonce).unwrap();
        assert_eq!(key.open_in_place(nonce, Aad::empty(), &mut text).unwrap(), b"an id token");
    }

    #[test]
    fn points_of_small_order_and_other_texts_are_no_keys() {
        let mut one = [0; 32];
        one[0] = 1;
        for bad in [text_of(&[0; 32]), text_of(&one), text_of(&[1; 31]), "yolo".into(), "y@l@".into(), String::new()] {
            assert_eq!(public_key(&bad), None, "{bad}");
        }
        assert!(public_key("uFK0TyUaZCMB6QBGC-HVKGJKqI4-U9q5rV9k8I_YUQ4").is_some());
    }
}
