//! Sign-in: requests to a provider, which of its responses are accepted, and who gets in.

use bowline_core::Reason;
use bowline_identity::people::{AuthorizationRequest, Choice, Entry, Redemption};
use bowline_testkit::{SignIn, TestServer, each_engine};
use serde_json::{Value, json};

use crate::people_support::{
    BACK, CLIENT, Own, WELCOME, context, offered, own, people, person, provision, redeem, redemption, sign_in,
    sign_in_of, uid_of_provider, vouched,
};
use crate::support::{execute, number, ok, role};

const REQUEST: AuthorizationRequest<'_> = AuthorizationRequest {
    redirect_uri: BACK,
    state: "state 1",
    nonce: "nonce-1",
    code_challenge: "challenge",
    login_hint: Some("me@example.com"),
    screen_hint: None,
};

async fn the_browser_is_sent_with_everything_that_protects_the_sign_in(server: &TestServer) {
    let provider = offered(server).await;
    let url = people(server).authorization_url(&provider, &REQUEST).await.expect("an address");
    let (place, query) = url.split_once('?').expect("a query");
    assert_eq!(place, format!("{}/authorize", server.idp().issuer()));
    let query: Vec<(String, String)> =
        query.split('&').map(|pair| pair.split_once('=').expect("a pair")).map(|(a, b)| (a.into(), b.into())).collect();
    let of = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!(of("response_type"), Some("code"));
    assert_eq!((of("client_id"), of("scope")), (Some(CLIENT), Some("openid+email")));
    assert_eq!((of("state"), of("nonce")), (Some("state+1"), Some("nonce-1")));
    assert_eq!((of("code_challenge"), of("code_challenge_method")), (Some("challenge"), Some("S256")));
    assert_eq!(of("login_hint"), Some("me%40example.com"));
}

async fn a_provider_that_becomes_another_is_not_used(server: &TestServer) {
    let provider = offered(server).await;
    let code = server.idp().sign_in(sign_in_of("ada", Value::Null));
    for (members, reason) in [
        (json!({ "issuer": "https://other.example" }), Reason::FailedPrecondition),
        (json!({ "issuer": format!("{}/", server.idp().issuer()) }), Reason::FailedPrecondition),
        (
            json!({ "authorization_endpoint": "javascript:alert(1)", "token_endpoint": null }),
            Reason::FailedPrecondition,
        ),
    ] {
        server.idp().set_document(members);
        let refused = people(server).authorization_url(&provider, &REQUEST).await.expect_err("not the provider");
        assert_eq!(refused.reason(), reason);
        let now = context(server).now;
        let refused = people(server).redeem(&provider, &redemption(&code), now).await.expect_err("not the provider");
        assert_eq!(refused.reason(), reason);
    }
    server.idp().set_document(Value::Null);
    server.idp().set_down(true);
    let refused = people(server).authorization_url(&provider, &REQUEST).await.expect_err("it is down");
    assert_eq!(refused.reason(), Reason::Unavailable);
    server.idp().set_down(false);
    people(server).redeem(&provider, &redemption(&code), context(server).now).await.expect("the code went nowhere");
}

async fn an_id_token_must_be_of_this_very_sign_in(server: &TestServer) {
    let provider = offered(server).await;
    let now = server.clock().seconds();
    let good = redeem(server, &provider, sign_in_of("ada", Value::Null)).await.expect("a good one");
    assert_eq!((good.subject.as_str(), good.issuer.as_str()), ("ada", server.idp().issuer()));
    redeem(server, &provider, sign_in_of("ada", json!({ "aud": [CLIENT, "b"], "azp": CLIENT }))).await.expect("azp");
    for claims in [
        json!({ "nonce": "another" }),
        json!({ "nonce": null }),
        json!({ "aud": "another" }),
        json!({ "aud": [CLIENT, "another"] }),
        json!({ "aud": [CLIENT, "another"], "azp": "another" }),
        json!({ "azp": "another" }),
        json!({ "iss": "https://other.example" }),
        json!({ "iat": null }),
        json!({ "exp": now - 3600 }),
        json!({ "iat": now + 3600 }),
        json!({ "sub": "a\nb" }),
    ] {
        let refused = redeem(server, &provider, sign_in_of("ada", claims.clone())).await.expect_err("not ours");
        assert!(matches!(refused.reason(), Reason::TokenInvalid | Reason::TokenExpired), "{claims}: {refused}");
    }
}

