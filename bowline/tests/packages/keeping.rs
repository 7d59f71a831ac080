//! Bytes of packages count against quotas, are collected with no one's and kept while a file has them.

use std::time::Duration;

use bowline_core::Clock as _;
use bowline_server::{Collected, Plan, collect};
use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::support::*;

async fn collected(server: &TestServer) -> Collected {
    server.clock().advance(Duration::from_secs(100_000));
    let parts = server.server().parts();
    let plan = Plan { until: server.clock().now(), is_dry_run: false };
    collect(&parts.storage.db, &parts.content, plan).await.unwrap()
}

async fn garbage_collection_keeps_files(server: &TestServer) {
    let org = server.organization("acme").await;
    let client = Client::of(server, &server.actor("libraries.python.push", &org).await);
    let bytes = client.publish("foo", "1.0").await;
    client.publish("foo", "1.1").await;
    assert_eq!(collected(server).await, Collected::default());
    assert_eq!(stored_files(server), 4, "two wheels and their metadata");
    let client = Client::of(server, &server.actor("libraries.python.pull", &org).await);
    assert_eq!(client.file(&client.project("foo").await, 0).await.body, bytes);
}

async fn quotas_count_files(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let operator = server.operator().await;
    let first = client.publish("foo", "1.0").await;
    let policy = json!({ "byteQuota": (first.len() + 500).to_string() });
    let path = format!("/registrypolicies/v1/groups/{org}");
    let set = operator.rest("PATCH", &path, Some(policy)).await;
    assert_eq!(set.status, 200, "{}", set.text());
    let bytes = wheel("foo", "1.1", "");
    let form = form("foo", "1.1", &file_name("foo", "1.1"), &bytes);
    let refused = sentence(&client.upload(&form).await, 429);
    assert!(refused.contains("bytes"), "{refused}");
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
    assert_eq!(number(server, "SELECT file_count FROM package_repositories").await, 1);
    assert_eq!(stored_files(server), 2);
}

each_engine!(garbage_collection_keeps_files, quotas_count_files);
