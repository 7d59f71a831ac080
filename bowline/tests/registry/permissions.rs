//! Who may do what, and what they learn when they may not.

use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::support::*;

async fn what_one_may_not_list_looks_like_nothing(server: &TestServer) {
    let (org, client) = pusher(server, "ours").await;
    let (_, stranger) = pusher(server, "theirs").await;
    client.image(&format!("{org}/app"), "1", b"a layer").await;
    let anonymous = Client::anonymous(server);
    for rest in
        ["manifests/1", "tags/list", &format!("blobs/{}", digest(b"a layer")), &format!("referrers/{}", digest(b"x"))]
    {
        let unknown = "0".repeat(40);
        for (there, absent) in [
            (format!("/v2/{org}/app/{rest}"), format!("/v2/{org}/abc/{rest}")),
            (format!("/v2/{org}/app/{rest}"), format!("/v2/{org}/a/b/{rest}")),
            (format!("/v2/{org}/app/{rest}"), format!("/v2/{unknown}/app/{rest}")),
            (format!("/v2/ours/app/{rest}"), format!("/v2/nowhere/x/{rest}")),
        ] {
            for (who, status) in [(&stranger, 403), (&anonymous, 401)] {
                let (one, other) = (who.get(&there).await, who.get(&absent).await);
                code(&one, status);
                // Names are said to work for verified organizations, whether there is one of that name or not.
                let is_hinted = one.text().contains("once it is verified");
                assert_eq!(is_hinted, status == 403 && there.starts_with("/v2/ours"), "{}", one.text());
                let name = |path: &str| path.strip_prefix("/v2/").unwrap().replace(&format!("/{rest}"), "");
                assert_eq!(one.text().replace(&name(&there), "N"), other.text().replace(&name(&absent), "N"));
            }
        }
    }
    // Anyone who may list repositories there may know that one is not there.
    let reply = client.get(&format!("/v2/{org}/absent/tags/list")).await;
    assert_eq!(code(&reply, 404), "NAME_UNKNOWN");
    assert!(reply.text().contains("repository does not exist"), "{}", reply.text());
    assert_eq!(code(&stranger.send(&format!("POST /v2/{org}/new/blobs/uploads/"), &[], b"").await, 403), "DENIED");
    assert_eq!(number(server, "SELECT count(*) FROM repos").await, 1);
}

async fn readers_read_and_push_nothing(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let manifest = client.image(&name, "1", b"a layer").await;
    let at = client.begin(&name).await;
    let reader = crate::support::client(server, "registry.pull", &org).await;
    assert_eq!(reader.get(&format!("/v2/{name}/manifests/1")).await.json(), manifest);
    assert_eq!(code(&reader.put(&name, "2", &manifest).await, 403), "DENIED");
    assert_eq!(code(&reader.send(&format!("POST /v2/{name}/blobs/uploads/"), &[], b"").await, 403), "DENIED");
    assert_eq!(code(&reader.send(&format!("PATCH {at}"), &[], b"x").await, 403), "DENIED");
    // Who reads the control plane only has no blobs.
    let viewer = crate::support::client(server, "console_viewer", &org).await;
    assert_eq!(viewer.get(&format!("/v2/{name}/manifests/1")).await.status, 200);
    let blob = format!("/v2/{name}/blobs/{}", digest(b"a layer"));
    assert_eq!(code(&viewer.get(&blob).await, 403), "DENIED");
    assert_eq!(reader.get(&blob).await.status, 200);
}

