//! Sessions: what their tokens may do where, and that they end at once.

use std::time::Duration;

use bowline_core::{Reason, Uidp};
use bowline_identity::people::{Entry, Issued, Login, Provider, TokenParams, Upstream};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::people_support::{
    CLIENT, Own, WELCOME, actor, api, context, map, offered, own, parts, people, plain, provision, sign_in, status,
    uid_of_provider, vouched,
};
use crate::support::{claims_of, execute, number, ok, token_of, uid_of};

async fn issue(server: &TestServer, login: &Login, upstream: &Upstream, asked: TokenParams) -> Issued {
    let issued = people(server).issue(&login.session, upstream, &asked, &context(server)).await;
    issued.unwrap_or_else(|error| panic!("a token: {error}"))
}

/// Someone signed in, with a token for the API.
async fn signed_in(server: &TestServer, provider: &Provider, subject: &str, claims: Value) -> (Login, Actor) {
    let upstream = vouched(server, provider, subject, claims).await;
    let login = sign_in(server, provider, &upstream).await;
    let issued = issue(server, &login, &upstream, plain(server)).await;
    (login, actor(server, &issued.token))
}

async fn a_sessions_token_says_whose_it_is_and_how_they_came(server: &TestServer) {
    let provider = offered(server).await;
    let claims = json!({ "email": "ada@example.com", "email_verified": true, "name": "Ada" });
    let upstream = vouched(server, &provider, "ada", claims).await;
    let login = sign_in(server, &provider, &upstream).await;
    let issued = issue(server, &login, &upstream, plain(server)).await;
    assert_eq!(issued.refresh_token, None);
    let claims = claims_of(&issued.token);
    assert_eq!((&claims["sub"], &claims["sid"]), (&json!(login.identity.as_str()), &json!(login.session)));
    assert_eq!((&claims["email"], &claims["email_verified"]), (&json!("ada@example.com"), &json!(true)));
    assert_eq!(claims["act"], json!({ "iss": server.idp().issuer(), "sub": "ada", "aud": CLIENT }));
    assert_eq!(claims["upstream"], json!({ "email": "ada@example.com", "name": "Ada" }));
    assert_eq!((&claims["idp"], &claims["narrow"]), (&Value::Null, &Value::Null));
    assert_eq!(claims["exp"], json!(issued.expires_at));
    let wrong = TokenParams { audiences: vec!["https://other.example".into()], ..TokenParams::default() };
    let refused = people(server).issue(&login.session, &upstream, &wrong, &context(server)).await;
    assert_eq!(refused.expect_err("no audience of ours").reason(), Reason::InvalidArgument);
    let refused = people(server).issue("unknown", &upstream, &plain(server), &context(server)).await;
    assert_eq!(refused.expect_err("no session").reason(), Reason::Unauthenticated);
}

async fn sessions_through_an_organizations_provider_act_within_it_only(server: &TestServer) {
    let (org, other) = (server.organization("acme").await, server.organization("other").await);
    let provider = own(server, &org, Own { default_role: &server.role("viewer"), ..Own::default() }).await;
    let (login, ada) = signed_in(server, &provider, "ada", Value::Null).await;
    server.bind(login.identity.as_str(), &server.role("viewer"), &other).await;
    assert_eq!((status(&ada, &org).await, status(&ada, &other).await), (200, 403));
    let claims = claims_of(ada.token.as_deref().expect("a token"));
    assert_eq!((&claims["idp"], &claims["narrow"]["scopes"]), (&json!(uid_of_provider(&provider)), &json!([org])));
    // Presented again it stays inside.
    let again = server.exchange(ada.token.as_deref().expect("a token"), &[("aud", server.base())]).await;
    assert_eq!(status(&actor(server, &token_of(&again)), &other).await, 403);
    let outside = TokenParams { scopes: vec![other.clone()], ..plain(server) };
    let upstream = vouched(server, &provider, "ada", Value::Null).await;
    let refused = people(server).issue(&login.session, &upstream, &outside, &context(server)).await;
    assert_eq!(refused.expect_err("outside").reason(), Reason::PermissionDenied);
    // Where the operator trusts the same issuer, its people are themselves everywhere.
    offered(server).await;
    let (_, ada) = signed_in(server, &provider, "ada", Value::Null).await;
    assert_eq!((status(&ada, &org).await, status(&ada, &other).await), (200, 200));
}

