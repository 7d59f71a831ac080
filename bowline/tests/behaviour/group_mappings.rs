//! Mappings of a provider's groups to roles: who may make them, and that they are there once.

use bowline_contract::v2::iam::GetExternalGroupRoleMappingRequest;
use bowline_contract::v2::iam::rpc::external_group_role_mappings_service::GetExternalGroupRoleMapping;
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, call, each, holder, inventory, newest_event, ok, provider, rejected, role, uid_of};

async fn a_mapping_is_the_same_in_both_versions_and_there_once(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let (operator, viewer) = (server.operator().await, server.actor("viewer", &org).await);
    let (idp, other) = (provider(server, &team, "okta").await, provider(server, &org, "other").await);
    let (create, create_v1) = (
        format!("POST /iam/v2/externalGroupRoleMappings/{idp}"),
        format!("POST /iam/v1/externalGroupRoleMappings/{idp}"),
    );
    let body = json!({ "externalGroupId": "Admins & \u{e4}", "roleUid": server.role("viewer") });
    let made = ok(&operator, &create, body.clone()).await;
    let uid = uid_of(&made);
    assert_eq!((&made["scope"], &made["identityProviderUid"]), (&json!(org), &json!(idp)));
    // The event goes to the group that the provider is in.
    let [kind, subject, group, extensions, told] = newest_event(server).await;
    assert_eq!(kind, "dev.chainguard.api.iam.external_group_role_mappings.created.v1");
    assert_eq!((subject, group), (uid.clone(), team.clone()));
    assert_eq!(extensions, json!({ "identityprovider": idp }).to_string());
    assert!(told.contains("Admins"), "{told}");

    let before = inventory(server).await;
    let v1 = json!({ "externalGroupId": "Admins & \u{e4}", "roleUidp": server.role("viewer"), "scope": org });
    rejected(&operator, &create, body.clone(), 409, "ALREADY_EXISTS").await;
    assert_eq!(call(&operator, &create_v1, v1.clone()).await.status, 409);
    assert_eq!(inventory(server).await, before);
    let second = json!({ "externalGroupId": "Admins & \u{e4}", "roleUidp": server.role("editor") });
    let second = ok(&operator, &create_v1, second).await["id"].as_str().expect("an id").to_owned();
    let elsewhere = uid_of(&ok(&operator, &format!("POST /iam/v2/externalGroupRoleMappings/{other}"), body).await);

    let got = ok(&viewer, &format!("GET /iam/v1/externalGroupRoleMappings/{uid}"), Value::Null).await;
    assert_eq!((&got["id"], &got["roleUidp"]), (&json!(uid), &json!(server.role("viewer"))));
    let request = GetExternalGroupRoleMappingRequest { uid: second.clone() };
    let got = viewer.grpc::<GetExternalGroupRoleMapping>(request).await.expect("it is there");
    assert_eq!(got.role_uid, server.role("editor"));
    let mut both = [uid.as_str(), second.as_str()];
    both.sort_unstable();
    for query in [
        format!("identity_provider_uid={idp}"),
        format!("uidp.children_of={idp}"),
        format!("uidp.descendants_of={team}"),
    ] {
        let list = ok(&viewer, &format!("GET /iam/v2/externalGroupRoleMappings?{query}"), Value::Null).await;
        assert_eq!(each(&list["externalGroupRoleMappings"], "uid"), both, "{query}");
        assert_eq!(list["totalCount"], "2", "{query}");
    }
    let v1 = format!("GET /iam/v1/externalGroupRoleMappings?identity_provider_uidp={other}");
    assert_eq!(each(&ok(&viewer, &v1, Value::Null).await["items"], "id"), [elsewhere.as_str()]);
    for gone in [
        format!("DELETE /iam/v2/externalGroupRoleMappings/{uid}"),
        format!("DELETE /iam/v1/externalGroupRoleMappings/{second}"),
    ] {
        ok(&operator, &gone, Value::Null).await;
        let [kind, _, group, extensions, _] = newest_event(server).await;
        assert_eq!(kind, "dev.chainguard.api.iam.external_group_role_mappings.deleted.v1");
        assert_eq!((group, extensions), (team.clone(), json!({ "identityprovider": idp }).to_string()));
        assert_eq!(call(&operator, &gone, Value::Null).await.status, 404);
    }
}

