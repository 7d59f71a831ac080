//! Linking a blob that another repository has.

use crate::support::*;
use bowline_testkit::{TestServer, each_engine};

async fn mount(client: &Client, to: &str, digest: &str, from: Option<&str>) -> u16 {
    let from = from.map(|from| format!("&from={from}")).unwrap_or_default();
    client.send(&format!("POST /v2/{to}/blobs/uploads/?mount={digest}{from}"), &[], b"").await.status
}

async fn blobs_are_mounted_only_from_repositories_that_the_client_may_pull(server: &TestServer) {
    let (ours, client) = pusher(server, "ours").await;
    let (theirs, stranger) = pusher(server, "theirs").await;
    let digest = client.blob(&format!("{ours}/app"), b"secret layer").await;
    let source = format!("{ours}/app");
    assert_eq!(mount(&client, &format!("{ours}/b"), &digest, Some(&source)).await, 201);
    assert_eq!(mount(&client, &format!("{ours}/c"), &digest, None).await, 201);
    assert_eq!(mount(&client, &format!("{ours}/d"), &digest, Some(&format!("{ours}/absent"))).await, 202);
    assert_eq!(mount(&client, &format!("{ours}/d"), &digest, Some("../x")).await, 202);
    let target = format!("{theirs}/app");
    for from in [Some(source.as_str()), None] {
        assert_eq!(mount(&stranger, &target, &digest, from).await, 202);
    }
    assert_eq!(code(&stranger.get(&format!("/v2/{target}/blobs/{digest}")).await, 404), "BLOB_UNKNOWN");
    let reply = client.get(&format!("/v2/{ours}/c/blobs/{digest}")).await;
    assert_eq!((reply.status, reply.body.as_slice()), (200, &b"secret layer"[..]));
    // Without the right to push nothing is mounted, wherever from.
    let reader = crate::support::client(server, "registry.pull", &ours).await;
    assert_eq!(mount(&reader, &format!("{ours}/b"), &digest, Some(&source)).await, 403);
}

each_engine!(multi_thread: blobs_are_mounted_only_from_repositories_that_the_client_may_pull);