async fn mapped_groups_give_roles_while_the_mapping_lasts(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let provider = own(server, &org, Own { groups_claim: "groups", ..Own::default() }).await;
    let viewer = server.role("viewer");
    let mapping = map(server, &provider, "engineers", &viewer, &team).await;
    let claims = json!({ "groups": ["engineers", "others"] });
    let (login, ada) = signed_in(server, &provider, "ada", claims.clone()).await;
    assert_eq!((status(&ada, &team).await, status(&ada, &org).await), (200, 403));
    assert_eq!(number(server, "SELECT count(*) FROM session_groups").await, 1, "others mean nothing here");
    let (_, bob) = signed_in(server, &provider, "bob", json!({ "groups": "others" })).await;
    assert_eq!(status(&bob, &team).await, 403);
    // Membership is looked at again within the hour: no refresh token, and no long session.
    let upstream = vouched(server, &provider, "ada", claims).await;
    let refresh = TokenParams { refresh: true, ..plain(server) };
    assert_eq!(issue(server, &login, &upstream, refresh.clone()).await.refresh_token, None);
    let kept = Entry { cookie: Some([1; 32]), ..WELCOME };
    people(server).sign_in(&provider, &upstream, &kept, &context(server)).await.expect("she enters");
    assert_eq!(number(server, "SELECT max(expires_at - created_at) FROM sessions").await, 3_600_000_000);
    let nobody = vouched(server, &provider, "bob", Value::Null).await;
    let login = sign_in(server, &provider, &nobody).await;
    assert!(issue(server, &login, &nobody, refresh).await.refresh_token.is_some());
    execute(server, "DELETE FROM external_group_role_mappings WHERE uid = $1", &[&mapping]).await;
    assert_eq!(status(&ada, &team).await, 403, "a mapping bites at once");
}

async fn a_session_that_has_ended_ends_its_tokens(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { default_role: &server.role("viewer"), ..Own::default() }).await;
    let upstream = vouched(server, &provider, "ada", json!({ "name": "Ada" })).await;
    let cookie = [7; 32];
    let kept = Entry { cookie: Some(cookie), ..WELCOME };
    let login = people(server).sign_in(&provider, &upstream, &kept, &context(server)).await.expect("she enters");
    let issued = issue(server, &login, &upstream, TokenParams { refresh: true, ..plain(server) }).await;
    let ada = actor(server, &issued.token);
    assert_eq!(status(&ada, &org).await, 200);
    let now = context(server).now;
    let signed = people(server).session_of_cookie(&cookie, now).await.expect("an answer").expect("a session");
    assert_eq!((signed.name.as_str(), signed.is_operator), ("Ada", false));
    assert_eq!((signed.identity, signed.session), (login.identity.clone(), login.session.clone()));
    assert_eq!(people(server).session_of_cookie(&[8; 32], now).await.expect("an answer"), None);
    assert!(!people(server).end_session(&[8; 32], &context(server)).await.expect("an answer"));
    assert!(people(server).end_session(&cookie, &context(server)).await.expect("an answer"));
    assert_eq!(status(&ada, &org).await, 401);
    let again = server.exchange(&issued.token, &[("aud", server.base())]).await;
    assert_eq!(again.status, 401, "{}", again.text());
    assert_eq!(people(server).session_of_cookie(&cookie, now).await.expect("an answer"), None);
    assert_eq!(number(server, "SELECT count(*) FROM refresh_tokens").await, 0);
    // An hour ends one that nothing keeps; a cookie keeps one for a month.
    let (_, short) = signed_in(server, &provider, "ada", Value::Null).await;
    people(server).sign_in(&provider, &upstream, &kept, &context(server)).await.expect("she enters");
    server.clock().advance(Duration::from_hours(1));
    assert_eq!(status(&short, &org).await, 401);
    let later = async || people(server).session_of_cookie(&cookie, context(server).now).await.expect("an answer");
    server.clock().advance(Duration::from_hours(30 * 24 - 2));
    assert!(later().await.is_some());
    server.clock().advance(Duration::from_hours(1));
    assert!(later().await.is_none());
}

