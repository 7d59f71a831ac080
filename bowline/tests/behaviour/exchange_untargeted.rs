//! Exchanges that name no identity: people by issuer and subject, machines inside the organization of `scopes` alone.

use bowline_contract::v1::oidc::ExchangeRequest;
use bowline_contract::v1::oidc::rpc::security_token_service::Exchange;
use bowline_core::Error;
use bowline_testkit::{RestReply, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{claims_of, execute, ok, token_of, uid_of};

const NOT_FOUND: &str = "no identity found; pass identity=<uid>";

/// Creates a claim match of the fake issuer.
async fn registered(server: &TestServer, parent: &str, member: &str, subject: &str) -> String {
    let claims = json!({ "issuer": server.idp().issuer(), member: subject });
    let body = json!({ "name": "registered", "claimMatch": claims });
    uid_of(&ok(&server.operator().await, &format!("POST /iam/v2/identities/{parent}"), body).await)
}

/// Exchanges a token of this subject, narrowed to these groups.
async fn ask(server: &TestServer, subject: &str, scopes: &[&str]) -> RestReply {
    let token = server.idp().token(subject, server.base(), Value::Null);
    let scopes = scopes.iter().map(|scope| ("scopes", *scope));
    let params: Vec<(&str, &str)> = [("aud", server.base())].into_iter().chain(scopes).collect();
    server.exchange(&token, &params).await
}

/// Whose token it becomes.
async fn found(server: &TestServer, subject: &str, scopes: &[&str]) -> String {
    let reply = ask(server, subject, scopes).await;
    claims_of(&token_of(&reply))["sub"].as_str().unwrap_or_default().to_owned()
}

/// The exchange finds nothing, and says so as for a subject that no organization has registered.
async fn assert_not_found(server: &TestServer, subject: &str, scopes: &[&str]) {
    let reply = ask(server, subject, scopes).await;
    let unknown = ask(server, "unregistered", scopes).await;
    assert_eq!((reply.status, reply.json()["message"].as_str()), (403, Some(NOT_FOUND)), "{subject} {scopes:?}");
    assert_eq!((reply.status, reply.json()["details"].clone()), (unknown.status, unknown.json()["details"].clone()));
}

async fn a_workload_is_matched_within_the_one_organization_of_its_scopes(server: &TestServer) {
    let acme = server.organization("acme").await;
    let team = server.group(&acme, "team").await;
    let globex = server.organization("globex").await;
    registered(server, &acme, "subjectPattern", "r.*").await;
    assert_not_found(server, "r1", &[&acme]).await;
    let robot = registered(server, &team, "subject", "r1").await;
    for scopes in [&[acme.as_str()][..], &[&team], &[&acme, &team]] {
        assert_eq!(found(server, "r1", scopes).await, robot, "{scopes:?}");
    }
    for scopes in [&[][..], &[globex.as_str()], &[&acme, &globex], &[&team, &globex]] {
        assert_not_found(server, "r1", scopes).await;
    }
    // The deprecated single scope counts like a list of one.
    let upstream = server.anonymous().with_token(&server.idp().token("r1", server.base(), Value::Null));
    #[expect(deprecated, reason = "the single scope is still accepted")]
    let request = ExchangeRequest { aud: vec![server.base().into()], scope: acme.clone(), ..Default::default() };
    let raw = upstream.grpc::<Exchange>(request).await.expect("the one match of the organization");
    assert_eq!(claims_of(&raw.token)["sub"], robot.as_str());
    // Two of one organization are answered like none.
    registered(server, &acme, "subject", "r1").await;
    assert_not_found(server, "r1", &[&acme]).await;
}

async fn an_organization_neither_hinders_nor_catches_the_workload_of_another(server: &TestServer) {
    let acme = server.organization("acme").await;
    let globex = server.organization("globex").await;
    let robot = registered(server, &acme, "subject", "r1").await;
    // More than a look-up reads.
    for _ in 0..25 {
        registered(server, &globex, "subject", "r1").await;
    }
    assert_eq!(found(server, "r1", &[&acme]).await, robot);
    registered(server, &globex, "subject", "r2").await;
    assert_not_found(server, "r2", &[]).await;
    assert_not_found(server, "r2", &[&acme]).await;
}

async fn a_person_is_found_by_issuer_and_subject_before_every_machine(server: &TestServer) {
    let acme = server.organization("acme").await;
    let robot = registered(server, &acme, "subject", "r1").await;
    crate::people_support::offered(server).await;
    let person = "a".repeat(40);
    let sql = "INSERT INTO identities (uid, parent, org, name, description, email, email_unverified, company,
                     relationship_type, relationship, issuer, subject, deactivated, created_at, updated_at)
                   SELECT $1, '', '', 'person', '', '', '', '', 0, relationship, $2, $3, FALSE, 0, 0
                   FROM identities WHERE uid = $4";
    execute(server, sql, &[&person, server.idp().issuer(), "r1", &robot]).await;
    clear_relationship(server, &person).await;
    assert_eq!(found(server, "r1", &[]).await, person);
    assert_eq!(found(server, "r1", &[&acme]).await, person);
}

async fn clear_relationship(server: &TestServer, uid: &str) {
    let uid = uid.to_owned();
    let written = server.server().parts().storage.db.write(move |tx| {
        let uid = uid.clone();
        Box::pin(async move {
            let sql = "UPDATE identities SET relationship = $2 WHERE uid = $1";
            let params = [bowline_store::Value::from(&uid), bowline_store::Value::Bytes(&[])];
            tx.execute(sql, &params).await.map_err(Error::from)
        })
    });
    written.await.expect("the row is changed");
}

each_engine!(
    a_workload_is_matched_within_the_one_organization_of_its_scopes,
    an_organization_neither_hinders_nor_catches_the_workload_of_another,
    a_person_is_found_by_issuer_and_subject_before_every_machine
);
