//! Packages: the server is killed while clients install what it fetches, from an index that answers slowly, breaks off and
//! lies, and while others publish. No client may complete a wrong file, what is stored must be whole, and what was acknowledged
//! must be there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bowline_content::{Algorithm, Digest};
use bowline_store::{Row, StoreError};
use bowline_testkit::{maven, npm, python};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::client::Client;
use crate::pushes::organization;
use crate::random::Random;
use crate::rounds::{Plan, env};
use crate::server::{Addresses, Server, token};
use crate::storage::Storage;

const JSON: &str = "application/json";
const PACKAGES: u64 = 400;
const INSTALLERS: u64 = 6;
const PUBLISHERS: u64 = 2;
/// Longest time until the server is killed, in milliseconds.
const LONGEST: u64 = 700;

/// Rounds on one storage: then all files are stored, and those whom kills interrupted have many uploads open.
const ROUNDS_PER_STORAGE: u64 = 40;

/// Runs the plan on SQLite, or on a PostgreSQL of this URL.
pub(crate) async fn run(postgres: Option<&str>, plan: &Plan) {
    let mut seen = Seen::default();
    let mut left = plan.rounds;
    while left > 0 {
        let rounds = left.min(ROUNDS_PER_STORAGE);
        let part = course(postgres, rounds, plan.seed.wrapping_mul(1_000_003).wrapping_add(left)).await;
        seen = Seen {
            complete: seen.complete + part.complete,
            stored: seen.stored + part.stored,
            published: seen.published + part.published,
        };
        left -= rounds;
    }
    report(postgres.is_some(), plan.rounds, &seen);
}

/// What rounds had to look at.
#[derive(Debug, Default)]
struct Seen {
    complete: u64,
    stored: usize,
    published: usize,
}

/// The rounds on one storage.
async fn course(postgres: Option<&str>, rounds: u64, seed: u64) -> Seen {
    let storage = Storage::create(postgres).await;
    let addresses = Addresses::free();
    let mut random = Random::new(seed);
    let mut server = start(&storage, addresses).await;
    let upstream = upstream().await;
    let api = Client::connect(addresses.api, true, &token(&storage, &[])).await.expect("a connection");
    let organization = organization(api).await;
    set_upstream(addresses.api, &token(&storage, &[]), &organization, &upstream).await;
    let audience = format!("http://{}/libraries", addresses.api);
    let token = token(&storage, &["--audience", &audience]);
    let installer = Installer { address: addresses.api, token, base: format!("/libraries/python/~{organization}") };
    let published = Arc::new(Published::default());
    let mut complete = 0;
    for _ in 0..rounds {
        let mut installing: JoinSet<u64> = JoinSet::new();
        for _ in 0..INSTALLERS {
            installing.spawn(installer.clone().work(Random::new(random.below(u64::MAX))));
        }
        for _ in 0..PUBLISHERS {
            installing.spawn(installer.clone().publish(published.clone()));
        }
        tokio::time::sleep(Duration::from_millis(random.below(LONGEST))).await;
        server.kill();
        complete += installing.join_all().await.into_iter().sum::<u64>();
        server = start(&storage, addresses).await;
    }
    let stored = stored(&storage).await;
    let acknowledged = published.acknowledged.lock().expect("a lock").clone();
    verify(&installer, &stored, &acknowledged).await;
    server.kill();
    storage.drop_database().await;
    Seen { complete, stored: stored.len(), published: acknowledged.len() }
}

