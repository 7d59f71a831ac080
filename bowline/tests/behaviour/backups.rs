//! Backups that the server makes by itself.

use std::path::Path;
use std::time::Duration;

use bowline_testkit::{Engine, TestServer, by_engine};

use crate::deliveries::until;
use crate::metrics::value;

const MADE: &str = "bowline_backups_total{outcome=\"success\"}";
const FAILED: &str = "bowline_backups_total{outcome=\"failure\"}";

/// The public key of a pair that `bowline backup keygen` makes.
fn recipient(directory: &Path) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bowline"));
    let output = command.args(["backup", "keygen"]).arg(directory.join("identity")).output().expect("the binary runs");
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

async fn count(server: &TestServer, metric: &str) -> i64 {
    value(&server.metrics().await, metric)
}

fn backups(archive: &Path) -> usize {
    std::fs::read_dir(archive.join("backups")).map_or(0, Iterator::count)
}

async fn backups_are_made_kept_and_tried_again_after_a_failure(engine: Engine) {
    let directory = tempfile::tempdir().expect("a scratch directory is made");
    let (archive, recipient) = (directory.path().join("archive"), recipient(directory.path()));
    let server = TestServer::start_with(engine, |options| {
        options.backup_to = archive.to_str().map(str::to_owned);
        options.backup_recipient = Some(recipient.clone());
        options.backup_every = Some("1s".into());
        options.backup_keep = Some(2);
    })
    .await;
    for made in 1..4 {
        until("a backup is made", async || count(&server, MADE).await == made).await;
        server.clock().advance(Duration::from_secs(2));
    }
    assert!(backups(&archive) <= 2, "older ones are removed");
    assert!(server.metrics().await.contains("bowline_backup_last_success_timestamp_seconds"));

    // A file where the directory was.
    std::fs::remove_dir_all(&archive).expect("the archive is gone");
    std::fs::write(&archive, "").expect("a file is in its place");
    server.clock().advance(Duration::from_secs(1000));
    until("a backup fails", async || count(&server, FAILED).await >= 1).await;
    std::fs::remove_file(&archive).expect("the file is gone");
    let made = count(&server, MADE).await;
    server.clock().advance(Duration::from_secs(1000));
    until("a backup is made again", async || count(&server, MADE).await > made).await;
    server.stop().await;
}

#[tokio::test]
async fn backups_need_a_key_and_a_place() {
    let directory = tempfile::tempdir().expect("a scratch directory is made");
    let archive = directory.path().join("archive").to_str().expect("UTF-8").to_owned();
    let data = directory.path().join("data").to_str().expect("UTF-8").to_owned();
    for (options, words) in [
        (vec!["--backup-every", "1h"], "need --backup-to"),
        (vec!["--backup-to", &archive], "needs --backup-recipient"),
        (vec!["--backup-to", &archive, "--backup-recipient", "key"], "begins with bowline-recipient-1:"),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bowline"));
        let command = command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir"]);
        let output = command.arg(&data).args(options).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{said}");
    }
}

by_engine!(backups_are_made_kept_and_tried_again_after_a_failure);
