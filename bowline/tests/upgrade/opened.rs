//! A server on stored data, and the answers that it must give.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use bowline_core::Clock;
use bowline_server::{Options, Server, TermsOption, mint_operator_token, verify};
use bowline_testkit::TestClock;
use serde_json::Value;

/// The address that the data were made at, which tokens and answers hold.
const BASE: &str = "http://127.0.0.1:18281";
/// Fewest answers of one version: less were not read.
const FEWEST: usize = 200;
/// Maximum number of tries of a request, 100 ms apart, while the server still starts.
const TRIES: u32 = 100;

/// Paths whose answers differ from those of before, and why.
const CHANGED: &[(&str, &str)] = &[
    ("/iam/v1/roles?", "there are built-in roles for Go modules"),
    ("/iam/v2/roles?", "there are built-in roles for Go modules"),
    ("/libraries/v1/artifacts/count", "packages of Go are counted"),
    ("/libraries/v1/resolutioncache/", "choices of Go are remembered"),
];

/// Lists of more than one row, whose page tokens must stay valid.
const LISTS: &[&str] = &["/iam/v2/roles", "/iam/v2/identities", "/registry/v2/repos"];

/// Where data are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The data directory, which has the blobs.
    pub(crate) data: PathBuf,
    pub(crate) key: PathBuf,
    /// URL of the database, if it is not in the directory.
    pub(crate) database: Option<String>,
}

impl Place {
    pub(crate) fn directory(data: &Path) -> Place {
        Place { data: data.to_owned(), key: data.join("key"), database: None }
    }

    /// The options of commands that work beside a server.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--data-dir".into(), shown(&self.data), "--key-file".into(), shown(&self.key)];
        if let Some(url) = &self.database {
            arguments.extend(["--database-url".into(), url.clone()]);
        }
        arguments
    }
}

pub(crate) fn shown(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn unpack(archive: &Path) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a scratch directory is made");
    let unpacked = Command::new("tar").arg("-xzpf").arg(archive).arg("-C").arg(directory.path()).status();
    assert!(unpacked.expect("tar runs").success(), "{}", archive.display());
    directory
}

/// Runs the binary to its end.
pub(crate) fn bowline(arguments: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bowline")).args(arguments).output().expect("the binary runs")
}

