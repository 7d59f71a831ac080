//! Which tags of a mirror follow the upstream: those that came from it.

use bowline_testkit::{TestServer, each_engine};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{StatusCode, Uri};
use axum::response::IntoResponse as _;
use serde_json::Value;
use tokio::sync::Notify;

use crate::mirrors::mirror;
use crate::support::*;

/// An upstream that has one manifest, under every tag, and no blobs. It can be made to wait with its answers.
#[derive(Clone)]
struct Upstream {
    url: String,
    manifest: Arc<Mutex<Value>>,
    asked: Arc<Notify>,
    gate: Arc<tokio::sync::Mutex<()>>,
}

impl Upstream {
    async fn start(manifest: Value) -> Upstream {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/app", listener.local_addr().unwrap());
        let manifest = Arc::new(Mutex::new(manifest));
        let upstream = Upstream { url, manifest, asked: Arc::default(), gate: Arc::default() };
        let answering = upstream.clone();
        let router = axum::Router::new().fallback(async move |uri: Uri| answering.answer(&uri).await);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        upstream
    }

    async fn answer(&self, uri: &Uri) -> axum::response::Response {
        if !uri.path().contains("/manifests/") {
            return StatusCode::NOT_FOUND.into_response();
        }
        self.asked.notify_one();
        let _open = self.gate.lock().await;
        let manifest = self.manifest.lock().unwrap().clone();
        let headers = [("content-type", IMAGE.to_owned()), ("docker-content-digest", digest_of(&manifest))];
        (headers, manifest.to_string()).into_response()
    }

    fn moves_to(&self, manifest: &Value) {
        *self.manifest.lock().unwrap() = manifest.clone();
    }
}

/// The minute in which no one asks the upstream again, over.
fn later(server: &bowline_testkit::TestServer) {
    server.clock().advance(Duration::from_secs(61));
}

async fn tags_that_were_pushed_here_stay_where_they_are(server: &TestServer) {
    let theirs = image(b"theirs");
    let upstream = Upstream::start(theirs.clone()).await;
    let (org, pusher) = pusher(server, "acme").await;
    mirror(server, &org, upstream.url.clone(), &[]).await;
    let name = format!("{org}/app");
    let at = async |tag: &str| pusher.get(&format!("/v2/{name}/manifests/{tag}")).await.json();

    // Pushed before anyone asked the upstream.
    let ours = pusher.image(&name, "1", b"ours").await;
    later(server);
    assert_eq!(at("1").await, ours);
    // Fetched, and pushed afterwards: the same first, so that the tag does not even move.
    assert_eq!(at("2").await, theirs);
    assert_eq!(at("3").await, theirs);
    pusher.blob(&name, CONFIG_BYTES).await;
    pusher.blob(&name, b"theirs").await;
    assert_eq!(pusher.put(&name, "2", &theirs).await.status, 201);
    assert_eq!(pusher.put(&name, "3", &ours).await.status, 201);
    // What no one pushed follows.
    assert_eq!(at("4").await, theirs);
    let next = image(b"next");
    upstream.moves_to(&next);
    later(server);
    assert_eq!((at("2").await, at("3").await, at("4").await), (theirs, ours.clone(), next.clone()));
    later(server);
    assert_eq!((at("1").await, at("3").await), (ours.clone(), ours.clone()));

    // A tag that is deleted here may come from the upstream again.
    assert_eq!(pusher.send(&format!("DELETE /v2/{name}/manifests/3"), &[], b"").await.status, 202);
    assert_eq!(at("3").await, next);
    assert_eq!(number(server, "SELECT count(*) FROM upstream_tags").await, 2);
}

