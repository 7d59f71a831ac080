//! Another package index, which records its requests and can be made to fail.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_content::{Algorithm, Digest};
use bowline_core::Clock as _;
use bowline_core::rfc3339::{self, Digits};
use bowline_testkit::{Actor, TestServer, npm};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::*;

const DAY: i64 = 24 * 3600 * 1_000_000;

/// One request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    /// The `authorization` header, empty for none.
    pub(crate) proof: String,
    /// Whether it asked for what has changed.
    pub(crate) is_conditional: bool,
}

/// What is wrong with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    OtherBytes,
    More,
    Less,
    BreaksOff,
    Refused,
}

#[derive(Default)]
pub(crate) struct State {
    /// Files of pages, by project: what a page in JSON says of each.
    pub(crate) pages: BTreeMap<String, Vec<Value>>,
    /// Documents of npm, by package.
    pub(crate) documents: BTreeMap<String, Value>,
    /// By name.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Statements about files, by path.
    pub(crate) statements: BTreeMap<String, String>,
    /// Answered in place of pages.
    pub(crate) status: Option<u16>,
    pub(crate) fault: Option<Fault>,
    /// How long requests wait for their answer.
    pub(crate) delay: Duration,
    /// Where requests for files are sent on to.
    pub(crate) elsewhere: Option<String>,
    pub(crate) serial: Option<u64>,
    /// Whether pages say that their projects are withheld.
    pub(crate) is_quarantined: bool,
    /// Whether the second half of a file waits.
    pub(crate) stalls: bool,
    seen: Vec<Seen>,
}

#[derive(Clone)]
pub(crate) struct FakeIndex {
    /// Scheme, host and port.
    pub(crate) base: String,
    state: Arc<Mutex<State>>,
}

