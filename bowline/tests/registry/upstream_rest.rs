//! Failures of an upstream are cached: an absent resource, or an upstream that is away, is not requested
//! again at once.

use bowline_testkit::{TestServer, each_engine};
use std::time::Duration;

use crate::fake_upstream::{FakeUpstream, Scheme};
use crate::mirrors::mirror;
use crate::support::*;

async fn what_is_not_there_is_asked_for_once_a_minute(server: &TestServer) {
    let upstream = FakeUpstream::start(Scheme::Open, None).await;
    let (org, pusher) = pusher(server, "acme").await;
    mirror(server, &org, upstream.base.clone(), &[]).await;
    let name = format!("{org}/app");
    let at = async |tag: &str| pusher.get(&format!("/v2/{name}/manifests/{tag}")).await;
    for _ in 0..3 {
        assert_eq!(code(&at("1").await, 404), "NAME_UNKNOWN");
    }
    assert_eq!(upstream.seen().len(), 1);
    assert_eq!(at("2").await.status, 404);
    assert_eq!(upstream.seen().len(), 1, "another tag is another question");
    // What is pushed here is there at once, and so is what is pushed there after a minute.
    let ours = pusher.image(&name, "1", b"ours").await;
    assert_eq!(at("1").await.json(), ours);
    let theirs = image(b"theirs");
    upstream.state().manifest = Some(theirs.clone());
    assert_eq!(code(&at("2").await, 404), "MANIFEST_UNKNOWN");
    assert_eq!(upstream.seen().len(), 0);
    server.clock().advance(Duration::from_secs(61));
    assert_eq!((at("1").await.json(), at("2").await.json()), (ours, theirs));
}

async fn an_upstream_that_fails_rests_for_a_while(server: &TestServer) {
    let theirs = image(b"theirs");
    let upstream = FakeUpstream::start(Scheme::Open, Some(theirs.clone())).await;
    let (org, pusher) = pusher(server, "acme").await;
    mirror(server, &org, upstream.base.clone(), &[]).await;
    let at = async |name: &str, tag: &str| pusher.get(&format!("/v2/{org}/{name}/manifests/{tag}")).await;
    assert_eq!(at("app", "here").await.json(), theirs);
    upstream.seen();
    let later = |seconds: u64| server.clock().advance(Duration::from_secs(seconds));

    upstream.state().status = Some((503, None));
    for _ in 0..2 {
        let refused = at("app", "1").await;
        assert_eq!(code(&refused, 502), "MANIFEST_UNKNOWN");
        assert!(refused.text().contains("status 503"), "{}", refused.text());
    }
    assert_eq!(upstream.seen().len(), 1);
    later(9);
    assert_eq!((at("app", "1").await.status, upstream.seen().len()), (502, 0));
    later(2);
    assert_eq!((at("app", "1").await.status, upstream.seen().len()), (502, 1));

    // It says itself for how long, for all of the repository.
    upstream.state().status = Some((429, Some(30)));
    let refused = at("app", "2").await;
    assert!(
        code(&refused, 429) == "TOOMANYREQUESTS" && refused.text().contains("refused too many requests"),
        "{}",
        refused.text()
    );
    upstream.seen();
    upstream.state().status = None;
    later(29);
    assert_eq!((at("app", "3").await.status, upstream.seen().len()), (429, 0));
    assert_eq!(at("other", "3").await.status, 200, "another repository may be asked");
    later(2);
    assert_eq!(at("app", "3").await.json(), theirs);

    // Never longer than a minute, and what is here is served meanwhile.
    upstream.state().status = Some((429, Some(86_400)));
    assert_eq!(at("app", "4").await.status, 429);
    assert_eq!(at("app", "here").await.json(), theirs);
    upstream.state().status = None;
    later(61);
    assert_eq!(at("app", "4").await.json(), theirs);
}

async fn a_host_that_does_not_answer_is_not_waited_for_by_everybody(server: &TestServer) {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let (org, pusher) = pusher(server, "acme").await;
    mirror(server, &org, format!("http://{address}"), &[]).await;
    let at = async |name: &str| pusher.get(&format!("/v2/{org}/{name}/manifests/1")).await;
    let refused = at("app").await;
    assert!(
        code(&refused, 503) == "MANIFEST_UNKNOWN" && refused.text().contains("no connection"),
        "{}",
        refused.text()
    );
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let upstream = FakeUpstream::listen(listener, Scheme::Open, Some(image(b"theirs")));
    assert_eq!((at("app").await.status, at("other").await.status), (503, 503));
    assert_eq!(upstream.seen().len(), 0);
    server.clock().advance(Duration::from_secs(11));
    assert_eq!((at("app").await.status, at("other").await.status), (200, 200));
}

each_engine!(
    multi_thread:
    what_is_not_there_is_asked_for_once_a_minute,
    an_upstream_that_fails_rests_for_a_while,
    a_host_that_does_not_answer_is_not_waited_for_by_everybody
);
