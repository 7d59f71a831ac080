//! Commands on the server's own storage.

use std::path::Path;
use std::process::Output;

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
async fn a_database_that_is_not_there_is_not_made_by_whoever_looks_for_it() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let there = home.path().join("there").to_string_lossy().into_owned();
    let commands: [&[&str]; 7] = [
        &["audit", "verify"],
        &["audit", "erase", "--resource", "1ec9a659ec22a8e53d136ed89f2a0db9ebdeb963"],
        &["keys", "list"],
        &["keys", "rotate"],
        &["operator", "token", "--base-url", "http://127.0.0.1:8080"],
        &["operator", "login-url"],
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
    let token = ["operator", "token", "--data-dir", &there, "--base-url", "http://127.0.0.1:8080"];
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
