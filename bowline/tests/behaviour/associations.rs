//! Account associations: one per group, by the group's UIDP.

use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::account_associations::Amazon;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::account_associations_service::{
    DeleteAccountAssociation, UpdateAccountAssociation,
};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, call, each, inventory, number, ok, rejected};
use crate::traces::newest_event;

const CREATED: &str = "dev.chainguard.api.iam.account_associations.created.v1";
const UPDATED: &str = "dev.chainguard.api.iam.account_associations.updated.v1";
const DELETED: &str = "dev.chainguard.api.iam.account_associations.deleted.v1";

/// One of everything.
fn everything() -> Value {
    json!({
        "name": "accounts",
        "description": "all of them",
        "amazon": { "account": "123456789012" },
        "google": { "projectId": "p", "projectNumber": "42" },
        "azure": { "tenantId": "t", "clientIds": { "b": "2", "a": "1" } },
        "chainguard": { "serviceBindings": { "INGESTER": "x" } },
        "github": { "appInstallations": {
            "10": { "installations": [{ "installationId": "7", "name": "seven" }, { "installationId": "3", "name": "" }] },
            "9": { "installations": [] },
        } },
    })
}

async fn a_group_has_one_association_in_both_versions(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    let create = format!("POST /iam/v2/accountAssociations/{team}");
    let made = ok(&owner, &create, everything()).await;
    assert_eq!(made["uid"], team.as_str());
    for (member, value) in everything().as_object().expect("an object") {
        assert_eq!(&made[member], value, "{member}");
    }
    let told = newest_event::<v1::AccountAssociations>(server).await;
    assert_eq!((told.event_type.as_str(), &told.group, &told.subject), (CREATED, &team, &team));
    assert_eq!((&told.body.group, told.body.name.as_str()), (&team, "accounts"));
    assert_eq!(told.body.amazon, Some(Amazon { account: "123456789012".into() }));

    let get = format!("GET /iam/v2/accountAssociations/{team}");
    let text = call(&owner, &get, Value::Null).await.text();
    assert_eq!(text, call(&owner, &get, Value::Null).await.text());
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
    assert!(place("\"9\":") < place("\"10\":") && place("\"a\":") < place("\"b\":"), "{text}");
    let listed = ok(&owner, &format!("GET /iam/v1/account_associations?group={team}"), Value::Null).await;
    let first = &listed["items"][0];
    assert_eq!((&first["group"], &first["github"]), (&json!(team), &made["github"]));

    let before = inventory(server).await;
    rejected(&owner, &create, everything(), 409, "ALREADY_EXISTS").await;
    let again = call(&owner, &format!("POST /iam/v1/account_associations/{team}"), json!({ "name": "x" })).await;
    assert_eq!(again.status, 409, "{}", again.text());
    let nowhere = format!("POST /iam/v2/accountAssociations/{}", absent(&org));
    rejected(&owner, &nowhere, everything(), 404, "NOT_FOUND").await;
    assert_eq!(inventory(server).await, before);

    let v1 = ok(&owner, &format!("POST /iam/v1/account_associations/{org}"), json!({ "name": "of org" })).await;
    assert_eq!((&v1["group"], &v1["amazon"]), (&json!(org), &Value::Null));
    let list = ok(&owner, "GET /iam/v2/accountAssociations", Value::Null).await;
    assert_eq!(each(&list["accountAssociations"], "uid"), [org.as_str(), team.as_str()]);
    assert_eq!(list["totalCount"], "2");
    for (query, expected) in [
        ("order_by=group%20desc", vec![team.as_str(), org.as_str()]),
        ("order_by=uid", vec![org.as_str(), team.as_str()]),
        ("order_by=name", vec![team.as_str(), org.as_str()]),
        ("name=of%20org", vec![org.as_str()]),
        ("name=nothing", vec![]),
        (&format!("uidp.children_of={org}"), vec![team.as_str()]),
        (&format!("uidp.descendants_of={org}"), vec![team.as_str()]),
        ("uidp.in_root=true", vec![org.as_str()]),
        (&format!("uidp.ids={team}"), vec![team.as_str()]),
    ] {
        let list = ok(&owner, &format!("GET /iam/v2/accountAssociations?{query}"), Value::Null).await;
        assert_eq!(each(&list["accountAssociations"], "uid"), expected, "{query}");
        assert_eq!(list["totalCount"], expected.len().to_string(), "{query}");
    }
    let list = ok(&owner, "GET /iam/v1/account_associations?name=accounts", Value::Null).await;
    assert_eq!(each(&list["items"], "group"), [team.as_str()]);
}