async fn a_code_goes_to_the_provider_that_was_asked_with_what_was_asked(server: &TestServer) {
    let provider = offered(server).await;
    let now = context(server).now;
    let issuer = server.idp().issuer().to_owned();
    let attempt = async |change: fn(&mut Redemption<'_>)| {
        let code = server.idp().sign_in(sign_in_of("ada", Value::Null));
        let mut redemption = redemption(&code);
        change(&mut redemption);
        people(server).redeem(&provider, &redemption, now).await
    };
    attempt(|_| {}).await.expect("everything fits");
    for change in [
        (|r: &mut Redemption<'_>| r.iss = Some("https://other.example")) as fn(&mut Redemption<'_>),
        |r| r.code_verifier = "another",
        |r| r.redirect_uri = "https://bowline.example/other",
        |r| r.nonce = "another",
        |r| r.nonce = "",
        |r| r.code = "code-unknown",
    ] {
        let refused = attempt(change).await.expect_err("something does not fit");
        assert_eq!(refused.reason(), Reason::TokenInvalid, "{refused}");
    }
    // A provider that says that it always names itself must do so.
    server.idp().set_document(json!({ "authorization_response_iss_parameter_supported": true }));
    assert_eq!(attempt(|_| {}).await.expect_err("it is silent").reason(), Reason::TokenInvalid);
    let code = server.idp().sign_in(sign_in_of("ada", Value::Null));
    let named = Redemption { iss: Some(&issuer), ..redemption(&code) };
    people(server).redeem(&provider, &named, now).await.expect("it names itself");
    let again = people(server).redeem(&provider, &named, now).await.expect_err("a code is good once");
    assert_eq!(again.reason(), Reason::TokenInvalid);
}

async fn an_address_is_asked_for_where_the_token_has_none(server: &TestServer) {
    let provider = offered(server).await;
    let with = |claims: Value, userinfo: Value| SignIn { userinfo, ..sign_in_of("ada", claims) };
    let told = json!({ "sub": "ada", "email": "ada@example.com", "email_verified": true });
    let upstream = redeem(server, &provider, with(Value::Null, told.clone())).await.expect("userinfo");
    assert_eq!((upstream.email.as_deref(), upstream.email_verified), (Some("ada@example.com"), true));
    let upstream = redeem(server, &provider, with(json!({ "email": "b@example.com" }), told)).await.expect("claim");
    assert_eq!((upstream.email.as_deref(), upstream.email_verified), (Some("b@example.com"), false));
    let other = json!({ "sub": "eve", "email": "ada@example.com", "email_verified": true });
    redeem(server, &provider, with(Value::Null, other)).await.expect_err("it is about somebody else");
    server.idp().set_document(json!({ "userinfo_endpoint": null }));
    let upstream = redeem(server, &provider, with(Value::Null, Value::Null)).await.expect("no endpoint, no question");
    assert_eq!(upstream.email, None);
}

