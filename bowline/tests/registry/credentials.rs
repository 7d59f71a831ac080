//! Tokens for the registry: what they are given for, and what they open.

use bowline_testkit::{TestServer, each_engine};
use http::HeaderMap;
use serde_json::Value;

use crate::support::*;

async fn unauthenticated_clients_get_a_challenge(server: &TestServer) {
    let host = server.base().split_once("://").unwrap().1.to_owned();
    let anonymous = Client::anonymous(server);
    let reply = anonymous.get("/v2/").await;
    assert_eq!(code(&reply, 401), "UNAUTHORIZED");
    let challenge = format!("Bearer realm=\"{}/token\",service=\"{host}\"", server.base());
    assert_eq!(header(&reply, "www-authenticate"), challenge);
    assert_eq!(header(&reply, "docker-distribution-api-version"), "registry/2.0");
    let reply = anonymous.send("POST /v2/acme/app/blobs/uploads/", &[], b"").await;
    assert_eq!(header(&reply, "www-authenticate"), format!("{challenge},scope=\"repository:acme/app:pull,push\""));
    let reply = basic(server, "", "", "/token").await;
    assert_eq!(code(&reply, 401), "UNAUTHORIZED");
}

async fn a_token_is_accepted_by_its_front_only(server: &TestServer) {
    let org = server.organization("acme").await;
    let actor = server.actor("owner", &org).await;
    let api = Client::with(server, actor.token.as_deref().unwrap());
    let reply = api.get("/v2/").await;
    assert_eq!(code(&reply, 403), "DENIED");
    assert!(reply.text().contains("audience"), "{}", reply.text());
    let client = Client::of(server, &actor).await;
    assert_eq!(client.get("/v2/").await.status, 200);
    let reply = actor.with_token(&client.token()).rest("GET", "/iam/v2/groups", None).await;
    assert_eq!(reply.status, 401, "{}", reply.text());
    for token in ["x", "a.b.c", &format!("{}x", client.token())] {
        assert_eq!(code(&Client::with(server, token).get("/v2/").await, 401), "UNAUTHORIZED");
    }
    server.clock().advance(std::time::Duration::from_secs(3600));
    assert_eq!(code(&client.get("/v2/").await, 401), "UNAUTHORIZED");
}

async fn every_form_of_a_credential(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    client.image(&name, "1", b"a layer").await;
    let identity = server.identity(&org, "robot").await;
    server.bind(&identity, &server.role("registry.pull"), &org).await;
    let robot = server.sign_in("robot", "robot", &identity).await;
    let upstream = server.idp().token("robot", server.base(), Value::Null);
    let api = robot.token.clone().unwrap();
    let registry = Client::of(server, &robot).await.token();
    let path = format!("/v2/{name}/manifests/1");
    for (user, password) in
        [("_token", &api), ("_token", &registry), ("user", &api), (identity.as_str(), &upstream), (&identity, &api)]
    {
        let reply = basic(server, user, password, "/token?scope=repository:a/b:pull").await;
        assert_eq!(reply.status, 200, "{user}: {}", reply.text());
        assert_eq!(header(&reply, "cache-control"), "no-store");
        let told = reply.json();
        assert_eq!(told["token"], told["access_token"]);
        assert!(told["expires_in"].as_i64().unwrap() > 0 && told["issued_at"].is_string(), "{told}");
        let token = told["token"].as_str().unwrap();
        assert_eq!(Client::with(server, token).get(&path).await.status, 200, "{user}");
        assert_eq!(basic(server, user, password, &path).await.status, 200, "{user} without a token");
    }
    for (user, password) in [
        ("_token", upstream.as_str()),
        ("someone@example.com", &upstream),
        ("_token", "x"),
        (&identity, "x"),
        (&org, &upstream),
    ] {
        for path in ["/token", path.as_str()] {
            assert!([401, 403].contains(&basic(server, user, password, path).await.status), "{user} {path}");
        }
    }
    let other = server.identity(&org, "other").await;
    assert!([401, 403].contains(&basic(server, &other, &api, "/token").await.status), "a token of another identity");
}

async fn forms_are_credentials_as_well(server: &TestServer) {
    let org = server.organization("acme").await;
    let actor = server.actor("registry.pull", &org).await;
    let api = actor.token.clone().unwrap();
    let post = async |form: String| {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
        server.anonymous().rest_with("POST", "/token", headers, form.into_bytes()).await
    };
    for form in [
        format!("grant_type=password&username=_token&password={api}&service=x&client_id=docker"),
        format!("grant_type=refresh_token&refresh_token={api}&service=x"),
    ] {
        let reply = post(form).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let token = reply.json()["access_token"].as_str().unwrap().to_owned();
        assert_eq!(Client::with(server, &token).get("/v2/").await.status, 200);
    }
    for form in ["grant_type=password&username=x", "grant_type=code", "grant_type=refresh_token"] {
        assert_eq!(post(form.into()).await.status, 400, "{form}");
    }
}

async fn what_is_public_everybody_may_pull_and_nothing_more(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    client.image(&format!("{org}/open"), "1", b"a layer").await;
    client.image(&format!("{org}/closed"), "1", b"a layer").await;
    publish(server, &repo_uid(server, "open").await, true).await;
    let anonymous = Client::anonymous(server);
    let reply = anonymous.get(&format!("/token?scope=repository:{org}/open:pull,push")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let token = reply.json()["token"].as_str().unwrap().to_owned();
    let anybody = Client::with(server, &token);
    let (_, stranger) = pusher(server, "other").await;
    for who in [&anonymous, &anybody, &stranger] {
        assert_eq!(who.get(&format!("/v2/{org}/open/manifests/1")).await.status, 200);
        assert_eq!(who.get(&format!("/v2/{org}/open/blobs/{}", digest(b"a layer"))).await.status, 200);
        assert_ne!(who.get(&format!("/v2/{org}/closed/manifests/1")).await.status, 200);
        let push = who.send(&format!("POST /v2/{org}/open/blobs/uploads/"), &[], b"").await;
        assert!([401, 403].contains(&push.status));
        assert_ne!(who.send(&format!("DELETE /v2/{org}/open/manifests/1"), &[], b"").await.status, 202);
    }
    assert_eq!(anybody.get("/v2/").await.status, 200);
    assert_eq!(code(&anybody.get("/v2/_catalog").await, 401), "UNAUTHORIZED");
    for scope in
        ["", "?scope=registry:catalog:*", &format!("?scope=repository:{org}/closed:pull"), "?scope=repository:a/b:pull"]
    {
        assert_eq!(code(&anonymous.get(&format!("/token{scope}")).await, 401), "UNAUTHORIZED", "{scope}");
    }
    // The token is no one's: no other front takes it, and it is exchanged for nothing.
    assert_eq!(server.anonymous().with_token(&token).rest("GET", "/iam/v2/groups", None).await.status, 401);
    assert!([401, 403].contains(&basic(server, "_token", &token, "/token").await.status));
    // What is set nearest decides.
    publish(server, &org, true).await;
    publish(server, &repo_uid(server, "closed").await, false).await;
    assert_eq!(anonymous.get(&format!("/v2/{org}/closed/manifests/1")).await.status, 401);
}

each_engine!(
    multi_thread:
    unauthenticated_clients_get_a_challenge,
    a_token_is_accepted_by_its_front_only,
    every_form_of_a_credential,
    forms_are_credentials_as_well,
    what_is_public_everybody_may_pull_and_nothing_more
);
