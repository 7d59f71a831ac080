//! A disk that is full or read-only: writes are refused for a while, reads continue, and no one restarts anything.

use bowline_core::Error;
use bowline_testkit::{Engine, TestServer};
use serde_json::{Value, json};

use crate::support::{inventory, log, number, ok, rejected};

/// Runs a pragma on the connection that writes.
async fn pragma(server: &TestServer, text: String) -> i64 {
    let write = server.server().parts().storage.db.write(move |tx| {
        let text = text.clone();
        Box::pin(async move { tx.query_opt(&text, &[], |row| row.int(0).map_err(Error::from)).await })
    });
    write.await.expect("the pragma is taken").unwrap_or_default()
}

#[tokio::test]
async fn a_full_disk_refuses_writes_until_there_is_room() {
    log();
    let server = TestServer::start(Engine::Sqlite).await;
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let pages = number(&server, "PRAGMA page_count").await;
    assert_eq!(pragma(&server, format!("PRAGMA max_page_count = {pages}")).await, pages);
    // The pages that the file has take a while to fill.
    let create = format!("POST /registry/v2/repos/{org}");
    let body = |n: usize| json!({ "name": format!("r{n}"), "description": "d".repeat(500) });
    let mut full = None;
    for n in 0..500 {
        if crate::support::call(&operator, &create, body(n)).await.status != 200 {
            full = Some(n);
            break;
        }
    }
    let n = full.expect("the disk is full at some time");
    let before = inventory(&server).await;
    for _ in 0..3 {
        let refusal = rejected(&operator, &create, body(n), 507, "STORAGE_FULL").await;
        assert!(!refusal.detail("RetryInfo")["retryDelay"].is_null(), "{}", refusal.0);
        assert_eq!(refusal.0["code"], 8);
    }
    let reply = crate::support::call(&operator, &create, body(n)).await;
    assert!(reply.header("retry-after").is_some(), "{:?}", reply.headers);
    assert!(!reply.text().to_lowercase().contains("sqlite"), "{}", reply.text());
    let list = ok(&operator, "GET /registry/v2/repos?page_size=1", Value::Null).await;
    assert_eq!(list["totalCount"], n.to_string(), "reads go on");
    assert_eq!(inventory(&server).await, before, "nothing of the refused writes is there");

    pragma(&server, "PRAGMA max_page_count = 1000000".into()).await;
    ok(&operator, &create, body(n)).await;
    server.stop().await;
}

#[tokio::test]
async fn a_read_only_database_recovers_by_itself() {
    log();
    let server = TestServer::start(Engine::Sqlite).await;
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    // The connection that writes loses its permission, as if the file had been read-only when it was opened.
    pragma(&server, "PRAGMA query_only = ON".into()).await;
    let create = format!("POST /registry/v2/repos/{org}");
    let mut refusals = 0;
    for _ in 0..3 {
        let reply = crate::support::call(&operator, &create, json!({ "name": "web" })).await;
        if reply.status == 200 {
            break;
        }
        refusals += 1;
        assert_eq!((reply.status, reply.json()["code"].as_i64()), (503, Some(14)), "{}", reply.text());
    }
    // Background work may have met the failure first, and healed it.
    assert!(refusals <= 1, "the connection is opened anew after the first failure");
    ok(&operator, &format!("POST /registry/v2/repos/{org}"), json!({ "name": "after" })).await;
    server.stop().await;
}
