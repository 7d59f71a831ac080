//! Another repository of Maven, which records its requests and can be made to fail.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bowline_core::Clock as _;
use bowline_testkit::{Actor, TestServer, maven};
use serde_json::json;
use tokio::net::TcpListener;

use crate::fake_index::{Fault, set_upstream};

const DAY: i64 = 24 * 3600 * 1_000_000;

#[derive(Default)]
pub(crate) struct State {
    /// Files by their paths, and when each was changed last.
    files: BTreeMap<String, (Vec<u8>, i64)>,
    pub(crate) fault: Option<Fault>,
    /// Whether responses do not say when files were changed.
    pub(crate) is_undated: bool,
    /// Whether the header for digests is sent.
    pub(crate) says_sha1: bool,
    seen: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct FakeRepository {
    /// Scheme, host and port.
    base: String,
    state: Arc<Mutex<State>>,
}

impl FakeRepository {
    pub(crate) async fn start() -> FakeRepository {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let repository =
            FakeRepository { base: format!("http://{}", listener.local_addr().unwrap()), state: Arc::default() };
        let answering = repository.clone();
        let router = axum::Router::new().fallback(async move |request: Request| answering.answer(&request));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        repository
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Verbs and paths that were requested since the last call.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.state().seen)
    }

    /// Has a file below the path, which was changed so many days before the clock of the server.
    pub(crate) fn put(&self, server: &TestServer, path: &str, days: i64, bytes: &[u8]) {
        let at = server.clock().now() - days * DAY;
        self.state().files.insert(format!("/m2/{path}"), (bytes.to_vec(), at));
    }

    /// Has a version of `org.pub:NAME` with a POM, which has more members, and a JAR; the bytes of that.
    pub(crate) fn publish(&self, server: &TestServer, name: &str, version: &str, days: i64, more: &str) -> Vec<u8> {
        let (directory, jar) =
            (format!("org/pub/{name}/{version}/{name}-{version}"), format!("jar of {name} {version}"));
        let pom = maven::pom("org.pub", name, version, more);
        self.put(server, &format!("{directory}.pom"), days, pom.as_bytes());
        self.put(server, &format!("{directory}.jar"), days, jar.as_bytes());
        jar.into_bytes()
    }

    /// Lists these versions of `org.pub:NAME`.
    pub(crate) fn list(&self, server: &TestServer, name: &str, versions: &[&str]) {
        let versions = versions.join("</version><version>");
        let versions = format!("<versions><version>{versions}</version></versions>");
        let text = format!("<metadata><versioning>{versions}</versioning></metadata>");
        self.put(server, &format!("org/pub/{name}/maven-metadata.xml"), 1, text.as_bytes());
    }

    /// Gives the organization this upstream.
    pub(crate) async fn serve(&self, owner: &Actor, org: &str, name: &str, position: i32) {
        let upstream =
            json!({ "name": name, "ecosystem": "JAVA", "url": format!("{}/m2/", self.base), "position": position });
        let set = set_upstream(owner, org, upstream).await;
        assert_eq!(set.0, 200, "{}", set.1);
    }

    fn answer(&self, request: &Request) -> Response {
        let (method, path) = (request.method(), request.uri().path());
        let mut state = self.state();
        state.seen.push(format!("{method} {}", path.trim_start_matches("/m2/")));
        let file = path.strip_suffix(".sha1").unwrap_or(path);
        let Some((bytes, at)) = state.files.get(file).cloned() else { return StatusCode::NOT_FOUND.into_response() };
        let sha1 = sha1(&bytes);
        if file != path {
            return if state.says_sha1 { StatusCode::NOT_FOUND.into_response() } else { sha1.into_response() };
        }
        let bytes = match state.fault.filter(|_| *method == Method::GET) {
            Some(Fault::OtherBytes) => bytes.iter().map(|byte| byte ^ 1).collect(),
            Some(Fault::Less) => bytes[1..].to_vec(),
            Some(Fault::More) => [bytes, vec![0; 9]].concat(),
            Some(Fault::Refused | Fault::BreaksOff) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            None => bytes,
        };
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_micros(at.unsigned_abs()));
        let mut response = bytes.into_response();
        if !state.is_undated {
            response.headers_mut().insert("last-modified", date.parse().unwrap());
        }
        if state.says_sha1 {
            response.headers_mut().insert("x-checksum-sha1", sha1.parse().unwrap());
        }
        response
    }
}

/// The SHA-1 of some bytes in hex.
pub(crate) fn sha1(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
    bowline_core::hex(digest.as_ref())
}
