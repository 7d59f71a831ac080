//! Refresh tokens: good once, replayed shortly, and the end of the session when they come back later.

use std::time::Duration;

use base64::Engine as _;
use bowline_contract::v1::oidc::ExchangeRefreshTokenRequest;
use bowline_contract::v1::oidc::rpc::security_token_service::ExchangeRefreshToken;
use bowline_identity::people::{Login, TokenParams};
use bowline_testkit::{RestReply, TestServer, each_engine};
use serde_json::{Value, json};

use crate::people_support::{
    Own, actor, api, context, offered, own, parts, people, person, provision, sign_in, vouched,
};
use crate::support::{Refusal, call, claims_of, execute, number, send};

/// Someone with a refresh token.
pub(crate) async fn begin(server: &TestServer, asked: TokenParams) -> (Login, String) {
    let provider = offered(server).await;
    let upstream = vouched(server, &provider, "ada", Value::Null).await;
    let login = sign_in(server, &provider, &upstream).await;
    let audiences = if asked.audiences.is_empty() { api(server) } else { asked.audiences.clone() };
    let asked = TokenParams { audiences, refresh: true, ..asked };
    let issued = people(server).issue(&login.session, &upstream, &asked, &context(server)).await;
    let token = issued.expect("tokens").refresh_token.expect("a refresh token");
    (login, token)
}

async fn refresh(server: &TestServer, token: &str, form: &str) -> RestReply {
    let form_type = [("content-type", "application/x-www-form-urlencoded")];
    send(&actor(server, token), "POST /sts/exchange_refresh_token", &form_type, form).await
}

/// The access token and the next refresh token.
async fn pair(server: &TestServer, token: &str, form: &str) -> (String, String) {
    let reply = refresh(server, token, form).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let text = |value: &Value| value["token"].as_str().expect("a token").to_owned();
    (text(&reply.json()["token"]), text(&reply.json()["refreshToken"]))
}

async fn reason(server: &TestServer, token: &str, form: &str) -> String {
    let reply = refresh(server, token, form).await;
    assert_ne!(reply.status, 200, "{}", reply.text());
    Refusal(reply.json()).reason()
}

const SESSIONS: &str = "SELECT count(*) FROM sessions";

async fn each_use_makes_the_next_one(server: &TestServer) {
    let (login, first) = begin(server, TokenParams::default()).await;
    let (access, second) = pair(server, &first, "").await;
    let claims = claims_of(&access);
    assert_eq!((&claims["sub"], &claims["sid"]), (&json!(login.identity.as_str()), &json!(login.session)));
    assert_eq!(claims["aud"], json!(server.base()));
    assert_eq!(call(&actor(server, &access), "GET /auth/v1/ok", Value::Null).await.status, 200);
    let request = ExchangeRefreshTokenRequest::default();
    let third = actor(server, &second).grpc::<ExchangeRefreshToken>(request).await.expect("over gRPC too");
    let third = third.refresh_token.expect("the next").token;
    assert!(first != second && second != third);
    assert_eq!(number(server, "SELECT count(*) FROM refresh_tokens WHERE spent_at IS NULL").await, 1);
    for junk in ["", "a.b.c", "e30="] {
        assert_eq!(refresh(server, junk, "").await.status, 401, "{junk}");
    }
    // Another family's name around a good secret is no token.
    let codec = base64::engine::general_purpose::STANDARD;
    let mut json: Value = serde_json::from_slice(&codec.decode(&third).expect("base64")).expect("JSON");
    json["fam"] = json!("00".repeat(16));
    assert_eq!(reason(server, &codec.encode(json.to_string()), "").await, "TOKEN_INVALID");
    pair(server, &third, "").await;
}

async fn a_spent_token_is_replayed_for_half_a_minute_and_then_ends_the_session(server: &TestServer) {
    let (_, first) = begin(server, TokenParams::default()).await;
    let (access, second) = pair(server, &first, "").await;
    server.clock().advance(Duration::from_secs(30));
    let (_, again) = pair(server, &first, "").await;
    assert_eq!(again, second, "whoever lost the answer gets the same one");
    server.clock().advance(Duration::from_secs(1));
    let audited = "SELECT count(*) FROM audit WHERE kind = 'bowline.dev/Session'";
    let before = number(server, audited).await;
    assert_eq!(reason(server, &first, "").await, "TOKEN_REUSED");
    assert_eq!((number(server, SESSIONS).await, number(server, audited).await), (0, before + 1));
    assert_eq!(reason(server, &second, "").await, "TOKEN_INVALID", "the family is gone");
    assert_eq!(call(&actor(server, &access), "GET /auth/v1/ok", Value::Null).await.status, 401);
}

async fn a_month_after_the_sign_in_everything_ends(server: &TestServer) {
    let (_, mut token) = begin(server, TokenParams::default()).await;
    for _ in 0..3 {
        server.clock().advance(Duration::from_hours(7 * 24));
        token = pair(server, &token, "").await.1;
    }
    server.clock().advance(Duration::from_hours(9 * 24 - 1));
    let (access, token) = pair(server, &token, "").await;
    let claims = claims_of(&access);
    assert_eq!(claims["exp"], json!(server.clock().seconds() + 3600));
    server.clock().advance(Duration::from_hours(1));
    assert_eq!(reason(server, &token, "").await, "TOKEN_EXPIRED");
}

