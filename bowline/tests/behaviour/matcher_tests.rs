//! Tests of claims and issuers: the same comparison as at an exchange, and nothing is stored.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, each, exchange, holder, inventory, machine, number, ok, rejected};

fn claims_at(group: &str) -> String {
    format!("POST /iam/v1/matchers/{group}:testClaims")
}

fn issuer_at(group: &str) -> String {
    format!("POST /iam/v1/matchers/{group}:testIssuer")
}

async fn claims_are_compared_as_an_exchange_does(server: &TestServer) {
    let org = server.organization("acme").await;
    let admin = machine(server, &org, "admin").await;
    server.bind(&admin.uid, &server.role("owner"), &org).await;
    let worker = server.identity(&org, "worker").await;
    let rows = inventory(server).await;
    for (subject, matches) in [("worker", true), ("another", false)] {
        let token = server.idp().token(subject, server.base(), Value::Null);
        let tested = ok(&admin.actor, &claims_at(&org), json!({ "identity": worker, "token": token })).await;
        let exchanged = exchange(server, &worker, subject, &[]).await;
        assert_eq!((tested["matches"].clone(), exchanged.status == 200), (json!(matches), matches), "{tested}");
        assert_eq!(each(&tested["results"], "claim"), ["iss", "sub", "aud"]);
        assert!(!tested.to_string().contains(&token), "the token is not repeated");
    }
    let draft = json!({
        "issuerPattern": "https://idp\\.example/.*", "subject": "me", "audiencePattern": "a|b",
        "claims": { "branch": "main", "run": "7" }, "claimPatterns": { "list": ".*", "ref": "refs/.+" }
    });
    let claims = json!({ "iss": "https://idp.example/x", "sub": "you", "aud": ["c", "b"], "run": 7, "list": ["x"],
                         "ref": "refs/" });
    let body = json!({ "claimMatch": draft, "claims": claims });
    let tested = ok(&admin.actor, &claims_at(&org), body).await;
    let results = tested["results"].as_array().expect("results");
    let shown: Vec<(&str, bool, &str)> = results
        .iter()
        .map(|one| {
            (
                one["claim"].as_str().expect("a claim"),
                one["matches"] == json!(true),
                one["reason"].as_str().expect("a reason"),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("iss", true, ""),
            ("sub", false, "the value differs"),
            ("aud", true, ""),
            ("branch", false, "the token has no such claim"),
            ("run", true, ""),
            ("list", false, "only strings, booleans and numbers match"),
            ("ref", false, "the pattern does not match the whole value"),
        ]
    );
    assert_eq!(
        (&results[6]["pattern"], &results[6]["expected"], &results[6]["value"]),
        (&json!(true), &json!("refs/.+"), &json!("refs/"))
    );
    // Two exchanges were refused or recorded; tests left nothing.
    let outcome = inventory(server).await;
    assert_eq!(outcome.iter().zip(&rows).map(|(now, then)| now - then).sum::<i64>(), 1, "one exchange is on record");
}

async fn bad_tests_are_refused_without_the_token(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let admin = machine(server, &org, "admin").await;
    server.bind(&admin.uid, &server.role("owner"), &team).await;
    let outside = server.identity(&org, "outside").await;
    let draft = json!({ "issuer": "https://idp.example", "subject": "me" });
    for (body, field) in [
        (json!({ "claims": {} }), "identity"),
        (json!({ "identity": outside, "claimMatch": draft, "claims": {} }), "claimMatch"),
        (json!({ "claimMatch": draft }), "token"),
        (json!({ "claimMatch": draft, "token": "secret.secret.secret", "claims": {} }), "claims"),
        (json!({ "claimMatch": draft, "token": "secret.secret.secret" }), "token"),
        (
            json!({ "claimMatch": { "issuer": "https://idp.example", "subjectPattern": "(" }, "claims": {} }),
            "claimMatch.subjectPattern",
        ),
        (json!({ "claimMatch": { "subject": "me" }, "claims": {} }), "claimMatch.issuer"),
    ] {
        let refusal = rejected(&admin.actor, &claims_at(&team), body.clone(), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{body}: {refusal:?}");
        assert!(!refusal.0.to_string().contains("secret"), "{refusal:?}");
    }
    // An identity elsewhere is like one that is not there.
    let ask = async |identity: &str| {
        let body = json!({ "identity": identity, "claims": {} });
        let refusal = rejected(&admin.actor, &claims_at(&team), body, 404, "NOT_FOUND").await;
        refusal.0.to_string().replace(identity, "IDENTITY")
    };
    assert_eq!(ask(&outside).await, ask(&absent(&org)).await);
    assert_eq!(ask(&outside).await, ask(&absent(&team)).await);
    let lister = holder(server, &org, "lister", &team, &["CAP_IAM_IDENTITY_LIST"]).await.actor;
    rejected(&lister, &claims_at(&team), json!({ "claimMatch": draft, "claims": {} }), 403, "PERMISSION_DENIED").await;
    let large = json!({ "claimMatch": draft, "claims": { "x": "y".repeat(70_000) } });
    let reply = crate::support::call(&admin.actor, &claims_at(&team), large).await;
    assert!(reply.status >= 400, "{}", reply.text());
}

async fn an_issuer_is_tested_as_an_exchange_would_use_it(server: &TestServer) {
    let org = server.organization("acme").await;
    let admin = machine(server, &org, "admin").await;
    server.bind(&admin.uid, &server.role("owner"), &org).await;
    let rows = number(server, "SELECT count(*) FROM audit").await;
    let tested = ok(&admin.actor, &issuer_at(&org), json!({ "issuer": server.idp().issuer() })).await;
    assert_eq!((&tested["usable"], &tested["problem"]), (&json!(true), &json!("")), "{tested}");
    assert!(!tested["keyIds"].as_array().expect("ids").is_empty(), "{tested}");
    // The tests of an issuer have a cache of their own.
    let requests = server.idp().requests();
    ok(&admin.actor, &issuer_at(&org), json!({ "issuer": server.idp().issuer() })).await;
    assert_eq!(server.idp().requests(), requests);
    let unknown = format!("{}/none", server.idp().issuer());
    let tested = ok(&admin.actor, &issuer_at(&org), json!({ "issuer": unknown })).await;
    assert_eq!(tested["usable"], json!(false), "{tested}");
    assert!(
        tested["problem"].as_str().is_some_and(|text| !text.is_empty()) && tested["reason"] != json!(""),
        "{tested}"
    );
    let private = ok(&admin.actor, &issuer_at(&org), json!({ "issuer": "https://10.0.0.1" })).await;
    assert_eq!(private["usable"], json!(false), "{private}");
    for issuer in ["", "idp.example", "http://idp.example", "https://idp.example?x", "https://a@idp.example"] {
        rejected(&admin.actor, &issuer_at(&org), json!({ "issuer": issuer }), 400, "INVALID_ARGUMENT").await;
    }
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, rows);
    let lister = holder(server, &org, "lister", &org, &["CAP_IAM_IDENTITY_LIST"]).await.actor;
    let requests = server.idp().requests();
    rejected(&lister, &issuer_at(&org), json!({ "issuer": unknown }), 403, "PERMISSION_DENIED").await;
    assert_eq!(server.idp().requests(), requests, "nothing leaves for a caller who may not");
}

async fn tests_of_issuers_are_limited_by_caller_and_by_organization(server: &TestServer) {
    let (org, other) = (server.organization("acme").await, server.organization("other").await);
    let [ann, bea] = [machine(server, &org, "ann").await, machine(server, &org, "bea").await];
    for admin in [&ann, &bea] {
        server.bind(&admin.uid, &server.role("owner"), &org).await;
    }
    let theirs = server.actor("owner", &other).await;
    let unknown = |n: usize| json!({ "issuer": format!("{}/none{n}", server.idp().issuer()) });
    // Ten at once, and one more each second.
    let mut made = 0;
    let refusal = loop {
        let reply = crate::support::call(&ann.actor, &issuer_at(&org), unknown(made)).await;
        if reply.status != 200 {
            break reply;
        }
        made += 1;
        assert!(made < 60, "no limit");
    };
    assert!(made >= 10, "{made}");
    assert_eq!((refusal.status, refusal.header("retry-after").is_some()), (429, true), "{}", refusal.text());
    let requests = server.idp().requests();
    rejected(&bea.actor, &issuer_at(&org), unknown(100), 429, "RATE_LIMITED").await;
    assert_eq!(server.idp().requests(), requests, "nothing is sent past the limit");
    // What is known already is shown, and others are not held up.
    ok(&bea.actor, &issuer_at(&org), unknown(0)).await;
    ok(&theirs, &issuer_at(&other), unknown(100)).await;
}

each_engine!(
    tests_of_issuers_are_limited_by_caller_and_by_organization,
    an_issuer_is_tested_as_an_exchange_would_use_it,
    bad_tests_are_refused_without_the_token,
    claims_are_compared_as_an_exchange_does
);
