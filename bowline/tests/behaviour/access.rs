//! Asking for access: the domain of a verified address names the organization, and nothing else does.

use std::time::Duration;

use bowline_authn::claims::{AccessClaims, TokenClass, mint};
use bowline_testkit::{Actor, Engine, TestServer, by_engine, each_engine, on_engine_with};
use serde_json::{Value, json};

use crate::support::{Machine, call, execute, inventory, machine, number, ok, person, rejected};

const LOOKUP: &str = "GET /iam/v2/groups:lookupGroup";
const CHECK: &str = "GET /iam/v2/groups:checkEligibility";

/// A verified organization of this name.
async fn verified(server: &TestServer, name: &str) -> String {
    let body = json!({ "name": name, "verified": true, "kind": "ORG_KIND_CUSTOMER", "description": "secret" });
    let made = ok(&server.operator().await, "POST /iam/v2/groups", body).await;
    made["uid"].as_str().expect("a uid").into()
}

fn ask(group: &str) -> String {
    format!("POST /iam/v2/groups/{group}:requestGroupAccess")
}

async fn eligible(actor: &Actor) -> bool {
    let answers =
        [ok(actor, CHECK, Value::Null).await, ok(actor, "GET /iam/v1/groups:checkEligibility", Value::Null).await];
    assert_eq!(answers[0], answers[1]);
    answers[0]["eligible"].as_bool().expect("a boolean")
}

async fn the_domain_of_the_address_names_the_organization(server: &TestServer) {
    let org = verified(server, "acme.example").await;
    let me = person(server, "me", "me@ACME.example").await.actor;
    let found = ok(&me, LOOKUP, Value::Null).await;
    assert_eq!((&found["group"]["uid"], &found["group"]["name"]), (&json!(org), &json!("acme.example")));
    // Nothing else of it is returned.
    assert_eq!((&found["group"]["description"], &found["group"]["verified"]), (&json!(""), &json!(false)));
    let found = ok(&me, "GET /iam/v1/groups:lookupGroup", Value::Null).await;
    assert_eq!((&found["group"]["id"], &found["group"]["description"]), (&json!(org), &json!("")));
    assert!(eligible(&me).await);
}

async fn every_way_to_have_no_organization_looks_the_same(server: &TestServer) {
    let org = verified(server, "acme.example").await;
    let gmail = verified(server, "gmail.com").await;
    let unverified = server.organization("plain.example").await;
    let mut answers = Vec::new();
    for (subject, email) in [
        ("nobody", "me@nowhere.example"),
        ("free", "me@gmail.com"),
        ("plain", "me@plain.example"),
        ("below", "me@sub.acme.example"),
        ("tricky", "acme.example@"),
        ("unknown", ""),
    ] {
        let caller = person(server, subject, email).await.actor;
        answers.push(rejected(&caller, LOOKUP, Value::Null, 404, "NOT_FOUND").await.0);
        for group in [&org, &gmail, &unverified] {
            answers.push(rejected(&caller, &ask(group), json!({}), 404, "NOT_FOUND").await.0);
        }
        assert!(!eligible(&caller).await, "{email}");
        let old = call(&caller, "GET /iam/v1/groups:lookupGroup", Value::Null).await.json();
        assert_eq!(old, json!({ "code": 5, "message": answers[0]["message"], "details": [] }));
    }
    // Machines have no address, whatever they are called; nor has the operator.
    let robot = machine(server, &org, "acme.example").await.actor;
    for actor in [&robot, &server.operator().await] {
        answers.push(rejected(actor, LOOKUP, Value::Null, 404, "NOT_FOUND").await.0);
        assert!(!eligible(actor).await);
    }
    // One's own is there; another is not, nor is one that does not exist.
    let me = person(server, "me", "me@acme.example").await.actor;
    for group in [&gmail, &unverified, &"0".repeat(40)] {
        answers.push(rejected(&me, &ask(group), json!({}), 404, "NOT_FOUND").await.0);
    }
    assert!(answers.windows(2).all(|two| two[0] == two[1]), "{answers:#?}");
    rejected(&me, &ask("nothing"), json!({}), 400, "INVALID_ARGUMENT").await;
    assert_eq!(number(server, "SELECT count(*) FROM access_requests").await, 0);
}

async fn the_operator_says_which_domains_prove_nothing(engine: Engine) {
    let block = |options: &mut bowline_server::Options| options.blocked_email_domains = vec!["ACME.example".into()];
    on_engine_with(engine, block, async |server| {
        verified(server, "acme.example").await;
        verified(server, "gmail.com").await;
        assert!(!eligible(&person(server, "me", "me@acme.example").await.actor).await);
        assert!(eligible(&person(server, "you", "you@gmail.com").await.actor).await, "the list replaces the usual one");
    })
    .await;
}