async fn the_operators_people_register_freely_and_may_nothing(server: &TestServer) {
    let provider = offered(server).await;
    let claims = json!({ "email": "ada@example.com", "email_verified": true, "name": "Ada" });
    let ada = vouched(server, &provider, "ada", claims).await;
    let closed = Entry { may_register: false, ..WELCOME };
    let refused = people(server).sign_in(&provider, &ada, &closed, &context(server)).await.expect_err("unknown");
    assert_eq!(refused.reason(), Reason::NotFound);
    assert_eq!(people(server).find(&provider, &ada).await.expect("an answer"), None);
    let login = sign_in(server, &provider, &ada).await;
    assert_eq!((login.identity.as_str(), login.is_new), (person(server, "ada").as_str(), true));
    let found = people(server).find(&provider, &ada).await.expect("an answer");
    assert_eq!(found.as_ref(), Some(&login.identity));
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.api.auth.registered.v1'";
    assert_eq!(number(server, told).await, 1);
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, 0);
    let rows = "SELECT count(*) FROM audit WHERE method = 'test sign-in' AND request_id = 'request-1'";
    assert_eq!(number(server, rows).await, 2, "the person and the session");
    // Again, with another name and address.
    let claims = json!({ "email": "ada@example.org", "email_verified": true, "name": "Ada L" });
    let again = vouched(server, &provider, "ada", claims).await;
    let login = people(server).sign_in(&provider, &again, &closed, &context(server)).await.expect("she is known");
    assert!(!login.is_new);
    let shown = ok(&server.operator().await, &format!("GET /iam/v2/identities/{}", login.identity), Value::Null).await;
    assert_eq!((&shown["name"], &shown["email"]), (&json!("Ada L"), &json!("ada@example.org")));
    assert_eq!(number(server, told).await, 1, "nobody registers twice");
    execute(server, "DELETE FROM operator_providers WHERE id = $1", &["main"]).await;
    let refused = people(server).sign_in(&provider, &again, &WELCOME, &context(server)).await.expect_err("gone");
    assert_eq!(refused.reason(), Reason::PermissionDenied);
}

async fn an_organizations_newcomers_get_its_default_role_and_no_verified_address(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let viewer = server.role("viewer");
    let provider = own(server, &team, Own { default_role: &viewer, ..Own::default() }).await;
    let claims = json!({ "email": "ceo@other.example", "email_verified": true });
    let upstream = vouched(server, &provider, "ada", claims).await;
    let login = sign_in(server, &provider, &upstream).await;
    let bound = "SELECT count(*) FROM role_bindings b JOIN groups g ON g.uid = b.parent WHERE g.name = 'team'";
    assert_eq!(number(server, bound).await, 1);
    let told = "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.api.iam.rolebindings.created.v1'";
    assert_eq!(number(server, told).await, 1);
    let shown = ok(&server.operator().await, &format!("GET /iam/v2/identities/{}", login.identity), Value::Null).await;
    assert_eq!((&shown["email"], &shown["emailUnverified"]), (&json!(""), &json!("ceo@other.example")));
    // What was taken from someone does not come back with the next sign-in.
    execute(server, "DELETE FROM role_bindings WHERE identity = $1", &[login.identity.as_str()]).await;
    assert!(!sign_in(server, &provider, &upstream).await.is_new);
    assert_eq!(number(server, bound).await, 0);
    // A default role that is gone, or that belongs elsewhere, lets no one in.
    let other = server.organization("other").await;
    let elsewhere = role(server, &other, "elsewhere", &["CAP_REPO_LIST"]).await;
    for wrong in ["0000000000000000000000000000000000000001", elsewhere.as_str()] {
        let sql = "UPDATE identity_providers SET default_role = $2 WHERE uid = $1";
        execute(server, sql, &[&uid_of_provider(&provider), wrong]).await;
        let bob = vouched(server, &provider, "bob", Value::Null).await;
        let refused = people(server).sign_in(&provider, &bob, &WELCOME, &context(server)).await.expect_err("no role");
        assert_eq!(refused.reason(), Reason::FailedPrecondition);
        assert_eq!(people(server).find(&provider, &bob).await.expect("an answer"), None, "nothing is left of it");
    }
}

