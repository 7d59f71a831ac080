//! Narrowed tokens: they may less than their identity, and never come to more.

use std::time::Duration;

use bowline_server::Options;
use bowline_testkit::{Engine, TestServer, by_engine, each_engine};
use serde_json::{Value, json};

use crate::support::{Machine, call, claims_of, each, machine, ok, rejected, token_of};

/// An editor at the organization, with a repository there and one in a group below.
async fn editor(server: &TestServer) -> (String, String, Machine) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    server.repo(&org, "a").await;
    server.repo(&team, "b").await;
    let editor = machine(server, &org, "editor").await;
    server.bind(&editor.uid, &server.role("editor"), &org).await;
    (org, team, editor)
}

async fn a_narrowed_token_may_no_more_than_it_was_narrowed_to(server: &TestServer) {
    let (org, team, editor) = editor(server).await;
    let only_list = editor.narrowed(server, &[("cap", "repo.list")]).await;
    let list = "GET /registry/v2/repos?order_by=name";
    assert_eq!(each(&ok(&only_list, list, Value::Null).await["repos"], "name"), ["a", "b"]);
    let create = |group: &str| format!("POST /registry/v2/repos/{group}");
    let refusal = rejected(&only_list, &create(&org), json!({ "name": "x" }), 403, "PERMISSION_DENIED").await;
    assert_eq!(refusal.detail("ErrorInfo")["metadata"]["capability"], "repo.create");
    assert_eq!(ok(&only_list, "GET /iam/v2/groups", Value::Null).await["totalCount"], "0");

    let only_team = editor.narrowed(server, &[("scopes", &team)]).await;
    assert_eq!(each(&ok(&only_team, list, Value::Null).await["repos"], "name"), ["b"]);
    ok(&only_team, &create(&team), json!({ "name": "c" })).await;
    rejected(&only_team, &create(&org), json!({ "name": "c" }), 403, "PERMISSION_DENIED").await;
    let single = editor.narrowed(server, &[("scope", &team), ("cap", "repo.list"), ("cap", "groups.list")]).await;
    assert_eq!(each(&ok(&single, list, Value::Null).await["repos"], "name"), ["b", "c"]);
    rejected(&single, &create(&team), json!({ "name": "d" }), 403, "PERMISSION_DENIED").await;
    assert_eq!(each(&ok(&single, "GET /iam/v2/groups", Value::Null).await["groups"], "uid"), [team.as_str()]);

    // The claim for clients has the same.
    let cap = |actor: &bowline_testkit::Actor| claims_of(actor.token.as_deref().expect("a token"))["cap"].clone();
    assert_eq!(
        cap(&only_list).as_object().map(|groups| groups.keys().cloned().collect::<Vec<_>>()),
        Some(vec![org.clone()])
    );
    assert_eq!(
        cap(&single).as_object().map(|groups| groups.keys().cloned().collect::<Vec<_>>()),
        Some(vec![team.clone()])
    );
    // What is taken from the identity is gone from the narrowed token too.
    let bindings =
        ok(&server.operator().await, &format!("GET /iam/v2/roleBindings?identity={}", editor.uid), Value::Null).await;
    let binding = bindings["roleBindings"][0]["uid"].as_str().expect("a binding").to_owned();
    ok(&server.operator().await, &format!("DELETE /iam/v2/roleBindings/{binding}"), Value::Null).await;
    assert_eq!(ok(&only_list, list, Value::Null).await["totalCount"], "0");
}

async fn presented_again_a_token_never_widens_nor_lasts_longer(server: &TestServer) {
    let (org, team, editor) = editor(server).await;
    let base = server.base();
    let narrowed = editor.narrowed(server, &[("cap", "repo.list"), ("scopes", &team)]).await;
    let held = narrowed.token.clone().expect("a token");
    let end = claims_of(&held)["exp"].clone();
    server.clock().advance(Duration::from_secs(1000));
    let list = "GET /registry/v2/repos?order_by=name";
    let wider: [&[(&str, &str)]; 5] = [
        &[("aud", base)],
        &[("aud", base), ("cap", "repo.list"), ("cap", "repo.create")],
        &[("aud", base), ("scopes", &org)],
        &[("aud", base), ("identity", &editor.uid)],
        &[("aud", base), ("scopes", &team), ("cap", "repo.create"), ("cap", "repo.list"), ("scopes", &org)],
    ];
    for parameters in wider {
        let again = token_of(&server.exchange(&held, parameters).await);
        assert_eq!(claims_of(&again)["exp"], end, "{parameters:?}: no later end");
        assert_eq!(claims_of(&again)["act"], claims_of(&held)["act"], "{parameters:?}");
        let actor = narrowed.with_token(&again);
        assert_eq!(each(&ok(&actor, list, Value::Null).await["repos"], "name"), ["b"], "{parameters:?}");
        let create = format!("POST /registry/v2/repos/{team}");
        rejected(&actor, &create, json!({ "name": "x" }), 403, "PERMISSION_DENIED").await;
    }
    // Capabilities that were never held leave none, rather than all.
    let none = token_of(&server.exchange(&held, &[("aud", base), ("cap", "repo.create")]).await);
    assert_eq!(ok(&narrowed.with_token(&none), list, Value::Null).await["totalCount"], "0");
    let other = server.group(&org, "other").await;
    let elsewhere = server.exchange(&held, &[("aud", base), ("scopes", &other)]).await;
    assert_eq!(elsewhere.status, 403, "{}", elsewhere.text());
    let other_identity = server.identity(&org, "other").await;
    assert_eq!(server.exchange(&held, &[("aud", base), ("identity", &other_identity)]).await.status, 403);
    // A token for another front keeps its end and its narrowing.
    let registry = server.server().parts().settings.registry_audience.clone();
    let other_door = token_of(&server.exchange(&held, &[("aud", &registry)]).await);
    let claims = claims_of(&other_door);
    assert_eq!((&claims["exp"], claims["cap"].as_object().map(serde_json::Map::len)), (&end, Some(1)));
    // And opens no other again.
    let back = server.exchange(&other_door, &[("aud", base)]).await;
    assert_eq!(back.status, 403, "{}", back.text());
}

async fn a_narrowed_token_founds_nothing_and_does_not_change_its_own_identity(engine: Engine) {
    let anyone = |options: &mut Options| *options = crate::groups::with_organizations_for_anyone(options);
    let server = TestServer::start_with(engine, anyone).await;
    let org = server.organization("acme").await;
    let owner = machine(&server, &org, "owner").await;
    server.bind(&owner.uid, &server.role("owner"), &org).await;
    for narrowing in [("scopes", org.as_str()), ("cap", "groups.create"), ("cap", "identity.update")] {
        let narrowed = owner.narrowed(&server, &[narrowing]).await;
        let reply = call(&narrowed, "POST /iam/v2/groups/", json!({ "name": "mine" })).await;
        assert_eq!(reply.status, 403, "{narrowing:?}: {}", reply.text());
        let own = format!("PATCH /iam/v2/identities/{}", owner.uid);
        let reply = call(&narrowed, &own, json!({ "description": "d" })).await;
        assert_eq!(reply.status, 403, "{narrowing:?}: {}", reply.text());
    }
    ok(&owner.actor, &format!("PATCH /iam/v2/identities/{}", owner.uid), json!({ "description": "d" })).await;
    server.stop().await;
}

each_engine!(
    a_narrowed_token_may_no_more_than_it_was_narrowed_to,
    presented_again_a_token_never_widens_nor_lasts_longer
);

by_engine!(a_narrowed_token_founds_nothing_and_does_not_change_its_own_identity);
