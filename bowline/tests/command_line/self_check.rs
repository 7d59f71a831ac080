//! `bowline self-check`: what it finds, and that it leaves everything as it is.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use bowline_testkit::{Engine, TestServer};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixDatagram;
use tokio::process::Command;

use crate::support::{ended, text};

fn bowline(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.env_clear().current_dir(home).kill_on_drop(true);
    command
}

async fn check(home: &Path, arguments: &[&str]) -> (Output, Vec<Value>) {
    let output = bowline(home).args(["self-check", "-o", "json"]).args(arguments).output().await;
    let output = output.expect("the binary runs");
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    (output, findings)
}

/// Level and finding of a subject.
#[track_caller]
fn of<'a>(findings: &'a [Value], subject: &str) -> Vec<(&'a str, &'a str)> {
    let text = |finding: &'a Value, member: &str| finding[member].as_str().expect("a text");
    let ours = findings.iter().filter(|finding| finding["subject"] == subject);
    ours.map(|finding| (text(finding, "level"), text(finding, "finding"))).collect()
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a scratch directory is made")
}

#[tokio::test]
async fn an_empty_directory_is_fine_and_stays_empty() {
    let home = scratch();
    let (output, findings) = check(home.path(), &["--data-dir", "data"]).await;
    assert_eq!(output.status.code(), Some(0), "{findings:?}");
    assert_eq!(of(&findings, "database"), [("ok", "none in data yet: the first start makes it")]);
    assert!(std::fs::read_dir(home.path()).expect("a directory").next().is_none());
}

#[tokio::test]
async fn addresses_that_others_cannot_use_or_should_not_are_warnings() {
    let home = scratch();
    let (output, findings) = check(home.path(), &["--listen", "0.0.0.0:8080", "--admin-listen", "0.0.0.0:8081"]).await;
    assert_eq!(output.status.code(), Some(0), "warnings are no failure");
    let [(_, address), made_from, admin] = of(&findings, "configuration")[..] else { panic!("{findings:?}") };
    assert!(address.contains("http://0.0.0.0:8080"), "{address}");
    assert!(made_from.0 == "warning" && made_from.1.contains("--listen"), "{made_from:?}");
    assert!(admin.0 == "warning" && admin.1.contains("admin pages"), "{admin:?}");

    let plain = ["--listen", "0.0.0.0:8080", "--base-url", "http://api.example.com"];
    let (_, findings) = check(home.path(), &plain).await;
    assert!(of(&findings, "configuration").iter().any(|(_, text)| text.contains("unencrypted")), "{findings:?}");
}

#[tokio::test]
async fn options_that_contradict_each_other_fail_with_the_remedy() {
    let home = scratch();
    let (output, findings) = check(home.path(), &["--tls-cert", "absent.pem", "--gc-every", "soon"]).await;
    assert_eq!(output.status.code(), Some(1));
    let all: Vec<&str> =
        ["configuration", "tls"].iter().flat_map(|subject| of(&findings, subject)).map(|(_, text)| text).collect();
    assert!(all.iter().any(|text| text.contains("--gc-every")), "{findings:?}");
    assert!(all.iter().any(|text| text.contains("--tls-key")), "{findings:?}");
    assert!(text(&output.stderr).contains("2 checks failed"), "{}", text(&output.stderr));
}

#[tokio::test]
async fn a_wrong_key_file_fails() {
    let home = scratch();
    for command in [&["migrate"][..], &["keys", "rotate"]] {
        ended(
            &bowline(home.path()).args(command).args(["--data-dir", "data"]).output().await.expect("the binary runs"),
            0,
        );
    }
    let (output, findings) = check(home.path(), &["--data-dir", "data"]).await;
    assert_eq!(output.status.code(), Some(0), "{findings:?}");
    assert_eq!(of(&findings, "keys"), [("ok", "the key file opens what is stored")]);

    let key = home.path().join("data/key");
    std::fs::write(&key, [7; 32]).expect("the key is overwritten");
    let (output, findings) = check(home.path(), &["--data-dir", "data"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(of(&findings, "keys")[0].0, "failure", "{findings:?}");

    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("the mode is set");
    let (_, findings) = check(home.path(), &["--data-dir", "data"]).await;
    assert!(of(&findings, "database")[0].1.contains("others can read the key"), "{findings:?}");
}

#[tokio::test]
async fn readiness_is_that_of_the_running_server() {
    let server = TestServer::start(Engine::Sqlite).await;
    let home = scratch();
    let url = format!("http://{}", server.server().admin_address());
    let ready =
        async || bowline(home.path()).args(["self-check", "--ready", &url]).output().await.expect("the binary runs");
    assert_eq!(ended(&ready().await, 0), "");
    server.stop().await;
    let output = ready().await;
    ended(&output, 1);
    assert!(text(&output.stderr).contains("is not ready"), "{}", text(&output.stderr));
    let output = bowline(home.path()).args(["self-check", "--ready", "127.0.0.1"]).output().await;
    ended(&output.expect("the binary runs"), 2);
}

/// As systemd runs it: it is notified when the server serves and when it stops, and the log has the warnings.
#[tokio::test]
async fn a_start_tells_its_supervisor_and_warns() {
    let home = scratch();
    let socket = UnixDatagram::bind(home.path().join("notify")).expect("a socket");
    let mut command = bowline(home.path());
    command.env("NOTIFY_SOCKET", home.path().join("notify")).stdout(Stdio::null()).stderr(Stdio::piped());
    command.args(["serve", "--data-dir", "data", "--listen", "0.0.0.0:0", "--admin-listen", "127.0.0.1:0"]);
    let mut running = command.spawn().expect("the binary runs");
    let mut lines = BufReader::new(running.stderr.take().expect("a pipe")).lines();
    let said = async || {
        let mut buffer = [0; 64];
        let length = tokio::time::timeout(Duration::from_secs(20), socket.recv(&mut buffer)).await;
        String::from_utf8_lossy(&buffer[..length.expect("it speaks").expect("a message")]).into_owned()
    };
    assert_eq!(said().await, "READY=1");
    let line = lines.next_line().await.expect("a line").expect("a warning");
    assert!(line.contains("WARN") && line.contains("--listen (0.0.0.0:0)") && line.contains("--base-url"), "{line}");
    let id = running.id().expect("it runs").to_string();
    assert!(Command::new("kill").arg(id).status().await.expect("kill runs").success());
    assert_eq!(said().await, "STOPPING=1");
    assert!(running.wait().await.expect("it ends").success());
}
