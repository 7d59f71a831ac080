//! A disk that is nearly full, by a probe of the test: revocations work, what gives access does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline_store::{DiskProbe, Space};
use bowline_testkit::{Engine, TestServer};
use serde_json::{Value, json};

use crate::people_refresh::begin;
use crate::people_support::{context, people};
use crate::scim::{Directory, patch};
use crate::support::number;

const PLENTY: u64 = 1 << 40;

/// A server with a reserve of 1 MiB, and the free bytes that it measures.
async fn measured() -> (TestServer, Arc<AtomicU64>) {
    let free = Arc::new(AtomicU64::new(PLENTY));
    let shown = free.clone();
    let server = TestServer::start_with(Engine::Sqlite, |options| {
        options.disk_reserve = Some(1);
        options.disk_probe = DiskProbe::new(move |_| Ok(Space { total: PLENTY, free: shown.load(Ordering::Relaxed) }));
    })
    .await;
    (server, free)
}

fn fill(server: &TestServer, free: &AtomicU64) {
    free.store(1 << 17, Ordering::Relaxed);
    let room = server.server().parts().storage.db.room().expect("SQLite has one");
    room.look();
    assert!(room.is_full());
}

#[tokio::test]
async fn a_directory_deactivates_and_deletes_users_on_a_full_disk_and_changes_nothing_else() {
    let (server, free) = measured().await;
    let org = server.organization("acme").await;
    let directory = Directory::new(&server, &org, 1).await;
    let mut users = Vec::new();
    for name in ["ann", "bob", "cid", "dan", "eve"] {
        users.push(format!("Users/{}", directory.user(name, name).await));
    }
    let [ann, bob, cid, dan, eve] = &users[..] else { unreachable!("five users") };
    let set = |value: Value| patch(json!([{ "op": "replace", "value": value }]));
    directory.ok(&format!("PATCH {eve}"), set(json!({ "active": false })), 200).await;
    fill(&server, &free);

    let rejected = async |what: &str, body: Value| {
        let reply = directory.call(what, body).await;
        assert_eq!(reply.status, 507, "{what}: {}", reply.text());
    };
    rejected("POST Users", json!({ "userName": "new", "externalId": "new" })).await;
    for changed in [json!({ "active": true }), json!({ "title": "x" })] {
        rejected(&format!("PATCH {eve}"), set(changed)).await;
    }
    rejected(&format!("PATCH {eve}"), set(json!({ "active": false, "title": "x" }))).await;
    rejected(&format!("PATCH {dan}"), set(json!({ "title": "x" }))).await;
    rejected(&format!("PUT {dan}"), json!({ "userName": "dan", "externalId": "dan", "active": true, "title": "x" }))
        .await;

    let active = "SELECT count(*) FROM scim_users WHERE active";
    assert_eq!(number(&server, active).await, 4);
    directory.ok(&format!("PATCH {ann}"), set(json!({ "active": false })), 200).await;
    let by_path = patch(json!([
        { "op": "Replace", "path": "active", "value": "False" },
        { "op": "add", "path": "title", "value": "x" },
    ]));
    directory.ok(&format!("PATCH {bob}"), by_path, 200).await;
    let gone = json!({ "userName": "cid", "externalId": "cid", "active": false });
    directory.ok(&format!("PUT {cid}"), gone, 200).await;
    directory.ok(&format!("DELETE {dan}"), Value::Null, 204).await;
    assert_eq!(number(&server, active).await, 0);
    // What is deactivated already is not written.
    directory.ok(&format!("PATCH {ann}"), set(json!({ "active": false })), 200).await;
    server.stop().await;
}

#[tokio::test]
async fn a_refresh_token_is_revoked_on_a_full_disk() {
    let (server, free) = measured().await;
    let (_, token) = begin(&server, bowline_identity::people::TokenParams::default()).await;
    fill(&server, &free);
    people(&server).revoke(&token, &context(&server)).await.expect("revoked");
    assert_eq!(number(&server, "SELECT count(*) FROM refresh_tokens").await, 0);
    server.stop().await;
}
