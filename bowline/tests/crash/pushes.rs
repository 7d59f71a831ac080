//! The registry: servers are killed while clients push and garbage is collected, by them and by commands that are
//! killed too. Afterwards every blob must be whole, and every acknowledged image must come out as it went in.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bowline_content::{Algorithm, Digest};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::client::{Client, Reply};
use crate::mutation::Mutation;
use crate::random::Random;
use crate::rounds::Plan;
use crate::server::{Addresses, Server, binary, token};
use crate::storage::Storage;

const PUSHERS: u64 = 4;
pub(crate) const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The server collects as often as it can, and spares what is a second old.
const COLLECTING: [&str; 4] = ["--gc-every", "1s", "--gc-grace", "1s"];

/// Images that one pusher keeps at most: each is pulled after every round.
const MAX_STORED: usize = 40;
/// Rounds on one storage; then the next one begins with nothing, so that a long run does not slow down.
const ROUNDS_PER_STORAGE: u64 = 50;

/// Runs the plan on SQLite, or on a PostgreSQL of this URL.
pub(crate) async fn run(postgres: Option<&str>, plan: &Plan) {
    let started = Instant::now();
    let (mut left, mut acknowledged) = (plan.rounds, 0);
    while left > 0 {
        let rounds = left.min(ROUNDS_PER_STORAGE);
        acknowledged += course(postgres, rounds, plan.seed.wrapping_mul(1_000_003).wrapping_add(left)).await;
        left -= rounds;
    }
    report(postgres.is_some(), plan.rounds, started.elapsed(), acknowledged);
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture: how much the rounds looked at")]
fn report(is_postgres: bool, rounds: u64, time: Duration, acknowledged: u64) {
    let engine = if is_postgres { "PostgreSQL" } else { "SQLite" };
    println!("pushes, {engine}: {rounds} rounds in {:.1} s, {acknowledged} acknowledged images", time.as_secs_f64());
}

/// Rounds on one storage; how many images were acknowledged.
async fn course(postgres: Option<&str>, rounds: u64, seed: u64) -> u64 {
    let storage = Storage::create(postgres).await;
    let addresses = Addresses::free();
    let mut random = Random::new(seed);
    let mut server = start(&storage, addresses).await;
    let api = Client::connect(addresses.api, true, &token(&storage, &[])).await.expect("a connection");
    let org = organization(api).await;
    let registry = token(&storage, &["--audience", &addresses.api.to_string()]);
    let mut pushers: Vec<Pusher> = (0..PUSHERS)
        .map(|n| Pusher {
            random: Random::new(random.next()),
            ..Pusher::new(addresses.api, registry.clone(), format!("{org}/pusher{n}"))
        })
        .collect();
    for _ in 0..rounds {
        let mut pushing = JoinSet::new();
        for pusher in pushers {
            pushing.spawn(pusher.work());
        }
        let moment = Duration::from_millis(300 + random.below(2000));
        collect_beside(&storage, &mut random, moment).await;
        server.kill();
        pushers = pushing.join_all().await;
        verify(&storage);
        server = start(&storage, addresses).await;
        for pusher in &pushers {
            pusher.everything_is_there().await;
        }
    }
    let acknowledged = pushers.iter().map(|pusher| pusher.acknowledged).sum();
    assert!(acknowledged > 0, "no push was acknowledged in {rounds} rounds");
    server.kill();
    storage.drop_database().await;
    acknowledged
}

async fn start(storage: &Storage, addresses: Addresses) -> Server {
    let mut server = Server::spawn_with(storage, addresses, &COLLECTING);
    server.ready().await;
    server
}

pub(crate) async fn organization(mut client: Client) -> String {
    let mutation = Mutation::CreateGroup { parent: String::new(), name: "crash".into() };
    match client.send("organization", &mutation).await {
        Reply::Done(uid) => uid,
        reply => panic!("{reply:?}"),
    }
}

/// Runs collections for that long, each killed when it is not done in time.
async fn collect_beside(storage: &Storage, random: &mut Random, moment: Duration) {
    let end = tokio::time::Instant::now() + moment;
    while tokio::time::Instant::now() < end {
        let mut command = Command::new(binary());
        command.args(["registry", "gc", "--grace", "1s"]).args(storage.options());
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command starts");
        tokio::time::sleep(Duration::from_millis(random.below(300))).await;
        let _ = process.kill();
        let _ = process.wait();
    }
}

fn verify(storage: &Storage) {
    let output = Command::new(binary()).args(["registry", "verify"]).args(storage.options()).output();
    let output = output.expect("the command runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// Someone with a repository of their own.
pub(crate) struct Pusher {
    address: SocketAddr,
    token: String,
    name: String,
    random: Random,
    /// Acknowledged images by digest, with what was sent.
    kept: BTreeMap<String, (Vec<u8>, Vec<u8>)>,
    /// How many were acknowledged.
    acknowledged: u64,
}

impl Pusher {
    pub(crate) fn new(address: SocketAddr, token: String, name: String) -> Pusher {
        Pusher { address, token, name, random: Random::new(0), kept: BTreeMap::new(), acknowledged: 0 }
    }

    /// Pushes and deletes until the server is gone.
    async fn work(mut self) -> Pusher {
        while self.step().await.is_some() {}
        self
    }

    /// One image pushed, or one deleted; absent when the server is gone.
    async fn step(&mut self) -> Option<()> {
        if (self.random.below(4) == 0 || self.kept.len() >= MAX_STORED)
            && let Some(digest) = self.kept.keys().next().cloned()
        {
            // Whether it is gone is not known before the answer.
            self.kept.remove(&digest);
            self.send("DELETE", &format!("manifests/{digest}"), &[]).await?;
            return Some(());
        }
        // All push out of the same few layers.
        let n = self.random.below(20);
        let layer = format!("layer {n} ").repeat(1 + n as usize * 2000).into_bytes();
        let config = format!("{{\"os\":\"linux\",\"architecture\":\"{}\"}}", self.random.below(1000)).into_bytes();
        for blob in [&config, &layer] {
            let digest = digest(blob);
            if self.send("HEAD", &format!("blobs/{digest}"), &[]).await?.0 != StatusCode::OK {
                self.send("POST", &format!("blobs/uploads/?digest={digest}"), blob).await?;
            }
        }
        let manifest = manifest(&config, &layer).to_string().into_bytes();
        let tag = self.random.below(5);
        let (status, answer) = self.send("PUT", &format!("manifests/t{tag}"), &manifest).await?;
        match status {
            StatusCode::CREATED => {
                self.acknowledged += 1;
                self.kept.insert(digest(&manifest), (manifest, layer));
            }
            // A push that takes longer than the grace gets an error and is pushed again.
            StatusCode::BAD_REQUEST | StatusCode::SERVICE_UNAVAILABLE => {}
            _ => panic!("{status}: {}", String::from_utf8_lossy(&answer)),
        }
        Some(())
    }

    async fn everything_is_there(&self) {
        for (digest, (manifest, layer)) in &self.kept {
            let (status, found) = self.send("GET", &format!("manifests/{digest}"), &[]).await.expect("an answer");
            assert!(status == StatusCode::OK && found == *manifest, "{} {digest}: {status}", self.name);
            let read: Value = serde_json::from_slice(manifest).expect("JSON");
            for (named, wanted) in [(&read["config"], None), (&read["layers"][0], Some(layer))] {
                let of = named["digest"].as_str().unwrap_or_default();
                let (status, found) = self.send("GET", &format!("blobs/{of}"), &[]).await.expect("an answer");
                let is_whole = self::digest(&found) == of && wanted.is_none_or(|wanted| found == *wanted);
                assert!(status == StatusCode::OK && is_whole, "{} {of}: {status}", self.name);
            }
        }
    }

    pub(crate) async fn send(&self, verb: &str, path: &str, body: &[u8]) -> Option<(StatusCode, Vec<u8>)> {
        let stream = TcpStream::connect(self.address).await.ok()?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        let connection = tokio::spawn(connection);
        let request = Request::builder()
            .method(verb)
            .uri(format!("/v2/{}/{path}", self.name))
            .header("host", self.address.to_string())
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", IMAGE);
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).expect("a request");
        let answer = sender.send_request(request).await.ok()?;
        let status = answer.status();
        let answer = answer.into_body().collect().await.ok()?.to_bytes().to_vec();
        connection.abort();
        Some((status, answer))
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    Digest::of(Algorithm::Sha256, bytes).to_string()
}

pub(crate) fn manifest(config: &[u8], layer: &[u8]) -> Value {
    let descriptor = |media_type: &str, bytes: &[u8]| json!({ "mediaType": media_type, "digest": digest(bytes), "size": bytes.len() });
    json!({
        "schemaVersion": 2,
        "mediaType": IMAGE,
        "config": descriptor("application/vnd.oci.image.config.v1+json", config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
    })
}