async fn tags_that_the_api_wrote_stay_where_they_are(server: &TestServer) {
    let theirs = image(b"theirs");
    let upstream = Upstream::start(theirs.clone()).await;
    let (org, pusher) = pusher(server, "acme").await;
    mirror(server, &org, upstream.url.clone(), &[]).await;
    let name = format!("{org}/app");
    let ours = pusher.image(&name, "1", b"ours").await;
    let at = async |tag: &str| pusher.get(&format!("/v2/{name}/manifests/{tag}")).await;
    for tag in ["2", "3"] {
        assert_eq!(at(tag).await.json(), theirs);
    }
    let repo = repo_uid(server, "app").await;
    let operator = server.operator().await;
    let create = async |tag: Value| {
        let reply = operator.rest("POST", &format!("/registry/v1/tags/{repo}"), Some(tag)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    create(serde_json::json!({ "name": "2", "digest": digest_of(&ours) })).await;
    // One that waits for its first push waits for that, not for the upstream.
    create(serde_json::json!({ "name": "9" })).await;
    // One that only looks otherwise follows on.
    create(serde_json::json!({ "name": "3", "digest": digest_of(&theirs), "deprecated": true })).await;
    let next = image(b"next");
    upstream.moves_to(&next);
    later(server);
    assert_eq!((at("2").await.json(), at("3").await.json()), (ours, next));
    assert_eq!(code(&at("9").await, 404), "MANIFEST_UNKNOWN");
}

async fn a_push_beside_a_fetch_wins(server: &TestServer) {
    let upstream = Upstream::start(image(b"theirs")).await;
    let (org, pusher) = pusher(server, "acme").await;
    mirror(server, &org, upstream.url.clone(), &[]).await;
    let name = format!("{org}/app");
    let at = |tag: &str| format!("/v2/{name}/manifests/{tag}");
    pusher.begin(&name).await;

    // The tag is missing, and pushed while the upstream answers.
    let closed = upstream.gate.lock().await;
    let (asking, path) = (pusher.clone(), at("1"));
    let pull = tokio::spawn(async move { asking.get(&path).await });
    upstream.asked.notified().await;
    let ours = pusher.image(&name, "1", b"ours").await;
    drop(closed);
    assert_eq!(pull.await.unwrap().json(), ours);

    // The tag came from the upstream, and is pushed while it is asked whether it has moved.
    assert_eq!(pusher.get(&at("2")).await.json(), image(b"theirs"));
    upstream.moves_to(&image(b"next"));
    later(server);
    while tokio::time::timeout(Duration::ZERO, upstream.asked.notified()).await.is_ok() {}
    let closed = upstream.gate.lock().await;
    let (asking, path) = (pusher.clone(), at("2"));
    let pull = tokio::spawn(async move { asking.get(&path).await });
    upstream.asked.notified().await;
    assert_eq!(pusher.put(&name, "2", &ours).await.status, 201);
    drop(closed);
    assert_eq!(pull.await.unwrap().json(), ours);
    later(server);
    assert_eq!(pusher.get(&at("2")).await.json(), ours);
    assert_eq!(number(server, "SELECT count(*) FROM upstream_tags").await, 0);
}

async fn an_image_that_came_without_its_config_gets_it_with_the_first_push_that_has_it(server: &TestServer) {
    let manifest = image(b"a layer");
    let upstream = Upstream::start(manifest.clone()).await;
    let (org, pusher) = pusher(server, "acme").await;
    let mirrored = server.group(&org, "mirrored").await;
    mirror(server, &mirrored, upstream.url.clone(), &[]).await;
    assert_eq!(pusher.get(&format!("/v2/{org}/mirrored/app/manifests/1")).await.json(), manifest);
    let configs = "SELECT count(*) FROM image_configs WHERE architecture = 'arm64'";
    let platforms = "SELECT count(*) FROM manifest_references WHERE kind = 1 AND architecture = 'arm64'";
    assert_eq!((number(server, configs).await, number(server, platforms).await), (0, 0));
    pusher.image(&format!("{org}/other"), "1", b"a layer").await;
    assert_eq!((number(server, configs).await, number(server, platforms).await), (1, 1));
}

each_engine!(
    multi_thread:
    tags_that_were_pushed_here_stay_where_they_are,
    tags_that_the_api_wrote_stay_where_they_are,
    a_push_beside_a_fetch_wins,
    an_image_that_came_without_its_config_gets_it_with_the_first_push_that_has_it
);