impl FakeIndex {
    pub(crate) async fn start() -> FakeIndex {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let index = FakeIndex { base: format!("http://{}", listener.local_addr().unwrap()), state: Arc::default() };
        let answering = index.clone();
        let router = axum::Router::new().fallback(async move |request: Request| {
            let delay = answering.note(&request);
            tokio::time::sleep(delay).await;
            answering.answer(request)
        });
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        index
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Paths that were requested since the last call.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.requests().into_iter().map(|seen| seen.path).collect()
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state().seen)
    }

    /// Has a wheel of this version, which was uploaded so many days before the clock of the server; its bytes.
    pub(crate) fn publish(&self, server: &TestServer, name: &str, version: &str, days: i64) -> Vec<u8> {
        let bytes = wheel(name, version, "License-Expression: MIT\n");
        self.list(server, (name, version), days, bytes.clone());
        bytes
    }

    /// The same of these bytes, uploaded long ago.
    pub(crate) fn publish_bytes(&self, server: &TestServer, name: &str, version: &str, bytes: &[u8]) {
        self.list(server, (name, version), 30, bytes.to_vec());
    }

    /// The same of a wheel of more than 200 KB.
    pub(crate) fn publish_large_wheel(&self, server: &TestServer, name: &str, version: &str) -> Vec<u8> {
        let content = metadata(name, version, "License-Expression: MIT\n").into_bytes();
        let padding = ("padding.bin".to_owned(), vec![7; 200_000]);
        let bytes = zip(&[padding, (format!("{name}-{version}.dist-info/METADATA"), content)]);
        self.publish_bytes(server, name, version, &bytes);
        bytes
    }

    /// The same of a file of at least so many bytes, which is no archive.
    pub(crate) fn publish_large(&self, server: &TestServer, name: &str, version: &str, size: usize) -> Vec<u8> {
        let bytes: Vec<u8> = name.bytes().chain((0..size).map(|at| (at % 251) as u8)).collect();
        self.list(server, (name, version), 30, bytes.clone());
        bytes
    }

    fn list(&self, server: &TestServer, (name, version): (&str, &str), days: i64, bytes: Vec<u8>) {
        let metadata = metadata(name, version, "License-Expression: MIT\n");
        let file = file_name(name, version);
        let at = server.clock().now() - days * DAY;
        let page = json!({
            "filename": file, "url": format!("../../files/{file}"), "hashes": { "sha256": sha256(&bytes) },
            "size": bytes.len(), "upload-time": rfc3339::text(at, Digits::Fewest), "requires-python": ">=3.8",
            "core-metadata": { "sha256": sha256(metadata.as_bytes()) }, "yanked": false,
        });
        let mut state = self.state();
        state.pages.entry(name.to_owned()).or_default().push(page);
        state.files.insert(format!("{file}.metadata"), metadata.into_bytes());
        state.files.insert(file, bytes);
    }

    /// Has a version of npm, which was published so many days before the clock of the server; its bytes.
    pub(crate) fn npm_publish(&self, server: &TestServer, name: &str, version: &str, days: i64) -> Vec<u8> {
        let bytes = npm::package(&npm::manifest(name, version));
        self.npm_list(server, (name, version), days, bytes.clone());
        bytes
    }

    /// The same of these bytes. It is the latest one.
    pub(crate) fn npm_list(&self, server: &TestServer, (name, version): (&str, &str), days: i64, bytes: Vec<u8>) {
        let file = format!("{}-{version}.tgz", name.replace('/', "-"));
        let at = rfc3339::text(server.clock().now() - days * DAY, Digits::Fewest);
        let mut manifest = npm::manifest(name, version);
        let sha512 = Digest::of(Algorithm::Sha512, &bytes);
        let integrity = STANDARD.encode(hex_bytes(sha512.hex()));
        manifest["dist"] = json!({
            "tarball": format!("{}/npm/files/{file}", self.base), "integrity": format!("sha512-{integrity}"),
        });
        let mut state = self.state();
        let document = state.documents.entry(name.to_owned()).or_insert_with(|| json!({ "name": name }));
        document["versions"][version] = manifest;
        document["dist-tags"]["latest"] = json!(version);
        document["time"][version] = json!(at);
        state.files.insert(file, bytes);
    }

    /// Gives the organization this upstream of npm.
    pub(crate) async fn npm_serve(&self, owner: &Actor, org: &str) {
        let upstream = json!({ "name": "npmjs", "ecosystem": "JAVASCRIPT", "url": format!("{}/npm/", self.base) });
        let set = set_upstream(owner, org, upstream).await;
        assert_eq!(set.0, 200, "{}", set.1);
    }

    /// Gives the organization this upstream, at this place in its order.
    pub(crate) async fn serve(&self, owner: &Actor, org: &str, name: &str, position: i32) {
        let upstream = json!({
            "name": name, "ecosystem": "PYTHON", "url": format!("{}/simple/", self.base), "position": position,
        });
        let set = set_upstream(owner, org, upstream).await;
        assert_eq!(set.0, 200, "{}", set.1);
    }

    /// Notes a request; how long it waits.
    fn note(&self, request: &Request) -> Duration {
        let (path, proof) = (request.uri().path().to_owned(), header(request, "authorization"));
        let is_conditional = !header(request, "if-none-match").is_empty();
        let mut state = self.state();
        state.seen.push(Seen { path, proof, is_conditional });
        state.delay
    }

    fn answer(&self, request: Request) -> Response {
        let (path, state) = (request.uri().path(), self.state());
        if path.contains("/integrity/") || path.contains("/attestations/") {
            return state.about_file(path, &header(&request, "if-none-match"));
        }
        if let Some(name) = path.strip_prefix("/npm/").filter(|name| !name.contains(".tgz")) {
            return state.document(&name.replace("%2f", "/"), &header(&request, "if-none-match"));
        }
        match path.strip_prefix("/simple/") {
            Some(project) => state.page(project.trim_end_matches('/'), &header(&request, "if-none-match")),
            None if state.stalls => self.stalling(&state.files[path.rsplit('/').next().unwrap()]),
            None => state.file(path.rsplit('/').next().unwrap(), path),
        }
    }

    /// A file whose last quarter waits.
    fn stalling(&self, bytes: &[u8]) -> Response {
        let length = [("content-length", bytes.len().to_string())];
        let (first, second) = bytes.split_at(bytes.len() * 3 / 4);
        let (index, second) = (self.clone(), Bytes::from(second.to_vec()));
        let later = async move {
            while index.state().stalls {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok(second)
        };
        (length, Body::from_stream(ok(vec![first.to_vec()]).chain(stream::once(later)))).into_response()
    }
}

