//! What entering gives a person, and what it does not: roles of providers and of invitations.

use bowline_core::{Reason, Result};
use bowline_identity::people::{Entry, Login, Provider, Upstream};
use bowline_testkit::{Engine, TestServer, by_engine, each_engine, on_engine_with};
use serde_json::{Value, json};

use crate::people_support::{
    Own, WELCOME, actor, context, map, offered, own, people, person, plain, provision, sign_in, vouched,
};
use crate::support::{call, number, ok, rejected};

async fn invite(server: &TestServer, group: &str, more: Value) -> String {
    let mut body = json!({ "roleUid": server.role("viewer"), "ttl": "3600s" });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let made = ok(&server.operator().await, &format!("POST /iam/v2/groupInvites/{group}"), body).await;
    made["code"].as_str().expect("a code").into()
}

async fn join(server: &TestServer, provider: &Provider, upstream: &Upstream, invite: &str) -> Result<Login> {
    let entry = Entry { invite: Some(invite.into()), ..WELCOME };
    people(server).sign_in(provider, upstream, &entry, &context(server)).await
}

async fn a_provider_vouches_for_addresses_in_its_own_group_alone(server: &TestServer) {
    let org = server.organization("acme").await;
    let (team, side) = (server.group(&org, "team").await, server.group(&org, "side").await);
    let inner = server.group(&team, "inner").await;
    let of_team = own(server, &team, Own::default()).await;
    let claims = json!({ "email": "ceo@acme.example", "email_verified": true });
    let upstream = vouched(server, &of_team, "mallory", claims).await;
    let locked = json!({ "email": "ceo@acme.example" });
    for group in [&org, &side] {
        let code = invite(server, group, locked.clone()).await;
        let refused = join(server, &of_team, &upstream, &code).await.expect_err("the team has no say there");
        assert_eq!(refused.reason(), Reason::PermissionDenied, "{group}");
    }
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, 0);
    for group in [&team, &inner] {
        let code = invite(server, group, locked.clone()).await;
        join(server, &of_team, &upstream, &code).await.expect("its own group, or one within");
    }
    let of_org = own(server, &org, Own::default()).await;
    let code = invite(server, &side, locked.clone()).await;
    join(server, &of_org, &upstream, &code).await.expect("the organization's provider vouches everywhere in it");
    let code = invite(server, &org, locked).await;
    let operators = offered(server).await;
    join(server, &operators, &upstream, &code).await.expect("the operator's vouches everywhere");
}

async fn a_default_role_is_given_once_whatever_becomes_of_the_person(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { default_role: &server.role("viewer"), ..Own::default() }).await;
    let upstream = vouched(server, &provider, "ada", Value::Null).await;
    let login = sign_in(server, &provider, &upstream).await;
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, 1);
    // A token that is not limited to the organization: she goes away altogether.
    let operators = offered(server).await;
    let session = sign_in(server, &operators, &upstream).await.session;
    let issued = people(server).issue(&session, &upstream, &plain(server), &context(server)).await;
    let ada = actor(server, &issued.expect("a token").token);
    ok(&ada, &format!("DELETE /auth/v1/delete/{}", login.identity), Value::Null).await;
    let again = sign_in(server, &provider, &upstream).await;
    assert!(again.is_new);
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, 0);
    let bob = vouched(server, &provider, "bob", Value::Null).await;
    sign_in(server, &provider, &bob).await;
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, 1);
}

async fn an_invitation_is_made_by_who_could_stand_behind_it_later(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { groups_claim: "groups", ..Own::default() }).await;
    map(server, &provider, "owners", &server.role("owner"), &org).await;
    let upstream = vouched(server, &provider, "ada", json!({ "groups": "owners" })).await;
    let login = sign_in(server, &provider, &upstream).await;
    let issued = people(server).issue(&login.session, &upstream, &plain(server), &context(server)).await;
    let ada = actor(server, &issued.expect("a token").token);
    let create = format!("POST /iam/v2/groupInvites/{org}");
    let body = json!({ "roleUid": server.role("viewer"), "ttl": "3600s" });
    let refusal = rejected(&ada, &create, body.clone(), 403, "PERMISSION_DENIED").await;
    assert!(refusal.message().contains("role binding"), "{}", refusal.message());
    let v1 = json!({ "role": server.role("viewer"), "ttl": "3600s" });
    let first = call(&ada, &format!("POST /iam/v1/group_invites/{org}"), v1).await;
    assert_eq!(first.status, 403, "{}", first.text());
    assert_eq!(number(server, "SELECT count(*) FROM group_invites").await, 0);
    server.bind(login.identity.as_str(), &server.role("viewer"), &org).await;
    ok(&ada, &create, body).await;
}

async fn the_audit_log_knows_whom_the_directory_turned_out_to_mean(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { scim: true, by_object_id: true, ..Own::default() }).await;
    provision(server, &provider, "object-1", "").await;
    let bob = vouched(server, &provider, "bob", json!({ "oid": "object-1" })).await;
    let linked = "SELECT count(*) FROM audit WHERE kind = 'bowline.dev/ScimUser' AND method = 'test sign-in'
                      AND before_image IS NOT NULL AND after_image IS NOT NULL AND before_image <> after_image";
    for _ in 0..2 {
        sign_in(server, &provider, &bob).await;
        assert_eq!(number(server, linked).await, 1, "linked once");
    }
    let by = "SELECT count(*) FROM audit a JOIN identities i ON i.uid = a.actor
                  WHERE a.kind = 'bowline.dev/ScimUser' AND i.subject = 'bob'";
    assert_eq!(number(server, by).await, 1);
    assert_eq!(sign_in(server, &provider, &bob).await.identity.as_str(), person(server, "bob"));
}

async fn terms_that_are_not_accepted_yet_lock_no_one_out(engine: Engine) {
    let required = |options: &mut bowline_server::Options| {
        let (id, label, url) = ("terms".into(), "Terms".into(), "https://operator.example/terms".into());
        options.terms = vec![bowline_server::TermsOption { id, label, url }];
        options.terms_required = true;
    };
    on_engine_with(engine, required, async |server| {
        let org = server.organization("acme").await;
        let provider = own(server, &org, Own { default_role: &server.role("viewer"), ..Own::default() }).await;
        let operators = offered(server).await;
        let code = invite(server, &org, json!({})).await;
        let (ada, bob) = (
            vouched(server, &provider, "ada", Value::Null).await,
            vouched(server, &operators, "bob", Value::Null).await,
        );
        sign_in(server, &provider, &ada).await;
        join(server, &operators, &bob, &code).await.expect("the organization accepts later");
        assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, 2);
    })
    .await;
}

each_engine!(
    a_provider_vouches_for_addresses_in_its_own_group_alone,
    a_default_role_is_given_once_whatever_becomes_of_the_person,
    an_invitation_is_made_by_who_could_stand_behind_it_later,
    the_audit_log_knows_whom_the_directory_turned_out_to_mean
);

by_engine!(terms_that_are_not_accepted_yet_lock_no_one_out);
