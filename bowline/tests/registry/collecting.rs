//! Garbage collection: what goes and what stays.

use std::process::Command;
use std::time::Duration;

use bowline_core::{Clock as _, Error};
use bowline_server::{Collected, Plan, collect};
use bowline_testkit::{Engine, TestServer, each_engine};

use crate::bytes::kept;
use crate::charts::push_chart;
use crate::support::*;

const GRACE: Duration = Duration::from_secs(70);

async fn collected(server: &TestServer, is_dry_run: bool) -> Collected {
    let parts = server.server().parts();
    let plan = Plan { until: server.clock().now() - GRACE.as_micros() as i64, is_dry_run };
    collect(&parts.storage.db, &parts.content, plan).await.unwrap()
}

fn past_the_grace(server: &TestServer) {
    server.clock().advance(GRACE + Duration::from_secs(1));
}

async fn is_there(client: &Client, name: &str, content: &[u8]) -> bool {
    client.send(&format!("HEAD /v2/{name}/blobs/{}", digest(content)), &[], b"").await.status == 200
}

async fn rows(server: &TestServer, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    let db = &server.server().parts().storage.db;
    let read = db
        .read(move |tx| Box::pin(async move { tx.query_opt(&sql, &[], |row| row.int(0).map_err(Error::from)).await }));
    read.await.unwrap().unwrap()
}

async fn what_no_manifest_names_goes_after_the_grace_and_its_bytes_with_it(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    client.image(&name, "1", b"a layer").await;
    client.blob(&name, b"nobody names it").await;
    client.blob(&format!("{org}/other"), b"nobody names it").await;
    assert_eq!(collected(server, false).await, Collected::default(), "it may be named yet");
    past_the_grace(server);
    client.blob(&format!("{org}/other"), b"nobody names it").await;
    let would = Collected { links: 1, ..Collected::default() };
    assert_eq!((collected(server, true).await, collected(server, false).await), (would, would));
    assert!(!is_there(&client, &name, b"nobody names it").await);
    past_the_grace(server);
    let would = Collected { links: 1, blobs: 1, bytes: 15, ..Collected::default() };
    assert_eq!((collected(server, true).await, collected(server, false).await), (would, would));
    assert_eq!(kept(server).len(), 2);
    assert_eq!(client.get(&format!("/v2/{name}/manifests/1")).await.status, 200);
    assert!(is_there(&client, &name, b"a layer").await);
}

async fn manifests_go_with_the_last_repository_that_holds_them(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (one, two) = (format!("{org}/one"), format!("{org}/two"));
    let of = digest_of(&client.image(&one, "1", b"a layer").await);
    client.image(&two, "1", b"a layer").await;
    past_the_grace(server);
    client.send(&format!("DELETE /v2/{one}/manifests/{of}"), &[], b"").await;
    assert_eq!(collected(server, false).await, Collected { links: 2, ..Collected::default() });
    let repo = repo_uid(server, "two").await;
    let operator = server.operator().await;
    assert_eq!(operator.rest("DELETE", &format!("/registry/v2/repos/{repo}"), None).await.status, 200);
    let bytes = (CONFIG_BYTES.len() + 7) as u64;
    let would = Collected { manifests: 1, blobs: 2, bytes, ..Collected::default() };
    assert_eq!((collected(server, true).await, collected(server, false).await), (would, would));
    for table in ["manifests", "manifest_references", "image_configs", "blobs"] {
        assert_eq!(rows(server, table).await, 0, "{table}");
    }
    let chart = push_chart(&client, &one, "chart", Some("- image: r.example/app")).await;
    past_the_grace(server);
    let client = crate::support::client(server, "registry.push", &org).await;
    client.send(&format!("DELETE /v2/{one}/manifests/{}", digest_of(&chart)), &[], b"").await;
    assert_eq!((rows(server, "charts").await, rows(server, "chart_images").await), (1, 1));
    collected(server, false).await;
    assert_eq!((rows(server, "charts").await, rows(server, "chart_images").await), (0, 0));
    client.image(&one, "1", b"a layer").await;
    assert_eq!(client.get(&format!("/v2/{one}/manifests/1")).await.status, 200);
}

