//! The command line against a running server: what it prints, keeps, and ends with.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::{Engine, TestServer};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

struct Terminal {
    home: TempDir,
    api: String,
}

impl Terminal {
    fn new(server: &TestServer) -> Terminal {
        Terminal { home: tempfile::tempdir().expect("a scratch directory is made"), api: server.base().into() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command.env_clear().env("HOME", self.home.path());
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).args(["--api", &self.api]).output().await.expect("the binary runs")
    }

    /// The credential helper, called as container clients call it.
    async fn helper(&self, directory: &Path, verb: &str, question: &str) -> Output {
        let mut command = Command::new(directory.join("docker-credential-bowline"));
        command.env_clear().env("HOME", self.home.path()).arg(verb).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().expect("the helper runs");
        // A verb without a question ends without reading it.
        let _ = running.stdin.take().expect("a pipe").write_all(question.as_bytes()).await;
        running.wait_with_output().await.expect("the helper ends")
    }

    fn kept(&self, audience: &str, name: &str) -> std::path::PathBuf {
        self.home.path().join(".cache/chainguard").join(audience.replace('/', "-")).join(name)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

#[track_caller]
fn ended(output: &Output, code: i32) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "stdout: {}, stderr: {said}", text(&output.stdout));
    text(&output.stdout)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
}

