//! Everything at once: pushes, mounts, deletions and garbage collection. Then whatever can be pulled must be whole, and
//! nothing may be left that no one can pull.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_core::{Clock as _, Error, Reason};
use bowline_server::{Plan, collect, verify};
use bowline_testkit::{Actor, RestReply, TestServer, each_engine};
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use crate::bytes::kept;
use crate::random::Random;
use crate::support::*;

const WORKERS: u64 = 4;
/// What one worker does in a run; `BOWLINE_ORACLE_OPERATIONS` says another number.
const OPERATIONS: u64 = 80;
/// Few, so that they come and go often.
const LAYERS: u64 = 3;
/// Longer than the time that a looked-up blob is protected without renewal.
const GRACE: Duration = Duration::from_secs(70);
/// Turns of the clock at most, so that tokens outlast them.
const TURNS: usize = 40;
/// The last of them is deleted now and then.
const REPOS: [&str; 3] = ["one", "two", "gone"];

fn content(n: u64) -> Vec<u8> {
    format!("layer {n}").repeat(1 + n as usize * 9000).into_bytes()
}

/// Someone who does whatever comes to mind.
struct Worker {
    client: Client,
    operator: Actor,
    org: String,
    random: Random,
    /// While someone pushes, the clock stands still: no push takes longer than the grace.
    turn: Arc<RwLock<()>>,
}

fn operations() -> u64 {
    let given = std::env::var_os("BOWLINE_ORACLE_OPERATIONS").and_then(|value| value.into_string().ok());
    given.map_or(OPERATIONS, |text| text.parse().expect("a number"))
}

impl Worker {
    async fn work(mut self) {
        for _ in 0..operations() {
            let repo = self.random.take(&mut REPOS.to_vec()).unwrap();
            let name = format!("{}/{repo}", self.org);
            match self.random.below(10) {
                0..=3 => self.push(&name, repo != "gone").await,
                4 => {
                    let tag = self.random.below(4);
                    self.send(&format!("DELETE /v2/{name}/manifests/t{tag}"), b"").await;
                }
                5..=7 => {
                    let digest = digest_of(&image(&content(self.random.below(LAYERS))));
                    self.send(&format!("DELETE /v2/{name}/manifests/{digest}"), b"").await;
                }
                8 => {
                    self.send(&format!("POST /v2/{name}/blobs/uploads/"), b"").await;
                    let unnamed = self.random.next().to_string();
                    let what = format!("POST /v2/{name}/blobs/uploads/?digest={}", digest(unnamed.as_bytes()));
                    self.send(&what, unnamed.as_bytes()).await;
                }
                _ if repo == "gone" => self.delete_repo().await,
                _ => {}
            }
        }
    }

    /// A transaction that lost against others too often is tried again.
    async fn send(&self, what: &str, body: &[u8]) -> RestReply {
        loop {
            let headers: Headers<'_> = if what.contains("/manifests/") { &[("content-type", IMAGE)] } else { &[] };
            let reply = self.client.send(what, headers, body).await;
            if reply.status != 503 {
                return reply;
            }
        }
    }

    /// As clients do: what is there is not sent.
    async fn push(&mut self, name: &str, must_succeed: bool) {
        let turn = self.turn.clone();
        let _still = turn.read().await;
        let layer = content(self.random.below(LAYERS));
        for blob in [CONFIG_BYTES, &layer] {
            let digest = digest(blob);
            if self.send(&format!("HEAD /v2/{name}/blobs/{digest}"), b"").await.status == 200 {
                continue;
            }
            let uploads = format!("POST /v2/{name}/blobs/uploads/");
            let mounts = self.random.below(2) == 0;
            if mounts && self.send(&format!("{uploads}?mount={digest}"), b"").await.status == 201 {
                continue;
            }
            let reply = self.send(&format!("{uploads}?digest={digest}"), blob).await;
            assert!(!must_succeed || reply.status == 201, "{} {}", reply.status, reply.text());
        }
        let put = format!("PUT /v2/{name}/manifests/t{}", self.random.below(4));
        let reply = self.send(&put, image(&layer).to_string().as_bytes()).await;
        assert!(!must_succeed || reply.status == 201, "{} {}", reply.status, reply.text());
    }

    async fn delete_repo(&self) {
        let listed = self.operator.rest("GET", "/registry/v2/repos?name=gone", None).await.json();
        if let Some(uid) = listed["repos"][0]["uid"].as_str() {
            self.operator.rest("DELETE", &format!("/registry/v2/repos/{uid}"), None).await;
        }
    }
}

