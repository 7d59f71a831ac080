//! Invitations: who may make them, what is shown of them, and what is not.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_contract::v1::events as e1;
use bowline_contract::v1::events::rpc::identities::Create as CreateStaticIdentity;
use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::rpc::group_invites::{Create, CreateWithGroup};
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::group_invites_service::CreateGroupInvite;
use bowline_testkit::{TestServer, each_engine};
use prost_types::Duration;
use serde_json::{Value, json};

use crate::support::{absent, call, each, execute, holder, inventory, number, ok, rejected, role, uid_of};
use crate::traces::{everything_told, holds_text, newest_event, told_once};

const CREATED: &str = "dev.chainguard.api.iam.group_invite.created.v1";
const DELETED: &str = "dev.chainguard.api.iam.group_invite.deleted.v1";

const HOUR: Duration = Duration { seconds: 3600, nanos: 0 };

async fn invite(server: &TestServer, group: &str, role: &str) -> Value {
    let body = json!({ "roleUid": role, "ttl": "3600s" });
    ok(&server.operator().await, &format!("POST /iam/v2/groupInvites/{group}"), body).await
}

async fn the_code_is_shown_once_and_kept_nowhere(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    let viewer = server.role("viewer");
    let body =
        json!({ "roleUid": viewer, "ttl": "604800s", "email": "Ada@Example.COM", "singleUse": true, "code": "x" });
    let made = ok(&owner, &format!("POST /iam/v2/groupInvites/{team}"), body).await;
    let (uid, code) = (uid_of(&made), made["code"].as_str().expect("a code").to_owned());
    assert!(uid.starts_with(&format!("{team}/")) && uid.len() == team.len() + 17, "{uid}");
    assert_eq!(
        (&made["email"], &made["singleUse"], &made["ttl"]),
        (&json!("ada@example.com"), &json!(true), &Value::Null)
    );
    assert_eq!(made["role"]["name"], "viewer");
    assert!(!made["role"]["capabilities"].as_array().expect("a list").is_empty());
    let said: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&code).expect("base64")).expect("JSON");
    let ends = server.clock().seconds() + 604_800;
    assert_eq!((&said["grp"], &said["kid"], &said["exp"]), (&json!(team), &made["keyId"], &json!(ends)));
    let signature = said["sig"].as_str().expect("a signature").to_owned();

    let told = newest_event::<v1::GroupInviteRequest>(server).await;
    assert_eq!((told.event_type.as_str(), told.group, told.subject), (CREATED, team.clone(), uid.clone()));
    let expected = v1::GroupInviteRequest {
        group: team.clone(),
        ttl: Some(Duration { seconds: 604_800, nanos: 0 }),
        role: viewer.clone(),
        email: "ada@example.com".into(),
        single_use: true,
    };
    assert_eq!(told.body, expected);

    let read = ok(&owner, &format!("GET /iam/v2/groupInvites/{uid}"), Value::Null).await;
    let mut shown = made.clone();
    shown["code"] = json!("");
    assert_eq!(read, shown);
    let list = ok(&owner, "GET /iam/v2/groupInvites", Value::Null).await;
    assert_eq!(list["groupInvites"], json!([shown]));
    let list = ok(&owner, "GET /iam/v1/group_invites", Value::Null).await;
    let item = &list["items"][0];
    assert_eq!((&item["id"], &item["keyId"], &item["email"]), (&made["uid"], &made["keyId"], &made["email"]));
    assert_eq!((&item["role"]["name"], &item["expiration"]), (&json!("viewer"), &made["expirationTime"]));
    assert_eq!((&item["createdAt"], &item["singleUse"]), (&made["createTime"], &json!(true)));
    assert!(item.get("code").is_none(), "{item}");

    ok(&owner, &format!("DELETE /iam/v2/groupInvites/{uid}"), Value::Null).await;
    let told = newest_event::<v1::DeleteGroupInviteRequest>(server).await;
    assert_eq!((told.event_type.as_str(), told.group, told.body.id), (DELETED, team, uid.clone()));
    rejected(&owner, &format!("GET /iam/v2/groupInvites/{uid}"), Value::Null, 404, "NOT_FOUND").await;
    rejected(&owner, &format!("DELETE /iam/v2/groupInvites/{uid}"), Value::Null, 404, "NOT_FOUND").await;
    for bytes in everything_told(server).await {
        assert!(!holds_text(&bytes, &code) && !holds_text(&bytes, &signature), "a code is on record");
    }
}

