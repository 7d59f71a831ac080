use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::clock::TestClock;

#[path = "codes.rs"]
mod codes;

pub use codes::SignIn;

/// Keys are slow to make, so that all issuers of a process share these.
static KEYS: LazyLock<[RsaKeyPair; 2]> =
    LazyLock::new(|| std::array::from_fn(|_| RsaKeyPair::generate(KeySize::Rsa2048).expect("an RSA key is made")));

/// An OpenID Connect issuer on loopback: discovery, keys, and tokens with any claims.
pub struct IdentityProvider {
    issuer: String,
    clock: TestClock,
    state: Arc<Facts>,
    task: JoinHandle<()>,
}

#[derive(Default)]
pub(crate) struct Facts {
    issuer: std::sync::OnceLock<String>,
    pub(crate) clock: TestClock,
    pub(crate) codes: codes::Codes,
    discovery: AtomicUsize,
    jwks: AtomicUsize,
    rotated: AtomicBool,
    down: AtomicBool,
}

impl IdentityProvider {
    /// An issuer on a port of its own, with the time of `clock`.
    pub async fn start(clock: TestClock) -> IdentityProvider {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let issuer = format!("http://{}", socket.local_addr().expect("a bound socket has an address"));
        let state = Arc::new(Facts { clock: clock.clone(), ..Facts::default() });
        state.issuer.set(issuer.clone()).expect("set once");
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .route("/authorize", get(codes::authorize))
            .route("/token", post(codes::token))
            .route("/userinfo", get(codes::userinfo))
            .with_state(state.clone());
        let task = tokio::spawn(async move {
            axum::serve(socket, router).await.expect("the issuer serves");
        });
        IdentityProvider { issuer, clock, state, task }
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Requests for the discovery document and for the keys so far.
    pub fn requests(&self) -> usize {
        self.discovery_requests() + self.key_requests()
    }

    /// Requests for the discovery document so far.
    pub fn discovery_requests(&self) -> usize {
        self.state.discovery.load(Ordering::SeqCst)
    }

    /// Requests for the keys so far.
    pub fn key_requests(&self) -> usize {
        self.state.jwks.load(Ordering::SeqCst)
    }

    /// Publishes another key instead of the present one, and signs with it from now on.
    pub fn rotate(&self) {
        self.state.rotated.fetch_xor(true, Ordering::SeqCst);
    }

    /// Makes every request fail with 503, or succeed again.
    pub fn set_down(&self, down: bool) {
        self.state.down.store(down, Ordering::SeqCst);
    }

    /// A good token, for ten minutes. Members of `extra` come on top and replace; null takes one away.
    pub fn token(&self, sub: &str, aud: &str, extra: Value) -> String {
        self.sign(self.header(), &self.claims(sub, aud, &extra))
    }

    /// A token that expired an hour ago.
    pub fn expired(&self, sub: &str, aud: &str) -> String {
        let now = self.clock.seconds();
        self.token(sub, aud, json!({ "iat": now - 7200, "exp": now - 3600 }))
    }

    /// A token that is valid in an hour.
    pub fn premature(&self, sub: &str, aud: &str) -> String {
        let now = self.clock.seconds();
        self.token(sub, aud, json!({ "iat": now + 3600, "nbf": now + 3600, "exp": now + 7200 }))
    }

    /// A token whose key id the issuer does not publish.
    pub fn other_kid(&self, sub: &str, aud: &str) -> String {
        let mut header = self.header();
        header["kid"] = json!("unpublished");
        self.sign(header, &self.claims(sub, aud, &Value::Null))
    }

    /// A token with the published key id, signed with another key.
    pub fn other_key(&self, sub: &str, aud: &str) -> String {
        let unsigned = unsigned(&self.header(), &self.claims(sub, aud, &Value::Null));
        signed(unsigned, 1 - self.signing())
    }

    /// A token without a signature, with `alg` none.
    pub fn alg_none(&self, sub: &str, aud: &str) -> String {
        let claims = self.claims(sub, aud, &Value::Null);
        format!("{}.", unsigned(&json!({ "alg": "none", "typ": "JWT" }), &claims))
    }

    /// A token that uses the public key as the secret of an HMAC.
    pub fn alg_hmac(&self, sub: &str, aud: &str) -> String {
        let header = json!({ "alg": "HS256", "kid": kid(self.signing()), "typ": "JWT" });
        let unsigned = unsigned(&header, &self.claims(sub, aud, &Value::Null));
        let secret = jwk(self.signing()).to_string();
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret.as_bytes());
        let tag = aws_lc_rs::hmac::sign(&key, unsigned.as_bytes());
        format!("{unsigned}.{}", B64.encode(tag.as_ref()))
    }

