//! What an identity provider holds fast, what goes with it, and how many there may be.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{
    each, execute, holder, inventory, newest_event, number, ok, provider, provider_of, rejected, role, uid_of,
};

const ISSUER: &str = "https://login.example.com";

async fn a_role_that_a_provider_gives_is_in_use(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let capabilities = ["CAP_IAM_ROLES_UPDATE", "CAP_IAM_ROLES_DELETE", "CAP_IAM_ROLES_LIST", "CAP_REPO_LIST"];
    let keeper = holder(server, &org, "keeper", &org, &capabilities).await.actor;
    let by_default = role(server, &org, "by default", &["CAP_REPO_LIST"]).await;
    let mapped = role(server, &org, "mapped", &["CAP_REPO_LIST"]).await;
    let uid = provider(server, &org, "okta").await;
    let patch = format!("PATCH /iam/v2/identityProviders/{uid}");
    ok(&operator, &patch, json!({ "defaultRole": by_default })).await;
    let mapping = json!({ "externalGroupId": "admins", "roleUid": mapped });
    let mapping = ok(&operator, &format!("POST /iam/v2/externalGroupRoleMappings/{uid}"), mapping).await;
    let wider = json!({ "capabilities": ["CAP_REPO_LIST", "CAP_REPO_DELETE"] });
    let before = inventory(server).await;
    for role in [&by_default, &mapped] {
        rejected(&keeper, &format!("PATCH /iam/v2/roles/{role}"), wider.clone(), 403, "PERMISSION_DENIED").await;
        let delete = format!("DELETE /iam/v2/roles/{role}");
        let refusal = rejected(&operator, &delete, Value::Null, 400, "FAILED_PRECONDITION").await;
        assert_eq!(refusal.detail("PreconditionFailure")["violations"][0]["type"], "ROLE_BOUND");
    }
    assert_eq!(inventory(server).await, before);
    ok(&operator, &patch, json!({ "defaultRole": server.role("viewer") })).await;
    ok(&operator, &format!("DELETE /iam/v2/externalGroupRoleMappings/{}", uid_of(&mapping)), Value::Null).await;
    ok(&keeper, &format!("PATCH /iam/v2/roles/{mapped}"), wider).await;
    for role in [&by_default, &mapped] {
        ok(&keeper, &format!("DELETE /iam/v2/roles/{role}"), Value::Null).await;
    }
}

/// What hangs on a provider.
const OWN: [&str; 6] = [
    "SELECT count(*) FROM external_group_role_mappings",
    "SELECT count(*) FROM scim_tokens",
    "SELECT count(*) FROM scim_users",
    "SELECT count(*) FROM sessions",
    "SELECT count(*) FROM session_groups",
    "SELECT count(*) FROM refresh_tokens",
];

async fn a_provider_keeps_its_group_and_takes_everything_of_its_own_along(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let operator = server.operator().await;
    let (uid, other) = (provider(server, &team, "okta").await, provider(server, &org, "other").await);
    let group = format!("DELETE /iam/v2/groups/{team}");
    let refusal = rejected(&operator, &group, Value::Null, 400, "FAILED_PRECONDITION").await;
    assert_eq!(refusal.message(), "Precondition failed: cannot delete group with child identity providers");

    for provider in [&uid, &other] {
        let mapping = json!({ "externalGroupId": "admins", "roleUid": server.role("viewer") });
        ok(&operator, &format!("POST /iam/v2/externalGroupRoleMappings/{provider}"), mapping).await;
        ok(&operator, &format!("POST /iam/v2/identityProviders/{provider}:generateScimToken"), json!({})).await;
        for sql in [
                "INSERT INTO sessions (id, identity, provider, created_at, expires_at) VALUES ('s' || $1, 'i', $1, 1, 2)",
                "INSERT INTO session_groups (session, external_group) VALUES ('s' || $1, 'admins')",
                "INSERT INTO refresh_tokens (hash, family, session, identity, audiences, narrowing, expires_at)
                 SELECT client_secret, 'f', 's' || $1, 'i', '[]', '{}', 2 FROM identity_providers WHERE uid = $1",
                "INSERT INTO scim_users (uid, provider, org, external_id, user_name, person, active, resource, created_at, updated_at)
                 SELECT 'u' || uid, uid, org, 'e', 'n', 'p', scim_enabled, '{}', 1, 1 FROM identity_providers WHERE uid = $1",
            ] {
                execute(server, sql, &[provider]).await;
            }
    }
    for sql in OWN {
        assert_eq!(number(server, sql).await, 2, "{sql}");
    }
    let audited = number(server, "SELECT count(*) FROM audit").await;
    ok(&operator, &format!("DELETE /iam/v2/identityProviders/{uid}"), Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, audited + 2, "the provider and its mapping");
    let [kind, subject, parent, ..] = newest_event(server).await;
    assert_eq!(kind, "dev.chainguard.api.iam.identity_providers.deleted.v1");
    assert_eq!((subject, parent), (uid, team));
    for sql in OWN {
        assert_eq!(number(server, sql).await, 1, "{sql}: only those of the other provider are left");
    }
    let left = ok(&operator, "GET /iam/v2/externalGroupRoleMappings", Value::Null).await;
    assert_eq!((left["totalCount"].as_str(), each(&left["externalGroupRoleMappings"], "uid").len()), (Some("1"), 1));
    ok(&operator, &group, Value::Null).await;
}

async fn an_organization_has_as_many_providers_as_the_operator_lets_it(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let operator = server.operator().await;
    let limit = json!({ "name": "acme", "resourceLimits": { "idps": 1 } });
    ok(&operator, &format!("PUT /iam/v1/groups/{org}"), limit).await;
    let uid = provider(server, &org, "okta").await;
    let create = format!("POST /iam/v2/identityProviders/{team}");
    let body = provider_of(server, "entra", ISSUER);
    let before = inventory(server).await;
    rejected(&operator, &create, body.clone(), 429, "QUOTA_EXCEEDED").await;
    assert_eq!(inventory(server).await, before);
    ok(&operator, &format!("DELETE /iam/v2/identityProviders/{uid}"), Value::Null).await;
    ok(&operator, &create, body).await;
}

async fn another_claim_of_groups_ends_the_sessions_of_before(server: &TestServer) {
    let org = server.organization("acme").await;
    let (operator, uid) = (server.operator().await, provider(server, &org, "okta").await);
    let patch = format!("PATCH /iam/v2/identityProviders/{uid}");
    ok(&operator, &patch, json!({ "oidc": { "groupsClaim": "groups" } })).await;
    for sql in [
        "INSERT INTO sessions (id, identity, provider, created_at, expires_at) VALUES ('s', 'i', $1, 1, 2)",
        "INSERT INTO session_groups (session, external_group) SELECT 's', 'admins' WHERE $1 <> ''",
    ] {
        execute(server, sql, &[&uid]).await;
    }
    ok(&operator, &patch, json!({ "oidc": { "groupsClaim": "groups" }, "description": "d" })).await;
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 1, "nothing else ends them");
    ok(&operator, &patch, json!({ "oidc": { "groupsClaim": "roles" } })).await;
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM session_groups").await, 0);
}

each_engine!(
    a_role_that_a_provider_gives_is_in_use,
    a_provider_keeps_its_group_and_takes_everything_of_its_own_along,
    an_organization_has_as_many_providers_as_the_operator_lets_it,
    another_claim_of_groups_ends_the_sessions_of_before
);
