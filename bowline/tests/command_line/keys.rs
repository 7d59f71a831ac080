//! Signing keys: made, scheduled, revoked and sealed again by command, while a server runs or not.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_core::Error;
use bowline_testkit::{Actor, Engine, TestServer, by_engine, engines};
use serde_json::Value;
use tokio::process::Command;

use crate::support::{ended, text};

const MINUTE: Duration = Duration::from_secs(60);

async fn run(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.env_clear().current_dir(directory).args(arguments).output().await.expect("the binary runs")
}

/// The storage of a server, as its commands name it.
async fn on(server: &TestServer, arguments: &[&str]) -> Output {
    let storage = server.storage_arguments();
    let storage: Vec<&str> = storage.iter().map(String::as_str).collect();
    run(&server.data_dir(), &[arguments, &storage].concat()).await
}

/// The keys for tokens of a list.
fn keys(output: &Output) -> Vec<Value> {
    all_keys(output).into_iter().filter(|key| !is_of_packages(key)).collect()
}

fn all_keys(output: &Output) -> Vec<Value> {
    let list: Value = serde_json::from_str(&ended(output, 0)).expect("JSON");
    list.as_array().expect("a list").clone()
}

fn is_of_packages(key: &Value) -> bool {
    key["kid"].as_str().expect("a key id").starts_with("SHA256:")
}

fn algorithm_of(token: &str) -> String {
    let header = token.split('.').next().expect("a header");
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).expect("base64")).expect("JSON");
    header["alg"].as_str().expect("an algorithm").to_owned()
}