/// The same for a command that must succeed; what it printed.
pub(crate) fn ok(arguments: &[String]) -> String {
    let output = bowline(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A server on stored data.
pub(crate) struct Opened {
    pub(crate) server: Server,
    pub(crate) token: String,
    http: reqwest::Client,
}

impl Opened {
    /// Starts at the time at which the data were made. `token` is one that an earlier server of these data issued.
    pub(crate) async fn start(place: &Place, seeded_at: &Path, token: Option<String>) -> Opened {
        let terms =
            TermsOption { id: "terms-1".into(), label: "Terms".into(), url: "https://operator.example/terms-1".into() };
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let options = Options {
            data_dir: Some(place.data.clone()),
            database_url: place.database.clone(),
            key_file: Some(place.key.clone()),
            listen: Some(any),
            admin_listen: Some(any),
            base_url: Some(BASE.into()),
            terms: vec![terms],
            disk_reserve: Some(1),
            ..Options::default()
        };
        let seeded_at = read(seeded_at).trim().parse().expect("seconds");
        let clock: Arc<dyn Clock> = Arc::new(TestClock::at(seeded_at));
        let server = Server::start(&options, clock.clone()).await;
        let server = server.unwrap_or_else(|error| panic!("{error} {:?}", error.hint()));
        let token = match token {
            Some(token) => token,
            None => {
                mint_operator_token(&server.parts().storage, &*clock, None, None, 3600, None).await.expect("a token")
            }
        };
        let http = reqwest::Client::builder().build().expect("a client");
        Opened { server, token, http }
    }

    /// An answer, once the server has read what it keeps in memory: until then it answers 503 and clients try again.
    async fn get(&self, path: &str) -> (u16, Vec<u8>) {
        for _ in 0..TRIES {
            let (status, body) = self.ask(path).await;
            if status != 503 {
                return (status, body);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{path}: 503 after {TRIES} tries");
    }

    /// Deletes a resource as the operator.
    pub(crate) async fn delete(&self, path: &str) {
        let url = format!("http://{}{path}", self.server.address());
        let reply = self.http.delete(url).bearer_auth(&self.token).send().await.expect("an answer");
        assert!(reply.status().is_success(), "{path}: {}", reply.status());
    }

    /// The JSON of an answer.
    pub(crate) async fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.get(path).await.1).expect("JSON")
    }

    async fn ask(&self, path: &str) -> (u16, Vec<u8>) {
        let request = self.http.get(format!("http://{}{path}", self.server.address())).bearer_auth(&self.token);
        let reply = request.header("host", "127.0.0.1:18281").send().await.expect("an answer");
        let status = reply.status().as_u16();
        (status, reply.bytes().await.expect("a body").to_vec())
    }
}

/// Compares every response that `directory` has stored with that of a server on these data, and every blob;
/// returns the token of the requests.
pub(crate) async fn answers_are_those_of_before(directory: &Path, place: &Place, token: Option<String>) -> String {
    let opened = Opened::start(place, &directory.join("seeded_at"), token).await;
    let (mut compared, mut wrong) = (0, Vec::new());
    for line in read(&directory.join("answers.jsonl")).lines() {
        let known: Value = serde_json::from_str(line).expect("JSON");
        let path = known["path"].as_str().expect("a path");
        if CHANGED.iter().any(|(changed, _)| path.starts_with(changed)) {
            continue;
        }
        let (status, body) = opened.get(path).await;
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        compared += 1;
        if status != 200 || body != known["body"] {
            wrong.push(format!("{path}: {status}\n  before {}\n  now    {body}", known["body"]));
        }
    }
    assert!(compared >= FEWEST, "{compared} answers");
    assert!(wrong.is_empty(), "{place:?}: {} of {compared} differ\n{}", wrong.len(), wrong.join("\n"));
    let parts = opened.server.parts();
    let verified = verify(&parts.storage.db, &parts.content, |_, _| {}).await.expect("the blobs are read");
    assert!(verified.blobs > 0 && verified.damaged.is_empty(), "{:?}", verified.damaged);
    opened.server.stop().await;
    the_chain_holds(place);
    opened.token
}

/// The second page of each list, by its path with the page token that this server gave.
pub(crate) async fn second_pages(directory: &Path, place: &Place, token: &str) -> Vec<(String, Value)> {
    let opened = Opened::start(place, &directory.join("seeded_at"), Some(token.to_owned())).await;
    let mut pages = Vec::new();
    for list in LISTS {
        let first = opened.json(&format!("{list}?pageSize=1")).await;
        let next = first["nextPageToken"].as_str().filter(|next| !next.is_empty()).expect("a second page");
        let path = format!("{list}?pageSize=1&pageToken={next}");
        let page = opened.json(&path).await;
        pages.push((path, page));
    }
    opened.server.stop().await;
    pages
}

/// Page tokens of the server from which the data were moved, at a server to which they were moved.
pub(crate) async fn page_tokens_stay_valid(directory: &Path, place: &Place, token: &str, pages: &[(String, Value)]) {
    let opened = Opened::start(place, &directory.join("seeded_at"), Some(token.to_owned())).await;
    for (path, page) in pages {
        assert_eq!(&opened.json(path).await, page, "{path}");
    }
    opened.server.stop().await;
}

/// The audit log, by the command that operators have.
fn the_chain_holds(place: &Place) {
    let arguments: Vec<String> = ["audit", "verify"].map(String::from).into_iter().chain(place.arguments()).collect();
    ok(&arguments);
}