async fn creating_moving_and_pushing_are_different_permissions(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let one = client.image(&name, "1", b"one").await;
    let two = client.image(&name, "2", b"two").await;
    let creator = custom(server, &org, "creator", &["CAP_MANIFEST_CREATE", "CAP_TAG_CREATE"]).await;
    assert_eq!(creator.put(&name, "3", &one).await.status, 201);
    assert_eq!(creator.put(&name, "3", &one).await.status, 201, "nothing moves");
    assert_eq!(code(&creator.put(&name, "3", &two).await, 403), "DENIED");
    assert_eq!(code(&creator.get(&format!("/v2/{name}/manifests/3")).await, 403), "DENIED", "no pull");
    let reply = creator.send(&format!("POST /v2/{org}/new/blobs/uploads/"), &[], b"").await;
    assert_eq!(code(&reply, 403), "DENIED", "no repository is created");
    let untagged = custom(server, &org, "untagged", &["CAP_MANIFEST_CREATE"]).await;
    assert_eq!(code(&untagged.put(&name, "4", &one).await, 403), "DENIED");
    assert_eq!(untagged.put(&name, &digest_of(&one), &one).await.status, 201);
    let shallow = custom(server, &org, "shallow", &["CAP_MANIFEST_CREATE", "CAP_REPO_CREATE"]).await;
    assert_eq!(shallow.send(&format!("POST /v2/{org}/new/blobs/uploads/"), &[], b"").await.status, 202);
    let reply = shallow.send(&format!("POST /v2/{org}/team/new/blobs/uploads/"), &[], b"").await;
    assert_eq!(code(&reply, 403), "DENIED", "no group is created");
    assert_eq!(number(server, "SELECT count(*) FROM groups").await, 1);
}

async fn custom(server: &bowline_testkit::TestServer, org: &str, name: &str, capabilities: &[&str]) -> Client {
    let body = json!({ "name": name, "capabilities": capabilities });
    let role = server.operator().await.rest("POST", &format!("/iam/v2/roles/{org}"), Some(body)).await;
    assert_eq!(role.status, 200, "{}", role.text());
    let identity = server.identity(org, name).await;
    server.bind(&identity, role.json()["uid"].as_str().unwrap(), org).await;
    Client::of(server, &server.sign_in(name, name, &identity).await).await
}

async fn what_is_taken_away_is_gone_at_once(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    client.image(&name, "1", b"a layer").await;
    let identity = server.identity(&org, "robot").await;
    let binding = server.bind(&identity, &server.role("registry.pull"), &org).await;
    let robot = Client::of(server, &server.sign_in("robot", "robot", &identity).await).await;
    let path = format!("/v2/{name}/manifests/1");
    assert_eq!(robot.get(&path).await.status, 200);
    let operator = server.operator().await;
    assert_eq!(operator.rest("DELETE", &format!("/iam/v2/roleBindings/{binding}"), None).await.status, 200);
    assert_eq!(code(&robot.get(&path).await, 403), "DENIED");
    assert_eq!(operator.rest("DELETE", &format!("/iam/v2/identities/{identity}"), None).await.status, 200);
    assert_eq!(code(&robot.get(&path).await, 401), "UNAUTHORIZED");
}

async fn a_narrowed_token_stays_narrow(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    client.image(&format!("{org}/app"), "1", b"a layer").await;
    client.image(&format!("{org}/team/other"), "1", b"a layer").await;
    let app = repo_uid(server, "app").await;
    let identity = server.identity(&org, "robot").await;
    server.bind(&identity, &server.role("registry.push"), &org).await;
    let upstream = server.idp().token("robot", server.base(), serde_json::Value::Null);
    let params = [("aud", server.base()), ("identity", &identity), ("scopes", &app)];
    let narrow = server.exchange(&upstream, &params).await;
    assert_eq!(narrow.status, 200, "{}", narrow.text());
    let reply = basic(server, "_token", narrow.json()["token"].as_str().unwrap(), "/token").await;
    let robot = Client::with(server, reply.json()["token"].as_str().unwrap());
    assert_eq!(robot.get(&format!("/v2/{org}/app/manifests/1")).await.status, 200);
    assert_eq!(code(&robot.get(&format!("/v2/{org}/team/other/manifests/1")).await, 403), "DENIED");
    let reply = robot.send(&format!("POST /v2/{org}/team/new/blobs/uploads/"), &[], b"").await;
    assert_eq!(code(&reply, 403), "DENIED");
}

each_engine!(
    multi_thread:
    what_one_may_not_list_looks_like_nothing,
    readers_read_and_push_nothing,
    creating_moving_and_pushing_are_different_permissions,
    what_is_taken_away_is_gone_at_once,
    a_narrowed_token_stays_narrow
);