async fn narrowing_only_ever_narrows(server: &TestServer) {
    let registry = parts(server).settings.registry_audience.clone();
    let (org, other) = (server.organization("acme").await, server.organization("other").await);
    let asked = TokenParams { audiences: vec![server.base().into(), registry.clone()], ..TokenParams::default() };
    let (_, token) = begin(server, asked).await;
    let libraries = parts(server).settings.libraries_audience.clone();
    assert_eq!(reason(server, &token, &format!("aud={libraries}")).await, "INVALID_ARGUMENT");
    assert_eq!(reason(server, &token, "cap=no.such").await, "INVALID_ARGUMENT");
    let (access, token) = pair(server, &token, &format!("aud={registry}")).await;
    assert_eq!(claims_of(&access)["aud"], json!(registry));
    let (access, token) = pair(server, &token, "").await;
    assert_eq!(claims_of(&access)["aud"].as_array().map(Vec::len), Some(2), "the family keeps its audiences");
    let (_, token) = pair(server, &token, &format!("scopes={org}&cap=groups.list&cap=repo.list")).await;
    let (access, narrower) = pair(server, &token, "cap=repo.list&cap=groups.create").await;
    let narrow = claims_of(&access)["narrow"].clone();
    assert_eq!(narrow["scopes"], json!([org]));
    assert_eq!(refresh(server, &narrower, &format!("scopes={other}")).await.status, 403);
    let (access, _) = pair(server, &narrower, "").await;
    assert_eq!(claims_of(&access)["narrow"], narrow, "what was taken away does not come back");
    // Nor by replaying the one before.
    let (access, _) = pair(server, &token, "").await;
    assert_eq!(claims_of(&access)["narrow"], narrow);
}

async fn revoking_ends_the_family_and_the_session(server: &TestServer) {
    let (_, first) = begin(server, TokenParams::default()).await;
    people(server).revoke("junk", &context(server)).await.expect("unknown tokens are as good as revoked");
    assert_eq!(number(server, SESSIONS).await, 1);
    let (access, second) = pair(server, &first, "").await;
    people(server).revoke(&second, &context(server)).await.expect("revoked");
    assert_eq!(number(server, SESSIONS).await, 0);
    people(server).revoke(&second, &context(server)).await.expect("again");
    assert_eq!(refresh(server, &second, "").await.status, 401);
    assert_eq!(call(&actor(server, &access), "GET /auth/v1/ok", Value::Null).await.status, 401);
}

async fn an_access_token_ends_its_own_session_and_no_other(server: &TestServer) {
    let (_, refresh_token) = begin(server, TokenParams::default()).await;
    let (access, _) = pair(server, &refresh_token, "").await;
    let org = server.organization("acme").await;
    let machine = server.actor("viewer", &org).await;
    let without_session = machine.token.clone().expect("a token");
    let damaged = format!("{}x", &access[..access.len() - 1]);
    for other in [without_session, damaged] {
        people(server).revoke(&other, &context(server)).await.expect("what is unknown is as good as revoked");
        assert_eq!(number(server, SESSIONS).await, 1);
    }
    let audited = "SELECT count(*) FROM audit WHERE kind = 'bowline.dev/Session'";
    let before = number(server, audited).await;
    people(server).revoke(&access, &context(server)).await.expect("revoked");
    assert_eq!((number(server, SESSIONS).await, number(server, audited).await), (0, before + 1));
    assert_eq!(call(&actor(server, &access), "GET /auth/v1/ok", Value::Null).await.status, 401);
    people(server).revoke(&access, &context(server)).await.expect("again");
}

async fn only_people_whom_the_provider_admits_are_refreshed(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { scim: true, ..Own::default() }).await;
    provision(server, &provider, "ada", &person(server, "ada")).await;
    let begin = async || {
        let upstream = vouched(server, &provider, "ada", Value::Null).await;
        let login = sign_in(server, &provider, &upstream).await;
        let asked = TokenParams { audiences: api(server), refresh: true, ..TokenParams::default() };
        let issued = people(server).issue(&login.session, &upstream, &asked, &context(server)).await;
        issued.expect("tokens").refresh_token.expect("a refresh token")
    };
    let (one, two) = (begin().await, begin().await);
    let (access, one) = pair(server, &one, "").await;
    assert_eq!(claims_of(&access)["narrow"]["scopes"], json!([org]), "it stays inside the organization");
    execute(server, "DELETE FROM scim_users WHERE external_id = $1", &["ada"]).await;
    assert_eq!(reason(server, &one, "").await, "UNAUTHENTICATED");
    provision(server, &provider, "ada", &person(server, "ada")).await;
    pair(server, &one, "").await;
    execute(server, "DELETE FROM identity_providers WHERE org = $1", &[&org]).await;
    assert_eq!(reason(server, &two, "").await, "UNAUTHENTICATED");
    // The operator's own provider, too.
    let (_, token) = self::begin(server, TokenParams::default()).await;
    execute(server, "DELETE FROM operator_providers WHERE id = $1", &["main"]).await;
    assert_eq!(reason(server, &token, "").await, "UNAUTHENTICATED");
    // And no identity, no token.
    offered(server).await;
    let (_, token) = self::begin(server, TokenParams::default()).await;
    execute(server, "DELETE FROM identities WHERE uid = $1", &[&person(server, "ada")]).await;
    assert_eq!(reason(server, &token, "").await, "UNAUTHENTICATED");
}

each_engine!(
    each_use_makes_the_next_one,
    a_spent_token_is_replayed_for_half_a_minute_and_then_ends_the_session,
    a_month_after_the_sign_in_everything_ends,
    narrowing_only_ever_narrows,
    revoking_ends_the_family_and_the_session,
    an_access_token_ends_its_own_session_and_no_other,
    only_people_whom_the_provider_admits_are_refreshed
);
