//! Who reads and publishes where, and what they learn when they may not.

use bowline_testkit::{Engine, TestServer, by_engine, each_engine};
use serde_json::json;

use crate::support::*;

async fn a_group_sees_its_own_packages_and_those_above_it(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let web = server.group(&org, "web").await;
    let uid = web.rsplit('/').next().unwrap();
    let below = client.at(&format!("{org}:web"));
    client.publish("shared", "1.0").await;
    client.publish("both", "1.0").await;
    below.publish("both", "2.0").await;
    below.publish("inner", "1.0").await;

    let names = async |client: &Client| {
        let list = client.get("simple/").await.json();
        list["projects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&client).await, ["both", "shared"]);
    assert_eq!(names(&below).await, ["both", "inner", "shared"]);
    // Whole: who may publish below the organization adds no versions to what is published there.
    assert_eq!(client.project("both").await["versions"], json!(["1.0"]));
    assert_eq!(below.project("both").await["versions"], json!(["2.0"]));
    assert_eq!(client.at(&format!("{org}:{uid}")).project("both").await["versions"], json!(["2.0"]));
    assert_eq!(client.get("simple/inner/").await.status, 404);
    let page = below.project("shared").await;
    assert_eq!(below.file(&page, 0).await.status, 200);

    // Who may read the group alone does not see what lies above it.
    let inside = Client::of(server, &server.actor("libraries.python.pull", &web).await).at(&format!("{org}:web"));
    assert_eq!(names(&inside).await, ["both", "inner"]);
    assert_eq!(inside.get("simple/shared/").await.status, 404);
    let denied = sentence(&inside.upload(&form("x", "1", &file_name("x", "1"), &wheel("x", "1", ""))).await, 403);
    assert!(denied.contains("does not exist, or the caller lacks"), "{denied}");
}

async fn strangers_learn_nothing(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let bytes = client.publish("secret", "1.0").await;
    let (_, stranger) = publisher(server, "other").await;
    let viewer = Client::of(server, &server.actor("registry.pull", &org).await);
    let wheel = file_name("secret", "1.0");
    for path in ["simple/".to_owned(), "simple/secret/".into(), format!("files/{}/{wheel}", sha256(&bytes))] {
        let there = stranger.at(&org).get(&path).await;
        let absent = stranger.at(&"0".repeat(40)).get(&path).await;
        let (there, absent) = (sentence(&there, 403), sentence(&absent, 403));
        assert_eq!(there.replace(&org, "N"), absent.replace(&"0".repeat(40), "N"));
        assert_eq!(viewer.get(&path).await.status, 403, "{path}");
        let unknown = Client::anonymous(server).get(&path).await;
        sentence(&unknown, 401);
        assert_eq!(unknown.header("www-authenticate"), Some("Basic realm=\"packages\", charset=\"UTF-8\""));
    }
    assert_eq!(stranger.get("simple/secret/").await.status, 404);
    let reader = Client::of(server, &server.actor("libraries.python.pull", &org).await);
    assert_eq!(reader.get("simple/secret/").await.status, 200);
    let form = form("foo", "1.0", &file_name("foo", "1.0"), &bytes);
    sentence(&reader.upload(&form).await, 403);
    sentence(&Client::anonymous(server).upload(&form).await, 401);
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
}

async fn credentials_have_the_forms_that_clients_send(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    client.publish("foo", "1.0").await;
    let identity = server.identity(&org, "builder").await;
    server.bind(&identity, &server.role("libraries.python.pull"), &org).await;
    let auth_url = &server.server().parts().settings.auth_url;
    let token = server.idp().token("builder", auth_url, serde_json::Value::Null);
    for user in [identity.clone(), identity.replace('/', "_"), identity.replace('/', "%2F")] {
        assert_eq!(Client::with(server, &user, &token).get("simple/foo/").await.status, 200, "{user}");
    }
    let long = server.idp().token("builder", auth_url, serde_json::json!({ "groups": vec!["team"; 1000] }));
    assert!(long.len() > 8 << 10, "as those of people in many groups");
    assert_eq!(Client::with(server, &identity, &long).get("simple/foo/").await.status, 200);
    let audience = format!("{}/libraries", server.base());
    let exchanged = server.exchange(&token, &[("aud", &audience), ("identity", &identity)]).await;
    let exchanged = exchanged.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(Client::with(server, "__token__", &exchanged).get("simple/foo/").await.status, 200);
    let other = server.identity(&org, "other").await;
    let refused = sentence(&Client::with(server, &other, &exchanged).get("simple/foo/").await, 401);
    assert_eq!(refused, "the token is of another identity than the user name");
    let bearer = server.anonymous().with_token(&exchanged);
    assert_eq!(bearer.rest("GET", "/libraries/python/simple/foo/", None).await.status, 200);
    // Tokens of other fronts open no door here.
    let api = server.actor("libraries.python.pull", &org).await;
    let reply = api.rest("GET", "/libraries/python/simple/foo/", None).await;
    sentence(&reply, 401);
    for (user, password) in [("someone", "nothing"), (&*identity, "nothing"), ("0123", &*token)] {
        sentence(&Client::with(server, user, password).get("simple/foo/").await, 401);
    }
}

async fn credentials_that_fail_are_counted_by_address(engine: Engine) {
    for has_password in [false, true] {
        let server = TestServer::start_with(engine, |options| options.rate_limit_address = Some(1)).await;
        let client = if has_password { Client::with(&server, "a", "wrong") } else { Client::anonymous(&server) };
        let mut seen = Vec::new();
        for _ in 0..20 {
            seen.push(client.get("simple/").await.status);
        }
        assert_eq!((seen[0], seen[19]), (401, 429), "{seen:?}");
        server.stop().await;
    }
    let server = TestServer::start_with(engine, |options| options.rate_limit_address = Some(1)).await;
    let client = server.anonymous().with_token("no.valid.token");
    let mut last = 0;
    for _ in 0..20 {
        last = client.rest("GET", "/libraries/python/simple/", None).await.status;
    }
    assert_eq!(last, 429, "tokens are counted as passwords are");
    server.stop().await;
}

/// Files of packages are blobs as layers are, and a push may mount a blob that its client may pull.
async fn who_may_pull_images_mounts_no_file_of_a_package(server: &TestServer) {
    let (org, client) = publisher(server, "acme").await;
    let bytes = client.publish("secret", "1.0").await;
    let pusher = Client::of(server, &server.actor("registry.push", &org).await);
    let token = pusher.send_from_root("GET /token?service=registry", &[], &[]).await.json();
    let pusher = server.anonymous().with_token(token["token"].as_str().unwrap());
    let push = format!("/v2/{org}/image/blobs/uploads/");
    let mount = format!("{push}?mount=sha256:{}", sha256(&bytes));
    let mounted = pusher.rest_with("POST", &mount, http::HeaderMap::new(), Vec::new()).await;
    assert_eq!(mounted.status, 202, "an upload begins instead: {}", mounted.text());
    let own = format!("{push}?digest=sha256:{}", sha256(b"a layer"));
    assert_eq!(pusher.rest_with("POST", &own, http::HeaderMap::new(), b"a layer".to_vec()).await.status, 201);
    let mount = format!("/v2/{org}/other/blobs/uploads/?mount=sha256:{}", sha256(b"a layer"));
    let mounted = pusher.rest_with("POST", &mount, http::HeaderMap::new(), Vec::new()).await;
    assert_eq!(mounted.status, 201, "a layer is mounted: {}", mounted.text());
}

each_engine!(
    a_group_sees_its_own_packages_and_those_above_it,
    strangers_learn_nothing,
    credentials_have_the_forms_that_clients_send,
    who_may_pull_images_mounts_no_file_of_a_package,
);

by_engine!(credentials_that_fail_are_counted_by_address);
