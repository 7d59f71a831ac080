//! Another proxy of Go's modules, or registry of crates, which records its requests and can be made to answer wrongly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bowline_core::Clock as _;
use bowline_core::rfc3339::{self, Digits};
use bowline_testkit::cargo;
use bowline_testkit::golang::archive;
use bowline_testkit::{Actor, TestServer};
use serde_json::json;
use tokio::net::TcpListener;

use crate::fake_index::set_upstream;
use crate::support::sha256;

const DAY: i64 = 24 * 3600 * 1_000_000;

#[derive(Default)]
pub(crate) struct State {
    /// Answers by their paths.
    answers: BTreeMap<String, Vec<u8>>,
    /// Whether it answers at all.
    pub(crate) is_down: bool,
    seen: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct FakeProxy {
    /// Scheme, host and port.
    base: String,
    state: Arc<Mutex<State>>,
}

impl State {
    /// Has nothing at a path any more.
    pub(crate) fn forget(&mut self, path: &str) {
        self.answers.remove(path);
    }
}

impl FakeProxy {
    pub(crate) async fn start() -> FakeProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = FakeProxy { base: format!("http://{}", listener.local_addr().unwrap()), state: Arc::default() };
        let answering = proxy.clone();
        let router = axum::Router::new().fallback(async move |request: Request| answering.answer(&request));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        proxy
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Paths that were requested since the last call.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.state().seen)
    }

    /// Answers a path with these bytes.
    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        self.state().answers.insert(path.into(), bytes.to_vec());
    }

    /// Lists these versions of a module, and no others.
    pub(crate) fn list(&self, module: &str, versions: &[&str]) {
        self.put(&format!("{module}/@v/list"), versions.join("\n").as_bytes());
    }

    /// Says of a query that it is a version whose commit was made so many days before the clock of the server.
    pub(crate) fn describe(&self, server: &TestServer, module: &str, (query, version): (&str, &str), days: i64) {
        let time = rfc3339::text(server.clock().now() - days * DAY, Digits::Fewest);
        let info = json!({ "Version": version, "Time": time }).to_string();
        let path = if query == "@latest" { query.to_owned() } else { format!("@v/{query}.info") };
        self.put(&format!("{module}/{path}"), info.as_bytes());
    }

    /// Has a version of a module; the bytes of its archive.
    pub(crate) fn publish(&self, server: &TestServer, module: &str, version: &str, days: i64) -> Vec<u8> {
        let archive = archive(module, version, &[]);
        self.describe(server, module, (version, version), days);
        self.put(&format!("{module}/@v/{version}.mod"), format!("module {module}\n").as_bytes());
        self.put(&format!("{module}/@v/{version}.zip"), &archive);
        archive
    }

    /// Has these versions of a crate whose index is at a path, each published so many days before the clock of the server, or at an
    /// unknown time; the bytes of their archives.
    pub(crate) fn publish_crates(
        &self,
        server: &TestServer,
        (path, name): (&str, &str),
        versions: &[(&str, Option<i64>)],
    ) -> Vec<Vec<u8>> {
        let config = json!({ "dl": format!("{}/proxy/dl", self.base), "api": null });
        self.put("config.json", config.to_string().as_bytes());
        let (mut lines, mut archives) = (Vec::new(), Vec::new());
        for (version, days) in versions {
            let bytes = cargo::archive(name, version, "license = \"MIT\"\n");
            let mut line = json!({
                "name": name, "vers": version, "deps": [], "features": {}, "cksum": sha256(&bytes), "yanked": false,
            });
            if let Some(days) = days {
                line["pubtime"] = rfc3339::text(server.clock().now() - days * DAY, Digits::Fewest).into();
            }
            lines.push(line.to_string());
            self.put(&format!("dl/{name}/{version}/download"), &bytes);
            archives.push(bytes);
        }
        self.put(path, lines.join("\n").as_bytes());
        archives
    }

    /// Gives the organization this upstream of modules.
    pub(crate) async fn serve(&self, owner: &Actor, org: &str, name: &str, position: i32) {
        self.serve_as("GO", owner, org, (name, position)).await;
    }

    /// The same of an ecosystem.
    pub(crate) async fn serve_as(&self, ecosystem: &str, owner: &Actor, org: &str, (name, position): (&str, i32)) {
        let url = format!("{}/proxy", self.base);
        let upstream = json!({ "name": name, "ecosystem": ecosystem, "url": url, "position": position });
        let set = set_upstream(owner, org, upstream).await;
        assert_eq!(set.0, 200, "{}", set.1);
    }

    fn answer(&self, request: &Request) -> Response {
        let path = request.uri().path().trim_start_matches("/proxy/").to_owned();
        let mut state = self.state();
        state.seen.push(path.clone());
        if state.is_down {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        state
            .answers
            .get(&path)
            .cloned()
            .map_or_else(|| StatusCode::NOT_FOUND.into_response(), IntoResponse::into_response)
    }
}