/// Asks again until the status is the expected one.
async fn until_status(caller: &Actor, expected: u16) {
    for _ in 0..100 {
        if caller.rest("GET", "/iam/v2/roles", None).await.status == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the status is not {expected} after ten seconds");
}

/// Waits until the server has been idle for so long that its other leases have ended.
async fn until_idle(server: &TestServer) {
    for _ in 0..300 {
        server.clock().catch_up();
        let now = server.clock().seconds() * 1_000_000;
        let read = server.server().parts().storage.db.read(move |tx| {
            Box::pin(async move {
                let sql = "SELECT (SELECT count(*) FROM leases WHERE name = 'audit numbers' AND until > $1),
                                  (SELECT coalesce(max(until), $1) FROM leases WHERE name LIKE 'server %')";
                let params = [bowline_store::Value::Int(now)];
                tx.query_opt(sql, &params, |row| Ok::<_, Error>((row.int(0)?, row.int(1)?))).await
            })
        });
        let (numbering, until) = read.await.expect("the leases are read").expect("a row");
        // The embedded engine has no leases: there the lock of the directory counts.
        if numbering == 0 && (until > now + 6_000_000 || until == now) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the server has work after thirty seconds");
}

#[tokio::test]
async fn the_first_key_has_the_algorithm_asked_for() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    for (name, arguments, expected) in [
        ("rotate", &["keys", "rotate"][..], "RS256"),
        ("rotate-rs", &["keys", "rotate", "--algorithm", "rs256"], "RS256"),
        ("rotate-es", &["keys", "rotate", "--algorithm", "es256"], "ES256"),
        ("revoke", &["keys", "revoke", "--all", "--algorithm", "es256"], "ES256"),
        ("token", &["operator", "token", "--reason", "a test", "--base-url", "http://127.0.0.1:1"], "RS256"),
        (
            "token-es",
            &[
                "operator",
                "token",
                "--reason",
                "a test",
                "--base-url",
                "http://127.0.0.1:1",
                "--token-algorithm",
                "es256",
            ],
            "ES256",
        ),
    ] {
        ended(&run(home.path(), &["migrate", "--data-dir", name]).await, 0);
        let printed = ended(&run(home.path(), &[arguments, &["--data-dir", name]].concat()).await, 0);
        if printed.starts_with("ey") {
            assert_eq!(algorithm_of(&printed), expected, "{name}");
        }
        let keys = keys(&run(home.path(), &["keys", "list", "--data-dir", name, "-o", "json"]).await);
        assert_eq!(keys.len(), 1, "{name}: {keys:?}");
        assert_eq!((&keys[0]["algorithm"], &keys[0]["state"]), (&expected.into(), &"signs".into()), "{name}");
    }
    // A later rotation keeps to the algorithm in use.
    let rotated = run(home.path(), &["keys", "rotate", "--data-dir", "rotate-es"]).await;
    assert!(ended(&rotated, 0).contains("signs in 600 s"));
    let keys = keys(&run(home.path(), &["keys", "list", "--data-dir", "rotate-es", "-o", "json"]).await);
    assert!(keys.iter().all(|key| key["algorithm"] == "ES256"), "{keys:?}");
}

async fn a_revoked_key_ends_its_tokens_on_a_running_server(engine: Engine) {
    let server = TestServer::start(engine).await;
    let org = server.organization("acme").await;
    let caller = server.actor("viewer", &org).await;
    until_status(&caller, 200).await;
    let unknown = on(&server, &["keys", "revoke", "-nosuchkey"]).await;
    ended(&unknown, 2);
    assert!(text(&unknown.stderr).contains("bowline keys list"), "{}", text(&unknown.stderr));
    until_status(&caller, 200).await;

    let listed = keys(&on(&server, &["keys", "list", "-o", "json"]).await);
    let kid = listed[0]["kid"].as_str().expect("a key id");
    let said = ended(&on(&server, &["keys", "revoke", kid]).await, 0);
    assert!(said.contains(&format!("{kid} is revoked")), "{said}");
    server.clock().advance(MINUTE);
    until_status(&caller, 401).await;
    until_status(&server.operator().await, 200).await;
    let listed = keys(&on(&server, &["keys", "list", "-o", "json"]).await);
    assert!(listed.len() == 1 && listed[0]["kid"] != kid, "{listed:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_server_rotates_by_schedule() {
    let server = TestServer::start(engines()[0]).await;
    let refused = on(&server, &["keys", "rotate", "--every", "59m"]).await;
    ended(&refused, 2);
    assert!(text(&refused.stderr).contains("1h at least"), "{}", text(&refused.stderr));
    ended(&on(&server, &["keys", "rotate", "--every", "2h", "--algorithm", "rs256"]).await, 0);
    let listed = keys(&on(&server, &["keys", "list", "-o", "json"]).await);
    let state = listed[0]["state"].as_str().expect("a state");
    assert!(listed.len() == 1 && state.starts_with("signs; rotates in 7"), "{listed:?}");

    server.clock().advance(130 * MINUTE);
    let mut algorithms = Vec::new();
    for _ in 0..100 {
        let listed = keys(&on(&server, &["keys", "list", "-o", "json"]).await);
        algorithms = listed.iter().map(|key| key["algorithm"].as_str().expect("text").to_owned()).collect();
        if algorithms.len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(algorithms, ["ES256", "RS256"]);
    ended(&on(&server, &["keys", "rotate", "--every", "never"]).await, 0);
    server.stop().await;
}

async fn keys_of_packages_are_rotated_and_revoked(engine: Engine) {
    let server = TestServer::start(engine).await;
    let rotated = ended(&on(&server, &["keys", "rotate", "--packages"]).await, 0);
    let (kid, rest) = rotated.split_once(' ').expect("an id");
    assert!(kid.starts_with("SHA256:") && rest.starts_with("signs packages"), "{rotated}");
    ended(&on(&server, &["keys", "rotate", "--packages", "--every", "2h"]).await, 2);
    let revoked = ended(&on(&server, &["keys", "revoke", kid]).await, 0);
    let lines: Vec<&str> = revoked.lines().collect();
    let [gone, signs, _] = lines.as_slice() else { panic!("{revoked}") };
    assert!(*gone == format!("{kid} is revoked") && signs.ends_with(" signs packages"), "{revoked}");
    let again = on(&server, &["keys", "revoke", kid]).await;
    ended(&again, 2);
    assert!(text(&again.stderr).contains("for packages"), "{}", text(&again.stderr));
    ended(&on(&server, &["keys", "rotate", "--packages"]).await, 0);
    let mut listed = all_keys(&on(&server, &["keys", "list", "-o", "json"]).await);
    listed.retain(is_of_packages);
    let states: Vec<&str> = listed.iter().map(|key| key["state"].as_str().expect("a state")).collect();
    assert_eq!(states, ["signs packages", "verifies packages", "verifies packages"], "{listed:?}");
    // All of them go with those of tokens.
    let revoked = ended(&on(&server, &["keys", "revoke", "--all"]).await, 0);
    for key in &listed {
        assert!(revoked.contains(&format!("{} is revoked", key["kid"].as_str().expect("a key id"))), "{revoked}");
    }
    let all = all_keys(&on(&server, &["keys", "list", "-o", "json"]).await);
    let states: Vec<&str> = all.iter().map(|key| key["state"].as_str().expect("a state")).collect();
    assert!(matches!(states.as_slice(), ["signs", "signs packages"]), "{all:?}");
    assert!(all.iter().all(|key| !listed.contains(key)), "{all:?}");
    server.stop().await;
}

async fn everything_sealed_opens_with_the_new_key_file_and_nothing_with_the_old_one(engine: Engine) {
    let server = TestServer::start(engine).await;
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let new = home.path().join("new-key");
    until_idle(&server).await;
    let rewrap = ["keys", "rewrap", "--new-key-file", new.to_str().expect("text")];
    let beside = on(&server, &rewrap).await;
    ended(&beside, 2);
    assert!(text(&beside.stderr).contains("server"), "{}", text(&beside.stderr));
    assert!(!new.exists());

    let server = server
        .restarted_after(async |storage: Vec<String>| {
            let storage: Vec<&str> = storage.iter().map(String::as_str).collect();
            let arguments = [&rewrap[..], &storage].concat();
            let output = run(home.path(), &arguments).await;
            assert!(ended(&output, 0).contains("values are sealed with"), "{}", text(&output.stdout));
            // The old key opens nothing.
            let stale = run(home.path(), &[&["keys", "list"][..], &storage].concat()).await;
            ended(&stale, 1);
            assert!(text(&stale.stderr).contains("key file"), "{}", text(&stale.stderr));
            new.clone()
        })
        .await;
    until_status(&server.operator().await, 200).await;
    server.stop().await;
}

async fn a_server_that_was_taken_for_stopped_stops(engine: Engine) {
    let server = TestServer::start(engine).await;
    let removed = server.server().parts().storage.db.write(|tx| {
        Box::pin(async move { Ok::<_, Error>(tx.execute("DELETE FROM leases WHERE name LIKE 'server %'", &[]).await?) })
    });
    // The embedded engine has the lock of the directory in place of rows.
    if removed.await.expect("the row is removed") == 0 {
        return;
    }
    let noticed = tokio::time::timeout(MINUTE, server.server().unregistered()).await;
    assert!(noticed.is_ok(), "the server goes on after a minute");
}

by_engine!(
    multi_thread:
    a_revoked_key_ends_its_tokens_on_a_running_server,
    everything_sealed_opens_with_the_new_key_file_and_nothing_with_the_old_one,
    keys_of_packages_are_rotated_and_revoked,
    a_server_that_was_taken_for_stopped_stops
);
