//! Findings of images: the server is killed while images with SBOMs come and go, records are imported, and the task that
//! matches follows. In the end every finding is there that the images and records make, and the events open and close each
//! in turn, none twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bowline_contract::bowline::vulnerabilities::v1::ImageFindings;
use bowline_store::{Row, StoreError};
use http::StatusCode;
use prost::Message as _;
use serde_json::{Value, json};

use crate::client::Client;
use crate::imports::{Scratch, wait};
use crate::pushes::{IMAGE, Pusher, digest, manifest, organization};
use crate::random::Random;
use crate::rounds::Plan;
use crate::server::{Addresses, Server, operator_token, token};
use crate::storage::Storage;

/// Packages that images have and that records affect, and records of a state.
const PACKAGES: u64 = 12;
const RECORDS: u64 = 40;
/// Longest time until the server is killed, in milliseconds: the task looks for work every two seconds.
const LONGEST: u64 = 6000;
/// For the task, when no one disturbs it.
const UNDISTURBED: Duration = Duration::from_secs(120);

/// Runs the plan on SQLite, or on a PostgreSQL of this URL.
pub(crate) async fn run(postgres: Option<&str>, plan: &Plan) {
    let storage = Storage::create(postgres).await;
    let addresses = Addresses::free();
    let mut random = Random::new(plan.seed);
    let mut server = start(&storage, addresses).await;
    let api = Client::connect(addresses.api, true, &token(&storage, &[])).await.expect("a connection");
    let name = format!("{}/app", organization(api).await);
    let registry = token(&storage, &["--audience", &addresses.api.to_string()]);
    let mut images = Images { pusher: Pusher::new(addresses.api, registry, name), pushed: Vec::new(), count: 0 };
    let scratch = Scratch::new(addresses, &operator_token(&storage));
    for round in 0..plan.rounds {
        let mut import = scratch.import_lines(&records(round));
        let moment = Duration::from_millis(random.below(LONGEST));
        let _ = tokio::time::timeout(moment, images.change(&mut random)).await;
        server.kill();
        import.wait().expect("the importer ends");
        server = start(&storage, addresses).await;
    }
    images.push(&mut random).await;
    assert!(wait(&mut scratch.import_lines(&records(plan.rounds))).await, "the last import succeeds");
    settled(&storage).await;
    let stored = rows(&storage, STORED).await;
    assert_eq!(stored, rows(&storage, EXPECTED).await, "what images and records make");
    assert!(!stored.is_empty(), "there is a finding");
    assert_eq!(stored, left_open(&storage).await, "what the events leave open");
    server.kill();
    storage.drop_database().await;
}

async fn start(storage: &Storage, addresses: Addresses) -> Server {
    let mut server = Server::spawn(storage, addresses);
    server.ready().await;
    server
}

/// Records of a state, as lines: each state has others for some packages.
fn records(state: u64) -> String {
    let mut lines = String::new();
    for n in 0..RECORDS {
        let package = (n * 7 + state * (n % 3)) % PACKAGES;
        let _ = writeln!(
            lines,
            r#"{{"id":"A-{n}","modified":"1970-01-01T00:00:{:02}Z","affected":[{{"package":{{"ecosystem":"npm","name":"p{package}"}},"versions":["1.0.0"]}}]}}"#,
            state % 60
        );
    }
    lines
}

/// Images of one repository, each with an SBOM.
struct Images {
    pusher: Pusher,
    /// Digests of images and of the manifests of their SBOMs.
    pushed: Vec<(String, String)>,
    count: u64,
}

impl Images {
    /// Pushes and deletes until it is stopped or the server is gone.
    async fn change(&mut self, random: &mut Random) {
        loop {
            let is_deletion = self.pushed.len() > 3 && random.below(3) == 0;
            let done = if is_deletion { self.delete(random).await } else { self.push(random).await };
            if done.is_none() {
                return;
            }
        }
    }

    async fn delete(&mut self, random: &mut Random) -> Option<()> {
        let (image, sbom) = self.pushed.swap_remove(random.below(self.pushed.len() as u64) as usize);
        let gone = if random.below(2) == 0 { image } else { sbom };
        self.pusher.send("DELETE", &format!("manifests/{gone}"), &[]).await.map(|_| ())
    }

