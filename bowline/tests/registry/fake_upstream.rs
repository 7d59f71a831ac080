//! An upstream that requires authentication, and records its requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_contract::bowline::registry::v1::RegistryPolicy;
use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::TestServer;
use prost::Message as _;
use serde_json::{Value, json};

use crate::support::*;

pub(crate) const USERNAME: &str = "me";

/// What proves who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Nothing: everyone may pull.
    Open,
    /// The account itself.
    Basic,
    /// A token for the account.
    Bearer,
}

/// One request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Path and query.
    pub(crate) path: String,
    /// The `authorization` header, empty for none.
    pub(crate) proof: String,
}

pub(crate) struct State {
    pub(crate) scheme: Scheme,
    /// The account's password.
    pub(crate) password: String,
    /// The manifest under every tag; absent for none.
    pub(crate) manifest: Option<Value>,
    /// Answered in place of the manifest, with these seconds to wait if there are any.
    pub(crate) status: Option<(u16, Option<u32>)>,
    /// Where requests with a good proof are sent on to.
    pub(crate) elsewhere: Option<String>,
    /// Tokens that are good.
    pub(crate) tokens: Vec<String>,
    issued: usize,
    seen: Vec<Seen>,
}

#[derive(Clone)]
pub(crate) struct FakeUpstream {
    /// Scheme, host and port.
    pub(crate) base: String,
    state: Arc<Mutex<State>>,
}

impl FakeUpstream {
    /// One that has this manifest under every tag, for the account with the password "hush".
    pub(crate) async fn start(scheme: Scheme, manifest: Option<Value>) -> FakeUpstream {
        FakeUpstream::listen(tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(), scheme, manifest)
    }

    pub(crate) fn listen(listener: tokio::net::TcpListener, scheme: Scheme, manifest: Option<Value>) -> FakeUpstream {
        let state = State {
            scheme,
            password: "hush".into(),
            manifest,
            status: None,
            elsewhere: None,
            tokens: Vec::new(),
            issued: 0,
            seen: Vec::new(),
        };
        let base = format!("http://{}", listener.local_addr().unwrap());
        let upstream = FakeUpstream { base, state: Arc::new(Mutex::new(state)) };
        let answering = upstream.clone();
        let router = axum::Router::new().fallback(async move |request: Request| answering.answer(&request));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        upstream
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Requests since the last call, without those for blobs.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let mut seen = std::mem::take(&mut self.state().seen);
        seen.retain(|one| !one.path.contains("/blobs/"));
        seen
    }

    fn answer(&self, request: &Request) -> Response {
        let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let path = request.uri().to_string();
        let mut state = self.state();
        state.seen.push(Seen { path: path.clone(), proof: text("authorization").into() });
        let account = account(USERNAME, &state.password);
        if path.starts_with("/token") {
            return state.token(text("authorization"), &account);
        }
        let (is_known, challenge) = match state.scheme {
            Scheme::Open => (true, String::new()),
            Scheme::Basic => (text("authorization") == account, "Basic realm=\"x\"".to_owned()),
            Scheme::Bearer => {
                let is_good = |token| state.tokens.iter().any(|good| good == token);
                let known = text("authorization").strip_prefix("Bearer ").is_some_and(is_good);
                (known, format!("Bearer realm=\"{}/token\",service=\"fake\",scope=\"repository:app:pull\"", self.base))
            }
        };
        if !is_known {
            return (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response();
        }
        if let Some((status, wait)) = state.status {
            let wait: HashMap<_, _> = wait.map(|seconds| ("retry-after", seconds.to_string())).into_iter().collect();
            let headers = wait.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            return (StatusCode::from_u16(status).unwrap(), headers.collect::<http::HeaderMap>()).into_response();
        }
        if let Some(elsewhere) = &state.elsewhere {
            return (StatusCode::TEMPORARY_REDIRECT, [("location", format!("{elsewhere}{path}"))]).into_response();
        }
        match state.manifest.clone().filter(|_| path.contains("/manifests/")) {
            Some(manifest) => {
                let headers = [("content-type", IMAGE.to_owned()), ("docker-content-digest", digest_of(&manifest))];
                (headers, manifest.to_string()).into_response()
            }
            None => StatusCode::NOT_FOUND.into_response(),
        }
    }
}

impl State {
    fn token(&mut self, proof: &str, account: &str) -> Response {
        if !proof.is_empty() && proof != account {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        self.issued += 1;
        let token = format!("token-{}", self.issued);
        // What everyone gets is good for nothing here.
        if !proof.is_empty() {
            self.tokens.push(token.clone());
        }
        json!({ "token": token, "expires_in": 300 }).to_string().into_response()
    }
}

/// The header with which an account proves itself.
pub(crate) fn account(username: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
}

/// A group here that mirrors an address with an account: the API takes https addresses alone, so that the address is
/// put in the place of the one that it took.
pub(crate) async fn mirror_as(server: &TestServer, group: &str, url: &str, username: &str, password: &str) {
    let upstream = json!({ "url": "https://registry.example.com", "username": username, "password": password });
    let path = format!("/registrypolicies/v1/groups/{group}");
    let set = server.operator().await.rest("PATCH", &path, Some(json!({ "upstream": upstream }))).await;
    assert_eq!(set.status, 200, "{}", set.text());
    let (group, url) = (group.to_owned(), url.to_owned());
    let written = server.server().parts().storage.db.write(move |tx| {
        let (group, url) = (group.clone(), url.clone());
        Box::pin(async move {
            let sql = "SELECT policy FROM registry_policies WHERE place = $1";
            let read = tx.query_opt(sql, &[Sql::from(&group)], |row| row.bytes(0).map_err(Error::from)).await?;
            let mut policy = RegistryPolicy::decode(read.unwrap().as_slice()).map_err(Error::internal)?;
            policy.upstream.as_mut().unwrap().url = url;
            let sql = "UPDATE registry_policies SET policy = $2 WHERE place = $1";
            let params = [Sql::from(&group), Sql::Bytes(&policy.encode_to_vec())];
            tx.execute(sql, &params).await.map_err(Error::from)
        })
    });
    written.await.expect("the database takes it");
}
