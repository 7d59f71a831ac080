//! Roles and bindings: built-in and custom, batches, and deletions that succeed twice.

use bowline_contract::v2::iam::DeleteRoleBindingRequest;
use bowline_contract::v2::iam::rpc::role_bindings_service::DeleteRoleBinding;
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, call, each, holder, inventory, number, ok, rejected, role, uid_of};

const BUILT_IN: &[&str] = &[
    "owner",
    "editor",
    "viewer",
    "console_viewer",
    "limited_owner",
    "registry.pull",
    "registry.push",
    "registry.editor",
    "registry.pull_token_creator",
    "apk.pull",
    "apk.push",
    "libraries.java.pull",
    "libraries.java.push",
    "libraries.java.pull_token_creator",
    "libraries.python.pull",
    "libraries.python.push",
    "libraries.python.pull_token_creator",
    "libraries.javascript.pull",
    "libraries.javascript.push",
    "libraries.javascript.pull_token_creator",
    "libraries.go.pull",
    "libraries.go.push",
    "libraries.go.pull_token_creator",
    "libraries.cargo.pull",
    "libraries.cargo.push",
    "libraries.cargo.pull_token_creator",
    "advisories.viewer",
    "advisories.creator",
    "advisories.approver",
    "advisories.admin",
];

/// The UIDP of a built-in role, as the rules define it.
fn built_in(name: &str) -> String {
    if name == "viewer" {
        return "63921b2c44617e3f2603851537be0123af4a57d7".into();
    }
    let digest = bowline_authn::crypto::sha256(format!("bowline role {name}").as_bytes());
    digest[..20].iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

async fn everybody_sees_the_built_in_roles_but_under_no_hierarchy_filter(server: &TestServer) {
    let org = server.organization("acme").await;
    let custom = role(server, &org, "custom", &["CAP_REPO_LIST"]).await;
    let (stranger, viewer) = (server.stranger().await, server.actor("viewer", &org).await);
    let mut expected: Vec<(String, &str)> = BUILT_IN.iter().map(|name| (built_in(name), *name)).collect();
    expected.sort();
    let list = ok(&stranger, "GET /iam/v2/roles?page_size=200", Value::Null).await;
    let found: Vec<(&str, &str)> = std::iter::zip(each(&list["roles"], "uid"), each(&list["roles"], "name")).collect();
    assert_eq!(found, expected.iter().map(|(uid, name)| (uid.as_str(), *name)).collect::<Vec<_>>());
    assert_eq!(list["totalCount"], BUILT_IN.len().to_string());
    assert!(each(&list["roles"], "description").iter().all(|text| !text.is_empty()), "each has a description");
    let v1 = ok(&stranger, "GET /iam/v1/roles", Value::Null).await;
    assert_eq!(each(&v1["items"], "id"), each(&list["roles"], "uid"));
    let v1 = ok(&stranger, "GET /iam/v1/roles?parent=/", Value::Null).await;
    assert_eq!(v1["items"].as_array().map(Vec::len), Some(BUILT_IN.len()));
    let one = ok(&stranger, &format!("GET /iam/v2/roles/{}", built_in("owner")), Value::Null).await;
    assert_eq!(one["name"], "owner");

    let below = ok(&viewer, &format!("GET /iam/v2/roles?uidp.descendants_of={org}"), Value::Null).await;
    assert_eq!(each(&below["roles"], "uid"), [custom.as_str()]);
    for actor in [&viewer, &server.operator().await] {
        for filter in ["uidp.in_root=true".to_owned(), format!("uidp.ancestors_of={custom}")] {
            let none = call(actor, &format!("GET /iam/v2/roles?{filter}"), Value::Null).await;
            let roles = none.json()["roles"].as_array().map(Vec::len);
            assert!(roles == Some(0) || none.status == 404, "{filter}: {}", none.text());
        }
    }
    let named = ok(&viewer, "GET /iam/v2/roles?name=viewer", Value::Null).await;
    assert_eq!(each(&named["roles"], "name"), ["viewer"]);
    let both = ok(&viewer, "GET /iam/v2/roles?page_size=200", Value::Null).await;
    assert_eq!(both["totalCount"], (BUILT_IN.len() + 1).to_string());
}

async fn built_in_roles_do_not_change(server: &TestServer) {
    let org = server.organization("acme").await;
    let (operator, owner) = (server.operator().await, server.actor("owner", &org).await);
    let before = inventory(server).await;
    for name in ["viewer", "owner"] {
        let uid = built_in(name);
        let change = json!({ "description": "mine", "capabilities": ["CAP_REPO_LIST"] });
        for (actor, status) in [(&operator, 400), (&owner, 403)] {
            let updated = call(actor, &format!("PATCH /iam/v2/roles/{uid}"), change.clone()).await;
            let replaced = json!({ "name": "mine", "capabilities": ["repo.list"] });
            let replaced = call(actor, &format!("PUT /iam/v1/roles/{uid}"), replaced).await;
            let deleted = call(actor, &format!("DELETE /iam/v2/roles/{uid}"), Value::Null).await;
            let deleted_v1 = call(actor, &format!("DELETE /iam/v1/roles/{uid}"), Value::Null).await;
            for reply in [updated, replaced, deleted, deleted_v1] {
                assert_eq!(reply.status, status, "{name}: {}", reply.text());
            }
        }
    }
    assert_eq!(inventory(server).await, before);
}

async fn custom_roles_have_names_of_their_own_and_no_internal_capability(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let operator = server.operator().await;
    let create = format!("POST /iam/v2/roles/{org}");
    let uid = role(server, &org, "mine", &["CAP_REPO_LIST"]).await;
    let before = inventory(server).await;
    let body = |name: &str, capabilities: Value| json!({ "name": name, "capabilities": capabilities });
    let list = json!(["CAP_REPO_LIST"]);
    for name in ["viewer", "registry.pull", "mine"] {
        let refusal = rejected(&operator, &create, body(name, list.clone()), 409, "ALREADY_EXISTS").await;
        assert_eq!(refusal.detail("ResourceInfo")["resourceType"], "iam.chainguard.dev/Role");
    }
    let rename = format!("PATCH /iam/v2/roles/{uid}");
    rejected(&operator, &rename, json!({ "name": "owner" }), 409, "ALREADY_EXISTS").await;
    for capabilities in [json!([]), json!(["CAP_REPO_INTERNAL_ADMIN"]), json!(["NOPE"]), json!([9999])] {
        let refusal = rejected(&operator, &create, body("other", capabilities), 400, "INVALID_ARGUMENT").await;
        assert!(refusal.fields()[0].starts_with("capabilities"), "{:?}", refusal.fields());
    }
    let v1 = json!({ "name": "other", "capabilities": ["repo.list", "repo.nothing", "repo.internal.admin"] });
    let reply = call(&operator, &format!("POST /iam/v1/roles/{org}"), v1).await;
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("repo.nothing"), "{}", reply.text());
    assert_eq!(inventory(server).await, before);
    // The name is free in another group; making a role grants nothing, so it needs no more than roles.create.
    let maker = holder(server, &org, "maker", &team, &["CAP_IAM_ROLES_CREATE"]).await.actor;
    let wide = body("mine", json!(["CAP_REPO_DELETE", "CAP_IAM_GROUPS_DELETE"]));
    ok(&maker, &format!("POST /iam/v2/roles/{team}"), wide).await;
}