async fn both_versions_make_and_withdraw_invitations(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let viewer = server.role("viewer");
    let request = v1::GroupInviteRequest {
        group: org.clone(),
        ttl: Some(HOUR),
        role: viewer.clone(),
        ..v1::GroupInviteRequest::default()
    };
    let first = owner.grpc::<Create>(request.clone()).await.expect("an invitation");
    assert_eq!(first.role.as_ref().map(|role| role.name.as_str()), Some("viewer"));
    assert!(first.code.starts_with("eyJncnAiOi"), "{}", first.code);
    assert_eq!(newest_event::<v1::GroupInviteRequest>(server).await.body, request);
    let body = json!({ "ttl": "3600s", "role": viewer });
    let second = ok(&owner, &format!("POST /iam/v1/group_invites/{org}"), body).await;
    assert_ne!(second["code"], first.code);
    assert_ne!(second["keyId"], first.key_id);
    let invite = v2::GroupInvite { role_uid: viewer, ttl: Some(HOUR), ..v2::GroupInvite::default() };
    let request = v2::CreateGroupInviteRequest { parent: org.clone(), group_invite: Some(invite) };
    let third = owner.grpc::<CreateGroupInvite>(request).await.expect("an invitation");
    assert_eq!(third.ttl, None);

    // Newest first; v1 in the order of UIDPs.
    server.clock().advance(std::time::Duration::from_secs(1));
    let fourth = uid_of(&self::invite(server, &org, &server.role("editor")).await);
    let list = ok(&owner, "GET /iam/v2/groupInvites", Value::Null).await;
    assert_eq!((&list["totalCount"], list["groupInvites"][0]["uid"].as_str()), (&json!("4"), Some(fourth.as_str())));
    let page = ok(&owner, "GET /iam/v2/groupInvites?page_size=1", Value::Null).await;
    let token = page["nextPageToken"].as_str().expect("a token");
    let next = ok(&owner, &format!("GET /iam/v2/groupInvites?page_size=3&page_token={token}"), Value::Null).await;
    let (length, more) = (each(&next["groupInvites"], "uid").len(), next["nextPageToken"].as_str());
    assert_eq!((length, more.unwrap_or_default()), (3, ""));
    let by_key = format!("GET /iam/v2/groupInvites?key_id={}", first.key_id);
    assert_eq!(each(&ok(&owner, &by_key, Value::Null).await["groupInvites"], "uid"), [first.id.as_str()]);
    for query in
        [format!("key_id={}", first.key_id), format!("id={}", first.id), format!("group={org}&id={}", first.id)]
    {
        let list = ok(&owner, &format!("GET /iam/v1/group_invites?{query}"), Value::Null).await;
        assert_eq!(each(&list["items"], "id"), [first.id.as_str()], "{query}");
    }
    for query in [format!("group={}", absent(&org)), "id=nonsense".into(), "key_id=none".into()] {
        let list = ok(&owner, &format!("GET /iam/v1/group_invites?{query}"), Value::Null).await;
        assert_eq!(list, json!({ "items": [] }), "{query}");
    }
    assert_eq!(call(&owner, &format!("DELETE /iam/v1/group_invites/{}", first.id), Value::Null).await.status, 200);
    let again = call(&owner, &format!("DELETE /iam/v1/group_invites/{}", first.id), Value::Null).await;
    assert_eq!((again.status, &again.json()["details"]), (404, &json!([])));
    assert_eq!(ok(&owner, "GET /iam/v2/groupInvites", Value::Null).await["totalCount"], "3");
}

