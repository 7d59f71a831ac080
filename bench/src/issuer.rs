//! A small OpenID Connect issuer on loopback that signs with RS256.

use std::net::SocketAddr;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize, PublicKeyComponents};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256};
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_core::{Clock as _, SystemClock};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Outcome;

const KEY_ID: &str = "bench";

/// Serves until this value ends.
pub(crate) struct Issuer {
    key: KeyPair,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Issuer {
    pub(crate) async fn start() -> Outcome<Issuer> {
        let key = KeyPair::generate(KeySize::Rsa2048).map_err(|_| "no RSA key")?;
        let public = PublicKeyComponents::<Vec<u8>>::from(key.public_key());
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let jwk = json!({
            "kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_ID, "n": encode(&public.n), "e": encode(&public.e),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let url = format!("http://{address}");
        let discovery = json!({
            "issuer": url, "jwks_uri": format!("{url}/keys"), "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"],
        });
        let router = Router::new()
            .route("/.well-known/openid-configuration", page(discovery.to_string()))
            .route("/keys", page(json!({ "keys": [jwk] }).to_string()));
        let task = tokio::spawn(async move {
            // It ends with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Issuer { key, address, task })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A token for `audience`; `n` makes it one of many.
    pub(crate) fn token(&self, subject: &str, audience: &str, n: u64) -> Outcome<String> {
        let now = SystemClock.now() / 1_000_000;
        let header = json!({ "alg": "RS256", "kid": KEY_ID, "typ": "JWT" });
        let claims = json!({
            "iss": self.url(), "sub": subject, "aud": audience, "iat": now, "exp": now + 3000, "jti": n.to_string(),
        });
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let mut signature = vec![0; self.key.public_modulus_len()];
        let random = SystemRandom::new();
        let done = self.key.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature);
        done.map_err(|_| "a token could not be signed")?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn page(body: String) -> axum::routing::MethodRouter {
    get(move || std::future::ready(([(CONTENT_TYPE, "application/json")], body.clone())))
}