/// Somebody with an identity token, who may view an organization.
async fn viewer(server: &TestServer) -> (String, String, String) {
    let organization = server.organization("acme").await;
    let identity = server.identity(&organization, "build").await;
    server.bind(&identity, &server.role("viewer"), &organization).await;
    let token = server.idp().token("build", &server.server().parts().settings.auth_url, Value::Null);
    (organization, identity, token)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_in_with_an_identity_token_and_out_again() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, identity, token) = viewer(&server).await;
    let terminal = Terminal::new(&server);

    let status = terminal.run(&["auth", "status"]).await;
    assert_eq!(ended(&status, 3), "", "nobody is signed in");
    assert!(text(&status.stderr).contains("bowline auth login"), "{}", text(&status.stderr));

    let login = terminal.run(&["auth", "login", "--identity", &identity, "--identity-token", &token]).await;
    assert_eq!(ended(&login, 0), identity);
    let file = terminal.kept(server.base(), "oidc-token");
    assert_eq!((mode(&file), mode(file.parent().expect("a directory"))), (0o600, 0o700));

    let printed = ended(&terminal.run(&["auth", "token"]).await, 0);
    assert_eq!(printed, std::fs::read_to_string(&file).expect("the token is kept"));
    let groups = server.anonymous().with_token(&printed).rest("GET", "/iam/v2/groups", None).await;
    assert_eq!((groups.status, &groups.json()["groups"][0]["uid"]), (200, &json!(organization)));

    let status = ended(&terminal.run(&["auth", "status", "-o", "json"]).await, 0);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((&status["identity"], &status["capabilities"][0]["role"]), (&json!(identity), &json!("viewer")));

    // The server is kept as a context: it need not be named again.
    let again = terminal.command().args(["auth", "token"]).output().await.expect("the binary runs");
    assert_eq!(ended(&again, 0), printed);

    ended(&terminal.run(&["auth", "logout"]).await, 0);
    assert!(!file.exists());
    ended(&terminal.run(&["auth", "token"]).await, 3);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_audiences_and_narrowed_tokens() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, identity, token) = viewer(&server).await;
    let terminal = Terminal::new(&server);
    let path = terminal.home.path().join("identity-token");
    std::fs::write(&path, format!("{token}\n")).expect("the token file is written");
    let path = path.to_string_lossy();
    ended(&terminal.run(&["auth", "login", "--identity", &identity, "--identity-token", &path]).await, 0);

    let registry = server.server().parts().settings.registry_audience.clone();
    let printed = ended(&terminal.run(&["auth", "token", "--audience", &registry]).await, 0);
    assert!(terminal.kept(&registry, "oidc-token").exists());
    let refused = server.anonymous().with_token(&printed).rest("GET", "/iam/v2/groups", None).await;
    assert_eq!(refused.status, 401, "a token for the registry is none for the API");

    let narrowed =
        ended(&terminal.run(&["auth", "token", "--capabilities", "repo.list", "--scope", &organization]).await, 0);
    let narrowed = server.anonymous().with_token(&narrowed);
    assert_eq!(narrowed.rest("GET", &format!("/iam/v2/groups/{organization}"), None).await.status, 403);
    assert_eq!(narrowed.rest("GET", "/registry/v2/repos", None).await.status, 200);

    let unknown = terminal.run(&["auth", "token", "--capabilities", "no.such"]).await;
    ended(&unknown, 1);
    assert!(text(&unknown.stderr).contains("no.such"), "{}", text(&unknown.stderr));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn surroundings_with_a_token_of_their_own_need_no_login() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, identity, token) = viewer(&server).await;
    let terminal = Terminal::new(&server);
    let set = ["context", "set", "ci", "--identity", &identity];
    ended(&terminal.run(&set).await, 0);
    let output = terminal.command().args(["auth", "token"]).env("BOWLINE_ID_TOKEN", &token).output().await;
    let printed = ended(&output.expect("the binary runs"), 0);
    let groups = server.anonymous().with_token(&printed).rest("GET", "/iam/v2/groups", None).await;
    assert_eq!(groups.status, 200, "{}", groups.text());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pull_tokens_are_made_listed_and_exchanged() {
    let server = TestServer::start(Engine::Sqlite).await;
    let organization = server.organization("acme").await;
    let owner = server.actor("owner", &organization).await;
    let terminal = Terminal::new(&server);
    let file = terminal.kept(server.base(), "oidc-token");
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("the cache is made");
    std::fs::write(&file, owner.token.as_deref().expect("an owner has a token")).expect("the token is kept");

    let create =
        ["auth", "pull-token", "create", "--parent", &organization, "--repository", "oci,python", "-o", "json"];
    let made: Value = serde_json::from_str(&ended(&terminal.run(&create).await, 0)).expect("JSON");
    let (identity, token) = (made["identity_id"].as_str().expect("an id"), made["token"].as_str().expect("a token"));
    let registry = server.server().parts().settings.registry_audience.clone();
    let exchanged = server.exchange(token, &[("aud", &registry), ("identity", identity)]).await;
    assert_eq!(exchanged.status, 200, "{}", exchanged.text());

    let listed = ended(&terminal.run(&["auth", "pull-token", "list", "--parent", &organization]).await, 0);
    assert!(listed.lines().any(|line| line.starts_with(identity) && line.contains("pull-token")), "{listed}");
    let expired = ended(&terminal.run(&["auth", "pull-token", "list", "--expired", "true"]).await, 0);
    assert!(!expired.contains(identity), "{expired}");

    // Somebody who may not bind roles leaves nothing behind.
    let viewer = server.actor("viewer", &organization).await;
    std::fs::write(&file, viewer.token.as_deref().expect("a viewer has a token")).expect("the token is kept");
    ended(&terminal.run(&create).await, 4);
    let listed = ended(&terminal.run(&["auth", "pull-token", "list"]).await, 0);
    assert_eq!(listed.matches("pull-token").count(), 1, "{listed}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn container_clients_ask_for_credentials() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, identity, token) = viewer(&server).await;
    let terminal = Terminal::new(&server);
    let registry = server.server().parts().settings.registry_audience.clone();
    let tools = terminal.home.path().join("tools");
    std::fs::create_dir(&tools).expect("the directory is made");
    let helper_directory = tools.to_string_lossy().into_owned();
    let configure = ["auth", "configure-docker", "--helper-directory", &helper_directory];

    let early = terminal.run(&configure).await;
    ended(&early, 2);
    assert!(text(&early.stderr).contains("bowline context set"), "{}", text(&early.stderr));
    ended(&terminal.run(&["context", "set", "here"]).await, 0);
    ended(&terminal.run(&configure).await, 0);
    ended(&terminal.run(&configure).await, 0);
    let file = terminal.home.path().join(".docker/config.json");
    let config: Value = serde_json::from_slice(&std::fs::read(&file).expect("the file is written")).expect("JSON");
    assert_eq!((&config["credHelpers"][&registry], mode(&file)), (&json!("bowline"), 0o600));

    let asked = terminal.helper(&tools, "get", &registry).await;
    assert!(ended(&asked, 3).contains("bowline auth login"), "nobody is signed in");
    ended(&terminal.run(&["auth", "login", "--identity", &identity, "--identity-token", &token]).await, 0);
    let address = format!("https://{registry}/v2/");
    let given: Value = serde_json::from_str(&ended(&terminal.helper(&tools, "get", &address).await, 0)).expect("JSON");
    assert_eq!((&given["ServerURL"], &given["Username"]), (&json!(address), &json!("_token")));
    let secret = given["Secret"].as_str().expect("a token");
    let basic = format!("Basic {}", STANDARD.encode(format!("_token:{secret}")));
    let headers = HeaderMap::from_iter([(AUTHORIZATION, basic.parse().expect("a header"))]);
    assert_eq!(server.anonymous().rest_with("GET", "/v2/", headers, Vec::new()).await.status, 200);

    let listed: Value = serde_json::from_str(&ended(&terminal.helper(&tools, "list", "").await, 0)).expect("JSON");
    assert_eq!(listed, json!({ &registry: "_token" }));
    let elsewhere = ended(&terminal.helper(&tools, "get", "other.example").await, 2);
    assert_eq!(elsewhere, "credentials not found in native keychain", "clients know these words");
    let stored = ended(&terminal.helper(&tools, "store", "{}").await, 2);
    assert!(stored.contains("keeps no password"), "{stored}");
    assert!(terminal.kept(&registry, "oidc-token").exists());
    ended(&terminal.helper(&tools, "erase", &registry).await, 0);
    assert!(!terminal.kept(&registry, "oidc-token").exists());
    ended(&terminal.helper(&tools, "guess", "").await, 2);

    // What is not ours is not touched.
    std::fs::write(&file, "{").expect("the file is written");
    ended(&terminal.run(&configure).await, 2);
    assert_eq!(std::fs::read_to_string(&file).expect("the file is there"), "{");
    std::fs::remove_file(&file).expect("the file is there");
    let other = terminal.home.path().join("other");
    std::fs::create_dir(&other).expect("the directory is made");
    std::fs::write(other.join("docker-credential-bowline"), "another program").expect("it is written");
    let other = other.to_string_lossy();
    let taken = terminal.run(&["auth", "configure-docker", "--helper-directory", &other]).await;
    ended(&taken, 2);
    assert!(text(&taken.stderr).contains("another program") && !file.exists(), "{}", text(&taken.stderr));
    ended(&terminal.run(&["auth", "configure-docker", "--registry", "https://a/b"]).await, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_usage_and_no_server() {
    let server = TestServer::start(Engine::Sqlite).await;
    let terminal = Terminal::new(&server);
    let unnamed = terminal.command().args(["auth", "status"]).output().await.expect("the binary runs");
    ended(&unnamed, 2);
    assert!(text(&unnamed.stderr).contains("bowline context set"), "{}", text(&unnamed.stderr));
    ended(&terminal.run(&["auth", "login", "--headless", "--device"]).await, 2);
    ended(&terminal.run(&["context", "use", "nowhere"]).await, 2);
    let missing = terminal.run(&["auth", "login", "--identity-token", "/no/such/file"]).await;
    ended(&missing, 2);
    let mut nowhere = terminal.command();
    nowhere.args(["auth", "login", "--identity-token", "a.b.c", "--api", "http://127.0.0.1:1"]);
    ended(&nowhere.output().await.expect("the binary runs"), 5);
    server.stop().await;
}
