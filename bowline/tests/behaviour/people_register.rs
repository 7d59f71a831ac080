//! Registering with a token, signing in at the exchange, going away, and what is read once.

use std::time::Duration;

use bowline_contract::v1::auth::rpc::auth::{Delete, GetHeadlessSession};
use bowline_contract::v1::auth::{DeletionRequest, GetHeadlessSessionRequest};
use bowline_core::Reason;
use bowline_identity::people::{self as signing, TokenParams};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::people_support::{
    CLIENT, Own, actor, api, context, draw, offered, own, parts, people, person, provision, sign_in, uid_of_provider,
    vouched,
};
use crate::support::{Refusal, call, claims_of, number, token_of};

const REGISTER: &str = "POST /auth/v1/register";

async fn people_register_with_a_token_of_the_operators_provider(server: &TestServer) {
    let token = |claims: Value| server.idp().token("ada", CLIENT, claims);
    let before = server.idp().requests();
    let refused = call(&actor(server, &token(Value::Null)), REGISTER, json!({})).await;
    assert_eq!((refused.status, server.idp().requests()), (403, before), "no request leaves for nobody's issuer");
    offered(server).await;
    for (claims, body, status) in [
        (Value::Null, json!({ "identityId": server.role("viewer") }), 400),
        (Value::Null, json!({ "code": "no-code" }), 400),
        (json!({ "aud": "another" }), json!({}), 401),
        (json!({ "exp": 1 }), json!({}), 401),
    ] {
        let reply = call(&actor(server, &token(claims.clone())), REGISTER, body.clone()).await;
        assert_eq!(reply.status, status, "{claims} {body}: {}", reply.text());
    }
    assert_eq!(number(server, "SELECT count(*) FROM identities").await, 0);
    let ada = person(server, "ada");
    let reply = call(&actor(server, &token(Value::Null)), REGISTER, json!({ "identityId": ada })).await;
    assert_eq!((reply.status, reply.json()), (200, json!({ "identity": ada, "group": "" })), "{}", reply.text());
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.api.auth.registered.v1'";
    assert_eq!(number(server, told).await, 1);
    let again = call(&actor(server, &token(json!({ "aud": server.base() }))), REGISTER, json!({})).await;
    assert_eq!((again.status, number(server, told).await), (409, 1), "{}", again.text());
    // Tokens of this server make no one else.
    let own = server.exchange(&server.idp().token("ada", server.base(), Value::Null), &[("aud", server.base())]).await;
    let reply = call(&actor(server, &token_of(&own)), REGISTER, json!({})).await;
    assert_eq!(reply.status, 403, "{}", reply.text());
    assert_eq!(call(&server.anonymous(), REGISTER, json!({})).await.status, 401);
}

async fn a_named_provider_gives_registered_people_a_session_of_an_hour(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { default_role: &server.role("viewer"), scim: true, ..Own::default() }).await;
    let uid = uid_of_provider(&provider);
    let upstream = server.idp().token("ada", CLIENT, Value::Null);
    let exchange = async |token: &str, uid: &str| {
        server.exchange(token, &[("aud", server.base()), ("identity_provider", uid)]).await
    };
    let text = "no identity found; pass identity=<uid>";
    let absent = format!("{org}/00000000000000ff");
    for (token, uid) in [(&upstream, &uid), (&upstream, &absent)] {
        let reply = exchange(token, uid).await;
        assert_eq!((reply.status, Refusal(reply.json()).message()), (403, text));
    }
    provision(server, &provider, "ada", &person(server, "ada")).await;
    let vouched = vouched(server, &provider, "ada", Value::Null).await;
    sign_in(server, &provider, &vouched).await;
    let claims = claims_of(&token_of(&exchange(&upstream, &uid).await));
    assert_eq!((&claims["idp"], &claims["narrow"]["scopes"]), (&json!(uid), &json!([org])));
    let lasts = "SELECT expires_at - created_at FROM sessions ORDER BY created_at DESC LIMIT 1";
    assert_eq!((claims["sid"].is_string(), number(server, lasts).await), (true, 3_600_000_000));
    let other = server.idp().token("ada", "another-client", Value::Null);
    assert_eq!(exchange(&other, &uid).await.status, 401);
    let wrong = server.idp().other_key("ada", CLIENT);
    assert_eq!(exchange(&wrong, &uid).await.status, 401);
    let elsewhere = server.idp().token("ada", CLIENT, json!({ "iss": "https://other.example" }));
    assert_eq!(exchange(&elsewhere, &uid).await.status, 403);
    crate::support::execute(server, "DELETE FROM scim_users WHERE provider = $1", &[&uid]).await;
    assert_eq!(exchange(&upstream, &uid).await.status, 403);
}

