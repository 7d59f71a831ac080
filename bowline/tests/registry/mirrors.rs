//! Pull-through: images that come from another registry when clients request them.

use std::time::Duration;

use bowline_contract::bowline::registry::v1::{RegistryPolicy, Upstream};
use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::{Engine, TestServer, by_engine};
use prost::Message as _;
use serde_json::json;

use crate::support::*;

/// A place here that mirrors an address; the API takes https addresses alone.
pub(crate) async fn mirror(server: &TestServer, place: &str, url: String, tags: &[&str]) {
    let tag_patterns = tags.iter().map(|tag| (*tag).to_owned()).collect();
    let upstream = Upstream { url, tag_patterns, ..Upstream::default() };
    let policy = RegistryPolicy { upstream: Some(upstream), ..RegistryPolicy::default() }.encode_to_vec();
    let (place, org) = (place.to_owned(), place.split('/').next().unwrap().to_owned());
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let (place, org, policy) = (place.clone(), org.clone(), policy.clone());
        Box::pin(async move {
            let sql = "INSERT INTO registry_policies (place, org, is_public, policy, updated_at)
                       VALUES ($1, $2, $3, $4, 0)";
            let params = [Sql::from(&place), Sql::from(&org), Sql::Bool(false), Sql::Bytes(&policy)];
            tx.execute(sql, &params).await.map_err(Error::from)
        })
    });
    written.await.expect("the database takes it");
}

/// A registry with a public organization; someone who pushes there.
async fn upstream() -> (TestServer, String, Client) {
    let there = TestServer::start(Engine::Sqlite).await;
    let (org, pusher) = pusher(&there, "upstream").await;
    publish(&there, &org, true).await;
    (there, org, pusher)
}

async fn what_is_missing_is_fetched_once_and_kept(engine: Engine) {
    let (there, org_there, pusher_there) = upstream().await;
    let image = pusher_there.image(&format!("{org_there}/library/app"), "1", &vec![7; 700_000]).await;
    let here = TestServer::start(engine).await;
    let org = here.organization("acme").await;
    let mirrored = here.group(&org, "mirrored").await;
    mirror(&here, &mirrored, format!("{}/{org_there}", there.base()), &[]).await;
    let name = format!("{org}/mirrored/library/app");

    // Anyone who may pull but not create gets nothing created; anyone who may do neither learns nothing.
    let reader = client(&here, "registry.pull", &org).await;
    assert_eq!(code(&reader.get(&format!("/v2/{name}/manifests/1")).await, 403), "DENIED");
    let anonymous = Client::anonymous(&here);
    assert_eq!(code(&anonymous.get(&format!("/v2/{name}/manifests/1")).await, 401), "UNAUTHORIZED");

    let pusher = client(&here, "registry.push", &org).await;
    let path = format!("/v2/{name}/manifests/1");
    let (one, other) = tokio::join!(pusher.get(&path), pusher.get(&path));
    assert_eq!((one.json(), other.json()), (image.clone(), image.clone()));
    there.server().parts().registry.flush_pulls().await;
    let asked = "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.registry.pull.v1'";
    assert_eq!(number(&there, asked).await, 1, "one request of two asks the upstream");
    let layer = format!("/v2/{name}/blobs/{}", digest(&vec![7; 700_000]));
    let (one, other) = tokio::join!(reader.get(&layer), reader.get(&layer));
    assert_eq!((one.status, one.body.len(), other.status), (200, 700_000, 200), "{}", one.text());
    assert_eq!(number(&here, "SELECT count(*) FROM blobs").await, 1);
    assert_eq!(code(&reader.get(&format!("/v2/{name}/blobs/{}", digest(b"no such"))).await, 404), "BLOB_UNKNOWN");
    assert_eq!(code(&pusher.get(&format!("/v2/{name}/manifests/2")).await, 404), "MANIFEST_UNKNOWN");
    assert_eq!(number(&here, "SELECT count(*) FROM uploads").await, 0);
    // The config was looked into: the image has its platform.
    let platform = "SELECT count(*) FROM manifest_references WHERE architecture = 'arm64'";
    assert_eq!(number(&here, platform).await, 1);

    // What is here stays here without the upstream.
    there.stop().await;
    assert_eq!(reader.get(&format!("/v2/{name}/manifests/1")).await.json(), image);
    assert_eq!(reader.get(&layer).await.status, 200);
    here.clock().advance(Duration::from_secs(61));
    let reader = client(&here, "registry.pull", &org).await;
    assert_eq!(reader.get(&format!("/v2/{name}/manifests/1")).await.json(), image);
    let failed = "SELECT count(*) FROM upstream_syncs WHERE status = 3";
    assert_eq!(number(&here, failed).await, 1);
    let config = format!("/v2/{name}/blobs/{}", digest(CONFIG_BYTES));
    assert_eq!(reader.get(&config).await.status, 503, "it was never fetched");
    here.stop().await;
}

async fn tags_follow_the_upstream_after_a_minute(engine: Engine) {
    let (there, org_there, pusher_there) = upstream().await;
    let name_there = format!("{org_there}/app");
    let first = pusher_there.image(&name_there, "1", b"first").await;
    pusher_there.image(&name_there, "nightly", b"nightly").await;
    let here = TestServer::start(engine).await;
    let (org, pusher) = pusher(&here, "acme").await;
    let name = format!("{org}/app");
    pusher.begin(&name).await;
    let repo = repo_uid(&here, "app").await;
    mirror(&here, &repo, format!("{}/{name_there}", there.base()), &["[0-9]+"]).await;

    let path = format!("/v2/{name}/manifests/1");
    assert_eq!(pusher.get(&path).await.json(), first);
    assert_eq!(code(&pusher.get(&format!("/v2/{name}/manifests/nightly")).await, 404), "MANIFEST_UNKNOWN");
    let second = pusher_there.image(&name_there, "1", b"second").await;
    assert_eq!(pusher.get(&path).await.json(), first, "it was asked for just now");
    here.clock().advance(Duration::from_secs(61));
    there.clock().advance(Duration::from_secs(61));
    assert_eq!(pusher.get(&path).await.json(), second);
    let moved = pusher.get(&format!("/v2/{name}/_chainguard/history/1")).await;
    assert_eq!(moved.json()["history"].as_array().map(Vec::len), Some(2), "{}", moved.text());
    let told = "SELECT count(*) FROM audit WHERE kind = 'registry.chainguard.dev/Manifest'";
    assert_eq!(number(&here, told).await, 2);
    assert_eq!(pusher.get(&format!("/v2/{name}/manifests/{}", digest_of(&first))).await.json(), json!(first));
    here.stop().await;
    there.stop().await;
}

by_engine!(multi_thread: what_is_missing_is_fetched_once_and_kept, tags_follow_the_upstream_after_a_minute);
