//! Requests for access: who reads them, and answers that are ordinary grants.

use std::time::Duration;

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{
    Machine, call, each, each_of, holder, inventory, machine, newest_event, number, ok, pages, person, rejected,
};

/// A verified organization with an owner, and someone who asks to be let in.
pub(crate) async fn requested(server: &TestServer) -> (String, Machine, Machine) {
    let body = json!({ "name": "acme.example", "verified": true, "kind": "ORG_KIND_CUSTOMER" });
    let made = ok(&server.operator().await, "POST /iam/v2/groups", body).await;
    let org = made["uid"].as_str().expect("a uid").to_owned();
    let owner = machine(server, &org, "owner").await;
    server.bind(&owner.uid, &server.role("owner"), &org).await;
    let me = person(server, "me", "me@acme.example").await;
    ok(&me.actor, &format!("POST /iam/v2/groups/{org}:requestGroupAccess"), json!({})).await;
    (org, owner, me)
}

async fn an_answer_is_an_ordinary_grant(server: &TestServer) {
    let (org, owner, me) = requested(server).await;
    let listed = ok(&owner.actor, &format!("GET /iam/v1/accessRequests/{org}"), Value::Null).await;
    assert_eq!(each(&listed["requests"], "identity"), [me.uid.as_str()]);
    assert_eq!(listed["requests"][0]["email"], json!("me@acme.example"));
    let answer = format!("POST /iam/v1/accessRequests/{org}:answer");
    let viewer = server.role("viewer");
    let before = inventory(server).await;
    let body = json!({ "identity": me.uid, "role": viewer });
    // Authorized like a binding: no one grants what they lack, and whether someone asked is told to those who may grant.
    let binder = holder(server, &org, "binder", &org, &["CAP_IAM_ROLE_BINDINGS_CREATE"]).await.actor;
    let stranger = json!({ "identity": "ab".repeat(20), "role": viewer });
    let created = inventory(server).await;
    for body in [&body, &stranger] {
        let refusal = rejected(&binder, &answer, body.clone(), 403, "PERMISSION_DENIED").await;
        assert!(refusal.message().contains("lacks"), "{refusal:?}");
    }
    rejected(&owner.actor, &answer, stranger, 404, "NOT_FOUND").await;
    assert_eq!(inventory(server).await, created, "{before:?}");
    let answered = ok(&owner.actor, &answer, body.clone()).await;
    let binding = answered["roleBinding"].as_str().expect("a binding");
    let [kind, subject, ..] = newest_event(server).await;
    assert_eq!((kind.as_str(), subject.as_str()), ("dev.chainguard.api.iam.rolebindings.created.v1", binding));
    let read = ok(&owner.actor, &format!("GET /iam/v2/roleBindings/{binding}"), Value::Null).await;
    assert_eq!((&read["identityUid"], &read["roleUid"]), (&json!(me.uid), &json!(viewer)));
    assert_eq!(call(&me.actor, &format!("GET /iam/v2/groups/{org}"), Value::Null).await.status, 200);
    let records =
        "SELECT count(*) FROM audit WHERE kind IN ('bowline.dev/AccessRequest', 'iam.chainguard.dev/RoleBinding')
                   AND method = 'bowline.iam.v1.AccessRequests.AnswerAccessRequest'";
    assert_eq!(number(server, records).await, 2);
    let listed = ok(&owner.actor, &format!("GET /iam/v1/accessRequests/{org}"), Value::Null).await;
    assert_eq!(listed["requests"], json!([]));
    rejected(&owner.actor, &answer, json!({ "identity": me.uid, "decline": true }), 404, "NOT_FOUND").await;
    // A second answer cannot bind again, and a failed one binds nothing.
    rejected(&owner.actor, &answer, body, 409, "ALREADY_EXISTS").await;
    let bindings = number(server, "SELECT count(*) FROM role_bindings").await;
    let other = json!({ "identity": me.uid, "role": server.role("editor") });
    rejected(&owner.actor, &answer, other, 404, "NOT_FOUND").await;
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, bindings);
}

async fn a_declined_person_may_ask_again_a_day_later(server: &TestServer) {
    let (org, owner, me) = requested(server).await;
    let (list, answer) =
        (format!("GET /iam/v1/accessRequests/{org}"), format!("POST /iam/v1/accessRequests/{org}:answer"));
    ok(&owner.actor, &answer, json!({ "identity": me.uid, "decline": true })).await;
    assert_eq!(ok(&owner.actor, &list, Value::Null).await["requests"], json!([]));
    let ask = format!("POST /iam/v2/groups/{org}:requestGroupAccess");
    assert_eq!(call(&me.actor, &ask, json!({})).await.status, 429);
    server.clock().advance(Duration::from_secs(24 * 3600));
    ok(&me.again(server).await, &ask, json!({})).await;
    let owner = owner.again(server).await;
    assert_eq!(each(&ok(&owner, &list, Value::Null).await["requests"], "identity"), [me.uid.as_str()]);
    for (body, field) in [
        (json!({ "identity": me.uid }), "role"),
        (json!({ "identity": me.uid, "role": server.role("viewer"), "decline": true }), "decline"),
        (json!({ "role": server.role("viewer") }), "identity"),
        (json!({ "identity": "me", "decline": true }), "identity"),
    ] {
        assert_eq!(rejected(&owner, &answer, body, 400, "INVALID_ARGUMENT").await.fields(), [field]);
    }
}

async fn requests_have_pages_and_are_read_by_those_who_list_bindings(server: &TestServer) {
    let (org, owner, me) = requested(server).await;
    let mut expected = vec![me.uid.clone()];
    for n in 0..4 {
        server.clock().advance(Duration::from_secs(1));
        let next = person(server, &format!("next-{n}"), &format!("next-{n}@acme.example")).await;
        ok(&next.actor, &format!("POST /iam/v2/groups/{org}:requestGroupAccess"), json!({})).await;
        expected.push(next.uid);
    }
    let seen = pages(&owner.actor, &format!("GET /iam/v1/accessRequests/{org}?page_size=2")).await;
    assert_eq!((seen.len(), each_of(&seen, "requests", "identity")), (3, expected), "the oldest first");
    let lister = holder(server, &org, "lister", &org, &["CAP_IAM_ROLE_BINDINGS_LIST"]).await.actor;
    let list = format!("GET /iam/v1/accessRequests/{org}");
    rejected(&lister, &list, Value::Null, 403, "PERMISSION_DENIED").await;
    rejected(&me.actor, &list, Value::Null, 403, "PERMISSION_DENIED").await;
}

each_engine!(
    a_declined_person_may_ask_again_a_day_later,
    an_answer_is_an_ordinary_grant,
    requests_have_pages_and_are_read_by_those_who_list_bindings
);
