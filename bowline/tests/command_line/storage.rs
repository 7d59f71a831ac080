//! The server as a process, and commands on its own storage.

use std::path::Path;
use std::process::{Output, Stdio};

use bowline_testkit::{Engine, TestServer};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::support::{ended, text};

async fn run(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.env_clear().current_dir(directory).args(arguments).output().await.expect("the binary runs")
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("a directory").next().is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_do_not_create_a_missing_database() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let there = home.path().join("there").to_string_lossy().into_owned();
    let commands: [&[&str]; 7] = [
        &["audit", "verify"],
        &["audit", "erase", "--resource", "1ec9a659ec22a8e53d136ed89f2a0db9ebdeb963"],
        &["keys", "list"],
        &["keys", "rotate"],
        &["operator", "token", "--reason", "a test", "--base-url", "http://127.0.0.1:8080"],
        &["operator", "login-url", "--reason", "a test"],
        &["operator", "providers", "list"],
    ];
    for command in commands {
        let output = run(home.path(), &[command, &["--data-dir", &there]].concat()).await;
        assert_eq!(ended(&output, 2), "", "{command:?}");
        let said = text(&output.stderr);
        assert!(said.contains(&there) && said.contains("--data-dir"), "{command:?}: {said}");
        assert!(is_empty(home.path()), "{command:?} made something");
    }
    ended(&run(home.path(), &["migrate", "--data-dir", &there]).await, 0);
    let verified = ended(&run(home.path(), &["audit", "verify", "--data-dir", &there]).await, 0);
    assert!(verified.starts_with("0 rows verified"), "{verified}");
    let token =
        ["operator", "token", "--reason", "a test", "--data-dir", &there, "--base-url", "http://127.0.0.1:8080"];
    assert!(ended(&run(home.path(), &token).await, 0).starts_with("ey"));

    // Half a backup: no other key is made for a database that has one.
    let key = Path::new(&there).join("key");
    std::fs::remove_file(&key).expect("the key is there");
    for command in ["migrate", "serve"] {
        let output = run(home.path(), &[command, "--data-dir", &there]).await;
        ended(&output, 1);
        assert!(text(&output.stderr).contains("key") && !key.exists(), "{}", text(&output.stderr));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedded_database_has_one_server_at_a_time() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let server = TestServer::start(Engine::Sqlite).await;
    let there = server.data_dir().to_string_lossy().into_owned();
    for arguments in [&["migrate"][..], &["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]] {
        let output = run(home.path(), &[arguments, &["--data-dir", &there]].concat()).await;
        assert_eq!(ended(&output, 2), "", "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(&there) && said.contains("another server") && said.contains("--data-dir"), "{said}");
    }
    // Commands work beside it.
    ended(&run(home.path(), &["audit", "verify", "--data-dir", &there]).await, 0);
    // One that has stopped leaves it to the next.
    server.restarted().await.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_option_that_is_refused_leaves_nothing_behind() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let serve = ["serve", "--data-dir", "data", "--blob-url", "s3://user:secret@bucket", "--listen", "127.0.0.1:0"];
    let output = run(home.path(), &serve).await;
    assert_eq!(ended(&output, 2), "");
    let said = text(&output.stderr);
    assert!(said.contains("--blob-url") && !said.contains("secret"), "{said}");
    assert!(is_empty(home.path()));
}

#[tokio::test]
async fn help_names_the_options_that_count() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    for command in [&["keys", "list"][..], &["audit", "verify"], &["operator", "token"], &["migrate"]] {
        let help = ended(&run(home.path(), &[command, &["--help"]].concat()).await, 0);
        assert!(help.contains("--data-dir") && help.contains("--key-file"), "{help}");
        assert!(!help.contains("--smtp-url") && !help.contains("--listen"), "{help}");
    }
}

#[tokio::test]
async fn completions_and_manuals_have_every_command() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    for shell in ["bash", "zsh", "fish"] {
        let script = ended(&run(home.path(), &["completion", shell]).await, 0);
        assert!(script.contains("BOWLINE_COMPLETE"), "{shell}: {script}");
    }
    for (words, candidate) in
        [(&["auth", "conf"][..], "configure-docker"), (&["auth", "configure-docker", "--hel"], "--helper-directory")]
    {
        let mut shell = Command::new(env!("CARGO_BIN_EXE_bowline"));
        shell.env_clear().env("HOME", home.path()).env("BOWLINE_COMPLETE", "fish").args(["--", "bowline"]).args(words);
        let candidates = ended(&shell.output().await.expect("the binary runs"), 0);
        assert!(candidates.lines().any(|line| line.split('\t').next() == Some(candidate)), "{words:?}: {candidates}");
    }
    ended(&run(home.path(), &["completion", "none"]).await, 2);
    // A stray variable of that name does not make commands do nothing.
    for (value, code) in [("tcsh", 2), ("1", 2), ("0", 0), ("", 0)] {
        let mut stray = Command::new(env!("CARGO_BIN_EXE_bowline"));
        stray.env_clear().env("HOME", home.path()).env("BOWLINE_COMPLETE", value).arg("version");
        let output = stray.output().await.expect("the binary runs");
        let printed = ended(&output, code);
        assert_eq!(printed.starts_with("bowline "), code == 0, "{value:?}: {printed}");
        assert_eq!(text(&output.stderr).contains("BOWLINE_COMPLETE"), code == 2, "{value:?}");
    }
    assert!(ended(&run(home.path(), &["man"]).await, 0).contains(".TH bowline 1"));
    ended(&run(home.path(), &["man", "--out", "pages"]).await, 0);
    for page in ["bowline.1", "bowline-auth-login.1", "bowline-serve.1"] {
        assert!(home.path().join("pages").join(page).exists(), "{page}");
    }
    let help = ended(&run(home.path(), &["--help"]).await, 0);
    assert!(help.contains("Exit codes:") && help.contains("BOWLINE_IDENTITY"), "{help}");
}

#[tokio::test]
async fn lists_are_tables_or_json() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    ended(&run(home.path(), &["migrate", "--data-dir", "data"]).await, 0);
    ended(&run(home.path(), &["keys", "rotate", "--data-dir", "data"]).await, 0);
    let keys: Value =
        serde_json::from_str(&ended(&run(home.path(), &["keys", "list", "--data-dir", "data", "-o", "json"]).await, 0))
            .expect("JSON");
    let keys = keys.as_array().expect("a list");
    assert!(keys.iter().any(|key| key["algorithm"] == "RS256" && key["state"] == "signs"), "{keys:?}");
    let providers = ["operator", "providers", "list", "--data-dir", "data"];
    assert_eq!(ended(&run(home.path(), &providers).await, 0), "ID\tISSUER\tCLIENT\tSECRET");
    assert_eq!(ended(&run(home.path(), &[&providers[..], &["-o", "json"]].concat()).await, 0), "[]");
}

