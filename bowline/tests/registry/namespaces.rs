//! `?ns=` of containerd's mirrors: it selects a configured upstream, and never an address to connect to.

use bowline_testkit::{TestServer, each_engine};

use crate::fake_upstream::{FakeUpstream, Scheme};
use crate::mirrors::mirror;
use crate::support::*;

async fn a_namespace_selects_among_the_upstreams_of_a_group(server: &TestServer) {
    let theirs = image(b"theirs");
    let upstream = FakeUpstream::start(Scheme::Open, Some(theirs.clone())).await;
    let unknown = FakeUpstream::start(Scheme::Open, Some(image(b"unknown"))).await;
    let host = |upstream: &FakeUpstream| upstream.base.split_once("://").unwrap().1.to_owned();
    let (org, pusher) = pusher(server, "acme").await;
    let mirrors = server.group(&org, "mirrors").await;
    let docker = server.group(&mirrors, "docker").await;
    mirror(server, &docker, "https://registry-1.docker.io".into(), &[]).await;
    let other = server.group(&mirrors, "other").await;
    mirror(server, &other, format!("{}/team", upstream.base), &[]).await;
    let ours = pusher.image(&format!("{org}/mirrors/docker/library/app"), "1", b"ours").await;
    let get = async |path: &str| pusher.get(&format!("/v2/{org}/{path}")).await;

    for namespace in ["docker.io", "index.docker.io", "registry-1.docker.io", "Docker.IO"] {
        for path in ["mirrors", "mirrors/docker"] {
            let pulled = get(&format!("{path}/library/app/manifests/1?ns={namespace}")).await;
            assert_eq!((pulled.status, pulled.json()), (200, ours.clone()), "{path} {namespace}");
        }
    }
    let layer = format!("mirrors/library/app/blobs/{}?ns=docker.io", digest(b"ours"));
    assert!(get(&layer).await.body[..] == b"ours"[..]);
    assert_eq!(get("mirrors/library/app/tags/list?ns=docker.io").await.json()["tags"][0], "1");

    // The part of another registry that an upstream is, is fetched from there.
    let namespace = host(&upstream);
    let pulled = get(&format!("mirrors/team/tool/manifests/1?ns={namespace}")).await;
    assert_eq!((pulled.status, pulled.json()), (200, theirs));
    assert_eq!(upstream.seen()[0].path, "/v2/team/tool/manifests/1");
    assert_eq!(number(server, "SELECT count(*) FROM repos WHERE name = 'tool'").await, 1);

    // Nothing else is, and no address is connected to.
    for (path, namespace) in [
        ("mirrors/team/tool", host(&unknown)),
        ("mirrors/else/tool", namespace.clone()),
        ("mirrors/docker/team/tool", namespace.clone()),
        ("mirrors/library/app", "http://docker.io".into()),
        ("mirrors/library/app", String::new()),
    ] {
        let refused = get(&format!("{path}/manifests/9?ns={namespace}")).await;
        let code = code(&refused, 404);
        // A deeper group of the path has a registry of its own.
        assert_eq!(code, "NAME_UNKNOWN", "{path} {namespace}");
    }
    assert!(unknown.seen().is_empty() && upstream.seen().is_empty());
    let own = &server.server().parts().settings.registry_audience;
    assert_eq!(get(&format!("mirrors/docker/library/app/manifests/1?ns={own}")).await.status, 200);

    // Callers learn no more than without it.
    let manifest = format!("/v2/{org}/mirrors/library/app/manifests/1?ns=docker.io");
    assert_eq!(code(&Client::anonymous(server).get(&manifest).await, 401), "UNAUTHORIZED");
    let elsewhere = server.organization("other").await;
    let stranger = client(server, "registry.push", &elsewhere).await;
    assert_eq!(code(&stranger.get(&manifest).await, 404), "NAME_UNKNOWN");
    let pushed = pusher.send(&format!("PUT {manifest}"), &[("content-type", IMAGE)], ours.to_string().as_bytes()).await;
    assert_eq!(code(&pushed, 405), "UNSUPPORTED");
}

each_engine!(multi_thread: a_namespace_selects_among_the_upstreams_of_a_group);