/// What is stored is whole and true, and what was acknowledged is there.
async fn verify(installer: &Installer, stored: &BTreeMap<String, String>, acknowledged: &BTreeMap<String, String>) {
    for (name, digest) in stored {
        let (status, bytes) = installer.file(name, digest).await.expect("the server answers");
        assert!(status == StatusCode::OK && sha256(&bytes) == *digest, "{name}: {status}");
        assert!(!is_lie(number(name)), "{name} is stored");
    }
    for (path, digest) in acknowledged {
        let answer = send(installer.address, ("GET", path), &installer.token, (JSON, Vec::new())).await;
        let (status, bytes) = answer.expect("the server answers");
        assert!(status == StatusCode::OK && sha256(&bytes) == *digest, "{path} was acknowledged: {status}");
    }
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture: how much the rounds looked at")]
fn report(is_postgres: bool, rounds: u64, seen: &Seen) {
    let engine = if is_postgres { "PostgreSQL" } else { "SQLite" };
    let blobs = if env("BOWLINE_TEST_OBJECTS").is_some() { "a bucket" } else { "a directory" };
    println!("packages, {engine} and {blobs}: {rounds} rounds, {seen:?}");
}

async fn start(storage: &Storage, addresses: Addresses) -> Server {
    let mut server = Server::spawn(storage, addresses);
    server.ready().await;
    server
}

fn sha256(bytes: &[u8]) -> String {
    Digest::of(Algorithm::Sha256, bytes).hex().to_owned()
}

/// The file of a package: some kilobytes up to some hundred.
fn content(number: u64) -> Vec<u8> {
    let line = format!("package {number} ");
    line.repeat(200 + (number as usize % 40) * 700).into_bytes()
}

fn file(number: u64) -> String {
    format!("p{number}-1.0-py3-none-any.whl")
}

fn number(file: &str) -> u64 {
    file.trim_start_matches('p').split('-').next().and_then(|text| text.parse().ok()).expect("a name of a file")
}

/// Every fifth file of the upstream has other bytes than its index says.
fn is_lie(number: u64) -> bool {
    number.is_multiple_of(5)
}

/// An index whose files come in parts; every seventh answer breaks off.
async fn upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}/simple/", listener.local_addr().expect("an address"));
    let count = Arc::new(AtomicU64::new(0));
    let router = axum::Router::new().fallback(async move |request: Request| answer(request.uri().path(), &count));
    tokio::spawn(async move { axum::serve(listener, router).await.expect("the index is served") });
    address
}

fn answer(path: &str, count: &AtomicU64) -> Response {
    if let Some(project) = path.strip_prefix("/simple/p") {
        let number = project.trim_end_matches('/').parse().expect("a number");
        let page = json!({ "meta": { "api-version": "1.1" }, "name": format!("p{number}"), "files": [{
            "filename": file(number), "url": format!("/files/{}", file(number)), "size": content(number).len(),
            "hashes": { "sha256": sha256(&content(number)) }, "upload-time": "2020-01-01T00:00:00Z",
        }] });
        return ([(CONTENT_TYPE, "application/vnd.pypi.simple.v1+json")], page.to_string()).into_response();
    }
    let number = number(path.rsplit('/').next().unwrap_or_default());
    let mut bytes = content(number);
    if is_lie(number) {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    }
    let is_broken = count.fetch_add(1, Ordering::Relaxed).is_multiple_of(7);
    let mut parts: Vec<std::io::Result<Bytes>> = bytes.chunks(32 << 10).map(|part| Ok(part.to_vec().into())).collect();
    if is_broken {
        parts.pop();
        parts.push(Err(std::io::Error::other("broken")));
    }
    let slow = stream::iter(parts).then(async |part| {
        tokio::time::sleep(Duration::from_millis(5)).await;
        part
    });
    Body::from_stream(slow).into_response()
}

/// What was published.
#[derive(Default)]
struct Published {
    /// Numbers of packages that have been used.
    count: AtomicU64,
    /// Paths and digests of the files that the server acknowledged.
    acknowledged: Mutex<BTreeMap<String, String>>,
}

/// A request that publishes a package.
struct Upload {
    /// Its verb and path.
    what: String,
    content_type: String,
    body: Vec<u8>,
    /// Path of the file that is there then, and the digest of its bytes.
    file: String,
    digest: String,
}

/// Someone who installs and publishes.
#[derive(Clone)]
struct Installer {
    address: SocketAddr,
    token: String,
    base: String,
}

impl Installer {
    /// Installs until the server is gone; how many files were complete.
    async fn work(self, mut random: Random) -> u64 {
        let mut complete = 0;
        loop {
            let number = random.below(PACKAGES);
            let digest = sha256(&content(number));
            let Some((status, bytes)) = self.file(&file(number), &digest).await else {
                if TcpStream::connect(self.address).await.is_err() {
                    return complete;
                }
                continue;
            };
            if status == StatusCode::OK {
                assert_eq!(sha256(&bytes), digest, "{number} is complete and wrong");
                assert!(!is_lie(number), "{number} is complete");
                complete += 1;
            }
        }
    }