async fn invitations_and_associations_have_one_audit_entry_and_one_event(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    let told = async |what: String, body: Value| told_once(server, &owner, &what, body, 1).await;
    let body = json!({ "roleUid": server.role("viewer"), "ttl": "60s" });
    let uid = uid_of(&told(format!("POST /iam/v2/groupInvites/{team}"), body).await);
    told(format!("DELETE /iam/v1/group_invites/{uid}"), Value::Null).await;
    let body = json!({ "role": server.role("viewer"), "ttl": "60s" });
    let made = told(format!("POST /iam/v1/group_invites/{team}"), body.clone()).await;
    told(format!("DELETE /iam/v2/groupInvites/{}", made["id"].as_str().expect("an id")), Value::Null).await;
    for (create, change, delete) in [
        (
            "POST /iam/v2/accountAssociations",
            "PATCH /iam/v2/accountAssociations",
            "DELETE /iam/v1/account_associations",
        ),
        ("POST /iam/v1/account_associations", "PUT /iam/v1/account_associations", "DELETE /iam/v2/accountAssociations"),
    ] {
        told(format!("{create}/{team}"), json!({ "name": "one" })).await;
        told(format!("{change}/{team}"), json!({ "name": "two" })).await;
        told(format!("{delete}/{team}"), Value::Null).await;
    }
    // The group, with all that is deleted with it, is one event.
    told(format!("POST /iam/v1/group_invites/{team}"), body).await;
    told(format!("POST /iam/v2/accountAssociations/{team}"), json!({ "name": "one" })).await;
    told_once(server, &owner, &format!("DELETE /iam/v2/groups/{team}"), Value::Null, 3).await;
}

async fn wrong_invitations_name_the_field(server: &TestServer) {
    let org = server.organization("acme").await;
    let elsewhere = server.organization("globex").await;
    let owner = server.actor("owner", &org).await;
    let viewer = server.role("viewer");
    let foreign = role(server, &elsewhere, "foreign", &["CAP_REPO_LIST"]).await;
    let before = inventory(server).await;
    for (body, fields) in [
        (json!({ "roleUid": viewer }), &["ttl"][..]),
        (json!({ "roleUid": viewer, "ttl": "0s" }), &["ttl"]),
        (json!({ "roleUid": viewer, "ttl": "-1s" }), &["ttl"]),
        (json!({ "roleUid": viewer, "ttl": "31536001s" }), &["ttl"]),
        (json!({ "roleUid": viewer, "ttl": "315576000000s" }), &["ttl"]),
        (json!({ "roleUid": viewer, "ttl": "60s", "email": "nobody" }), &["email"]),
        (json!({ "roleUid": viewer, "ttl": "60s", "email": "a b@example.com" }), &["email"]),
        (json!({ "ttl": "60s" }), &["roleUid"]),
        (json!({ "roleUid": "viewer", "ttl": "60s" }), &["roleUid"]),
        (json!({ "roleUid": foreign, "ttl": "60s" }), &["roleUid"]),
        (json!({ "roleUid": absent(&org), "ttl": "60s" }), &["roleUid"]),
        (json!({ "email": "x" }), &["email", "roleUid", "ttl"]),
    ] {
        let what = format!("POST /iam/v2/groupInvites/{org}");
        let refusal = rejected(&owner, &what, body.clone(), 400, "INVALID_ARGUMENT").await;
        let mut found = refusal.fields();
        found.sort();
        assert_eq!(found, fields, "{body}");
        let mut body = body;
        if let Some(role) = body.as_object_mut().and_then(|body| body.remove("roleUid")) {
            body["role"] = role;
        }
        let refusal =
            rejected(&owner, &format!("POST /iam/v1/group_invites/{org}"), body.clone(), 400, "INVALID_ARGUMENT").await;
        let expected: Vec<&str> = fields.iter().map(|name| if *name == "roleUid" { "role" } else { name }).collect();
        let mut found = refusal.fields();
        found.sort();
        let mut sorted = expected.clone();
        sorted.sort_unstable();
        assert_eq!(found, sorted, "{body}");
    }
    let longest = json!({ "roleUid": viewer, "ttl": "31536000s" });
    assert_eq!(inventory(server).await, before);
    ok(&owner, &format!("POST /iam/v2/groupInvites/{org}"), longest).await;
}

