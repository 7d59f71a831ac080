//! Groups: what keeps them, what limits them, and the names that organizations are known by.

use bowline_contract::v2::registry::rpc::repos_service::CreateRepo;
use bowline_contract::v2::registry::{CreateRepoRequest, Repo};
use bowline_server::{Options, StartError};
use bowline_testkit::{Engine, TestServer, by_engine, each_engine};
use serde_json::{Value, json};

use crate::support::{call, each, inventory, number, ok, rejected, role, uid_of};

async fn a_group_is_deleted_only_when_nothing_lives_in_it(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    for (at, what) in ["groups", "repos", "identities", "roles", "subscriptions"].iter().enumerate() {
        let group = server.group(&org, &format!("team {at}")).await;
        let child = match *what {
            "groups" => format!("/iam/v2/groups/{}", server.group(&group, "child").await),
            "repos" => format!("/registry/v2/repos/{}", server.repo(&group, "child").await),
            "identities" => format!("/iam/v2/identities/{}", server.identity(&group, "child").await),
            "subscriptions" => {
                let sink = json!({ "sink": "https://a.example" });
                let made = ok(&operator, &format!("POST /events/v2/subscriptions/{group}"), sink).await;
                format!("/events/v2/subscriptions/{}", uid_of(&made))
            }
            _ => format!("/iam/v2/roles/{}", role(server, &group, "child", &["CAP_REPO_LIST"]).await),
        };
        let delete = format!("DELETE /iam/v2/groups/{group}");
        let before = inventory(server).await;
        let refusal = rejected(&operator, &delete, Value::Null, 400, "FAILED_PRECONDITION").await;
        let sentence = format!("cannot delete group with child {what}");
        assert_eq!(refusal.message(), format!("Precondition failed: {sentence}"));
        let violation = &refusal.detail("PreconditionFailure")["violations"][0];
        assert_eq!((&violation["type"], &violation["description"]), (&json!("RESOURCE_NOT_EMPTY"), &json!(sentence)));
        let v1 = call(&operator, &format!("DELETE /iam/v1/groups/{group}"), Value::Null).await;
        assert_eq!((v1.status, &v1.json()["code"], &v1.json()["details"]), (400, &json!(9), &json!([])));
        assert_eq!(inventory(server).await, before);
        ok(&operator, &format!("DELETE {child}"), Value::Null).await;
        ok(&operator, &delete, Value::Null).await;
        rejected(&operator, &delete, Value::Null, 404, "NOT_FOUND").await;
    }
    // Bindings only say something of the group and go with it.
    let group = server.group(&org, "bound").await;
    server.bind(&"a".repeat(40), &server.role("viewer"), &group).await;
    ok(&operator, &format!("DELETE /iam/v2/groups/{group}"), Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, 0);
}

async fn limits_of_the_operator_hold_everywhere_below(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let (operator, owner) = (server.operator().await, server.actor("owner", &org).await);
    let limit = |most: i64| json!({ "name": "acme", "resourceLimits": { "repositories": most } });
    let put = format!("PUT /iam/v1/groups/{org}");
    let set = ok(&operator, &put, limit(2)).await;
    assert_eq!(set["resourceLimits"], json!({ "repositories": 2 }));
    // What others write of it is left alone, in both versions.
    ok(&owner, &put, limit(100)).await;
    ok(&owner, &format!("PATCH /iam/v2/groups/{org}"), json!({ "description": "d", "resourceLimits": {} })).await;
    let seen = ok(&owner, &format!("GET /iam/v2/groups/{org}"), Value::Null).await;
    assert_eq!(seen["resourceLimits"], json!({ "repositories": 2 }));

    let (first, create) = (server.repo(&org, "one").await, format!("POST /registry/v2/repos/{team}"));
    server.repo(&team, "two").await;
    let before = inventory(server).await;
    let refusal = rejected(&owner, &create, json!({ "name": "three" }), 429, "QUOTA_EXCEEDED").await;
    assert_eq!(refusal.detail("QuotaFailure")["violations"][0]["subject"], org.as_str());
    assert!(refusal.message().contains('2'), "{}", refusal.message());
    assert_eq!(call(&owner, &format!("POST /registry/v1/repos/{team}"), json!({ "name": "x" })).await.status, 429);
    assert_eq!(inventory(server).await, before);
    // Overwriting adds nothing; deleting makes room.
    ok(&owner, &format!("POST /registry/v1/repos/{team}"), json!({ "name": "two", "description": "d" })).await;
    ok(&owner, &format!("DELETE /registry/v2/repos/{first}"), Value::Null).await;
    ok(&owner, &create, json!({ "name": "three" })).await;
    // 0 is a limit, and none is none.
    ok(&operator, &put, limit(0)).await;
    rejected(&owner, &create, json!({ "name": "four" }), 429, "QUOTA_EXCEEDED").await;
    ok(&operator, &put, json!({ "name": "acme" })).await;
    ok(&owner, &create, json!({ "name": "four" })).await;
}