/// A registered person with a token, narrowed to these groups.
async fn signed_in(server: &TestServer, subject: &str, scopes: &[&str]) -> bowline_testkit::Actor {
    let provider = offered(server).await;
    let upstream = vouched(server, &provider, subject, Value::Null).await;
    let login = sign_in(server, &provider, &upstream).await;
    let scopes = scopes.iter().map(ToString::to_string).collect();
    let asked = TokenParams { audiences: api(server), scopes, ..TokenParams::default() };
    let issued = people(server).issue(&login.session, &upstream, &asked, &context(server)).await.expect("a token");
    actor(server, &issued.token)
}

async fn people_delete_only_themselves(server: &TestServer) {
    let org = server.organization("acme").await;
    let (ada, bob) = (signed_in(server, "ada", &[]).await, signed_in(server, "bob", &[]).await);
    let (hers, his) = (person(server, "ada"), person(server, "bob"));
    let delete = async |actor: &bowline_testkit::Actor, id: &str| {
        call(actor, &format!("DELETE /auth/v1/delete/{id}"), Value::Null).await
    };
    assert_eq!(delete(&bob, &hers).await.status, 403);
    assert_eq!(delete(&bob, "x").await.status, 400);
    assert_eq!(delete(&server.anonymous(), &hers).await.status, 401);
    let narrowed = signed_in(server, "ada", &[&org]).await;
    assert_eq!(delete(&narrowed, &hers).await.status, 403);
    let machine = server.actor("viewer", &org).await;
    let request = DeletionRequest { id: machine.identity.clone() };
    assert_eq!(machine.grpc::<Delete>(request).await.expect_err("a machine").code, 7);
    let operator = server.operator().await;
    assert_eq!(delete(&operator, &operator.identity).await.status, 403);
    // The last owner stays; one who is bound and never came is no one.
    server.bind(&hers, &server.role("owner"), &org).await;
    server.bind(&person(server, "never-came"), &server.role("owner"), &org).await;
    let refused = delete(&ada, &hers).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains(&org), "{}", refused.text());
    server.bind(&his, &server.role("owner"), &org).await;
    // Nor one who cannot act: past their end, or deactivated by the organization's directory.
    let execute = async |sql| crate::support::execute(server, sql, &[&his]).await;
    execute("UPDATE identities SET expires_at = 1 WHERE uid = $1").await;
    assert_eq!(delete(&ada, &hers).await.status, 400);
    execute("UPDATE identities SET expires_at = NULL WHERE uid = $1").await;
    let directory = own(server, &org, Own { scim: true, ..Own::default() }).await;
    provision(server, &directory, "bob", &his).await;
    execute("UPDATE scim_users SET active = (1 = 0) WHERE person = $1").await;
    assert_eq!(delete(&ada, &hers).await.status, 400);
    execute("UPDATE scim_users SET active = (1 = 1) WHERE person = $1").await;
    let gone = delete(&ada, &hers).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(number(server, "SELECT count(*) FROM identities WHERE subject = 'ada'").await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 1, "his alone");
    assert_eq!(call(&ada, "GET /auth/v1/ok", Value::Null).await.status, 401);
    // Anyone who comes again is new, and the old tokens stay dead.
    signed_in(server, "ada", &[]).await;
    assert_eq!(call(&ada, "GET /auth/v1/ok", Value::Null).await.status, 401);
    assert_eq!(delete(&bob, &his).await.status, 400, "he is the last one now");
}

