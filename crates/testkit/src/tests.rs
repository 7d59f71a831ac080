use std::time::Duration;

use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::groups_service::{GetGroup, ListGroups};
use serde_json::json;

use crate::{TestServer, engines};

#[tokio::test]
async fn everybody_calls_over_both_transports() {
    for engine in engines() {
        let server = TestServer::start(engine).await;
        let org = server.organization("acme").await;
        let group = server.group(&org, "team one").await;
        let repo = server.repo(&group, "nginx").await;
        let viewer = server.actor("viewer", &group).await;

        let reply = viewer.rest("GET", &format!("/registry/v2/repos/{repo}"), None).await;
        assert_eq!((reply.status, reply.code()), (200, 0), "{}", reply.text());
        assert_eq!(reply.json()["name"], json!("nginx"));
        let got = viewer.grpc::<GetGroup>(v2::GetGroupRequest { uid: group.clone() }).await.unwrap();
        assert_eq!(got.name, "team one");

        let path = format!("/iam/v2/groups/{org}");
        for (actor, code) in [(server.anonymous(), 16), (server.stranger().await, 7), (viewer.clone(), 7)] {
            let reply = actor.rest("GET", &path, None).await;
            let error = actor.grpc::<GetGroup>(v2::GetGroupRequest { uid: org.clone() }).await.unwrap_err();
            assert_eq!((reply.code(), error.code, error.status.code), (code, code, code), "{actor:?}");
            assert_eq!(reply.json()["message"], json!(error.message));
            assert!(!error.status.details.is_empty());
        }
        let all = server.operator().await.grpc::<ListGroups>(v2::ListGroupsRequest::default()).await.unwrap();
        assert_eq!(all.groups.len(), 3, "two of the test, one of the stranger");

        server.clock().advance(Duration::from_secs(3601));
        assert_eq!(viewer.rest("GET", &path, None).await.status, 401);
        server.stop().await;
    }
}

#[tokio::test]
async fn odd_tokens_are_refused() {
    let server = TestServer::start(crate::Engine::Sqlite).await;
    let org = server.organization("acme").await;
    let identity = server.identity(&org, "robot").await;
    let (idp, base) = (server.idp(), server.base().to_owned());
    let odd = [
        idp.expired("robot", &base),
        idp.premature("robot", &base),
        idp.other_kid("robot", &base),
        idp.other_key("robot", &base),
        idp.alg_none("robot", &base),
        idp.alg_hmac("robot", &base),
        idp.token("robot", "elsewhere", json!({})),
        idp.token("nobody", &base, json!({})),
        idp.token("robot", &base, json!({ "exp": null })),
    ];
    for token in odd {
        let reply = server.exchange(&token, &[("aud", &base), ("identity", &identity)]).await;
        assert!([401, 403].contains(&reply.status), "{} {}", reply.status, reply.text());
    }
    server.sign_in("robot", "robot", &identity).await;
    assert_eq!((idp.discovery_requests(), idp.key_requests() >= 1), (1, true));
    server.stop().await;
}