/// The address on a line of what the server prints at its start.
fn printed<'a>(greeting: &'a str, name: &str) -> &'a str {
    let line = greeting.lines().find_map(|line| line.trim().strip_prefix(name)).expect("a line of the greeting");
    line.split_whitespace().next().expect("an address")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_the_registry_are_logged_and_counted_like_calls() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.env_clear().current_dir(home.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    let mut running = command.spawn().expect("the binary runs");
    let mut lines = BufReader::new(running.stdout.take().expect("a pipe")).lines();
    let mut greeting = String::new();
    while !greeting.contains("storage") {
        greeting += &lines.next_line().await.expect("a line").expect("the greeting goes on");
        greeting.push('\n');
    }
    let (api, admin) = (printed(&greeting, "API"), printed(&greeting, "admin"));
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let http = reqwest::Client::new();
    let asked = http.get(format!("{api}/v2/a/b/manifests/latest")).header("x-request-id", "request-7");
    let answer = asked.send().await.expect("an answer");
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["x-request-id"]),
        (401, &"request-7".parse().expect("text"))
    );
    assert_eq!(http.get(format!("{api}/token?scope=x")).send().await.expect("an answer").status(), 401);

    let metrics = http.get(format!("{admin}/metrics")).send().await.expect("an answer").text().await.expect("text");
    for name in ["oci.manifest.get", "oci.token"] {
        let line = format!("bowline_calls_total{{method=\"{name}\",code=\"16\"}} 1");
        assert!(metrics.contains(&line), "{metrics}");
    }
    assert!(metrics.contains("bowline_call_seconds_count{domain=\"oci\"} 2"), "{metrics}");
    running.start_kill().expect("it runs");
    let log = text(&running.wait_with_output().await.expect("it ends").stderr);
    let line = log.lines().find(|line| line.contains("request-7")).unwrap_or_else(|| panic!("no line: {log}"));
    for part in
        ["access: method=oci.manifest.get", "scope=a/b", "decision=\"unauthenticated\"", "micros=", "status=401"]
    {
        assert!(line.contains(part), "{part}: {line}");
    }
}
