//! The token exchange: who gets which token, for how long, and what it says.

use std::time::Duration;

use bowline_authn::capset;
use bowline_contract::v1::auth::rpc::auth::Validate;
use bowline_contract::v1::oidc::ExchangeRequest;
use bowline_contract::v1::oidc::rpc::security_token_service::Exchange;
use bowline_testkit::{RestReply, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{call, claims_of, exchange, execute, machine, number, ok, role, send, token_of, uid_of};

/// Creates an identity with this relationship.
async fn assumable(server: &TestServer, org: &str, relationship: Value) -> String {
    let mut body = relationship;
    body["name"] = json!("assumable");
    uid_of(&ok(&server.operator().await, &format!("POST /iam/v2/identities/{org}"), body).await)
}

/// Presents a token of the fake issuer with these claims for the identity.
async fn present(server: &TestServer, identity: &str, subject: &str, audience: &str, claims: Value) -> RestReply {
    let token = server.idp().token(subject, audience, claims);
    server.exchange(&token, &[("aud", server.base()), ("identity", identity)]).await
}

async fn a_token_lives_an_hour_and_says_whose_it_is(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let robot = machine(server, &org, "robot").await;
    let small = role(server, &org, "small", &["CAP_REPO_LIST", "CAP_IAM_GROUPS_LIST"]).await;
    server.bind(&robot.uid, &small, &team).await;
    server.bind(&robot.uid, &server.role("viewer"), &org).await;
    let reply = exchange(server, &robot.uid, "robot", &[]).await;
    let body = reply.json();
    assert_eq!(body["refreshToken"], "");
    let claims = claims_of(&token_of(&reply));
    let now = server.clock().seconds();
    assert_eq!((claims["iat"].as_i64(), claims["exp"].as_i64()), (Some(now), Some(now + 3600)));
    assert_eq!((&claims["iss"], &claims["sub"]), (&json!(server.base()), &json!(robot.uid)));
    let audience = claims["aud"].as_str().or(claims["aud"][0].as_str());
    assert_eq!(audience, Some(server.base()));
    assert_eq!((&claims["act"]["iss"], &claims["act"]["sub"]), (&json!(server.idp().issuer()), &json!("robot")));
    // Groups with a binding of their own, each with its capabilities as bits: repo.list is 58, groups.list 3.
    let caps = claims["cap"].as_object().expect("the claim");
    assert_eq!(caps.len(), 2);
    let words = capset::decode_bits(caps[&team].as_str().expect("bits")).expect("they decode");
    assert_eq!(words, [(1 << 58) | (1 << 3)]);
    let who = robot.actor.grpc::<Validate>(()).await.expect("a caller may ask who they are");
    assert_eq!((who.subject.as_str(), who.issuer.as_str()), (robot.uid.as_str(), server.base()));
    assert_eq!(who.audience, [server.base()]);
    let held: Vec<(String, String)> = who
        .capabilities
        .iter()
        .map(|held| {
            let group = held.group.clone().unwrap_or_default();
            (group.name, held.role.clone().map_or(held.capabilities.join(","), |role| role.name))
        })
        .collect();
    assert_eq!(held, [("acme".to_owned(), "viewer".to_owned()), ("team".into(), "groups.list,repo.list".into())]);
    let error = server.anonymous().grpc::<Validate>(()).await.expect_err("nobody");
    assert_eq!(error.code, 16);
}

async fn the_exchange_is_reached_in_every_published_way(server: &TestServer) {
    let org = server.organization("acme").await;
    let robot = machine(server, &org, "robot").await;
    let upstream = robot.actor.with_token(&server.idp().token("robot", server.base(), Value::Null));
    let query = format!("aud={}&identity={}", server.base(), robot.uid);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let replies = [
        send(&upstream, &format!("GET /sts/exchange?{query}"), &[], "").await,
        send(&upstream, &format!("POST /sts/exchange?{query}"), &[], "").await,
        send(&upstream, "POST /sts/exchange", &form, &query).await,
    ];
    for reply in replies {
        assert_eq!(claims_of(&token_of(&reply))["sub"], robot.uid.as_str());
    }
    let request = ExchangeRequest {
        aud: vec![server.base().into(), server.server().parts().settings.registry_audience.clone()],
        identity: robot.uid.clone(),
        ..ExchangeRequest::default()
    };
    let token = upstream.grpc::<Exchange>(request).await.expect("a token").token;
    assert_eq!(claims_of(&token)["aud"].as_array().map(Vec::len), Some(2));
    let methods = send(&upstream, "DELETE /sts/exchange", &[], "").await;
    assert_eq!(methods.status, 405);
}

async fn presented_tokens_are_for_us_or_for_whom_the_identity_names(server: &TestServer) {
    let org = server.organization("acme").await;
    let issuer = server.idp().issuer();
    let plain = assumable(server, &org, json!({ "claimMatch": { "issuer": issuer, "subject": "s" } })).await;
    let exact = json!({ "claimMatch": { "issuer": issuer, "subject": "s", "audience": "mine" } });
    let exact = assumable(server, &org, exact).await;
    let pattern = json!({ "claimMatch": { "issuer": issuer, "subject": "s", "audiencePattern": "mine-[0-9]+" } });
    let pattern = assumable(server, &org, pattern).await;
    let authority = server.base().trim_start_matches("http://").to_owned();
    let host = authority.split(':').next().unwrap_or_default().to_owned();
    let port = format!("{authority}0");
    for (identity, audience, status) in [
        (&plain, server.base(), 200),
        (&plain, &authority, 200),
        (&plain, &host, 200),
        (&plain, &format!("{}/", server.base()), 403),
        (&plain, &port, 403),
        (&plain, "mine", 403),
        (&exact, "mine", 200),
        (&exact, server.base(), 403),
        (&exact, "Mine", 403),
        (&pattern, "mine-12", 200),
        (&pattern, "mine-12x", 403),
        (&pattern, "x-mine-12", 403),
    ] {
        let reply = present(server, identity, "s", audience, Value::Null).await;
        assert_eq!(reply.status, status, "{audience}: {}", reply.text());
    }
    // One audience of several is enough.
    let several = json!({ "aud": ["other", "mine-7"] });
    assert_eq!(present(server, &pattern, "s", "", several).await.status, 200);
}

async fn every_configured_claim_must_fit_whole(server: &TestServer) {
    let org = server.organization("acme").await;
    let issuer = server.idp().issuer();
    let identity = assumable(
        server,
        &org,
        json!({ "claimMatch": {
        "issuer": issuer,
        "subjectPattern": "repo:acme/.*:ref:main",
        "claims": { "environment": "production", "run": "7", "protected": "true" },
        "claimPatterns": { "actor": "[a-z]+" },
    } }),
    )
    .await;
    let subject = "repo:acme/web:ref:main";
    let good = json!({ "environment": "production", "run": 7, "protected": true, "actor": "octocat" });
    let reply = present(server, &identity, subject, server.base(), good.clone()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    for (claim, value) in [
        ("environment", json!("Production")),
        ("environment", json!("production ")),
        ("environment", Value::Null),
        ("environment", json!(["production"])),
        ("run", json!(8)),
        ("protected", json!(false)),
        ("actor", json!("octocat7")),
        ("actor", json!({})),
    ] {
        let mut claims = good.clone();
        claims[claim] = value.clone();
        let reply = present(server, &identity, subject, server.base(), claims).await;
        assert_eq!(reply.status, 403, "{claim} {value}: {}", reply.text());
        assert_eq!(reply.json()["message"], format!("invalid \"{claim}\""), "{value}");
    }
    for wrong in ["repo:acme/web:ref:main2", "x repo:acme/web:ref:main", "REPO:acme/web:ref:main"] {
        assert_eq!(present(server, &identity, wrong, server.base(), good.clone()).await.status, 403, "{wrong}");
    }
    // Patterns that could name a host that no one meant, or cannot be compiled, are refused when they are written.
    let operator = server.operator().await;
    let path = format!("POST /iam/v2/identities/{org}");
    for (claims, field) in [
        (json!({ "issuerPattern": "https://.*", "subject": "s" }), "claimMatch.issuerPattern"),
        (json!({ "issuerPattern": "https://issuer.example/x", "subject": "s" }), "claimMatch.issuerPattern"),
        (json!({ "issuer": issuer, "subjectPattern": "(" }), "claimMatch.subjectPattern"),
        (json!({ "issuer": issuer, "subjectPattern": "a".repeat(1025) }), "claimMatch.subjectPattern"),
        (json!({ "issuer": issuer, "subjectPattern": "(a{1000}){1000}" }), "claimMatch.subjectPattern"),
        (json!({ "issuer": "http://example.com", "subject": "s" }), "claimMatch.issuer"),
        (json!({ "issuer": issuer }), "claimMatch.subject"),
        (json!({ "issuer": issuer, "subject": "s", "claims": { "iss": "x" } }), "claimMatch.claims.iss"),
    ] {
        let reply = call(&operator, &path, json!({ "name": "pattern", "claimMatch": claims })).await;
        assert_eq!(reply.status, 400, "{claims}: {}", reply.text());
        let fields = crate::support::Refusal(reply.json()).fields();
        assert!(fields.iter().any(|found| found == field), "{claims}: {fields:?}");
    }
}

async fn static_keys_are_their_own_authority_until_they_end(server: &TestServer) {
    let org = server.organization("acme").await;
    let keys = |keys: &str, subject: &str| json!({ "staticKeys": { "issuer": "robots", "subject": subject, "issuerKeys": keys } });
    let identity = assumable(server, &org, keys(&server.idp().jwks().to_string(), "r")).await;
    let token = |extra: Value| server.idp().token("r", server.base(), extra);
    let show = async |identity: &str, token: &str| {
        server.exchange(token, &[("aud", server.base()), ("identity", identity)]).await
    };
    let good = token(json!({ "iss": "robots" }));
    token_of(&show(&identity, &good).await);
    assert_eq!(server.idp().requests(), 0, "nobody is asked for keys");
    // Never without its name, whatever the issuer says.
    assert_eq!(server.exchange(&good, &[("aud", server.base())]).await.status, 403);
    for wrong in [token(json!({ "iss": "others" })), token(json!({ "iss": "robots", "sub": "x" }))] {
        assert_eq!(show(&identity, &wrong).await.status, 403);
    }
    // The same issuer as a claim match has, but with the keys of that issuer: they are not this identity's.
    let url = server.idp().issuer();
    let claims = assumable(server, &org, json!({ "claimMatch": { "issuer": url, "subject": "r" } })).await;
    token_of(&show(&claims, &token(Value::Null)).await);
    server.idp().rotate();
    let other = server.idp().jwks().to_string();
    server.idp().rotate();
    let namesake = json!({ "staticKeys": { "issuer": url, "subject": "r", "issuerKeys": other } });
    let namesake = assumable(server, &org, namesake).await;
    assert_eq!(show(&namesake, &token(Value::Null)).await.status, 401);
    // What was stored as given is checked when it is needed.
    let broken = assumable(server, &org, keys("not keys", "r")).await;
    let reply = show(&broken, &good).await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert!(reply.text().contains("issuer_keys"), "{}", reply.text());

    // A token never outlives its identity, and the identity's end stops it at once.
    server.clock().advance(Duration::from_secs(365 * 24 * 3600 - 600));
    let fresh = server.idp().token("r", server.base(), json!({ "iss": "robots" }));
    let issued = token_of(&show(&identity, &fresh).await);
    assert_eq!(claims_of(&issued)["exp"].as_i64(), Some(server.clock().seconds() + 600));
    let actor = server.anonymous().with_token(&issued);
    assert_eq!(call(&actor, "GET /iam/v2/groups", Value::Null).await.status, 200);
    server.clock().advance(Duration::from_secs(600));
    assert_eq!(call(&actor, "GET /iam/v2/groups", Value::Null).await.status, 401);
    let late = server.idp().token("r", server.base(), json!({ "iss": "robots" }));
    assert_eq!(show(&identity, &late).await.status, 403);
}

async fn last_seen_is_kept_to_the_minute_and_what_is_inactive_stays_out(server: &TestServer) {
    let org = server.organization("acme").await;
    let robot = machine(server, &org, "robot").await;
    let operator_sees = async || {
        let operator = server.operator().await;
        ok(&operator, &format!("GET /iam/v2/identities/{}", robot.uid), Value::Null).await
    };
    let first = operator_sees().await;
    assert_eq!(first["lastSeenTime"], first["createTime"], "until a token is issued: when it was created");
    server.clock().advance(Duration::from_secs(300));
    let newest = async || number(server, "SELECT COALESCE(max(last_seen_at), 0) FROM identities").await;
    let before = newest().await;
    robot.again(server).await;
    // A flush waits for the one that took what it would have written.
    let sign_ins = &server.server().parts().exchange;
    let second = async {
        sign_ins.flush_last_seen().await;
        newest().await
    };
    let ((), after) = tokio::join!(sign_ins.flush_last_seen(), second);
    assert!(after > before, "{after} after {before}");
    let seen = operator_sees().await["lastSeenTime"].as_str().unwrap_or_default().to_owned();
    let created = first["lastSeenTime"].as_str().unwrap_or_default();
    assert!(seen.as_str() > created, "{seen} after {created}");
    assert!(seen.ends_with(":00Z"), "{seen}");
    assert_eq!(operator_sees().await["updateTime"], first["updateTime"], "being seen is no change");
    let audited = number(server, "SELECT count(*) FROM audit").await;
    execute(server, "UPDATE identities SET deactivated = TRUE WHERE uid = $1", &[&robot.uid]).await;
    let reply = exchange(server, &robot.uid, "robot", &[]).await;
    assert_eq!(reply.status, 403, "{}", reply.text());
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, audited);
    let service = assumable(server, &org, json!({ "servicePrincipal": "SERVICE_PRINCIPAL_COSIGNED" })).await;
    assert_eq!(exchange(server, &service, "robot", &[]).await.status, 403);
}

each_engine!(
    a_token_lives_an_hour_and_says_whose_it_is,
    the_exchange_is_reached_in_every_published_way,
    presented_tokens_are_for_us_or_for_whom_the_identity_names,
    every_configured_claim_must_fit_whole,
    static_keys_are_their_own_authority_until_they_end,
    last_seen_is_kept_to_the_minute_and_what_is_inactive_stays_out
);
