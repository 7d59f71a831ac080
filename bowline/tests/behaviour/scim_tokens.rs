//! SCIM tokens: shown once, replaced with an overlap, withdrawn at once; and the switch that needs owners.

use std::time::Duration;

use bowline_core::{Clock as _, Error};
use bowline_identity::ScimUsers;
use bowline_identity::scim::{Presented, ScimError};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{call, execute, inventory, machine, newest_event, ok, provider, rejected};

fn path(provider: &str, verb: &str) -> String {
    format!("POST /iam/v2/identityProviders/{provider}:{verb}")
}

fn text(answer: &Value, member: &str) -> String {
    answer[member].as_str().unwrap_or_else(|| panic!("no {member} in {answer}")).into()
}

/// The state of provisioning that a single provider is answered with.
async fn scim(actor: &Actor, provider: &str) -> Value {
    ok(actor, &format!("GET /iam/v2/identityProviders/{provider}"), Value::Null).await["scim"].clone()
}

/// Whether a directory may provision with the token.
async fn works(server: &TestServer, provider: &str, token: &str) -> bool {
    let users = {
        let parts = server.server().parts();
        ScimUsers::new(parts.storage.db.clone(), parts.contract.clone())
    };
    let presented = Presented::new(provider, token);
    match users.admit(&presented, server.clock().now()).await {
        Ok(_) => true,
        Err(ScimError::Refused(..)) => false,
        Err(ScimError::Failed(error)) => panic!("the database answers: {error}"),
    }
}

/// Two owners at the group, and provisioning on.
async fn enable(server: &TestServer, group: &str, provider: &str) {
    for name in ["first owner", "second owner"] {
        let owner = server.identity(group, name).await;
        server.bind(&owner, &server.role("owner"), group).await;
    }
    let operator = server.operator().await;
    let etag = text(&scim(&operator, provider).await, "etag");
    ok(&operator, &path(provider, "setScimEnabled"), json!({ "enabled": true, "etag": etag })).await;
}

