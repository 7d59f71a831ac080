//! What is taken away is gone with the answer that says so: on another connection, over the other transport.

use std::time::Duration;

use bowline_contract::v2::iam::identity::{Relationship, StaticKeys};
use bowline_contract::v2::iam::rpc::groups_service::GetGroup;
use bowline_contract::v2::iam::rpc::identities_service::UpdateIdentity;
use bowline_contract::v2::iam::rpc::role_bindings_service::DeleteRoleBinding;
use bowline_contract::v2::iam::{DeleteRoleBindingRequest, GetGroupRequest, Identity, UpdateIdentityRequest};
use bowline_testkit::{Actor, Engine, TestServer, by_engine, each_engine};
use prost_types::Timestamp;
use serde_json::{Value, json};

use crate::support::{Machine, call, execute, machine, ok, role};

#[expect(clippy::disallowed_methods, reason = "how large the test is, the environment says")]
fn rounds() -> usize {
    std::env::var("BOWLINE_REVOCATION_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

/// Reads the group over one of the transports; the gRPC code of the answer.
async fn reads(actor: &Actor, group: &str, over_rest: bool) -> i32 {
    if over_rest {
        return call(actor, &format!("GET /iam/v2/groups/{group}"), Value::Null).await.code();
    }
    let read = actor.grpc::<GetGroup>(GetGroupRequest { uid: group.into() }).await;
    read.map_or_else(|error| error.code, |_| 0)
}

async fn unbind(operator: &Actor, binding: &str, over_rest: bool) {
    if over_rest {
        ok(operator, &format!("DELETE /iam/v2/roleBindings/{binding}"), Value::Null).await;
        return;
    }
    let request = DeleteRoleBindingRequest { uid: binding.into() };
    operator.grpc::<DeleteRoleBinding>(request).await.expect("the binding is deleted");
}

async fn a_removed_binding_is_never_used_again(engine: Engine) {
    let server = TestServer::start(engine).await;
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let viewer = server.role("viewer");
    let machine = machine(&server, &org, "victim").await;
    let operator = server.operator().await;
    for round in 0..rounds() {
        let over_rest = round % 2 == 0;
        // At the group itself, and inherited from above.
        let place = if round % 3 == 0 { &org } else { &team };
        let binding = server.bind(&machine.uid, &viewer, place).await;
        assert_eq!(reads(&machine.actor, &team, over_rest).await, 0, "round {round}: a new binding works at once");
        unbind(&operator, &binding, over_rest).await;
        assert_eq!(reads(&machine.actor, &team, !over_rest).await, 7, "round {round}: the binding is gone");
        assert_eq!(reads(&machine.actor, &team, over_rest).await, 7, "round {round}");
    }
    server.stop().await;
}

/// Someone who hammers the server notices the end of their permission no later than anyone else.
async fn calls_that_begin_after_a_revocation_are_refused_under_load(engine: Engine) {
    let server = TestServer::start(engine).await;
    let org = server.organization("acme").await;
    let machine = machine(&server, &org, "victim").await;
    let operator = server.operator().await;
    for round in 0..10 {
        let binding = server.bind(&machine.uid, &server.role("viewer"), &org).await;
        let (revoked, was_revoked) = tokio::sync::watch::channel(false);
        let mut callers = tokio::task::JoinSet::new();
        for caller in 0..4 {
            let (actor, org, was_revoked) = (machine.actor.clone(), org.clone(), was_revoked.clone());
            callers.spawn(async move {
                for _ in 0..12 {
                    let began_after = *was_revoked.borrow();
                    let code = reads(&actor, &org, caller % 2 == 0).await;
                    assert!(code == 7 || (code == 0 && !began_after), "a call that began later: {code}");
                }
            });
        }
        unbind(&operator, &binding, round % 2 == 0).await;
        revoked.send_replace(true);
        callers.join_all().await;
        assert_eq!(reads(&machine.actor, &org, true).await, 7);
    }
    server.stop().await;
}

/// What is done to a machine, and the code that it gets from then on.
type Deed<'a> = (&'a str, i32);

async fn every_way_of_taking_a_permission_away_works_at_once(server: &TestServer) {
    let deeds: &[Deed<'_>] = &[
        ("role loses the capability", 7),
        ("role is replaced in the binding", 7),
        ("identity is deleted", 16),
        ("identity is deactivated", 16),
        ("static keys run out", 16),
    ];
    let org = server.organization("acme").await;
    for (at, (deed, code)) in deeds.iter().enumerate() {
        let role = role(server, &org, &format!("role {at}"), &["CAP_IAM_GROUPS_LIST", "CAP_REPO_LIST"]).await;
        let machine = machine(server, &org, &format!("machine{at}")).await;
        let binding = server.bind(&machine.uid, &role, &org).await;
        for over_rest in [true, false] {
            assert_eq!(reads(&machine.actor, &org, over_rest).await, 0, "{deed}");
        }
        commit(server, deed, &machine, &role, &binding).await;
        for over_rest in [false, true] {
            assert_eq!(reads(&machine.actor, &org, over_rest).await, *code, "{deed}");
        }
    }
}

async fn commit(server: &TestServer, deed: &str, machine: &Machine, role: &str, binding: &str) {
    let operator = server.operator().await;
    let identity = format!("/iam/v2/identities/{}", machine.uid);
    match deed {
        "role loses the capability" => {
            let body = json!({ "capabilities": ["CAP_REPO_LIST"] });
            ok(&operator, &format!("PATCH /iam/v2/roles/{role}"), body).await;
        }
        "role is replaced in the binding" => {
            let body = json!({ "roleUid": server.role("advisories.viewer"), "identityUid": machine.uid });
            ok(&operator, &format!("PATCH /iam/v2/roleBindings/{binding}"), body).await;
        }
        "identity is deleted" => drop(ok(&operator, &format!("DELETE {identity}"), Value::Null).await),
        "identity is deactivated" => {
            execute(server, "UPDATE identities SET deactivated = TRUE WHERE uid = $1", &[&machine.uid]).await;
        }
        "static keys run out" => {
            let keys = StaticKeys {
                issuer: "keys".into(),
                subject: "s".into(),
                issuer_keys: "{}".into(),
                expiration_time: Some(Timestamp { seconds: server.clock().seconds() + 600, nanos: 0 }),
                ..StaticKeys::default()
            };
            let changed = Identity {
                uid: machine.uid.clone(),
                relationship: Some(Relationship::StaticKeys(keys)),
                ..Identity::default()
            };
            let request = UpdateIdentityRequest { identity: Some(changed), ..UpdateIdentityRequest::default() };
            operator.grpc::<UpdateIdentity>(request).await.expect("the identity changes its type");
            assert_eq!(reads(&machine.actor, machine.uid.split('/').next().unwrap_or_default(), true).await, 0);
            server.clock().advance(Duration::from_secs(600));
        }
        other => panic!("{other}"),
    }
}

each_engine!(every_way_of_taking_a_permission_away_works_at_once);

by_engine!(
    multi_thread:
    a_removed_binding_is_never_used_again,
    calls_that_begin_after_a_revocation_are_refused_under_load
);
