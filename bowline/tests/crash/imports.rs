//! Imports of records: the server, or anyone who brings the import, is killed while it is staged or committed. Afterwards
//! the records are those of the import before or those of the new one, whole; the next import continues; and in the
//! end nothing is left of what was interrupted.

use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bowline_store::{Row, StoreError, Value};

use crate::random::Random;
use crate::rounds::Plan;
use crate::server::{Addresses, Server, binary, operator_token};
use crate::storage::Storage;

/// Records of a state; one in seven is another one in the next state, and most of the others change.
const RECORDS: u64 = 3000;
/// Longest time until something is killed, in milliseconds.
const LONGEST: u64 = 4000;
/// An import that no one disturbs.
const UNDISTURBED: Duration = Duration::from_secs(120);

/// Runs the plan on SQLite, or on a PostgreSQL of this URL.
pub(crate) async fn run(postgres: Option<&str>, plan: &Plan) {
    let storage = Storage::create(postgres).await;
    let addresses = Addresses::free();
    let mut random = Random::new(plan.seed);
    let mut server = Some(start(&storage, addresses).await);
    let scratch = Scratch::new(addresses, &operator_token(&storage));
    let mut state = 0;
    let mut survived = (0, 0);
    for _ in 0..plan.rounds {
        let mut import = scratch.import(state + 1);
        tokio::time::sleep(Duration::from_millis(random.below(LONGEST))).await;
        let kills_importer = random.below(3) == 0;
        if kills_importer {
            let _ = import.kill();
        } else if let Some(running) = server.take() {
            running.kill();
        }
        let acknowledged = import.wait().expect("the importer ends").success();
        if server.is_none() {
            server = Some(start(&storage, addresses).await);
        }
        let seen = visible(&storage).await;
        assert!(seen == expected(state) || seen == expected(state + 1), "by half: {} records", seen.len());
        if seen == expected(state + 1) {
            state += 1;
            survived.0 += 1;
        } else {
            assert!(!acknowledged, "an acknowledged import is gone");
            survived.1 += 1;
        }
    }
    let mut last = scratch.import(state + 1);
    let status = wait(&mut last).await;
    assert!(status, "the last import succeeds");
    assert_eq!(visible(&storage).await, expected(state + 1));
    nothing_is_left(&storage).await;
    drop(server);
    storage.drop_database().await;
    report(postgres.is_some(), survived);
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture: how much the rounds looked at")]
fn report(postgres: bool, (committed, not): (u64, u64)) {
    println!(
        "imports on {}: {committed} were committed, {not} were not",
        if postgres { "PostgreSQL" } else { "SQLite" }
    );
}

async fn start(storage: &Storage, addresses: Addresses) -> Server {
    let mut server = Server::spawn(storage, addresses);
    server.ready().await;
    server
}

pub(crate) async fn wait(import: &mut Child) -> bool {
    let started = Instant::now();
    loop {
        if let Some(status) = import.try_wait().expect("the importer can be asked") {
            return status.success();
        }
        assert!(started.elapsed() < UNDISTURBED, "the import takes too long");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Files of the importer.
pub(crate) struct Scratch {
    directory: tempfile::TempDir,
    api: String,
}

impl Scratch {
    pub(crate) fn new(addresses: Addresses, token: &str) -> Scratch {
        let directory = tempfile::tempdir().expect("a scratch directory");
        std::fs::write(directory.path().join("token"), token).expect("a token file");
        Scratch { directory, api: format!("http://{}", addresses.api) }
    }

    fn import(&self, state: u64) -> Child {
        self.import_lines(&lines(state))
    }

    /// Imports records, one in each line, in the place of those of the import before.
    pub(crate) fn import_lines(&self, lines: &str) -> Child {
        let file = self.directory.path().join("records.jsonl");
        std::fs::write(&file, lines).expect("a file of records");
        Command::new(binary())
            .args(["feeds", "import", "osv", "--full", "--source", "crash", "--licence", "CC0-1.0"])
            .args(["--api", &self.api, "--token-file"])
            .args([self.directory.path().join("token"), file])
            .env("XDG_CONFIG_HOME", self.directory.path())
            .env("XDG_CACHE_HOME", self.directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the importer starts")
    }
}

fn lines(state: u64) -> String {
    let mut lines = String::new();
    for (id, modified) in expected(state) {
        let _ = writeln!(
            lines,
            r#"{{"id":"{id}","modified":"1970-01-01T00:00:{:02}Z","aliases":["CVE-{id}"],"affected":[{{"package":{{"ecosystem":"npm","name":"p{}"}},"versions":["1.0.0"]}}]}}"#,
            modified / 1_000_000,
            id.len()
        );
    }
    lines
}

/// Ids with their times, as a state has them; before the first there are none.
fn expected(state: u64) -> Vec<(String, i64)> {
    let records = (0..if state == 0 { 0 } else { RECORDS }).map(|i| {
        let round = if i % 7 == 0 { state } else { 0 };
        let modified = if i % 5 == 0 { 0 } else { (state % 60) as i64 * 1_000_000 };
        (format!("A-{i:06}-{round}"), modified)
    });
    records.collect()
}

/// What readers see: every record with its body, its alias and its package.
async fn visible(storage: &Storage) -> Vec<(String, i64)> {
    let db = storage.open().await;
    let rows = db.read(|tx| {
        Box::pin(async move {
            let sql = "SELECT r.id, r.modified FROM records r
                       JOIN record_sources s ON s.number = r.source AND r.since <= s.generation AND r.until > s.generation
                       JOIN record_bodies b ON b.record = r.n JOIN record_aliases l ON l.record = r.n
                       JOIN record_affects a ON a.record = r.n AND a.id = r.id AND a.modified = r.modified
                         AND a.source = r.source AND a.since = r.since AND a.until = r.until ORDER BY r.id";
            tx.query(sql, &[], |row: &Row<'_>| Ok::<_, StoreError>((row.text(0)?, row.int(1)?))).await
        })
    });
    let rows = rows.await.expect("the records are read");
    let counted = db.read(|tx| {
        Box::pin(async move {
            let sql = "SELECT COALESCE(max(records), 0) FROM record_sources WHERE name = $1";
            tx.query_opt(sql, &[Value::from("crash")], |row| row.int(0)).await
        })
    });
    let counted: Result<Option<i64>, StoreError> = counted.await;
    assert_eq!(counted.expect("the count is read").unwrap_or_default(), rows.len() as i64, "the kept count");
    db.close().await;
    rows
}

/// The background clears away what was replaced and what was given up.
async fn nothing_is_left(storage: &Storage) {
    let started = Instant::now();
    loop {
        let db = storage.open().await;
        let counts = db.read(|tx| {
            Box::pin(async move {
                let sql = "SELECT count(*) FROM records UNION ALL SELECT count(*) FROM record_bodies
                           UNION ALL SELECT count(*) FROM record_affects UNION ALL SELECT count(*) FROM record_aliases";
                tx.query(sql, &[], |row| row.int(0)).await
            })
        });
        let counts: Result<Vec<i64>, StoreError> = counts.await;
        db.close().await;
        let counts = counts.expect("the rows are counted");
        if counts == [RECORDS as i64; 4] {
            return;
        }
        assert!(started.elapsed() < UNDISTURBED, "something is left: {counts:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