async fn a_token_lives_is_replaced_and_is_withdrawn(server: &TestServer) {
    let org = server.organization("acme").await;
    let idp = provider(server, &org, "okta").await;
    enable(server, &org, &idp).await;
    let operator = server.operator().await;
    let made = ok(&operator, &path(&idp, "generateScimToken"), json!({})).await;
    let (first, etag) = (text(&made, "token"), text(&made, "etag"));
    let random = first.strip_prefix("cgscim_").expect("the prefix");
    assert!(random.len() == 64 && random.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
    assert!(works(server, &idp, &first).await && !works(server, &idp, random).await);
    let state = scim(&operator, &idp).await;
    assert_eq!((&state["credentialState"], &state["etag"]), (&json!("CREDENTIAL_STATE_LIVE"), &json!(etag)));
    assert_eq!((&state["tokenExpireTime"], &state["endpointUrl"]), (&made["expireTime"], &made["endpointUrl"]));
    let again = rejected(&operator, &path(&idp, "generateScimToken"), json!({}), 400, "FAILED_PRECONDITION").await;
    assert!(again.message().contains("regenerate"), "{}", again.message());

    let renew = path(&idp, "regenerateScimToken");
    let before = inventory(server).await;
    rejected(&operator, &renew, json!({ "etag": "other" }), 409, "ABORTED").await;
    rejected(&operator, &renew, json!({}), 400, "INVALID_ARGUMENT").await;
    for overlap in ["-1s", "86401s"] {
        let body = json!({ "etag": etag, "overlap": overlap });
        assert_eq!(rejected(&operator, &renew, body, 400, "INVALID_ARGUMENT").await.fields(), ["overlap"]);
    }
    assert_eq!(inventory(server).await, before);
    let made = ok(&operator, &renew, json!({ "etag": etag })).await;
    let second = text(&made, "token");
    assert_eq!(made["requestedOverlap"], "3600s");
    assert!(works(server, &idp, &first).await && works(server, &idp, &second).await);
    let state = scim(&operator, &idp).await;
    assert_eq!(state["credentialState"], "CREDENTIAL_STATE_ROTATING");
    assert_eq!(state["previousTokenExpireTime"], made["previousTokenExpireTime"]);
    // The etag of before is spent.
    rejected(&operator, &renew, json!({ "etag": etag }), 409, "ABORTED").await;
    server.clock().advance(Duration::from_secs(3599));
    assert!(works(server, &idp, &first).await);
    server.clock().advance(Duration::from_secs(1));
    assert!(!works(server, &idp, &first).await && works(server, &idp, &second).await);

    // Without an overlap the one before ends at once; the one before that is long gone.
    let operator = server.operator().await;
    let v1 = json!({ "etag": made["etag"], "overlap": "0s", "neverExpires": true });
    let made = ok(&operator, &format!("POST /iam/v1/identityProviders/{idp}:regenerateScimToken"), v1).await;
    let third = text(&made, "token");
    assert!(!works(server, &idp, &second).await && works(server, &idp, &third).await);
    let state = scim(&operator, &idp).await;
    assert_eq!((&state["credentialState"], &state["tokenExpireTime"]), (&json!("CREDENTIAL_STATE_LIVE"), &Value::Null));

    let revoke = path(&idp, "revokeScimToken");
    let revoked = ok(&operator, &revoke, json!({})).await;
    assert_eq!(revoked["enabled"], false);
    assert!(revoked["revokeTime"].is_string(), "{revoked}");
    assert!(!works(server, &idp, &third).await);
    let state = scim(&operator, &idp).await;
    assert_eq!((&state["credentialState"], &state["enabled"]), (&json!("CREDENTIAL_STATE_REVOKED"), &json!(false)));
    let before = inventory(server).await;
    assert_eq!(ok(&operator, &revoke, json!({})).await, revoked, "withdrawn once is withdrawn");
    let body = json!({ "etag": revoked["etag"] });
    rejected(&operator, &renew, body, 404, "NOT_FOUND").await;
    assert_eq!(inventory(server).await, before);
    ok(&operator, &format!("POST /iam/v1/identityProviders/{idp}:generateScimToken"), json!({})).await;
}

async fn a_token_ends_when_it_was_to_end(server: &TestServer) {
    let org = server.organization("acme").await;
    let idp = provider(server, &org, "okta").await;
    enable(server, &org, &idp).await;
    let operator = server.operator().await;
    let (generate, now) = (path(&idp, "generateScimToken"), server.clock().seconds());
    let at = |seconds: i64| wire_time(now + seconds);
    let before = inventory(server).await;
    for body in [
        json!({ "expireTime": at(-1) }),
        json!({ "expireTime": at(0) }),
        json!({ "expireTime": at(3 * 365 * 86400) }),
        json!({ "expireTime": at(60), "neverExpires": true }),
    ] {
        let refusal = rejected(&operator, &generate, body.clone(), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), ["expireTime"], "{body}");
        let v1 = format!("POST /iam/v1/identityProviders/{idp}:generateScimToken");
        assert_eq!(call(&operator, &v1, body).await.status, 400);
    }
    assert_eq!(inventory(server).await, before);
    let made = ok(&operator, &generate, json!({ "expireTime": at(60) })).await;
    let first = text(&made, "token");
    // The overlap does not make the replaced token live longer than it would have.
    let body = json!({ "etag": made["etag"], "overlap": "86400s", "expireTime": at(600) });
    let made = ok(&operator, &path(&idp, "regenerateScimToken"), body).await;
    assert_eq!((&made["requestedOverlap"], &made["previousTokenExpireTime"]), (&json!("86400s"), &json!(at(60))));
    server.clock().advance(Duration::from_secs(61));
    let second = text(&made, "token");
    assert!(!works(server, &idp, &first).await && works(server, &idp, &second).await);
    server.clock().advance(Duration::from_secs(540));
    assert!(!works(server, &idp, &second).await);
    assert_eq!(scim(&operator, &idp).await["credentialState"], "CREDENTIAL_STATE_EXPIRED");
    // One that has ended is still there: it is replaced, and nothing of it lives on.
    rejected(&operator, &generate, json!({}), 400, "FAILED_PRECONDITION").await;
    let made = ok(&operator, &path(&idp, "regenerateScimToken"), json!({ "etag": made["etag"] })).await;
    assert_eq!(made["previousTokenExpireTime"], Value::Null);
    assert!(!works(server, &idp, &second).await);
}