async fn a_bound_role_stays(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let (friend, operator) = (server.identity(&org, "friend").await, server.operator().await);
    let bound = role(server, &org, "bound", &["CAP_REPO_LIST"]).await;
    let binding = server.bind(&friend, &bound, &team).await;
    let delete = format!("DELETE /iam/v2/roles/{bound}");
    let before = inventory(server).await;
    let refusal = rejected(&operator, &delete, Value::Null, 400, "FAILED_PRECONDITION").await;
    let violation = &refusal.detail("PreconditionFailure")["violations"][0];
    assert_eq!((&violation["type"], &violation["subject"]), (&json!("ROLE_BOUND"), &json!(bound)));
    let v1 = call(&operator, &format!("DELETE /iam/v1/roles/{bound}"), Value::Null).await;
    assert_eq!((v1.status, v1.json()["code"].as_i64(), v1.json()["details"].clone()), (400, Some(9), json!([])));
    assert_eq!(inventory(server).await, before);
    ok(&operator, &format!("DELETE /iam/v2/roleBindings/{binding}"), Value::Null).await;
    ok(&operator, &delete, Value::Null).await;
    rejected(&operator, &delete, Value::Null, 404, "NOT_FOUND").await;
}

async fn deleting_a_binding_twice_succeeds_and_says_so_once(server: &TestServer) {
    let org = server.organization("acme").await;
    let (friend, operator) = (server.identity(&org, "friend").await, server.operator().await);
    for path in ["/iam/v2/roleBindings", "/iam/v1/rolebindings"] {
        let binding = server.bind(&friend, &server.role("viewer"), &org).await;
        let delete = format!("DELETE {path}/{binding}");
        ok(&operator, &delete, Value::Null).await;
        let before = inventory(server).await;
        ok(&operator, &delete, Value::Null).await;
        let request = DeleteRoleBindingRequest { uid: binding };
        operator.grpc::<DeleteRoleBinding>(request).await.expect("deleting nothing succeeds");
        ok(&operator, &format!("DELETE {path}/{}", absent(&org)), Value::Null).await;
        assert_eq!(inventory(server).await, before, "nothing changed, so nothing is recorded");
    }
    // The permission is required all the same.
    rejected(
        &server.stranger().await,
        &format!("DELETE /iam/v2/roleBindings/{}", absent(&org)),
        Value::Null,
        403,
        "PERMISSION_DENIED",
    )
    .await;
}

