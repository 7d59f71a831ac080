//! No one gives away, or comes to, what they do not hold.

use bowline_contract::v2::iam::rpc::role_bindings_service::CreateRoleBinding;
use bowline_contract::v2::iam::{CreateRoleBindingRequest, RoleBinding};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{call, holder, inventory, ok, rejected, role, uid_of};

const BINDER: &[&str] = &[
    "CAP_IAM_ROLE_BINDINGS_CREATE",
    "CAP_IAM_ROLE_BINDINGS_UPDATE",
    "CAP_IAM_ROLE_BINDINGS_LIST",
    "CAP_IAM_ROLES_LIST",
    "CAP_REPO_LIST",
];

async fn a_binding_gives_no_more_than_its_maker_holds_there(server: &TestServer) {
    let org = server.organization("acme").await;
    let (team, other) = (server.group(&org, "team").await, server.group(&org, "other").await);
    let binder = holder(server, &org, "binder", &team, BINDER).await.actor;
    let friend = server.identity(&org, "friend").await;
    let small = role(server, &team, "small", &["CAP_REPO_LIST"]).await;
    let large = role(server, &team, "large", &["CAP_REPO_LIST", "CAP_REPO_DELETE"]).await;
    let before = inventory(server).await;
    for wide in [server.role("viewer"), server.role("owner"), large.clone()] {
        let body = json!({ "identityUid": friend, "roleUid": wide });
        for what in [format!("POST /iam/v2/roleBindings/{team}"), format!("POST /iam/v2beta1/roleBindings/{team}")] {
            let refusal = rejected(&binder, &what, body.clone(), 403, "PERMISSION_DENIED").await;
            let missing = refusal.detail("ErrorInfo")["metadata"]["capability"].to_string();
            assert!(!missing.contains("role_bindings.create") && missing.len() > 3, "{missing}");
        }
        let v1 = json!({ "identity": friend, "role": wide });
        assert_eq!(call(&binder, &format!("POST /iam/v1/rolebindings/{team}"), v1.clone()).await.status, 403);
        let batch = call(&binder, &format!("POST /iam/v1/rolebindings/batch/{team}"), json!([v1])).await;
        assert_eq!(batch.status, 403, "{}", batch.text());
        let batch = json!({ "parent": team, "requests": [
            { "parent": team, "roleBinding": { "identityUid": friend, "roleUid": small } },
            { "parent": team, "roleBinding": { "identityUid": friend, "roleUid": wide } },
        ] });
        rejected(&binder, "POST /iam/v2/roleBindings:batchCreate", batch, 403, "PERMISSION_DENIED").await;
        let binding = RoleBinding { identity_uid: friend.clone(), role_uid: wide, ..RoleBinding::default() };
        let request = CreateRoleBindingRequest { parent: team.clone(), role_binding: Some(binding) };
        assert_eq!(binder.grpc::<CreateRoleBinding>(request).await.expect_err("too much").code, 7);
    }
    // Neither beside nor above the place where it is held.
    let body = json!({ "identityUid": friend, "roleUid": small });
    for place in [&other, &org] {
        let what = format!("POST /iam/v2/roleBindings/{place}");
        rejected(&binder, &what, body.clone(), 403, "PERMISSION_DENIED").await;
    }
    assert_eq!(inventory(server).await, before, "nothing of a refused batch stays");

    let binding = uid_of(&ok(&binder, &format!("POST /iam/v2/roleBindings/{team}"), body).await);
    let change = format!("PATCH /iam/v2/roleBindings/{binding}");
    rejected(&binder, &change, json!({ "roleUid": large }), 403, "PERMISSION_DENIED").await;
    let v1 = json!({ "id": binding, "identity": friend, "role": large });
    assert_eq!(call(&binder, &format!("PUT /iam/v1/rolebindings/{binding}"), v1).await.status, 403);
    let kept = ok(&binder, &format!("GET /iam/v2/roleBindings/{binding}"), Value::Null).await;
    assert_eq!(kept["roleUid"], small.as_str());
}

async fn a_bound_role_grows_only_by_what_the_caller_holds_where_it_is_bound(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let capabilities = ["CAP_IAM_ROLES_UPDATE", "CAP_IAM_ROLES_LIST", "CAP_REPO_LIST"];
    let keeper = holder(server, &org, "keeper", &org, &capabilities).await;
    let bound = role(server, &org, "bound", &["CAP_REPO_LIST"]).await;
    let free = role(server, &org, "free", &["CAP_REPO_LIST"]).await;
    let friend = server.identity(&org, "friend").await;
    server.bind(&friend, &bound, &team).await;
    let wider = json!({ "capabilities": ["CAP_REPO_LIST", "CAP_REPO_DELETE"] });
    let (of_bound, of_free) = (format!("PATCH /iam/v2/roles/{bound}"), format!("PATCH /iam/v2/roles/{free}"));

    let before = inventory(server).await;
    let refusal = rejected(&keeper.actor, &of_bound, wider.clone(), 403, "PERMISSION_DENIED").await;
    let metadata = &refusal.detail("ErrorInfo")["metadata"];
    assert_eq!((&metadata["capability"], &metadata["scope"]), (&json!("repo.delete"), &json!(team)));
    let v1 = json!({ "name": "bound", "capabilities": ["repo.list", "repo.delete"] });
    assert_eq!(call(&keeper.actor, &format!("PUT /iam/v1/roles/{bound}"), v1).await.status, 403);
    assert_eq!(inventory(server).await, before);

    // Names, and what is taken away, are no one's loss; an unbound role grants nothing.
    ok(&keeper.actor, &of_bound, json!({ "name": "renamed" })).await;
    ok(&keeper.actor, &of_free, wider.clone()).await;
    // Who holds the addition where the role is bound may add it.
    let extra = role(server, &org, "extra", &["CAP_REPO_DELETE"]).await;
    server.bind(&keeper.uid, &extra, &team).await;
    ok(&keeper.actor, &of_bound, wider).await;
    // Bound in a second place where it is not held, it does not grow further.
    let other = server.group(&org, "other").await;
    ok(&keeper.actor, &of_bound, json!({ "capabilities": ["CAP_REPO_LIST"] })).await;
    server.bind(&friend, &bound, &other).await;
    let wider = json!({ "capabilities": ["CAP_REPO_DELETE"] });
    rejected(&keeper.actor, &of_bound, wider, 403, "PERMISSION_DENIED").await;
}