async fn an_invitation_promises_no_more_than_its_maker_holds_there(server: &TestServer) {
    let org = server.organization("acme").await;
    let (team, other) = (server.group(&org, "team").await, server.group(&org, "other").await);
    let capabilities =
        ["CAP_IAM_GROUP_INVITES_CREATE", "CAP_IAM_ROLE_BINDINGS_CREATE", "CAP_IAM_ROLES_LIST", "CAP_REPO_LIST"];
    let inviter = holder(server, &org, "inviter", &team, &capabilities).await.actor;
    let half = holder(server, &org, "half", &team, &["CAP_IAM_GROUP_INVITES_CREATE", "CAP_REPO_LIST"]).await.actor;
    let small = role(server, &team, "small", &["CAP_REPO_LIST"]).await;
    let large = role(server, &team, "large", &["CAP_REPO_LIST", "CAP_REPO_DELETE"]).await;
    let before = inventory(server).await;
    for wide in [server.role("owner"), server.role("viewer"), large.clone()] {
        let body = json!({ "roleUid": wide, "ttl": "60s" });
        let refusal =
            rejected(&inviter, &format!("POST /iam/v2/groupInvites/{team}"), body, 403, "PERMISSION_DENIED").await;
        let missing = refusal.detail("ErrorInfo")["metadata"]["capability"].to_string();
        assert!(!missing.contains("role_bindings.create") && missing.len() > 3, "{missing}");
        let body = json!({ "role": wide, "ttl": "60s" });
        assert_eq!(call(&inviter, &format!("POST /iam/v1/group_invites/{team}"), body).await.status, 403);
    }
    let body = json!({ "roleUid": small, "ttl": "60s" });
    for (actor, place) in [(&inviter, &other), (&inviter, &org), (&half, &team)] {
        let what = format!("POST /iam/v2/groupInvites/{place}");
        rejected(actor, &what, body.clone(), 403, "PERMISSION_DENIED").await;
    }
    assert_eq!(inventory(server).await, before);
    let made = ok(&inviter, &format!("POST /iam/v2/groupInvites/{team}"), body).await;
    assert_eq!(made["role"]["name"], "small");
}

async fn a_role_is_shown_to_who_may_read_it_while_it_is_there(server: &TestServer) {
    let org = server.organization("acme").await;
    let custom = role(server, &org, "custom", &["CAP_REPO_LIST"]).await;
    let uid = uid_of(&invite(server, &org, &custom).await);
    let blind = holder(server, &org, "blind", &org, &["CAP_IAM_GROUP_INVITES_LIST"]).await.actor;
    let (owner, get) = (server.actor("owner", &org).await, format!("GET /iam/v2/groupInvites/{uid}"));
    let seen = ok(&owner, &get, Value::Null).await;
    assert_eq!(seen["role"]["capabilities"], json!(["CAP_REPO_LIST"]));
    let hidden = ok(&blind, &get, Value::Null).await;
    assert_eq!((&hidden["role"], &hidden["roleUid"]), (&Value::Null, &json!(custom)));
    let listed = ok(&blind, "GET /iam/v1/group_invites", Value::Null).await;
    assert_eq!((&listed["items"][0]["role"]["id"], &listed["items"][0]["role"]["name"]), (&json!(custom), &json!("")));
    // An open invitation keeps its role from being deleted; one that has expired does not.
    let delete = format!("DELETE /iam/v2/roles/{custom}");
    let kept = rejected(&owner, &delete, Value::Null, 400, "FAILED_PRECONDITION").await;
    assert!(kept.message().contains("invitation"), "{}", kept.message());
    execute(server, "UPDATE group_invites SET expires_at = 1", &[]).await;
    ok(&owner, &delete, Value::Null).await;
    let left = ok(&owner, &get, Value::Null).await;
    assert_eq!((&left["role"], &left["roleUid"]), (&Value::Null, &json!(custom)));
}

