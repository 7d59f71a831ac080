use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::StatusCode;
use serde::Deserialize;

use crate::cache::Tokens;
use crate::error::ClientError;
use crate::issuer::{ExchangeRequest, Issuer, SignInRequest, parsed, refusal};

/// A sign-in in a browser elsewhere: the result comes back through the server, sealed for this process.
pub struct HeadlessSignIn {
    key: PrivateKey,
    /// The public half of the key, in base64url.
    public_key: String,
    /// The address to open in any browser.
    pub url: String,
    /// Short code that the page shows too.
    pub check_code: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    ecdh_public_key: String,
    encrypted_idtoken: String,
}

const POLL: Duration = Duration::from_secs(2);

impl HeadlessSignIn {
    /// Makes a key and the address that carries its public half.
    ///
    /// # Errors
    /// No key can be made.
    pub fn start(issuer: &Issuer, request: &SignInRequest) -> Result<HeadlessSignIn, ClientError> {
        let failed = |_| ClientError::SignIn("no key could be made".into());
        let key = PrivateKey::generate(&X25519).map_err(failed)?;
        let public = key.compute_public_key().map_err(failed)?;
        let public_key = URL_SAFE_NO_PAD.encode(public.as_ref());
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("headless_code", &public_key);
        query.extend_pairs(request.parameters());
        let url = format!("{}?{}", issuer.at("/oauth"), query.finish());
        Ok(HeadlessSignIn { key, check_code: bowline_authn::crypto::check_code(public.as_ref()), public_key, url })
    }

    /// Waits for the result, then exchanges it for a token of that audience.
    ///
    /// # Errors
    /// No one signed in in time, or the result is not for this process.
    pub async fn finish(self, issuer: &Issuer, audience: &str, timeout: Duration) -> Result<Tokens, ClientError> {
        let url = format!("{}?code={}", issuer.at("/sts/headless_sessions"), self.public_key);
        let waiting = async {
            loop {
                let (status, body) = issuer.get(&url).await?;
                match status {
                    StatusCode::OK => break parsed::<Session>(&body),
                    StatusCode::NOT_FOUND => tokio::time::sleep(POLL).await,
                    _ => break Err(refusal(status, &body)),
                }
            }
        };
        let session = tokio::time::timeout(timeout, waiting).await.map_err(|_| {
            ClientError::SignIn(format!("no sign-in within {} seconds; run the command again", timeout.as_secs()))
        })??;
        let id_token = self.open(&session)?;
        let request = ExchangeRequest { audiences: vec![audience.into()], ..ExchangeRequest::default() };
        issuer.exchange(&id_token, &request).await
    }

    fn open(self, session: &Session) -> Result<String, ClientError> {
        let damaged = || ClientError::SignIn("the result of the sign-in is damaged or not for this process".into());
        // Bytes are base64 in JSON, and what is inside is the text form of the key.
        let text = STANDARD.decode(&session.ecdh_public_key).map_err(|_| damaged())?;
        let public = URL_SAFE_NO_PAD.decode(text).map_err(|_| damaged())?;
        let mut sealed = STANDARD.decode(&session.encrypted_idtoken).map_err(|_| damaged())?;
        if sealed.len() < 12 {
            return Err(damaged());
        }
        let mut secret = sealed.split_off(12);
        let nonce = Nonce::try_assume_unique_for_key(&sealed).map_err(|_| damaged())?;
        let public = UnparsedPublicKey::new(&X25519, public);
        agree(&self.key, public, damaged(), |shared| {
            let key = UnboundKey::new(&AES_256_GCM, shared).map_err(|_| damaged())?;
            let opened = LessSafeKey::new(key).open_in_place(nonce, Aad::empty(), &mut secret);
            let plain = opened.map_err(|_| damaged())?;
            String::from_utf8(plain.to_vec()).map_err(|_| damaged())
        })
    }
}