async fn where_a_directory_provisions_people_others_cannot_sign_in(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { scim: true, ..Own::default() }).await;
    let ada = vouched(server, &provider, "ada", Value::Null).await;
    let attempt = async || people(server).sign_in(&provider, &ada, &WELCOME, &context(server)).await;
    assert_eq!(attempt().await.expect_err("not listed").reason(), Reason::PermissionDenied);
    assert_eq!(number(server, "SELECT count(*) FROM identities").await, 0);
    provision(server, &provider, "ada", &person(server, "ada")).await;
    attempt().await.expect("listed");
    let off = match server.server().parts().storage.db.engine() {
        bowline_store::Engine::Sqlite => "UPDATE scim_users SET active = 0 WHERE external_id = $1",
        bowline_store::Engine::Postgres => "UPDATE scim_users SET active = FALSE WHERE external_id = $1",
    };
    execute(server, off, &["ada"]).await;
    assert_eq!(attempt().await.expect_err("deactivated").reason(), Reason::PermissionDenied);
    // By object id: the first sign-in says who the listed person is, and no one else becomes them.
    let org = server.organization("globex").await;
    let provider = own(server, &org, Own { scim: true, by_object_id: true, ..Own::default() }).await;
    provision(server, &provider, "object-1", "").await;
    let without = vouched(server, &provider, "bob", Value::Null).await;
    let refused = people(server).sign_in(&provider, &without, &WELCOME, &context(server)).await.expect_err("no oid");
    assert_eq!(refused.reason(), Reason::PermissionDenied);
    let bob = vouched(server, &provider, "bob", json!({ "oid": "object-1" })).await;
    sign_in(server, &provider, &bob).await;
    let known =
        "SELECT count(*) FROM scim_users u JOIN identities i ON i.uid = u.person WHERE u.external_id = 'object-1'";
    assert_eq!(number(server, known).await, 1);
    let eve = vouched(server, &provider, "eve", json!({ "oid": "object-1" })).await;
    let refused =
        people(server).sign_in(&provider, &eve, &WELCOME, &context(server)).await.expect_err("another person");
    assert_eq!(refused.reason(), Reason::PermissionDenied);
}

async fn providers_are_found_by_name_and_only_those_of_verified_organizations(server: &TestServer) {
    let org = server.organization("acme.example").await;
    own(server, &org, Own::default()).await;
    let by_name = async || people(server).provider(&Choice::Organization("acme.example".into())).await;
    assert!(!people(server).organization_has_provider("acme.example").await.expect("an answer"));
    let unknown = by_name().await.expect_err("not verified");
    let absent = people(server).provider(&Choice::Organization("absent".into())).await.expect_err("absent");
    assert_eq!((unknown.reason(), unknown.message()), (Reason::NotFound, absent.message()));
    ok(
        &server.operator().await,
        &format!("PATCH /iam/v2/groups/{org}"),
        json!({ "verified": true, "kind": "ORG_KIND_CUSTOMER" }),
    )
    .await;
    assert!(people(server).organization_has_provider("acme.example").await.expect("an answer"));
    by_name().await.expect("a verified organization's");
    assert!(people(server).operator_providers().await.expect("a list").is_empty());
    offered(server).await;
    let offered = people(server).operator_providers().await.expect("a list");
    assert_eq!(offered.iter().map(|provider| provider.label.as_str()).collect::<Vec<_>>(), ["Main"]);
}

each_engine!(
    the_browser_is_sent_with_everything_that_protects_the_sign_in,
    a_provider_that_becomes_another_is_not_used,
    an_id_token_must_be_of_this_very_sign_in,
    a_code_goes_to_the_provider_that_was_asked_with_what_was_asked,
    an_address_is_asked_for_where_the_token_has_none,
    the_operators_people_register_freely_and_may_nothing,
    an_organizations_newcomers_get_its_default_role_and_no_verified_address,
    where_a_directory_provisions_people_others_cannot_sign_in,
    providers_are_found_by_name_and_only_those_of_verified_organizations
);