async fn a_headless_result_is_read_once_and_soon(server: &TestServer) {
    let now = || context(server).now;
    let read = async |code: &str| {
        call(&server.anonymous(), &format!("GET /sts/headless_sessions?code={code}"), Value::Null).await
    };
    assert_eq!(read("code-1").await.status, 404);
    people(server).put_headless("code-1", "public", b"sealed", now()).await.expect("it is left");
    let second = people(server).put_headless("code-1", "other", b"other", now()).await.expect_err("the first stays");
    assert_eq!(second.reason(), Reason::FailedPrecondition);
    assert_eq!(read("code-2").await.status, 404);
    let reply = read("code-1").await;
    assert_eq!(
        reply.json(),
        json!({ "ecdhPublicKey": "cHVibGlj", "encryptedIdtoken": "c2VhbGVk" }),
        "{}",
        reply.text()
    );
    assert_eq!(read("code-1").await.status, 404, "it was read");
    people(server).put_headless("code-3", "public", b"sealed", now()).await.expect("it is left");
    server.clock().advance(Duration::from_mins(5));
    let request = GetHeadlessSessionRequest { code: "code-3".into() };
    assert_eq!(server.anonymous().grpc::<GetHeadlessSession>(request).await.expect_err("too late").code, 5);
    people(server).put_headless("code-3", "public", b"sealed", now()).await.expect("what ended is no obstacle");
}

async fn an_operators_link_works_once_within_five_minutes(server: &TestServer) {
    let db = &parts(server).storage.db;
    let link = async || {
        let random = std::array::from_fn(|i| draw()[i]);
        signing::create_operator_link(db, random, "a test", context(server).now).await.expect("a link")
    };
    let code = link().await;
    assert_eq!(code.len(), 22);
    let audited = "SELECT count(*) FROM audit WHERE actor = '0000000000000000000000000000000000000000'";
    let before = number(server, audited).await;
    let issued = people(server).redeem_operator_link(&code, &context(server)).await.expect("a token");
    assert_eq!(number(server, audited).await, before + 1);
    assert_eq!(issued.expires_at, server.clock().seconds() + 3600);
    assert_eq!(claims_of(&issued.token)["aud"], json!(server.base()));
    let groups = call(&actor(server, &issued.token), "GET /iam/v2/groups", Value::Null).await;
    assert_eq!(groups.status, 200);
    let again = people(server).redeem_operator_link(&code, &context(server)).await;
    assert_eq!(again.err().map(|error| error.reason()), Some(Reason::NotFound), "used");
    let code = link().await;
    server.clock().advance(Duration::from_mins(5));
    let late = people(server).redeem_operator_link(&code, &context(server)).await;
    assert_eq!(late.err().map(|error| error.reason()), Some(Reason::NotFound), "too old");
}

async fn what_has_ended_is_deleted_and_nothing_else(server: &TestServer) {
    let provider = offered(server).await;
    let upstream = vouched(server, &provider, "ada", Value::Null).await;
    let (short, long) = (sign_in(server, &provider, &upstream).await, sign_in(server, &provider, &upstream).await);
    let asked = TokenParams { audiences: api(server), refresh: true, ..TokenParams::default() };
    people(server).issue(&long.session, &upstream, &asked, &context(server)).await.expect("tokens");
    people(server).put_headless("code", "public", b"sealed", context(server).now).await.expect("it is left");
    server.clock().advance(Duration::from_hours(2));
    let now = context(server).now;
    let prune = async |now| {
        let written = parts(server).storage.db.write(move |tx| Box::pin(async move { signing::prune(tx, now).await }));
        written.await.expect("the storage answers")
    };
    assert!(!signing::is_full(prune(now).await));
    let count = async |sql| number(server, sql).await;
    assert_eq!(count("SELECT count(*) FROM sessions").await, 1, "not that of {}", short.session);
    assert_eq!(count("SELECT count(*) FROM refresh_tokens").await, 1);
    assert_eq!(count("SELECT count(*) FROM headless_sessions").await, 0);
    prune(now + 31 * 24 * 3_600_000_000).await;
    assert_eq!(count("SELECT count(*) FROM sessions").await, 0);
    assert_eq!(count("SELECT count(*) FROM refresh_tokens").await, 0);
}

each_engine!(
    people_register_with_a_token_of_the_operators_provider,
    a_named_provider_gives_registered_people_a_session_of_an_hour,
    people_delete_only_themselves,
    a_headless_result_is_read_once_and_soon,
    an_operators_link_works_once_within_five_minutes,
    what_has_ended_is_deleted_and_nothing_else
);