fn hex_bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn header(request: &Request, name: &str) -> String {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

impl State {
    fn page(&self, project: &str, known: &str) -> Response {
        if let Some(status) = self.status {
            return StatusCode::from_u16(status).unwrap().into_response();
        }
        let Some(files) = self.pages.get(project) else { return StatusCode::NOT_FOUND.into_response() };
        let status = if self.is_quarantined { "quarantined" } else { "active" };
        let page = json!({
            "meta": { "api-version": "1.4" }, "name": project, "files": files, "project-status": { "status": status },
        });
        let page = page.to_string();
        let tag = format!("\"{}\"", sha256(page.as_bytes()));
        if known == tag {
            return StatusCode::NOT_MODIFIED.into_response();
        }
        let mut response = ([("content-type", JSON), ("etag", tag.as_str())], page).into_response();
        if let Some(serial) = self.serial {
            response.headers_mut().insert("x-pypi-last-serial", serial.into());
        }
        response
    }

    fn document(&self, name: &str, known: &str) -> Response {
        if let Some(status) = self.status {
            return StatusCode::from_u16(status).unwrap().into_response();
        }
        let Some(document) = self.documents.get(name) else { return StatusCode::NOT_FOUND.into_response() };
        let text = document.to_string();
        let tag = format!("\"{}\"", sha256(text.as_bytes()));
        if known == tag {
            return StatusCode::NOT_MODIFIED.into_response();
        }
        ([("content-type", "application/json"), ("etag", tag.as_str())], text).into_response()
    }

    fn about_file(&self, path: &str, known: &str) -> Response {
        if let Some(status) = self.status {
            return StatusCode::from_u16(status).unwrap().into_response();
        }
        let Some(text) = self.statements.get(path) else { return StatusCode::NOT_FOUND.into_response() };
        let tag = format!("\"{}\"", sha256(text.as_bytes()));
        if known == tag {
            return StatusCode::NOT_MODIFIED.into_response();
        }
        ([("content-type", "application/json"), ("etag", tag.as_str())], text.clone()).into_response()
    }

    fn file(&self, name: &str, path: &str) -> Response {
        if let Some(elsewhere) = &self.elsewhere {
            return (StatusCode::FOUND, [("location", format!("{elsewhere}{path}"))]).into_response();
        }
        let Some(bytes) = self.files.get(name).cloned() else { return StatusCode::NOT_FOUND.into_response() };
        match self.fault {
            None => bytes.into_response(),
            Some(Fault::OtherBytes) => bytes.iter().map(|byte| byte ^ 1).collect::<Vec<u8>>().into_response(),
            Some(Fault::More) => Body::from_stream(ok(vec![bytes, vec![0; 9]])).into_response(),
            Some(Fault::Less) => Body::from_stream(ok(vec![bytes[1..].to_vec()])).into_response(),
            Some(Fault::BreaksOff) => {
                let broken = stream::iter([Err(std::io::Error::other("broken"))]);
                Body::from_stream(ok(vec![bytes[..bytes.len() / 2].to_vec()]).chain(broken)).into_response()
            }
            Some(Fault::Refused) => StatusCode::FORBIDDEN.into_response(),
        }
    }
}

/// Parts of a body whose length is not announced.
fn ok(parts: Vec<Vec<u8>>) -> impl Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    stream::iter(parts.into_iter().map(|part| Ok(Bytes::from(part))))
}

/// Sets an upstream; status and text of the answer.
pub(crate) async fn set_upstream(caller: &Actor, org: &str, upstream: Value) -> (u16, String) {
    let path = format!("/packageupstreams/v1/organizations/{org}:setUpstream");
    let reply = caller.rest("POST", &path, Some(json!({ "upstream": upstream }))).await;
    (reply.status, reply.text())
}
