//! Blobs that are fetched from an upstream: what they count for while they arrive, and when no one waits for them.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bowline_testkit::{Engine, TestServer, by_engine, each_engine};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::net::TcpListener;

use crate::mirrors::mirror;
use crate::open_uploads::{quota, until};
use crate::slow::Slow;
use crate::support::*;

const MIB: usize = 1 << 20;
const LAYER_BYTES: usize = 40 * MIB;

/// An upstream with one image, which sends the first half of the layer and then nothing more.
async fn half_an_upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let layer = vec![7; LAYER_BYTES];
    let (manifest, of_layer) = (image(&layer), digest(&layer));
    let half = Bytes::from(layer).slice(..LAYER_BYTES / 2);
    let answer = async move |request: Request| -> Response {
        let path = request.uri().path().to_owned();
        match path.rsplit('/').next().unwrap() {
            last if last == of_layer => {
                let parts = stream::iter([Ok::<_, std::io::Error>(half.clone())]).chain(stream::pending());
                Body::from_stream(parts).into_response()
            }
            last if last == digest(CONFIG_BYTES) => CONFIG_BYTES.into_response(),
            _ => ([("content-type", IMAGE)], manifest.to_string()).into_response(),
        }
    };
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    base
}

/// The name here of what the upstream has, and the path of its layer; the image has been pulled.
async fn mirrored(server: &TestServer, org: &str) -> (String, String) {
    let group = server.group(org, "mirrored").await;
    mirror(server, &group, half_an_upstream().await, &[]).await;
    let name = format!("{org}/mirrored/app");
    let pusher = client(server, "registry.push", org).await;
    let pulled = pusher.get(&format!("/v2/{name}/manifests/1")).await;
    assert_eq!(pulled.status, 200, "{}", pulled.text());
    let layer = pulled.json()["layers"][0]["digest"].as_str().unwrap().to_owned();
    (name.clone(), format!("/v2/{name}/blobs/{layer}"))
}

async fn a_fetch_counts_as_it_arrives_and_no_more_once_its_client_is_gone(engine: Engine) {
    let server = TestServer::start(engine).await;
    let org = server.organization("acme").await;
    let (name, layer) = mirrored(&server, &org).await;
    quota(&server, "groups", &org, LAYER_BYTES + MIB).await;
    let reader = client(&server, "registry.pull", &org).await;
    let pusher = client(&server, "registry.push", &org).await;
    for round in 0..2 {
        let waiting = Slow::begin(&server, &reader, &format!("GET {layer}"), "", 0).await;
        let noted = async || number(&server, "SELECT coalesce(max(bytes), 0) FROM uploads").await;
        until("what has arrived is noted", async || noted().await >= 16 * MIB as i64).await;
        assert!(noted().await <= LAYER_BYTES as i64 / 2, "no more than has arrived");
        let pushed = pusher.begin(&name).await;
        let refused = pusher.send(&format!("PATCH {pushed}"), &[], &vec![1; 30 * MIB]).await;
        assert_eq!(code(&refused, 403), "DENIED", "round {round}");
        assert_eq!(pusher.send(&format!("DELETE {pushed}"), &[], b"").await.status, 204);
        drop(waiting);
        until("nothing is open", async || number(&server, "SELECT count(*) FROM uploads").await == 0).await;
    }
    let files = async || server.server().parts().content.uploads().await.unwrap();
    until("no bytes stay", async || {
        server.server().parts().distribution.expire_uploads().await.expect("uploads expire");
        files().await.is_empty()
    })
    .await;
    server.stop().await;
}

async fn what_a_quota_has_no_room_for_is_not_fetched(server: &TestServer) {
    let org = server.organization("acme").await;
    let (_, layer) = mirrored(server, &org).await;
    quota(server, "groups", &org, LAYER_BYTES / 2).await;
    let reader = client(server, "registry.pull", &org).await;
    // The upstream would send half of it, and then keep the client waiting.
    let refused = tokio::time::timeout(Duration::from_secs(20), reader.get(&layer)).await.expect("an answer");
    assert_eq!(code(&refused, 403), "DENIED");
    assert!(refused.text().contains("ask for a higher quota"), "{}", refused.text());
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
}

each_engine!(multi_thread: what_a_quota_has_no_room_for_is_not_fetched);

by_engine!(multi_thread: a_fetch_counts_as_it_arrives_and_no_more_once_its_client_is_gone);