async fn a_limit_holds_against_many_at_once(engine: Engine) {
    let server = TestServer::start(engine).await;
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let limit = json!({ "name": "acme", "resourceLimits": { "repositories": 3 } });
    ok(&operator, &format!("PUT /iam/v1/groups/{org}"), limit).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..12 {
        let (operator, org) = (operator.clone(), org.clone());
        tasks.spawn(async move {
            let repo = Repo { name: format!("r{n}"), ..Repo::default() };
            let request = CreateRepoRequest { parent: org, repo: Some(repo) };
            operator.grpc::<CreateRepo>(request).await.map_or_else(|error| error.code, |_| 0)
        });
    }
    let codes = tasks.join_all().await;
    assert!(codes.iter().all(|code| [0, 8, 14].contains(code)), "{codes:?}");
    let stored = number(&server, "SELECT count(*) FROM repos").await;
    assert_eq!(stored, codes.iter().filter(|code| **code == 0).count() as i64);
    assert!(stored <= 3, "{codes:?}");
    server.stop().await;
}

async fn verified_names_are_unique_stable_and_usable_as_parents(server: &TestServer) {
    let operator = server.operator().await;
    let (org, twin) = (server.organization("acme.com").await, server.organization("acme.com").await);
    let owner = server.actor("owner", &org).await;
    let verify = |group: &str, kind: &str| {
        (format!("PATCH /iam/v2/groups/{group}?updateMask=verified,kind"), json!({ "verified": true, "kind": kind }))
    };
    // Before it is verified, the name is no parent, and no one else verifies it.
    rejected(&owner, "POST /registry/v2/repos/acme.com", json!({ "name": "web" }), 400, "INVALID_ARGUMENT").await;
    let (what, body) = verify(&org, "ORG_KIND_CUSTOMER");
    let ignored = ok(&owner, &what, body.clone()).await;
    assert_eq!((&ignored["verified"], &ignored["kind"]), (&json!(false), &json!("ORG_KIND_UNSPECIFIED")));
    let bare = format!("PATCH /iam/v2/groups/{org}?updateMask=verified");
    let refusal = rejected(&operator, &bare, json!({ "verified": true }), 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["kind"]);
    assert_eq!(ok(&operator, &what, body).await["verified"], true);
    let (what, body) = verify(&twin, "ORG_KIND_CUSTOMER");
    rejected(&operator, &what, body, 409, "ALREADY_EXISTS").await;

    let repo = ok(&owner, "POST /registry/v2/repos/acme.com", json!({ "name": "web" })).await;
    assert!(uid_of(&repo).starts_with(&org));
    let team = ok(&owner, "POST /iam/v2/groups/acme.com", json!({ "name": "team" })).await;
    assert!(uid_of(&team).starts_with(&org));
    assert_eq!(team["kind"], "ORG_KIND_CUSTOMER", "groups have the kind of their organization");
    // A caller who may not list it cannot distinguish the name from one that is free.
    let stranger = server.stranger().await;
    for collection in ["registry/v2/repos", "iam/v2/groups"] {
        let answer = async |name: &str| {
            let reply = call(&stranger, &format!("POST /{collection}/{name}"), json!({ "name": "xyz" })).await;
            (reply.status, reply.text())
        };
        assert_eq!(answer("acme.com").await, answer("nobody.com").await, "{collection}");
    }
    let rename = format!("PATCH /iam/v2/groups/{org}");
    let refusal = rejected(&owner, &rename, json!({ "name": "other.com" }), 400, "FAILED_PRECONDITION").await;
    assert_eq!(refusal.detail("PreconditionFailure")["violations"][0]["type"], "ORGANIZATION_VERIFIED");
    let kept = ok(&owner, &format!("PUT /iam/v1/groups/{org}"), json!({ "name": "acme.com", "verified": false })).await;
    assert_eq!(kept["verified"], true, "what others say of it is ignored");
    assert_eq!(ok(&operator, &rename, json!({ "name": "other.com" })).await["name"], "other.com");
}