    /// Any header and claims, signed with the present key.
    pub fn sign(&self, header: Value, claims: &Value) -> String {
        signed(unsigned(&header, claims), self.signing())
    }

    /// The header of a good token.
    pub fn header(&self) -> Value {
        json!({ "alg": "RS256", "kid": kid(self.signing()), "typ": "JWT" })
    }

    /// The public keys, as published.
    pub fn jwks(&self) -> Value {
        json!({ "keys": [jwk(self.signing())] })
    }

    fn claims(&self, sub: &str, aud: &str, extra: &Value) -> Value {
        self.state.claims(sub, aud, extra)
    }

    fn signing(&self) -> usize {
        self.state.signing()
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Facts {
    pub(crate) fn issuer(&self) -> &str {
        self.issuer.get().map_or("", String::as_str)
    }

    fn claims(&self, sub: &str, aud: &str, extra: &Value) -> Value {
        let now = self.clock.seconds();
        let claims = json!({ "iss": self.issuer(), "sub": sub, "aud": aud, "iat": now, "exp": now + 600 });
        let mut claims: BTreeMap<String, Value> = serde_json::from_value(claims).expect("an object");
        for (name, value) in extra.as_object().into_iter().flatten() {
            claims.insert(name.clone(), value.clone());
        }
        claims.retain(|_, value| !value.is_null());
        json!(claims)
    }

    pub(crate) fn token(&self, sub: &str, aud: &str, extra: &Value) -> String {
        let header = json!({ "alg": "RS256", "kid": kid(self.signing()), "typ": "JWT" });
        signed(unsigned(&header, &self.claims(sub, aud, extra)), self.signing())
    }

    fn signing(&self) -> usize {
        usize::from(self.rotated.load(Ordering::SeqCst))
    }

    fn answer(&self, count: &AtomicUsize, document: impl FnOnce() -> Value) -> (StatusCode, String) {
        count.fetch_add(1, Ordering::SeqCst);
        if self.down.load(Ordering::SeqCst) {
            return (StatusCode::SERVICE_UNAVAILABLE, String::new());
        }
        (StatusCode::OK, document().to_string())
    }
}

async fn discovery(State(facts): State<Arc<Facts>>) -> (StatusCode, String) {
    facts.answer(&facts.discovery, || {
        let issuer = facts.issuer();
        let mut document = json!({
            "issuer": issuer,
            "jwks_uri": format!("{issuer}/keys"),
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "userinfo_endpoint": format!("{issuer}/userinfo"),
            "response_types_supported": ["code", "id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        });
        for (name, value) in facts.codes.document() {
            document[name] = value;
        }
        document
    })
}

async fn keys(State(facts): State<Arc<Facts>>) -> (StatusCode, String) {
    facts.answer(&facts.jwks, || json!({ "keys": [jwk(facts.signing())] }))
}

fn kid(key: usize) -> String {
    format!("key-{key}")
}

fn jwk(key: usize) -> Value {
    let public = KEYS[key].public_key();
    let n = B64.encode(public.modulus().big_endian_without_leading_zero());
    let e = B64.encode(public.exponent().big_endian_without_leading_zero());
    json!({ "kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid(key), "n": n, "e": e })
}

fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", B64.encode(header.to_string()), B64.encode(claims.to_string()))
}

fn signed(unsigned: String, key: usize) -> String {
    let key = &KEYS[key];
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), unsigned.as_bytes(), &mut signature).expect("an RSA key signs");
    format!("{unsigned}.{}", B64.encode(signature))
}