async fn a_bound_identity_is_pointed_elsewhere_only_by_who_holds_what_it_holds(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let capabilities = ["CAP_IAM_IDENTITY_UPDATE", "CAP_IAM_IDENTITY_LIST", "CAP_REPO_LIST"];
    let keeper = holder(server, &org, "keeper", &org, &capabilities).await.actor;
    let bound = server.identity(&org, "bound").await;
    server.bind(&bound, &server.role("viewer"), &team).await;
    let free = server.identity(&org, "free").await;
    let claims = |subject: &str| json!({ "claimMatch": { "issuer": server.idp().issuer(), "subject": subject } });
    let keys = json!({ "staticKeys": { "issuer": "x", "subject": "y", "issuerKeys": "{}" } });
    let what = format!("PATCH /iam/v2/identities/{bound}");
    let before = inventory(server).await;
    for body in [claims("keeper"), keys, json!({ "awsIdentity": { "awsAccount": "123456789012", "arn": "a" } })] {
        let refusal = rejected(&keeper, &what, body, 403, "PERMISSION_DENIED").await;
        assert_eq!(refusal.detail("ErrorInfo")["metadata"]["scope"], team.as_str());
    }
    let v1 = json!({ "name": "bound", "claimMatch": { "issuer": server.idp().issuer(), "subject": "keeper" } });
    assert_eq!(call(&keeper, &format!("PUT /iam/v1/identities/{bound}"), v1).await.status, 403);
    assert_eq!(inventory(server).await, before);

    ok(&keeper, &what, json!({ "description": "harmless" })).await;
    ok(&keeper, &what, claims("bound")).await;
    ok(&keeper, &format!("PATCH /iam/v2/identities/{free}"), claims("keeper")).await;
    // An identity with only what the keeper holds too may be pointed elsewhere.
    let small = role(server, &org, "small", &["CAP_REPO_LIST"]).await;
    server.bind(&free, &small, &team).await;
    ok(&keeper, &format!("PATCH /iam/v2/identities/{free}"), claims("other")).await;
}

async fn a_binding_names_a_role_from_here_or_above_and_an_identity_of_the_organization(server: &TestServer) {
    let org = server.organization("acme").await;
    let elsewhere = server.organization("globex").await;
    let (team, other) = (server.group(&org, "team").await, server.group(&org, "other").await);
    let of_org = role(server, &org, "of org", &["CAP_REPO_LIST"]).await;
    let of_team = role(server, &team, "of team", &["CAP_REPO_LIST"]).await;
    let foreign = role(server, &elsewhere, "foreign", &["CAP_REPO_LIST"]).await;
    let friend = server.identity(&org, "friend").await;
    let nested = server.identity(&team, "nested").await;
    let stranger = server.identity(&elsewhere, "stranger").await;
    let person = "a".repeat(40);
    let operator = server.operator().await;
    let before = inventory(server).await;
    let refusals = [
        (&org, &friend, &of_team, "roleUid"),
        (&other, &friend, &of_team, "roleUid"),
        (&team, &friend, &foreign, "roleUid"),
        (&team, &friend, &format!("{org}/00000000000000ff"), "roleUid"),
        (&team, &friend, &"b".repeat(40), "roleUid"),
        (&team, &friend, &String::new(), "roleUid"),
        (&team, &stranger, &of_team, "identityUid"),
        (&team, &format!("{org}/00000000000000ff"), &of_team, "identityUid"),
        (&team, &String::new(), &of_team, "identityUid"),
        (&team, &"no uid".to_owned(), &of_team, "identityUid"),
    ];
    for (group, identity, role, field) in refusals {
        let body = json!({ "identityUid": identity, "roleUid": role });
        let what = format!("POST /iam/v2/roleBindings/{group}");
        let refusal = rejected(&operator, &what, body, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{group} {identity} {role}");
    }
    assert_eq!(inventory(server).await, before);
    for (group, identity, role) in [
        (&team, &friend, &of_team),
        (&team, &nested, &of_org),
        // A person needs not have come yet, and belongs to no organization.
        (&org, &person, &of_org),
        (&elsewhere, &person, &foreign),
    ] {
        server.bind(identity, role, group).await;
    }
    // A role that the caller may not list is like none.
    let capabilities = ["CAP_IAM_ROLE_BINDINGS_CREATE", "CAP_REPO_LIST"];
    let blind = holder(server, &org, "blind", &team, &capabilities).await.actor;
    let body = json!({ "identityUid": nested, "roleUid": of_team });
    let refusal = rejected(&blind, &format!("POST /iam/v2/roleBindings/{team}"), body, 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["roleUid"]);
}

each_engine!(
    a_binding_gives_no_more_than_its_maker_holds_there,
    a_bound_role_grows_only_by_what_the_caller_holds_where_it_is_bound,
    a_bound_identity_is_pointed_elsewhere_only_by_who_holds_what_it_holds,
    a_binding_names_a_role_from_here_or_above_and_an_identity_of_the_organization
);