async fn a_mapping_gives_no_more_than_its_maker_holds_in_the_organization(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let capabilities = ["CAP_IAM_IDENTITY_PROVIDERS_CREATE", "CAP_IAM_ROLE_BINDINGS_CREATE", "CAP_IAM_ROLES_LIST"];
    let keeper = holder(server, &org, "keeper", &org, &capabilities).await;
    let more = role(server, &org, "more", &["CAP_REPO_LIST"]).await;
    let of_team = role(server, &team, "of team", &["CAP_REPO_LIST"]).await;
    let idp = provider(server, &team, "okta").await;
    let create = format!("POST /iam/v2/externalGroupRoleMappings/{idp}");
    let body = |role: &str, scope: &str| json!({ "externalGroupId": "g", "roleUid": role, "scope": scope });
    // Held where the provider is, it is not held where the role is given.
    server.bind(&keeper.uid, &more, &team).await;
    let operator = server.operator().await;
    let before = inventory(server).await;
    let refusal = rejected(&keeper.actor, &create, body(&more, ""), 403, "PERMISSION_DENIED").await;
    assert_eq!(refusal.detail("ErrorInfo")["metadata"]["scope"], org.as_str());
    let v1 = json!({ "externalGroupId": "g", "roleUidp": more });
    assert_eq!(call(&keeper.actor, &format!("POST /iam/v1/externalGroupRoleMappings/{idp}"), v1).await.status, 403);
    for (role, scope, group, field) in [
        (&more, &team, "g", "scope"),
        (&more, &"no uid".to_owned(), "g", "scope"),
        (&of_team, &org, "g", "roleUid"),
        (&absent(&org), &org, "g", "roleUid"),
        (&String::new(), &org, "g", "roleUid"),
        (&more, &org, "", "externalGroupId"),
        (&more, &org, "a\tb", "externalGroupId"),
        (&more, &org, &"x".repeat(513), "externalGroupId"),
    ] {
        let body = json!({ "externalGroupId": group, "roleUid": role, "scope": scope });
        let refusal = rejected(&operator, &create, body, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{role} {scope} {group}");
    }
    assert_eq!(inventory(server).await, before);
    server.bind(&keeper.uid, &more, &org).await;
    ok(&keeper.actor, &create, body(&more, &org)).await;
}

async fn a_batch_deletes_what_is_there_and_nothing_of_others(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let (idp, other) = (provider(server, &org, "okta").await, provider(server, &org, "other").await);
    let make = async |idp: &str, group: &str| {
        let body = json!({ "externalGroupId": group, "roleUid": server.role("viewer") });
        uid_of(&ok(&operator, &format!("POST /iam/v2/externalGroupRoleMappings/{idp}"), body).await)
    };
    let mappings = [make(&idp, "a").await, make(&idp, "b").await, make(&idp, "c").await];
    let foreign = make(&other, "a").await;
    let (v1, v2) =
        ("POST /iam/v1/externalGroupRoleMappings:batchDelete", "POST /iam/v2/externalGroupRoleMappings:batchDelete");
    let before = inventory(server).await;
    for names in
        [json!([mappings[0], foreign]), json!([idp]), json!([]), json!(["nothing"]), json!(vec![absent(&idp); 101])]
    {
        let body = json!({ "parent": idp, "names": names });
        rejected(&operator, v2, body, 400, "INVALID_ARGUMENT").await;
        let body = json!({ "parentId": idp, "ids": names });
        assert_eq!(call(&operator, v1, body).await.status, 400, "{names}");
    }
    let body = json!({ "parent": idp, "names": [mappings[0], foreign] });
    assert_eq!(rejected(&operator, v2, body, 400, "INVALID_ARGUMENT").await.fields(), ["names[1]"]);
    // Without a mapping nothing is done, and there is no event.
    let none = ok(&operator, v2, json!({ "parent": idp, "names": [absent(&idp)] })).await;
    assert_eq!((&none["parent"], &none["externalGroupRoleMappings"]), (&json!(idp), &json!([])));
    assert_eq!(inventory(server).await, before);

    let names = json!([mappings[1], absent(&idp), mappings[0], mappings[1]]);
    let gone = ok(&operator, v2, json!({ "parent": idp, "names": names })).await;
    let uids = each(&gone["externalGroupRoleMappings"], "uid");
    assert_eq!(uids, [mappings[1].as_str(), mappings[0].as_str()]);
    let [kind, subject, group, extensions, told] = newest_event(server).await;
    assert_eq!(kind, "dev.chainguard.api.iam.external_group_role_mappings.deleted.batch.v1");
    assert_eq!((subject, group), (idp.clone(), org.clone()));
    assert_eq!(extensions, json!({ "identityprovider": idp }).to_string());
    assert!(told.contains(&mappings[0]) && told.contains(&mappings[1]), "{told}");
    let gone = ok(&operator, v1, json!({ "parentId": idp, "ids": [mappings[2]] })).await;
    assert_eq!(each(&gone["items"], "id"), [mappings[2].as_str()]);
    let left = ok(&operator, "GET /iam/v2/externalGroupRoleMappings", Value::Null).await;
    assert_eq!(each(&left["externalGroupRoleMappings"], "uid"), [foreign.as_str()]);
}

async fn who_is_in_a_mapped_group_has_the_role_while_the_mapping_lasts(server: &TestServer) {
    let org = server.organization("acme").await;
    let idp = provider(server, &org, "okta").await;
    let operator = server.operator().await;
    let friend = server.identity(&org, "friend").await;
    let sql = "INSERT INTO sessions (id, identity, provider, created_at, expires_at) VALUES ('session', $1, $2, 1, 9000000000000000)";
    crate::support::execute(server, sql, &[&friend, &idp]).await;
    let sql = "INSERT INTO session_groups (session, external_group) VALUES ('session', 'admins')";
    crate::support::execute(server, sql, &[]).await;
    let held = async || {
        let (db, friend, org) = (&server.server().parts().storage.db, friend.clone(), org.clone());
        let read = db.read(move |tx| {
            let friend = friend.clone();
            Box::pin(async move { bowline_identity::load_grants(tx, &friend, Some("session")).await })
        });
        let grants = read.await.expect("the database answers").expect("the session lasts");
        !grants.at(&org).is_empty()
    };
    assert!(!held().await);
    let body = json!({ "externalGroupId": "admins", "roleUid": server.role("viewer") });
    let uid = uid_of(&ok(&operator, &format!("POST /iam/v2/externalGroupRoleMappings/{idp}"), body).await);
    assert!(held().await);
    ok(&operator, &format!("DELETE /iam/v2/externalGroupRoleMappings/{uid}"), Value::Null).await;
    assert!(!held().await);
}

async fn a_mapping_is_made_by_who_may_make_it_in_the_organization(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let makes = ["CAP_IAM_IDENTITY_PROVIDERS_CREATE", "CAP_IAM_ROLE_BINDINGS_CREATE"];
    let reads = role(server, &org, "reads", &["CAP_REPO_LIST", "CAP_IAM_ROLES_LIST"]).await;
    let keeper = holder(server, &team, "keeper", &team, &makes).await;
    server.bind(&keeper.uid, &reads, &org).await;
    let create = format!("POST /iam/v2/externalGroupRoleMappings/{}", provider(server, &team, "okta").await);
    let body = json!({ "externalGroupId": "g", "roleUid": reads });
    // They hold what the role gives, but may give nothing at the organization.
    let before = inventory(server).await;
    let refusal = rejected(&keeper.actor, &create, body.clone(), 403, "PERMISSION_DENIED").await;
    assert_eq!(refusal.detail("ErrorInfo")["metadata"]["scope"], org.as_str());
    assert_eq!(inventory(server).await, before);
    let gives = role(server, &org, "gives", &makes).await;
    server.bind(&keeper.uid, &gives, &org).await;
    ok(&keeper.actor, &create, body).await;
}

each_engine!(
    a_mapping_is_the_same_in_both_versions_and_there_once,
    a_mapping_gives_no_more_than_its_maker_holds_in_the_organization,
    a_batch_deletes_what_is_there_and_nothing_of_others,
    who_is_in_a_mapped_group_has_the_role_while_the_mapping_lasts,
    a_mapping_is_made_by_who_may_make_it_in_the_organization
);
