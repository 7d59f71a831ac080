//! A disk that is nearly full, by a probe of the test's own: what is refused, with which cause, and what still works.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline_contract::v2::registry;
use bowline_contract::v2::registry::rpc::repos_service::CreateRepo;
use bowline_store::{DiskProbe, Space};
use bowline_testkit::{Engine, RestReply, TestServer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::*;

const PLENTY: u64 = 1 << 40;
const MIB: u64 = 1 << 20;

/// A page of the admin listener.
async fn admin(server: &TestServer, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(server.server().admin_address()).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut page = String::new();
    stream.read_to_string(&mut page).await.expect("a page");
    page
}

#[track_caller]
fn is_full(reply: &RestReply) {
    assert_eq!(reply.status, 507, "{}", reply.text());
    assert!(reply.header("retry-after").is_some(), "{:?}", reply.headers);
    assert!(reply.text().contains("STORAGE_FULL"), "{}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nearly_full_disk_serves_reads_and_deletions_and_names_the_cause() {
    let free = Arc::new(AtomicU64::new(PLENTY));
    let shown = free.clone();
    let server = TestServer::start_with(Engine::Sqlite, |options| {
        options.disk_reserve = Some(1);
        options.disk_probe = DiskProbe::new(move |_| Ok(Space { total: PLENTY, free: shown.load(Ordering::Relaxed) }));
    })
    .await;
    let (org, client) = pusher(&server, "acme").await;
    let name = format!("{org}/app");
    let manifest = client.image(&name, "v1", b"one").await;
    let upload = client.begin(&name).await;
    let doomed = [server.repo(&org, "doomed").await, server.repo(&org, "next").await];
    let (operator, stranger) = (server.operator().await, server.stranger().await);
    let room = server.server().parts().storage.db.room().expect("SQLite has one").clone();
    assert_eq!((room.held(), room.is_full()), (MIB, false));

    free.store(MIB / 4 - 1, Ordering::Relaxed);
    room.look();
    let create = format!("/registry/v2/repos/{org}");
    let refused = operator.rest("POST", &create, Some(json!({ "name": "more" }))).await;
    is_full(&refused);
    assert_eq!(refused.json()["code"], 8);
    let repo = registry::Repo { name: "more".into(), ..registry::Repo::default() };
    let request = registry::CreateRepoRequest { parent: org.clone(), repo: Some(repo) };
    let refused = operator.grpc::<CreateRepo>(request).await.expect_err("the disk is full");
    assert_eq!(refused.code, 8, "{refused:?}");
    let denied = stranger.rest("POST", &create, Some(json!({ "name": "more" }))).await;
    assert_eq!(denied.status, 403, "{}", denied.text());

    // The distribution front.
    let two = digest(b"two");
    let at_once = client.send(&format!("POST /v2/{name}/blobs/uploads/?digest={two}"), &[], b"two").await;
    is_full(&at_once);
    assert_eq!(code(&at_once, 507), "DENIED");
    is_full(&client.send(&format!("PATCH {upload}"), &[], b"two").await);
    is_full(&client.put(&name, "v2", &manifest).await);
    assert_eq!(client.get(&format!("/v2/{name}/manifests/v1")).await.status, 200);
    assert_eq!(client.send(&format!("DELETE {upload}"), &[], b"").await.status, 204);
    assert_eq!(client.send(&format!("DELETE /v2/{name}/manifests/v1"), &[], b"").await.status, 202);

    // The operator's token, which has a row in the audit log, and a deletion.
    let operator = server.operator().await;
    let deleted = operator.rest("DELETE", &format!("/registry/v2/repos/{}", doomed[0]), None).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    assert!(admin(&server, "/readyz").await.ends_with("are served\n"));
    let metrics = admin(&server, "/metrics").await;
    assert!(metrics.contains("bowline_disk_full 1"), "{metrics}");
    assert_eq!(room.held(), MIB, "there was room enough without the reserve");

    // Others have taken the rest.
    free.store(0, Ordering::Relaxed);
    let deleted = operator.rest("DELETE", &format!("/registry/v2/repos/{}", doomed[1]), None).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    assert!(room.held() < MIB, "a part of the reserve was given back");

    free.store(PLENTY, Ordering::Relaxed);
    room.look();
    assert_eq!((room.held(), room.is_full()), (MIB, false));
    client.image(&name, "v2", b"two").await;
    assert!(admin(&server, "/readyz").await.ends_with("\r\n\r\nok\n"));
    assert!(admin(&server, "/metrics").await.contains("bowline_disk_full 0"));
    server.stop().await;
}