async fn who_creates_an_organization_is_a_setting(engine: Engine) {
    let server = TestServer::start(engine).await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let before = inventory(&server).await;
    for what in ["POST /iam/v2/groups", "POST /iam/v2/groups/", "POST /iam/v1/groups/"] {
        let reply = call(&owner, what, json!({ "name": "mine" })).await;
        assert!([403, 404, 405].contains(&reply.status), "{what}: {}", reply.text());
    }
    assert_eq!(inventory(&server).await, before);
    server.stop().await;

    let anyone = |options: &mut Options| *options = with_organizations_for_anyone(options);
    let server = TestServer::start_with(engine, anyone).await;
    let home = server.organization("home").await;
    let workload = crate::support::machine(&server, &home, "workload").await;
    let org = uid_of(&ok(&workload.actor, "POST /iam/v2/groups/", json!({ "name": "mine" })).await);
    let bindings = ok(&workload.actor, &format!("GET /iam/v2/roleBindings?uidp.children_of={org}"), Value::Null).await;
    assert_eq!(each(&bindings["roleBindings"], "roleUid"), [server.role("owner").as_str()]);
    assert_eq!(each(&bindings["roleBindings"], "identityUid"), [workload.uid.as_str()]);
    ok(&workload.actor, &format!("POST /registry/v2/repos/{org}"), json!({ "name": "web" })).await;
    rejected(&server.anonymous(), "POST /iam/v2/groups/", json!({ "name": "mine" }), 401, "UNAUTHENTICATED").await;
    server.stop().await;
}

/// The option's type is private to the command line, so that it is set as a configuration file sets it.
pub(crate) fn with_organizations_for_anyone(options: &Options) -> Options {
    let file = tempfile::NamedTempFile::new().expect("a scratch file");
    std::fs::write(file.path(), "organizations = \"anyone\"\n").expect("the file is written");
    let read: Result<Options, StartError> = Options { config: Some(file.path().into()), ..options.clone() }.with_file();
    read.unwrap_or_else(|error| panic!("the configuration is read: {error}"))
}

/// A hierarchy has an end, so that no identifier and no look-up along it grows without bound.
#[tokio::test]
async fn groups_nest_to_a_limit() {
    for engine in bowline_testkit::engines() {
        let server = bowline_testkit::TestServer::start(engine).await;
        let operator = server.operator().await;
        let mut parent = server.organization("acme").await;
        for level in 0..32 {
            parent = server.group(&parent, &format!("level {level}")).await;
        }
        let path = format!("/iam/v2/groups/{parent}");
        let refused = operator.rest("POST", &path, Some(serde_json::json!({ "name": "one more" }))).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains("nest at most 32 levels"), "{}", refused.text());
        let endless = format!("/iam/v2/groups/{parent}{}", "/0123456789abcdef".repeat(100));
        let refused = operator.rest("GET", &endless, None).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        server.stop().await;
    }
}

each_engine!(
    a_group_is_deleted_only_when_nothing_lives_in_it,
    limits_of_the_operator_hold_everywhere_below,
    verified_names_are_unique_stable_and_usable_as_parents
);

by_engine!(who_creates_an_organization_is_a_setting);

by_engine!(multi_thread: a_limit_holds_against_many_at_once);