async fn updates_change_what_they_name_and_leave_nothing_half_filled(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    ok(&owner, &format!("POST /iam/v2/accountAssociations/{org}"), everything()).await;
    let patch = format!("PATCH /iam/v2/accountAssociations/{org}");
    let google = |id: &str, number: &str| json!({ "projectId": id, "projectNumber": number });
    let changed = ok(&owner, &patch, json!({ "google": google("q", "43") })).await;
    assert_eq!((&changed["google"], &changed["amazon"]), (&google("q", "43"), &everything()["amazon"]));
    let told = newest_event::<v1::AccountAssociations>(server).await;
    assert_eq!((told.event_type.as_str(), told.body.google.map(|part| part.project_id)), (UPDATED, Some("q".into())));
    let part = json!({ "google": { "projectNumber": "44" }, "name": "ignored" });
    let changed = ok(&owner, &format!("{patch}?updateMask=google.projectNumber"), part).await;
    assert_eq!((&changed["google"], &changed["name"]), (&google("q", "44"), &json!("accounts")));
    // Without a mask the parts that are there change, and so does a map as a whole.
    let part = json!({ "google": { "projectId": "r" }, "azure": { "clientIds": { "c": "3" } } });
    let changed = ok(&owner, &patch, part).await;
    assert_eq!(changed["google"], google("r", "44"));
    assert_eq!(changed["azure"], json!({ "tenantId": "t", "clientIds": { "c": "3" } }));
    let changed = ok(&owner, &format!("{patch}?updateMask=azure,description"), json!({})).await;
    assert_eq!((&changed["azure"], &changed["description"]), (&Value::Null, &json!("")));

    // Over gRPC without a mask: what is there.
    let association = v2::AccountAssociation { uid: org.clone(), name: "renamed".into(), ..Default::default() };
    let request = v2::UpdateAccountAssociationRequest { account_association: Some(association), update_mask: None };
    let changed = owner.grpc::<UpdateAccountAssociation>(request).await.expect("an update");
    assert_eq!((changed.name.as_str(), changed.google.is_some()), ("renamed", true));

    let before = inventory(server).await;
    for (query, body, field) in [
        ("?updateMask=google", json!({ "google": { "projectId": "x" } }), "google.projectNumber"),
        ("?updateMask=google.projectId", json!({}), "google.projectId"),
        ("?updateMask=azure.tenantId", json!({ "azure": { "tenantId": "t" } }), "azure.clientIds"),
        ("", json!({ "amazon": { "account": "12" } }), "amazon.account"),
        ("", json!({ "chainguard": {} }), "chainguard.serviceBindings"),
        ("", json!({ "name": "NOT GOOD" }), "name"),
        ("?updateMask=*", json!({ "description": "d" }), "name"),
        ("?updateMask=createTime", json!({}), "updateMask"),
    ] {
        let refusal = rejected(&owner, &format!("{patch}{query}"), body.clone(), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{query} {body}");
    }
    for body in [
        json!({ "name": "n", "google": { "projectId": "x" } }),
        json!({ "name": "n", "github": { "appInstallations": { "1": { "installations": [{ "name": "x" }] } } } }),
        json!({ "name": "" }),
    ] {
        let reply = call(&owner, &format!("PUT /iam/v1/account_associations/{org}"), body.clone()).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
    }
    assert_eq!(inventory(server).await, before);

    // V1 replaces everything.
    let body = json!({ "name": "v1", "amazon": { "account": "210987654321" } });
    let replaced = ok(&owner, &format!("PUT /iam/v1/account_associations/{org}"), body).await;
    assert_eq!((&replaced["google"], &replaced["amazon"]["account"]), (&Value::Null, &json!("210987654321")));
    let team = server.group(&org, "team").await;
    let missing = call(&owner, &format!("PUT /iam/v1/account_associations/{team}"), json!({ "name": "v1" })).await;
    assert_eq!(missing.status, 404);
    rejected(&owner, &format!("PATCH /iam/v2/accountAssociations/{team}"), json!({ "name": "n" }), 404, "NOT_FOUND")
        .await;
}

async fn associations_are_deleted_twice_and_go_with_their_group(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    let create = format!("POST /iam/v2/accountAssociations/{team}");
    for delete in
        [format!("DELETE /iam/v2/accountAssociations/{team}"), format!("DELETE /iam/v1/account_associations/{team}")]
    {
        ok(&owner, &create, everything()).await;
        ok(&owner, &delete, Value::Null).await;
        let told = newest_event::<v1::DeleteAccountAssociationsRequest>(server).await;
        assert_eq!((told.event_type.as_str(), &told.group, &told.body.group), (DELETED, &team, &team));
        let before = inventory(server).await;
        ok(&owner, &delete, Value::Null).await;
        assert_eq!(inventory(server).await, before, "nothing is told or recorded of a deletion of nothing");
    }
    let request = v2::DeleteAccountAssociationRequest { uid: absent(&org) };
    owner.grpc::<DeleteAccountAssociation>(request).await.expect("there is nothing to delete");
    rejected(&owner, &format!("GET /iam/v2/accountAssociations/{team}"), Value::Null, 404, "NOT_FOUND").await;

    ok(&owner, &create, everything()).await;
    let audited = number(server, "SELECT count(*) FROM audit").await;
    ok(&owner, &format!("DELETE /iam/v2/groups/{team}"), Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM audit").await - audited, 2, "the group and its association");
    assert_eq!(number(server, "SELECT count(*) FROM account_associations").await, 0);
    assert_eq!(ok(&owner, "GET /iam/v2/accountAssociations", Value::Null).await["totalCount"], "0");
}

async fn a_check_says_whether_the_account_is_described(server: &TestServer) {
    let org = server.organization("acme").await;
    let viewer = server.actor("viewer", &org).await;
    let check = format!("POST /iam/v2/accountAssociations/{org}:checkAccountAssociation");
    let check_v1 = format!("POST /iam/v1/account_associations/{org}:check");
    let amazon = json!({ "providerType": "ACCOUNT_PROVIDER_TYPE_AMAZON" });
    let none = ok(&viewer, &check, amazon.clone()).await;
    assert_eq!((&none["status"], &none["reason"]), (&json!("CHECK_STATUS_NOT_READY"), &json!("NotAssociated")));
    let body = json!({ "name": "n", "amazon": { "account": "123456789012" } });
    ok(&server.operator().await, &format!("POST /iam/v2/accountAssociations/{org}"), body).await;
    let before = inventory(server).await;
    let ready = ok(&viewer, &check, amazon).await;
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("CHECK_STATUS_READY"), &json!("Associated")));
    let missing = ok(&viewer, &check, json!({ "providerType": "ACCOUNT_PROVIDER_TYPE_GOOGLE" })).await;
    assert_eq!((&missing["status"], &missing["reason"]), (&json!("CHECK_STATUS_NOT_READY"), &json!("AccountMissing")));
    assert!(missing["message"].as_str().is_some_and(|text| text.contains("Google Cloud")), "{missing}");
    let ready = ok(&viewer, &check_v1, json!({ "accountType": "AMAZON" })).await;
    assert_eq!((&ready["ready"], &ready["reason"]), (&json!("Ready"), &json!("Associated")));
    let missing = ok(&viewer, &check_v1, json!({ "accountType": "AZURE" })).await;
    assert_eq!((&missing["ready"], &missing["reason"]), (&json!("NotReady"), &json!("AccountMissing")));
    let refusal = rejected(&viewer, &check, json!({}), 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["providerType"]);
    let refusal = rejected(&viewer, &check_v1, json!({}), 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["accountType"]);
    assert_eq!(inventory(server).await, before);
}

each_engine!(
    a_group_has_one_association_in_both_versions,
    updates_change_what_they_name_and_leave_nothing_half_filled,
    associations_are_deleted_twice_and_go_with_their_group,
    a_check_says_whether_the_account_is_described
);