async fn collect_now(server: &TestServer) -> u64 {
    let parts = server.server().parts();
    let plan = Plan { until: server.clock().now() - GRACE.as_micros() as i64, is_dry_run: false };
    loop {
        match collect(&parts.storage.db, &parts.content, plan).await {
            Ok(collected) => return collected.blobs,
            // A transaction lost against others too often.
            Err(error) => assert_eq!(error.reason(), Reason::Unavailable, "{error}"),
        }
    }
}

/// Every manifest that a repository holds can be pulled, with every blob that it names.
async fn everything_is_whole(server: &TestServer, client: &Client) {
    let sql = "SELECT repo, digest FROM repo_manifests ORDER BY repo, digest";
    for (repo, manifest) in pairs(server, sql).await {
        let reply = client.get(&format!("/v2/{repo}/manifests/{manifest}")).await;
        assert_eq!((reply.status, digest(&reply.body)), (200, manifest), "{}", reply.text());
        let manifest = reply.json();
        for named in [&manifest["config"], &manifest["layers"][0]] {
            let wanted = named["digest"].as_str().unwrap();
            let reply = client.get(&format!("/v2/{repo}/blobs/{wanted}")).await;
            assert_eq!((reply.status, digest(&reply.body).as_str()), (200, wanted));
        }
    }
    let parts = server.server().parts();
    let verified = verify(&parts.storage.db, &parts.content, |_, _| {}).await.unwrap();
    assert_eq!(verified.damaged, []);
}

async fn nothing_is_left_over(server: &TestServer) {
    for sql in [
        "SELECT digest, upload FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM repo_blobs r WHERE r.digest = b.digest)",
        "SELECT digest, media_type FROM manifests m
         WHERE NOT EXISTS (SELECT 1 FROM repo_manifests r WHERE r.digest = m.digest)",
        "SELECT repo, digest FROM repo_blobs r WHERE NOT EXISTS (SELECT 1 FROM manifest_references f
         JOIN repo_manifests m ON m.digest = f.manifest AND m.repo = r.repo WHERE f.digest = r.digest)",
        "SELECT manifest, digest FROM manifest_references f
         WHERE NOT EXISTS (SELECT 1 FROM manifests m WHERE m.digest = f.manifest)",
        "SELECT id, repo FROM uploads",
    ] {
        assert_eq!(pairs(server, sql).await, [], "{sql}");
    }
    let wanted: BTreeSet<String> = pairs(server, "SELECT digest, upload FROM blobs")
        .await
        .into_iter()
        .map(|(digest, upload)| format!("{}-{upload}", digest.strip_prefix("sha256:").unwrap()))
        .collect();
    let found = kept(server);
    let found: BTreeSet<String> =
        found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(wanted, found);
}

async fn pairs(server: &TestServer, sql: &'static str) -> Vec<(String, String)> {
    let db = &server.server().parts().storage.db;
    let read = db.read(move |tx| {
        Box::pin(async move { tx.query(sql, &[], |row| Ok::<_, Error>((row.text(0)?, row.text(1)?))).await })
    });
    read.await.unwrap()
}

async fn no_push_loses_what_a_collection_takes(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (turn, over) = (Arc::new(RwLock::new(())), AtomicBool::new(false));
    let mut workers = JoinSet::new();
    for n in 0..WORKERS {
        let (client, operator, org) = (client.clone(), server.operator().await, org.clone());
        workers.spawn(Worker { client, operator, org, random: Random::new(n), turn: turn.clone() }.work());
    }
    let collecting = async {
        let (mut turns, mut blobs) = (0, 0);
        while !over.load(Ordering::Relaxed) {
            if turns < TURNS {
                let _alone = turn.write().await;
                server.clock().advance(GRACE + Duration::from_secs(1));
                turns += 1;
            }
            blobs += collect_now(server).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        blobs
    };
    let working = async {
        workers.join_all().await;
        over.store(true, Ordering::Relaxed);
    };
    let (blobs, ()) = tokio::join!(collecting, working);
    assert!(blobs > 0, "nothing was collected beside the pushes");
    everything_is_whole(server, &client).await;
    server.clock().advance(Duration::from_secs(48 * 3600));
    server.server().parts().distribution.expire_uploads().await.expect("uploads expire");
    collect_now(server).await;
    nothing_is_left_over(server).await;
    let later = crate::support::client(server, "registry.pull", &org).await;
    everything_is_whole(server, &later).await;
}

each_engine!(multi_thread: no_push_loses_what_a_collection_takes);