/// A time as the wire has it, in whole seconds.
fn wire_time(seconds: i64) -> String {
    let time = prost_types::Timestamp { seconds, nanos: 0 };
    time.to_string()
}

async fn provisioning_is_switched_on_only_where_owners_are_left(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let idp = provider(server, &team, "okta").await;
    let operator = server.operator().await;
    let switch = path(&idp, "setScimEnabled");
    let etag = text(&scim(&operator, &idp).await, "etag");
    let on = json!({ "enabled": true, "etag": etag });
    let owner = machine(server, &org, "owner").await;
    let second = machine(server, &org, "second").await;
    let refuse = async || {
        let before = inventory(server).await;
        let refusal = rejected(&operator, &switch, on.clone(), 400, "FAILED_PRECONDITION").await;
        assert_eq!(refusal.detail("PreconditionFailure")["violations"][0]["subject"], team.as_str());
        let v1 = format!("POST /iam/v1/identityProviders/{idp}:setScimEnabled");
        assert_eq!(call(&operator, &v1, on.clone()).await.status, 400);
        assert_eq!(inventory(server).await, before);
    };
    refuse().await;
    server.bind(&owner.uid, &server.role("owner"), &team).await;
    refuse().await;
    // Owners above do not count, nor those of another role, nor who has never come.
    server.bind(&second.uid, &server.role("owner"), &org).await;
    server.bind(&second.uid, &server.role("editor"), &team).await;
    server.bind(&"a".repeat(40), &server.role("owner"), &team).await;
    refuse().await;
    server.bind(&second.uid, &server.role("owner"), &team).await;
    rejected(&operator, &switch, json!({ "enabled": true, "etag": "other" }), 409, "ABORTED").await;
    let switched = ok(&operator, &switch, on.clone()).await;
    assert_eq!(switched["enabled"], true);
    let [kind, subject, group, _, body] = newest_event(server).await;
    assert_eq!(kind, "dev.chainguard.api.iam.identity_providers.scim_enabled.updated.v1");
    assert_eq!((subject, group), (idp.clone(), team.clone()));
    assert!(body.contains("enabled"), "{body}");
    assert_eq!(scim(&operator, &idp).await["credentialState"], "CREDENTIAL_STATE_NOT_ISSUED");
    rejected(&operator, &switch, on.clone(), 409, "ABORTED").await;
    // On already: nothing is done.
    let before = inventory(server).await;
    let same = json!({ "enabled": true, "etag": switched["etag"] });
    assert_eq!(ok(&operator, &switch, same).await["etag"], switched["etag"]);
    assert_eq!(inventory(server).await, before);
    let made = ok(&operator, &path(&idp, "generateScimToken"), json!({})).await;
    let token = text(&made, "token");
    assert!(works(server, &idp, &token).await);
    // Off, the token is refused and stays.
    let off = json!({ "enabled": false, "etag": made["etag"] });
    assert_eq!(ok(&operator, &switch, off).await["enabled"], false);
    assert!(!works(server, &idp, &token).await);
    assert_eq!(scim(&operator, &idp).await["credentialState"], "CREDENTIAL_STATE_LIVE");
}

async fn a_token_is_shown_once_and_stored_nowhere(server: &TestServer) {
    let org = server.organization("acme").await;
    let idp = provider(server, &org, "okta").await;
    let operator = server.operator().await;
    let made = ok(&operator, &path(&idp, "generateScimToken"), json!({})).await;
    let (token, db) = (text(&made, "token"), &server.server().parts().storage.db);
    let [kind, _, group, ..] = newest_event(server).await;
    assert_eq!(kind, "dev.chainguard.api.iam.identity_providers.scim_token.generated.v1");
    assert_eq!(group, org);
    for sql in [
        "SELECT after_image FROM audit WHERE after_image IS NOT NULL",
        "SELECT body FROM outbox",
        "SELECT hash FROM scim_tokens",
    ] {
        let read = db
            .read(move |tx| Box::pin(async move { tx.query(sql, &[], |row| row.bytes(0).map_err(Error::from)).await }));
        let rows = read.await.expect("the database answers");
        let secret = token.trim_start_matches("cgscim_").as_bytes();
        assert!(!rows.is_empty(), "{sql}");
        assert!(!rows.iter().any(|bytes| bytes.windows(secret.len()).any(|window| window == secret)), "{sql}");
    }
    for what in [format!("GET /iam/v2/identityProviders/{idp}"), "GET /iam/v1/identityProviders".into()] {
        assert!(!call(&operator, &what, Value::Null).await.text().contains("cgscim_"), "{what}");
    }
}