    /// Publishes a file after the other until the server is gone; completes none itself.
    async fn publish(self, published: Arc<Published>) -> u64 {
        loop {
            let Upload { what, content_type, body, file, digest } =
                self.upload(published.count.fetch_add(1, Ordering::Relaxed));
            let (verb, path) = what.split_once(' ').expect("a verb and a path");
            match send(self.address, (verb, path), &self.token, (&content_type, body)).await {
                Some((StatusCode::OK | StatusCode::CREATED, _)) => {
                    published.acknowledged.lock().expect("a lock").insert(file, digest);
                }
                Some((status, text)) => panic!("{what} was not published: {status} {text:?}"),
                None if TcpStream::connect(self.address).await.is_err() => return 0,
                None => {}
            }
        }
    }

    /// A package of Python, JavaScript or Java.
    fn upload(&self, number: u64) -> Upload {
        let name = format!("own{number}");
        let at = |word: &str| self.base.replacen("/python/", &format!("/{word}/"), 1);
        match number % 3 {
            0 => {
                let (bytes, file) = (python::wheel(&name, "1.0", ""), python::file_name(&name, "1.0"));
                let digest = sha256(&bytes);
                Upload {
                    what: format!("POST {}/legacy/", self.base),
                    content_type: format!("multipart/form-data; boundary={}", python::BOUNDARY),
                    body: python::fields(&name, "1.0", &digest).file(&file, &bytes).end().0,
                    file: format!("{}/files/{digest}/{file}", self.base),
                    digest,
                }
            }
            1 => {
                let (base, bytes) = (at("javascript"), npm::package(&npm::manifest(&name, "1.0.0")));
                Upload {
                    what: format!("PUT {base}/{name}"),
                    content_type: JSON.into(),
                    body: npm::document(&name, "1.0.0", "latest", &bytes).to_string().into_bytes(),
                    file: format!("{base}/{name}/-/{name}-1.0.0.tgz"),
                    digest: sha256(&bytes),
                }
            }
            _ => {
                let file = format!("{}/com/acme/{name}/1.0/{name}-1.0.pom", at("java"));
                let body = maven::pom("com.acme", &name, "1.0", "").into_bytes();
                let (what, digest) = (format!("PUT {file}"), sha256(&body));
                Upload { what, content_type: "application/xml".into(), body, file, digest }
            }
        }
    }

    /// A whole file; absent if the answer did not come to its end.
    async fn file(&self, name: &str, digest: &str) -> Option<(StatusCode, Bytes)> {
        let path = format!("{}/files/{digest}/{name}", self.base);
        send(self.address, ("GET", &path), &self.token, (JSON, Vec::new())).await
    }
}

async fn send(
    address: SocketAddr,
    (verb, path): (&str, &str),
    token: &str,
    (content_type, body): (&str, Vec<u8>),
) -> Option<(StatusCode, Bytes)> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    let request = http::Request::builder().method(verb).uri(path).header(HOST, address.to_string());
    let request = request.header(AUTHORIZATION, format!("Bearer {token}")).header(CONTENT_TYPE, content_type);
    let response = sender.send_request(request.body(Full::new(Bytes::from(body))).expect("a request")).await.ok()?;
    let status = response.status();
    Some((status, response.into_body().collect().await.ok()?.to_bytes()))
}

async fn set_upstream(address: SocketAddr, token: &str, organization: &str, url: &str) {
    let path = format!("/packageupstreams/v1/organizations/{organization}:setUpstream");
    let upstream = json!({ "upstream": { "name": "index", "ecosystem": "PYTHON", "url": url } });
    let body = (JSON, upstream.to_string().into_bytes());
    let (status, answer) = send(address, ("POST", &path), token, body).await.expect("the server answers");
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(status, StatusCode::OK, "{answer}");
}

/// Names and digests of the files that the database has.
async fn stored(storage: &Storage) -> BTreeMap<String, String> {
    let db = storage.open().await;
    let read = db.read(|tx| {
        Box::pin(async move {
            let sql = "SELECT name, sha256 FROM upstream_files";
            tx.query(sql, &[], |row: &Row<'_>| Ok::<_, StoreError>((row.text(0)?, row.text(1)?))).await
        })
    });
    let rows = read.await.expect("the rows are read");
    db.close().await;
    rows.into_iter().collect()
}
