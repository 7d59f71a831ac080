//! What happens between the steps of another transaction.

use std::sync::Arc;

use bowline_core::Error;
use bowline_registry::content::garbage;
use bowline_store::Value as Sql;
use bowline_testkit::{Engine, TestServer, engines};
use tokio::sync::Notify;

use crate::support::*;

/// On SQLite one write follows the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_is_pushed_again_while_it_is_collected_stays() {
    if !engines().contains(&Engine::Postgres) {
        return;
    }
    let server = TestServer::start(Engine::Postgres).await;
    let (org, client) = pusher(&server, "acme").await;
    let name = format!("{org}/app");
    let [one, two] = [b"one", b"two"].map(|layer| layer.to_vec());
    let one = digest_of(&client.image(&name, "1", &one).await);
    let image = client.image(&name, "2", &two).await;
    let two = digest_of(&image);
    for digest in [&one, &two] {
        let reply = client.send(&format!("DELETE /v2/{name}/manifests/{digest}"), &[], b"").await;
        assert_eq!(reply.status, 202, "{}", reply.text());
    }

    // The collection has its snapshot, and waits for the row of the first manifest.
    let (holding, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let db = server.server().parts().storage.db.clone();
    let held = tokio::spawn({
        let (db, digest, holding, release) = (db.clone(), one.clone(), holding.clone(), release.clone());
        async move { hold(&db, &digest, &holding, &release).await }
    });
    holding.notified().await;
    let doomed = vec![one, two];
    let collected = tokio::spawn(async move { garbage::drop_manifests(&db, &doomed).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while number(&server, waiting).await == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.put(&name, "2", &image).await.status, 201);
    release.notify_one();
    held.await.unwrap();
    assert_eq!(collected.await.unwrap().unwrap(), 1, "only what nobody pushed goes");
    assert_eq!(client.get(&format!("/v2/{name}/manifests/2")).await.json(), image);
    server.stop().await;
}

/// Holds the row of a manifest, which stays as it is, until it is notified.
async fn hold(db: &bowline_store::Db, digest: &str, holding: &Arc<Notify>, release: &Arc<Notify>) {
    let (digest, holding, release) = (digest.to_owned(), holding.clone(), release.clone());
    let undone = db.write(move |tx| {
        let (digest, holding, release) = (digest.clone(), holding.clone(), release.clone());
        Box::pin(async move {
            let sql = "UPDATE manifests SET created_at = created_at WHERE digest = $1";
            tx.execute(sql, &[Sql::from(&digest)]).await?;
            holding.notify_one();
            release.notified().await;
            Err::<(), _>(Error::internal("nothing is changed"))
        })
    });
    undone.await.unwrap_err();
}