async fn owners_who_cannot_act_do_not_count(server: &TestServer) {
    let org = server.organization("acme").await;
    let idp = provider(server, &org, "okta").await;
    provider(server, &org, "other").await;
    let operator = server.operator().await;
    let etag = text(&scim(&operator, &idp).await, "etag");
    let (switch, on) = (path(&idp, "setScimEnabled"), json!({ "enabled": true, "etag": etag }));
    for name in ["first", "second"] {
        let owner = machine(server, &org, name).await;
        server.bind(&owner.uid, &server.role("owner"), &org).await;
    }
    for (dead, alive) in [
            ("UPDATE identities SET deactivated = TRUE WHERE name = $1", "UPDATE identities SET deactivated = FALSE WHERE name = $1"),
            ("UPDATE identities SET expires_at = 1 WHERE name = $1", "UPDATE identities SET expires_at = NULL WHERE name = $1"),
            ("UPDATE identities SET relationship_type = 4 WHERE name = $1", "UPDATE identities SET relationship_type = 1 WHERE name = $1"),
            (
                "INSERT INTO scim_users (uid, provider, org, external_id, user_name, person, active, resource, created_at, updated_at)
                 SELECT 'u' || i.uid, p.uid, p.org, 'e', 'n', i.uid, FALSE, '{}', 1, 1
                 FROM identities i JOIN identity_providers p ON p.name = 'other' WHERE i.name = $1",
                "DELETE FROM scim_users WHERE external_id = 'e' AND user_name <> $1",
            ),
        ] {
            execute(server, dead, &["second"]).await;
            rejected(&operator, &switch, on.clone(), 400, "FAILED_PRECONDITION").await;
            execute(server, alive, &["second"]).await;
        }
    // One of another provider's directory further down decides nothing here.
    let team = server.group(&org, "team").await;
    let below = provider(server, &team, "below").await;
    let sql = "INSERT INTO scim_users (uid, provider, org, external_id, user_name, person, active, resource, created_at, updated_at)
                   SELECT 'u' || i.uid, $2, i.org, 'e', 'n', i.uid, FALSE, '{}', 1, 1 FROM identities i WHERE i.name = $1";
    execute(server, sql, &["second", &below]).await;
    ok(&operator, &switch, on).await;
}

async fn withdrawing_switches_provisioning_off_whenever_it_is_on(server: &TestServer) {
    let org = server.organization("acme").await;
    let idp = provider(server, &org, "okta").await;
    enable(server, &org, &idp).await;
    let operator = server.operator().await;
    ok(&operator, &path(&idp, "generateScimToken"), json!({})).await;
    let first = ok(&operator, &path(&idp, "revokeScimToken"), json!({})).await;
    let on = json!({ "enabled": true, "etag": first["etag"] });
    ok(&operator, &path(&idp, "setScimEnabled"), on).await;
    server.clock().advance(Duration::from_secs(1));
    let second = ok(&operator, &path(&idp, "revokeScimToken"), json!({})).await;
    assert_eq!((&second["enabled"], &second["revokeTime"]), (&json!(false), &first["revokeTime"]));
    assert_eq!(scim(&operator, &idp).await["enabled"], false);
}

each_engine!(
    a_token_ends_when_it_was_to_end,
    provisioning_is_switched_on_only_where_owners_are_left,
    a_token_is_shown_once_and_stored_nowhere,
    owners_who_cannot_act_do_not_count,
    withdrawing_switches_provisioning_off_whenever_it_is_on,
    a_token_lives_is_replaced_and_is_withdrawn,
);