async fn deleting_an_identity_removes_its_bindings(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let (friend, other) = (server.identity(&org, "friend").await, server.identity(&org, "other").await);
    let operator = server.operator().await;
    for (identity, role, place) in [(&friend, "viewer", &org), (&friend, "editor", &team), (&other, "viewer", &org)] {
        server.bind(identity, &server.role(role), place).await;
    }
    ok(&operator, &format!("DELETE /iam/v2/identities/{friend}"), Value::Null).await;
    let left = ok(&operator, "GET /iam/v2/roleBindings", Value::Null).await;
    assert_eq!(each(&left["roleBindings"], "identityUid"), [other.as_str()]);
    assert_eq!(left["totalCount"], "1");
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, 1);
    rejected(&operator, &format!("DELETE /iam/v2/identities/{friend}"), Value::Null, 404, "NOT_FOUND").await;
    let gone = ok(&operator, &format!("GET /iam/v2/roleBindings?identity={friend}"), Value::Null).await;
    assert_eq!(gone["totalCount"], "0");
}

async fn batches_of_bindings_are_whole_ordered_and_bounded(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let operator = server.operator().await;
    let mut friends = Vec::new();
    for n in 0..26 {
        friends.push(server.identity(&org, &format!("friend{n:02}")).await);
    }
    let (viewer, editor) = (server.role("viewer"), server.role("editor"));
    let entry = |identity: &str, role: &str| json!({ "parent": team, "roleBinding": { "identityUid": identity, "roleUid": role } });
    let batch = |requests: Vec<Value>| json!({ "parent": team, "requests": requests });
    let what = "POST /iam/v2/roleBindings:batchCreate";
    let before = inventory(server).await;
    let all: Vec<Value> = friends.iter().map(|friend| entry(friend, &viewer)).collect();
    for (body, field) in [
        (batch(all.clone()), "requests"),
        (batch(vec![]), "requests"),
        (batch(vec![entry(&friends[0], &viewer), entry(&friends[1], "")]), "requests[1].roleBinding.roleUid"),
        (batch(vec![entry(&friends[0], &viewer), entry("", &viewer)]), "requests[1].roleBinding.identityUid"),
        (
            json!({ "parent": team, "roleUid": viewer, "requests": [entry(&friends[0], &editor)] }),
            "requests[0].roleBinding.roleUid",
        ),
        (
            json!({ "parent": team, "requests": [
                { "parent": org, "roleBinding": { "identityUid": friends[0], "roleUid": viewer } },
            ] }),
            "requests[0].parent",
        ),
    ] {
        let refusal = rejected(&operator, what, body, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field]);
    }
    // The same binding twice: none of the batch stays.
    let twice = batch(vec![entry(&friends[0], &viewer), entry(&friends[0], &viewer)]);
    rejected(&operator, what, twice, 409, "ALREADY_EXISTS").await;
    assert_eq!(inventory(server).await, before);

    let some: Vec<Value> = friends
        .iter()
        .rev()
        .take(25)
        .map(|friend| json!({ "parent": team, "roleBinding": { "identityUid": friend } }))
        .collect();
    let made = ok(&operator, what, json!({ "parent": team, "roleUid": viewer, "requests": some })).await;
    let expected: Vec<&str> = friends.iter().rev().take(25).map(String::as_str).collect();
    assert_eq!(each(&made["roleBindings"], "identityUid"), expected, "answers in the order of the requests");
    assert!(each(&made["roleBindings"], "roleUid").iter().all(|role| *role == viewer));

    let v1: Vec<Value> = friends[..2].iter().map(|friend| json!({ "identity": friend, "role": editor })).collect();
    let made = ok(&operator, &format!("POST /iam/v1/rolebindings/batch/{team}"), json!(v1)).await;
    assert_eq!(each(&made["roleBindings"], "identity"), [friends[0].as_str(), friends[1].as_str()]);
    let again = entry(&friends[0], &editor);
    rejected(&operator, what, batch(vec![again]), 409, "ALREADY_EXISTS").await;
    let binding = uid_of(
        &ok(&operator, &format!("GET /iam/v2/roleBindings?identity={}&role={editor}", friends[1]), Value::Null).await["roleBindings"]
            [0],
    );
    let same = json!({ "identityUid": friends[0] });
    rejected(&operator, &format!("PATCH /iam/v2/roleBindings/{binding}"), same, 409, "ALREADY_EXISTS").await;
}

each_engine!(
    everybody_sees_the_built_in_roles_but_under_no_hierarchy_filter,
    built_in_roles_do_not_change,
    custom_roles_have_names_of_their_own_and_no_internal_capability,
    a_bound_role_stays,
    deleting_a_binding_twice_succeeds_and_says_so_once,
    deleting_an_identity_removes_its_bindings,
    batches_of_bindings_are_whole_ordered_and_bounded
);