async fn the_operator_invites_into_a_new_organization_without_an_owner(server: &TestServer) {
    let org = server.organization("acme").await;
    let (operator, owner) = (server.operator().await, server.actor("owner", &org).await);
    let request = |name: &str, role: String| v1::GroupInviteRequest {
        group: name.into(),
        ttl: Some(HOUR),
        role,
        email: "ada@example.com".into(),
        single_use: true,
    };
    let good = request("new org", server.role("owner"));
    let before = inventory(server).await;
    assert_eq!(owner.grpc::<CreateWithGroup>(good.clone()).await.expect_err("the operator alone").code, 7);
    let foreign = role(server, &org, "custom", &["CAP_REPO_LIST"]).await;
    let with_role = inventory(server).await;
    for bad in [
        request("", server.role("owner")),
        request("No Good Name", server.role("owner")),
        request("new org", foreign),
        v1::GroupInviteRequest { ttl: None, ..good.clone() },
    ] {
        assert_eq!(operator.grpc::<CreateWithGroup>(bad.clone()).await.expect_err("bad input").code, 3, "{bad:?}");
    }
    assert_eq!(inventory(server).await, with_role);
    assert_ne!(before, with_role, "the inventory sees changes");
    let bindings = number(server, "SELECT count(*) FROM role_bindings").await;
    let made = operator.grpc::<CreateWithGroup>(good).await.expect("an invitation");
    let group = made.id.split('/').next().expect("a first part").to_owned();
    let created = ok(&operator, &format!("GET /iam/v2/groups/{group}"), Value::Null).await;
    assert_eq!((&created["name"], &created["verified"]), (&json!("new org"), &json!(false)));
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, bindings, "nobody owns it");
    assert!(!made.code.is_empty());
}

async fn the_operator_creates_identities_with_static_keys_in_a_group(server: &TestServer) {
    let org = server.organization("acme").await;
    let (operator, owner) = (server.operator().await, server.actor("owner", &org).await);
    let body = json!({ "id": org, "subject": "s", "issuer": "https://i.example", "issuerKeys": "{}" });
    let refusal = call(&owner, "POST /iam/v1/identities", body.clone()).await;
    assert_eq!(refusal.status, 403, "{}", refusal.text());
    let before = inventory(server).await;
    for (member, value, field) in [
        ("id", json!(""), "id"),
        ("id", json!("nonsense"), "id"),
        ("subject", json!(""), "subject"),
        ("issuer", json!(""), "issuer"),
        ("issuerKeys", json!(""), "issuerKeys"),
        ("expiration", json!("2999-01-01T00:00:00Z"), "expiration"),
    ] {
        let mut bad = body.clone();
        bad[member] = value;
        let refusal = rejected(&operator, "POST /iam/v1/identities", bad, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field]);
    }
    let mut nowhere = body.clone();
    nowhere["id"] = json!(absent(&org));
    assert_eq!(call(&operator, "POST /iam/v1/identities", nowhere).await.status, 404);
    assert_eq!(inventory(server).await, before);

    let made = ok(&operator, "POST /iam/v1/identities", body).await;
    let uid = made["id"].as_str().expect("an id").to_owned();
    assert!(uid.starts_with(&format!("{org}/")), "{made}");
    let read = ok(&operator, &format!("GET /iam/v2/identities/{uid}"), Value::Null).await;
    assert_eq!(
        (&read["staticKeys"]["subject"], &read["staticKeys"]["issuer"]),
        (&json!("s"), &json!("https://i.example"))
    );
    assert_eq!(read["staticKeys"]["expirationTime"], made["expiration"]);
    let request = e1::Identity {
        id: org.clone(),
        subject: "t".into(),
        issuer: "i".into(),
        issuer_keys: "{}".into(),
        expiration: None,
    };
    let made = operator.grpc::<CreateStaticIdentity>(request).await.expect("an identity");
    assert_ne!(made.id, uid);
}

each_engine!(
    the_code_is_shown_once_and_kept_nowhere,
    both_versions_make_and_withdraw_invitations,
    invitations_and_associations_have_one_audit_entry_and_one_event,
    wrong_invitations_name_the_field,
    an_invitation_promises_no_more_than_its_maker_holds_there,
    a_role_is_shown_to_who_may_read_it_while_it_is_there,
    the_operator_invites_into_a_new_organization_without_an_owner,
    the_operator_creates_identities_with_static_keys_in_a_group
);
