//! `bowline serve --demo`: what it fills, what it serves, and where it refuses to.

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::{ended, text};

const ANY_PORTS: [&str; 4] = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
const DEMO: [&str; 4] = ["serve", "--demo", "--data-dir", "demo"];

fn bowline(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.env_clear().env("HOME", home).current_dir(home).args(arguments).kill_on_drop(true);
    command
}

async fn run(home: &Path, arguments: &[&str]) -> Output {
    bowline(home, arguments).output().await.expect("the binary runs")
}

/// A server with demonstration data: what it printed at its start, and the address of its API.
struct Demo {
    process: Child,
    printed: String,
    api: String,
}

impl Demo {
    async fn start(home: &Path, arguments: &[&str]) -> Demo {
        let mut command = bowline(home, &[arguments, &ANY_PORTS].concat());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary runs");
        let mut lines = BufReader::new(process.stdout.as_mut().expect("a pipe")).lines();
        let mut printed = String::new();
        while !printed.contains("groups create") {
            printed += &lines.next_line().await.expect("a line").expect("the server starts");
            printed.push('\n');
        }
        let api = printed.split_once("API").and_then(|(_, rest)| rest.split_whitespace().next()).expect("an address");
        let api = api.to_owned();
        Demo { process, printed, api }
    }

    /// What a command prints as JSON, called as the operator.
    async fn json(&self, home: &Path, arguments: &[&str]) -> Value {
        let token = ended(&run(home, &["operator", "token", "--reason", "test", "--data-dir", "demo"]).await, 0);
        let mut command = bowline(home, &[arguments, &["-o", "json", "--api", &self.api]].concat());
        let output = command.env("BOWLINE_TOKEN", token).output().await.expect("the binary runs");
        serde_json::from_str(&ended(&output, 0)).expect("JSON")
    }

    async fn stop(mut self) {
        self.process.kill().await.expect("the server ends");
    }
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(|item| item["name"].as_str()).collect()
}

/// The error of a command that refuses.
#[track_caller]
fn refusal(output: &Output, code: i32) -> String {
    assert_eq!(ended(output, code), "");
    text(&output.stderr)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demonstration_is_filled_at_the_first_start_and_served_at_the_next() {
    let scratch = tempfile::tempdir().expect("a scratch directory is made");
    let home = scratch.path();
    let demo = Demo::start(home, &DEMO).await;
    assert!(demo.printed.contains("DEMONSTRATION DATA"), "{}", demo.printed);
    let groups = demo.json(home, &["iam", "groups", "list"]).await;
    for name in ["acme", "platform", "payments", "security"] {
        assert!(names(&groups).contains(&name), "{name}: {groups}");
    }
    let repositories = demo.json(home, &["registry", "repos", "list", "acme"]).await;
    assert_eq!(names(&repositories).len(), 14, "{repositories}");
    let tags = demo.json(home, &["registry", "tags", "list", "acme/payments/api"]).await;
    assert!(names(&tags).len() > 5 && names(&tags).contains(&"latest"), "{tags}");
    let marked = home.join("demo/DEMONSTRATION");
    let filled_at = std::fs::metadata(&marked).expect("the mark").modified().expect("a time");
    demo.stop().await;

    // Again, and without the flag: the same data, with the banner.
    for arguments in [&DEMO[..], &["serve", "--data-dir", "demo"]] {
        let again = Demo::start(home, arguments).await;
        assert!(again.printed.contains("DEMONSTRATION DATA"), "{}", again.printed);
        assert_eq!(again.json(home, &["registry", "repos", "list", "acme"]).await, repositories);
        again.stop().await;
    }
    assert_eq!(std::fs::metadata(&marked).expect("the mark").modified().expect("a time"), filled_at);
}

#[tokio::test]
async fn a_demonstration_is_refused_beside_other_data() {
    let scratch = tempfile::tempdir().expect("a scratch directory is made");
    let home = scratch.path();
    std::fs::create_dir(home.join("demo")).expect("a directory");
    std::fs::write(home.join("demo/note"), "mine").expect("a file");
    let demo = [&DEMO[..], &ANY_PORTS].concat();
    let refused = refusal(&run(home, &demo).await, 1);
    assert!(refused.contains("has other data") && refused.contains("--data-dir"), "{refused}");
    let left: Vec<_> = std::fs::read_dir(home.join("demo")).expect("a directory").collect();
    assert_eq!(left.len(), 1, "nothing was made");

    std::fs::write(home.join("demo/DEMONSTRATION.incomplete"), "").expect("a file");
    let refused = refusal(&run(home, &demo).await, 1);
    assert!(refused.contains("was interrupted") && refused.contains("rm -r demo"), "{refused}");

    for (flag, value) in [("--database-url", "postgres://u@127.0.0.1:1/d"), ("--blob-url", "s3://bucket/prefix")] {
        let refused = refusal(&run(home, &["serve", "--demo", flag, value]).await, 2);
        assert!(refused.contains(flag) && refused.contains("hint: "), "{refused}");
    }
    assert!(!home.join("bowline-demo").exists());
}
