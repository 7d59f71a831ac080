//! Metadata of people, which only they set, about themselves alone.

use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::identities_service::UpdateIdentityMetadata;
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{call, inventory, machine, number, ok, person, rejected};

const V1: &str = "PATCH /iam/v1/identities/metadata";
const V2: &str = "PATCH /iam/v2/identities:updateIdentityMetadata";

async fn events(server: &TestServer) -> i64 {
    number(
        server,
        "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.api.iam.identity.metadata.updated.v1'
         AND NOT customer AND body_type = 'chainguard.platform.events.IdentityMetadata'",
    )
    .await
}

async fn a_person_tells_and_both_versions_see_it(server: &TestServer) {
    let me = person(server, "me", "me@acme.example").await;
    let body = json!({ "identityMetadata": { "company": "Acme", "jobTitle": "Baker", "updatesOptIn": true } });
    let told = ok(&me.actor, V2, body).await;
    let expected = (&json!(me.uid), &json!("me"), &json!("Acme"), &json!("Baker"), &json!(true));
    assert_eq!((&told["uid"], &told["name"], &told["company"], &told["jobTitle"], &told["updatesOptIn"]), expected);
    // Members of the body are the mask: an empty one clears, an absent one stays.
    let told = ok(&me.actor, V2, json!({ "identityMetadata": { "jobTitle": "", "product": "images" } })).await;
    assert_eq!((&told["company"], &told["jobTitle"]), (&json!("Acme"), &json!("")));
    // A mask of the caller's limits what counts.
    let body = json!({ "identityMetadata": { "company": "Other", "product": "" }, "updateMask": "company" });
    let told = ok(&me.actor, V2, body).await;
    assert_eq!((&told["company"], &told["product"]), (&json!("Other"), &json!("images")));
    // The company is the identity's too.
    let identity = ok(&me.actor, &format!("GET /iam/v2/identities/{}", me.uid), Value::Null).await;
    assert_eq!(identity["company"], "Other");
    // V1 replaces the whole, names aside.
    let body = json!({ "name": "Mallory", "onboardingQuestions": { "companyName": "Third", "utmTerm": "t" } });
    let told = ok(&me.actor, V1, body).await;
    let answers = &told["onboardingQuestions"];
    assert_eq!(
        (&told["name"], &answers["companyName"], &answers["product"]),
        (&json!("me"), &json!("Third"), &json!(""))
    );
    assert_eq!((&answers["utmTerm"], &told["updatesOptIn"]), (&json!("t"), &json!(false)));
    // Over gRPC what is not empty is the mask.
    let metadata = v2::IdentityMetadata { self_serve: true, ..v2::IdentityMetadata::default() };
    let request = v2::UpdateIdentityMetadataRequest { identity_metadata: Some(metadata), update_mask: None };
    let told = me.actor.grpc::<UpdateIdentityMetadata>(request).await.expect("it is told");
    assert_eq!((told.company.as_str(), told.utm_term.as_str(), told.self_serve), ("Third", "t", true));
    assert_eq!(events(server).await, 5);
    let kinds = "SELECT count(*) FROM audit WHERE kind = 'iam.chainguard.dev/Identity' AND after_type = 'chainguard.platform.iam.v2.IdentityMetadata'";
    assert_eq!(number(server, kinds).await, 5);
    // The same again is no change.
    ok(&me.actor, V2, json!({ "identityMetadata": { "selfServe": true } })).await;
    assert_eq!(events(server).await, 5);
}

async fn machines_narrowed_tokens_and_wrong_fields_are_refused(server: &TestServer) {
    let org = server.organization("acme").await;
    let robot = machine(server, &org, "robot").await;
    let me = person(server, "me", "me@acme.example").await;
    let narrowed = me.narrowed(server, &[("cap", "groups.list")]).await;
    let body = || json!({ "identityMetadata": { "company": "Acme" } });
    let operator = server.operator().await;
    let before = inventory(server).await;
    rejected(&robot.actor, V2, body(), 400, "FAILED_PRECONDITION").await;
    rejected(&operator, V2, body(), 400, "FAILED_PRECONDITION").await;
    assert_eq!(call(&robot.actor, V1, json!({})).await.code(), 9);
    rejected(&narrowed, V2, body(), 403, "PERMISSION_DENIED").await;
    assert_eq!(call(&narrowed, V1, json!({})).await.status, 403);
    rejected(&server.anonymous(), V2, body(), 401, "UNAUTHENTICATED").await;
    for (body, field) in [
        (json!({ "identityMetadata": { "company": "x".repeat(257) } }), "company"),
        (json!({ "identityMetadata": { "latestFormSubmitUrl": "x".repeat(2049) } }), "latestFormSubmitUrl"),
        (json!({ "identityMetadata": { "givenName": "G" }, "updateMask": "givenName" }), "updateMask"),
        (json!({ "identityMetadata": {}, "updateMask": "nothing" }), "updateMask"),
        (json!({}), "identityMetadata"),
    ] {
        let refusal = rejected(&me.actor, V2, body, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field]);
    }
    let body = json!({ "onboardingQuestions": { "product": "x".repeat(257) } });
    let refusal = rejected(&me.actor, V1, body, 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["onboardingQuestions.product"]);
    assert_eq!(inventory(server).await, before);
    assert_eq!(number(server, "SELECT count(*) FROM identity_metadata").await, 0);
}

async fn it_goes_with_the_person(server: &TestServer) {
    let me = person(server, "me", "me@acme.example").await;
    ok(&me.actor, V2, json!({ "identityMetadata": { "company": "Acme" } })).await;
    let operator = server.operator().await;
    assert_eq!(call(&operator, &format!("DELETE /iam/v2/identities/{}", me.uid), Value::Null).await.status, 200);
    assert_eq!(number(server, "SELECT count(*) FROM identity_metadata").await, 0);
}

async fn the_name_follows_the_sign_in(server: &TestServer) {
    let me = person(server, "me", "me@acme.example").await;
    ok(&me.actor, V2, json!({ "identityMetadata": { "product": "images" } })).await;
    crate::support::execute(server, "UPDATE identities SET name = 'Ada' WHERE uid = $1", &[&me.uid]).await;
    let told = ok(&me.actor, V2, json!({ "identityMetadata": { "product": "libraries" } })).await;
    assert_eq!((&told["name"], &told["product"]), (&json!("Ada"), &json!("libraries")));
}

each_engine!(
    a_person_tells_and_both_versions_see_it,
    machines_narrowed_tokens_and_wrong_fields_are_refused,
    it_goes_with_the_person,
    the_name_follows_the_sign_in
);