async fn a_requested_blob_waits_for_its_manifest_again(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    client.blob(&name, CONFIG_BYTES).await;
    client.blob(&name, b"a layer").await;
    past_the_grace(server);
    assert!(is_there(&client, &name, CONFIG_BYTES).await);
    let mount = format!("POST /v2/{name}/blobs/uploads/?mount={}", digest(b"a layer"));
    assert_eq!(client.send(&mount, &[], b"").await.status, 201);
    assert_eq!(collected(server, false).await, Collected::default());
    assert_eq!(client.put(&name, "1", &image(b"a layer")).await.status, 201);
    // Who may not push keeps nothing.
    client.blob(&name, b"another").await;
    let reader = crate::support::client(server, "registry.pull", &org).await;
    past_the_grace(server);
    assert!(is_there(&reader, &name, b"another").await);
    assert_eq!(collected(server, false).await.links, 1);
}

async fn unreferenced_files_are_collected_and_open_uploads_stay(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let at = client.begin(&format!("{org}/app")).await;
    client.send(&format!("PATCH {at}"), &[], b"hello").await;
    let id = at.rsplit('/').next().unwrap();
    let content = &server.server().parts().content;
    let of = bowline_content::Digest::parse(&digest(b"hello")).unwrap();
    // As if the server had been killed before the row was written: the upload may still become the blob.
    content.finish(id, &of).await.unwrap();
    let stray = server.data_dir().join("blobs/sha256/aa").join("aa".repeat(32) + "-0123");
    std::fs::create_dir_all(stray.parent().unwrap()).unwrap();
    std::fs::write(&stray, b"xyz").unwrap();
    let would = Collected { files: 1, bytes: 3, ..Collected::default() };
    assert_eq!((collected(server, true).await, collected(server, false).await), (would, would));
    assert_eq!(content.size(&of, id).await.unwrap(), Some(5));
    client.send(&format!("DELETE {at}"), &[], b"").await;
    assert_eq!(collected(server, false).await, Collected { files: 1, bytes: 5, ..Collected::default() });
    assert_eq!(kept(server).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_collect_and_verify_beside_the_server() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (org, client) = pusher(&server, "acme").await;
    let name = format!("{org}/app");
    client.image(&name, "1", b"a layer").await;
    client.blob(&name, b"nobody names it").await;
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command.arg("registry").args(arguments).arg("--data-dir").arg(server.data_dir());
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, printed) = run(&["gc"]);
    assert!(code == 0 && printed.ends_with("0 bytes gone\n"), "{printed}");
    // The command's clock continues.
    std::thread::sleep(Duration::from_millis(1100));
    let (code, printed) = run(&["gc", "--dry-run", "--grace", "1s"]);
    assert!(code == 0 && printed.starts_with("1 blobs") && printed.ends_with("15 bytes would go\n"), "{printed}");
    let (code, printed) = run(&["gc", "--grace", "1s"]);
    assert!(code == 0 && printed.ends_with("15 bytes gone\n"), "{printed}");
    let (code, printed) = run(&["verify"]);
    let whole = format!("2 blobs verified, {} bytes, 0 bad\n", CONFIG_BYTES.len() + 7);
    assert_eq!((code, printed), (0, whole));
    let all = kept(&server);
    std::fs::write(&all[0], b"damaged").unwrap();
    std::fs::remove_file(&all[1]).unwrap();
    let (code, printed) = run(&["verify"]);
    let repo = repo_uid(&server, "app").await;
    assert!(code == 1 && printed.matches(&format!("  in {repo} app\n")).count() == 2, "{printed}");
    assert!(printed.contains(" is missing\n"), "{printed}");
    let damaged = format!(" is damaged: its bytes are {}\n", digest(b"damaged"));
    assert!(printed.contains(&damaged) && printed.contains("2 bad\n"), "{printed}");
    let (code, _) = run(&["gc", "--grace", "soon"]);
    assert_eq!(code, 2);
    // To another database all of it would be garbage.
    std::fs::write(server.data_dir().join("blobs/owner"), "somebody else").unwrap();
    let (code, printed) = run(&["gc"]);
    assert_eq!((code, printed.as_str(), kept(&server).len()), (2, "", 1));
    server.stop().await;
}

each_engine!(
    multi_thread:
    what_no_manifest_names_goes_after_the_grace_and_its_bytes_with_it,
    manifests_go_with_the_last_repository_that_holds_them,
    a_requested_blob_waits_for_its_manifest_again,
    unreferenced_files_are_collected_and_open_uploads_stay
);
