//! The secret of one sign-in, and everything that is derived from it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_authn::crypto::{constant_time_eq, sha256};
use bowline_pipeline::Vault;

/// Where random bytes come from; other ones at each call.
pub type Random = Arc<dyn Fn() -> [u8; 32] + Send + Sync>;

/// Bytes of a flow's public name.
const ID_BYTES: usize = 8;

/// What the browser's cookie holds while a sign-in continues. The server stores its digest alone.
///
/// The values that go to the provider and into forms are keyed digests of it: without the server's key the
/// cookie does not reveal them, and without the cookie the server does not know them.
pub(crate) struct FlowSecret([u8; 32]);

impl FlowSecret {
    pub(crate) fn new(bytes: [u8; 32]) -> FlowSecret {
        FlowSecret(bytes)
    }

    /// Parses the cookie; absent if it is not from this server.
    pub(crate) fn read(text: &str) -> Option<FlowSecret> {
        bytes_of(text).map(FlowSecret)
    }

    pub(crate) fn text(&self) -> String {
        text_of(&self.0)
    }

    /// What the row is found by.
    pub(crate) fn hash(&self) -> [u8; 32] {
        sha256(&self.0)
    }

    /// The flow's public name: which cookie belongs to a response.
    pub(crate) fn id(&self, vault: &Vault) -> String {
        bowline_core::hex(&vault.mac("sign-in id", &self.0)[..ID_BYTES])
    }

    /// `state` of the authorization request: the id, and proof that it was made for this flow.
    pub(crate) fn state(&self, vault: &Vault) -> String {
        format!("{}.{}", self.id(vault), self.derived(vault, "sign-in state"))
    }

    /// `nonce` of the id token.
    pub(crate) fn nonce(&self, vault: &Vault) -> String {
        self.derived(vault, "sign-in nonce")
    }

    /// The verifier of PKCE, derived from the secret.
    pub(crate) fn verifier(&self, vault: &Vault) -> String {
        self.derived(vault, "sign-in verifier")
    }

    /// The PKCE challenge, method S256.
    pub(crate) fn challenge(&self, vault: &Vault) -> String {
        text_of(&sha256(self.verifier(vault).as_bytes()))
    }

    /// What the form of the last page has to carry.
    pub(crate) fn form_token(&self, vault: &Vault) -> String {
        self.derived(vault, "sign-in form")
    }

    fn derived(&self, vault: &Vault, purpose: &str) -> String {
        text_of(&vault.mac(purpose, &self.0))
    }
}

/// The id in a `state`, if it has the form of this server.
pub(crate) fn id_of_state(state: &str) -> Option<&str> {
    state.split_once('.').map(|(id, _)| id).filter(|id| is_id(id))
}

/// Whether a text has the form of a flow's id.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 2 * ID_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether two texts are equal, in time that does not depend on where they differ.
pub(crate) fn same(a: &str, b: &str) -> bool {
    constant_time_eq(a.as_bytes(), b.as_bytes())
}

/// What the form that signs out has to carry.
pub(crate) fn sign_out_token(vault: &Vault, cookie: &[u8; 32]) -> String {
    text_of(&vault.mac("sign-out form", cookie))
}

/// Bytes for an address, a form or a cookie.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The 32 bytes that [`text_of`] wrote.
pub(crate) fn bytes_of(text: &str) -> Option<[u8; 32]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use bowline_authn::crypto::KeyEncryptionKey;

    use super::*;

    #[test]
    fn everything_derived_is_apart_and_comes_back() {
        let vault = Vault::new(KeyEncryptionKey::from_bytes(&[1; 32]).unwrap(), [2; 32]);
        let secret = FlowSecret::new([3; 32]);
        let again = FlowSecret::read(&secret.text()).unwrap();
        assert_eq!(secret.state(&vault), again.state(&vault));
        let values = [
            secret.text(),
            secret.state(&vault),
            secret.nonce(&vault),
            secret.verifier(&vault),
            secret.challenge(&vault),
            secret.form_token(&vault),
        ];
        let different: std::collections::BTreeSet<_> = values.iter().collect();
        assert_eq!(different.len(), values.len());
        assert_eq!(id_of_state(&secret.state(&vault)), Some(secret.id(&vault).as_str()));
        assert_ne!(FlowSecret::new([4; 32]).state(&vault), secret.state(&vault));
    }

    #[test]
    fn foreign_texts_are_rejected() {
        assert!(FlowSecret::read("").is_none() && FlowSecret::read("abc=").is_none());
        for bad in ["", ".", "0123456789abcdef", "0123456789ABCDEF.x", "0123456789abcde.x", "../../../../etc/.x"] {
            assert_eq!(id_of_state(bad), None, "{bad}");
        }
        assert!(same("a", "a") && !same("a", "b") && !same("a", ""));
    }
}