async fn an_organization_is_asked_once_a_day_and_tells_of_it(server: &TestServer) {
    let org = verified(server, "acme.example").await;
    let me = person(server, "me", "me@acme.example").await;
    let audit = number(server, "SELECT count(*) FROM audit").await;
    ok(&me.actor, &ask(&org), json!({})).await;
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.iam.group_access.requested.v1' AND customer
                    AND body_type = 'chainguard.platform.iam.RequestGroupAccessRequest' AND subject = org AND group_uid = org";
    assert_eq!(number(server, told).await, 1);
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, audit + 1);
    // Without a relay nothing waits for one.
    assert_eq!(number(server, "SELECT count(*) FROM mail_queue").await, 0);
    let before = inventory(server).await;
    let reply = call(&me.actor, &ask(&org), json!({})).await;
    assert_eq!((reply.status, reply.code()), (429, 8), "{}", reply.text());
    assert_eq!(reply.header("retry-after"), Some("86400"));
    let old = format!("POST /iam/v1/groups/{org}:requestGroupAccess");
    assert_eq!(call(&me.actor, &old, json!({})).await.status, 429);
    assert_eq!(inventory(server).await, before);
    server.clock().advance(Duration::from_secs(24 * 3600 - 1));
    let later = me.again(server).await;
    assert_eq!(call(&later, &old, json!({})).await.header("retry-after"), Some("1"));
    server.clock().advance(Duration::from_secs(1));
    ok(&later, &old, json!({})).await;
    assert_eq!(number(server, told).await, 2);
}

async fn five_organizations_a_day_are_enough(server: &TestServer) {
    let mut asked = Vec::new();
    let me = person(server, "me", "me@0.example").await;
    for number in 0..6 {
        let org = verified(server, &format!("{number}.example")).await;
        // The address changes with anyone who signs in: the token has the present one.
        execute(server, "UPDATE identities SET email = $2 WHERE uid = $1", &[&me.uid, &format!("me@{number}.example")])
            .await;
        let now = me.again(server).await;
        asked.push(call(&now, &ask(&org), json!({})).await.status);
    }
    assert_eq!(asked, [200, 200, 200, 200, 200, 429]);
}

async fn members_do_not_ask(server: &TestServer) {
    let org = verified(server, "acme.example").await;
    let team = server.group(&org, "team").await;
    let me = person(server, "me", "me@acme.example").await;
    let binding = server.bind(&me.uid, &server.role("viewer"), &team).await;
    assert!(!eligible(&me.actor).await, "a role somewhere in it is one");
    ok(&me.actor, LOOKUP, Value::Null).await;
    rejected(&me.actor, &ask(&org), json!({}), 400, "FAILED_PRECONDITION").await;
    let operator = server.operator().await;
    assert_eq!(call(&operator, &format!("DELETE /iam/v2/roleBindings/{binding}"), Value::Null).await.status, 200);
    assert!(eligible(&me.actor).await);
}

/// A token of now for a person who came through an organization's own identity provider.
fn through(server: &TestServer, me: &Machine, provider: &str) -> Actor {
    let parts = server.server().parts();
    let now = server.clock().seconds();
    let claims = AccessClaims {
        iss: parts.settings.auth_url.clone(),
        sub: me.uid.clone(),
        aud: vec![server.base().into()],
        exp: now + 600,
        iat: now,
        jti: provider.into(),
        email: Some("me@acme.example".into()),
        email_verified: Some(true),
        idp: Some(provider.into()),
        ..AccessClaims::default()
    };
    let keys = parts.authenticator.keys();
    let key = keys.ring.signing_key(now).expect("a key signs");
    me.actor.with_token(&mint(TokenClass::Access, &claims, key))
}

async fn a_provider_proves_addresses_to_its_own_organization_alone(server: &TestServer) {
    let org = verified(server, "acme.example").await;
    let evil = verified(server, "evil.example").await;
    let me = person(server, "me", "me@acme.example").await;
    let foreign = through(server, &me, &format!("{evil}/00000000000000aa"));
    let answer = rejected(&foreign, LOOKUP, Value::Null, 404, "NOT_FOUND").await.0;
    assert_eq!(rejected(&foreign, &ask(&org), json!({}), 404, "NOT_FOUND").await.0, answer);
    assert!(!eligible(&foreign).await);
    let own = through(server, &me, &format!("{org}/00000000000000aa"));
    assert!(eligible(&own).await);
    ok(&own, &ask(&org), json!({})).await;
}

async fn requests_go_with_the_group_and_with_the_person(server: &TestServer) {
    let operator = server.operator().await;
    let org = verified(server, "acme.example").await;
    let (one, two) = (person(server, "one", "one@acme.example").await, person(server, "two", "two@acme.example").await);
    ok(&one.actor, &ask(&org), json!({})).await;
    ok(&two.actor, &ask(&org), json!({})).await;
    for (what, left) in [(format!("identities/{}", one.uid), 1), (format!("groups/{org}"), 0)] {
        assert_eq!(call(&operator, &format!("DELETE /iam/v2/{what}"), Value::Null).await.status, 200, "{what}");
        assert_eq!(number(server, "SELECT count(*) FROM access_requests").await, left, "{what}");
    }
}

each_engine!(
    the_domain_of_the_address_names_the_organization,
    every_way_to_have_no_organization_looks_the_same,
    an_organization_is_asked_once_a_day_and_tells_of_it,
    five_organizations_a_day_are_enough,
    members_do_not_ask,
    a_provider_proves_addresses_to_its_own_organization_alone,
    requests_go_with_the_group_and_with_the_person
);

by_engine!(the_operator_says_which_domains_prove_nothing);
