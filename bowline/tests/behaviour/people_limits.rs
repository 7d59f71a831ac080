//! What a group's own provider or directory cannot do to people: act for them elsewhere, or take from them what lies
//! above the group.

use bowline_core::{Reason, Uidp};
use bowline_identity::people::{Choice, Provider};
use bowline_testkit::{SignIn, TestServer, each_engine};
use serde_json::{Value, json};

use crate::people_support::{
    Own, WELCOME, actor, context, offered, own, parts, people, person, plain, provision, redeem, sign_in, sign_in_of,
    status, uid_of_provider, vouched,
};
use crate::support::{claims_of, execute, number};

/// A token of someone who signed in with that client of the issuer.
async fn with_client(server: &TestServer, provider: &Provider, client: &str) -> String {
    let who = SignIn { client_id: client.into(), ..sign_in_of("ada", Value::Null) };
    let upstream = redeem(server, provider, who).await.expect("ada signs in");
    let login = sign_in(server, provider, &upstream).await;
    let issued = people(server).issue(&login.session, &upstream, &plain(server), &context(server)).await;
    issued.expect("a token").token
}

async fn another_client_of_the_operators_issuer_speaks_for_its_group_alone(server: &TestServer) {
    let (org, other) = (server.organization("acme").await, server.organization("other").await);
    offered(server).await;
    let provider = own(server, &org, Own::default()).await;
    let uid = uid_of_provider(&provider);
    execute(server, "UPDATE identity_providers SET client_id = 'another' WHERE uid = $1", &[&uid]).await;
    let choice = Choice::Provider(Uidp::parse(&uid).expect("a UIDP"));
    let provider = people(server).provider(&choice).await;
    let token = with_client(server, &provider.expect("the changed provider"), "another").await;
    for group in [&org, &other] {
        server.bind(&person(server, "ada"), &server.role("viewer"), group).await;
    }
    assert_eq!(claims_of(&token)["narrow"]["scopes"], json!([org]));
    let ada = actor(server, &token);
    assert_eq!((status(&ada, &org).await, status(&ada, &other).await), (200, 403));
    // A token that ada gave to the other client's owner opens no more than that.
    let stolen = server.idp().token("ada", "another", Value::Null);
    let reply = server.exchange(&stolen, &[("aud", server.base()), ("identity_provider", &uid)]).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let thief = actor(server, reply.json()["token"].as_str().expect("a token"));
    assert_eq!((status(&thief, &org).await, status(&thief, &other).await), (200, 403));
}

async fn a_provider_of_a_group_within_opens_nothing_above_it(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let provider = own(server, &team, Own::default()).await;
    let upstream = vouched(server, &provider, "ada", Value::Null).await;
    let login = sign_in(server, &provider, &upstream).await;
    server.bind(login.identity.as_str(), &server.role("viewer"), &org).await;
    let issued = people(server).issue(&login.session, &upstream, &plain(server), &context(server)).await;
    let ada = actor(server, &issued.expect("a token").token);
    assert_eq!((status(&ada, &team).await, status(&ada, &org).await), (200, 403));
}

async fn people_of_an_organizations_issuer_come_in_through_its_provider_alone(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { default_role: &server.role("viewer"), ..Own::default() }).await;
    let upstream = vouched(server, &provider, "ada", Value::Null).await;
    let login = sign_in(server, &provider, &upstream).await;
    let token = server.idp().token("ada", &parts(server).settings.auth_url, Value::Null);
    let named = [("aud", server.base()), ("identity", login.identity.as_str())];
    for asked in [&named[..1], &named] {
        let reply = server.exchange(&token, asked).await;
        assert_eq!(reply.status, 403, "{}", reply.text());
    }
    let uid = uid_of_provider(&provider);
    let reply = server.exchange(&token, &[("aud", server.base()), ("identity_provider", &uid)]).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    offered(server).await;
    assert_eq!(server.exchange(&token, &named[..1]).await.status, 200, "the operator trusts the issuer");
}

async fn the_directory_of_a_group_within_takes_nothing_above_it(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let operators = offered(server).await;
    let upstream = vouched(server, &operators, "ada", Value::Null).await;
    let login = sign_in(server, &operators, &upstream).await;
    let issued = people(server).issue(&login.session, &upstream, &plain(server), &context(server)).await;
    let ada = actor(server, &issued.expect("a token").token);
    let viewer = server.role("viewer");
    server.bind(login.identity.as_str(), &viewer, &team).await;
    assert_eq!((status(&ada, &org).await, status(&ada, &team).await), (403, 200));
    let provider = own(server, &team, Own { scim: true, ..Own::default() }).await;
    provision(server, &provider, "ada", login.identity.as_str()).await;
    execute(server, "UPDATE scim_users SET active = (1 = 0) WHERE external_id = $1", &["ada"]).await;
    execute(server, "UPDATE revisions SET n = n + 1 WHERE name = $1", &["iam"]).await;
    assert_eq!(status(&ada, &team).await, 403, "the team's directory says so");
    server.bind(login.identity.as_str(), &viewer, &org).await;
    assert_eq!((status(&ada, &org).await, status(&ada, &team).await), (200, 200), "what lies above is not its own");
}

async fn an_account_verified_for_one_client_cannot_sign_in_for_another(server: &TestServer) {
    let org = server.organization("acme").await;
    offered(server).await;
    let provider = own(server, &org, Own::default()).await;
    let uid = uid_of_provider(&provider);
    let again = async || people(server).provider(&Choice::Provider(Uidp::parse(&uid).expect("a UIDP"))).await;
    execute(server, "UPDATE identity_providers SET client_id = 'another' WHERE uid = $1", &[&uid]).await;
    let who = SignIn { client_id: "another".into(), ..sign_in_of("ada", Value::Null) };
    let upstream = redeem(server, &again().await.expect("the provider"), who).await.expect("ada signs in");
    // Before she confirms, the provider takes the name of the operator's client.
    execute(server, "UPDATE identity_providers SET client_id = 'bowline-client' WHERE uid = $1", &[&uid]).await;
    let provider = again().await.expect("the changed provider");
    let refused = people(server).sign_in(&provider, &upstream, &WELCOME, &context(server)).await;
    assert_eq!(refused.expect_err("another client").reason(), Reason::PermissionDenied);
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 0);
    let upstream = vouched(server, &provider, "ada", Value::Null).await;
    sign_in(server, &provider, &upstream).await;
}

each_engine!(
    another_client_of_the_operators_issuer_speaks_for_its_group_alone,
    a_provider_of_a_group_within_opens_nothing_above_it,
    people_of_an_organizations_issuer_come_in_through_its_provider_alone,
    the_directory_of_a_group_within_takes_nothing_above_it,
    an_account_verified_for_one_client_cannot_sign_in_for_another
);