async fn an_id_token_of_the_server_is_good_for_the_exchange_only(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { default_role: &server.role("viewer"), ..Own::default() }).await;
    let upstream = vouched(server, &provider, "ada", Value::Null).await;
    let login = sign_in(server, &provider, &upstream).await;
    let id = people(server)
        .id_token(&login.session, &api(server), Some("a program"), Some("n-1"), &context(server))
        .await
        .expect("an id token");
    let claims = claims_of(&id);
    let now = server.clock().seconds();
    assert_eq!((&claims["aud"], &claims["nonce"]), (&json!([server.base(), "a program"]), &json!("n-1")));
    assert_eq!(claims["azp"], json!("a program"));
    assert_eq!(claims["exp"], json!(now + 300));
    assert_eq!(status(&actor(server, &id), &org).await, 401, "it is no access token");
    let reply = server.exchange(&id, &[("aud", server.base())]).await;
    let access = claims_of(&token_of(&reply));
    assert_eq!((&access["sid"], &access["idp"]), (&json!(login.session), &json!(uid_of_provider(&provider))));
    assert_eq!(access["narrow"]["scopes"], json!([org]));
    assert_eq!(access["exp"], json!(now + 3600));
    assert_eq!(status(&actor(server, &token_of(&reply)), &org).await, 200);
    server.clock().advance(Duration::from_mins(6));
    assert_eq!(server.exchange(&id, &[("aud", server.base())]).await.status, 401);
    let id =
        people(server).id_token(&login.session, &api(server), None, None, &context(server)).await.expect("another");
    execute(server, "DELETE FROM sessions WHERE id = $1", &[&login.session]).await;
    assert_eq!(server.exchange(&id, &[("aud", server.base())]).await.status, 401, "the session has ended");
    let refused = people(server).id_token(&login.session, &api(server), None, None, &context(server)).await;
    assert_eq!(refused.expect_err("no session").reason(), Reason::Unauthenticated);
}

async fn another_identity_is_assumed_only_where_it_trusts_the_provider(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = offered(server).await;
    let upstream = vouched(server, &provider, "ada", Value::Null).await;
    let login = sign_in(server, &provider, &upstream).await;
    let create = async |subject: &str| {
        let claims = json!({ "issuer": server.idp().issuer(), "subject": subject, "audience": CLIENT });
        let body = json!({ "name": "machine", "claimMatch": claims });
        uid_of(&ok(&server.operator().await, &format!("POST /iam/v2/identities/{org}"), body).await)
    };
    let (hers, his) = (create("ada").await, create("bob").await);
    let asked = |uid: &str| TokenParams { identity: Uidp::parse(uid).ok(), ..plain(server) };
    let issued = issue(server, &login, &upstream, asked(&hers)).await;
    let claims = claims_of(&issued.token);
    assert_eq!((&claims["sub"], &claims["sid"]), (&json!(hers), &Value::Null));
    let refused = people(server).issue(&login.session, &upstream, &asked(&his), &context(server)).await;
    assert_eq!(refused.expect_err("not hers").reason(), Reason::PermissionDenied);
}

async fn a_directory_takes_what_mapped_groups_give(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let directory = own(server, &org, Own { scim: true, ..Own::default() }).await;
    let provider = own(server, &team, Own { groups_claim: "groups", ..Own::default() }).await;
    map(server, &provider, "engineers", &server.role("viewer"), &org).await;
    let (login, ada) = signed_in(server, &provider, "ada", json!({ "groups": "engineers" })).await;
    provision(server, &directory, "ada", login.identity.as_str()).await;
    assert_eq!(status(&ada, &team).await, 200);
    execute(server, "UPDATE scim_users SET active = (1 = 0) WHERE external_id = $1", &["ada"]).await;
    assert_eq!(status(&ada, &team).await, 403, "the organization's directory says so");
    execute(server, "UPDATE scim_users SET active = (1 = 1) WHERE external_id = $1", &["ada"]).await;
    assert_eq!(status(&ada, &team).await, 200);
}

async fn an_id_token_opens_what_was_confirmed(server: &TestServer) {
    let provider = offered(server).await;
    let upstream = vouched(server, &provider, "ada", Value::Null).await;
    let login = sign_in(server, &provider, &upstream).await;
    let registry = parts(server).settings.audiences()[1].to_owned();
    let confirmed = [registry.clone()];
    let id = people(server).id_token(&login.session, &confirmed, None, None, &context(server)).await;
    let id = id.expect("an id token");
    for asked in [vec![server.base()], vec![server.base(), &registry]] {
        let parameters: Vec<(&str, &str)> = asked.into_iter().map(|audience| ("aud", audience)).collect();
        let refused = server.exchange(&id, &parameters).await;
        assert_eq!(refused.status, 403, "{}", refused.text());
    }
    let access = token_of(&server.exchange(&id, &[("aud", &registry)]).await);
    assert_eq!(claims_of(&access)["aud"], json!(registry));
    assert_eq!(server.exchange(&access, &[("aud", server.base())]).await.status, 403, "nor by a detour");
}

each_engine!(
    a_sessions_token_says_whose_it_is_and_how_they_came,
    sessions_through_an_organizations_provider_act_within_it_only,
    mapped_groups_give_roles_while_the_mapping_lasts,
    a_session_that_has_ended_ends_its_tokens,
    an_id_token_of_the_server_is_good_for_the_exchange_only,
    another_identity_is_assumed_only_where_it_trusts_the_provider,
    a_directory_takes_what_mapped_groups_give,
    an_id_token_opens_what_was_confirmed
);
