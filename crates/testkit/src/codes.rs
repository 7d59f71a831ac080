//! The code flow of the fake issuer: who signs in, and with what, the test says.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};

use super::{Facts, IdentityProvider};

/// Someone who signs in.
#[derive(Clone, Debug, Default)]
pub struct SignIn {
    pub subject: String,
    /// The client's id: the audience of the id token.
    pub client_id: String,
    /// Where the browser goes back to; must be the same at the token endpoint.
    pub redirect_uri: String,
    /// Comes back inside the id token.
    pub nonce: String,
    /// PKCE, method S256; empty for none.
    pub code_challenge: String,
    /// Further claims of the id token; null takes one away.
    pub claims: Value,
    /// What the userinfo endpoint says; null for nothing but who it is.
    pub userinfo: Value,
}

#[derive(Default)]
pub(crate) struct Codes {
    number: AtomicUsize,
    state: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// Members that replace those of the discovery document.
    document: Map<String, Value>,
    /// Id and secret that the token endpoint requires.
    client: Option<(String, String)>,
    /// Whom the authorization endpoint signs in.
    person: SignIn,
    codes: HashMap<String, SignIn>,
    userinfo: HashMap<String, Value>,
    /// How the client last proved its secret.
    proof: &'static str,
}

impl Codes {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn document(&self) -> Map<String, Value> {
        self.lock().document.clone()
    }

    fn make(&self, sign_in: SignIn) -> String {
        let code = format!("code-{}", self.number.fetch_add(1, Ordering::SeqCst));
        self.lock().codes.insert(code.clone(), sign_in);
        code
    }
}

impl IdentityProvider {
    /// A code for someone who has just signed in, good once.
    pub fn sign_in(&self, sign_in: SignIn) -> String {
        self.state.codes.make(sign_in)
    }

    /// Whom the authorization endpoint signs in without asking; the request says the rest.
    pub fn set_person(&self, subject: &str, claims: Value) {
        self.state.codes.lock().person = SignIn { subject: subject.into(), claims, ..SignIn::default() };
    }

    /// Replaces members of the discovery document.
    pub fn set_document(&self, members: Value) {
        self.state.codes.lock().document = members.as_object().cloned().unwrap_or_default();
    }

    /// The client that the token endpoint wants to see proved.
    pub fn set_client(&self, id: &str, secret: &str) {
        self.state.codes.lock().client = Some((id.into(), secret.into()));
    }

    /// How the client last proved its secret: `basic`, `post` or `none`.
    pub fn last_proof(&self) -> &'static str {
        self.state.codes.lock().proof
    }
}

/// Signs in whom the test chose and sends the browser back.
pub(crate) async fn authorize(State(facts): State<Arc<Facts>>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let asked: HashMap<String, String> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let of = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let person = facts.codes.lock().person.clone();
    if person.subject.is_empty() || of("response_type") != "code" || of("code_challenge_method") != "S256" {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let redirect_uri = of("redirect_uri");
    let code = facts.codes.make(SignIn {
        client_id: of("client_id"),
        redirect_uri: redirect_uri.clone(),
        nonce: of("nonce"),
        code_challenge: of("code_challenge"),
        ..person
    });
    let Ok(mut back) = url::Url::parse(&redirect_uri) else { return StatusCode::BAD_REQUEST.into_response() };
    let (state, issuer) = (of("state"), facts.issuer().to_owned());
    back.query_pairs_mut().append_pair("code", &code).append_pair("state", &state).append_pair("iss", &issuer);
    (StatusCode::FOUND, [(header::LOCATION, String::from(back))]).into_response()
}

pub(crate) async fn token(State(facts): State<Arc<Facts>>, headers: HeaderMap, body: String) -> Response {
    let form: HashMap<String, String> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let of = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let refuse = |error: &str| (StatusCode::BAD_REQUEST, json!({ "error": error }).to_string()).into_response();
    let (proof, id, secret) = client(&headers, &form);
    let mut pending = facts.codes.lock();
    pending.proof = proof;
    if pending.client.as_ref().is_some_and(|known| *known != (id, secret)) {
        return refuse("invalid_client");
    }
    let Some(sign_in) = pending.codes.remove(of("code")) else { return refuse("invalid_grant") };
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, of("code_verifier").as_bytes());
    let is_proved = sign_in.code_challenge.is_empty() || sign_in.code_challenge == URL_SAFE_NO_PAD.encode(digest);
    if of("grant_type") != "authorization_code" || of("redirect_uri") != sign_in.redirect_uri || !is_proved {
        return refuse("invalid_grant");
    }
    let mut claims = json!({ "nonce": sign_in.nonce });
    for (name, value) in sign_in.claims.as_object().into_iter().flatten() {
        claims[name] = value.clone();
    }
    let access_token = format!("access-{}", of("code"));
    let told = Some(sign_in.userinfo.clone()).filter(|told| !told.is_null());
    pending.userinfo.insert(access_token.clone(), told.unwrap_or_else(|| json!({ "sub": sign_in.subject })));
    let id_token = facts.token(&sign_in.subject, &sign_in.client_id, &claims);
    let answer = json!({ "id_token": id_token, "access_token": access_token, "token_type": "Bearer" });
    (StatusCode::OK, answer.to_string()).into_response()
}

/// How the client proves itself, and as whom.
fn client(headers: &HeaderMap, form: &HashMap<String, String>) -> (&'static str, String, String) {
    let of = |name: &str| form.get(name).cloned().unwrap_or_default();
    let basic = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let Some(basic) = basic.and_then(|basic| STANDARD.decode(basic).ok()) else {
        let proof = if form.contains_key("client_secret") { "post" } else { "none" };
        return (proof, of("client_id"), of("client_secret"));
    };
    let text = String::from_utf8_lossy(&basic).into_owned();
    let (id, secret) = text.split_once(':').unwrap_or((&text, ""));
    let decoded = |text: &str| -> String {
        let pair = format!("a={text}");
        url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    ("basic", decoded(id), decoded(secret))
}

pub(crate) async fn userinfo(State(facts): State<Arc<Facts>>, headers: HeaderMap) -> Response {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let claims = token.and_then(|token| facts.codes.lock().userinfo.get(token).cloned());
    match claims {
        Some(claims) => (StatusCode::OK, claims.to_string()).into_response(),
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}