    async fn push(&mut self, random: &mut Random) -> Option<()> {
        self.count += 1;
        let image = manifest(b"{}", format!("layer {}", self.count).as_bytes());
        let components: Vec<Value> = (0..4)
            .map(|_| {
                let name = format!("p{}", random.below(PACKAGES));
                json!({ "name": name, "version": "1.0.0", "purl": format!("pkg:npm/{name}@1.0.0") })
            })
            .collect();
        let document = json!({ "bomFormat": "CycloneDX", "serialNumber": self.count, "components": components });
        let mut sbom = manifest(b"{}", document.to_string().as_bytes());
        sbom["layers"][0]["mediaType"] = json!("application/vnd.cyclonedx+json");
        sbom["subject"] = json!({ "mediaType": IMAGE, "digest": digest(image.to_string().as_bytes()), "size": 1 });
        self.blob(b"{}").await?;
        self.blob(format!("layer {}", self.count).as_bytes()).await?;
        self.blob(document.to_string().as_bytes()).await?;
        let image = self.manifest(&image).await?;
        let sbom = self.manifest(&sbom).await?;
        self.pushed.push((image, sbom));
        Some(())
    }

    async fn blob(&self, bytes: &[u8]) -> Option<()> {
        let path = format!("blobs/uploads/?digest={}", digest(bytes));
        self.pusher.send("POST", &path, bytes).await.map(|_| ())
    }

    async fn manifest(&self, manifest: &Value) -> Option<String> {
        let bytes = manifest.to_string().into_bytes();
        let digest = digest(&bytes);
        let (status, answer) = self.pusher.send("PUT", &format!("manifests/{digest}"), &bytes).await?;
        assert_eq!(status, StatusCode::CREATED, "{}", String::from_utf8_lossy(&answer));
        Some(digest)
    }
}

const STORED: &str = "SELECT digest || ' ' || vulnerability || ' ' || package || '@' || version FROM image_findings";

/// What the images and the visible records make, past everything that matching has written.
const EXPECTED: &str = "SELECT DISTINCT r.subject || ' ' || a.id || ' ' || c.package || '@' || c.version
  FROM repo_manifests r JOIN repo_manifests i ON i.repo = r.repo AND i.digest = r.subject
  JOIN manifest_references f ON f.manifest = r.digest AND f.kind = 2
  JOIN repo_sboms s ON s.repo = r.repo AND s.digest = f.digest JOIN components c ON c.sbom = s.sbom
  JOIN record_affects a ON a.package = c.package
  JOIN record_sources o ON o.number = a.source AND a.since <= o.generation AND a.until > o.generation";

async fn rows(storage: &Storage, sql: &'static str) -> BTreeSet<String> {
    let db = storage.open().await;
    let read = db.read(move |tx| Box::pin(async move { tx.query(sql, &[], |row: &Row<'_>| row.text(0)).await }));
    let rows: Result<Vec<String>, StoreError> = read.await;
    db.close().await;
    rows.expect("the rows are read").into_iter().collect()
}

/// Waits until nothing waits for the task.
async fn settled(storage: &Storage) {
    const WAITING: &str = "SELECT 'commit' FROM record_sources WHERE matched_generation < generation
      UNION ALL SELECT 'sbom' FROM unmatched_sboms UNION ALL SELECT 'version' FROM package_versions WHERE state <> 0
      UNION ALL SELECT 'changed' FROM changed_versions UNION ALL SELECT 'noted' FROM waiting_sboms
      UNION ALL SELECT 'image' FROM waiting_images";
    let started = Instant::now();
    loop {
        let waiting = rows(storage, WAITING).await;
        if waiting.is_empty() {
            return;
        }
        assert!(started.elapsed() < UNDISTURBED, "something waits: {waiting:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What all events together leave open; none opens what is open, or closes what is closed.
async fn left_open(storage: &Storage) -> BTreeSet<String> {
    let db = storage.open().await;
    let read = db.read(|tx| {
        Box::pin(async move {
            let sql = "SELECT event_type, body FROM outbox WHERE event_type LIKE '%.registry.finding.%' ORDER BY seq";
            tx.query(sql, &[], |row: &Row<'_>| Ok::<_, StoreError>((row.text(0)?, row.bytes(1)?))).await
        })
    });
    let events = read.await.expect("the events are read");
    db.close().await;
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    for (number, (event, body)) in events.into_iter().enumerate() {
        let image = ImageFindings::decode(body.as_slice()).expect("findings");
        for finding in &image.findings {
            let is_opened = event.contains(".opened.");
            let package = &finding.component;
            let line = format!("{} {} npm/{package}@{}", image.digest, finding.vulnerability, finding.version);
            let before = if is_opened { open.insert(line.clone(), number) } else { open.remove(&line) };
            assert_eq!(before.is_some(), !is_opened, "{event} of {line}, after the event {before:?}");
        }
    }
    open.into_keys().collect()
}
